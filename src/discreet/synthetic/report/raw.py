"""Scores of a description on raw rows, without noise: for the curator alone, NOT FOR RELEASE.

Nothing here passes the curator's door, and nothing here may leave: it reads a file that the curator
holds anyway.
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
    """AUC on true rows of a classifier made from synthetic rows, and of one made from (other) true
    rows.
    """

    target: str
    synthetic: float
    true: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RawReport:
    """Exact figures. `risks` are rows of text: attack, success, chance, control, risk."""

    table: str
    rows: int
    values: tuple[Figure, ...]
    distances: dict[tuple[str, ...], float]
    correlations: dict[tuple[str, ...], tuple[float, float]]
    classifier: ClassifierScores | None
    risks: tuple[tuple[str, ...], ...]

    @property
    def mean(self) -> float:
        found = [value for pair, value in self.distances.items() if len(pair) == 2] or list(
            self.distances.values()
        )
        return sum(found) / len(found)


def raw_report(
    description: Description,
    table: pa.Table,
    *,
    target: str | None,
    risks: Sequence[tuple[str, ...]],
) -> RawReport:
    """Score a description against the rows themselves."""
    label = None if target is None else target_of(description, target)
    true = cells_of(description, table)
    made = codes(description, rows=len(true), stream=Stream.fresh())
    names, width = [axis.name for axis in description.axes], range(len(description.axes))
    sets: list[tuple[int, ...]] = [*((column,) for column in width), *combinations(width, 2)]
    return RawReport(
        table=description.table,
        rows=table.num_rows,
        values=exact_figures(description, table),
        distances={tuple(names[c] for c in each): _apart(true, made, each) for each in sets},
        correlations=_correlations(description, true, made),
        classifier=None
        if label is None or target is None
        else _train(description, true, made, target, label),
        risks=tuple(risks),
    )


def cells_of(description: Description, table: pa.Table) -> Integers:
    """Return the cells of raw rows; rows with a value that no cell has are left out."""
    for axis in description.axes:
        if axis.name not in table.column_names:
            raise UsageError(f"The raw rows have no column {axis.name}, which the description has.")
    cells = np.column_stack([axis.codes(table.column(axis.name)) for axis in description.axes])
    kept: Integers = cells[(cells >= 0).all(axis=1)]
    if not len(kept):
        raise UsageError("None of the raw rows fits the description's domains.")
    return kept


def _apart(true: Integers, made: Integers, columns: tuple[int, ...]) -> float:
    both = np.concatenate([true, made])[:, columns]
    place = np.zeros(len(both), dtype=np.int64)
    for column in both.T:
        place = place * (int(column.max()) + 1) + column
    _, place = np.unique(place, return_inverse=True)
    counts = [
        np.bincount(each, minlength=int(place.max()) + 1)
        for each in (place[: len(true)], place[len(true) :])
    ]
    return float(np.abs(counts[0] / len(true) - counts[1] / len(made)).sum() / 2)


def _correlations(
    description: Description, true: Integers, made: Integers
) -> dict[tuple[str, ...], tuple[float, float]]:
    found: dict[tuple[str, ...], tuple[float, float]] = {}
    placed = lines(description)
    for a, b in combinations(placed, 2):
        both = [(placed[a][cells[:, a]], placed[b][cells[:, b]]) for cells in (true, made)]
        if all(min(x.std(), y.std()) > 0 for x, y in both):
            values = [float(np.corrcoef(x, y)[0, 1]) for x, y in both]
            found[description.axes[a].name, description.axes[b].name] = (values[0], values[1])
    return found


def _train(
    description: Description, true: Integers, made: Integers, target: str, label: tuple[int, int]
) -> ClassifierScores:
    """Train a classifier on synthetic rows and one on true rows; both are tried on the same half of
    the true rows.
    """
    order = np.argsort(Stream.fresh().words(Items.positions(len(true)), 0)[:, 0])
    learning, trying = order[: len(order) // 2], order[len(order) // 2 :]
    scores = [
        learn_score(cells[learning], description.groups, label=label[0], positive=label[1])
        for cells in (made, true)
    ]
    areas = [_area(count_by_label(score, true[trying])) for score in scores]
    return ClassifierScores(target=target, synthetic=areas[0], true=areas[1])


def _area(counts: Integers) -> float:
    found = float(area(counts))
    return 0.5 if np.isnan(found) else found
