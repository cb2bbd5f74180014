"""Discrete Laplace and discrete Gaussian noise for many items at once: exact at any rational scale, constant work.

Each trial of `noise.table` is done for a chunk of items in float64 and integers, and each step certifies itself: where
a float cannot decide a comparison (probability under 2^-50 a draw), where a word agrees with all stored bits of its
threshold, and in the tail, the item's trial is done again by `_trial`, in integers alone. So `_trial` is what is
drawn, and the arrays are a fast way to the same numbers.

Of a trial's four words: the first holds a sign, a column and the bits against the column's threshold; the second the
offset; the third decides acceptance; the fourth is not used. Bits beyond them come from a stream of their own.
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
from discreet.noise.table import COLUMN_BITS, COLUMNS, TAIL, THRESHOLD_BITS, Mass, Table, gaussian, laplace, table

Integers = NDArray[np.int64] | NDArray[np.object_]

CHUNK = 16384
WIDEST = 52  # bits of an offset that float64 holds exactly; wider bins are drawn one by one in Python's integers

_U = np.uint64
_BELOW_THRESHOLD = _U((1 << THRESHOLD_BITS) - 1)


def discrete_laplace(stream: Stream, items: Items, scale: Fraction) -> Integers:
    """Z of mass tanh(1 / 2s) * exp(-|z| / s), one for each item."""
    _refuse_if_not_positive(scale, "scale")
    return _draw(stream, items, "discrete_laplace", scale, laplace(scale))


def discrete_gaussian(stream: Stream, items: Items, sigma: Fraction) -> Integers:
    """Z of mass proportional to exp(-z^2 / (2 sigma^2)), one for each item."""
    _refuse_if_not_positive(sigma, "sigma")
    return _draw(stream, items, "discrete_gaussian", sigma, gaussian(sigma))


def added(values: Any, noise: Integers) -> Integers:
    """values + noise, exactly: in 64-bit integers where the sums certainly fit, else in Python's."""
    given = np.asarray(values)
    if given.ndim != 1 or len(given) != len(noise):
        raise UsageError(f"Noise for {len(noise)} items cannot be added to an array of shape {given.shape}.")
    if given.dtype.kind not in "iu" and not (given.dtype == object and all(type(value) is int for value in given)):
        raise UsageError(f"Noise is added to integers, not to {given.dtype}.")
    narrow = given.dtype != object and noise.dtype != object
    if narrow and len(given):
        narrow = max(-int(given.min()), int(given.max())) + max(-int(noise.min()), int(noise.max())) < 1 << 63
    kind = np.int64 if narrow else object
    noisy: Integers = given.astype(kind) + noise.astype(kind, copy=False)
    return noisy


def _refuse_if_not_positive(scale: Fraction, name: str) -> None:
    if not isinstance(scale, (Fraction, int)) or isinstance(scale, bool) or scale <= 0:
        raise UsageError(f"{name} must be a positive rational number, not {scale!r}.")


def _draw(stream: Stream, items: Items, sampler: str, scale: Fraction, mass: Mass) -> Integers:
    # Privacy: two scales or two kinds of noise never share words, even on one stream with the same items (S8).
    own = stream.derive(sampler, Fraction(scale))
    tape.note(stream, sampler, Fraction(scale), items)
    columns = _columns(mass)
    if columns.table.width_bits > WIDEST:
        return _one_by_one(columns.table, own, items)
    drawn = np.empty(len(items), dtype=np.int64)
    huge: dict[int, int] = {}
    left: NDArray[np.int64] | None = None
    trial = 0
    while left is None or len(left):
        refused = []
        rounds = own.round(2 * trial), own.round(2 * trial + 1)
        for where in _chunks(len(items), left):
            ids = items.ids[where]
            words = rounds[0](ids)
            accepting = rounds[1](ids)[:, 0] if columns.table.width_bits else None
            values, again, unsure = columns.trial(words, accepting)
            places = np.arange(where.start, where.stop) if isinstance(where, slice) else where
            for i in unsure:
                third = 0 if accepting is None else int(accepting[i])
                value = _trial(columns.table, own, trial, ids[i], int(words[i, 0]), int(words[i, 1]), third)
                again[i] = value is None
                if value is not None and abs(value) >= 1 << 63:
                    huge[int(places[i])] = value
                elif value is not None:
                    values[i] = value
            drawn[where] = values
            refused.append(places[again])
        left = np.concatenate(refused) if refused else np.empty(0, dtype=np.int64)
        trial += 1
    if not huge:
        return drawn
    wide = drawn.astype(object)
    for place, value in huge.items():
        wide[place] = value
    return wide


def _chunks(n: int, left: NDArray[np.int64] | None) -> Iterator[slice | NDArray[np.int64]]:
    """All items, or those still left, a chunk at a time."""
    for start in range(0, n if left is None else len(left), CHUNK):
        yield slice(start, min(start + CHUNK, n)) if left is None else left[start : start + CHUNK]


@dataclass(frozen=True, slots=True)
class _Columns:
    """A table as arrays. The column's number has the sign on top, so that each array holds every column twice."""

    table: Table
    stored: NDArray[np.uint64]
    own: NDArray[np.int64]
    alias: NDArray[np.int64]
    linear: float
    quadratic: float
    terms: tuple[float, ...]

    def trial(
        self, words: Words, accepting: Words | None
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
        """The values, which are refused, and which are left to `_trial`."""
        first = words[:, 0]
        column = (first >> _U(THRESHOLD_BITS)).view(np.int64)
        fraction = first & _BELOW_THRESHOLD
        stored = self.stored.take(column)
        keep = fraction < stored
        low = np.where(keep, self.own.take(column), self.alias.take(column))
        special = (fraction == stored) | (abs(low) >= TAIL << self.table.width_bits)
        if accepting is None:
            return low, np.zeros(len(low), dtype=bool), np.flatnonzero(special)
        offset = (words[:, 1] & _U(self.table.width - 1)).view(np.int64)
        v = low + offset
        x = offset.astype(np.float64)
        x *= (low + v) * self.quadratic if self.quadratic else self.linear
        refusal = self._refusal(x)
        difference = accepting.astype(np.float64) - refusal
        special |= abs(difference) <= refusal * 2.0**-49 + 2.0
        minus = column >> COLUMN_BITS
        again = (difference < 0) | ((v == 0) & (minus == 1))
        return (v ^ -minus) + minus, again, np.flatnonzero(special)

    def _refusal(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """2^64 * (1 - exp(-x)), to a relative 2^-49 (proof: docs/proofs/noise.md)."""
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
    if made.width_bits == 0:
        own, alias = np.concatenate([own, -own]), np.concatenate([alias, -alias])
    elif made.width_bits <= WIDEST:
        own, alias = (np.concatenate([half, half]) << made.width_bits for half in (own, alias))
    stored = np.array(made.stored * 2, dtype=np.uint64)
    # The largest x: the last bin, at its far end.
    most = mass.exponent(TAIL << made.width_bits) - mass.exponent((TAIL - 1) << made.width_bits)
    terms, n = [2.0**64], 1
    while made.width_bits and most**n * 2**56 > factorial(n + 1):
        n += 1
        terms.append((-1) ** (n - 1) * 2.0**64 / factorial(n))
    for array in (own, alias, stored):
        array.setflags(write=False)
    return _Columns(made, stored, own, alias, float(mass.linear), float(mass.quadratic), tuple(terms))


def _trial(made: Table, stream: Stream, trial: int, item: Words, first: int, second: int, third: int) -> int | None:
    """One trial of one item, in integers alone: the value, or None if it is refused."""
    name = item.tobytes()
    column, minus = first >> THRESHOLD_BITS & COLUMNS - 1, first >> 63
    fraction = first & (1 << THRESHOLD_BITS) - 1
    more = stream.derive("column", trial, name)
    if not exact.less(fraction, THRESHOLD_BITS, lambda: more.bits(64), lambda bits: made.threshold(column, bits)):
        column = made.alias[column]
    if column == TAIL:
        v = made.tail(stream.derive("tail", trial, name))
        return v if v is None or not minus else -v
    low, offset = column << made.width_bits, second & made.width - 1
    if made.width_bits > 64:
        offset |= stream.derive("offset", trial, name).bits(made.width_bits - 64) << 64
    if made.width_bits:
        if minus and low + offset == 0:
            return None
        more = stream.derive("accept", trial, name)
        if exact.less(third, 64, lambda: more.bits(64), lambda bits: made.refusal(low, offset, bits)):
            return None
    return -(low + offset) if minus else low + offset


def _one_by_one(made: Table, stream: Stream, items: Items) -> NDArray[np.object_]:
    drawn = np.empty(len(items), dtype=object)
    left = np.arange(len(items))
    trial = 0
    while len(left):
        ids = items.ids[left]
        words, accepting = stream.round(2 * trial)(ids), stream.round(2 * trial + 1)(ids)
        for i, place in enumerate(left):
            drawn[place] = _trial(made, stream, trial, ids[i], *map(int, (*words[i], accepting[i, 0])))
        left = left[[drawn[place] is None for place in left]]
        trial += 1
    return drawn
