"""Write trees of `algebra` as SQL for Postgres, so that every row has the same value as in DuckDB.

The two engines differ in NULLs and signs of divisions, rounding of halves, letters, LIKE and time.
For these, the SQL written here gives DuckDB's value. If there is no such SQL, raise Unspelled: the
question is refused by name before it is charged.

Expressions must not fail on a row, and Postgres has no TRY. Most are written in a form that cannot
fail: divisors are never 0, roots and logarithms have no argument outside their domain, e^x does not
underflow, texts are never cast to numbers, and any place in a list or text is allowed. The rest,
such as whole numbers beyond 64 bits, cannot fail either if the analysis is right. As a second
defence, the `careful` form computes with numerics, which hold all our numbers, and a cast back to a
narrower type is NULL beyond its range.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import ClassVar

from discreet.algebra import (
    OWNER,
    Aggregate,
    Call,
    Case,
    Cast,
    Constant,
    Expression,
    Fold,
    Interval,
    Numbers,
    Over,
    Persons,
    Plain,
    PublicScan,
    key_column,
    number_column,
    owner_of,
)
from discreet.engines.postgres.kinds import Kinds, Tables
from discreet.engines.quoting import literal, name
from discreet.engines.spelling import Spelling, by_place
from discreet.engines.words import FOLDS, WORDS, Unspelled, Word, infix

_KINDS = {
    "HUGEINT": "NUMERIC",
    "DOUBLE": "DOUBLE PRECISION",
    "VARCHAR": "pg_catalog.text",
    "BIGINT": "BIGINT",
    "INTEGER": "BIGINT",
    "BOOLEAN": "BOOLEAN",
    "DATE": "pg_catalog.date",
    "TIMESTAMP": "TIMESTAMP",
    "TIME": "TIME",
}
_BIGGEST = 2**63 - 1
_DAY = 86_400_000_000  # microseconds
# How Postgres writes each field of strftime: by a pattern of to_char, or by a part of the date.
_FIELDS = {
    "%Y": "YYYY",
    "%y": "YY",
    "%m": "MM",
    "%-m": "FMMM",
    "%b": "Mon",
    "%B": "FMMonth",
    "%d": "DD",
    "%-d": "FMDD",
    "%j": "DDD",
    "%a": "Dy",
    "%A": "FMDay",
    "%H": "HH24",
    "%-H": "FMHH24",
    "%I": "HH12",
    "%-I": "FMHH12",
    "%M": "MI",
    "%-M": "FMMI",
    "%S": "SS",
    "%-S": "FMSS",
    "%p": "AM",
}
_PARTS = {"%w": "dow", "%u": "isodow"}


def _moment(value: str) -> str:
    return f"CAST({value} AS TIMESTAMP)"


def micros(value: str) -> str:
    """Write microseconds since 1970, exact: EXTRACT gives a numeric."""
    return f"CAST(extract(epoch FROM {value}) * 1000000 AS BIGINT)"


def _part(part: str, value: str) -> str:
    """Write a part of a date, truncated, because seconds have a fraction."""
    return f"CAST(trunc(date_part('{part}', {value})) AS BIGINT)"


def _whole_periods(seconds: int) -> Callable[[str], str]:
    return lambda value: f"CAST(floor(extract(epoch FROM {value}) / {seconds}) AS BIGINT)"


def _day(value: str) -> str:
    return f"CAST({value} AS pg_catalog.date)"


# The number of whole units before a moment. The difference of two counts the boundaries between
# them.
_BEHIND: dict[str, Callable[[str], str]] = {
    "microsecond": micros,
    "second": _whole_periods(1),
    "minute": _whole_periods(60),
    "hour": _whole_periods(3600),
    "month": lambda value: f"({_part('year', value)} * 12 + {_part('month', value)})",
    "quarter": lambda value: f"({_part('year', value)} * 4 + {_part('quarter', value)})",
    "year": lambda value: _part("year", value),
}


def _length(arguments: Sequence[str]) -> str:
    return f"CAST(length({arguments[0]}) AS BIGINT)"


def _ends_with(arguments: Sequence[str]) -> str:
    text, end = arguments
    return f"(right({text}, length({end})) = {end})"


def _substring(arguments: Sequence[str]) -> str:
    """Write a substring: a negative start counts from the end, and a length from where that is."""
    text, start, *length = arguments
    negative = start.startswith("(-")
    begin = f"length({text}) + {start} + 1" if negative else start
    return f"substr({', '.join([text, begin, *length])})"


def _list(arguments: Sequence[str]) -> str:
    return f"(ARRAY[{', '.join(arguments)}])"


def _rounded(arguments: Sequence[str]) -> str:
    """Round half away from zero: Postgres rounds floats half to even."""
    (value,) = arguments
    return f"(trunc({value}) + CASE WHEN abs({value} - trunc({value})) >= 0.5 THEN sign({value}) ELSE 0 END)"


def _exponential(arguments: Sequence[str]) -> str:
    """Write e^x, with 0 if it is too small for a float, where Postgres would fail."""
    (value,) = arguments
    return f"(CASE WHEN {value} < -700 THEN CAST(0 AS DOUBLE PRECISION) ELSE exp({value}) END)"


def _within(function: str, condition: str) -> Word:
    return lambda arguments: (
        f"{function}(CASE WHEN {arguments[0]} {condition} THEN {arguments[0]} END)"
    )


def _quotient(arguments: Sequence[str]) -> str:
    one, other = (f"CAST({each} AS DOUBLE PRECISION)" for each in arguments)
    return f"({one} / nullif({other}, 0))"


_WORDS: Mapping[str, Word] = {
    **WORDS,
    "/": _quotient,
    "contains": lambda arguments: f"(strpos({arguments[0]}, {arguments[1]}) > 0)",
    "ends_with": _ends_with,
    "epoch_us": lambda arguments: micros(arguments[0]),
    "exp": _exponential,
    # The hash divides unknown keys into parts, for an engine that would hold all keys in memory.
    # Postgres uses its disk and sends rows one by one. So for it all keys are in the first part,
    # and it sees at once that the other parts are empty.
    "hash": lambda arguments: "0",
    "length": _length,
    "list": _list,
    "list_extract": lambda arguments: f"{arguments[0]}[{arguments[1]}]",
    "list_position": lambda arguments: f"CAST(array_position({', '.join(arguments)}) AS BIGINT)",
    "ln": _within("ln", "> 0"),
    "lower": lambda arguments: f"lower_letters({arguments[0]})",
    "pair": lambda arguments: f"ROW({', '.join(arguments)})",
    "round": _rounded,
    "row": lambda arguments: f"ROW({', '.join(arguments)})",
    "sqrt": _within("sqrt", ">= 0"),
    "strpos": lambda arguments: f"CAST(strpos({', '.join(arguments)}) AS BIGINT)",
    "substr": _substring,
    "upper": lambda arguments: f"upper_letters({arguments[0]})",
}


@dataclass(frozen=True, slots=True)
class PostgresSpelling(Spelling):
    """Postgres's SQL of one query over the tables of a snapshot."""

    tables: Tables = field(default_factory=dict)
    kinds: Kinds = field(default_factory=lambda: Kinds({}, {}))
    words: ClassVar[Mapping[str, Word]] = _WORDS
    folds: ClassVar[Mapping[str, Word]] = FOLDS

    @classmethod
    def of(
        cls, query: Numbers | None, tables: Tables, *, careful: bool = False
    ) -> PostgresSpelling:
        return cls(careful=careful, tables=tables, kinds=Kinds.of(query, tables, careful=careful))

    # --- types ------------------------------------------------------------------------------------

    def kind(self, kind: str) -> str:
        if kind.startswith("DECIMAL"):
            return kind.replace("DECIMAL", "NUMERIC")
        if kind not in _KINDS:
            raise Unspelled(f"A value of the type {kind}")
        return _KINDS[kind]

    def attempt(self, value: str) -> str:
        return value  # every form inside is total when `careful`

    def constant(self, value: Plain) -> str:
        match value:
            case bool() | None:
                return Spelling.constant(self, value)
            case float():
                return f"CAST({literal(repr(value))} AS DOUBLE PRECISION)"
            case datetime():
                return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
            case date():
                return f"pg_catalog.date '{value.isoformat()}'"
            case Interval(count=count, unit=unit):
                return f"INTERVAL '{count} {unit}'"
            case str() if "\x00" in value:
                raise Unspelled("A text with the letter NUL")
            case str():
                # Privacy: Postgres gives a literal without a type the type of its neighbor. Beside
                # a boolean, 'tru' and 'tr' would be the same value, but the proof takes them for
                # two different texts (`algebra.exclusive`). And it orders texts by their bytes,
                # a database perhaps by its language: 'Ab' would be below 'B' and above 'a'.
                return f'(pg_catalog.text {literal(value)} COLLATE "C")'
        return Spelling.constant(self, value)

    # --- expressions ------------------------------------------------------------------------------

    def expression(self, node: Expression) -> str:
        match node:
            case Cast():
                return self.cast(node)
            case Over(function=Fold(name="count distinct")):
                raise Unspelled("COUNT(DISTINCT ...) in a window")
        return Spelling.expression(self, node)

    def cast(self, node: Cast) -> str:
        if node.kind.endswith("[]"):
            return self.list_constant(node)
        value, kind = self.expression(node.value), self.kinds.kind(node.value)
        if node.kind == "VARCHAR":
            if kind in ("float", "other", None) and not _is_null(node.value):
                raise Unspelled("A float or another value of no fixed form as text")
            return (
                f"CAST({value} AS pg_catalog.text)"
                if isinstance(node.value, Constant)
                else f'(CAST({value} AS pg_catalog.text) COLLATE "C")'
            )
        if kind == "text" and node.kind != "TIME" and not isinstance(node.value, Constant):
            raise Unspelled("A text as another type")
        if kind == "flag" and node.kind in ("BIGINT", "INTEGER", "HUGEINT"):
            value = f"CAST({value} AS INTEGER)"
        cast = f"CAST({value} AS {self.kind(node.kind)})"
        if (
            self.careful
            and node.kind in ("BIGINT", "INTEGER")
            and kind in ("numeric", "float", None)
        ):
            return f"(CASE WHEN {value} BETWEEN {-_BIGGEST} AND {_BIGGEST} THEN {cast} END)"
        return cast

    def list_constant(self, node: Cast) -> str:
        """Write a list of numbers that is given as a text."""
        if not isinstance(node.value, Constant) or not isinstance(node.value.value, str):
            raise Unspelled("A list that is computed")
        numbers = json.loads(node.value.value)
        return f"(CAST('{{{','.join(str(int(each)) for each in numbers)}}}' AS {self.kind(node.kind[:-2])}[]))"

    def call(self, node: Call) -> str:
        match node:
            case Call(name="+" | "-" | "*" | "negative"):
                return self.arithmetic(node)
            case Call(name="//" | "%", arguments=(dividend, divisor)):
                return self.division(node.name, dividend, divisor)
            case Call(name="list_extract", arguments=(values, place)):
                found = self.expression(place)
                inside = (
                    f"CASE WHEN {found} BETWEEN 1 AND 2147483647 THEN CAST({found} AS INTEGER) END"
                )
                return f"{self.expression(values)}[{inside}]"
            case Call(name="like" | "ilike"):
                return self.like(node)
            case Call(name="second of pair", arguments=(Fold() as fold,)):
                return self.at_extreme(fold)
            case Call(name="pair" | "second of pair"):
                raise Unspelled("ARG_MAX or ARG_MIN in a window")
            case Call(name="date_diff", arguments=(Constant(value=str(unit)), start, end)):
                return self.between(unit, self.expression(start), self.expression(end))
            case Call(name="date_part", arguments=(Constant(value=str(part)), value)):
                return _part(part, self.expression(value))
            case Call(name="date_trunc", arguments=(Constant(value=str(unit)), value)):
                return f"date_trunc({literal(unit)}, {_moment(self.expression(value))})"
            case Call(name="make_timestamp", arguments=(value,)):
                return self.from_micros(value)
            case Call(name="strftime", arguments=(value, Constant(value=str(written)))):
                return self.formatted(_moment(self.expression(value)), written)
        return Spelling.call(self, node)

    def arithmetic(self, node: Call) -> str:
        word = infix("+") if node.name == "negative" else self.words[node.name]
        kinds = {self.kinds.kind(each) for each in node.arguments}
        if "other" in kinds:
            raise Unspelled("Arithmetic with a public column of this type")
        spelled = self.all(node.arguments)
        if self.careful and kinds <= {"whole", "numeric", None} and kinds != {None}:
            spelled = [f"CAST({each} AS NUMERIC)" for each in spelled]
        return f"(-{spelled[0]})" if node.name == "negative" else word(spelled)

    def division(self, sign: str, dividend: Expression, divisor: Expression) -> str:
        """Write the whole part of a quotient, or the remainder, truncated toward zero as in DuckDB.
        If the divisor is 0, it is NULL.
        """
        whole = {self.kinds.kind(dividend), self.kinds.kind(divisor)} == {
            "whole"
        } and not self.careful
        one, other = self.expression(dividend), self.expression(divisor)
        if not isinstance(divisor, Constant) or not divisor.value:
            other = f"nullif({other}, 0)"
        if not whole:
            one, other = f"CAST({one} AS NUMERIC)", f"CAST({other} AS NUMERIC)"
        if sign == "%":
            return f"({one} % {other})"
        return f"({one} / {other})" if whole else f"div({one}, {other})"

    def like(self, node: Call) -> str:
        text, pattern, *more = node.arguments
        escape = more[0].value if more and isinstance(more[0], Constant) else ""
        if (
            not isinstance(pattern, Constant)
            or not isinstance(pattern.value, str)
            or not isinstance(escape, str)
        ):
            raise Unspelled("LIKE with a pattern that is computed")
        if escape and (
            _ends_open(pattern.value, escape) or (node.name == "ilike" and escape.lower() != escape)
        ):
            raise Unspelled("LIKE with this escape")
        one, other = self.expression(text), self.expression(pattern)
        if node.name == "ilike":
            one, other = f"lower_letters({one})", f"lower_letters({other})"
        return f"({one} LIKE {other} ESCAPE {literal(escape)})"

    def at_extreme(self, fold: Fold) -> str:
        """Write the second part of the smallest or the largest pair. Postgres has no minimum of
        pairs.
        """
        (pair,) = fold.arguments
        known = None
        if isinstance(pair, Case) and len(pair.branches) == 1 and _is_null(pair.otherwise):
            ((known, pair),) = pair.branches
        if fold.name not in ("min", "max") or not isinstance(pair, Call) or pair.name != "pair":
            raise Unspelled("This ARG_MAX or ARG_MIN")
        key, value = pair.arguments
        return self.first_by(fold, key, value, known)

    def first_by(
        self, fold: Fold, key: Expression, value: Expression, known: Expression | None
    ) -> str:
        # In the order of pairs, as in DuckDB, NULL is larger than any value
        how = "ASC NULLS LAST" if fold.name == "min" else "DESC NULLS FIRST"
        one, other = self.expression(key), self.expression(value)
        conditions = self.all([each for each in (known, fold.where) if each is not None])
        kept = f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""
        return f"(array_agg({other} ORDER BY {one} {how}, {other} {how}){kept})[1]"

    def between(self, unit: str, start: str, end: str) -> str:
        if unit in ("day", "week"):
            days = f"CAST({_day(end)} - {_day(start)} AS BIGINT)"
            return days if unit == "day" else f"({days} / 7)"
        if unit not in _BEHIND:
            raise Unspelled(f"DATE_DIFF('{unit}', ...)")
        return f"({_BEHIND[unit](end)} - {_BEHIND[unit](start)})"

    def from_micros(self, value: Expression) -> str:
        """Write the moment this many microseconds after 1970. It takes days and the rest apart,
        because Postgres multiplies intervals by floats.
        """
        found = f"CAST({self.expression(value)} AS BIGINT)"
        days, rest = f"CAST({found} / {_DAY} AS INTEGER)", f"{found} % {_DAY}"
        moment = f"(pg_catalog.date '1970-01-01' + {days} + ({rest}) * INTERVAL '1 microsecond')"
        if not self.careful:
            return moment
        ends = (datetime(1, 1, 1), datetime(9999, 12, 31))
        first, last = ((end - datetime(1970, 1, 1)).days * _DAY for end in ends)
        return f"(CASE WHEN {self.expression(value)} BETWEEN {first} AND {last} THEN {moment} END)"

    def formatted(self, moment: str, written: str) -> str:
        """Write a moment as text, field by field: Postgres has one form for each field."""
        pieces, letters = list[str](), ""
        rest = written
        while rest:
            taken = next(
                (each for each in (rest[:3], rest[:2]) if each in {*_FIELDS, *_PARTS, "%%"}), ""
            )
            if not taken:
                letters, rest = letters + rest[0], rest[1:]
                continue
            rest = rest[len(taken) :]
            if taken == "%%":
                letters += "%"
                continue
            if letters:
                pieces, letters = [*pieces, literal(letters)], ""
            form = f"to_char({moment}, '{_FIELDS[taken]}')" if taken in _FIELDS else ""
            pieces.append(form or f"CAST({_part(_PARTS[taken], moment)} AS pg_catalog.text)")
        if letters:
            pieces.append(literal(letters))
        always = f"CASE WHEN {moment} IS NOT NULL THEN '' END"
        return f'(({" || ".join([always, *pieces])}) COLLATE "C")'

    def fold(self, node: Fold) -> str:
        flags = {"min": "bool_and", "max": "bool_or"}
        if node.name in flags and self.kinds.kind(node.arguments[0]) == "flag":
            node = Fold(flags[node.name], node.arguments, node.where)
        if node.name in ("lag", "lead") and len(node.arguments) > 1:
            first, offset, *rest = self.all(node.arguments)
            return (
                f"{node.name}({', '.join([first, f'CAST({offset} AS INTEGER)', *rest])})"
                + self.filtered(node.where)
            )
        if node.name == "ntile":
            return f"ntile(CAST({self.expression(node.arguments[0])} AS INTEGER))"
        return Spelling.fold(self, node)

    # --- what leaves ------------------------------------------------------------------------------

    def aggregate(self, node: Aggregate) -> str:
        """Write an aggregation that counts people as two groupings, because COUNT(DISTINCT) makes
        Postgres sort each group.
        """
        if not node.keys or node.readings != (Persons(),):
            return Spelling.aggregate(self, node)
        keys = [
            f"{self.expression(key)} AS {key_column(place)}" for place, key in enumerate(node.keys)
        ]
        owner = f"{self.expression(owner_of(node.source))} AS {name(OWNER)}"
        each = f"SELECT {', '.join([*keys, owner])} FROM {self.source(node.source)}{self.where(node.where)}"
        listed = ", ".join(key_column(place) for place in range(len(keys)))
        known = " AND ".join(f"{key_column(place)} IS NOT NULL" for place in node.known)
        people = f"{each} {by_place(1 + len(keys))}"
        counted = (
            f"SELECT {listed}, count({name(OWNER)}) AS {number_column(0)} FROM ({people}) AS people"
        )
        return f"{counted}{f' WHERE {known}' if known else ''} GROUP BY {listed}"

    # --- where dialects differ --------------------------------------------------------------------

    def total(self, product: str, bits: int) -> str:
        return f"sum({product})"

    def summand(self, value: str, bits: int) -> str:
        return f"CAST({value} AS {'BIGINT' if bits == 64 and not self.careful else 'NUMERIC'})"

    def together(self, values: Sequence[str]) -> str:
        return f"ROW({', '.join(values)})"

    def first_of_each(self, relation: str, stage: str, pins: str, most: int) -> str:
        place = name("#place")
        numbered = f"SELECT *, row_number() OVER (PARTITION BY {pins}) AS {place} FROM {relation} AS {stage}"
        return f"(SELECT * FROM ({numbered}) AS numbered WHERE {place} <= {most}) AS {stage}"

    def place(self, node: PublicScan) -> str:
        return name(node.table)

    def place_in_values(self, place: int) -> str:
        return f"column{place + 1}"

    def wide_cell(self, cell: str, width: int) -> str:
        whole = f"CAST({cell} AS BIGINT)"
        return whole if width == 1 else f"({whole} / {width})"

    def by_all(self, keys: int) -> str:
        return by_place(keys)


def _is_null(node: Expression) -> bool:
    return isinstance(node, Constant) and node.value is None


def _ends_open(pattern: str, escape: str) -> bool:
    """Return True if a pattern ends with an escape that escapes nothing."""
    open_ = False
    for letter in pattern:
        open_ = letter == escape and not open_
    return open_
