"""Noise drawn again, around what is already released, to see how far an answer may be off (S11).

Free: it reads no data. For an answer it comes from the charge's own key, under a purpose of its own, so that an answer
that is resumed after a crash states the same margins; for a quote it is fresh.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.mechanisms import Mechanism
from discreet.mechanisms.discrete_gaussian import DiscreteGaussian
from discreet.mechanisms.discrete_laplace import DiscreteLaplace
from discreet.mechanisms.threshold import TruncatedLaplaceThreshold
from discreet.noise import Items, Stream

_FINE = 48  # bits of a simulated spread
_MANY = 8  # draws from which on their sum is redrawn as one normal number: at 95 % it is wider by 1.3 %, no more


@dataclass(frozen=True, slots=True, kw_only=True)
class Several:
    """The noise of a number that was added up from so many noisy ones, each with noise of its own."""

    noise: DiscreteLaplace | DiscreteGaussian
    draws: int

    @property
    def normal(self) -> DiscreteGaussian:
        """A normal number at least as wide: discrete noise varies by no more than continuous noise of its scale."""
        match self.noise:
            case DiscreteLaplace(scale=spread):
                variance = 2 * self.draws * spread**2
            case DiscreteGaussian(sigma=spread):
                variance = self.draws * spread**2
        fine = 1 << max(0, 64 - int(variance).bit_length())
        root = math.isqrt(math.ceil(variance * fine * fine)) + 1
        return DiscreteGaussian(sigma=Fraction(root, fine), l2_squared=Fraction(1))


Noise = Mechanism | Several  # on a number that was measured, or added up from such


def _additive(mechanism: Any) -> Any:
    """What adds the noise. A threshold's is that of the numbers it lets pass."""
    if isinstance(mechanism, TruncatedLaplaceThreshold):  # noise that never ends is a little wider
        return DiscreteLaplace(scale=mechanism.scale, l1=Fraction(mechanism.linf))
    return getattr(mechanism, "noise", mechanism)


class Redraw:
    """A source of noise for simulations, apart from the noise that protects anybody."""

    def __init__(self, key: bytes | None = None) -> None:
        self._stream = (Stream.fresh() if key is None else Stream(key)).derive("redraw")

    def __call__(self, mechanism: Any, shape: tuple[int, ...], *item: object) -> Any:
        """Independent draws of an additive mechanism's noise, as integers; the same for the same item."""
        if isinstance(mechanism, Several):
            if mechanism.draws >= _MANY or isinstance(mechanism.noise, DiscreteGaussian):
                return self(mechanism.normal, shape, *item)
            return self(mechanism.noise, (mechanism.draws, *shape), *item).sum(axis=0)
        size = int(np.prod(shape))
        stream = self._stream.derive("item", *item)
        additive = _additive(mechanism)
        spread = "sigma" if hasattr(additive, "sigma") else "scale"
        coarse = 1 << max(0, int(getattr(additive, spread)).bit_length() - _FINE)
        # Noise too wide for 64 bits is drawn one by one, and simulations want millions: in wider steps it is the same
        # but for one part in 2^48, which no margin shows.
        drawn = replace(additive, **{spread: getattr(additive, spread) / coarse}) if coarse > 1 else additive
        noise = drawn.add_to(np.zeros(size, dtype=np.int64), stream, Items.positions(size)).reshape(shape)
        return noise.astype(object) * coarse if coarse > 1 else noise
