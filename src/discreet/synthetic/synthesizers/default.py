"""`default`: a few rounds of "measure all distances cheaply, then count the pairs that are worth
their noise".

1. One-way marginals, smoothed; cells that noise would drown are put into groups, and groups into
   coarser levels. Where noise would blur the mean of a number, its total is asked for (`totals`).
2. Each round releases, as one noisy vector, the distance of every pair's counts to the model at
   several levels. That costs little, because a distance is one number of sensitivity m while it is
   of the size of the table.
3. From these the error that remains after counting a pair at a level is predicted (a Wiener
   filter's), and the set of pairs and levels that removes most error is counted, as long as the
   junction tree stays small enough. The first round takes a forest; later ones close its cycles
   where the model is still wrong. The last round also looks at three columns at a time, where the
   model has them together already: what pairs do not tell of a third column.
All choices are functions of what was released, so they cost nothing more. Where noise would drown
the distances, as in small tables, one number for each pair tells how it hangs together (`related`),
and then pairs are chosen privately, one by one, for coarse tables of counts (`scarce`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from discreet.synthetic.marginals import Candidate, Columns, Marginals, Partition
from discreet.synthetic.synthesizers.graphical import Fit, FitTarget, Model, cells_needed, estimate
from discreet.synthetic.synthesizers.independent import (
    Histogram,
    Synthesis,
    grouped,
    histograms,
    product,
)
from discreet.synthetic.synthesizers.mst import one_way_targets, target
from discreet.synthetic.synthesizers.related import related
from discreet.synthetic.synthesizers.scarce import pair_by_pair
from discreet.synthetic.synthesizers.smooth import fair, in_groups
from discreet.synthetic.synthesizers.totals import with_totals

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ONE_WAY = 0.30  # share of the one-way marginals
DISTANCES = 0.03  # and of the distances of one round
ROUNDS = (0.25, 0.25, 0.25, 0.25)  # of the rest, what each round's pairs get
LEVELS = (2, 4, 8, 16, 64)  # most groups of a column at each level
TRIPLE_LEVELS = 4  # as many of these for three columns
MOST_TRIPLES = 100
MOST_GRID = 2_000_000  # cells of three columns
LEAST_OF_LEVEL = 0.5  # of an even part of what is not in spikes
MOST_GROUPS = 32
LEAST = 2.0  # standard deviations of noise that a group should hold
UNITS = tuple(16.0 * 2**step for step in range(8))  # of weight that a round may give out
BY_PRICE = 0.5
MOST_CELLS = 500_000  # of the junction tree
PRIOR = 0.02
CAUTION = 1.0  # standard deviations by which a noisy distance is taken to be less
# noise on distances, as a part of the rows, above which pairs are chosen one by one
POOR = 0.05
POOR_ONE_WAY = 0.60  # shares then: of the one-way marginals,
POOR_RELATED = 0.14  # and of what tells how all pairs hang together
POOR_GROUPS = 8
POOR_LEVELS = 3  # as many of the levels


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Option:
    """A pair, or three columns that are asked for, at one level: what the model expects, and how
    far the counts are.
    """

    columns: Columns
    partition: Partition  # of the axes' cells
    expected: Floats
    distance: float  # l1, beyond what sampling alone would make
    weight: float  # of the questions, how many need it

    def gain(self, std: float) -> float:
        """Return how much l1 error counting it with this noise removes, weighted.

        Deviations are taken to be in proportion to the expected counts; of one of size d, noise
        leaves d std / sqrt(d^2 + std^2).
        """
        deviations = self.distance * self.expected / self.expected.sum()
        left = deviations * std / np.sqrt(deviations**2 + std**2 + 1e-12)
        return self.weight * (self.distance - float(left.sum()))


def default(data: Marginals) -> Synthesis:
    """Measure one-way marginals, then pairs in rounds."""
    fine, total = histograms(data, share=ONE_WAY)
    sets = data.workload.candidates(len(fine))
    pairs = len(sets)
    poor = pairs > 0 and data.distance_std(DISTANCES, pairs * len(LEVELS)) > POOR * total
    spent = ONE_WAY
    if poor:
        fine, total = histograms(data, share=POOR_ONE_WAY - ONE_WAY, before=fine)
    else:
        fine, totals = with_totals(data, fine)
        spent += totals
    columns = grouped(data, fine, least=LEAST, most=POOR_GROUPS if poor else MOST_GROUPS)
    targets, model = one_way_targets(columns), product(columns, total)
    if not pairs:
        return Synthesis(histograms=columns, model=model)
    sizes = [column.size for column in columns]
    levels = [
        _levels(column, axis.ordered) for column, axis in zip(columns, data.axes, strict=True)
    ]
    if poor:
        coarse = [each[:POOR_LEVELS] for each in levels]
        targets += related(data, columns, total, share=POOR_RELATED)
        rest = 1 - POOR_ONE_WAY - (POOR_RELATED if data.related else 0.0)
        share = rest * (1 - 1e-6)
        model = pair_by_pair(data, columns, coarse, model, targets, sets=sets, share=share)
        return Synthesis(histograms=columns, model=model)
    share = (1 - spent - DISTANCES * len(ROUNDS)) * (1 - 1e-6)
    fit: Fit | None = None
    kept = 0.0
    for number, part in enumerate(ROUNDS):
        data.tell("rounds", number / len(ROUNDS))
        triples = _triples(data, columns, model) if 0 < number == len(ROUNDS) - 1 else []
        options = _options(data, columns, levels, model, [*sets, *triples], share=DISTANCES)
        budget = share * part + kept
        chosen = _choose(data, options, sizes, targets, share=budget, forest=number == 0)
        kept = 0.0 if chosen else budget
        weights = np.array([_weight(option) for option in chosen])
        for option, weight in zip(chosen, weights, strict=True):
            each = budget * float(weight / weights.sum()) * (1 - 1e-7)
            targets.append(
                target(
                    columns, data.measure(option.columns, share=each, partition=option.partition)
                )
            )
        start = () if fit is None else fit.parameters
        fit = estimate(sizes, targets, total=total, prior=PRIOR, start=start)
        model = fit.model
    return Synthesis(histograms=columns, model=model)


def _levels(column: Histogram, ordered: bool) -> list[Integers]:
    """Return coarser and coarser groupings of a column's groups."""
    rows = column.grouped
    found = []
    for most in LEVELS:
        if len(rows) <= most:
            found.append(np.arange(len(rows)))
        else:
            found.append(
                in_groups(rows, least=fair(rows, most) * LEAST_OF_LEVEL, most=most, ordered=ordered)
            )
    return found


def _triples(data: Marginals, columns: Sequence[Histogram], model: Model) -> list[Columns]:
    """Return the most related three columns of one clique each: counting these makes the model no
    larger.
    """
    if data.workload.sets:  # then those that are asked for are candidates anyway
        return []
    every: set[Columns] = {
        each for clique in model.tree.cliques for each in combinations(clique, 3)
    }
    able = [
        each for each in every if math.prod(data.axes[column].size for column in each) <= MOST_GRID
    ]

    def related(each: Columns) -> float:
        a, b, c = (columns[column].grouped / columns[column].counts.sum() for column in each)
        return float(np.abs(model.marginal(each) - a[:, None, None] * b[:, None] * c).sum())

    return sorted(able, key=lambda each: (-related(each), each))[:MOST_TRIPLES]


def _options(
    data: Marginals,
    columns: Sequence[Histogram],
    levels: Sequence[list[Integers]],
    model: Model,
    sets: Sequence[Columns],
    *,
    share: float,
) -> list[Option]:
    """Return every set of columns at every level, with noisy distances to the model."""
    found: list[Candidate] = []
    for each in sets:
        table = model.marginal(each) * model.total
        known: set[tuple[int, ...]] = set()
        able = levels if len(each) <= 2 else [some[:TRIPLE_LEVELS] for some in levels]
        for level in zip(*(able[column] for column in each), strict=True):
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
    if not found:  # every column is one group
        return []
    noisy, error = data.distances(found, share=share)
    return [
        Option(
            columns=candidate.columns,
            partition=candidate.partition,
            expected=candidate.model.ravel(),
            distance=max(
                0.0, float(distance) - _sampling(candidate.model) - CAUTION * error.deviation
            ),
            weight=data.workload.weight(candidate.columns),
        )
        for candidate, distance in zip(found, noisy, strict=True)
    ]


def _sampling(expected: Floats) -> float:
    """Return the l1 distance that a table drawn from the model itself would have."""
    return float(np.minimum(np.sqrt(2 * expected / math.pi), 2 * expected).sum())


def _choose(
    data: Marginals,
    options: Sequence[Option],
    sizes: Sequence[int],
    targets: Sequence[FitTarget],
    *,
    share: float,
    forest: bool,
) -> list[Option]:
    """Return the set that is predicted to remove most error for a share, split as `_weight` says.

    What a unit of weight gets is tried from much to little: few tables with little noise, or many
    with more.
    """
    best: tuple[float, list[Option]] = (0.0, [])
    known: dict[frozenset[Columns], int] = {}
    for units in UNITS:
        able = _best_levels(data, options, share / units)
        able.sort(key=lambda pair: -pair[0] / _weight(pair[1]) ** (0.0 if forest else BY_PRICE))
        found = _that_fit(able, sizes, targets, units, forest=forest, known=known)
        gain = sum(each for each, _ in found)
        if gain > best[0]:
            best = (gain, [option for _, option in found])
    return best[1]


def _weight(option: Option) -> float:
    """Return a table's share in units: noise on c cells costs least in all when shares are
    proportional to sqrt(c).
    """
    return math.sqrt(option.expected.size)


def _best_levels(
    data: Marginals, options: Sequence[Option], unit: float
) -> list[tuple[float, Option]]:
    best: dict[Columns, tuple[float, Option]] = {}
    stds = {weight: data.std(unit * weight) for weight in {_weight(option) for option in options}}
    for option in options:
        gain = option.gain(stds[_weight(option)])
        if gain > best.get(option.columns, (0.0, option))[0]:
            best[option.columns] = (gain, option)
    return list(best.values())


def _that_fit(
    able: Sequence[tuple[float, Option]],
    sizes: Sequence[int],
    targets: Sequence[FitTarget],
    units: float,
    *,
    forest: bool,
    known: dict[frozenset[Columns], int],
) -> list[tuple[float, Option]]:
    """Return the first ones, one after another, that units pay for, as long as the junction tree
    stays small (or a forest).
    """
    sets, tree_of = frozenset(each.columns for each in targets), list(range(len(sizes)))
    found: list[tuple[float, Option]] = []
    for gain, option in able:
        if _weight(option) > units:
            continue
        if forest:
            trees = {tree_of[column] for column in option.columns}
            if len(trees) < len(option.columns):
                continue
            tree_of = [min(trees) if tree in trees else tree for tree in tree_of]
        together = sets | {option.columns}
        if not forest and together != sets:
            if together not in known:
                known[together] = cells_needed(sizes, sorted(together))
            if known[together] > MOST_CELLS:
                continue
        sets = together
        found.append((gain, option))
        units -= _weight(option)
    return found
