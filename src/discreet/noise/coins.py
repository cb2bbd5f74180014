"""Draw exact coins, uniform integers and orderings for many items at once; `noise.bits` draws them
one at a time.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.errors import UsageError
from discreet.noise import bits, exact, tape
from discreet.noise.exact import Real
from discreet.noise.stream import Items, Stream, Words


def bernoulli(stream: Stream, items: Items, p: Fraction) -> NDArray[np.bool_]:
    """Return True with probability p, a rational in [0, 1], for each item."""
    if not 0 <= p <= 1:
        raise UsageError(f"A probability lies in [0, 1]; {p} does not.")
    return _coins(stream, items, "bernoulli", p, lambda precision: exact.rational(p, precision))


def bernoulli_exp(stream: Stream, items: Items, x: Fraction) -> NDArray[np.bool_]:
    """Return True with probability exp(-x), x >= 0, for each item."""
    if x < 0:
        raise UsageError(f"exp(-x) is a probability for x >= 0; {x} is less.")
    return _coins(
        stream, items, "bernoulli_exp", x, lambda precision: exact.exp_minus(x, precision)
    )


def bernoulli_odds(stream: Stream, items: Items, x: Fraction, n: int) -> NDArray[np.bool_]:
    """Return True with probability 1 / (1 + n exp(-x)), x >= 0, for each item: odds of exp(x)
    to n.
    """
    if x < 0 or n < 0:
        raise UsageError(f"Odds of exp({x}) to {n} need two numbers that are not negative.")

    def chance(precision: int) -> exact.Enclosure:
        work = precision + 8 + n.bit_length()
        low, high = exact.exp_minus(x, work)
        p = exact.over(
            (1 << work, 1 << work), ((1 << work) + n * low, (1 << work) + n * high), work
        )
        return p[0] >> work - precision, -(-p[1] >> work - precision)

    return _coins(stream, items, f"bernoulli_odds {n}", x, chance)


def _coins(
    stream: Stream, items: Items, sampler: str, parameter: Fraction, chance: Real
) -> NDArray[np.bool_]:
    """Return True for each item whose uniform real is below `chance`. The first word of the real
    decides, unless it equals that of `chance`.
    """
    tape.note(stream, sampler, parameter, items)
    own = stream.derive(sampler, Fraction(parameter))
    low, high = chance(64)
    first = own.words(items, 0)[:, 0]
    if low == 1 << 64:
        return np.ones(len(items), dtype=bool)
    heads: NDArray[np.bool_] = first < np.uint64(low)
    for i in np.flatnonzero(~heads & (first <= np.uint64(high - 1))) if high else ():
        heads[i] = _decide(int(first[i]), own.derive("more", items.ids[i].tobytes()), chance)
    return heads


def _decide(first: int, more: Stream, chance: Real) -> bool:
    return exact.less(first, 64, lambda: more.bits(64), chance)


def uniform(stream: Stream, items: Items, n: int) -> NDArray[np.int64] | NDArray[np.object_]:
    """Return a uniform integer in [0, n) for each item (Python's integers if n is over 2^63)."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise UsageError(f"A uniform integer needs a positive bound, not {n!r}.")
    tape.note(stream, "uniform", n, items)
    own = stream.derive("uniform", n)
    if n > 1 << 63:
        drawn = np.empty(len(items), dtype=object)
        drawn[:] = [bits.below(own.derive("item", item.tobytes()), n) for item in items.ids]
        return drawn
    # Privacy: draw again if a word is past the last multiple of n. The number of rounds says
    # nothing about the result.
    highest = np.uint64((1 << 64) // n * n - 1)
    words = own.words(items, 0)[:, 0].copy()
    left = np.flatnonzero(words > highest)
    number = 1
    while len(left):
        words[left] = own.words(items.at(left), number)[:, 0]
        left = left[words[left] > highest]
        number = number + 1
    return (words % np.uint64(n)).view(np.int64)


def permutation(stream: Stream, n: int) -> NDArray[np.int64]:
    """Return a uniform ordering of 0 .. n - 1: the order of n uniform reals, of which enough words
    are drawn to tell them apart.
    """
    items = Items.positions(n)
    tape.note(stream, "permutation", n, items)
    own = stream.derive("permutation", n)
    known: list[Words] = []
    while True:
        words = own.words(items, len(known) // 2)
        for word in (words[:, 0], words[:, 1]):
            known.append(word)
            order = np.lexsort(known[::-1])
            if not np.logical_and.reduce(
                [word[order][1:] == word[order][:-1] for word in known]
            ).any():
                return order.astype(np.int64)
