"""What may stand behind FROM: tables, joins, subqueries, what is computed per person; and
conditions on it.
"""

from __future__ import annotations

from .draw import Draw, lines
from .expressions import Expressions
from .schemas import KINDS, PRIVATE, TABLES, Columns

PER_PERSON = {
    "number": lines("""
        COUNT(*)
        COUNT({x})
        COUNT(DISTINCT {x})
        {SUM|AVG|MIN|MAX}({number})
        {ARG_MAX|ARG_MIN}({number}, {time})
        COUNT_IF({flag})
        """),
    "date": lines("{MIN|MAX}({date})"),
    "moment": lines("{MIN|MAX}({moment})"),
    "flag": lines("{BOOL_OR|BOOL_AND}({flag})"),
    "category": lines("{ARG_MAX|ARG_MIN}({category}, {number})"),
    "text": lines("{ARG_MAX|ARG_MIN}({text}, {date})"),
}
WINDOWS = lines("""
    ROW_NUMBER() OVER (PARTITION BY {by} {order})
    ROW_NUMBER() OVER (PARTITION BY {by})
    {RANK|DENSE_RANK}() OVER (PARTITION BY {by} {order})
    {LAG|LEAD}({number}{|, 2|, 1, 7|, 1, NULL}) OVER (PARTITION BY {by} {order})
    {FIRST_VALUE|LAST_VALUE}({number}) OVER (PARTITION BY {by} {order})
    LAST_VALUE({number}) OVER (PARTITION BY {by} {order} ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)
    NTILE({2|3|0|1000}) OVER (PARTITION BY {by} {order})
    {COUNT|SUM|AVG|MIN|MAX}({number}) OVER (PARTITION BY {by})
    {COUNT|SUM|AVG|MIN|MAX}({number}) OVER (PARTITION BY {by} {order})
    {SUM|AVG|MAX}({number}) OVER (PARTITION BY {by} {order} ROWS BETWEEN {2|1} PRECEDING AND {1 PRECEDING|CURRENT ROW})
    {COUNT|SUM|AVG}({number}) OVER (PARTITION BY {by} {order} {ROWS|RANGE} {1|UNBOUNDED} PRECEDING)
    {COUNT(*)|SUM({number})|MAX({number})} FILTER (WHERE {flag}) OVER (PARTITION BY {by})
    """)
# What a table that is written out may hold: numbers and moments of every type, each with what is
# hard about it.
NUMBERS = (
    *[("1", "2", "-3", "NULL")] * 4,
    ("5e-7", "-0.5e0", "1e300"),
    ("CAST('0.0000001' AS DECIMAL(38, 30))", "CAST(3 AS DECIMAL(38, 30))"),
    ("CAST('0.125' AS DECIMAL(9, 9))", "NULL"),
    ("CAST(18446744073709551615 AS UBIGINT)", "CAST(1 AS UBIGINT)"),
    ("CAST('170141183460469231731687303715884105727' AS HUGEINT)", "CAST(-1 AS HUGEINT)"),
)
MOMENTS = (
    ("TIMESTAMP '2024-01-01 12:00:00'", "NULL"),
    ("CAST('2024-03-10 02:30:00' AS TIMESTAMPTZ)", "CAST('2024-11-03 05:30:00+00' AS TIMESTAMPTZ)"),
    ("CAST('2024-01-01 00:00:00.000000001' AS TIMESTAMP_NS)", "CAST('2024-01-01' AS TIMESTAMP_NS)"),
    ("TIMESTAMP '9999-12-31 23:59:59.999999'", "TIMESTAMP '0001-01-01 00:00:00'"),
)
CONDITIONS = lines("""
    {owner} {IN|NOT IN} (SELECT {other} FROM {inner} WHERE {theirs})
    {EXISTS|NOT EXISTS} (SELECT 1 FROM {inner} WHERE {other} = {owner} AND {both})
    NOT ({owner} {IN|NOT IN} (SELECT {other} FROM {inner})) {AND|OR} {flag}
    {flag} {AND|OR} {owner} IN (SELECT {other} FROM {inner} WHERE {theirs})
    {EXISTS|NOT EXISTS} (SELECT 1 FROM {inner} JOIN visits AS z ON {other} = z.person_id WHERE {other} = {owner})
    """)


class Relations:
    """Draws relations over one schema, each with the columns it has."""

    def __init__(self, schema: str, draw: Draw) -> None:
        self.tables, self.draw, self.of = TABLES[schema], draw, Expressions(draw)

    def scan(self, names: tuple[str, ...] = PRIVATE) -> tuple[str, Columns]:
        name, alias = self.draw.any(*names), self.draw.alias()
        return f"{name} AS {alias}", {
            f"{alias}.{column}": kind for column, kind in self.tables[name].items()
        }

    def relation(self, depth: int) -> tuple[str, Columns]:
        if depth <= 0 or self.draw.maybe(0.25):
            return self.scan()
        form = self.draw.any(
            *(
                self.joined,
                self.joined,
                self.with_public,
                self.with_public,
                self.derived,
                self.derived,
            ),
            *(
                self.per_person,
                self.per_person,
                self.windowed,
                self.stacked,
                self.linked,
                self.listed,
                self.without,
            ),
            *(
                (self.multiplied, self.piled)
                if self.draw.maybe(0.4)
                else (self.scan_again, self.derived)
            ),
        )
        return form(depth - 1)

    def owned(self, depth: int) -> tuple[str, Columns, str]:
        """A relation whose owner can be named, and that name."""
        inner, columns = self.relation(depth)
        owner = self.of.column(columns, "owner")
        if owner is None:
            inner, columns = self.scan(("people", "visits"))
            owner = next(iter(columns))
        return inner, columns, owner

    def joined(self, depth: int) -> tuple[str, Columns]:
        left, ours, a = self.owned(depth)
        right, theirs, b = self.owned(depth)
        if " JOIN " in right and not right.startswith("("):
            right, theirs, b = self.owned(0)
        both = ours | theirs
        word = self.draw.any(
            "JOIN", "JOIN", "INNER JOIN", "LEFT JOIN", "RIGHT JOIN", "SEMI JOIN", "ANTI JOIN"
        )
        extra = f" AND {self.of.expression(both, 'flag', 1)}" if self.draw.maybe(0.35) else ""
        lost = {"LEFT JOIN": theirs, "RIGHT JOIN": ours}.get(word, {})
        columns = {
            name: "id" if kind == "owner" and name in lost else kind for name, kind in both.items()
        }
        if word in ("SEMI JOIN", "ANTI JOIN"):
            columns = dict(ours)
        if not extra and a.split(".")[1] == b.split(".")[1] and self.draw.maybe(0.2):
            return f"{left} {word} {right} USING ({a.split('.')[1]})", columns
        return f"{left} {word} {right} ON {a} = {b}{extra}", columns

    def without(self, depth: int) -> tuple[str, Columns]:
        """The rows of one side of an outer join that meet none of the other."""
        left, ours, a = self.owned(depth)
        right, theirs, b = self.owned(0)
        word = self.draw.any("LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
        kept, lost, owner = (theirs, ours, a) if word == "RIGHT JOIN" else (ours, theirs, b)
        both, alias = ours | theirs, self.draw.alias()
        extra = f" AND {self.of.expression(both, 'flag', 1)}" if self.draw.maybe(0.3) else ""
        empty = self.draw.any(owner, owner, self.draw.any(*lost))
        kinds = {f"x{place}": self.of.kind(kept) for place in range(2)}
        items = [f"{self.of.column(kept, 'owner')} AS o"]
        items += [f"{self.of.expression(kept, kind, 1)} AS {x}" for x, kind in kinds.items()]
        text = f"SELECT {', '.join(items)} FROM {left} {word} {right} ON {a} = {b}{extra} WHERE {empty} IS NULL"
        columns = {f"{alias}.{name}": kind for name, kind in {"o": "owner", **kinds}.items()}
        return f"({text}) AS {alias}", columns

    def linked(self, depth: int) -> tuple[str, Columns]:
        """Through the key that leads to an owner."""
        a, b = self.draw.alias(), self.draw.alias()
        columns = {f"{a}.{name}": kind for name, kind in self.tables["visits"].items()}
        columns |= {f"{b}.{name}": kind for name, kind in self.tables["labs"].items()}
        word = self.draw.any("JOIN", "LEFT JOIN")
        return f"visits AS {a} {word} labs AS {b} ON {a}.visit_id = {b}.visit_id", columns

    def with_public(self, depth: int) -> tuple[str, Columns]:
        left, ours = self.relation(depth)
        right, theirs = self.scan(tuple(name for name in self.tables if name not in PRIVATE))
        both = ours | theirs
        pairs = [
            (x, y)
            for x in ours
            for y in theirs
            if both[x] == both[y] and x.split(".")[1] == y.split(".")[1]
        ]
        if pairs and self.draw.maybe(0.8):
            chosen = self.draw.source.sample(pairs, min(len(pairs), self.draw.any(1, 1, 2)))
            on = " AND ".join(f"{x} = {y}" for x, y in chosen)
        else:
            on = self.draw.any("TRUE", self.of.expression(both, "flag", 1))
        if self.draw.maybe(0.2):
            on += f" AND {self.of.expression(both, 'flag', 1)}"
        return f"{left} {self.draw.any('JOIN', 'LEFT JOIN', 'JOIN')} {right} ON {on}", both

    def listed(self, depth: int) -> tuple[str, Columns]:
        """Beside a table that is written out."""
        left, ours = self.relation(depth)
        alias = self.draw.alias()
        # also what the engine's SQL uses
        v, w = self.draw.any(("v", "w"), ("k0", "u0"), ("s0", "k1"), ("c0", "c1"))
        columns = ours | {f"{alias}.{v}": "number", f"{alias}.{w}": "category"}
        kinds, names = [self.draw.any(*NUMBERS), ("'a'", "'b'")], [v, w]
        if self.draw.maybe(0.3):
            columns[f"{alias}.z"] = "moment"
            kinds, names = [*kinds, self.draw.any(*MOMENTS)], [*names, "z"]
        rows = ", ".join(f"({', '.join(self.draw.any(*kind) for kind in kinds)})" for _ in range(2))
        on = self.draw.any("TRUE", self.of.expression(columns, "flag", 1), f"{alias}.{v} = 1")
        return (
            f"{left} {self.draw.any('JOIN', 'LEFT JOIN')} (VALUES {rows}) AS {alias}({', '.join(names)}) ON {on}",
            columns,
        )

    def derived(self, depth: int) -> tuple[str, Columns]:
        inner, columns = self.relation(depth)
        alias, owner = self.draw.alias(), self.of.column(columns, "owner")
        stem = self.draw.any("x", "x", "k", "u")  # also what the engine's SQL calls its keys
        kinds = {f"{stem}{index}": self.of.kind(columns) for index in range(self.draw.any(1, 2, 3))}
        items = [f"{self.of.expression(columns, kind)} AS {name}" for name, kind in kinds.items()]
        if owner is not None:
            items, kinds = [f"{owner} AS o", *items], {"o": "owner", **kinds}
        select = self.draw.any("SELECT", "SELECT", "SELECT DISTINCT")
        text = f"({select} {', '.join(items)} FROM {inner}{self.where(columns)}) AS {alias}"
        return text, {f"{alias}.{name}": kind for name, kind in kinds.items()}

    def per_person(self, depth: int) -> tuple[str, Columns]:
        inner, columns, owner = self.owned(depth)
        alias, items, kinds, group = self.draw.alias(), [f"{owner} AS o"], {"o": "owner"}, [owner]
        if self.draw.maybe(0.4):
            kinds["g"] = self.of.kind(columns, "category", "number", "date", "flag", "text")
            group.append(self.of.expression(columns, kinds["g"], 1))
            items.append(f"{group[1]} AS g")
        for index in range(self.draw.any(1, 2)):
            kind = kinds[f"y{index}"] = self.draw.any("number", "number", "number", *PER_PERSON)
            form = self.of.filled(self.draw.any(*PER_PERSON[kind]), columns, 1)
            kept = (
                f" FILTER (WHERE {self.of.expression(columns, 'flag', 1)})"
                if self.draw.maybe(0.25)
                else ""
            )
            items.append(f"{form}{kept} AS y{index}")
        having = self.draw.any(
            *[""] * 8, " HAVING COUNT(*) > 1", " HAVING SUM(1) = 2", " HAVING COUNT(*) < 3"
        )
        keys = ", ".join(group)
        text = f"(SELECT {', '.join(items)} FROM {inner}{self.where(columns)} GROUP BY {keys}{having}) AS {alias}"
        return text, {f"{alias}.{name}": kind for name, kind in kinds.items()}

    def windowed(self, depth: int) -> tuple[str, Columns]:
        inner, columns, owner = self.owned(depth)
        alias, rank, value = (
            self.draw.alias(),
            self.draw.alias(),
            self.of.expression(columns, "number", 1),
        )
        by = (
            owner
            if self.draw.maybe(0.8)
            else f"{owner}, {self.of.expression(columns, 'category', 0)}"
        )
        order = self.of.filled(
            "ORDER BY {number}{| DESC}" if self.draw.maybe(0.5) else "ORDER BY {time}", columns, 1
        )
        window = self.of.filled(self.draw.any(*WINDOWS), columns, 1, by=by, order=order)
        kept = self.of.expression(columns, "category", 1)
        qualify = (
            f" QUALIFY {window} {self.draw.any('= 1', '<= 2', '< 3', '> 1')}"
            if self.draw.maybe(0.25)
            else ""
        )
        inside = (
            f"SELECT {owner} AS o, {window} AS w, {kept} AS x, {value} AS v FROM {inner}{qualify}"
        )
        if self.draw.maybe(0.5):
            bound = self.draw.any("= 1", "<= 2", "< 3", "= 2", "<= 0", ">= 1")
            inside = f"SELECT o, w, x, v FROM ({inside}) AS {rank} WHERE {rank}.w {bound}"
        kinds = {"o": "owner", "w": "number", "x": "category", "v": "number"}
        return f"({inside}) AS {alias}", {f"{alias}.{name}": kind for name, kind in kinds.items()}

    def stacked(self, depth: int) -> tuple[str, Columns]:
        alias, kinds = self.draw.alias(), {"x0": self.draw.any(*KINDS), "x1": self.draw.any(*KINDS)}
        sides = []
        for _ in range(self.draw.any(2, 2, 2, 3)):
            inner, columns, owner = self.owned(depth)
            items = [
                f"{owner} AS o",
                *(f"{self.of.expression(columns, kind)} AS {x}" for x, kind in kinds.items()),
            ]
            sides.append(f"SELECT {', '.join(items)} FROM {inner}")
        columns = {f"{alias}.{name}": kind for name, kind in {"o": "owner", **kinds}.items()}
        return f"({' UNION ALL '.join(sides)}) AS {alias}", columns

    def scan_again(self, depth: int) -> tuple[str, Columns]:
        return self.scan()

    def multiplied(self, depth: int) -> tuple[str, Columns]:
        """Every row many times: beside written-out tables of up to a hundred rows each."""
        text, columns = self.relation(depth)
        for _ in range(self.draw.any(1, 1, 2, 3)):
            alias = self.draw.alias()
            size = self.draw.any(2, 7, 30, 100)
            rows = ", ".join(f"({place})" for place in range(size))
            listed = self.draw.any(
                f"(VALUES {rows})", f"UNNEST(RANGE(0, {size}))", f"UNNEST([{rows}])"
            )
            text = f"{text} {self.draw.any('JOIN', 'LEFT JOIN')} {listed} AS {alias}(v) ON TRUE"
            columns = columns | {f"{alias}.v": "number"}
        return text, columns

    def piled(self, depth: int) -> tuple[str, Columns]:
        """One SELECT many times over, by UNION ALL, and that again."""
        inner, columns, owner = self.owned(min(depth, 1))
        kind, alias = self.draw.any("number", "number", "text", "category"), self.draw.alias()
        once = f"SELECT {owner} AS o, {self.of.expression(columns, kind)} AS x FROM {inner}"
        text = " UNION ALL ".join([once] * self.draw.any(2, 5, 20, 60))
        for _ in range(self.draw.any(0, 0, 1, 2)):
            again = self.draw.alias()
            part = f"SELECT o, x FROM ({text}) AS {again}"
            text = " UNION ALL ".join([part] * self.draw.any(2, 3, 10))
            if len(text) > 40_000:
                break
        return f"({text}) AS {alias}", {f"{alias}.o": "owner", f"{alias}.x": kind}

    def where(self, columns: Columns) -> str:
        return f" WHERE {self.condition(columns)}" if self.draw.maybe(0.35) else ""

    def condition(self, columns: Columns) -> str:
        owner = self.of.column(columns, "owner")
        if owner is None or self.draw.maybe(0.6):
            return self.of.expression(columns, "flag")
        inner, theirs, other = self.owned(0)
        their, both = (
            self.of.expression(theirs, "flag"),
            self.of.expression(columns | theirs, "flag", 1),
        )
        form = self.draw.any(*CONDITIONS)
        return self.of.filled(
            form, columns, 1, owner=owner, inner=inner, other=other, theirs=their, both=both
        )
