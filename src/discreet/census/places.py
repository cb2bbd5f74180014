"""The tree of places: which block is in which tract. It comes from a public table or from the
declared values of columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
import pyarrow as pa

from discreet.census.grid import Integers
from discreet.errors import PolicyError, Problem
from discreet.policy.policy import Policy, Table
from discreet.policy.publication import EVERYWHERE, Hierarchy
from discreet.synthetic.columns.axis import Axis

MOST_PLACES = 20_000_000  # at the finest level


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Places:
    """Levels from the one place that is everywhere down to the finest; children of one place stand
    together.

    `names[l][i]` is what place i of level l is called, `parents[l][i]` the place of the level above
    it lies in.
    """

    levels: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]
    parents: tuple[Integers, ...]  # the first one is empty

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(names) for names in self.names)

    @property
    def starts(self) -> tuple[Integers, ...]:
        """For every level but the finest, where each place's children begin in the next one."""
        pairs = zip(self.parents[1:], self.sizes, strict=False)
        return tuple(np.searchsorted(parents, np.arange(size)) for parents, size in pairs)

    def above(self, level: int) -> Integers:
        """Return, for each place of the finest level, the place of a level that contains it."""
        found = np.arange(self.sizes[-1])
        for parents in self.parents[:level:-1]:
            found = parents[found]
        return found

    def path(self, level: int) -> list[list[str]]:
        """Return, for every level from the second to this one, the names of places that hold this
        level's places.
        """
        columns = []
        found = np.arange(self.sizes[level])
        for at in range(level, 0, -1):
            columns.append([self.names[at][place] for place in found.tolist()])
            found = self.parents[at][found]
        return columns[::-1]


def from_columns(hierarchy: Hierarchy, axes: tuple[Axis, ...]) -> Places:
    """Return every combination of the declared values of some columns."""
    names: list[tuple[str, ...]] = [(EVERYWHERE,)]
    parents: list[Integers] = [np.zeros(0, dtype=np.int64)]
    for axis in axes:
        above = len(names[-1])
        here = [axis.label(code) for code in range(axis.size)]
        names.append(tuple(here * above))
        parents.append(np.repeat(np.arange(above), axis.size))
    return Places(
        levels=(EVERYWHERE, *hierarchy.levels), names=tuple(names), parents=tuple(parents)
    )


def from_table(hierarchy: Hierarchy, table: pa.Table, problem: Problem, *, called: str) -> Places:
    """Read the places that a public table lists; refuse a place with two parents."""
    columns = [table.column(level).cast(pa.string()) for level in hierarchy.levels]
    if any(column.null_count for column in columns):
        empty = next(
            level
            for level, column in zip(hierarchy.levels, columns, strict=True)
            if column.null_count
        )
        _refuse(
            problem, f"{called} has rows without a {empty}. Fill them in, or leave the rows out."
        )
    rows = (
        pa.table(dict(zip(hierarchy.levels, columns, strict=True)))
        .group_by(list(hierarchy.levels))
        .aggregate([])
    )
    if not rows.num_rows:
        _refuse(
            problem, f"{called} is empty: list the places, one row for each {hierarchy.levels[-1]}."
        )
    rows = rows.sort_by([(level, "ascending") for level in hierarchy.levels])
    names: list[tuple[str, ...]] = [(EVERYWHERE,)]
    parents: list[Integers] = [np.zeros(0, dtype=np.int64)]
    above = [0] * rows.num_rows
    for level, coarser in zip(hierarchy.levels, (None, *hierarchy.levels), strict=False):
        values = rows.column(level).to_pylist()
        found: dict[str, int] = {}
        up: list[int] = []
        here = []
        for value, parent in zip(values, above, strict=True):
            place = found.setdefault(value, len(found))
            if place == len(up):
                up.append(parent)
            elif up[place] != parent:
                one = names[-1][up[place]]
                other = names[-1][parent]
                _refuse(
                    problem,
                    f"{called} has the {level} {value} in two places: in the {coarser} {one} and in {other}. "
                    f"Give every {level} a name that occurs once, such as {one}-{value}.",
                )
            here.append(place)
        names.append(tuple(found))
        parents.append(np.array(up, dtype=np.int64))
        above = here
    return Places(
        levels=(EVERYWHERE, *hierarchy.levels), names=tuple(names), parents=tuple(parents)
    )


def places_of(
    policy: Policy, hierarchy: Hierarchy, table: Table, public: Mapping[str, pa.Table]
) -> tuple[Places, str | None]:
    """Return the tree of a hierarchy and its public table; None if it is from columns of the
    private one.
    """
    problem = policy.problem("hierarchies", hierarchy.name, message="")
    home = hierarchy.table
    if home is None:
        having = hierarchy.homes({name: each.column_names for name, each in public.items()})
        if len(having) > 1:
            _refuse(
                problem,
                f"hierarchies.{hierarchy.name}: {' and '.join(sorted(having))} both have these columns. Say which one: "
                f"{{levels: [{', '.join(hierarchy.levels)}], table: {sorted(having)[0]}}}.",
            )
        home = having[0] if having else None
    if home is not None:
        missing = [level for level in hierarchy.levels if level not in public[home].column_names]
        if missing:
            _refuse(
                problem,
                f"hierarchies.{hierarchy.name}: {home} has no column {missing[0]}; it has "
                f"{', '.join(public[home].column_names)}.",
            )
        return from_table(
            hierarchy, public[home], problem, called=f"hierarchies.{hierarchy.name}: {home}"
        ), home
    axes = []
    for level in hierarchy.levels:
        column = table.columns.get(level)
        if column is None or column.domain.size is None:
            _refuse(
                problem,
                f"hierarchies.{hierarchy.name}: no public table has the column {level}, and {table.name} does not "
                "declare its values. Add a public table with all levels as columns, or declare the values.",
            )
        axes.append(Axis(column=column, bins=column.domain.size))
    if math.prod(axis.size for axis in axes) > MOST_PLACES:
        _refuse(
            problem,
            f"hierarchies.{hierarchy.name}: the values combine to more than {MOST_PLACES} places.",
        )
    return from_columns(hierarchy, tuple(axes)), None


def _refuse(problem: Problem, message: str) -> NoReturn:
    raise PolicyError(replace(problem, message=message))
