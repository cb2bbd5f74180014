"""The variables of the census attack: cells of records that published statistics cannot tell apart.

Two records are *twins* if they are in the same groups and do not differ in any averaged column. No
statistic can tell them apart, so they share a cell, and the solver need not search among them. One
numeric column, the *long* one (age), is kept as an interval of positions within a cell. So a block
of thirty people needs about seventy cells instead of a thousand records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, product
from math import ceil, comb, floor, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.attacks.inputs.published import (
    Count,
    Group,
    Quantile,
    RecordColumn,
    Statistic,
    Tables,
)
from discreet.errors import UsageError

MOST_KINDS = 200_000

Kind = tuple[frozenset[int], ...]
"""For each column except the long one, a set of values that no statistic tells apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordCell:
    """Records with the long column in [low, high] that lie in the same groups, `twins` of them at
    each position.
    """

    low: int
    high: int
    groups: frozenset[int]
    values: tuple[tuple[str, int], ...]
    twins: int
    kinds: tuple[Kind, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A domain seen through the statistics about it: which column is long, which are measured,
    which groups exist.
    """

    tables: Tables
    long: RecordColumn | None
    others: tuple[RecordColumn, ...]
    groups: tuple[Group, ...]
    measured: frozenset[str]

    @classmethod
    def of(cls, tables: Tables) -> Frame:
        measured = {s.column for s in tables.statistics if not isinstance(s, Count)}
        even = [tables.column(name) for name in sorted(measured)]
        # positions add up
        even = [column for column in even if len(set(np.diff(column.numbers).tolist())) <= 1]
        long = max(even, key=lambda column: len(column.values), default=None)
        return cls(
            tables=tables,
            long=long,
            others=tuple(column for column in tables.columns if column is not long),
            groups=tuple({frozenset(s.group.items()): s.group for s in tables.statistics}.values()),
            measured=frozenset(measured),
        )

    def group(self, statistic: Statistic) -> int:
        return self.groups.index(statistic.group)

    @property
    def conditions(self) -> list[Group]:
        return [*self.groups, *(side for rule in self.tables.rules for side in rule)]

    def parts(self, column: RecordColumn) -> list[frozenset[int]]:
        """Return the values of a column as sets that no condition tells apart."""
        if column.name in self.measured:
            return [frozenset({i}) for i in range(len(column.values))]
        alike: dict[tuple[bool, ...], set[int]] = {}
        named = [
            condition[column.name] for condition in self.conditions if column.name in condition
        ]
        for i in range(len(column.values)):
            alike.setdefault(tuple(i in allowed for allowed in named), set()).add(i)
        return [frozenset(part) for part in alike.values()]

    def runs(self) -> list[tuple[int, int]]:
        """Return the intervals of the long column within which no condition changes."""
        if self.long is None:
            return [(0, 0)]
        named = [
            condition[self.long.name]
            for condition in self.conditions
            if self.long.name in condition
        ]
        size = len(self.long.values)
        starts = [
            i
            for i in range(size)
            if i == 0 or any((i in allowed) != (i - 1 in allowed) for allowed in named)
        ]
        return list(zip(starts, [start - 1 for start in starts[1:]] + [size - 1], strict=True))

    def inside(self, group: Group, kind: Kind, at: int) -> bool:
        if self.long is not None and self.long.name in group and at not in group[self.long.name]:
            return False
        return all(
            part <= group[c.name]
            for c, part in zip(self.others, kind, strict=True)
            if c.name in group
        )

    def allowed(self, kind: Kind, at: int) -> bool:
        if self.tables.part and not self.groups_of(kind, at):
            return False
        return all(
            not self.inside(a, kind, at) or self.inside(b, kind, at) for a, b in self.tables.rules
        )

    def groups_of(self, kind: Kind, at: int) -> frozenset[int]:
        return frozenset(g for g, group in enumerate(self.groups) if self.inside(group, kind, at))

    def values(self, kind: Kind) -> tuple[tuple[str, int], ...]:
        """Return the numbers of the averaged columns, except the long one. In these columns a kind
        has a single value.
        """
        pairs = zip(self.others, kind, strict=True)
        return tuple(
            (c.name, c.numbers[next(iter(part))]) for c, part in pairs if c.name in self.measured
        )

    def positions(self, low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
        """Convert a range of the long column's values to an exact range of positions."""
        assert self.long is not None
        first, step = spacing(self.long)
        return (low - first) / step, (high - first) / step

    def bounds(self, quantile: Quantile) -> set[int]:
        """Return where a published quantile cuts the long column: around each of its possible
        positions.
        """
        assert self.long is not None
        low, high = self.positions(quantile.low, quantile.high)
        return set(range(max(ceil(low), 0), min(floor(high), len(self.long.values) - 1) + 2))

    def records(self, cell: RecordCell, position: int) -> Iterator[dict[str, Any]]:
        """Yield the records of a cell at one position, each as a row of the published domain."""
        for kind in cell.kinds:
            for choice in product(*map(sorted, kind)):
                row = {
                    column.name: column.values[i]
                    for column, i in zip(self.others, choice, strict=True)
                }
                if self.long is not None:
                    row[self.long.name] = self.long.values[position]
                yield {column.name: row[column.name] for column in self.tables.columns}


def spacing(column: RecordColumn) -> tuple[int, int]:
    """Return the first number of a column, and the step from one to the next."""
    numbers = column.numbers
    return numbers[0], numbers[1] - numbers[0] if len(numbers) > 1 else 1


def cells(frame: Frame, cuts: frozenset[int] = frozenset()) -> tuple[RecordCell, ...]:
    """Return the cells of the domain, cut wherever a group, a rule or a published quantile begins
    or ends, and at the positions `cuts`.
    """
    parts = [frame.parts(column) for column in frame.others]
    if prod(map(len, parts)) > MOST_KINDS:
        raise UsageError(
            f"These statistics tell more than {MOST_KINDS:,} kinds of people apart. Give the measured columns a "
            "coarser grid, or leave out columns that no statistic is about."
        )
    runs = frame.runs()
    alike: dict[object, list[Kind]] = {}
    for kind in product(*parts):  # kinds in the same groups at every position are twins throughout
        profile = tuple((frame.allowed(kind, at), frame.groups_of(kind, at)) for at, _ in runs)
        if any(allowed for allowed, _ in profile):
            alike.setdefault((profile, frame.values(kind)), []).append(kind)
    return tuple(cell for kinds in alike.values() for cell in _cut(frame, runs, kinds, cuts))


def _cut(
    frame: Frame, runs: Sequence[tuple[int, int]], kinds: list[Kind], cuts: frozenset[int]
) -> Iterator[RecordCell]:
    kind = kinds[0]
    touched = frozenset().union(*(frame.groups_of(kind, at) for at, _ in runs))
    quantiles = [
        s for s in frame.tables.statistics if isinstance(s, Quantile) and frame.group(s) in touched
    ]
    at_quantiles = [
        frame.bounds(s) for s in quantiles if frame.long and s.column == frame.long.name
    ]
    bounds = set(cuts).union(*at_quantiles)
    for start, end in runs:
        if not frame.allowed(kind, start):
            continue
        for low, after in pairwise(
            [start, *sorted(b for b in bounds if start < b <= end), end + 1]
        ):
            yield RecordCell(
                low=low,
                high=after - 1,
                groups=frame.groups_of(kind, start),
                values=frame.values(kind),
                twins=sum(prod(map(len, kind)) for kind in kinds),
                kinds=tuple(kinds),
            )


def arrangements(width: int, twins: int, n: int, total: int) -> int:
    """Return the number of multisets of n records whose positions have this sum. There are `twins`
    records at each of the positions 0 .. width - 1.
    """
    if n == 0:
        return int(total == 0)
    if width <= 0 or not 0 <= total <= n * (width - 1):
        return 0
    if width == 1:
        return comb(n + twins - 1, n)
    return int(_table(width, twins, n)[n, total])


@lru_cache(maxsize=256)
def _table(width: int, twins: int, n: int) -> NDArray[np.object_]:
    """Return the coefficients, as Python's integers, of the product over all positions v of
    (1 - x q^v)^-twins, up to x^n.
    """
    table = np.zeros((n + 1, n * (width - 1) + 1), dtype=object)
    table[0, 0] = 1
    for v in range(width):
        if twins <= n:
            # add the records one by one, each any number of times
            for size in list(range(1, n + 1)) * twins:
                table[size, v:] += table[size - 1, : table.shape[1] - v]
        else:
            before = table.copy()
            for size in range(1, n + 1):
                for copies in range(1, size + 1):
                    shifted = before[size - copies, : table.shape[1] - v * copies]
                    table[size, v * copies :] += comb(copies + twins - 1, copies) * shifted
    return table
