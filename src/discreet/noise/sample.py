"""Draw discrete Laplace and discrete Gaussian noise for many items at once: exact at any rational
scale, with constant work.

A trial of `noise.table` is made for a chunk of items at once, in integers and float64. It is unsure
for an item if a float cannot decide a comparison, if a word agrees with all stored bits of its
threshold, and in the tail; together this has a probability below 2^-50 for each draw. Then `_trial`
repeats the item's trial with integers alone. So `_trial` defines the noise, and the arrays are only
a faster way to the same numbers.

The first word of a trial has a sign, a column and the bits to compare with the column's threshold.
The second has the offset. A third, from the next round, decides acceptance. More bits come from
streams of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import UsageError
from discreet.noise import exact, tape
from discreet.noise.stream import Items, Stream, Words
from discreet.noise.table import (
    COLUMN_BITS,
    COLUMNS,
    TAIL,
    THRESHOLD_BITS,
    AliasTable,
    Mass,
    gaussian,
    laplace,
    table,
)

Integers = NDArray[np.int64] | NDArray[np.object_]
Places = slice | NDArray[np.int64]

CHUNK = 32768  # items whose arrays stay in the cache
WIDEST = 52  # bits of an offset that float64 holds exactly; wider bins are drawn one by one in Python's integers

_WINDOW = 2.0**-49
_BELOW_THRESHOLD = np.uint64((1 << THRESHOLD_BITS) - 1)


def discrete_laplace(stream: Stream, items: Items, scale: Fraction) -> Integers:
    """Draw Z of mass tanh(1 / 2s) * exp(-|z| / s) for each item; in Python's integers if 64 bits
    may not be enough.
    """
    _refuse_if_not_positive(scale, "scale")
    return _draw(stream, items, "discrete_laplace", scale, laplace(scale))


def discrete_gaussian(stream: Stream, items: Items, sigma: Fraction) -> Integers:
    """Draw Z of mass proportional to exp(-z^2 / 2 sigma^2) for each item; in Python's integers if
    64 bits may not be enough.
    """
    _refuse_if_not_positive(sigma, "sigma")
    return _draw(stream, items, "discrete_gaussian", sigma, gaussian(sigma))


def add_noise(values: Any, noise: Integers) -> Integers:
    """Return values + noise exactly: in 64-bit integers if the sums certainly fit, else in Python's
    integers.
    """
    given = np.asarray(values)
    if given.ndim != 1 or len(given) != len(noise):
        raise UsageError(
            f"Noise for {len(noise)} items cannot be added to an array of shape {given.shape}."
        )
    if given.dtype.kind not in "iu" and not (
        given.dtype == object and all(type(value) is int for value in given)
    ):
        raise UsageError(f"Noise is added to integers, not to {given.dtype}.")
    narrow = given.dtype != object and noise.dtype != object
    if narrow and len(given):
        narrow = (
            max(-int(given.min()), int(given.max())) + max(-int(noise.min()), int(noise.max()))
            < 1 << 63
        )
    kind = np.int64 if narrow else object
    noisy: Integers = given.astype(kind) + noise.astype(kind, copy=False)
    return noisy


def _refuse_if_not_positive(scale: Fraction, name: str) -> None:
    if not isinstance(scale, (Fraction, int)) or isinstance(scale, bool) or scale <= 0:
        raise UsageError(f"{name} must be a positive rational number, not {scale!r}.")


def _draw(stream: Stream, items: Items, sampler: str, scale: Fraction, mass: Mass) -> Integers:
    tape.note(stream, sampler, Fraction(scale), items)
    # Privacy: two scales or two kinds of noise never share words, even on one stream with the same
    # items (S8).
    own = stream.derive(sampler, Fraction(scale))
    columns = _columns(mass)
    if columns.table.width_bits > WIDEST:
        return _one_by_one(columns.table, own, items)
    drawn: Integers = np.empty(len(items), dtype=np.int64)
    left: NDArray[np.int64] | None = None
    trial = 0
    while True:
        rounds = (own.round(2 * trial), own.round(2 * trial + 1))
        refused = [np.empty(0, dtype=np.int64)]
        for where in _chunks(len(items), left):
            ids = items.ids[where]
            words = rounds[0](ids)
            accepting = rounds[1](ids) if columns.table.width_bits else None
            values, again, unsure = columns.trial(words, accepting)
            for i in unsure:
                third = 0 if accepting is None else int(accepting[i, 0])
                value = _trial(
                    columns.table, own, trial, ids[i], int(words[i, 0]), int(words[i, 1]), third
                )
                again[i] = value is None
                if value is not None and abs(value) >= 1 << 63:
                    drawn = drawn.astype(object)
                    values = values.astype(object)
                values[i] = value or 0
            drawn[where] = values
            places = np.flatnonzero(again)
            refused.append(places + where.start if isinstance(where, slice) else where[places])
        left = np.concatenate(refused)
        if not len(left):
            return drawn
        trial += 1


def _chunks(n: int, left: NDArray[np.int64] | None) -> Iterator[Places]:
    """Yield all n items, or those still left, a chunk at a time."""
    for start in range(0, n if left is None else len(left), CHUNK):
        yield slice(start, min(start + CHUNK, n)) if left is None else left[start : start + CHUNK]


@dataclass(frozen=True, slots=True)
class _Columns:
    """A table as arrays. A column's number has the sign on top, so each array holds every column
    twice.
    """

    table: AliasTable
    stored: NDArray[np.uint64]
    own: NDArray[np.int64]
    """The low end of a column's own bin; with width 1 this is the value, and has its sign."""
    alias: NDArray[np.int64]
    linear: float
    quadratic: float
    terms: tuple[float, ...]

    def trial(
        self, words: Words, accepting: Words | None
    ) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[np.int64]]:
        """Return the values, which of them are refused, and the positions that are left to
        `_trial`.
        """
        column = (words[:, 0] >> np.uint64(THRESHOLD_BITS)).view(np.int64)
        fraction = words[:, 0] & _BELOW_THRESHOLD
        stored = self.stored.take(column)
        low = np.where(fraction < stored, self.own.take(column), self.alias.take(column))
        unsure = (fraction == stored) | (abs(low) == TAIL << self.table.width_bits)
        if accepting is None:
            return low, np.zeros(len(low), dtype=bool), np.flatnonzero(unsure)
        offset = (words[:, 1] & np.uint64(self.table.width - 1)).view(np.int64)
        v = low + offset
        x = offset.astype(np.float64)
        x *= (low + v) * self.quadratic if self.quadratic else self.linear
        refusal = self._refusal(x)
        difference = accepting[:, 0] - refusal
        unsure |= abs(difference) <= refusal * _WINDOW + 2.0
        minus = column >> COLUMN_BITS
        refused = (difference < 0) | ((v == 0) & (minus == 1))
        return (v ^ -minus) + minus, refused, np.flatnonzero(unsure)

    def _refusal(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return 2^64 * (1 - exp(-x)) for 0 <= x < 0.63, so near that outside a window all of W is
        on one side.

        With u = 2^-53, relative errors to first order: x is off by 4u at most (its factors, each
        rounded, and their products), which moves the result by as much or less. The series x * (1 -
        x/2 + x^2/6 - ...) by Horner's rule: the term in x^i passes through 2i + 1 roundings and its
        coefficient through one, in all under 4u of the sum of the series, and the last product 1u;
        cut where the next term is under 2^-56, another u/8 (it alternates and falls). w as a float
        is off by 1u, the difference and the window by 1u each. In all under 13u. The window is 16u,
        plus 2 for the cell [w, w + 1): outside it the sign of w - refusal is certain for all of W.

        Inside it lies a word with a probability of 32u * (1 - exp(-x)) + 2^-62, on average under
        2^-51.
        """
        total = np.full_like(x, self.terms[-1])
        for term in self.terms[-2::-1]:
            total *= x
            total += term
        total *= x
        return total


@lru_cache(maxsize=256)
def _columns(mass: Mass) -> _Columns:
    made = table(mass)
    own = np.arange(COLUMNS, dtype=np.int64)
    alias = np.array(made.alias, dtype=np.int64)
    stored = np.tile(np.array(made.stored, dtype=np.uint64), 2)
    if made.width_bits == 0:
        return _Columns(
            made, stored, np.concatenate([own, -own]), np.concatenate([alias, -alias]), 0.0, 0.0, ()
        )
    shift = min(made.width_bits, WIDEST)
    own = np.tile(own, 2) << shift
    alias = np.tile(alias, 2) << shift
    # the largest x
    most = mass.exponent(TAIL << made.width_bits) - mass.exponent((TAIL - 1) << made.width_bits)
    degree = 1
    while most**degree * 2**56 > factorial(degree + 1):
        degree += 1
    terms = tuple(-((-1.0) ** n) * 2.0**64 / factorial(n) for n in range(1, degree + 1))
    return _Columns(made, stored, own, alias, float(mass.linear), float(mass.quadratic), terms)


def _trial(
    made: AliasTable, stream: Stream, trial: int, item: Words, first: int, second: int, third: int
) -> int | None:
    """Try one item once, in integers alone: return the value, or None if it is refused."""
    name = item.tobytes()
    column = first >> THRESHOLD_BITS & COLUMNS - 1
    minus = first >> 63
    if not made.keeps(
        column, first & (1 << THRESHOLD_BITS) - 1, stream.derive("column", trial, name)
    ):
        column = made.alias[column]
    if column == TAIL:
        beyond = made.tail(stream.derive("tail", trial, name))
        return beyond if beyond is None or not minus else -beyond
    low = column << made.width_bits
    offset = second & made.width - 1
    if made.width_bits > 64:
        offset |= stream.derive("offset", trial, name).bits(made.width_bits - 64) << 64
    if made.width_bits:
        if minus and low + offset == 0:
            return None
        more = stream.derive("accept", trial, name)
        if exact.less(
            third, 64, lambda: more.bits(64), lambda bits: made.refusal(low, offset, bits)
        ):
            return None
    return -(low + offset) if minus else low + offset


def _one_by_one(made: AliasTable, stream: Stream, items: Items) -> NDArray[np.object_]:
    drawn = np.empty(len(items), dtype=object)
    left = list(range(len(items)))
    trial = 0
    while left:
        ids = items.ids[left]
        words = stream.round(2 * trial)(ids)
        accepting = stream.round(2 * trial + 1)(ids)
        for i, place in enumerate(left):
            first = int(words[i, 0])
            second = int(words[i, 1])
            third = int(accepting[i, 0])
            drawn[place] = _trial(made, stream, trial, ids[i], first, second, third)
        left = [place for place in left if drawn[place] is None]
        trial += 1
    return drawn
