"""Find which groups of public keys can be, by computing the keys of every value that the policy
allows their columns.

`WHERE age >= 80 GROUP BY age // 10` has five groups. The year and the month of a day make only
those pairs that exist, as do the county and the state of a declared hierarchy. The question's own
tree is run over a table of all combinations of values of the columns that its keys are made of,
without the conditions on others: no data is read. A group that nobody can be in gets no number and
no noise.

Privacy
    Nothing rests on this list being right. What is released is one number for each listed group,
    and rows in other groups are left out by the query itself; `check` bounds what a person can move
    by the number of listed groups.
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
    PublicScan,
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
from discreet.sql.rows.public import write_out_table
from discreet.sql.text.parse import quote

MOST_MOMENTS = 3_000_000  # of one column that are tried: every second of a month
MOST_VALUES = 300_000  # rows of all combinations of values that are tried
# times as many places in a grid as groups that can be: there nothing is gained by adding it up
MOSTLY_EMPTY = 8
# a column of a table, by the stage that reads it; of a public table, the stage alone
Base = tuple[str, str]
Spell = Callable[[Aggregate], str]
Evaluate = Callable[[str], pa.Table]


class _GiveUp(Exception):
    """Raised where the values that the keys are made of cannot be listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Possible:
    """Finds the groups that can be; `public` has the public tables."""

    policy: Policy
    public: Mapping[str, pa.Table]
    spell: Spell
    evaluate: Evaluate
    # of grouping sets, which are added up over the whole grid unless most of it cannot be
    sets: bool = False
    most: int | None = None  # rows of all combinations of values, where fewer are tried
    wanted: set[Base] = field(default_factory=set)
    # of moments that conditions leave
    ends: dict[Base, tuple[datetime, datetime]] = field(default_factory=dict)

    def cells(
        self,
        source: Source,
        where: Sequence[Expression],
        places: Sequence[Expression],
        sizes: Sequence[int],
    ) -> tuple[int, ...] | None:
        """Return the places in the grid of keys that can be, in order; None where all can, or it
        cannot be told.
        """
        parts = self._apart(source, where, places)
        if len(parts) < 2:
            return self._together_in(source, where, places, sizes)
        found = [
            replace(self, wanted=set(), ends={})._together_in(
                source, where, [places[each] for each in part], [sizes[each] for each in part]
            )
            for part in parts
        ]
        if all(each is None for each in found):
            return None
        return crossed(parts, found, sizes)

    def _apart(
        self, source: Source, where: Sequence[Expression], places: Sequence[Expression]
    ) -> list[list[int]]:
        """Return the keys in parts that no column and no condition has in common: the hours that
        WHERE leaves, and the clinics.
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
        joined: list[tuple[list[int], frozenset[Base]]] = []
        for indices, bases in parts:
            meets = [each for each in joined if each[1] & bases]
            joined = [each for each in joined if not each[1] & bases]
            members = sorted(index for each in meets for index in each[0]) + indices
            joined.append((members, bases.union(*(each[1] for each in meets))))
        return sorted(sorted(indices) for indices, _ in joined if indices)

    def _together_in(
        self,
        source: Source,
        where: Sequence[Expression],
        places: Sequence[Expression],
        sizes: Sequence[int],
    ) -> tuple[int, ...] | None:
        """The places in the grid of these keys that can be."""
        if (
            not places
            or math.prod(sizes) >= 2**62
            or (
                all(isinstance(each, Column) for each in places)
                and not self._narrows(source, where, places)
            )
        ):
            return None
        try:
            self._want(source, where, places)
            if self.sets and not list(self._lying_in(source)):
                return None
            if self._reads_once(source):
                self.ends.update(self._ends(where, source))
            pruned = self.prune(source)
            columns = self._columns(source)
            if self._rows(pruned, columns) > self._most(columns):
                return self._of_public_alone(source, where, places, sizes)
            tree = Aggregate(
                pruned, tuple(places), (Sum(),), tuple(self.conditions_on_keys(where, source))
            )
            found = self.evaluate(f"WITH {self._tables(source)} {self.spell(tree)}")
        except (_GiveUp, EngineFailure):
            return None
        cells = in_grid(found, sizes)
        return (
            None if cells and self.sets and MOSTLY_EMPTY * len(cells) > math.prod(sizes) else cells
        )

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
        return in_grid(self.evaluate(with_one_row(self.spell(tree))), sizes)

    def _narrows(
        self, source: Source, where: Sequence[Expression], places: Sequence[Expression]
    ) -> bool:
        """Return True if conditions speak of plain columns that are keys, or public columns depend
        on others.
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
        """Note what the keys are made of, and of the same hierarchy what conditions are made of:
        WHERE state = 'CA'.
        """
        self.wanted.update(*(self.bases(each, source) for each in places))
        if not self.policy.hierarchies:
            return
        spoken = {
            base
            for each, at in _conditions(source, where)
            for base in self._bases_or_none(each, at)
        }
        for stage, column in list(self.wanted):
            for hierarchy in self.policy.hierarchies.values():
                if column in hierarchy.levels:
                    self.wanted.update(spoken & {(stage, level) for level in hierarchy.levels})

    def _bases_or_none(self, node: Expression, source: Source) -> frozenset[Base]:
        try:
            return self.bases(node, source)
        except _GiveUp:
            return frozenset()

    # --- what a value is made of ------------------------------------------------------------------

    def bases(self, node: Expression, source: Source) -> frozenset[Base]:
        """Return the stored columns that decide a value; gives up on windows, EXISTS and folds."""
        found: frozenset[Base] = frozenset()
        for part in walk(node):
            if isinstance(part, Over | Exists | Fold):
                raise _GiveUp
            if isinstance(part, Column):
                found |= self.column(part, source)
        return found

    def column(self, column: Column, source: Source) -> frozenset[Base]:
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
                ours = [each for pair in pins for each in pair] + list(on)
                private = [part for each in ours for part in walk(each) if isinstance(part, Column)]
                own = (self.column(part, left) for part in private if part.stage in stages(left))
                return frozenset({(right.stage, "")}).union(*own)
        raise _GiveUp

    def conditions_on_keys(
        self, where: Sequence[Expression], source: Source
    ) -> Iterator[Expression]:
        """Yield the conditions on nothing but what the keys are made of."""
        for each in conjuncts(where):
            bases = self._bases_or_none(each, source)
            if bases and bases <= self.wanted:
                yield each

    # --- the tree ---------------------------------------------------------------------------------

    def prune(self, source: Source) -> Source:
        """Return the source without tables, columns and conditions that the keys are not made
        of.
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
                if isinstance(right, PublicScan):
                    right = write_out_table(self.public[right.table], right.stage)
                return replace(source, left=self.prune(left), right=right)
            case Stage(query=Select(source=inner, columns=columns, where=where) as query):
                listed = tuple(pair for pair in columns if self._is_made(pair[1], inner))
                made = replace(
                    query,
                    source=self.prune(inner),
                    columns=listed,
                    where=tuple(self.conditions_on_keys(where, inner)),
                )
                return replace(source, query=replace(made, distinct=False))
        return source

    def _is_made(self, node: Expression, source: Source) -> bool:
        try:
            return self.bases(node, source) <= self.wanted
        except _GiveUp:
            return False

    def _has(self, source: Source) -> bool:
        inside = _inside(source)
        return any(stage in inside for stage, _ in self.wanted)

    # --- all values -------------------------------------------------------------------------------

    def _columns(self, source: Source) -> list[tuple[Scan, str]]:
        scans = {each.stage: each for each in _scans(source)}
        return sorted(
            ((scans[stage], name) for stage, name in self.wanted if name),
            key=lambda each: str(each),
        )

    def _reads_once(self, source: Source) -> bool:
        """Return whether no table stands twice: a condition on the one must not narrow the values
        of the other.
        """
        tables = [scan.table for scan in _scans(source)]
        return len(set(tables)) == len(tables)

    def _rows(self, source: Source, columns: Sequence[tuple[Scan, str]]) -> int:
        """Return how many rows the tree makes of all values; one table that stands twice makes its
        rows twice over.
        """
        match source:
            case Scan(table=table):
                names = {name: scan for scan, name in columns if scan.table == table}
                known = self._together(table, names)
                apart = names.keys() - set(known.columns if known else ())
                return math.prod(self._size(names[name], name) for name in apart) * (
                    len(known.rows) if known else 1
                )
            case OwnerJoin(left=left, right=right):
                return self._rows(left, columns) * self._rows(right, columns)
            case PublicJoin(left=left, meets=meets):
                return self._rows(left, columns) * meets
            case Stage(query=Select(source=inner)):
                return self._rows(inner, columns)
        raise _GiveUp

    def _most(self, columns: Sequence[tuple[Scan, str]]) -> int:
        """Return how many rows may be tried: more of a moment alone, which are made in no time."""
        alone = len(columns) == 1 and isinstance(self._domain(*columns[0]), Timestamps)
        return self.most or (MOST_MOMENTS if alone else MOST_VALUES)

    def _domain(self, scan: Scan, name: str) -> Domain:
        column = self.policy.tables[scan.table].columns.get(name)
        if column is None:
            raise _GiveUp
        return column.domain

    def _size(self, scan: Scan, name: str) -> int:
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
        """Return the first and the last moment that are tried, on the column's grid."""
        low, high = self.ends.get((scan.stage, name), (domain.lo, domain.hi))
        step = timedelta(seconds=float(domain.step))

        def before(moment: datetime) -> datetime:
            return domain.lo + (moment - domain.lo) // step * step

        return before(max(low, domain.lo)), before(max(domain.lo, min(high, domain.hi)))

    def _ends(
        self, where: Sequence[Expression], source: Source
    ) -> Iterator[tuple[Base, tuple[datetime, datetime]]]:
        """Yield, for each moment compared with constants, the earliest and the latest that pass."""
        low, high = dict[Base, datetime](), dict[Base, datetime]()
        for each in conjuncts(where):
            if (
                not isinstance(each, Call)
                or len(each.arguments) != 2
                or not isinstance(each.arguments[0], Column)
            ):
                continue
            moment = _moment(each.arguments[1])
            if moment is None:
                continue
            for base in self.column(each.arguments[0], source):
                if each.name in (">", ">=", "="):
                    low[base] = max(moment, low.get(base, moment))
                if each.name in ("<", "<=", "="):
                    high[base] = min(moment, high.get(base, moment))
        for base in low.keys() | high.keys():
            yield base, (low.get(base, datetime.min), high.get(base, datetime.max))
        if isinstance(source, Stage) and isinstance(source.query, Select) and not low and not high:
            yield from self._ends(source.query.where, source.query.source)

    def _tables(self, source: Source) -> str:
        """WITH tables of all combinations of values, under the names of the stored ones; anything
        may be NULL.
        """
        found: dict[str, dict[str, str]] = {scan.table: {} for scan in _scans(source)}
        for scan, name in self._columns(source):
            domain = self._domain(scan, name)
            if isinstance(domain, Timestamps):
                start, end = self._window(scan, name, domain)
                domain = replace(domain, lo=start, hi=max(start, end))
            listed = values(domain)
            if listed is None:
                raise _GiveUp
            found[scan.table][name] = listed
        made = (
            (table, columns, self._together(table, columns)) for table, columns in found.items()
        )
        return ", ".join(
            f"{quote(table)} AS ({product(columns, known)})" for table, columns, known in made
        )

    def _together(self, table: str, names: Collection[str]) -> Combinations | None:
        return combinations(self.policy, self.public, self.policy.tables[table], names)

    def _lying_in(self, source: Source) -> Iterator[Combinations]:
        """Yield the declared combinations of columns that the keys are made of."""
        for scan in _scans(source):
            if known := self._together(
                scan.table, {name for stage, name in self.wanted if stage == scan.stage}
            ):
                yield known


def _moment(node: Expression) -> datetime | None:
    """Return a constant moment, or a day as one."""
    inner = node.value if isinstance(node, Cast) and node.kind == "TIMESTAMP" else node
    value = inner.value if isinstance(inner, Constant) else None
    if isinstance(value, datetime):
        return value
    return datetime(value.year, value.month, value.day) if isinstance(value, date) else None


def _scans(source: Source) -> Iterator[Scan]:
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
    """Yield what rows must satisfy, here and in subqueries, each with the source that it speaks
    of.
    """
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
    """All stages of a source, also of its subqueries."""
    match source:
        case OwnerJoin(left=left, right=right):
            return _inside(left) | _inside(right)
        case PublicJoin(left=left, right=right):
            return _inside(left) | {right.stage}
        case Stage(query=Select(source=inner), stage=stage):
            return _inside(inner) | {stage}
    return stages(source)
