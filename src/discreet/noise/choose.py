"""Choose the candidate with the largest noisy score, with real-valued noise and no rounding. Only
the choice leaves, never the noisy score.

A candidate's noisy score is unit * score + E, the scores integers and the unit a rational. With
`exponential` noise the largest is permute-and-flip (Ding et al. 2021); with `gumbel` noise it is
the exponential mechanism, and the k largest in order are k rounds of it without replacement
(Durfee, Rogers 2019).

E is a function of a uniform real, of which only the leading bits are drawn. float64 discards the
candidates that are certainly not among the largest. The others, and always a few more, are compared
by enclosures of growing precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from discreet.errors import UsageError
from discreet.noise import exact, tape
from discreet.noise.stream import Items, Stream, Words

Kind = Literal["exponential", "gumbel"]
Scores = NDArray[np.int64] | NDArray[np.object_] | Sequence[int]

# candidates beyond the k largest that are always enclosed, so that a close race takes no longer
_ALWAYS = 3
# of a float noise, absolutely: far above what any float64 logarithm errs by
_FLOAT_ERROR = 2.0**-30
_FLOAT_RELATIVE = 2.0**-45  # of a float gap, relatively
_FARTHEST = Fraction(10) ** 200
# words below have too few bits for that; they are compared by enclosures alone
_SCARCE = np.uint64(1 << 34)


def noisy_max(stream: Stream, scores: Scores, *, unit: Fraction, kind: Kind) -> int:
    """Return the position of the largest of unit * scores + noise."""
    return noisy_top(stream, scores, k=1, unit=unit, kind=kind)[0]


def noisy_top(stream: Stream, scores: Scores, *, k: int, unit: Fraction, kind: Kind) -> list[int]:
    """Return the positions of the k largest of unit * scores + noise, the largest first."""
    given = _integers(scores)
    if kind not in ("exponential", "gumbel"):
        raise UsageError(f"The noise of a choice is 'exponential' or 'gumbel', not {kind!r}.")
    if unit < 0:
        raise UsageError(f"The unit of the scores must not be negative, and {unit} is.")
    if not 1 <= k <= len(given):
        raise UsageError(f"{k} of {len(given)} candidates cannot be chosen.")
    items = Items.positions(len(given))
    tape.note(stream, f"noisy_top {k} {kind}", unit, items)
    own = stream.derive("noisy_top", kind, Fraction(unit), k)
    words = own.words(items, 0)
    best = max(given.tolist()) if given.dtype == object else int(given.max())
    low, high = _bounds(words[:, 0], _gaps(given, best, unit), kind)
    rank = len(given) - k
    cutoff = np.partition(low, rank)[rank]
    few = np.argpartition(low, max(0, rank - _ALWAYS))[max(0, rank - _ALWAYS) :]
    chosen = np.union1d(np.flatnonzero(high >= cutoff), few)
    racers = [
        _Racer(
            place=int(i),
            behind=Fraction(unit) * (best - int(given[i])),
            kind=kind,
            prefix=int(words[i, 0]) << 64 | int(words[i, 1]),
            more=own.derive("more", int(i)),
        )
        for i in chosen
    ]
    return list(tape.note_choice(_rank(racers, k)))


def _integers(scores: Scores) -> NDArray[np.int64] | NDArray[np.object_]:
    given = np.asarray(scores)
    if given.ndim == 1 and given.dtype.kind == "O" and all(type(score) is int for score in given):
        return given
    if given.ndim != 1 or given.dtype.kind not in "iu" or given.dtype == np.uint64:
        raise UsageError(
            "Scores are one column of integers; give the grid on which they lie as the unit."
        )
    return given.astype(np.int64, copy=False)


def _gaps(
    given: NDArray[np.int64] | NDArray[np.object_], best: int, unit: Fraction
) -> NDArray[np.float64]:
    """Return unit * (best - score) to a relative 2^-50; at most _FARTHEST, which no noise
    reaches.
    """
    if given.dtype == object or unit > _FARTHEST:
        far = [min(Fraction(unit) * (best - int(score)), _FARTHEST) for score in given]
        return np.array(far, dtype=np.float64)
    # exact modulo 2^64, and smaller than it
    differences = np.uint64(best % (1 << 64)) - given.view(np.uint64)
    gaps: NDArray[np.float64] = differences.astype(np.float64)
    gaps *= float(unit)
    return gaps


def _bounds(
    words: Words, gaps: NDArray[np.float64], kind: Kind
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return numbers that are certainly below and above each candidate's noise minus its gap.

    The uniform real V is in [w, w + 1) / 2^64. E is -log V or -log(-log(1 - V)); both fall as V
    grows. For w >= 2^34, moving V within its cell or rounding it moves E by less than 2^-33, except
    for Gumbel noise with V within 2^-16 of 1. There only E < -log(16 log 2) < -2.4 is used.
    """
    # and then in place: each further array takes as long as its arithmetic
    v = words.astype(np.float64)
    v += 0.5
    v *= 2.0**-64
    with np.errstate(divide="ignore"):
        if kind == "gumbel":  # of -log(1 - V)
            np.minimum(v, 1 - 2.0**-17, out=v)
            np.negative(np.log1p(np.negative(v, out=v), out=v), out=v)
        low = np.negative(np.log(v, out=v), out=v)
    error = gaps * _FLOAT_RELATIVE
    error += _FLOAT_ERROR
    low -= gaps
    high = low + error
    low -= error
    scarce = words < _SCARCE
    high[scarce] = np.inf
    low[scarce] -= 1.0
    if kind == "gumbel":
        late = words >= np.uint64((1 << 64) - (1 << 48))
        high[late], low[late] = (-2.4 - gaps + error)[late], -np.inf
    return low, high


@dataclass(slots=True, kw_only=True)
class _Racer:
    """A candidate whose noisy score is enclosed more and more narrowly."""

    place: int
    behind: Fraction
    kind: Kind
    prefix: int
    more: Stream
    held: int = 128

    def extend(self) -> None:
        self.prefix = self.prefix << 64 | self.more.bits(64)
        self.held = self.held + 64

    def enclosed(self) -> tuple[Fraction, Fraction] | None:
        """Return an enclosure of the noisy score minus the best score; None if the known bits do
        not bound it yet.
        """
        whole = 1 << self.held
        precision = self.held + 32
        if self.prefix == 0 or self.prefix + 1 == whole:
            return None
        # V in [p, p + 1] / whole: -log(p / whole) less at most 1 / p
        if self.kind == "exponential":
            low, high = _minus_log(self.prefix, whole, precision)
            low -= (1 << precision) // self.prefix + 1
        else:  # 1 - V in [r - 1, r] / whole: its -log is -log(r / whole) and at most 1 / (r - 1) more
            rest = whole - self.prefix
            least, most = _minus_log(rest, whole, precision)
            most += (1 << precision) // (rest - 1) + 1
            if least <= 0:
                return None
            low, high = _minus_log(least, 1 << precision, precision)
            low -= ((most - least) << precision) // least + 1
        return Fraction(low, 1 << precision) - self.behind, Fraction(
            high, 1 << precision
        ) - self.behind


def _minus_log(above: int, below: int, precision: int) -> exact.Enclosure:
    low, high = exact.log(Fraction(above, below), precision)
    return -high, -low


def _rank(racers: list[_Racer], k: int) -> list[int]:
    """Return the places of the k largest, in order. Narrow the enclosures until none of them
    overlaps a lower one.
    """
    while True:
        enclosed = [(racer.enclosed(), racer) for racer in racers]
        known = sorted(((e, racer.place) for e, racer in enclosed if e is not None), reverse=True)
        if len(known) == len(racers):
            highest = known[-1][0][1]
            apart = []
            for (low, high), _ in reversed(known):
                apart.append(low >= highest)
                highest = max(highest, high)
            apart[0] = True
            if all(apart[::-1][:k]):
                return [place for _, place in known[:k]]
        for racer in racers:
            racer.extend()
