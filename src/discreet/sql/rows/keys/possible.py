"""Find which groups by public keys are possible: compute the keys of all values that the policy
allows.

`WHERE age >= 80 GROUP BY age // 10` has five possible groups. The year and the month of a day give
only the pairs that exist; so do the county and the state of a declared hierarchy. To find them, the
question's own tree runs over a table of all combinations of values of the columns that decide the
keys, without conditions on other columns. No data is read. An impossible group is not measured.

Privacy
    No guarantee depends on this list. One number is released for each listed group, and the query
    itself leaves out the rows of other groups. `check` derives how far a person can move the
    numbers of the listed groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta

import pyarrow as pa

from discreet.algebra import (
    Aggregate,
    Call,
    Cast,
    Column,
    Constant,
    Exists,
    Expression,
    Fold,
    Over,
    OwnerJoin,
    PublicJoin,
    Scan,
    Select,
    Source,
    Stage,
    Sum,
    conjuncts,
    stages,
    walk,
)
from discreet.errors import EngineFailure
from discreet.policy.domain import (
    Booleans,
    Categories,
    Dates,
    Decimals,
    Domain,
    Integers,
    Timestamps,
)
from discreet.policy.policy import Policy
from discreet.sql.rows.keys.cells import crossed, in_grid
from discreet.sql.rows.keys.every_value import product, values
from discreet.sql.rows.keys.lying_in import Combinations, combinations
from discreet.sql.rows.keys.public_alone import public_alone, with_one_row
from discreet.sql.text.parse import quote

MOST_MOMENTS = 3_000_000  # the most moments of one column that are tried: every second of a month
MOST_VALUES = 300_000  # the most combinations of values that are tried
# If a grid has this many times more places than possible groups, it is not worth adding it up.
MOSTLY_EMPTY = 8
# a column, by its stage and name; for a public table the stage with an empty name
Base = tuple[str, str]
Spell = Callable[[Aggregate], str]
Evaluate = Callable[[str], pa.Table]


class _GiveUp(Exception):
    """The values of the columns that decide the keys cannot be listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Possible:
    """Finds the possible groups; `public` has the public tables."""

    policy: Policy
    public: Mapping[str, pa.Table]
    spell: Spell
    evaluate: Evaluate
    # True inside grouping sets, which are added up over the whole grid unless it is mostly empty
    sets: bool = False
    most: int | None = None  # the most combinations of values, if other than by default
    wanted: set[Base] = field(default_factory=set)  # the columns that decide the keys
    # for each moment, the first and the last that the conditions allow
    ends: dict[Base, tuple[datetime, datetime]] = field(default_factory=dict)

    def cells(
        self,
        source: Source,
        where: Sequence[Expression],
        places: Sequence[Expression],
        sizes: Sequence[int],
    ) -> tuple[int, ...] | None:
        """Return the places of possible groups in the grid of keys, in order; None if all are
        possible, or if it is not known.
        """
        parts = self._split(source, where, places)
        if len(parts) < 2:
            return self._cells_of_part(source, where, places, sizes)
        cells_of_parts = []
        for part in parts:
            finder = replace(self, wanted=set(), ends={})
            part_places = [places[index] for index in part]
            part_sizes = [sizes[index] for index in part]
            cells_of_parts.append(finder._cells_of_part(source, where, part_places, part_sizes))
        if all(cells is None for cells in cells_of_parts):
            return None
        return crossed(parts, cells_of_parts, sizes)

    def _split(
        self, source: Source, where: Sequence[Expression], places: Sequence[Expression]
    ) -> list[list[int]]:
        """Return the indexes of the keys in parts that share no column and no condition, such as the
        hours that WHERE allows, and the clinics.
        """
        if self.sets or self.policy.hierarchies:
            return [list(range(len(places)))]
        parts: list[tuple[list[int], frozenset[Base]]] = []
        try:
            for index, place in enumerate(places):
                parts.append(([index], self.bases(place, source)))
        except _GiveUp:
            return [list(range(len(places)))]
        for each, at in _conditions(source, where):
            parts.append(([], self._bases_or_none(each, at)))
        groups: list[tuple[list[int], frozenset[Base]]] = []
        for indexes, bases in parts:
            rest = []
            for group in groups:
                other_indexes, other_bases = group
                if other_bases & bases:
                    indexes = [*indexes, *other_indexes]
                    bases = bases | other_bases
                else:
                    rest.append(group)
            groups = [*rest, (indexes, bases)]
        return sorted(sorted(indexes) for indexes, _ in groups if indexes)

    def _cells_of_part(
        self,
        source: Source,
        where: Sequence[Expression],
        places: Sequence[Expression],
        sizes: Sequence[int],
    ) -> tuple[int, ...] | None:
        """Return the places of possible groups in the grid of these keys; None as `cells` says."""
        if not places or math.prod(sizes) >= 2**62:
            return None
        only_columns = all(isinstance(each, Column) for each in places)
        if only_columns and not self._narrows(source, where, places):
            return None
        try:
            self._want(source, where, places)
            if self.sets and not list(self._lying_in(source)):
                return None
            if self._reads_once(source):
                self.ends.update(self._ends(where, source))
            smaller = self.prune(source)
            columns = self._columns(source)
            if self._rows(smaller, columns) > self._most(columns):
                return self._of_public_alone(source, where, places, sizes)
            conditions = tuple(self.conditions_on_keys(where, source))
            tree = Aggregate(smaller, tuple(places), (Sum(),), conditions)
            groups = self.evaluate(f"WITH {self._tables(source)} {self.spell(tree)}")
        except (_GiveUp, EngineFailure):
            return None
        cells = in_grid(groups, sizes)
        if cells and self.sets and MOSTLY_EMPTY * len(cells) > math.prod(sizes):
            return None
        return cells

    def _of_public_alone(
        self,
        source: Source,
        where: Sequence[Expression],
        places: Sequence[Expression],
        sizes: Sequence[int],
    ) -> tuple[int, ...] | None:
        tree = public_alone(source, where, places, self.public, self.most or MOST_VALUES)
        if tree is None:
            return None
        return in_grid(self.evaluate(with_one_row(self.spell(tree), self.public)), sizes)

    def _narrows(
        self, source: Source, where: Sequence[Expression], places: Sequence[Expression]
    ) -> bool:
        """Return True if conditions limit the keys, which are plain columns, or if the keys depend on
        one another.
        """
        try:
            self._want(source, where, places)
            depends = isinstance(source, PublicJoin | Stage) or bool(list(self._lying_in(source)))
            return depends or bool(list(self.conditions_on_keys(where, source)))
        except _GiveUp:
            return False

    def _want(
        self, source: Source, where: Sequence[Expression], places: Sequence[Expression]
    ) -> None:
        """Add the columns that decide the keys to `wanted`; also columns of the same hierarchy that
        have conditions, as in WHERE state = 'CA'.
        """
        self.wanted.update(*(self.bases(each, source) for each in places))
        if not self.policy.hierarchies:
            return
        with_conditions: set[Base] = set()
        for condition, at in _conditions(source, where):
            with_conditions |= self._bases_or_none(condition, at)
        for stage, column in list(self.wanted):
            for hierarchy in self.policy.hierarchies.values():
                if column in hierarchy.levels:
                    levels = {(stage, level) for level in hierarchy.levels}
                    self.wanted.update(with_conditions & levels)

    def _bases_or_none(self, node: Expression, source: Source) -> frozenset[Base]:
        """Return the stored columns that decide a value; none if they are not known."""
        try:
            return self.bases(node, source)
        except _GiveUp:
            return frozenset()

    # --- what a value is made of ------------------------------------------------------------------

    def bases(self, node: Expression, source: Source) -> frozenset[Base]:
        """Return the stored columns that decide a value; give up on windows, EXISTS and folds."""
        bases: frozenset[Base] = frozenset()
        for part in walk(node):
            if isinstance(part, Over | Exists | Fold):
                raise _GiveUp
            if isinstance(part, Column):
                bases |= self.column(part, source)
        return bases

    def column(self, column: Column, source: Source) -> frozenset[Base]:
        """Return the stored columns that decide a column."""
        match source:
            case Scan(stage=stage) if stage == column.stage:
                return frozenset({(stage, column.name)})
            case Stage(stage=stage, query=Select(source=inner, columns=columns)) if (
                stage == column.stage
            ):
                if column.name not in dict(columns):
                    raise _GiveUp
                return self.bases(dict(columns)[column.name], inner)
            case OwnerJoin(left=left, right=right, outer=False):
                return self.column(column, left if column.stage in stages(left) else right)
            case PublicJoin(left=left, right=right, pins=pins, on=on, outer=False):
                if column.stage in stages(left):
                    return self.column(column, left)
                conditions = [*(side for pin in pins for side in pin), *on]
                bases = frozenset({(right.stage, "")})
                for condition in conditions:
                    for part in walk(condition):
                        if isinstance(part, Column) and part.stage in stages(left):
                            bases |= self.column(part, left)
                return bases
        raise _GiveUp

    def conditions_on_keys(
        self, where: Sequence[Expression], source: Source
    ) -> Iterator[Expression]:
        """Yield the conditions that read only columns that decide the keys."""
        for each in conjuncts(where):
            bases = self._bases_or_none(each, source)
            if bases and bases <= self.wanted:
                yield each

    # --- the tree ---------------------------------------------------------------------------------

    def prune(self, source: Source) -> Source:
        """Return the source without the tables, columns and conditions that do not decide the
        keys.
        """
        match source:
            case OwnerJoin(left=left, right=right, on=on):
                if not self._has(left) or not self._has(right):
                    return self.prune(left if self._has(left) else right)
                return replace(
                    source,
                    left=self.prune(left),
                    right=self.prune(right),
                    on=tuple(self.conditions_on_keys(on, source)),
                )
            case PublicJoin(left=left, right=right):
                if (right.stage, "") not in self.wanted:
                    return self.prune(left)
                return replace(source, left=self.prune(left))
            case Stage(query=Select(source=inner, columns=columns, where=where) as query):
                smaller = replace(
                    query,
                    source=self.prune(inner),
                    columns=tuple(pair for pair in columns if self._is_wanted(pair[1], inner)),
                    where=tuple(self.conditions_on_keys(where, inner)),
                    distinct=False,
                )
                return replace(source, query=smaller)
        return source

    def _is_wanted(self, node: Expression, source: Source) -> bool:
        """Return True if only columns that decide the keys decide a value."""
        try:
            return self.bases(node, source) <= self.wanted
        except _GiveUp:
            return False

    def _has(self, source: Source) -> bool:
        """Return True if a source has a column that decides the keys."""
        inside = _inside(source)
        return any(stage in inside for stage, _ in self.wanted)

    # --- all values -------------------------------------------------------------------------------

    def _columns(self, source: Source) -> list[tuple[Scan, str]]:
        """Return the stored columns that decide the keys, each with its scan, in a fixed order."""
        scans = {each.stage: each for each in _scans(source)}
        columns = [(scans[stage], name) for stage, name in self.wanted if name]
        return sorted(columns, key=str)

    def _reads_once(self, source: Source) -> bool:
        """Return True if no table is read twice: then a condition limits the values of its table."""
        tables = [scan.table for scan in _scans(source)]
        return len(set(tables)) == len(tables)

    def _rows(self, source: Source, columns: Sequence[tuple[Scan, str]]) -> int:
        """Return how many rows the tree has for all combinations of values. A table that is read
        twice has its rows each time.
        """
        match source:
            case Scan(table=table):
                names = {name: scan for scan, name in columns if scan.table == table}
                known = self._together(table, names)
                together = () if known is None else known.columns
                sizes = [self._size(names[name], name) for name in names.keys() - set(together)]
                return math.prod(sizes) * (1 if known is None else len(known.rows))
            case OwnerJoin(left=left, right=right):
                return self._rows(left, columns) * self._rows(right, columns)
            case PublicJoin(left=left, meets=meets):
                return self._rows(left, columns) * meets
            case Stage(query=Select(source=inner)):
                return self._rows(inner, columns)
        raise _GiveUp

    def _most(self, columns: Sequence[tuple[Scan, str]]) -> int:
        """Return how many combinations may be tried: more for a single moment, which is fast."""
        alone = len(columns) == 1 and isinstance(self._domain(*columns[0]), Timestamps)
        return self.most or (MOST_MOMENTS if alone else MOST_VALUES)

    def _domain(self, scan: Scan, name: str) -> Domain:
        """Return the domain of a stored column."""
        column = self.policy.tables[scan.table].columns.get(name)
        if column is None:
            raise _GiveUp
        return column.domain

    def _size(self, scan: Scan, name: str) -> int:
        """Return the number of values of a stored column that are tried, with NULL."""
        match self._domain(scan, name):
            case Integers() | Decimals() as domain:
                return domain.last - domain.first + 2
            case Categories(values=values):
                return len(values) + 1
            case Booleans():
                return 3
            case Dates(lo=lo, hi=hi):
                return (hi - lo).days + 2
            case Timestamps() as domain:
                start, end = self._window(scan, name, domain)
                return max(0, int((end - start) / timedelta(seconds=float(domain.step)))) + 2
        raise _GiveUp

    def _window(self, scan: Scan, name: str, domain: Timestamps) -> tuple[datetime, datetime]:
        """Return the first and the last moment to try; both are on the column's grid."""
        low, high = self.ends.get((scan.stage, name), (domain.lo, domain.hi))
        step = timedelta(seconds=float(domain.step))

        def round_down(moment: datetime) -> datetime:
            return domain.lo + (moment - domain.lo) // step * step

        first = max(low, domain.lo)
        last = max(domain.lo, min(high, domain.hi))
        return round_down(first), round_down(last)

    def _ends(
        self, where: Sequence[Expression], source: Source
    ) -> Iterator[tuple[Base, tuple[datetime, datetime]]]:
        """Yield the earliest and the latest moment that conditions allow, for each column that they
        compare with constants.
        """
        low: dict[Base, datetime] = {}
        high: dict[Base, datetime] = {}
        for condition in conjuncts(where):
            if not isinstance(condition, Call) or len(condition.arguments) != 2:
                continue
            column, constant = condition.arguments
            moment = _moment(constant)
            if not isinstance(column, Column) or moment is None:
                continue
            for base in self.column(column, source):
                if condition.name in (">", ">=", "="):
                    low[base] = max(moment, low.get(base, moment))
                if condition.name in ("<", "<=", "="):
                    high[base] = min(moment, high.get(base, moment))
        for base in low.keys() | high.keys():
            yield base, (low.get(base, datetime.min), high.get(base, datetime.max))
        if isinstance(source, Stage) and isinstance(source.query, Select) and not low and not high:
            yield from self._ends(source.query.where, source.query.source)

    def _tables(self, source: Source) -> str:
        """Return the items of a WITH clause: for each stored table, a table of its name with all
        combinations of values and NULL.
        """
        selects: dict[str, dict[str, str]] = {scan.table: {} for scan in _scans(source)}
        for scan, name in self._columns(source):
            domain = self._domain(scan, name)
            if isinstance(domain, Timestamps):
                start, end = self._window(scan, name, domain)
                domain = replace(domain, lo=start, hi=max(start, end))
            select = values(domain)
            if select is None:
                raise _GiveUp
            selects[scan.table][name] = select
        items = []
        for table, columns in selects.items():
            known = self._together(table, columns)
            items.append(f"{quote(table)} AS ({product(columns, known)})")
        return ", ".join(items)

    def _together(self, table: str, names: Collection[str]) -> Combinations | None:
        """Return the combinations that a hierarchy allows for these columns of a table."""
        return combinations(self.policy, self.public, self.policy.tables[table], names)

    def _lying_in(self, source: Source) -> Iterator[Combinations]:
        """Yield the combinations that hierarchies allow for the columns that decide the keys."""
        for scan in _scans(source):
            names = {name for stage, name in self.wanted if stage == scan.stage}
            known = self._together(scan.table, names)
            if known is not None:
                yield known


def _moment(node: Expression) -> datetime | None:
    """Return a constant moment, or the beginning of a constant day; None for others."""
    if isinstance(node, Cast) and node.kind == "TIMESTAMP":
        node = node.value
    value = node.value if isinstance(node, Constant) else None
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    return None


def _scans(source: Source) -> Iterator[Scan]:
    """Yield the stored private tables of a source; give up on aggregations and unions."""
    match source:
        case Scan():
            yield source
        case OwnerJoin(left=left, right=right):
            yield from (*_scans(left), *_scans(right))
        case PublicJoin(left=left):
            yield from _scans(left)
        case Stage(query=Select(source=inner)):
            yield from _scans(inner)
        case _:
            raise _GiveUp


def _conditions(source: Source, where: Sequence[Expression]) -> Iterator[tuple[Expression, Source]]:
    """Yield the conditions of a source, also in subqueries, each with the source that it reads."""
    yield from ((each, source) for each in conjuncts(where))
    match source:
        case OwnerJoin(left=left, right=right, on=on):
            yield from ((each, source) for each in on)
            yield from (*_conditions(left, ()), *_conditions(right, ()))
        case PublicJoin(left=left):
            yield from _conditions(left, ())
        case Stage(query=Select(source=inner, where=below)):
            yield from _conditions(inner, below)


def _inside(source: Source) -> frozenset[str]:
    """Return the names of all stages of a source, also in subqueries."""
    match source:
        case OwnerJoin(left=left, right=right):
            return _inside(left) | _inside(right)
        case PublicJoin(left=left, right=right):
            return _inside(left) | {right.stage}
        case Stage(query=Select(source=inner), stage=stage):
            return _inside(inner) | {stage}
    return stages(source)
