"""Scores of a description on raw rows, without noise: for the curator alone, NOT FOR RELEASE.

This module reads a file that the curator has anyway, so there is no charge. Nothing that it
computes may be released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.errors import UsageError
from discreet.noise import Items, Stream
from discreet.synthetic.classify import area, count_by_label, learn_score, target_of
from discreet.synthetic.columns.values import Figure, exact_figures
from discreet.synthetic.compare import lines
from discreet.synthetic.description import Description
from discreet.synthetic.generate import codes

Integers = NDArray[np.int64]

BANNER = "NOT FOR RELEASE"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifierScores:
    """AUC on true rows: of a classifier from synthetic rows, and of one from other true rows."""

    target: str
    synthetic: float
    true: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RawReport:
    """Exact figures of raw rows; `risks` are rows of text: attack, success, chance, control, risk."""

    table: str
    rows: int
    values: tuple[Figure, ...]
    distances: dict[tuple[str, ...], float]
    correlations: dict[tuple[str, ...], tuple[float, float]]
    classifier: ClassifierScores | None
    risks: tuple[tuple[str, ...], ...]

    @property
    def mean(self) -> float:
        """Return the mean distance of all pairs, or if there is one column, its distance."""
        pairs = [value for columns, value in self.distances.items() if len(columns) == 2]
        distances = pairs or list(self.distances.values())
        return sum(distances) / len(distances)


def raw_report(
    description: Description,
    table: pa.Table,
    *,
    target: str | None,
    risks: Sequence[tuple[str, ...]],
) -> RawReport:
    """Compare a description with raw rows."""
    label = None if target is None else target_of(description, target)
    true = cells_of(description, table)
    synthetic = codes(description, rows=len(true), stream=Stream.fresh())
    names = [axis.name for axis in description.axes]
    width = range(len(description.axes))
    sets: list[tuple[int, ...]] = [*((column,) for column in width), *combinations(width, 2)]
    values = exact_figures(description, table)
    distances = {}
    for columns in sets:
        distances[tuple(names[column] for column in columns)] = _distance(true, synthetic, columns)
    correlations = _correlations(description, true, synthetic)
    classifier = None
    if label is not None and target is not None:
        classifier = _train(description, true, synthetic, target, label)
    return RawReport(
        table=description.table,
        rows=table.num_rows,
        values=values,
        distances=distances,
        correlations=correlations,
        classifier=classifier,
        risks=tuple(risks),
    )


def cells_of(description: Description, table: pa.Table) -> Integers:
    """Return the cells of raw rows, without rows that have a value in no cell."""
    for axis in description.axes:
        if axis.name not in table.column_names:
            raise UsageError(f"The raw rows have no column {axis.name}, which the description has.")
    cells = np.column_stack([axis.codes(table.column(axis.name)) for axis in description.axes])
    complete: Integers = cells[(cells >= 0).all(axis=1)]
    if not len(complete):
        raise UsageError("None of the raw rows fits the description's domains.")
    return complete


def _distance(true: Integers, synthetic: Integers, columns: tuple[int, ...]) -> float:
    """Return the total variation distance of some columns."""
    both = np.concatenate([true, synthetic])[:, columns]
    place = np.zeros(len(both), dtype=np.int64)
    for column in both.T:
        place = place * (int(column.max()) + 1) + column
    _, place = np.unique(place, return_inverse=True)
    size = int(place.max()) + 1
    own = np.bincount(place[: len(true)], minlength=size) / len(true)
    other = np.bincount(place[len(true) :], minlength=size) / len(synthetic)
    return float(np.abs(own - other).sum() / 2)


def _correlations(
    description: Description, true: Integers, synthetic: Integers
) -> dict[tuple[str, ...], tuple[float, float]]:
    """Return the correlation of every pair of numbers: that of true rows, and that of synthetic."""
    pairs: dict[tuple[str, ...], tuple[float, float]] = {}
    places = lines(description)
    for a, b in combinations(places, 2):
        own = (places[a][true[:, a]], places[b][true[:, b]])
        other = (places[a][synthetic[:, a]], places[b][synthetic[:, b]])
        if all(line.std() > 0 for line in (*own, *other)):
            names = (description.axes[a].name, description.axes[b].name)
            pairs[names] = (float(np.corrcoef(*own)[0, 1]), float(np.corrcoef(*other)[0, 1]))
    return pairs


def _train(
    description: Description,
    true: Integers,
    synthetic: Integers,
    target: str,
    label: tuple[int, int],
) -> ClassifierScores:
    """Train one classifier on synthetic rows and one on true rows, and try both on the other half
    of the true rows.
    """
    order = np.argsort(Stream.fresh().words(Items.positions(len(true)), 0)[:, 0])
    learning = order[: len(order) // 2]
    trying = order[len(order) // 2 :]
    scores = [
        learn_score(cells[learning], description.groups, label=label[0], positive=label[1])
        for cells in (synthetic, true)
    ]
    areas = [_area(count_by_label(score, true[trying])) for score in scores]
    return ClassifierScores(target=target, synthetic=areas[0], true=areas[1])


def _area(counts: Integers) -> float:
    value = float(area(counts))
    return 0.5 if np.isnan(value) else value
