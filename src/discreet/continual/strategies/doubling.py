"""Factorize a stream whose horizon is not known: in epochs, each twice as long as the one before.

A column-normalised factor needs to know when it ends; so the stream is cut into epochs of 32, 64,
..., 2048 periods, and goes on with 2048. Totals add up over epochs, and so does their noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from discreet.continual.strategies.dense import UNIT, Dense, root_series
from discreet.continual.strategies.strategy import Decoder, Floats
from discreet.policy.schedule import Publish
from discreet.vault.steps import Encoder

FIRST, LONGEST = 32, 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubling:
    """The first `periods` periods, which are whole epochs; longer ones begin with the same rows.

    Privacy
        A person counts in `times` periods of the whole stream, however they fall among epochs.
        Columns are no longer than UNIT, so j periods in one epoch move it by j UNIT at most, and j²
        + k² <= (j + k)²: all epochs together move by times * UNIT at most, whatever their number.
          Epochs do not compose.
    Error
        That of the epochs that are over is added to that of the current one.
    """

    periods: int
    name = "column-normalised square roots of doubling length"

    @classmethod
    def covering(cls, periods: int) -> Doubling:
        """Return whole epochs that hold so many periods."""
        return cls(periods=sum(_epochs(periods)))

    def _dense(self) -> Dense:
        return Dense(name=self.name, factor=_factor(self.periods))

    def encoder(self) -> Encoder:
        return self._dense().encoder()

    def decoder(self) -> Decoder:
        return self._dense().decoder()

    def l2_squared(self, *, times: int, apart: int, cells: int, signed: bool) -> Fraction:
        return Fraction(times * UNIT) ** 2

    def deviations(self, publish: Publish) -> Floats:
        return self._dense().deviations(publish)


def _epochs(periods: int) -> list[int]:
    lengths = [FIRST]
    while sum(lengths) < periods:
        lengths.append(min(2 * lengths[-1], LONGEST))
    return lengths


@lru_cache(maxsize=2)
def _factor(periods: int) -> npt.NDArray[np.int64]:
    factor = np.zeros((periods, periods), dtype=np.int64)
    first = 0
    for length in _epochs(periods):
        factor[first : first + length, first : first + length] = _epoch(length)
        first += length
    return factor


@lru_cache(maxsize=8)
def _epoch(length: int) -> npt.NDArray[np.int64]:
    """Return an epoch's factor, rounded down, so that no column is longer than UNIT.

    Single operations of floats, in a fixed order: every machine comes to the same integers.
    """
    series = root_series(length)
    lengths = np.sqrt(np.cumsum(np.square(series)))
    factor = np.zeros((length, length), dtype=np.int64)
    for period in range(length):
        column = series[: length - period] / lengths[length - period - 1]
        factor[period:, period] = np.floor(column * UNIT).astype(np.int64)
    # Privacy: in integers, whatever the floats did
    assert int(np.square(factor).sum(axis=0).max()) <= UNIT**2
    return factor
