"""Choose by the exponential mechanism, exactly, among very many candidates that come in long runs
of equal score.

A run of L candidates whose score is `gap` below the best has the weight L exp(-unit * gap). For
each item one uniform real chooses the run, in proportion to the weights, and another the candidate
in the run. So the number of draws depends neither on the scores nor on the runs (S14).

Only the leading bits of both reals are drawn. float64 decides if it certainly can. If the real is
too near the border of a run, with probability 2^-38 for each run, the weights are enclosed by
integers of growing precision.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import UsageError
from discreet.noise import exact, tape
from discreet.noise.choose import _gaps
from discreet.noise.stream import Items, Stream, Words

Integers = NDArray[Any]  # int64, or Python's integers

_AT_ONCE = 1 << 20  # runs that are added up at a time
# Of a sum of weights, relatively. A float weight is off by a relative 745 * 2^-50 + 2^-48 at most:
# its exponent by 2^-50 of itself, and exp by far less than 2^-48 (beyond 745 it is 0; that is less
# than e^-745 of a total of 1 or more for each candidate). A sum of n positive floats is off by n *
# 2^-53.
_FLOAT_ERROR = 2.0**-40
_FLOAT_SUM_ERROR = 2.0**-50


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Runs:
    """The candidates of many items as runs of equal score. Item i has the runs from begins[i] up
    to, but not including, begins[i + 1].

    A run has `lengths` candidates, numbered from `starts`, whose score is `gaps` below the item's
    best. A gap of 0 belongs to a run that is not empty. Empty runs are never chosen.
    """

    begins: NDArray[np.int64]
    starts: Integers
    lengths: Integers
    gaps: Integers


def choose_in_runs(stream: Stream, items: Items, runs: Runs, *, unit: Fraction) -> Integers:
    """Return for each item the number of a candidate, chosen with probability proportional to
    exp(-unit * gap).
    """
    if len(runs.begins) != len(items) + 1:
        raise UsageError(f"There are runs for {len(runs.begins) - 1} items, not for {len(items)}.")
    if unit < 0:
        raise UsageError(f"The unit of the scores must not be negative, and {unit} is.")
    tape.note(stream, "choose_in_runs", unit, items)
    own = stream.derive("choose_in_runs", Fraction(unit))
    places = _runs_chosen(own, items, runs, unit)
    words = own.words(items, 1)
    found = []
    for row, place in enumerate(places.tolist()):
        real = _Real(words=words[row], source=own, purpose="within", item=items.ids[row].tobytes())
        found.append(int(runs.starts[place]) + _below(int(runs.lengths[place]), real))
    wide = runs.starts.dtype == object or runs.lengths.dtype == object
    return np.asarray(tape.note_choice(np.array(found, dtype=object if wide else np.int64)))


def _runs_chosen(own: Stream, items: Items, runs: Runs, unit: Fraction) -> NDArray[np.int64]:
    """Return the place of the run that each item chooses."""
    words = own.words(items, 0)
    weights = runs.lengths.astype(np.float64) * np.exp(-_gaps(-runs.gaps, 0, unit))
    widths = np.diff(runs.begins)
    order = np.argsort(widths, kind="stable")
    places = np.empty(len(items), dtype=np.int64)
    done = 0
    while done < len(items):
        likely = min(done + max(1, _AT_ONCE // int(widths[order[done]])), len(items))
        some = order[
            done : done + max(1, min(likely - done, _AT_ONCE // int(widths[order[likely - 1]])))
        ]
        first = runs.begins[some]
        width = int(widths[some[-1]])
        inside = np.arange(width) < widths[some][:, None]
        table = np.where(
            inside, weights[np.minimum(first[:, None] + np.arange(width), len(weights) - 1)], 0.0
        )
        chosen, sure = _float_choice(table, words[some, 0])
        places[some] = first + chosen
        for row in some[~sure]:
            real = _Real(
                words=words[row], source=own, purpose="which", item=items.ids[row].tobytes()
            )
            begin = runs.begins[row]
            end = runs.begins[row + 1]
            places[row] = begin + _settle(runs.lengths[begin:end], runs.gaps[begin:end], unit, real)
        done += len(some)
    return places


def _float_choice(
    table: NDArray[np.float64], words: Words
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return for each row of weights the one into which the real falls, and whether that is
    certain.
    """
    upto = table.cumsum(axis=1)
    total = upto[:, -1]
    target = (words.astype(np.float64) + 0.5) * 2.0**-64 * total
    chosen = np.minimum((upto <= target[:, None]).sum(axis=1), table.shape[1] - 1)
    rows = np.arange(len(table))
    error = total * (_FLOAT_ERROR + table.shape[1] * _FLOAT_SUM_ERROR)
    above = upto[rows, chosen] - target > error
    below = target - np.where(chosen > 0, upto[rows, np.maximum(chosen - 1, 0)], -np.inf) > error
    return chosen, above & below


class _Real:
    """A uniform real in [0, 1): its leading bits, and more bits if they are needed."""

    __slots__ = ("_item", "_more", "_purpose", "_source", "held", "prefix")

    def __init__(self, *, words: Words, source: Stream, purpose: str, item: bytes) -> None:
        self.prefix = int(words[0]) << 64 | int(words[1])
        self.held = 128
        self._source = source
        self._purpose = purpose
        self._item = item
        self._more: Stream | None = None

    def extend(self) -> None:
        if self._more is None:  # derived only now: nearly all reals need no more bits
            self._more = self._source.derive("more", self._purpose, self._item)
        self.prefix = self.prefix << 64 | self._more.bits(64)
        self.held = self.held + 64


def _below(length: int, real: _Real) -> int:
    """Return the whole part of length * real."""
    while True:
        least = real.prefix * length >> real.held
        most = (real.prefix + 1) * length - 1 >> real.held
        if least == most:
            return least
        real.extend()


def _settle(lengths: Integers, gaps: Integers, unit: Fraction, real: _Real) -> int:
    """Return the run into which the real falls, by enclosures of all weights.

    Run j is chosen if C_{j-1} <= U C_n < C_j, with C the sums of the weights up to each run.
    """
    while True:
        bits = real.held + 32
        known = {gap: exact.exp_minus(unit * gap, bits) for gap in set(map(int, gaps))}
        pairs = [(int(length), known[int(gap)]) for length, gap in zip(lengths, gaps, strict=True)]
        least = list(accumulate(length * low for length, (low, _) in pairs))
        most = list(accumulate(length * high for length, (_, high) in pairs))
        place = bisect_right(least, real.prefix * least[-1] >> real.held)
        for j in (place - 1, place, place + 1):
            if 0 <= j < len(least):
                after = j == 0 or most[j - 1] << real.held <= real.prefix * least[-1]
                before = (real.prefix + 1) * most[-1] <= least[j] << real.held or not any(
                    lengths[j + 1 :]
                )
                if lengths[j] and after and before:
                    return j
        real.extend()
