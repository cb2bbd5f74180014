"""Where noise drowns a vector of distances: choose one pair at a time, each as coarse as its noise
asks for.

A distance to the model is a choice's score at sensitivity m, however many pairs and levels there
are, while noise on all distances together grows with the root of their number. So in small tables
a private choice finds the pair that matters where noisy distances do not. As in AIM [McKenna et al.
2022] a score is the l1 distance beyond what noise would leave of it, and beyond what sampling
alone makes; the candidates here are pairs at several levels, so that a finer table has to be worth
its cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from discreet.synthetic.marginals import Candidate, Columns, Marginals
from discreet.synthetic.synthesizers.graphical import (
    Fit,
    FitTarget,
    Model,
    Tree,
    cells_needed,
    estimate,
)
from discreet.synthetic.synthesizers.independent import Histogram
from discreet.synthetic.synthesizers.mst import target

Floats = NDArray[np.float64]
Levels = Sequence[Sequence[NDArray[np.int64]]]  # for each column, its groups at every level

CHOOSING = 0.2  # of a round's part; the rest counts
LEAST_ROUNDS = 2
MOST_CELLS = 60_000  # of the junction tree
PRIOR = 0.003
FINEST = 20  # steps in which a question's weight is told apart from another's


def pair_by_pair(
    data: Marginals,
    columns: Sequence[Histogram],
    levels: Levels,
    model: Model,
    targets: Sequence[FitTarget],
    *,
    sets: Sequence[Columns],
    share: float,
) -> Model:
    """Improve the model in rounds of equal parts, each of which chooses a set at a level and counts
    it.
    """
    sizes, found, total = [column.size for column in columns], list(targets), model.total
    rounds = max(LEAST_ROUNDS, len(columns) - 1)  # as many as a tree has edges
    part = share / rounds * (1 - 1e-7)
    counting = part * (1 - CHOOSING)
    # where no question needs a set, all sets are alike
    heaviest = max(data.workload.weight(each) for each in sets) or 1.0
    finest = FINEST if data.workload.sets else 1
    fit: Fit | None = None
    if any(len(each.columns) > 1 for each in found):
        fit = estimate(sizes, found, total=total, prior=PRIOR)
        model = fit.model
    for number in range(rounds):
        data.tell("rounds", number / rounds)
        known = {each.columns for each in found}
        able = [each for each in sets if _fits(each, model.tree, known)]
        candidates = _candidates(columns, levels, model, able)
        if not candidates:
            break
        chosen = candidates[
            data.select(
                candidates,
                share=part * CHOOSING,
                factors=[
                    max(1, round(finest * data.workload.weight(each.columns) / heaviest))
                    for each in candidates
                ],
                expected=[_expected(each.model, data.std(counting)) for each in candidates],
            )
        ]
        counts = data.measure(chosen.columns, share=counting, partition=chosen.partition)
        found.append(target(columns, counts))
        start = () if fit is None else fit.parameters
        last = number == rounds - 1
        fit = estimate(
            sizes,
            found,
            total=total,
            prior=PRIOR,
            start=start,
            steps=300 if last else 60,
            tolerance=2e-4 if last else 1e-3,
        )
        model = fit.model
    return model


def _fits(columns: Columns, tree: Tree, known: set[Columns]) -> bool:
    """Return whether the junction tree stays small with these columns together.

    Putting all of them but one into every clique is a triangulation, so most need no other.
    """
    growth = math.prod(sorted(tree.shape(columns))[:-1])
    if columns in known or tree.cells * growth <= MOST_CELLS:
        return True
    return cells_needed(tree.sizes, [*known, columns]) <= MOST_CELLS


def _candidates(
    columns: Sequence[Histogram], levels: Levels, model: Model, sets: Sequence[Columns]
) -> list[Candidate]:
    """Return every set of columns at every level that tells it apart from a coarser one."""
    found = []
    for each in sets:
        table = model.marginal(each) * model.total
        known: set[tuple[int, ...]] = set()
        for level in zip(*(levels[column] for column in each), strict=True):
            shape = tuple(int(groups.max()) + 1 for groups in level)
            if shape in known or min(shape) < 2:
                continue
            known.add(shape)
            coarse = np.zeros(shape)
            np.add.at(coarse, np.ix_(*level), table)
            partition = tuple(
                groups[columns[column].groups] for groups, column in zip(level, each, strict=True)
            )
            found.append(Candidate(columns=each, partition=partition, model=coarse))
    return found


def _expected(model: Floats, std: float) -> int:
    """Return the l1 distance that noise would leave after counting, and that a table drawn from the
    model would have.
    """
    sampling = np.minimum(np.sqrt(2 * model / math.pi), 2 * model).sum()
    return round(math.sqrt(2 / math.pi) * std * model.size + float(sampling))
