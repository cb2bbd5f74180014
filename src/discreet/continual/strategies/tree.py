"""Trees of sums: the classical way. Binary with its best estimate, and k-ary with subtraction for
pure budgets.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.continual.strategies.strategy import Decoder, Floats, by_impulses
from discreet.policy.schedule import Publish
from discreet.vault.exact import IntegerArray
from discreet.vault.integers import exact_sum
from discreet.vault.steps import Encoder, ExactStep


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryTree:
    """Release the noisy sum of every run of 2^l periods that begins at a multiple of 2^l, when it
    is over.

    Privacy
        A period is in one run of each level [Dwork, Naor, Pitassi, Rothblum 2010; Chan, Shi, Song
        2011]. A run of 2^l holds at most 2^l / apart (rounded up) of a person's periods, and the
        sum of squares of the numbers that fall into each run is at most that of runs filled one
        after the other; runs that the horizon cuts are never released. With apart = 1 that is
        exact; else neighboring runs cannot all be filled, and it is up to 1.3 times too large.
    Error
        A node's best estimate mixes its own noisy sum with those of its halves, by their variances
        [Honaker 2015]: v_0 = 1, v_l = 2 v / (1 + 2 v) with v that of the level below. A running
        total adds the nodes of its binary digits.
    """

    periods: int
    name = "binary tree"

    @property
    def levels(self) -> int:
        return self.periods.bit_length()

    def encoder(self) -> Encoder:
        return _BinaryEncoder(self.levels)

    def decoder(self) -> Decoder:
        return _BinaryDecoder(self.levels)

    def l2_squared(self, *, times: int, apart: int, cells: int, signed: bool) -> Fraction:
        total = 0
        for level in range(self.levels):
            fit = min(times, -(-(1 << level) // apart))
            runs = self.periods >> level
            full = min(times // fit, runs)
            rest = times - full * fit if full < runs else 0
            total += full * fit**2 + rest**2
        return Fraction(total)

    def variances(self) -> list[float]:
        """Return the variance of the best estimate of a node at each level."""
        found = [1.0]
        for _ in range(1, self.levels):
            found.append(2 * found[-1] / (1 + 2 * found[-1]))
        return found

    def deviations(self, publish: Publish) -> Floats:
        if publish == "daily":
            return np.ones(self.periods)
        if publish == "cumulative":
            digits = np.arange(1, self.periods + 1)[:, None] >> np.arange(self.levels) & 1
            return np.asarray(np.sqrt(digits @ np.array(self.variances())))
        return by_impulses(
            self, [_rows(period, self.levels) for period in range(self.periods)], publish
        )


def _rows(period: int, levels: int) -> int:
    """Count the runs that end with this period."""
    done = period + 1
    return min((done & -done).bit_length(), levels)


class _BinaryEncoder:
    def __init__(self, levels: int) -> None:
        self._levels = levels
        self._sums: list[Any] = [0] * levels
        self._period = 0

    def add(self, values: IntegerArray) -> ExactStep:
        self._sums = [exact_sum(total + 0 * values, values) for total in self._sums]
        rows = _rows(self._period, self._levels)
        measured = np.stack(self._sums[:rows])
        self._sums[:rows] = [0] * rows
        draws = tuple(self._period * self._levels + level for level in range(rows))
        self._period += 1
        return ExactStep(values=measured, draws=draws, signs=np.eye(rows, dtype=np.int64))


class _BinaryDecoder:
    def __init__(self, levels: int) -> None:
        self._variances = BinaryTree(periods=(1 << levels) - 1).variances()
        # the best estimate of a left half that waits for its right one
        self._left: list[Any] = [None] * levels
        self._period = 0

    def add(self, noisy: IntegerArray) -> tuple[Floats, Floats]:
        rows = np.asarray(noisy, dtype=np.float64)
        best = rows[0]
        for level in range(1, len(rows)):
            weight = self._variances[level]
            best = weight * rows[level] + (1 - weight) * (self._left[level - 1] + best)
            self._left[level - 1] = None
        self._left[len(rows) - 1] = best
        total = np.sum([each for each in self._left if each is not None], axis=0)
        return rows[0], np.asarray(total)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtractionTree:
    """Release every period, and the running total, with the noise of the nodes of a tree added to
    or taken from it.

    A node at level l stands for a run of arity^l periods, and has one draw. The draws on the total
    of n periods are those of n's digits: for a digit d up to half the arity its first d runs,
    beyond that the whole run above less the last runs of it [Andersson, Pagh, Torkamani 2024].

    Privacy
        What leaves is L (R x + z): R has the nodes' runs as rows, L is made of -1, 0 and 1, and L R
        x are the exact periods and totals. For what leaves on x the noise z + R u makes the same
        leave on x - u, and its mass is smaller by exp(|R u|_1 / scale) at most. So epsilon = l1 /
        scale, with l1 = height * times, also where later periods react to what has left
        (docs/proofs/continual.md).
    Error
        The variance of a draw times the number of nodes in it.
    """

    periods: int
    arity: int
    height: int

    @property
    def name(self) -> str:
        return f"{self.arity}-ary tree of height {self.height} with subtraction"

    def encoder(self) -> Encoder:
        return _SubtractionEncoder(self)

    def decoder(self) -> Decoder:
        return _SubtractionDecoder()

    def l1(self, *, times: int) -> int:
        return self.height * times

    def runs(self, totals: Any) -> list[tuple[Any, Any, Any]]:
        """Return at each level, for totals of so many periods: first node, node after the last, and
        sign.
        """
        found, rest = [], totals
        for _ in range(self.height - 1):
            above = rest // self.arity
            digit = rest % self.arity
            beyond = digit > self.arity // 2
            first = np.where(beyond, rest, above * self.arity)
            last = np.where(beyond, (above + 1) * self.arity, rest)
            found.append((first, last, np.where(beyond, -1, 1)))
            rest = above + beyond
        return [*found, (np.zeros_like(rest), rest, np.ones_like(rest))]

    def deviations(self, publish: Publish) -> Floats:
        ones, twos = self.draws(publish)
        return np.asarray(np.sqrt(ones + 4.0 * twos))

    def draws(self, publish: Publish) -> tuple[IntegerArray, IntegerArray]:
        """Count the draws in each period's estimate: once, and twice."""
        totals = np.arange(1, self.periods + 1)
        nothing = np.zeros(self.periods, dtype=np.int64)
        if publish == "daily":
            return nothing + 1, nothing
        if publish == "cumulative":
            return sum((last - first for first, last, _ in self.runs(totals)), nothing), nothing
        ones, twos = nothing, nothing
        pairs = zip(self.runs(totals), self.runs(np.maximum(totals - publish, 0)), strict=True)
        for (first, last, sign), (earlier, until, other) in pairs:
            shared = np.maximum(np.minimum(last, until) - np.maximum(first, earlier), 0)
            ones = ones + (last - first) + (until - earlier) - 2 * shared
            twos = twos + np.where(sign == other, 0, shared)
        return ones, twos


class _SubtractionEncoder:
    def __init__(self, tree: SubtractionTree) -> None:
        self._tree = tree
        self._total: Any = 0
        self._period = 0

    def add(self, values: IntegerArray) -> ExactStep:
        self._total = exact_sum(self._total + 0 * values, values)
        height, nodes = self._tree.height, {self._period * self._tree.height: (1, 0)}
        for level, (first, last, sign) in enumerate(self._tree.runs(np.int64(self._period + 1))):
            for node in range(int(first), int(last)):
                draw = node * height + level
                nodes[draw] = (nodes.get(draw, (0, 0))[0], int(sign))
        self._period += 1
        return ExactStep(
            values=np.stack([values, self._total]),
            draws=tuple(nodes),
            signs=np.array(list(nodes.values()), dtype=np.int64).T,
        )


class _SubtractionDecoder:
    def add(self, noisy: IntegerArray) -> tuple[Floats, Floats]:
        return np.asarray(noisy[0], dtype=np.float64), np.asarray(noisy[1], dtype=np.float64)
