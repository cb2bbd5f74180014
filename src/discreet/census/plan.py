"""Plan a publication: which counts, which noise, which cost; from the policy and public tables
alone.

Privacy
    Of one person's m rows each is in one place of a level at most, and there in one cell of a
    table: the counts of one table at one level move by m in l1 and in l2 (all rows in one cell),
    under change_one by 2m and sqrt(2) m. Every level and table has noise of its own, so the vector
    of all of them costs the sum of their losses: under add_remove ρ = Σ m² / 2σ², or ε = Σ m / s.
    `sql.check` derives the same from the query that will run (S24). Whether a row is in a table
    depends on that row and on public maps alone. What is exact comes from public tables
    (`invariants`) and from no private row (S18).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.accounting import Accountant
from discreet.algebra import Aggregate, Cast, Sum
from discreet.budget import Charge
from discreet.census.grid import Columns, Grid, Integers
from discreet.census.places import Places, places_of
from discreet.census.split import split
from discreet.errors import PolicyError, UsageError
from discreet.mechanisms.currency import currency
from discreet.mechanisms.shapes import Additive, Movement
from discreet.policy.domain import Categories, Column, Texts
from discreet.policy.policy import Policy, Table
from discreet.policy.publication import PublicationTerms
from discreet.sql.check.checker import Checker
from discreet.sql.check.norms import Norms
from discreet.synthetic.columns.axis import MOST_VALUES, OTHER, Axis
from discreet.synthetic.source import TableSource, source_of

# cells of all columns together, which are held once, for the place that is everywhere
MOST_COMBINATIONS = 1 << 22
BYTES_A_CELL = 14  # of noisy counts and estimates, while a publication is made
# bytes of one answer that the ledger can store, with room for the other parts
MOST_STORED = 900_000_000
_WIDE = 4_000  # a deviation from which on noise may not fit into 16 bits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublicationPlan:
    """One publication, ready to be paid for. `noises[l][t]` is None where a table is not measured
    at a level.
    """

    terms: PublicationTerms
    places: Places
    axes: tuple[Axis, ...]
    grid: Grid
    zeros: NDArray[np.bool_] | None  # of all cells, those that nobody can be in
    totals: tuple[Integers | None, ...]  # of every level, where they are public
    noises: tuple[tuple[Additive | None, ...], ...]
    moved: Movement
    counted: Aggregate
    # for every level, the maps of the keys that say where a row is
    reach: tuple[tuple[Integers, ...], ...]
    spans: tuple[tuple[int, ...], ...]  # and how many places each of these maps has
    cost: Charge
    max_rows: int

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(each.name for each in self.terms.tables)

    @property
    def mechanisms(self) -> list[Additive]:
        return [noise for row in self.noises for noise in row if noise is not None]

    @property
    def question(self) -> str:
        """A text that is equal for two plans of the same publication and the same places."""
        noises = [[None if noise is None else repr(noise) for noise in row] for row in self.noises]
        totals = [None if each is None else each.tolist() for each in self.totals]
        parts = ["publication 1", self.terms.meaning(), self.places.names, noises, totals]
        parts.append([parents.tolist() for parents in self.places.parents])
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    @property
    def promise(self) -> str:
        """The sentence about exact numbers, shown wherever the publication is."""
        if not self.terms.invariants:
            return "No number is exact: every level and table has noise."
        said = [
            f"the totals of every {each.level} ({each.because})" for each in self.terms.invariants
        ]
        return "Exact, and not protected, because they are public: " + "; ".join(said) + "."

    def maps(self, level: int, table: Columns) -> tuple[list[Integers], list[int]]:
        """Return where a row's keys lie in a table at a level, and the sizes of that grid."""
        sizes = [axis.size if at in table else 1 for at, axis in enumerate(self.axes)]
        inside = [np.arange(axis.size) % size for axis, size in zip(self.axes, sizes, strict=True)]
        return [*self.reach[level], *inside], [*self.spans[level], *sizes]


def plan(
    policy: Policy, terms: PublicationTerms, public: Mapping[str, pa.Table], accountant: Accountant
) -> PublicationPlan:
    """Check and price a publication. Reads no private data."""
    table = policy.tables[terms.table]
    refuse = _Refusal(policy, terms)
    names = dict.fromkeys(column for each in terms.tables for column in each.columns)
    axes = tuple(_axis(table, table.columns[name], refuse) for name in names)
    order = {axis.name: place for place, axis in enumerate(axes)}
    grid = Grid(
        sizes=tuple(axis.size for axis in axes),
        tables=tuple(tuple(sorted(order[name] for name in each.columns)) for each in terms.tables),
    )
    places, home = places_of(policy, terms.hierarchy, table, public)
    if grid.cells(grid.every) > MOST_COMBINATIONS:
        refuse(
            f"its columns combine to {grid.cells(grid.every):,} cells, and {MOST_COMBINATIONS:,} is the most. Leave "
            "out a column, declare coarser values, or make two publications."
        )
    cells = sum(places.sizes) * sum(grid.cells(each) for each in grid.tables)
    if cells * BYTES_A_CELL > policy.limits.memory:
        most = policy.limits.memory // BYTES_A_CELL
        refuse(
            f"its tables have {cells:,} cells at all levels, and limits.memory holds {most:,}. Leave out the largest "
            "table, declare coarser values, or raise limits.memory."
        )
    source, keys, reach, spans = _where(policy, table, terms, places, home, refuse)
    counted = _count(source, keys, axes)
    moved = _movement(policy, table)
    Checker(policy=policy).require(
        Norms(l1=int(moved.l1 or 0), l2_squared=int(moved.l2_squared or 0), linf=table.max_rows),
        counted,
        [(1,)],
        neighbors=policy.neighbors,
        sizes=[None] * len(counted.keys),
    )
    noises = _noises(terms, grid, places, accountant, moved, refuse)
    _require_storable(noises, grid, places, refuse)
    used = [noise for row in noises for noise in row if noise is not None]
    return PublicationPlan(
        terms=terms,
        places=places,
        axes=axes,
        grid=grid,
        zeros=_zeros(terms, axes, grid, refuse),
        totals=_totals(terms, places, public, refuse),
        noises=noises,
        moved=moved,
        counted=counted,
        reach=reach,
        spans=spans,
        cost=accountant.price([noise.loss() for noise in used]),
        max_rows=table.max_rows,
    )


class _Refusal:
    """Raises a sentence at the publication's place in the policy."""

    def __init__(self, policy: Policy, terms: PublicationTerms) -> None:
        self._policy = policy
        self._name = terms.name

    def __call__(self, message: str, *place: str) -> NoReturn:
        what = f"publications.{self._name}: {message}"
        raise PolicyError(self._policy.problem("publications", self._name, *place, message=what))


def _axis(table: Table, column: Column, refuse: _Refusal) -> Axis:
    size = column.domain.size
    if size is None or size > MOST_VALUES:
        why = "its values are not declared"
        if size is not None:
            why = f"it has {size:,} values, and {MOST_VALUES:,} is the most"
        refuse(
            f"{table.name}.{column.name} cannot be in a table: {why}. Declare fewer values.",
            "tables",
        )
    return Axis(column=column, bins=size)


def _movement(policy: Policy, table: Table) -> Movement:
    times = 2 if policy.neighbors == "change_one" else 1
    return Movement(l1=times * table.max_rows, l2_squared=times * table.max_rows**2)


def _noises(
    terms: PublicationTerms,
    grid: Grid,
    places: Places,
    accountant: Accountant,
    moved: Movement,
    refuse: _Refusal,
) -> tuple[tuple[Additive | None, ...], ...]:
    money = currency(accountant.name)
    amount = accountant.allot(epsilon=terms.epsilon)
    shares = split(
        grid,
        places.sizes,
        [float(each.weight) for each in terms.tables],
        money.norm,
        levels=None if terms.levels is None else [terms.levels[level] for level in places.levels],
        tables=None if terms.shares is None else [terms.shares[each.name] for each in terms.tables],
    )
    found = tuple(
        tuple(money.noise(amount=amount * share, moved=moved) if share else None for share in row)
        for row in shares
    )
    if not any(noise for row in found for noise in row):
        refuse(
            "the split leaves nothing to measure. Give some level and some table a share above zero.",
            "split",
        )
    return found


def _require_storable(
    noises: tuple[tuple[Additive | None, ...], ...], grid: Grid, places: Places, refuse: _Refusal
) -> None:
    """Refuse what could not be stored after it was paid for; noise hardly compresses."""
    stored = 0
    for size, row in zip(places.sizes, noises, strict=True):
        for table, noise in zip(grid.tables, row, strict=True):
            if noise is not None:
                stored += size * grid.cells(table) * (2 if noise.deviation < _WIDE else 4)
    if stored > MOST_STORED:
        refuse(
            f"its measurements take {stored:,} bytes, and {MOST_STORED:,} is the most that is stored as one answer. "
            "Give the largest table no share at the finest level, declare coarser values, or publish one region at a "
            "time."
        )


def _where(
    policy: Policy,
    table: Table,
    terms: PublicationTerms,
    places: Places,
    home: str | None,
    refuse: _Refusal,
) -> tuple[TableSource, list[Axis], tuple[tuple[Integers, ...], ...], tuple[tuple[int, ...], ...]]:
    """Return the columns that say where a row is, and what their values mean at every level."""
    source = source_of(policy, table)
    levels = range(len(places.levels))
    if home is None:
        axes = [_axis(table, table.columns[level], refuse) for level in terms.hierarchy.levels]
        reach = tuple(
            tuple(
                np.arange(axis.size) if at < level else np.zeros(axis.size, np.int64)
                for at, axis in enumerate(axes)
            )
            for level in levels
        )
        return (
            source,
            axes,
            reach,
            tuple(
                tuple(axis.size if at < level else 1 for at, axis in enumerate(axes))
                for level in levels
            ),
        )
    finest = terms.hierarchy.levels[-1]
    column = table.columns.get(finest)
    if column is None:
        refuse(
            f"{table.name} has no column {finest}, the finest level of {terms.hierarchy.name}.",
            "hierarchy",
        )
    names = places.names[-1]
    if isinstance(column.domain, Texts):
        values = (*names, OTHER)
        source = source.listing(finest, values)
        column = Column(name=finest, domain=Categories(values=values), nullable=column.nullable)
        axis = Axis(column=column, bins=len(values))
        code = np.append(np.arange(len(names)), np.full(axis.size - len(names), -1))
    else:
        size = column.domain.size
        if size is None or size > 100 * MOST_VALUES:
            refuse(
                f"{table.name}.{finest} names places, so it must be text, a list or a short range.",
                "hierarchy",
            )
        axis = Axis(column=column, bins=size)
        known = {name: place for place, name in enumerate(names)}
        code = np.array(
            [known.get(axis.label(each), -1) for each in range(axis.size)], dtype=np.int64
        )
    reach = tuple((np.where(code >= 0, places.above(level)[code], -1),) for level in levels)
    return source, [axis], reach, tuple((places.sizes[level],) for level in levels)


def _count(source: TableSource, keys: list[Axis], axes: tuple[Axis, ...]) -> Aggregate:
    """Count rows by finest place and cell of all columns; a row without a place or a value is in no
    table.
    """
    every = [*keys, *axes]
    places = tuple(Cast(axis.position(source.values[axis.name]), "BIGINT") for axis in every)
    names = [axis.name for axis in every]
    return Aggregate(source.rows(names), places, (Sum(),), known=tuple(range(len(places))))


def _zeros(
    terms: PublicationTerms, axes: tuple[Axis, ...], grid: Grid, refuse: _Refusal
) -> NDArray[np.bool_] | None:
    """Flag the cells of all columns that nobody can be in."""
    if not terms.zeros:
        return None
    found = np.zeros(grid.sizes, dtype=bool)
    for combination in terms.zeros:
        here = np.ones(grid.sizes, dtype=bool)
        for place, axis in enumerate(axes):
            if axis.name in combination:
                chosen = np.zeros(axis.size, dtype=bool)
                for text in combination[axis.name]:
                    try:
                        chosen[axis.code(text)] = True
                    except UsageError as error:
                        refuse(f"zeros: {error}", "zeros")
                here &= chosen.reshape([-1 if at == place else 1 for at in range(len(axes))])
        found |= here
    if found.all():
        refuse("its zeros leave no cell that anybody can be in.", "zeros")
    return found.ravel()


def _totals(
    terms: PublicationTerms, places: Places, public: Mapping[str, pa.Table], refuse: _Refusal
) -> tuple[Integers | None, ...]:
    """Return the exact totals of levels, from public tables; the total of everywhere is their
    sum.
    """
    found: list[Integers | None] = [None] * len(places.levels)
    for each in terms.invariants:
        level = places.levels.index(each.level)
        found[level] = _list(
            each.values, each.level, places.names[level], public[each.values], refuse
        )
    known = [level for level, totals in enumerate(found) if totals is not None]
    for level in range((known[-1] if known else 0) - 1, -1, -1):
        below = found[level + 1]
        assert below is not None
        added = np.bincount(
            places.parents[level + 1], weights=below, minlength=places.sizes[level]
        ).astype(np.int64)
        declared = found[level]
        if declared is not None and not np.array_equal(added, declared):
            refuse(
                f"invariants: the totals of {places.levels[level]} are not the sums of those of "
                f"{places.levels[level + 1]}. Correct the public tables.",
                "invariants",
            )
        found[level] = added
    return tuple(found)


def _list(
    table: str, level: str, names: tuple[str, ...], rows: pa.Table, refuse: _Refusal
) -> Integers:
    wanted = ("count",) if len(names) == 1 and level not in rows.column_names else (level, "count")
    missing = [column for column in wanted if column not in rows.column_names]
    if missing:
        refuse(
            f"invariants: {table} needs the columns {' and '.join(wanted)}; it has no {missing[0]}.",
            "invariants",
        )
    counts = rows.column("count").to_pylist()
    keys = (
        [str(each) for each in rows.column(level).to_pylist()]
        if level in wanted
        else [names[0]] * len(counts)
    )
    if not all(isinstance(count, int) and 0 <= count < 2**40 for count in counts):
        refuse(
            f"invariants: the counts of {table} must be whole numbers, none below zero.",
            "invariants",
        )
    known = dict(zip(keys, counts, strict=True))
    if len(known) < len(keys) or set(known) != set(names):
        refuse(f"invariants: {table} must list every {level} of the hierarchy once.", "invariants")
    return np.array([known[name] for name in names], dtype=np.int64)
