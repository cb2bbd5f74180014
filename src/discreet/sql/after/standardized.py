"""Standard moments: the means of ((x - mean) / deviation)^p. Skewness and kurtosis use them."""

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
    """A standard moment of `power`, computed from the noisy sums of binomial(d, i) v^i (W - v)^(d -
    i), i = 0 to d.

    For one row these terms add up to W^d. The moment does not depend on the range or the unit. It
    has no public bound, so where noise may halve its divisor it has no margin.
    """

    degree: int
    width: int
    power: ClassVar[int]
    fewest: ClassVar[int]  # the fewest rows for which it is defined

    @abstractmethod
    def of(self, moments: list[Floats], variance: Floats, count: Floats) -> Floats:
        """Return the moment, from the means of u, u², ..., the variance of u and the number of
        rows.
        """

    def values(self, components: Components) -> pa.Array:
        moment, _, enough = self._moment(floats(components[: self.degree + 1]))
        return arrow.array(moment, mask=(enough <= 0.5) | ~np.isfinite(moment))

    def _moment(self, parts: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the moment, its divisor, and by how many rows there are enough.

        Parts are along the first axis.
        """
        count = parts.sum(axis=0) / float(self.width**self.degree)
        moments = raw_moments(parts, count, width=self.width, most=self.power)
        variance = moments[1] - moments[0] ** 2
        spread = np.where(variance > 0, variance, np.nan)
        moment = self.of(moments, spread, count)
        divisor = np.nan_to_num(spread) ** (self.power / 2) * count
        return moment, divisor, count - (self.fewest - 1)

    def margins(self, components: Components, mechanism: Noise) -> Floats:
        """Return margins by redrawing the declared noise around the noisy sums (S11)."""
        parts = floats(components[: self.degree + 1])
        _, _, enough = self._moment(parts)
        return np.where(enough > 0, reach(self._moment, parts, mechanism), np.inf)

    def margin(self, mechanism: Noise, *, assuming: int | None) -> float | None:
        """Return the margin for values that are spread evenly over their range."""
        if assuming is None:
            return None
        even = float(assuming) * float(self.width**self.degree) / (self.degree + 1)
        parts = tuple(np.array([even]) for _ in range(self.degree + 1))
        width = float(self.margins(parts, mechanism)[0])
        return width if np.isfinite(width) else None
