"""The server's transforms: inner products over a field, and the support of every value from counts
of reports.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet.local.collector.estimate import Counts
from discreet.local.protocols import field as finite

Integers = NDArray[np.int64]


@lru_cache(maxsize=8)
def _tables(g: int) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
    elements = range(g)
    plus = np.array([[finite.add(a, b, g) for b in elements] for a in elements], dtype=np.int16)
    times = np.array([[finite.times(a, b, g) for b in elements] for a in elements], dtype=np.int16)
    return plus, times


def dots(a: Integers, b: Integers, g: int) -> Integers:
    """Return `field.dot` of many pairs of vectors."""
    _, times = _tables(g)
    total = np.zeros(len(a), dtype=np.int16)
    a = a.copy()
    b = b.copy()
    while a.any() and b.any():
        (a, a_digit), (b, b_digit) = np.divmod(a, g), np.divmod(b, g)
        product = times[a_digit, b_digit]
        total = total ^ product if finite.binary(g) else (total + product) % np.int16(g)
    return total.astype(np.int64)


def supports(counts: Counts, g: int) -> Counts:
    """Count for every v the reports (a, y) with <a, v> = y, from the counts of reports a * g + y,
    without a = 0.

    One element of a is exchanged for one of v at a time: reports are counted by (v_1 .. v_j, a_j+1
    .. a_k, y - what v_1
    .. v_j account for). The fast Walsh-Hadamard transform is this with g = 2.
    """
    plus, times = _tables(g)
    k = finite.length(len(counts) // g + 1, g)
    table: Integers = np.zeros((g, g**k), dtype=np.int64)
    table[:, 1:] = counts.reshape(-1, g).T
    for place in range(k):
        table = table.reshape(g, g ** (k - 1 - place), g, g**place)
        exchanged = np.zeros_like(table)
        for v in range(g):
            for a in range(g):
                exchanged[:, :, v] += table[:, :, a].take(plus[times[a, v]], axis=0)
        table = exchanged
    found: Counts = table.reshape(g, -1)[0].copy()
    return found


def walsh_hadamard(values: Integers) -> Integers:
    """Return for every v the sum over j of values[j] * (-1)^(ones in j & v); there are 2^k values.

    In two halves of the bits with a transposition between, so that each step works on long runs of
    memory.
    """
    side = 1 << (len(values).bit_length() - 1) // 2
    upper = along_first(values.reshape(-1, side))
    return along_first(np.ascontiguousarray(upper.T)).T.reshape(-1)


def along_first(table: Integers) -> Integers:
    """Return the Walsh-Hadamard transform of every column."""
    table, shape, half = table.copy(), table.shape, table.shape[1]
    while half < table.size:
        pairs = table.reshape(-1, 2, half)
        even = pairs[:, 0]
        odd = pairs[:, 1]
        difference = even - odd
        even += odd
        odd[:] = difference
        half *= 2
    return table.reshape(shape)


def parities(a: Integers, b: Integers) -> Integers:
    """Return 1 where the number of ones in a & b is odd, else 0."""
    odd: Integers = np.bitwise_count(a & b).astype(np.int64) & 1
    return odd
