"""Factorizations of up to a few thousand periods: y = C x + z with C an integer lower-triangular
matrix (S15).

square_root          of the running sum: Toeplitz, 1, 1/2, 3/8, ... [Fichtenberger, Henzinger,
                     Upadhyay 2023]
column_normalised    the same with its columns stretched to one length: later periods are measured
                     better
power                between the identity (exponent 0) and the square root (1/2), columns
                     normalised: the better the more periods a person counts in, because a root is
                     dear then: near k for k periods, not √k
window_root          of the sum over a window: the best where that window alone is published
optimised            the best there is for a given mix, by a fixed point of its dual [Denisov et al.
                     2022]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh, solve_triangular, toeplitz

from discreet.continual.strategies.strategy import Decoder, Floats, Inverse, participation
from discreet.policy.schedule import Publish
from discreet.threads import one_thread
from discreet.vault.exact import IntegerArray
from discreet.vault.integers import exact_product
from discreet.vault.steps import Encoder, ExactStep

# the length of the longest column: rounding to integers then costs 0.02 % at 365 periods
UNIT = 1 << 12
_ROUNDS, _CLOSE = 100, 1e-4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dense:
    """Release C x + z, one row when each period is over.

    Privacy
        C is made of integers, so y is an integer vector with the noise of the discrete Gaussian on
        it, and rho = max |C u|² / 2 sigma² over what one person can contribute
        (docs/proofs/continual.md). The largest |C u|² is bounded from the integer Gram matrix by
        `participation`.
    Error
        Estimates are A C^-1 y for whatever sums A are published; the rows of A C^-1 have their
        deviations.
    """

    name: str
    factor: npt.NDArray[np.int64]

    @property
    def periods(self) -> int:
        return len(self.factor)

    def encoder(self) -> Encoder:
        return _Encoder(self.factor)

    def decoder(self) -> Decoder:
        return Inverse(_Solve(self.factor))

    @one_thread()
    def gram(self) -> npt.NDArray[np.int64]:
        """Return C' C exactly: products of floats that hold integers are exact while sums stay
        below 2^53.
        """
        columns = self.factor.astype(np.float64)
        assert np.square(columns).sum(axis=0).max() < 2.0**52
        gram: npt.NDArray[np.int64] = (columns.T @ columns).astype(np.int64)
        return gram

    def l2_squared(self, *, times: int, apart: int, cells: int, signed: bool) -> Fraction:
        return Fraction(participation(self.gram(), times=times, apart=apart, signed=signed))

    @property
    def never_negative(self) -> bool:
        return bool((self.gram() >= 0).all())

    @one_thread()
    def deviations(self, publish: Publish) -> Floats:
        inverse = solve_triangular(self.factor.astype(np.float64), np.eye(self.periods), lower=True)
        return np.asarray(np.sqrt(np.square(sum_rows(inverse, publish)).sum(axis=1)))


def sum_rows(rows: Floats, publish: Publish) -> Floats:
    """Sum the rows of single periods into rows of what is published."""
    if publish == "daily":
        return rows
    totals = np.cumsum(rows, axis=0)
    if publish != "cumulative":
        totals[publish:] -= totals[:-publish].copy()
    return np.asarray(totals)


class _Encoder:
    def __init__(self, factor: npt.NDArray[np.int64]) -> None:
        self._factor = factor
        self._values: list[IntegerArray] = []

    def add(self, values: IntegerArray) -> ExactStep:
        self._values.append(values)
        period = len(self._values) - 1
        row = exact_product(self._factor[period : period + 1, : period + 1], np.stack(self._values))
        return ExactStep(values=row, draws=(period,), signs=np.ones((1, 1), dtype=np.int64))


class _Solve:
    def __init__(self, factor: npt.NDArray[np.int64]) -> None:
        self._factor = factor.astype(np.float64)
        self._found: list[Floats] = []

    @one_thread()
    def __call__(self, noisy: Floats) -> Floats:
        period = len(self._found)
        row = self._factor[period]
        rest = row[:period] @ np.stack(self._found) if period else 0.0
        self._found.append(np.asarray((noisy - rest) / row[period]))
        return self._found[-1]


def round_factor(name: str, factor: Floats) -> Dense:
    """Round a factor to integers, its longest column near UNIT."""
    longest = np.sqrt(np.square(factor).sum(axis=0).max())
    return Dense(name=name, factor=np.rint(factor * (UNIT / longest)).astype(np.int64))


def root_series(periods: int) -> Floats:
    """Return 1, 1/2, 3/8, 5/16, ...: the series of (1 - x)^(-1/2), the square root of 1 + x + x² +
    ...
    """
    steps = np.arange(1, periods)
    return np.concatenate([[1.0], np.cumprod((2 * steps - 1) / (2 * steps))])


def lower(series: Floats) -> Floats:
    return np.asarray(np.tril(toeplitz(series)))


def normalise(factor: Floats) -> Floats:
    return np.asarray(factor / np.sqrt(np.square(factor).sum(axis=0)))


def square_root(periods: int) -> Dense:
    return round_factor("square root", lower(root_series(periods)))


def column_normalised(periods: int) -> Dense:
    return round_factor("column-normalised square root", normalise(lower(root_series(periods))))


def power(periods: int, tenths: int) -> Dense:
    """Return the series of (1 - x)^-e, e in tenths."""
    steps = np.arange(1, periods)
    exponent = tenths / 10
    series = np.concatenate([[1.0], np.cumprod((steps - 1 + exponent) / steps)])
    return round_factor(f"column-normalised root of exponent {exponent}", normalise(lower(series)))


def window_root(periods: int, window: int) -> Dense:
    """Return the root of (1 - x^w) / (1 - x): the root of the running sum times that of 1 - x^w."""
    root = root_series(periods)
    series = np.zeros(periods)
    factor = 1.0
    for j in range((periods - 1) // window + 1):  # the series of (1 - y)^(1/2) at y = x^w
        series[j * window :] += factor * root[: periods - j * window]
        factor *= (j - 0.5) / (j + 1)
    return round_factor(f"square root of the {window}-period window", lower(series))


@one_thread()
def optimise(periods: int, publish: Sequence[Publish], weights: Sequence[float]) -> Dense:
    """Return the factor with the least weighted mean of variances among all whose columns have
    length 1.

    X = C' C minimises tr(Q X^-1) under X_tt <= 1, with Q the weighted sum of the workloads' A' A.
    At the optimum X = V^-1/2 (V^1/2 Q V^1/2)^1/2 V^-1/2 for the diagonal V of multipliers, and V is
    a fixed point of the diagonal of that root. Whatever the floats do here, the price is computed
    from the integers that come out.
    """
    identity = np.eye(periods)
    mixed = np.zeros((periods, periods))
    for each, weight in zip(publish, weights, strict=True):
        workload = sum_rows(identity, each)
        mixed += weight * (workload.T @ workload)
    multipliers = np.sqrt(np.diagonal(mixed)).copy()
    for _ in range(_ROUNDS):
        scale = np.sqrt(multipliers)
        values, vectors = eigh(mixed * np.outer(scale, scale))
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        before = multipliers
        multipliers = np.diagonal(root).copy()
        if np.abs(multipliers / before - 1).max() < _CLOSE:
            break
    scale = np.sqrt(multipliers)
    gram = root / np.outer(scale, scale)
    # C lower with C' C = X: Cholesky from the last period backwards.
    factor = np.linalg.cholesky(gram[::-1, ::-1])[::-1, ::-1].T
    return round_factor(f"factor optimised for {', '.join(map(str, publish))}", factor)
