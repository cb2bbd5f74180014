"""Randomness for experiments: it chooses whom to attack, which subsets to ask, whose rating is
wrong.

None of it protects anybody, so floats are good enough. Noise that protects people comes from
`discreet.mechanisms`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.noise import Items, Stream

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Dice:
    """Random numbers for one experiment. They have no seed, so nobody can draw them again."""

    __slots__ = ("_round", "_stream")

    def __init__(self) -> None:
        self._stream = Stream.fresh().derive("experiment")
        self._round = 0

    def uniform(self, *shape: int) -> Floats:
        """Draw numbers in [0, 1), on a grid of 2^-53."""
        size = int(np.prod(shape))
        words = self._stream.words(Items.positions((size + 1) // 2), self._round).reshape(-1)[:size]
        self._round += 1
        return ((words >> np.uint64(11)).astype(np.float64) * 2.0**-53).reshape(shape)

    def below(self, high: int | Integers, *shape: int) -> Integers:
        return np.asarray(self.uniform(*shape) * high).astype(np.int64)

    def normal(self, *shape: int) -> Floats:
        from scipy.special import ndtri

        return np.asarray(ndtri(np.maximum(self.uniform(*shape), 2.0**-54)))

    def order(self, n: int) -> Integers:
        return np.argsort(self.uniform(n), kind="stable")

    def some(self, n: int, k: int) -> Integers:
        """Draw k of n without replacement."""
        if 3 * k > n:
            return self.order(n)[:k]
        return _distinct(self, n, k)


def _distinct(dice: Dice, n: int, k: int) -> Integers:
    """Draw k of n by rejection, whose cost depends on k and not on n."""
    picked: dict[int, None] = {}
    while len(picked) < k:
        picked.update(dict.fromkeys(dice.below(n, 2 * k).tolist()))
    return np.fromiter(picked, dtype=np.int64)[:k]
