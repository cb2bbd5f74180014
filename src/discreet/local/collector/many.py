"""The draws of many respondents at once: the same coins as `noise.bits`, a column of them at a
time.

Each draw has a stream of its own, in the order in which the encoder asks, and takes one word a
respondent. So a vectorised encoder and the one-respondent encoder, given the same words, send the
same report; tests hold them to it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import cast

import numpy as np
from numpy.typing import NDArray

from discreet.noise import coins
from discreet.noise.bits import WORD
from discreet.noise.stream import Items, Stream, Words

_CHUNK = 1 << 14  # blocks of two words at a time: 256 KB, which stay in a core's cache
# binary places of a threshold that 64 coins read together; the rest is read by the coins still open
_PLACES = 13


class Draws:
    """Columns of draws for n respondents."""

    __slots__ = ("_items", "_made", "_stream")

    def __init__(self, n: int) -> None:
        self._stream = Stream.fresh()
        self._items = Items.positions(n)
        self._made = 0

    def _next(self) -> Stream:
        self._made += 1
        return self._stream.derive("draw", self._made)

    def coin(self, threshold: int) -> NDArray[np.bool_]:
        """Draw coins that are True with probability threshold / 2^64."""
        return coins.bernoulli(self._next(), self._items, Fraction(threshold, WORD))

    def below(self, n: int) -> NDArray[np.int64]:
        """Draw uniform integers in [0, n), n at most 2^63."""
        return cast("NDArray[np.int64]", coins.uniform(self._next(), self._items, n))

    def words(self, count: int) -> Words:
        """Draw `count` uniform 64-bit words a respondent, as columns."""
        stream = self._next()
        pairs = [stream.words(self._items, number) for number in range(-(-count // 2))]
        return np.concatenate(pairs, axis=1)[:, :count]

    def packed_coins(self, width: int, threshold: int) -> Words:
        """Draw `width` words a respondent; each bit is one with probability threshold / 2^64,
        independently.

        A coin compares 64 random bits with the threshold. Here 64 coins are compared at once, one
        in each bit of a word, with a word of fresh bits for each of the first _PLACES binary
        places. These decide all but 2^-_PLACES of the coins; those whose places all agree with the
        threshold go on alone, against the rest of it.
        """
        n = len(self._items)
        stream = self._next()
        packed = np.empty(n * width, dtype=np.uint64)
        planes = [stream.round(place) for place in range(_PLACES)]
        for start in range(0, len(packed), 2 * _CHUNK):
            chunk = packed[start : start + 2 * _CHUNK]
            ids = Items.codes(np.arange(start // 2, start // 2 + -(-len(chunk) // 2))).ids
            undecided = _compare(
                chunk, [plane(ids).reshape(-1)[: len(chunk)] for plane in planes], threshold
            )
            _finish(
                chunk, undecided, stream.derive("rest", start), threshold % (1 << (64 - _PLACES))
            )
        return packed.reshape(n, width)


def _compare(below: Words, planes: list[Words], threshold: int) -> Words:
    """Set the bits of `below` whose numbers are below the threshold; return those that agree with
    it in every place.

    A one in a plane is a zero in that place of the number, so that each place takes one operation:
    the last first, a number is below if this place is (threshold 1, number 0), or if it does not
    differ and the places after it are.
    """
    below[:] = 0
    at_most = np.full_like(below, WORD - 1)
    for place in reversed(range(len(planes))):
        step = np.bitwise_or if threshold >> (63 - place) & 1 else np.bitwise_and
        step(below, planes[place], out=below)
        step(at_most, planes[place], out=at_most)
    at_most ^= below
    return at_most


def _finish(packed: Words, undecided: Words, stream: Stream, rest: int) -> None:
    """Decide the coins that agree with the threshold in every place so far: more bits against the
    rest of it.
    """
    where = np.flatnonzero(undecided)
    lanes = np.unpackbits(undecided[where].view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    word, lane = np.nonzero(lanes)
    drawn = stream.words(Items.positions(len(word)), 0)[:, 0] >> np.uint64(_PLACES)
    np.bitwise_or.at(
        packed, where[word], (drawn < np.uint64(rest)).astype(np.uint64) << lane.astype(np.uint64)
    )
