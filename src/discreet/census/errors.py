"""Compute how wrong a publication is: before it is paid for, from its plan; afterwards, from what
was released.

Before: the deviation of every table's estimates by level, which depends on public sizes and noise
alone. Afterwards: take the published whole numbers for the truth, add noise to them again, and
repeat everything. The distance between both results estimates how far the first is from the truth,
with the bias of small counts. Margins are twice as wide as that, which covers 95 % and more on
generated countries. The draws come from a public key, so everybody who repeats this gets the same
(S11).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from discreet.census.counts import Counts
from discreet.census.grid import Columns, Floats, Grid, Integers
from discreet.census.measure import Noisy, levels_of
from discreet.census.plan import PublicationPlan
from discreet.census.solve.least_squares import (
    AT_ONCE,
    Level,
    by_table,
    final_precisions,
    precisions_below,
)
from discreet.census.solve.top_down import top_down
from discreet.census.workers import Workers
from discreet.mechanisms.shapes import Additive
from discreet.noise import Items, Stream
from discreet.vault.integers import compact

SIZES = (0, 1, 10, 100, 1_000, 10_000, 100_000)  # where classes of places and of cells begin
# errors are counted in steps of half a percent, up to more than there are people
_FINE, _FINEST = (200, 12_000)
# what was made is smoother than the truth, so the second time errs less than the first did
_WIDER = 2
_ENOUGH = 2_000  # places whose errors are looked at, over all repetitions
_MOST_TIMES = 10
_QUOTED = (100, 1_000, 10_000)  # people of a place that a quote speaks of


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorForecast:
    """The errors of one table at one level: of the measurements, and of the estimates from them.

    `margin` is the 95 % margin of a measurement; None if the table is not measured at this level.
    `deviation` is that of an estimate, on average over places. `relative` is 1.96 deviations of a
    total, as a share of places of 100, 1,000 and 10,000 people.
    """

    level: str
    table: str
    places: int
    cells: int
    share: float
    margin: int | None
    deviation: float

    def relative(self) -> dict[str, float]:
        return {str(size): 1.96 * self.deviation / size for size in _QUOTED}

    def as_json(self) -> dict[str, object]:
        return {
            "level": self.level,
            "table": self.table,
            "places": self.places,
            "cells": self.cells,
            "share": self.share,
            "margin": self.margin,
            "deviation": self.deviation,
            "relative": self.relative(),
        }


def expect(plan: PublicationPlan) -> list[ErrorForecast]:
    """Return the expected error of every level and table, from the plan alone: by least squares,
    before rounding.
    """
    precisions = _precisions(plan)
    losses = _losses(plan)
    spent = sum(map(sum, losses))
    found = []
    for level, name in enumerate(plan.places.levels):
        for at, table in enumerate(plan.grid.tables):
            noise = plan.noises[level][at]
            variance = np.broadcast_to(
                plan.grid.variance(table, precisions[level]), plan.places.sizes[level]
            )
            found.append(
                ErrorForecast(
                    level=name,
                    table=plan.names[at],
                    places=plan.places.sizes[level],
                    cells=plan.grid.cells(table),
                    share=losses[level][at] / spent,
                    margin=None if noise is None else noise.margin(0.95),
                    deviation=math.sqrt(float(np.mean(variance))),
                )
            )
    return found


def _losses(plan: PublicationPlan) -> list[list[float]]:
    """Return what each level and table costs, in the currency of its noise."""
    return [[0.0 if noise is None else _amount(noise) for noise in row] for row in plan.noises]


def _amount(noise: Additive) -> float:
    loss = noise.loss()
    found = loss.rho if noise.gaussian else loss.epsilon
    assert found is not None
    return float(found)


def _precisions(plan: PublicationPlan) -> list[dict[Columns, Floats]]:
    """Return the precision of every part at every place after least squares over all levels."""
    levels = [
        Level(
            places=size,
            counts={},
            variances={
                table: noise.deviation**2
                for table, noise in zip(plan.grid.tables, row, strict=True)
                if noise
            },
            totals=totals,
            starts=starts,
        )
        for size, row, totals, starts in zip(
            plan.places.sizes, plan.noises, plan.totals, [*plan.places.starts, None], strict=True
        )
    ]
    below = precisions_below(levels, plan.grid)
    found = [below[0]]
    for starts, lower in zip(plan.places.starts, below[1:], strict=True):
        found.append(final_precisions(found[-1], lower, starts))
    return found


# --- afterwards -----------------------------------------------------------------------------------


def make_whole(plan: PublicationPlan, noisy: Noisy, workers: Workers | None = None) -> list[Counts]:
    """Return the whole numbers of every level, computed from the measurements."""
    known = by_table(levels_of(plan, noisy), plan.grid)
    return top_down(
        known, plan.places.starts, plan.grid, totals=plan.totals, zeros=plan.zeros, workers=workers
    )


def simulate(
    plan: PublicationPlan, people: Sequence[Counts], workers: Workers | None = None
) -> pa.Table:
    """Simulate how far the whole numbers are from the truth, by level, table and size of place or
    cell.

    Each row has the number of places (or cells), their mean error in the repetition, the margin
    that 95 % of them keep (see `_WIDER`), and the mean error with its sign, which is the bias.
    """
    times = min(_MOST_TIMES, max(1, math.ceil(_ENOUGH / sum(plan.places.sizes))))
    rows = _Errors()
    by = workers or Workers()
    for time in range(times):
        again = make_whole(plan, _redraw(plan, people, time, by), by)
        for part in by.map(_compare, _pairs(plan, people, again)):
            rows.include(part)
    return rows.table(times)


def _runs(plan: PublicationPlan) -> Iterator[tuple[int, int, int]]:
    """Yield every level with a run of places whose tables fit into memory together."""
    at_once = max(1, AT_ONCE // plan.grid.together)
    for level, places in enumerate(plan.places.sizes):
        for first in range(0, places, at_once):
            yield level, first, min(first + at_once, places)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pair:
    """The people of some places, twice."""

    level: str
    tables: tuple[str, ...]
    grid: Grid
    places: int
    before: Counts
    after: Counts


def _pairs(
    plan: PublicationPlan, before: Sequence[Counts], after: Sequence[Counts]
) -> Iterator[_Pair]:
    for level, first, last in _runs(plan):
        yield _Pair(
            level=plan.places.levels[level],
            tables=plan.names,
            grid=plan.grid,
            places=last - first,
            before=before[level].between(first, last),
            after=after[level].between(first, last),
        )


def _compare(pair: _Pair) -> _Errors:
    """Measure how far the second lies from the first, in every table."""
    rows = _Errors()
    for name, table in zip(pair.tables, pair.grid.tables, strict=True):
        sides = [each.table(pair.grid, table, pair.places) for each in (pair.before, pair.after)]
        before, after = (side.reshape(pair.places, -1).astype(np.float64) for side in sides)
        gap = after - before
        total = before.sum(axis=1)
        rows.note((pair.level, name, "place"), total, np.abs(gap).mean(axis=1), gap.mean(axis=1))
        rows.note((pair.level, name, "cell"), before.ravel(), np.abs(gap).ravel(), gap.ravel())
    return rows


class _Errors:
    """Errors gathered by what they are of and by size: how many, their sum, the sum with signs, and
    how many of each.

    Errors are counted in steps of half a percent, so the one that 95 % keep is at most that much
    too large.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str, int], tuple[Floats, Integers]] = {}

    def note(self, key: tuple[str, str, str], size: Floats, error: Floats, signed: Floats) -> None:
        class_ = np.searchsorted(SIZES, size, side="right") - 1
        for place in np.unique(class_):
            here = class_ == place
            errors = error[here]
            cells = np.ceil(np.log1p(errors) * _FINE - 1e-9).astype(np.int64)
            added = np.array([len(errors), errors.sum(), signed[here].sum()])
            self._add((*key, int(place)), added, np.bincount(cells, minlength=_FINEST + 1))

    def include(self, other: _Errors) -> None:
        for key, (sums, counts) in other._found.items():
            self._add(key, sums, counts)

    def _add(self, key: tuple[str, str, str, int], sums: Floats, counts: Integers) -> None:
        before = self._found.get(key, (np.zeros(3), np.zeros(_FINEST + 1, np.int64)))
        self._found[key] = before[0] + sums, before[1] + counts

    def table(self, times: int) -> pa.Table:
        names = ("level", "table", "of", "from", "below", "number", "error", "margin", "bias")
        rows = []
        for (level, table, of, class_), (sums, counts) in self._found.items():
            number, error, signed = sums.tolist()
            kept = _WIDER * math.expm1(
                int(np.searchsorted(np.cumsum(counts), 0.95 * number)) / _FINE
            )
            below = SIZES[class_ + 1] if class_ + 1 < len(SIZES) else None
            of_what = (level, table, of, SIZES[class_], below, round(number / times))
            rows.append((*of_what, error / number, kept, signed / number))
        return pa.table({name: [row[at] for row in rows] for at, name in enumerate(names)})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Again:
    """The people of some places, to be measured again by noise that is no secret."""

    key: bytes
    level: int
    first: int  # of the places
    places: int
    people: Counts
    grid: Grid
    noises: tuple[Additive | None, ...]


def _redraw(plan: PublicationPlan, people: Sequence[Counts], time: int, workers: Workers) -> Noisy:
    """Measure the given people again, by noise that is no secret."""
    key = hashlib.sha256(f"{plan.question} {time}".encode()).digest()
    tasks = (
        _Again(
            key=key,
            level=level,
            first=first,
            places=last - first,
            people=people[level].between(first, last),
            grid=plan.grid,
            noises=plan.noises[level],
        )
        for level, first, last in _runs(plan)
    )
    parts: dict[tuple[int, int], list[Integers]] = {}
    for level, drawn in workers.map(_draw, tasks):
        for at, counts in drawn.items():
            parts.setdefault((level, at), []).append(counts)
    return {key: np.concatenate(parts.pop(key)) for key in list(parts)}


def _draw(task: _Again) -> tuple[int, dict[int, Integers]]:
    """Draw noisy counts of some places by table. The noise goes by a cell's place among all of its
    level.
    """
    stream = Stream(task.key)
    found = {}
    for at, noise in enumerate(task.noises):
        if noise is not None:
            table = task.grid.tables[at]
            counts = task.people.table(task.grid, table, task.places).ravel()
            drawn = stream.derive("again", task.level * len(task.noises) + at)
            items = Items.positions(len(counts), first=task.first * task.grid.cells(table))
            found[at] = compact(np.asarray(noise.add_to(counts, drawn, items))).reshape(
                task.places, -1
            )
    return task.level, found
