"""Standard moments, the means of ((x - mean) / deviation)^p, that skewness and kurtosis are made
of.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from discreet import arrow
from discreet.mechanisms.tails.simulate import Noise
from discreet.sql.after.estimates import Components, Floats, floats, raw_moments, reach


@dataclass(frozen=True, slots=True, kw_only=True)
class StandardMoment(ABC):
    """A moment of `power`, from the sums of binomial(d, i) v^i (W - v)^(d - i), which make W^d in
    every row.

    Whatever the range and the unit, it is the same. It has no bound that is public, so where noise
    may halve what it is divided by it has no margin.
    """

    degree: int
    width: int
    power: ClassVar[int]
    fewest: ClassVar[int]  # rows for which it is defined

    @abstractmethod
    def of(self, moments: list[Floats], variance: Floats, count: Floats) -> Floats:
        """It, from the means of u, u², ..., the variance of u and the number of rows."""

    def values(self, components: Components) -> pa.Array:
        found, _, more = self._moment(floats(components[: self.degree + 1]))
        return arrow.array(found, mask=(more <= 0.5) | ~np.isfinite(found))

    def _moment(self, parts: Floats) -> tuple[Floats, Floats, Floats]:
        """It, what it was divided by, and how many rows more than too few; parts along the first
        axis.
        """
        count = parts.sum(axis=0) / float(self.width**self.degree)
        moments = raw_moments(parts, count, width=self.width, most=self.power)
        variance = moments[1] - moments[0] ** 2
        spread = np.where(variance > 0, variance, np.nan)
        found = self.of(moments, spread, count)
        return found, np.nan_to_num(spread) ** (self.power / 2) * count, count - (self.fewest - 1)

    def margins(self, components: Components, mechanism: Noise) -> Floats:
        """Return margins by redrawing the declared noise around the noisy sums (S11)."""
        parts = floats(components[: self.degree + 1])
        return np.where(self._moment(parts)[2] > 0, reach(self._moment, parts, mechanism), np.inf)

    def margin(self, mechanism: Noise, *, assuming: int | None) -> float | None:
        """Return the margin for values that lie evenly in their range."""
        if assuming is None:
            return None
        even = float(assuming) * float(self.width**self.degree) / (self.degree + 1)
        found = float(
            self.margins(tuple(np.array([even]) for _ in range(self.degree + 1)), mechanism)[0]
        )
        return found if np.isfinite(found) else None
