"""Compare counts from the published table with the true ones, and with the error that noise would
add.

A reader of a coarsened table spreads each row evenly over the values that its label stands for. A
differentially private release of the same counts adds discrete Laplace noise to each table of
counts; its margins follow from the formula, so nothing is drawn here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from discreet.anonymity.hierarchies import Hierarchy
from discreet.anonymity.output import Labels, TableRecoding
from discreet.anonymity.source import Flags, Floats, Groups, Integers, encode
from discreet.mechanisms import DiscreteLaplace

EPSILONS = (Fraction(1, 10), Fraction(1, 2), Fraction(2))  # to compare with; nothing is released
_MOST_VALUES = 2000
_CONFIDENCE = Fraction(95, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountErrors:
    """A kind of statistic: how many tables and counts it has, and how far off they are.

    `usual`: 19 of 20 counts that are not zero are off by at most this. `worst`: the largest error.
    `margins`: of noisy counts at each ε in all, what 19 of 20 are within, zeros included.
    """

    name: str
    tables: int
    counts: int
    usual: float
    worst: float
    margins: Mapping[str, int]

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "tables": self.tables,
            "counts": self.counts,
            "usual_error": self.usual,
            "worst_error": self.worst,
            "noisy_margin_at_epsilon": dict(self.margins),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Utility:
    """Counts by one column and by pairs; `left_out` names columns with too many values for
    either.
    """

    kinds: tuple[CountErrors, ...]
    by_column: Mapping[str, float]
    left_out: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        return {
            "counts": [each.as_json() for each in self.kinds],
            "moved_by_column": dict(self.by_column),
            "left_out": list(self.left_out),
        }


def utility(made: TableRecoding) -> Utility:
    """Measure errors; `by_column`: the share of people who seem to have another value, in counts by
    that column.
    """
    groups = made.groups
    hierarchies = made.hierarchies
    kept = made.recoded.classes >= 0
    spreads = {
        i: _spread(each, groups.codes[i][kept], made.recoded.levels[i][kept], made.shown[i], kept)
        for i, each in enumerate(hierarchies)
        if len(each.nodes[0]) <= _MOST_VALUES
    }
    weights = groups.counts[kept]
    single, paired = [], []
    moved = {}
    for i, (ids, matrix) in spreads.items():
        true = np.bincount(groups.codes[i], groups.counts, matrix.shape[1])
        guess = np.bincount(ids, weights, len(matrix)) @ matrix
        moved[hierarchies[i].column] = float(np.abs(guess - true).sum() / 2 / max(1, groups.rows))
        single.append((true.astype(np.float64), guess))
    for i, j in combinations(spreads, 2):
        if spreads[i][1].shape[1] * spreads[j][1].shape[1] <= _MOST_VALUES**2:
            paired.append(_pair(groups, weights, spreads[i], spreads[j], i, j))
    kinds = (_counts("by one column", single), _counts("by two columns", paired))
    left_out = tuple(each.column for i, each in enumerate(hierarchies) if i not in spreads)
    return Utility(
        kinds=tuple(each for each in kinds if each.tables), by_column=moved, left_out=left_out
    )


Spread = tuple[Integers, Floats]
"""Of each row group the number of its label, and for each label how a row is spread over the
values.
"""


def _spread(
    hierarchy: Hierarchy, codes: Integers, levels: Integers, shown: Labels, kept: Flags
) -> Spread:
    _, ids = encode(shown.text.filter(kept))
    _, first = np.unique(ids, return_index=True)
    matrix = np.zeros((len(first), len(hierarchy.nodes[0])))
    for number, group in enumerate(first):
        level = levels[group]
        inside = hierarchy.nodes[level] == hierarchy.nodes[level][codes[group]]
        if shown.tight is not None and hierarchy.ordered is not None:
            least = shown.tight.least[kept][group]
            most = shown.tight.most[kept][group]
            if not np.isnan(least):
                inside = (hierarchy.ordered >= least) & (hierarchy.ordered <= most)
        matrix[number, inside] = 1 / inside.sum()
    return ids, matrix


def _pair(
    groups: Groups, weights: Integers, one: Spread, other: Spread, i: int, j: int
) -> tuple[Floats, Floats]:
    (a, spread_a), (b, spread_b) = one, other
    wide = spread_b.shape[1]
    true = np.bincount(
        groups.codes[i] * wide + groups.codes[j], groups.counts, spread_a.shape[1] * wide
    )
    labels = np.bincount(a * len(spread_b) + b, weights, len(spread_a) * len(spread_b))
    guess = spread_a.T @ labels.reshape(len(spread_a), len(spread_b)) @ spread_b
    return true.astype(np.float64), guess.ravel()


def _counts(name: str, tables: Sequence[tuple[Floats, Floats]]) -> CountErrors:
    errors = [np.abs(guess - true)[true > 0] for true, guess in tables]
    every = np.concatenate(errors) if errors else np.zeros(0)
    return CountErrors(
        name=name,
        tables=len(tables),
        counts=sum(len(true) for true, _ in tables),
        usual=float(np.quantile(every, 0.95)) if len(every) else 0.0,
        worst=float(every.max()) if len(every) else 0.0,
        margins=dict(_margins(len(tables))),
    )


def _margins(tables: int) -> Iterator[tuple[str, int]]:
    """Yield ε and margin: a person is in one cell of each table, so the noise of each has scale
    tables / ε.
    """
    for epsilon in EPSILONS if tables else ():
        noise = DiscreteLaplace(scale=tables / epsilon, l1=Fraction(1))
        yield f"{float(epsilon):g}", noise.margin(_CONFIDENCE)
