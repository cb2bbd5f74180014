"""Measure how exposed the people of a table are: k, l, t, who is unique by which columns, and the
risks that follow.

One group-by on DuckDB finds the classes of people who share all quasi-identifiers; everything else
is arithmetic on their sizes, so a table of any length is measured in the memory that its distinct
combinations need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.anonymity import guarantee as judge
from discreet.anonymity.guarantee import Closeness, Ground
from discreet.anonymity.hierarchies import Hierarchy, Spec, build
from discreet.anonymity.population import PopulationUniques, estimate
from discreet.anonymity.source import (
    Flags,
    Floats,
    Groups,
    Integers,
    SourceTable,
    group_rows,
    open_table,
    plain,
    view,
)
from discreet.engines.quoting import name as quoted
from discreet.errors import UsageError

MOST_SUBSETS = 1100  # all subsets of ten columns; of more columns the small ones
_SHOWN = 10
_RISKY = 0.2  # the usual threshold of a risk that is too high: a class of fewer than five


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniqueness:
    """The number of rows that are alone in some columns."""

    columns: tuple[str, ...]
    unique: int
    classes: int

    def as_json(self, rows: int) -> dict[str, object]:
        share = self.unique / rows if rows else 0.0
        return {
            "columns": list(self.columns),
            "unique": self.unique,
            "share": share,
            "classes": self.classes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitive:
    """The most that any class gives away about one column.

    `dominance`: the most frequent value over all others together; recursive (c, 2)-diversity holds
    for any larger c.
    """

    column: str
    values: int
    l: int  # noqa: E741
    entropy_l: float
    dominance: float | None
    t: float
    t_by: Mapping[str, float]
    homogeneous_rows: int

    def as_json(self) -> dict[str, object]:
        return {
            "column": self.column,
            "values": self.values,
            "l": {
                "distinct": self.l,
                "entropy": self.entropy_l,
                "recursive": {"l": 2, "c": self.dominance},
            },
            "t": dict(self.t_by),
            "homogeneous_rows": self.homogeneous_rows,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The chance that somebody is found: the worst person's, the average, and the share of people
    above one in five.
    """

    highest: float
    average: float
    above: float

    def as_json(self) -> dict[str, object]:
        return {"highest": self.highest, "average": self.average, "share_above_0.2": self.above}


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """The figures that `risk` prints.

    The prosecutor knows that the target is in the table; the journalist only that the target is in
    the population; the marketer wants as many people as possible.
    """

    rows: int
    quasi: tuple[str, ...]
    k: int
    classes: int
    unique: int
    sizes: Mapping[str, int]
    unique_by_columns: tuple[Uniqueness, ...]
    every_subset: bool
    exposed_by: Mapping[int, int]
    exposed: tuple[tuple[Mapping[str, Any], int], ...]
    prosecutor: Scenario
    journalist: Scenario | None
    marketer: float
    population: PopulationUniques | None
    sensitive: Sensitive | None

    def as_json(self, *, reveal: bool = False) -> dict[str, object]:
        told: dict[str, object] = {
            "k": self.k,
            "l": None if self.sensitive is None else self.sensitive.l,
            "t": None if self.sensitive is None else self.sensitive.t,
            "classes": self.classes,
            "unique": self.unique,
            "unique_by_columns": [each.as_json(self.rows) for each in self.unique_by_columns],
            "every_subset": self.every_subset,
            "rows": self.rows,
            "rows_by_class_size": dict(self.sizes),
            "exposed_by_columns": {str(number): rows for number, rows in self.exposed_by.items()},
            "prosecutor": self.prosecutor.as_json(),
            "journalist": None if self.journalist is None else self.journalist.as_json(),
            "marketer": self.marketer,
            "population_unique": None if self.population is None else self.population.as_json(),
            "sensitive": None if self.sensitive is None else self.sensitive.as_json(),
        }
        if reveal:
            told["exposed"] = [
                {"values": {name: plain(value) for name, value in values.items()}, "rows": rows}
                for values, rows in self.exposed
            ]
        return told


def risk(
    data: pa.Table | str | Path,
    *,
    quasi: Sequence[str],
    sensitive: str | None = None,
    population: pa.Table | str | Path | None = None,
    fraction: float | None = None,
    hierarchies: Mapping[str, Spec] | None = None,
) -> Risk:
    """Measure a table. `population`: everybody, with the same columns; `fraction`: the table's
    share of everybody.
    """
    with open_table(data) as source:
        measured = measure(source, quasi=quasi, sensitive=sensitive, hierarchies=hierarchies)
        if population is None and fraction is None:
            return measured.risk
        if population is not None and fraction is not None:
            raise UsageError("Give the population or the sampling fraction, not both.")
        if population is not None:
            return measured.in_population(_everybody(source, population, quasi))
        return replace(measured.risk, population=estimate(measured.sizes, fraction or 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskDetail:
    """A risk, and the class sizes behind it."""

    risk: Risk
    sizes: Integers

    def in_population(self, everybody: Floats) -> Risk:
        """Return the risk when the class of each person has so many members in the population."""
        sizes = np.maximum(everybody, self.sizes)
        rows = max(1, int(self.sizes.sum()))
        return replace(
            self.risk,
            journalist=_scenario(self.sizes, sizes),
            marketer=float((self.sizes / sizes).sum() / rows),
        )


def measure(
    source: SourceTable,
    *,
    quasi: Sequence[str],
    sensitive: str | None,
    hierarchies: Mapping[str, Spec] | None = None,
) -> RiskDetail:
    if not quasi:
        raise UsageError(
            "Name at least one quasi-identifier: a column that others may know about people."
        )
    source.require([*quasi, *([sensitive] if sensitive else [])], what="risk")
    groups = source.groups([*quasi, *([sensitive] if sensitive else [])])
    classes, number = classes_of(groups, len(quasi))
    sizes = np.bincount(classes, groups.counts, number).astype(np.int64)
    subsets, smallest, complete = _subsets(groups, quasi, classes, number)
    found = Risk(
        rows=source.rows,
        quasi=tuple(quasi),
        k=int(sizes.min()) if number else 0,
        classes=number,
        unique=int((sizes == 1).sum()),
        sizes=by_size(sizes),
        unique_by_columns=subsets,
        every_subset=complete,
        exposed_by=smallest,
        exposed=_smallest(groups, quasi, classes, sizes),
        prosecutor=_scenario(sizes, sizes.astype(np.float64)),
        journalist=None,
        marketer=number / max(1, source.rows),
        population=None,
        sensitive=None
        if sensitive is None
        else about(groups, sensitive, classes, number, tree_of(hierarchies, sensitive, groups)),
    )
    return RiskDetail(risk=found, sizes=sizes)


def classes_of(groups: Groups, columns: int) -> tuple[Integers, int]:
    """Return the class of each row group by its first columns. Groups are sorted, so equal ones
    stand together.
    """
    if not len(groups.counts):
        return np.zeros(0, dtype=np.int64), 0
    new = np.zeros(len(groups.counts), dtype=np.bool_)
    for codes in groups.codes[:columns]:
        new[1:] |= codes[1:] != codes[:-1]
    classes = np.cumsum(new, dtype=np.int64)
    return classes, int(classes[-1]) + 1


def tree_of(
    hierarchies: Mapping[str, Spec] | None, column: str, groups: Groups
) -> Hierarchy | None:
    spec = (hierarchies or {}).get(column)
    return None if spec is None else build(spec, column, groups.values[groups.position(column)])


def about(
    groups: Groups, column: str, classes: Integers, number: int, tree: Hierarchy | None
) -> Sensitive:
    """Return l and t of one column, of all kinds."""
    index = groups.position(column)
    codes = groups.codes[index]
    values = groups.values[index]
    whole = np.bincount(codes, groups.counts, len(values)).astype(np.float64)
    grounds: dict[Ground, Closeness] = {
        ground: Closeness(t=1.0, ground=ground, whole=whole, tree=tree)
        for ground in (
            ("equal", "ordered") if tree is None else ("equal", "ordered", "hierarchical")
        )
    }
    least = len(values)
    entropy = np.inf
    dominance = 0.0
    homogeneous = 0
    worst = dict.fromkeys(grounds, 0.0)
    for _, counts in judge.blocks(classes, number, codes, groups.counts, len(values)):
        different = judge.distinct(counts)
        least = min(least, int(different.min()))
        homogeneous += int(counts[different == 1].sum())
        entropy = min(entropy, float(judge.effective(counts).min()))
        dominance = max(
            dominance, float(judge.dominance(counts, 2).max()) if counts.shape[1] > 1 else np.inf
        )
        for ground, closeness in grounds.items():
            worst[ground] = max(worst[ground], float(closeness.distance(counts).max()))
    return Sensitive(
        column=column,
        values=len(values),
        l=least,
        entropy_l=float(entropy) if number else 0.0,
        dominance=dominance if np.isfinite(dominance) else None,
        t=worst[ground_of(values)],
        t_by={str(ground): distance for ground, distance in worst.items()},
        homogeneous_rows=homogeneous,
    )


def ground_of(values: pa.Array) -> Ground:
    """Return the ground distance that a column's type suggests: numbers and dates have an order."""
    kind = values.type
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return "ordered" if numeric or pa.types.is_temporal(kind) else "equal"


def by_size(sizes: Integers) -> dict[str, int]:
    """Count the rows in classes of 1, 2, 3-4, 5-9, 10-99 and more."""
    edges = {
        "1": (1, 1),
        "2": (2, 2),
        "3-4": (3, 4),
        "5-9": (5, 9),
        "10-99": (10, 99),
        "100+": (100, 2**62),
    }
    return {
        name: int(sizes[(sizes >= low) & (sizes <= high)].sum())
        for name, (low, high) in edges.items()
    }


def _scenario(sizes: Integers, everybody: Floats) -> Scenario:
    rows = max(1, int(sizes.sum()))
    if not len(sizes):
        return Scenario(highest=0.0, average=0.0, above=0.0)
    risks = 1 / everybody
    return Scenario(
        highest=float(risks.max()),
        average=float((risks * sizes).sum() / rows),
        above=float(sizes[risks > _RISKY].sum() / rows),
    )


def _smallest(
    groups: Groups, quasi: Sequence[str], classes: Integers, sizes: Integers
) -> tuple[tuple[Mapping[str, Any], int], ...]:
    """Return the smallest classes, for the curator's eyes."""
    smallest = np.argsort(sizes, kind="stable")[:_SHOWN]
    first = np.searchsorted(classes, smallest)
    return tuple(
        (
            {
                name: groups.values[i][int(groups.codes[i][row])].as_py()
                for i, name in enumerate(quasi)
            },
            int(sizes[each]),
        )
        for each, row in zip(smallest, first, strict=True)
    )


# Subsets of columns.


def _subsets(
    groups: Groups, quasi: Sequence[str], classes: Integers, number: int
) -> tuple[tuple[Uniqueness, ...], dict[int, int], bool]:
    """Return uniqueness by every subset, the unique rows by one column, by two...; and if all
    subsets were tried.

    Subsets are grouped from the classes, not from the rows.
    """
    first = np.searchsorted(classes, np.arange(number))
    codes = [column[first] for column in groups.codes[: len(quasi)]]
    sizes = np.bincount(classes, groups.counts, number).astype(np.int64)
    largest = _largest_size(len(quasi))
    # the fewest columns that single a class's one member out
    alone_by = np.zeros(number, dtype=np.int64)
    found = []
    for subset in _subsets_to_try(len(quasi), largest):
        alone, distinct = _alone(codes, sizes, subset)
        found.append(
            Uniqueness(
                columns=tuple(quasi[i] for i in subset), unique=int(alone.sum()), classes=distinct
            )
        )
        alone_by[alone & ((alone_by == 0) | (alone_by > len(subset)))] = len(subset)
    found.sort(key=lambda each: (len(each.columns), -each.unique))
    tried = sorted({len(each.columns) for each in found})
    counts = {size: int((alone_by == size).sum()) for size in tried}
    return tuple(found), counts, largest >= len(quasi)


def _largest_size(columns: int) -> int:
    total = 0
    for size in range(1, columns + 1):
        total += comb(columns, size)
        if total > MOST_SUBSETS:
            return size - 1
    return columns


def _subsets_to_try(columns: int, largest: int) -> Iterator[tuple[int, ...]]:
    for size in range(1, largest + 1):
        yield from combinations(range(columns), size)
    if largest < columns - 1:
        yield from combinations(range(columns), columns - 1)
    if largest < columns:
        yield tuple(range(columns))


def _alone(codes: Sequence[Integers], sizes: Integers, subset: Sequence[int]) -> tuple[Flags, int]:
    """Flag classes of one row that is alone in these columns; also count the different rows of the
    columns.
    """
    keys = np.zeros(len(sizes), dtype=np.int64)
    space = 1
    for index in subset:
        width = int(codes[index].max()) + 1 if len(sizes) else 1
        if space * width > 2**62:
            keys = np.unique(keys, return_inverse=True)[1]
            space = len(sizes)
        keys = keys * width + codes[index]
        space = space * width
    if space <= 4 * len(sizes) + 1024:
        counts = np.bincount(keys, sizes, space)
        return counts[keys] == 1, int((counts > 0).sum())
    found, keys = np.unique(keys, return_inverse=True)
    return np.bincount(keys, sizes)[keys] == 1, len(found)


def _everybody(
    source: SourceTable, population: pa.Table | str | Path, quasi: Sequence[str]
) -> Floats:
    """Return the size in the population of each class of the table, in the order of the table's
    classes.
    """
    connection = source.connection
    if isinstance(population, pa.Table):
        connection.register("population", population)
    else:
        path = Path(population)
        if not path.is_file() or path.suffix not in (".csv", ".parquet"):
            raise UsageError(
                f"The population must be a .csv or .parquet file that is there, not {path}."
            )
        view(connection, "population", path, {})
    has = {name for name, *_ in connection.execute("DESCRIBE population").fetchall()}
    missing = [name for name in quasi if name not in has]
    if missing:
        raise UsageError(f"The population has no column {', '.join(missing)}.")
    names = ", ".join(quoted(name) for name in quasi)
    same = " AND ".join(f"s.{quoted(name)} IS NOT DISTINCT FROM p.{quoted(name)}" for name in quasi)
    listed = ", ".join(f"s.{quoted(name)}" for name in quasi)
    found = source.arrow(
        f"WITH s AS (SELECT DISTINCT {names} FROM data), "
        f"p AS (SELECT {names}, COUNT(*) AS there FROM population GROUP BY ALL) "
        f"SELECT {listed}, coalesce(there, 0) AS everybody FROM s LEFT JOIN p ON {same}"
    )
    return group_rows(found).counts.astype(np.float64)
