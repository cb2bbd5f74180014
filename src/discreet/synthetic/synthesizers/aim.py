"""`aim`: again and again, count the pair that is farthest from the model beyond its noise [McKenna
et al. 2022].

The workload is all pairs, or what is asked for, weighted. A tenth of each round's part chooses, the
rest counts; rounds that teach nothing double the parts of those that follow; the size of the model
grows with what has been spent.
"""

from __future__ import annotations

import math

import numpy as np

from discreet.synthetic.marginals import Candidate, Marginals
from discreet.synthetic.synthesizers.graphical import Fit, cells_needed, estimate
from discreet.synthetic.synthesizers.independent import Synthesis, grouped, histograms, product
from discreet.synthetic.synthesizers.mst import PRIOR, one_way_targets, target

ONE_WAY = 0.2  # share of the one-way marginals
CHOOSING = 0.1  # of a round's part
ROUNDS = 4  # times as many as there are columns, at most
MOST_CELLS = 200_000
FINEST = 20  # steps in which a question's weight is told apart from another's


def aim(data: Marginals) -> Synthesis:
    """Measure one-way marginals, then one pair in each round."""
    fine, total = histograms(data, share=ONE_WAY)
    columns = grouped(data, fine, least=3.0, most=32)
    sizes, targets, model = (
        [column.size for column in columns],
        one_way_targets(columns),
        product(columns, total),
    )
    pairs = data.workload.candidates(len(columns))
    if not pairs:
        return Synthesis(histograms=columns, model=model)
    whole = (1 - ONE_WAY) * (1 - 1e-6)
    left, part = whole, whole / (ROUNDS * len(columns))
    heaviest = max(data.workload.weight(each) for each in pairs)
    fit: Fit | None = None
    while left > part / 100:
        data.tell("rounds", 1 - left / whole)
        part = left if left < 2 * part else part
        std = data.std(part * (1 - CHOOSING))
        limit = MOST_CELLS * (1 - left / whole + part / whole)
        sets = [each.columns for each in targets]
        able = [pair for pair in pairs if cells_needed(sizes, [*sets, pair]) <= limit] or [
            pair for pair in pairs if pair in sets
        ]
        able = able or [min(pairs, key=lambda pair: math.prod(sizes[column] for column in pair))]
        candidates = [
            Candidate(
                columns=pair,
                partition=tuple(columns[column].groups for column in pair),
                model=model.marginal(pair) * model.total,
            )
            for pair in able
        ]
        expected = [
            round(math.sqrt(2 / math.pi) * std * candidate.model.size) for candidate in candidates
        ]
        factors = [max(1, round(FINEST * data.workload.weight(each) / heaviest)) for each in able]
        place = data.select(candidates, share=part * CHOOSING, factors=factors, expected=expected)
        chosen = candidates[place]
        share = part * (1 - CHOOSING) * (1 - 1e-7)
        targets.append(
            target(columns, data.measure(chosen.columns, share=share, partition=chosen.partition))
        )
        start = () if fit is None else fit.parameters
        fit = estimate(
            sizes, targets, total=total, prior=PRIOR, start=start, steps=60, tolerance=1e-3
        )
        moved = np.abs(fit.model.marginal(chosen.columns) * total - chosen.model).sum()
        model, left = fit.model, left - part
        if moved <= expected[place]:
            part *= 4  # half the standard deviation
    assert fit is not None
    # rounds hurry; this ends
    fit = estimate(sizes, targets, total=total, prior=PRIOR, start=fit.parameters, steps=300)
    return Synthesis(histograms=columns, model=fit.model)
