"""Fresh noise for every period. It is the best strategy if only single periods are published,
because sums of periods add up its noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.continual.strategies.strategy import Decoder, Floats, Inverse
from discreet.policy.schedule import Publish
from discreet.vault.exact import IntegerArray
from discreet.vault.steps import Encoder, ExactStep


@dataclass(frozen=True, slots=True, kw_only=True)
class Independent:
    """Release x_t + z_t.

    Privacy
        C is the identity. A person who counts in `times` periods moves y by at most √times in l2
        and by at most times in l1.
    Error
        A sum of w periods has w times the variance of one draw.
    """

    periods: int
    name = "independent noise"

    def encoder(self) -> Encoder:
        return _Encoder()

    def decoder(self) -> Decoder:
        return Inverse(lambda noisy: noisy)

    def l2_squared(self, *, times: int, apart: int, cells: int, signed: bool) -> Fraction:
        return Fraction(times)

    def l1(self, *, times: int) -> int:
        return times

    def deviations(self, publish: Publish) -> Floats:
        ones, _ = self.draws(publish)
        return np.sqrt(ones.astype(np.float64))

    def draws(self, publish: Publish) -> tuple[IntegerArray, IntegerArray]:
        """Return for each period how many draws its estimate contains once, and how many twice."""
        length = {"daily": 1, "cumulative": self.periods}.get(str(publish), publish)
        assert isinstance(length, int)
        ones = np.minimum(np.arange(1, self.periods + 1), length)
        twos = np.zeros(self.periods, dtype=np.int64)
        return ones, twos


class _Encoder:
    def __init__(self) -> None:
        self._period = 0

    def add(self, values: IntegerArray) -> ExactStep:
        self._period += 1
        return ExactStep(
            values=values[None, :], draws=(self._period - 1,), signs=np.ones((1, 1), dtype=np.int64)
        )
