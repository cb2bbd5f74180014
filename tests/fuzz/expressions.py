"""Expressions of every kind over the columns there are, written as templates: one that is nearly
right tests most.

In a template `{number}` is an expression of that kind and `{number!}` a constant; `{x}` and `{x!}`
are of one kind that is drawn for the whole template.
"""

from __future__ import annotations

from .draw import Draw, lines, words
from .schemas import KINDS, Columns

FORMS = {
    "number": lines("""
        ({number} {+|-|*|/|//|%} {number})
        ({number} {+|-|*|/|//|%} {number!})
        ({number} {+|*} {number} {-|/} {number})
        ({number}{ * 1e18| * 0| / 1000000007} * 1e18{| * 1e18 * 1e18}{| / 7| / 1e18 / 1e18})
        {ABS|SIGN|-|FLOOR|CEIL|ROUND}({number})
        ROUND({number}{|, 1|, -1|, 3})
        POWER({number}, {1|2|3|8|0.5})
        {SQRT|LN|LOG|EXP}({number})
        LOG({2|10|0.5}, {number})
        MOD({number}, {3|-2|0|0.5})
        CLAMP({number}, {-5|0|-0.25}, {3|100|7.5})
        {LEAST|GREATEST}({number}, {number})
        {LEAST|GREATEST}({number}, {number!}, {number})
        CASE WHEN {flag} THEN {number} ELSE {number} END
        CASE {category} WHEN {category!} THEN {number} END
        {COALESCE|NULLIF}({number}, {number})
        {CAST|TRY_CAST}({number} AS {INTEGER|TINYINT|BIGINT|DOUBLE|DECIMAL(10, 1)|HUGEINT})
        {CAST|TRY_CAST}({category} AS {INTEGER|DOUBLE})
        ({flag})::INTEGER
        LENGTH({string})
        STRPOS({string}, {'a'|' '|'F'})
        EXTRACT({part} FROM {time})
        {YEAR|MONTH|QUARTER|DAYOFWEEK|WEEK|DAYOFYEAR|DECADE|CENTURY}({date})
        {HOUR|MINUTE|SECOND}({moment})
        DATE_DIFF('{unit}', {time}, {time})
        ({date} - {date})
        IF({flag}, {number}, {number})
        (CASE WHEN {flag} THEN 1 ELSE 0 END)
        ({number} + (SELECT {MAX|MIN|SUM|COUNT}(population) FROM states))
        WIDTH_BUCKET({number}, [{0, 1|-5, 0.5, 7|10}])
        ROUND({number}, {huge})
        POWER({number}, {huge})
        LOG({huge}, {number})
        ({number} {+|-|*|/|//|%} {huge})
        CLAMP({number}, -{huge}, {huge})
        STRPOS({string}, {long})
        LENGTH({string} || {long})
        TIMESTAMPDIFF({YEAR|MONTH|DAY}, {date}, {date})
        EXTRACT(EPOCH FROM {moment} - {moment})
        WIDTH_BUCKET({number}, {0|-5}, {10|7.5}, {4|1})
        {CBRT|SQRT}(ABS({number}))
        {NVL|ISNULL}({number}, {number})
        SAFE_DIVIDE({number}, {number})
        {DECADE|CENTURY|ISOYEAR}({date})
        """),
    "category": lines("""
        {UPPER|LOWER|TRIM}({category})
        SUBSTR({category}, {1|2|-1|0}, {0|1|2})
        {LEFT|RIGHT}({category}, {1|2})
        {category}[1:{1|2}]
        ({category} || {category})
        CONCAT({category}, '-', {category})
        CONCAT_WS('{/|}', {category}, {category})
        CASE WHEN {flag} THEN {category} ELSE {category} END
        COALESCE({category}, {category})
        NULLIF({category}, {category!})
        CAST({flag} AS VARCHAR)
        CAST({number} AS VARCHAR)
        REPLACE({category}, {'F'|'a'|''}, {'M'|''|'aa'})
        SPLIT_PART({category}, {'a'|''|'-'}, {1|2|3|0})
        {LPAD|RPAD}({category}, {1|4}, {'x'|'yz'})
        STRFTIME({date}, {'%Y-%m'|'%a'|'%j'|'%%'|'x'})
        {MONTHNAME|DAYNAME}({date})
        CAST({date} AS VARCHAR)
        CASE WHEN {text} IN ('a', {text!}) THEN {category} ELSE {category!} END
        TO_CHAR({date}, '{YYYY-MM|YYYY|DD}')
        NVL2({category}, {category}, {category!})
        SPLIT_PART({category}, 'a', {huge})
        {LPAD|RPAD}({category}, {huge}, {'x'|' '})
        {LEFT|RIGHT}({category}, {huge})
        SUBSTR({category}, {huge}, {huge})
        REPLACE({category}, {'a'|''}, {long})
        {category}[{huge}:{huge}]
        """),
    "text": lines("""
        {UPPER|LOWER|TRIM|LTRIM|RTRIM}({text})
        SUBSTR({text}, {1|2|-2}{|, 1|, 3})
        {LEFT|RIGHT}({text}, {1|2})
        ({text} || {category})
        CASE WHEN {flag} THEN {text} ELSE {text} END
        CASE WHEN {x} IN ({x!}, {x!}) THEN {x} ELSE 'other' END
        IF({text} = {text!}, {text}, {category})
        CASE WHEN {text} = {text!} THEN {text} WHEN {text} IN ('a', 't1') THEN {text} END
        COALESCE({text}, {text})
        CAST({time} AS VARCHAR)
        REPLACE({text}, {'a'|''}, {'b'|''})
        SPLIT_PART({text}, {' '|'a'}, {1|2|3|-1})
        SPLIT_PART({text}, 'a', {huge})
        {LPAD|RPAD}({text}, {huge}, {'x'|' '})
        {LPAD|RPAD}({text}, {300|10000}, {'x'|'yz'})
        {LEFT|RIGHT}({text}, {huge})
        REPLACE({text}, 'a', {long})
        ({text} || {text} || {text} || {text} || {text} || {text} || {text} || {text})
        ({text} || {long})
        {LPAD|RPAD}({text}, {1|4}, {'x'|'yz'})
        """),
    "flag": lines("""
        ({x} {=|<>|<|<=|>|>=} {x})
        ({x} {=|<>|<|>=} {x!})
        ({x} {BETWEEN|NOT BETWEEN} {x!} AND {x!})
        ({x} {IN|NOT IN} ({x!}, {x!}))
        ({x} {IN|NOT IN} ({x!}))
        ({x} = ANY ([{x!}, {x!}]))
        ({number} BETWEEN SYMMETRIC {number!} AND {number!})
        ({owner} {= ANY|<> ALL} (SELECT person_id FROM visits WHERE cost > {number!}))
        ((SELECT COUNT(*) FROM visits AS v WHERE v.person_id = {owner}) {> 0|= 0|>= 1|< 1|<> 0})
        LIST_CONTAINS([{x!}, {x!}], {x})
        (({x}, {number}) {=|<>|IN} ({x!}, {number!}))
        (({x}, {number}) IN (({x!}, {number!}), ({x!}, {number!})))
        ({x} IS {|NOT }NULL)
        ({x} IS {|NOT }DISTINCT FROM {x})
        ({flag} {AND|OR} {flag})
        (NOT {flag})
        ({flag} IS {TRUE|FALSE|NOT TRUE})
        ({string} {LIKE|ILIKE|NOT LIKE} {pattern})
        {STARTS_WITH|ENDS_WITH|CONTAINS}({string}, {'a'|'%'|'F'})
        CAST({number} AS BOOLEAN)
        ({category} {IN|NOT IN} (SELECT {state|region} FROM states))
        ({number} {<|=|>=} (SELECT {MAX|AVG|COUNT}(level) FROM states))
        ({owner} {=|<>} {1|50|0})
        """),
    "date": lines("""
        DATE_TRUNC('{day|week|month|quarter|year|decade}', {date})
        DATE_TRUNC('{day|week|month}', {moment})
        ({date} {+|-} {1|7|40})
        ({date} {+|-} INTERVAL {1|3|-2} {DAY|WEEK|MONTH|YEAR})
        DATE_ADD({date}, INTERVAL {1|13} {DAY|MONTH})
        ({date} {+|-} {number})
        ({date} {+|-} INTERVAL ({number}) DAY)
        ({date} {+|-} {number} * INTERVAL '{1|7} {day|week}')
        ({date} {+|-} INTERVAL '1 month {-|+} 1 day')
        MAKE_DATE(YEAR({date}), 1, 1)
        MAKE_DATE(YEAR({date}), MONTH({date}), 1)
        {CAST|TRY_CAST}({moment} AS DATE)
        COALESCE({date}, {date})
        CASE WHEN {flag} THEN {date} ELSE {date} END
        {LEAST|GREATEST}({date}, {date})
        ({date} {+|-} {huge})
        ({date} {+|-} INTERVAL {huge} {DAY|MONTH|YEAR})
        """),
    "moment": lines("""
        DATE_TRUNC('{hour|minute|second}', {moment})
        CAST({date} AS TIMESTAMP)
        TIME_BUCKET(INTERVAL '{15 minutes|1 day|7 days|1 month}', {moment})
        (DATE_TRUNC('hour', seen) + INTERVAL '{15|7} minutes' * FLOOR(EXTRACT(MINUTE FROM seen) / {15|7}))
        ({moment} {+|-} INTERVAL {1|90} {SECOND|MINUTE|HOUR|DAY|MONTH|YEAR})
        DATE_BIN(INTERVAL '{15 minutes|1 day}', {moment}, TIMESTAMP '1970-01-01 00:00:00')
        TO_TIMESTAMP(FLOOR(EXTRACT(EPOCH FROM {moment}) / {3600|86400}) * 3600)
        COALESCE({moment}, {moment})
        CASE WHEN {flag} THEN {moment} ELSE {moment} END
        ({moment} {+|-} INTERVAL {huge} {SECOND|HOUR|DAY|YEAR})
        """),
}
CONSTANTS = {
    "number": words("0 1 2 3 7 -1 0.5 10 100 1e3 4500000000000000000 46000000000 0.001 NULL"),
    "category": words("'F' 'M' 'flu' 'Hill' 'CA' '1' '10' '' 'zz' NULL 2"),
    "flag": ["TRUE", "FALSE", "NULL", "1 = 1"],
    "date": [
        "DATE '2024-01-15'",
        "'1970-01-01'",
        "DATE '1969-12-29'",
        "DATE '2000-02-29'",
        "NULL",
        "'2024-02-30'",
    ],
    "moment": [
        "TIMESTAMP '1970-01-01 00:00:00'",
        "TIMESTAMP '2024-06-01 12:30:00'",
        "'1970-01-01 00:10:00'",
        "NULL",
    ],
    "text": ["'a'", "'Karrie Ames'", "''", "'t1'", "NULL"],
}
WORDS = {
    "part": words("YEAR MONTH DAY QUARTER WEEK DOW ISODOW DOY HOUR MINUTE SECOND EPOCH"),
    "unit": words("day week month quarter year hour minute second"),
    "huge": words("99 10000 999999999 2147483648 9223372036854775807 1e18 1e40 1e400 -999999999"),
    "long": [f"'{'a' * 300}'", f"'{'ab ' * 2_000}'"],
    "pattern": ["'a%'", "'%a%'", "'_'", "''", "'%%'", "'K_r%s'", "'\\\\%'"],
}
ALIKE = {"time": ("date", "moment"), "string": ("text", "category")}


class Expressions:
    """Draws expressions."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw

    def column(self, columns: Columns, kind: str) -> str | None:
        found = [name for name, each in columns.items() if each == kind]
        return self.draw.any(*found) if found else None

    def kind(self, columns: Columns, *kinds: str) -> str:
        """One of these kinds, or of all; most often one that there is a column of."""
        there = [kind for kind in kinds or KINDS if kind in columns.values()]
        return (
            self.draw.any(*there)
            if there and self.draw.maybe(0.8)
            else self.draw.any(*(kinds or KINDS))
        )

    def constant(self, kind: str) -> str:
        return self.draw.any(*CONSTANTS[kind])

    def expression(self, columns: Columns, kind: str, depth: int = 2) -> str:
        leaf = self.column(columns, kind)
        if depth <= 0 or (leaf is not None and self.draw.maybe(0.35)):
            return leaf if leaf is not None and self.draw.maybe(0.93) else self.constant(kind)
        return self.filled(self.draw.any(*FORMS[kind]), columns, depth - 1)

    def filled(self, template: str, columns: Columns, depth: int, **more: str) -> str:
        """A template over these columns; `more` are places of its own, each the same wherever it
        stands.
        """
        x = self.kind(columns)

        def place(name: str) -> str:
            if name in more:
                return more[name]
            if name in WORDS:
                return self.draw.any(*WORDS[name])
            if name == "owner":
                return self.column(columns, "owner") or self.column(columns, "id") or "1"
            if name.endswith("!"):
                return self.constant(x if name == "x!" else name[:-1])
            kind = x if name == "x" else self.kind(columns, *ALIKE.get(name, (name,)))
            return self.expression(columns, kind, depth)

        return self.draw.fill(template, place)
