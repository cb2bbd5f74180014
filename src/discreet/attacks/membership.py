"""Membership: was this person in the data? From a table of released records, or from released
counts.

Records: people who were in the data tend to lie nearer to a released record than people who were
not. Counts: the released means lean towards those who were counted (Homer 2008; Dwork, Smith,
Steinke, Ullman, Vadhan 2015).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from discreet.attacks.experiment.dice import Dice
from discreet.attacks.experiment.finding import Finding, Rate
from discreet.attacks.experiment.finding import trials as enough
from discreet.attacks.experiment.nearest import encode, nearest
from discreet.errors import UsageError

WIDTH = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """`finding`: how often in or out was guessed right, half of the targets being in. `auc` needs
    no threshold.
    """

    finding: Finding
    auc: float

    def as_json(self) -> dict[str, object]:
        return {**self.finding.as_json(), "auc": self.auc}


def membership(
    release: pa.Table,
    members: pa.Table,
    others: pa.Table,
    *,
    width: float = WIDTH,
    trials: int | None = None,
) -> Membership:
    """Tell people who were in the data from others, by the distance to the nearest released
    record.
    """
    if not members.num_rows or not others.num_rows:
        raise UsageError(
            "Give people who were in the data and people who were not, at least two of each."
        )
    coded = encode(release, members, others)
    dice = Dice()
    half = min(members.num_rows, others.num_rows, (trials or enough(width)) // 2 + 1)
    targets = [coded.rows[i][dice.some(len(coded.rows[i]), half)] for i in (1, 2)]
    scores = [-nearest(rows, coded.rows[0], coded.numeric)[1][:, 0] for rows in targets]
    return judge(scores[0], scores[1])


def trace(
    counts: ArrayLike, people: int, members: ArrayLike, others: ArrayLike, *, reference: ArrayLike
) -> Membership:
    """Tell who was counted, from the released `counts` of many yes/no attributes over `people`.

    `members` and `others` are rows of 0/1; `reference` is how common each attribute is in the
    population.
    """
    known = np.asarray(reference, dtype=np.float64)
    spread = np.maximum(known * (1 - known), 1e-3)  # a rare attribute tells more than a common one
    lean = (np.asarray(counts, dtype=np.float64) / max(people, 1) - known) / spread
    inside, outside = (
        (np.asarray(rows, dtype=np.float64) - known) @ lean for rows in (members, others)
    )
    return judge(inside, outside)


def judge(inside: NDArray[np.floating], outside: NDArray[np.floating]) -> Membership:
    """Guess "in" above a threshold; the best threshold for one half of the targets judges the other
    half.
    """
    dice = Dice()
    size = min(len(inside), len(outside))
    if size < 2:
        raise UsageError(
            "Give people who were in the data and people who were not, at least two of each."
        )
    inside = inside[dice.some(len(inside), size)]
    outside = outside[dice.some(len(outside), size)]
    half = size // 2
    hits = 0.0
    for learn, rest in (
        (slice(None, half), slice(half, None)),
        (slice(half, None), slice(None, half)),
    ):
        cut = _best_cut(inside[learn], outside[learn])
        hits += (inside[rest] > cut).sum() + (outside[rest] < cut).sum()
        # a coin for ties
        hits += (inside[rest] == cut).sum() / 2 + (outside[rest] == cut).sum() / 2
    rate = Rate(hits=int(hits), n=2 * size)
    return Membership(finding=rate.finding("membership", chance=0.5), auc=_auc(inside, outside))


def _best_cut(inside: NDArray[np.floating], outside: NDArray[np.floating]) -> float:
    cuts = np.unique(np.concatenate([inside, outside]))
    between = np.concatenate([(cuts[1:] + cuts[:-1]) / 2, cuts]) if len(cuts) > 1 else cuts
    above = len(inside) - np.searchsorted(np.sort(inside), between, side="right")
    below = np.searchsorted(np.sort(outside), between, side="left")
    return float(between[(above + below).argmax()])


def _auc(inside: NDArray[np.floating], outside: NDArray[np.floating]) -> float:
    """Return the chance that somebody who was in scores higher than somebody who was not."""
    ordered = np.sort(outside)
    less = np.searchsorted(ordered, inside, side="left")
    equal = np.searchsorted(ordered, inside, side="right") - less
    return float((less + equal / 2).mean() / len(outside))
