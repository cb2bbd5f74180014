"""Exact linear algebra modulo a prime of 23 bits, at the speed of floats: products of 128 terms
stay below 2^53.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from discreet.attacks.experiment.dice import Dice

Matrix = NDArray[np.float64]

PANEL = 64


def prime(dice: Dice) -> int:
    """Draw a random prime between 2^22 and 2^23, so that no log of questions is bad for all of
    them.
    """
    while True:
        p = (1 << 22) + 2 * int(dice.below(1 << 21, 1)[0]) + 1
        if all(p % d for d in range(3, isqrt(p) + 1, 2)):
            return p


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Factors:
    """matrix[rows][:, columns] = lower @ upper modulo p, both triangular; all other rows depend on
    these.
    """

    p: int
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    lower: Matrix
    upper: Matrix

    def solve(self, right: Matrix) -> Matrix:
        """Return x with matrix[rows][:, columns] x = right."""
        return _backward(self.upper, _forward(self.lower, right, self.p), self.p)

    def solve_left(self, left: Matrix) -> Matrix:
        """Return x with x matrix[rows][:, columns] = left, for each row of `left`."""
        middle = _forward(self.upper.T, left.T, self.p)
        flipped = _forward(self.lower.T[::-1, ::-1], middle[::-1], self.p)
        return np.asarray(flipped[::-1].T)


def mod(values: Matrix, p: int) -> Matrix:
    """Return values modulo p for whole numbers up to 2^53, several times faster than the remainder
    of floats.
    """
    rest: Matrix = values - np.floor(values * (1.0 / p)) * p
    rest[rest < 0] += p  # the quotient is off by one at most
    rest[rest >= p] -= p
    return rest


def factor(matrix: Matrix, p: int) -> Factors:
    """Eliminate by blocks with row pivots, and skip columns without one."""
    work = matrix.copy()
    order = np.arange(len(work))
    columns: list[int] = []
    for left in range(0, work.shape[1], PANEL):
        right = min(left + PANEL, work.shape[1])
        done = len(columns)
        if done == len(work):
            break
        columns += _panel(work, order, done, left, right, p)
        new = slice(done, len(columns))
        if new.stop > new.start and right < work.shape[1]:
            factors = work[:, columns[new]]
            within = np.tril(factors[new], -1) + np.eye(new.stop - new.start)
            work[new, right:] = _forward(within, work[new, right:], p)
            work[new.stop :, right:] = mod(
                work[new.stop :, right:] - factors[new.stop :] @ work[new, right:], p
            )
    return _split(work, order, columns, p)


def _panel(
    work: Matrix, order: NDArray[np.int64], done: int, left: int, right: int, p: int
) -> list[int]:
    """Eliminate a few columns, each by all pivots of the panel at once; multipliers take the place
    of the zeros.
    """
    columns: list[int] = []
    for column in range(left, right):
        k = done + len(columns)
        if k == len(work):
            break
        if columns:
            for i in range(done, k):  # the rows of earlier pivots, then all others in one product
                work[i, column] = (
                    work[i, column] - work[i, columns[: i - done]] @ work[done:i, column]
                ) % p
            work[k:, column] = mod(work[k:, column] - work[k:, columns] @ work[done:k, column], p)
        pivots = np.flatnonzero(work[k:, column])
        if not len(pivots):
            continue
        at = k + int(pivots[0])
        if at != k:
            work[[k, at]], order[[k, at]] = work[[at, k]], order[[at, k]]
        work[k + 1 :, column] = mod(work[k + 1 :, column] * pow(int(work[k, column]), -1, p), p)
        columns.append(column)
    return columns


def _split(work: Matrix, order: NDArray[np.int64], columns: list[int], p: int) -> Factors:
    rank = len(columns)
    lower = np.tril(work[:rank][:, columns], -1) + np.eye(rank)
    upper = np.triu(work[:rank][:, columns])
    return Factors(
        p=p, rows=order[:rank], columns=np.array(columns, dtype=np.int64), lower=lower, upper=upper
    )


def _forward(lower: Matrix, right: Matrix, p: int) -> Matrix:
    """Solve lower x = right by blocks; the diagonal need not be 1."""
    x = mod(np.array(right, dtype=np.float64), p)
    n = len(lower)
    for start in range(0, n, PANEL):
        end = min(start + PANEL, n)
        for i in range(start, end):
            if i > start:
                x[i] = mod(x[i] - lower[i, start:i] @ x[start:i], p)
            if lower[i, i] != 1:
                x[i] = mod(x[i] * pow(int(lower[i, i]), -1, p), p)
        if end < n:
            x[end:] = mod(x[end:] - lower[end:, start:end] @ x[start:end], p)
    return x


def _backward(upper: Matrix, right: Matrix, p: int) -> Matrix:
    return np.asarray(_forward(upper[::-1, ::-1], np.asarray(right)[::-1], p)[::-1])


def rational(residue: int, p: int) -> Fraction | None:
    """Return the one fraction with this residue and with both terms below the root of p / 2, if
    any.
    """
    bound = isqrt(p // 2)
    a = p
    b = residue % p
    s = 0
    t = 1
    while b > bound:
        quotient = a // b
        a, b, s, t = b, a - quotient * b, t, s - quotient * t
    if t == 0 or abs(t) > bound:
        return None
    return Fraction(b, t)
