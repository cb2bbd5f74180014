"""Statements to try: a grammar of SELECTs over a world's tables, hostile ones among them, and mutations of all of them.

The grammar knows the kinds of columns, so that most of what it writes is nearly answerable: what is refused at once
tests little. `statement` draws one statement; its class is for the counts.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

Columns = dict[str, str]  # a column's SQL, and its kind: number, category, flag, date, moment, text, id, owner

TABLES: dict[str, dict[str, Columns]] = {
    "town": {
        "people": {
            "person_id": "owner",
            "age": "number",
            "income": "number",
            "sex": "category",
            "diagnosis": "category",
            "state": "category",
            "smoker": "flag",
            "born": "date",
            "name": "text",
            "zip": "text",
        },
        "visits": {
            "person_id": "owner",
            "visit_id": "id",
            "day": "date",
            "seen": "moment",
            "cost": "number",
            "clinic": "category",
        },
        "labs": {"visit_id": "id", "test": "category", "value": "number"},
        "states": {"state": "category", "region": "category", "population": "number", "level": "number"},
    },
    "shop": {
        "people": {
            "person_id": "owner",
            "age": "number",
            "income": "number",
            "sex": "category",
            "level": "category",
            "smoker": "flag",
            "born": "date",
            "name": "text",
            "zip": "text",
        },
        "visits": {
            "person_id": "owner",
            "visit_id": "id",
            "day": "date",
            "seen": "moment",
            "cost": "number",
            "big": "number",
            "clinic": "category",
            "note": "text",
        },
        "labs": {"visit_id": "id", "test": "category", "value": "number"},
        "states": {
            "state": "category",
            "region": "category",
            "population": "number",
            "level": "number",
            "share": "number",
        },
        "days": {"day": "date", "holiday": "flag", "clinic": "category", "cost": "number"},
    },
}
PRIVATE = ("people", "visits", "labs")
PUBLIC_KEYS = {"town": ("state",), "shop": ("level", "clinic", "cost", "day")}
KINDS = ("number", "category", "flag", "date", "moment", "text")


class Grammar:
    """Draws statements about one schema."""

    def __init__(self, schema: str, source: random.Random) -> None:
        self.schema, self.source, self.tables = schema, source, TABLES[schema]
        self.aliases = 0

    # --- choices ------------------------------------------------------------------------------------------------------

    def any(self, *choices: object) -> str:
        return str(self.source.choice(choices))

    def maybe(self, chance: float) -> bool:
        return self.source.random() < chance

    def alias(self) -> str:
        self.aliases += 1
        return f"r{self.aliases}"

    def column(self, columns: Columns, kind: str) -> str | None:
        found = [name for name, each in columns.items() if each == kind]
        return self.source.choice(found) if found else None

    # --- expressions --------------------------------------------------------------------------------------------------

    def expression(self, columns: Columns, kind: str, depth: int = 2) -> str:
        leaf = self.column(columns, kind)
        if depth == 0 or (leaf is not None and self.maybe(0.35)):
            return leaf if leaf is not None and self.maybe(0.93) else self.constant(kind)
        return getattr(self, f"_{kind}")(columns, depth - 1)

    def constant(self, kind: str) -> str:
        match kind:
            case "number":
                return self.any(
                    0, 1, 2, 3, 7, -1, 0.5, 10, 100, "1e3", 4500000000000000000, 46000000000, "0.001", "NULL"
                )
            case "category":
                return self.any("'F'", "'M'", "'flu'", "'Hill'", "'CA'", "'1'", "'10'", "''", "'zz'", "NULL", "2")
            case "flag":
                return self.any("TRUE", "FALSE", "NULL", "1 = 1")
            case "date":
                return self.any("DATE '2024-01-15'", "'1970-01-01'", "DATE '1969-12-29'", "NULL", "'2024-02-30'")
            case "moment":
                return self.any("TIMESTAMP '1970-01-01 00:00:00'", "'2024-06-01 12:30:00'", "NULL")
        return self.any("'a'", "'Karrie Ames'", "''", "'t1'", "NULL")

    def _number(self, c: Columns, d: int) -> str:
        n = lambda: self.expression(c, "number", d)  # noqa: E731
        k = self.source.randrange(30)
        forms: tuple[Callable[[], str], ...] = (
            lambda: f"({n()} {self.any('+', '-', '*', '/', '//', '%')} {n()})",
            lambda: f"({n()} {self.any('+', '-', '*', '/', '//', '%')} {self.constant('number')})",
            lambda: f"({n()} {self.any('+', '*')} {n()} {self.any('-', '/')} {n()})",
            lambda: f"ABS({n()})",
            lambda: f"SIGN({n()})",
            lambda: f"-({n()})",
            lambda: f"ROUND({n()}{self.any('', ', 1', ', -1', ', 3')})",
            lambda: f"{self.any('FLOOR', 'CEIL')}({n()})",
            lambda: f"POWER({n()}, {self.any(1, 2, 3, 8, 0.5)})",
            lambda: f"{self.any('SQRT', 'LN', 'LOG', 'EXP')}({n()})",
            lambda: f"LOG({self.any(2, 10, 0.5)}, {n()})",
            lambda: f"CLAMP({n()}, {self.any(-5, 0, '-0.25')}, {self.any(3, 100, 7.5)})",
            lambda: f"{self.any('LEAST', 'GREATEST')}({n()}, {n()})",
            lambda: f"{self.any('LEAST', 'GREATEST')}({n()}, {self.constant('number')}, {n()})",
            lambda: f"CASE WHEN {self.expression(c, 'flag', d)} THEN {n()} ELSE {n()} END",
            lambda: f"CASE {self.expression(c, 'category', 0)} WHEN {self.constant('category')} THEN {n()} END",
            lambda: f"COALESCE({n()}, {n()})",
            lambda: f"NULLIF({n()}, {n()})",
            lambda: f"CAST({n()} AS {self.any('INTEGER', 'TINYINT', 'BIGINT', 'DOUBLE', 'DECIMAL(10, 1)', 'HUGEINT')})",
            lambda: f"CAST({self.expression(c, 'category', d)} AS {self.any('INTEGER', 'DOUBLE')})",
            lambda: f"CAST({self.expression(c, 'flag', d)} AS INTEGER)",
            lambda: f"LENGTH({self.expression(c, self.any('text', 'category'), d)})",
            lambda: f"EXTRACT({self.any(*PARTS)} FROM {self.expression(c, self.any('date', 'moment'), d)})",
            lambda: (
                f"{self.any('YEAR', 'MONTH', 'QUARTER', 'DAYOFWEEK', 'WEEK', 'DAYOFYEAR')}"
                f"({self.expression(c, 'date', d)})"
            ),
            lambda: f"{self.any('HOUR', 'MINUTE', 'SECOND')}({self.expression(c, 'moment', d)})",
            lambda: (
                f"DATE_DIFF('{self.any(*UNITS)}', {self.expression(c, self.any('date', 'moment'), d)}, "
                f"{self.expression(c, self.any('date', 'moment'), d)})"
            ),
            lambda: f"({self.expression(c, 'date', d)} - {self.expression(c, 'date', d)})",
            lambda: f"IF({self.expression(c, 'flag', d)}, {n()}, {n()})",
            lambda: f"({n()})",
            lambda: f"(CASE WHEN {self.expression(c, 'flag', d)} THEN 1 ELSE 0 END)",
        )
        return forms[k]()

    def _category(self, c: Columns, d: int) -> str:
        x = lambda: self.expression(c, "category", d)  # noqa: E731
        return self.source.choice(
            (
                lambda: f"{self.any('UPPER', 'LOWER', 'TRIM')}({x()})",
                lambda: f"SUBSTR({x()}, {self.any(1, 2, -1, 0)}, {self.any(0, 1, 2)})",
                lambda: f"{self.any('LEFT', 'RIGHT')}({x()}, {self.any(1, 2)})",
                lambda: f"({x()} || {x()})",
                lambda: f"CONCAT({x()}, '-', {x()})",
                lambda: f"CASE WHEN {self.expression(c, 'flag', d)} THEN {x()} ELSE {x()} END",
                lambda: f"COALESCE({x()}, {x()})",
                lambda: f"NULLIF({x()}, {self.constant('category')})",
                lambda: f"CAST({self.expression(c, self.any('flag', 'number'), d)} AS VARCHAR)",
            )
        )()

    def _text(self, c: Columns, d: int) -> str:
        x = lambda: self.expression(c, "text", d)  # noqa: E731
        return self.source.choice(
            (
                lambda: f"{self.any('UPPER', 'LOWER', 'TRIM', 'LTRIM')}({x()})",
                lambda: f"SUBSTR({x()}, {self.any(1, 2, -2)}{self.any('', ', 1', ', 3')})",
                lambda: f"{self.any('LEFT', 'RIGHT')}({x()}, {self.any(1, 2)})",
                lambda: f"({x()} || {self.expression(c, 'category', d)})",
                lambda: f"CASE WHEN {self.expression(c, 'flag', d)} THEN {x()} ELSE {x()} END",
                lambda: f"COALESCE({x()}, {x()})",
                lambda: f"CAST({self.expression(c, 'date', d)} AS VARCHAR)",
            )
        )()

    def _flag(self, c: Columns, d: int) -> str:
        kind = self.any(*KINDS)
        x = lambda: self.expression(c, kind, d)  # noqa: E731
        f = lambda: self.expression(c, "flag", d)  # noqa: E731
        return self.source.choice(
            (
                lambda: f"({x()} {self.any('=', '<>', '<', '<=', '>', '>=')} {x()})",
                lambda: f"({x()} {self.any('=', '<>', '<', '>=')} {self.constant(kind)})",
                lambda: f"({x()} BETWEEN {self.constant(kind)} AND {self.constant(kind)})",
                lambda: f"({x()} {self.any('', 'NOT ')}IN ({self.constant(kind)}, {self.constant(kind)}))",
                lambda: f"({x()} IS {self.any('', 'NOT ')}NULL)",
                lambda: f"({x()} IS {self.any('', 'NOT ')}DISTINCT FROM {x()})",
                lambda: f"({f()} {self.any('AND', 'OR')} {f()})",
                lambda: f"(NOT {f()})",
                lambda: f"({f()} IS {self.any('TRUE', 'FALSE', 'NOT TRUE')})",
                lambda: f"({self.expression(c, 'text', d)} {self.any('LIKE', 'ILIKE')} {self.any(*PATTERNS)})",
                lambda: f"STARTS_WITH({self.expression(c, 'text', d)}, 'a')",
                lambda: f"({self.column(c, 'owner') or self.column(c, 'id') or '1'} = {self.any(1, 50, 0)})",
            )
        )()

    def _date(self, c: Columns, d: int) -> str:
        x = lambda: self.expression(c, "date", d)  # noqa: E731
        return self.source.choice(
            (
                lambda: f"DATE_TRUNC('{self.any('day', 'week', 'month', 'quarter', 'year')}', {x()})",
                lambda: f"DATE_TRUNC('{self.any('day', 'week', 'month')}', {self.expression(c, 'moment', d)})",
                lambda: f"({x()} {self.any('+', '-')} {self.any(1, 7, 40)})",
                lambda: f"({x()} {self.any('+', '-')} INTERVAL {self.any(1, 3)} {self.any('DAY', 'WEEK')})",
                lambda: f"CAST({self.expression(c, 'moment', d)} AS DATE)",
                lambda: f"COALESCE({x()}, {x()})",
                lambda: f"CASE WHEN {self.expression(c, 'flag', d)} THEN {x()} ELSE {x()} END",
                lambda: f"{self.any('LEAST', 'GREATEST')}({x()}, {x()})",
            )
        )()

    def _moment(self, c: Columns, d: int) -> str:
        x = lambda: self.expression(c, "moment", d)  # noqa: E731
        return self.source.choice(
            (
                lambda: f"DATE_TRUNC('{self.any('hour', 'minute', 'second')}', {x()})",
                lambda: f"CAST({self.expression(c, 'date', d)} AS TIMESTAMP)",
                lambda: f"COALESCE({x()}, {x()})",
                lambda: f"CASE WHEN {self.expression(c, 'flag', d)} THEN {x()} ELSE {x()} END",
            )
        )()

    # --- relations ----------------------------------------------------------------------------------------------------

    def scan(self, names: tuple[str, ...] = PRIVATE) -> tuple[str, Columns]:
        name, alias = self.any(*names), self.alias()
        return f"{name} AS {alias}", {f"{alias}.{column}": kind for column, kind in self.tables[name].items()}

    def relation(self, depth: int) -> tuple[str, Columns]:
        """What may stand behind FROM, and the columns it has."""
        if depth == 0 or self.maybe(0.25):
            return self.scan()
        return self.source.choice(
            (
                *(self.joined, self.joined, self.with_public, self.with_public, self.derived, self.derived),
                *(self.per_person, self.windowed, self.stacked, self.distinct, self.linked, self.three),
            )
        )(depth - 1)

    def joined(self, depth: int) -> tuple[str, Columns]:
        left, ours = self.relation(depth)
        right, theirs = self.relation(depth)
        a, b = self.column(ours, "owner"), self.column(theirs, "owner")
        if a is None or b is None:
            return left, ours
        word = self.any("JOIN", "LEFT JOIN", "JOIN", "RIGHT JOIN", "INNER JOIN")
        extra = f" AND {self.expression(ours | theirs, 'flag', 1)}" if self.maybe(0.35) else ""
        columns = theirs | ours if word == "RIGHT JOIN" else ours | theirs
        if "LEFT" in word or "RIGHT" in word:
            lost = ours if "RIGHT" in word else theirs
            columns = {name: "id" if kind == "owner" and name in lost else kind for name, kind in columns.items()}
        return f"{left} {word} {right} ON {a} = {b}{extra}", columns

    def three(self, depth: int) -> tuple[str, Columns]:
        first, ours = self.joined(0)
        return f"{first}", ours

    def linked(self, depth: int) -> tuple[str, Columns]:
        a, b = self.alias(), self.alias()
        columns = {f"{a}.{name}": kind for name, kind in self.tables["visits"].items()}
        columns |= {f"{b}.{name}": kind for name, kind in self.tables["labs"].items()}
        word = self.any("JOIN", "LEFT JOIN")
        return f"visits AS {a} {word} labs AS {b} ON {a}.visit_id = {b}.visit_id", columns

    def with_public(self, depth: int) -> tuple[str, Columns]:
        left, ours = self.relation(depth)
        names = tuple(name for name in self.tables if name not in PRIVATE)
        right, theirs = self.scan(names)
        pairs = [
            (x, y) for x, k in ours.items() for y, j in theirs.items() if k == j and x.split(".")[1] == y.split(".")[1]
        ]
        word = self.any("JOIN", "LEFT JOIN", "JOIN")
        if pairs and self.maybe(0.8):
            chosen = self.source.sample(pairs, min(len(pairs), self.source.choice((1, 1, 2))))
            on = " AND ".join(f"{x} = {y}" for x, y in chosen)
        else:
            on = self.any("TRUE", self.expression(ours | theirs, "flag", 1))
        if self.maybe(0.2):
            on += f" AND {self.expression(ours | theirs, 'flag', 1)}"
        return f"{left} {word} {right} ON {on}", ours | theirs

    def derived(self, depth: int) -> tuple[str, Columns]:
        inner, columns = self.relation(depth)
        return self._select(inner, columns, "")

    def distinct(self, depth: int) -> tuple[str, Columns]:
        inner, columns = self.relation(depth)
        return self._select(inner, columns, "DISTINCT ")

    def _select(self, inner: str, columns: Columns, word: str) -> tuple[str, Columns]:
        alias, items, result = self.alias(), [], dict[str, str]()
        owner = self.column(columns, "owner")
        if owner is not None:
            items.append(f"{owner} AS o")
            result[f"{alias}.o"] = "owner"
        for index in range(self.source.choice((1, 2, 3))):
            kind = self.any(*KINDS)
            items.append(f"{self.expression(columns, kind)} AS x{index}")
            result[f"{alias}.x{index}"] = kind
        where = f" WHERE {self.condition(columns)}" if self.maybe(0.4) else ""
        return f"(SELECT {word}{', '.join(items)} FROM {inner}{where}) AS {alias}", result

    def per_person(self, depth: int) -> tuple[str, Columns]:
        inner, columns = self.relation(depth)
        owner = self.column(columns, "owner")
        if owner is None:
            return inner, columns
        alias, items, result = self.alias(), [f"{owner} AS o"], dict[str, str]()
        result[f"{alias}.o"], group = "owner", [owner]
        if self.maybe(0.4):
            kind = self.any("category", "number", "date", "flag")
            key = self.expression(columns, kind, 1)
            items.append(f"{key} AS g")
            group.append(key)
            result[f"{alias}.g"] = kind
        for index in range(self.source.choice((1, 2))):
            value, other = self.expression(columns, "number", 1), self.expression(columns, "date", 1)
            form, kind = self.source.choice(
                (
                    ("COUNT(*)", "number"),
                    (f"COUNT({value})", "number"),
                    (f"COUNT(DISTINCT {value})", "number"),
                    (f"SUM({value})", "number"),
                    (f"AVG({value})", "number"),
                    (f"{self.any('MIN', 'MAX')}({value})", "number"),
                    (f"{self.any('MIN', 'MAX')}({other})", "date"),
                    (f"BOOL_OR({self.expression(columns, 'flag', 1)})", "flag"),
                    (f"ARG_MAX({value}, {other})", "number"),
                    (f"ARG_MIN({self.expression(columns, 'category', 1)}, {value})", "category"),
                    (f"COUNT_IF({self.expression(columns, 'flag', 1)})", "number"),
                )
            )
            if self.maybe(0.25):
                form += f" FILTER (WHERE {self.expression(columns, 'flag', 1)})"
            items.append(f"{form} AS y{index}")
            result[f"{alias}.y{index}"] = kind
        having = f" HAVING {self.any('COUNT(*) > 1', 'SUM(1) = 2', 'COUNT(*) < 3')}" if self.maybe(0.2) else ""
        where = f" WHERE {self.condition(columns)}" if self.maybe(0.2) else ""
        return f"(SELECT {', '.join(items)} FROM {inner}{where} GROUP BY {', '.join(group)}{having}) AS {alias}", result

    def windowed(self, depth: int) -> tuple[str, Columns]:
        inner, columns = self.relation(depth)
        owner = self.column(columns, "owner")
        if owner is None:
            return inner, columns
        alias, value = self.alias(), self.expression(columns, "number", 1)
        part = owner if self.maybe(0.8) else f"{owner}, {self.expression(columns, 'category', 0)}"
        order = f"ORDER BY {self.expression(columns, self.any('number', 'date'), 1)}{self.any('', ' DESC')}"
        window = self.any(
            f"ROW_NUMBER() OVER (PARTITION BY {part} {order})",
            f"ROW_NUMBER() OVER (PARTITION BY {part})",
            f"{self.any('RANK', 'DENSE_RANK')}() OVER (PARTITION BY {part} {order})",
            f"{self.any('LAG', 'LEAD')}({value}{self.any('', ', 2')}) OVER (PARTITION BY {part} {order})",
            f"{self.any('COUNT', 'SUM', 'MIN', 'MAX')}({value}) OVER (PARTITION BY {part})",
        )
        kept = self.expression(columns, "category", 1)
        result = {f"{alias}.o": "owner", f"{alias}.w": "number", f"{alias}.x": "category", f"{alias}.v": "number"}
        qualify = f" QUALIFY {window} {self.any('= 1', '<= 2', '< 3', '> 1')}" if self.maybe(0.25) else ""
        inside = f"SELECT {owner} AS o, {window} AS w, {kept} AS x, {value} AS v FROM {inner}{qualify}"
        if self.maybe(0.5):
            return f"({inside}) AS {alias}", result
        rank = self.alias()
        bound = self.any("= 1", "<= 2", "< 3", "= 2", "<= 0", ">= 1")
        return f"(SELECT o, w, x, v FROM ({inside}) AS {rank} WHERE {rank}.w {bound}) AS {alias}", result

    def stacked(self, depth: int) -> tuple[str, Columns]:
        sides, alias = [], self.alias()
        kinds = [self.any(*KINDS) for _ in range(2)]
        for _ in range(2):
            inner, columns = self.relation(depth)
            owner = self.column(columns, "owner")
            if owner is None:
                inner, columns = self.scan(("people", "visits"))
                owner = self.column(columns, "owner")
            items = [f"{owner} AS o", *(f"{self.expression(columns, kind)} AS x{i}" for i, kind in enumerate(kinds))]
            sides.append(f"SELECT {', '.join(items)} FROM {inner}")
        result = {f"{alias}.o": "owner", **{f"{alias}.x{index}": kind for index, kind in enumerate(kinds)}}
        return f"({sides[0]} UNION ALL {sides[1]}) AS {alias}", result

    def condition(self, columns: Columns) -> str:
        plain = self.expression(columns, "flag")
        owner = self.column(columns, "owner")
        if owner is None or self.maybe(0.6):
            return plain
        inner, theirs = self.scan(("people", "visits"))
        other = self.column(theirs, "owner")
        both = columns | theirs
        return self.any(
            f"{owner} {self.any('', 'NOT ')}IN (SELECT {other} FROM {inner} WHERE {self.expression(theirs, 'flag')})",
            f"{self.any('', 'NOT ')}EXISTS (SELECT 1 FROM {inner} WHERE {other} = {owner} AND "
            f"{self.expression(both, 'flag', 1)})",
            f"{self.expression(columns, 'category', 0)} IN (SELECT {self.any('state', 'region')} FROM states)",
            f"{plain} AND {self.expression(columns, 'flag', 1)}",
        )

    # --- questions ----------------------------------------------------------------------------------------------------

    def aggregate(self, columns: Columns) -> str:
        value = self.expression(columns, "number")
        owner = self.column(columns, "owner") or "1"
        form = self.any(
            "COUNT(*)",
            f"COUNT({self.expression(columns, self.any(*KINDS), 1)})",
            f"COUNT(DISTINCT {owner})",
            f"COUNT(DISTINCT {owner})",
            f"COUNT(DISTINCT {self.expression(columns, self.any(*KINDS), 1)})",
            f"SUM({value})",
            f"SUM({value})",
            f"AVG({value})",
            f"{self.any('VARIANCE', 'STDDEV', 'VAR_POP')}({value})",
            f"{self.any('MIN', 'MAX', 'MEDIAN')}({self.expression(columns, self.any('number', 'date', 'moment'), 1)})",
            f"QUANTILE_CONT({value}, {self.any(0.5, '[0.1, 0.9]', 0, '[0.25, 0.5, 0.75]')})",
            f"MODE({self.expression(columns, 'category', 1)})",
            f"{self.any('CORR', 'COVAR_POP')}({value}, {self.expression(columns, 'number', 1)})",
            f"COUNT_IF({self.expression(columns, 'flag', 1)})",
            f"PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY {value})",
        )
        return form + (f" FILTER (WHERE {self.condition(columns)})" if self.maybe(0.15) else "")

    def question(self, depth: int) -> str:
        inner, columns = self.relation(depth)
        with_ = ""
        if self.maybe(0.15) and "(SELECT" not in inner[:1]:
            with_, inner, columns = self.named(inner, columns)
        where = f" WHERE {self.condition(columns)}" if self.maybe(0.4) else ""
        keys = [
            self.expression(columns, self.any("category", "category", "flag", "date", "number", "text", "moment"), 1)
            for _ in range(self.source.choice((0, 0, 1, 1, 2)))
        ]
        aggregates = [self.aggregate(columns) for _ in range(self.source.choice((1, 1, 1, 2, 3)))]
        group = f" GROUP BY {self.grouping(keys)}" if keys else ""
        items = [f"{key} AS k{i}" for i, key in enumerate(keys)] + [
            f"{each} AS a{i}" for i, each in enumerate(aggregates)
        ]
        tail = self.any("", "", "", " HAVING COUNT(*) > 3", " ORDER BY a0 DESC LIMIT 2", " ORDER BY 1")
        return f"{with_}SELECT {', '.join(items)} FROM {inner}{where}{group}{tail}"

    def named(self, inner: str, columns: Columns) -> tuple[str, str, Columns]:
        """The relation under a WITH name, used twice."""
        owner = self.column(columns, "owner")
        if owner is None:
            return "", inner, columns
        kinds = {"o": "owner", "x": self.any(*KINDS), "y": "number"}
        items = (
            f"{owner} AS o, {self.expression(columns, kinds['x'])} AS x, {self.expression(columns, 'number', 1)} AS y"
        )
        a, b = self.alias(), self.alias()
        both = {f"{alias}.{name}": kind for alias in (a, b) for name, kind in kinds.items()}
        word = self.any("JOIN", "LEFT JOIN")
        if word == "LEFT JOIN":
            both[f"{b}.o"] = "id"
        return f"WITH c AS (SELECT {items} FROM {inner}) ", f"c AS {a} {word} c AS {b} ON {a}.o = {b}.o", both

    def grouping(self, keys: list[str]) -> str:
        listed = ", ".join(keys)
        positions = ", ".join(str(i + 1) for i in range(len(keys)))
        aliases = ", ".join(f"k{i}" for i in range(len(keys)))
        return self.any(
            listed,
            listed,
            positions,
            aliases,
            f"ROLLUP ({listed})",
            f"CUBE ({listed})",
            f"GROUPING SETS (({keys[0]}), ())",
        )

    def statement(self) -> tuple[str, str]:
        """A statement, and its class."""
        self.aliases = 0
        kind = self.source.choices(("question", "above", "hostile", "mutated"), (55, 10, 10, 25))[0]
        match kind:
            case "above":
                inner = self.question(1)
                return "above noise", self.any(
                    f"SELECT COUNT(*) FROM ({inner}) AS q",
                    f"SELECT SUM(a0) FROM ({inner}) AS q WHERE a0 > 0",
                    f"SELECT *, RANK() OVER (ORDER BY a0) FROM ({inner}) AS q",
                    f"{self.question(1)} UNION ALL {inner}",
                    "SELECT (SELECT COUNT(*) FROM people) + COUNT(*) FROM visits WHERE cost > 2",
                )
            case "hostile":
                return "hostile", self.hostile()
            case "mutated":
                return "mutated", self.mutated(self.question(self.source.choice((0, 1, 2))))
        return "question", self.question(self.source.choice((0, 1, 1, 2, 2, 3)))

    def hostile(self) -> str:
        inner, columns = self.relation(1)
        owner = self.column(columns, "owner") or "person_id"
        value, flag = self.expression(columns, "number"), self.expression(columns, "flag")
        return self.any(
            f"SELECT * FROM {inner}",
            f"SELECT DISTINCT {self.expression(columns, 'text')} FROM {inner}",
            f"SELECT {value} FROM {inner} LIMIT 1",
            f"SELECT COUNT(*) FROM (SELECT * FROM {inner} ORDER BY {value} LIMIT 1) AS t",
            f"SELECT SUM({value}) FROM {inner} WHERE {value} > (SELECT AVG({value}) FROM {inner})",
            f"SELECT COUNT(*) FROM {inner} WHERE EXISTS (SELECT 1 FROM people WHERE age > 5)",
            "SELECT COUNT(*) FROM states LEFT JOIN people ON states.state = people.zip",
            f"SELECT COUNT(*) FROM {inner} WHERE {value} NOT IN (SELECT cost FROM visits)",
            f"SELECT SUM(n) FROM (SELECT RANK() OVER (PARTITION BY NULLIF({owner}, {owner}) ORDER BY 1) AS n"
            f" FROM {inner}) AS t",
            f"SELECT SUM(n) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY {value}) AS n FROM {inner}) AS t",
            f"SELECT COUNT(*) FROM {inner}, {self.scan()[0]}",
            f"SELECT COUNT(*) FROM {inner} JOIN visits AS z ON z.cost = {value}",
            f"SELECT {owner}, COUNT(*) FROM {inner} GROUP BY {owner}",
            f"SELECT COUNT(*) OVER (), COUNT(*) FROM {inner}",
            f"SELECT SUM({value}) FROM {inner} WHERE random() < 0.5",
            f"SELECT COUNT(*) FROM {inner} TABLESAMPLE 10%",
            f"SELECT COUNT(*) FROM {inner} WHERE {flag} UNION SELECT COUNT(*) FROM {inner}",
            f"SELECT SUM(error('x')) FROM {inner}",
            f"SELECT MAX({owner}) FROM {inner}",
            f"SELECT STRING_AGG({self.expression(columns, 'text')}, ',') FROM {inner}",
            f"SELECT SUM(CASE WHEN {flag} THEN 1000000 ELSE 0 END) FROM {inner}",
            f"SELECT COUNT(*) FILTER (WHERE {flag}) / COUNT(*) FROM {inner}",
            f"SELECT COUNT(*) FROM {inner} WHERE COALESCE({owner}, 1) = 1",
            f"SELECT COUNT(*) FROM (SELECT {owner} AS p FROM {inner}) AS t JOIN people ON t.p = people.person_id",
            f"SELECT k, COUNT(*) FROM (SELECT CAST({owner} AS VARCHAR) AS k FROM {inner}) AS t GROUP BY k",
            f"SELECT ANY_VALUE({value}), FIRST({value}) FROM {inner}",
            "SELECT COUNT(*) FROM read_csv('/etc/passwd')",
            f"SELECT COUNT(*) FROM {inner} CROSS JOIN LATERAL (SELECT {value} AS v) AS l",
            f"SELECT COUNT(*) FROM {inner} WHERE {flag} GROUP BY ALL",
            f"WITH RECURSIVE c AS (SELECT {owner} AS o FROM {inner}) SELECT COUNT(*) FROM c",
            f"SELECT SUM(DISTINCT {value}) FROM {inner}",
            f"SELECT COUNT(DISTINCT {owner}) FROM {inner} WHERE {owner} = {owner} + 0",
            f"SELECT AVG({value}) FILTER (WHERE {owner} IN (SELECT person_id FROM visits LIMIT 1)) FROM {inner}",
        )

    def mutated(self, text: str) -> str:
        """A statement with a few of its words swapped, dropped, doubled or put in place of others."""
        words = re.findall(r"'[^']*'|\w+(?:\.\w+)*|[^\s\w]", text)
        for _ in range(self.source.choice((1, 1, 2, 3))):
            i, j = self.source.randrange(len(words)), self.source.randrange(len(words))
            match self.source.randrange(5):
                case 0:
                    words[i], words[j] = words[j], words[i]
                case 1:
                    words[i] = words[j]
                case 2:
                    words.insert(i, words[j])
                case 3:
                    del words[i]
                    words = words or ["SELECT"]
                case 4:
                    words[i] = self.any(*WORDS)
        return " ".join(words)


PARTS = ("YEAR", "MONTH", "DAY", "QUARTER", "WEEK", "DOW", "ISODOW", "DOY", "HOUR", "MINUTE", "SECOND", "EPOCH")
UNITS = ("day", "week", "month", "quarter", "year", "hour", "minute", "second")
PATTERNS = ("'a%'", "'%a%'", "'_'", "''", "'%%'", "'K_r%s'", "'\\\\%'")
WORDS = (
    *(
        "NULL",
        "0",
        "1",
        "-1",
        "*",
        "(",
        ")",
        ",",
        "NOT",
        "DISTINCT",
        "ALL",
        "person_id",
        "age",
        "income",
        "day",
        "seen",
    ),
    *("LEFT", "FULL", "CROSS", "UNION", "EXCEPT", "OVER", "FILTER", "WHERE", "LIMIT", "OFFSET", "QUALIFY", "HAVING"),
    *("ORDER", "BY", "GROUP", "COUNT", "SUM", "MAX", "MODE", "NULLIF", "COALESCE", "LEAST", "CAST", "TRUE", "AS", "IN"),
    *("EXISTS", "visits", "people", "labs", "states", "'a'", "1e30", "0.1", "::", "||", "/", "%", "[", "]", "LATERAL"),
    *("PIVOT", "USING", "NATURAL", "SEMI", "ANTI", "ASOF", "POSITIONAL", "WINDOW", "TABLESAMPLE", "EXCLUDE", "REPLACE"),
)
