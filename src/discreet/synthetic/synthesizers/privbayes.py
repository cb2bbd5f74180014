"""`privbayes`: a Bayesian network, column by column [Zhang et al. 2014]; the lectures' correlated
mode, done right.

Each step chooses privately a column and up to two parents among those in the network: the ones
whose counts are farthest from "the column knows nothing of these parents". That is an l1 distance
to a released table (S16), not mutual information, which has no useful bound when rows are added.
What was chosen is counted at once, so that the parents' own table is released when the next step
needs it.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from discreet.synthetic.marginals import Candidate, Columns, Marginals
from discreet.synthetic.synthesizers.graphical import Model, cells_needed, estimate
from discreet.synthetic.synthesizers.independent import Synthesis, grouped, histograms, product
from discreet.synthetic.synthesizers.mst import PRIOR, one_way_targets, target

ONE_WAY, CHOOSING = 0.3, 0.2  # shares; the rest counts
USEFUL = 2.0  # standard deviations of noise that an average cell must hold [theta-usefulness]
MANY = 16  # columns above which there is one parent only
MOST_CELLS = 400_000


def privbayes(data: Marginals) -> Synthesis:
    """Measure one-way marginals, then a network of up to two parents."""
    fine, total = histograms(data, share=ONE_WAY)
    columns = grouped(data, fine, least=3.0, most=16)
    sizes, targets, model = (
        [column.size for column in columns],
        one_way_targets(columns),
        product(columns, total),
    )
    steps = len(columns) - 1
    known = [0]
    for step in range(steps):
        data.tell("network", step / steps)
        counting = (1 - ONE_WAY - CHOOSING) * (1 - 1e-6) / steps
        sets = [each.columns for each in targets]
        families = _families(sizes, sets, known, total / (USEFUL * data.std(counting)))
        candidates = [
            Candidate(
                columns=tuple(sorted((column, *parents))),
                partition=tuple(columns[each].groups for each in sorted((column, *parents))),
                model=_unrelated(model, column, parents),
            )
            for column, parents in families
        ]
        zeros, ones = [0] * len(families), [1] * len(families)
        place = data.select(
            candidates, share=CHOOSING * (1 - 1e-6) / steps, factors=ones, expected=zeros
        )
        chosen = candidates[place]
        known.append(families[place][0])
        targets.append(
            target(
                columns, data.measure(chosen.columns, share=counting, partition=chosen.partition)
            )
        )
        last = step == steps - 1
        model = estimate(sizes, targets, total=total, prior=PRIOR, steps=150 if last else 40).model
    return Synthesis(histograms=columns, model=model)


def _families(
    sizes: list[int], sets: list[Columns], known: list[int], most_cells: float
) -> list[tuple[int, Columns]]:
    """Return new columns with parents in the network, whose tables are not too large for their
    noise.
    """
    most = 2 if len(sizes) <= MANY else 1
    parents = [each for count in range(1, most + 1) for each in combinations(sorted(known), count)]
    every = [
        (column, each) for column in range(len(sizes)) if column not in known for each in parents
    ]
    return [
        (column, each)
        for column, each in every
        if len(each) == 1
        or (
            math.prod(sizes[c] for c in (column, *each)) <= most_cells
            and cells_needed(sizes, [*sets, (column, *each)]) <= MOST_CELLS
        )
    ]


def _unrelated(model: Model, column: int, parents: Columns) -> np.ndarray:
    """Return counts of a column and its parents if it knew nothing of them."""
    together = sorted((column, *parents))
    table = np.multiply.outer(model.marginal((column,)), model.marginal(parents)) * model.total
    return np.moveaxis(table, 0, together.index(column))
