"""Statements that add up over an ordered key after noise, and columns that exclude each other:
what is measured in other ways than number by number.
"""

from __future__ import annotations

from collections.abc import Callable

from .draw import Draw, lines
from .expressions import CONSTANTS, Expressions
from .relations import Relations
from .schemas import KINDS, Columns

ADDED = lines("""
    COUNT(*)
    COUNT(*)
    COUNT({x})
    COUNT(DISTINCT {owner})
    COUNT(DISTINCT {x})
    SUM({number})
    SUM({number})
    SUM(-{number})
    COUNT(*) FILTER (WHERE {flag})
    SUM({number}) FILTER (WHERE {flag})
    SUM(CASE WHEN {flag} THEN {number} ELSE 0 END)
    COUNT_IF({flag})
    AVG({number})
    """)
FRAMES = lines("""
    {along}
    {along}
    {along}
    {along}
    {along} ROWS UNBOUNDED PRECEDING
    {along} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    {along} RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    {along} {DESC|NULLS FIRST|NULLS LAST|ASC}
    {along} ROWS BETWEEN {1|2} PRECEDING AND CURRENT ROW
    {along} ROWS BETWEEN UNBOUNDED PRECEDING AND {1|UNBOUNDED} FOLLOWING
    """)
# over n of a table t of one row for each group, whose keys are k0, k1
USED = lines("""
    {total} AS a0
    {total} AS a0
    {total} AS a0, n AS a1
    n AS a0, {total} AS a1
    {total} AS a0, n * {2|-1|0.5} AS a1, {total} / n AS a2
    {total} - n AS a0
    2 * {total} + 1 AS a0
    {total} * 1.0 / SUM(n) OVER () AS a0
    {total} AS a0, MARGIN({total}) AS a1
    {total} - LAG(n) OVER (ORDER BY k0) AS a0
    AVG(n) OVER (ORDER BY k0 ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS a0, {total} AS a1
    RANK() OVER (ORDER BY {total}) AS a0
    ROUND({total}, -1) AS a0, CAST({total} AS BIGINT) AS a1
    CASE WHEN {total} > 3 THEN {total} END AS a0
    """)
BEHIND = lines("""
    ORDER BY 1
    ORDER BY k0
    LIMIT 2
    ORDER BY a0 DESC LIMIT 3
    WHERE k0 IS NOT NULL
    WHERE n > 2
    QUALIFY a0 > 0
    """)
# windows over the groups of GROUPING SETS, and of plain keys
BESIDE = lines("""
    100.0 * COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY GROUPING({key}))
    {RANK|DENSE_RANK|ROW_NUMBER}() OVER (PARTITION BY GROUPING({key}) ORDER BY {aggregate} DESC)
    {aggregate} - LAG({aggregate}) OVER (PARTITION BY GROUPING({key}) ORDER BY {key})
    {SUM|AVG|MAX}({aggregate}) OVER (PARTITION BY {key})
    SUM({aggregate}) OVER (PARTITION BY GROUPING({key}) ORDER BY {key})
    NTILE({2|4}) OVER (ORDER BY {aggregate})
    FIRST_VALUE({key}) OVER (ORDER BY {aggregate} DESC)
    """)
APART = lines("""
    COUNT(*) FILTER (WHERE {one})
    COUNT(*) FILTER (WHERE {one})
    SUM(CASE WHEN {one} THEN 1 ELSE 0 END)
    SUM(CASE WHEN {one} THEN {number} ELSE 0 END)
    SUM(CASE WHEN {one} THEN {number} END)
    COUNT(DISTINCT CASE WHEN {one} THEN {owner} END)
    SUM({number}) FILTER (WHERE {one} AND {flag})
    AVG({number}) FILTER (WHERE {one})
    COUNT_IF({one})
    """)


class Totals:
    """Draws such statements from relations and expressions of one schema."""

    def __init__(self, relations: Relations, where: Callable[[Columns], str]) -> None:
        self.relations, self.where = relations, where

    @property
    def draw(self) -> Draw:
        return self.relations.draw

    @property
    def of(self) -> Expressions:
        return self.relations.of

    def running(self, depth: int) -> str:
        """A running total of one aggregate, in the statement itself or above it."""
        inner, columns = self.relations.relation(depth)
        keys = [self.of.kind(columns, "date", "date", "moment", "number")]
        keys += [self.of.kind(columns, "category", *KINDS) for _ in range(self.draw.any(0, 0, 1))]
        made = [self._key(columns, kind) for kind in keys]
        added = self.of.filled(self.draw.any(*ADDED), columns, 1)
        tail = f" {self.draw.any(*BEHIND)}" if self.draw.maybe(0.3) else ""
        named = [f"{key} AS k{place}" for place, key in enumerate(made)]
        group = ", ".join(f"k{place}" for place in range(len(made)))
        rows = f"FROM {inner}{self.where(columns)} GROUP BY {group}"
        by = "" if len(made) == 1 or self.draw.maybe(0.2) else "PARTITION BY {}"
        if self.draw.maybe(0.4):
            total = self._total(added, by.format(made[-1]), self.draw.any(made[0], made[0], "k0"))
            more = self.draw.any("", "", f", {added} AS n", f", {total} / {added} AS a1")
            tail = tail if "WHERE" not in tail and " n " not in tail else ""
            return f"SELECT {', '.join(named)}, {total} AS a0{more} {rows}{tail}"
        total = self._total("n", by.format("k1"), "k0")
        used = self.of.filled(self.draw.any(*USED), {}, 0, total=total)
        beside = self.draw.any(
            "", "", f", {self.of.filled(self.draw.any(*ADDED), columns, 1)} AS m"
        )
        inside = f"SELECT {', '.join(named)}, {added} AS n{beside} {rows}"
        shown = self.draw.any("", "k0, ", f"{group}, ")
        if self.draw.maybe(0.5):
            return f"WITH t AS ({inside}) SELECT {shown}{used} FROM t{tail}"
        return f"SELECT {shown}{used} FROM ({inside}) AS t{tail}"

    def _key(self, columns: Columns, kind: str) -> str:
        own = self.of.column(columns, kind)
        if own is None or self.draw.maybe(0.3):
            return self.of.expression(columns, kind, 1)
        if kind == "moment":
            return f"DATE_TRUNC('{self.draw.any('hour', 'day', 'month')}', {own})"
        if kind == "date" and self.draw.maybe(0.5):
            return f"DATE_TRUNC('{self.draw.any('week', 'month', 'year')}', {own})"
        return own

    def _total(self, added: str, by: str, along: str) -> str:
        frame = self.of.filled(self.draw.any(*FRAMES), {}, 0, along=along)
        return f"SUM({added}) OVER ({by} ORDER BY {frame})".replace("( ", "(")

    def beside_sets(self, depth: int) -> str:
        """Windows over the groups of ROLLUP, CUBE and GROUPING SETS."""
        inner, columns = self.relations.relation(depth)
        kinds = [self.of.kind(columns, "category", *KINDS) for _ in range(self.draw.any(1, 2))]
        keys = [self.of.expression(columns, kind, 1) for kind in kinds]
        added = self.of.filled(self.draw.any(*ADDED), columns, 1)
        window = self.of.filled(
            self.draw.any(*BESIDE), columns, 1, key=self.draw.any(*keys), aggregate=added
        )
        listed = ", ".join(keys)
        form = self.draw.any("ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({}), ())", "{}")
        items = [f"{key} AS k{place}" for place, key in enumerate(keys)]
        return (
            f"SELECT {', '.join(items)}, {window} AS a0, {added} AS a1 FROM {inner}"
            f"{self.where(columns)} GROUP BY {form.format(listed)}"
        )

    def side_by_side(self, depth: int) -> str:
        """Columns whose conditions leave different values of one expression, or nearly so."""
        inner, columns = self.relations.relation(depth)
        kind = self.of.kind(columns, "category", "number", "date", "flag")
        value = self.of.expression(columns, kind, 1)
        constants = [each for each in CONSTANTS[kind] if each != "NULL"]
        chosen = self.draw.source.sample(constants, min(self.draw.any(2, 2, 3), len(constants)))
        low = chosen[0]
        conditions = self.draw.any(
            [f"{value} = {each}" for each in chosen],
            [f"{value} = {each}" for each in chosen],
            [f"{value} < {low}", f"{value} >= {low}"],
            [f"{value} <= {low}", f"{value} > {low}", f"{value} IS NULL"],
            [f"{value} IN ({', '.join(chosen[1:])})", f"{value} = {low}"],
            [f"{value} = {low}", f"{value} <> {low}"],
            [f"{value} <= {low}", f"{value} >= {low}"],
            [f"{value} = {each} AND {self.of.expression(columns, 'flag', 1)}" for each in chosen],
        )
        form = self.draw.any(*APART)
        items = [
            f"{self.of.filled(form, columns, 1, one=each)} AS a{place}"
            for place, each in enumerate(conditions)
        ]
        if self.draw.maybe(0.2):
            items.append(self.of.filled(self.draw.any(*ADDED), columns, 1))
        group = ""
        if self.draw.maybe(0.4):
            items.insert(
                0,
                f"{self.of.expression(columns, self.of.kind(columns, 'category', 'flag'), 1)} AS k",
            )
            group = " GROUP BY k"
        return f"SELECT {', '.join(items)} FROM {inner}{self.where(columns)}{group}"

    def listed_keys(self, depth: int) -> str:
        """Groups of a text whose values the question lists."""
        inner, columns = self.relations.relation(depth)
        text = self.of.column(columns, "text") or self.of.expression(columns, "text", 1)
        constants = ", ".join(self.draw.source.sample(CONSTANTS["text"], 2))
        added = self.of.filled(self.draw.any(*ADDED), columns, 1)
        other = f"CASE WHEN {text} IN ({constants}) THEN {text} ELSE 'other' END"
        key, where = self.draw.any(
            (text, f"{text} IN ({constants})"),
            (f"UPPER({text})", f"{text} IN ({constants})"),
            (text, f"{text} IN ({constants}) OR {text} = 'b'"),
            (other, "TRUE"),
            (other, self.of.expression(columns, "flag", 1)),
        )
        return f"SELECT {key} AS k, {added} AS a0 FROM {inner} WHERE {where} GROUP BY {self.draw.any('k', '1', 'ALL')}"
