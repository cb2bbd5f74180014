"""`mst`: a spanning tree of pairs, each chosen privately as the one farthest from independence
[McKenna et al. 2021].

A third of what was paid goes to one-way marginals, a third to choosing, a third to the chosen
pairs. Scores are l1 distances of counts to the product of the released histograms (S16).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from discreet.synthetic.marginals import Candidate, Columns, Marginals, NoisyMarginal, flat
from discreet.synthetic.synthesizers.graphical import FitTarget, estimate
from discreet.synthetic.synthesizers.independent import (
    Histogram,
    Synthesis,
    grouped,
    histograms,
    product,
)

PRIOR = 0.03  # of `graphical.estimate`


def mst(data: Marginals) -> Synthesis:
    """Measure one-way marginals, then the pairs of a tree."""
    fine, total = histograms(data, share=1 / 3)
    columns = grouped(data, fine, least=3.0, most=32)
    pairs = spanning_pairs(data, columns, share=1 / 3)
    targets = one_way_targets(columns)
    for place, pair in enumerate(pairs):
        data.tell("counting pairs", place / len(pairs))
        partition = tuple(columns[column].groups for column in pair)
        targets.append(
            target(
                columns, data.measure(pair, share=(1 - 1e-7) / 3 / len(pairs), partition=partition)
            )
        )
    data.tell("fitting", 0.0)
    fit = estimate([column.size for column in columns], targets, total=total, prior=PRIOR)
    return (
        Synthesis(histograms=columns, model=fit.model)
        if pairs
        else Synthesis(histograms=columns, model=product(columns, total))
    )


def spanning_pairs(data: Marginals, columns: Sequence[Histogram], *, share: float) -> list[Columns]:
    """Choose the edges of a tree, one private choice each (Kruskal's order)."""
    tree_of = list(range(len(columns)))
    chosen: list[Columns] = []
    for step in range(len(columns) - 1):
        data.tell("choosing pairs", step / (len(columns) - 1))
        open_pairs = [
            pair
            for pair in combinations(range(len(columns)), 2)
            if tree_of[pair[0]] != tree_of[pair[1]]
        ]
        candidates = [independent_candidate(columns, pair) for pair in open_pairs]
        ones, zeros = [1] * len(candidates), [0] * len(candidates)
        each = share * (1 - 1e-7) / (len(columns) - 1)
        a, b = open_pairs[data.select(candidates, share=each, factors=ones, expected=zeros)]
        chosen.append((a, b))
        tree_of = [tree_of[a] if tree == tree_of[b] else tree for tree in tree_of]
    return chosen


def independent_candidate(columns: Sequence[Histogram], pair: Columns) -> Candidate:
    """Return a pair, and its counts if the two knew nothing of each other."""
    a, b = (columns[column].grouped for column in pair)
    return Candidate(
        columns=pair,
        partition=tuple(columns[column].groups for column in pair),
        model=np.outer(a, b) / a.sum(),
    )


def one_way_targets(columns: Sequence[Histogram]) -> list[FitTarget]:
    """Return the histograms' groups as a model is to fit them, and starts from."""
    found = []
    for index, column in enumerate(columns):
        rows, cells = column.grouped, np.bincount(column.groups)
        center = np.log(np.maximum(rows, 1e-3) / rows.sum())
        std = column.std * math.sqrt(float(cells.mean()))
        found.append(
            FitTarget(
                columns=(index,), cells=np.arange(len(rows)), counts=rows, std=std, center=center
            )
        )
    return found


def target(columns: Sequence[Histogram], measured: NoisyMarginal) -> FitTarget:
    """Return a measured marginal in the model's terms: its groups are unions of the model's."""
    coarse = []
    for column, groups in zip(measured.columns, measured.partition, strict=True):
        place = np.zeros(columns[column].size, dtype=np.int64)
        place[columns[column].groups] = groups
        coarse.append(place)
    return FitTarget(
        columns=measured.columns,
        cells=flat(tuple(coarse)),
        counts=measured.counts.astype(np.float64),
        std=measured.std,
    )
