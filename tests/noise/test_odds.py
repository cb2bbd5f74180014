"""A coin by odds of exp(x) to n: turned exactly at its threshold, which mpmath has to more
digits.
"""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from discreet.errors import UsageError
from discreet.noise import Items, Stream, recording
from discreet.noise.coins import bernoulli_odds

F = Fraction


@pytest.mark.parametrize("x", [F(0), F(1, 10), F(1), F(7, 2), F(30)])
@pytest.mark.parametrize("n", [0, 1, 3, 10**6])
def test_the_coin_turns_at_its_chance(x: Fraction, n: int) -> None:
    with mpmath.workdps(60):
        threshold = int(
            mpmath.floor(2**64 / (1 + n * mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator)))
        )
    crafted = np.array(
        [0, threshold - 1, min(threshold + 1, 2**64 - 1), 2**64 - 1], dtype=np.uint64
    )
    with recording(craft=lambda asked, words: np.stack([crafted, crafted], axis=1)):
        heads = bernoulli_odds(Stream.fresh(), Items.positions(4), x, n)
    assert heads.tolist() == ([True] * 4 if n == 0 else [True, True, False, False])


def test_what_is_refused() -> None:
    for x, n in ((F(-1), 2), (F(1), -2)):
        with pytest.raises(UsageError, match="not negative"):
            bernoulli_odds(Stream.fresh(), Items.positions(1), x, n)
