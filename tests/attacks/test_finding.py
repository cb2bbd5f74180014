"""Rates, intervals, risks and the ceiling."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from discreet.attacks.experiment.dice import Dice
from discreet.attacks.experiment.finding import Rate, Risk, ceiling, percent, trials, wilson
from discreet.errors import UsageError


def test_wilson_solves_its_equation() -> None:
    """Both ends are the rates whose distance from the observed one is z of their own standard
    errors.
    """
    z = 1.959963984540054
    for hits, n in ((3, 10), (50, 200), (1, 7), (999, 1000)):
        for end in wilson(hits, n):
            assert math.isclose(
                abs(hits / n - end), z * math.sqrt(end * (1 - end) / n), rel_tol=1e-9
            )
    assert wilson(0, 10)[0] == 0.0
    assert wilson(10, 10)[1] == 1.0
    assert wilson(0, 0) == (0.0, 1.0)


def test_wilson_covers() -> None:
    """The exact coverage at n = 200, by summing binomial masses; a nominal 90 % interval would
    fail.
    """
    for p in (0.1, 0.5, 0.9):
        covered = sum(
            binom.pmf(k, 200, p) for k in range(201) if wilson(k, 200)[0] <= p <= wilson(k, 200)[1]
        )
        assert 0.93 < covered < 0.97


def test_risk_is_the_share_of_what_was_left_to_gain() -> None:
    risk = Risk.of(Rate(hits=5000, n=10_000), Rate(hits=2000, n=10_000))
    assert risk.value == pytest.approx((0.5 - 0.2) / 0.8, abs=1e-3)
    assert risk.interval[0] < risk.value < risk.interval[1]
    assert Risk.of(Rate(hits=10, n=100), Rate(hits=90, n=100)).value == 0.0
    with pytest.raises(UsageError):
        Risk.of(Rate(hits=0, n=0), Rate(hits=1, n=2))


def test_enough_trials_make_the_interval_narrow() -> None:
    for width in (0.02, 0.1):
        n = trials(width)
        low, high = wilson(n // 2, n)
        assert high - low <= width * 1.001
        low, high = wilson(n // 4, n // 2)
        assert high - low > width


def test_the_ceiling_is_that_of_two_neighboring_answers() -> None:
    """Of all tests between Laplace answers about 0 and 1 the best is right with e^ε/(1+e^ε): summed
    by definition.
    """
    for epsilon in (0.1, 1.0, 3.0):
        z = np.arange(-2000, 2001)
        mass = np.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(z))
        best = 0.5 * np.maximum(mass, np.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(z - 1))).sum()
        assert ceiling(epsilon) == pytest.approx(best, abs=1e-9)
    assert ceiling(0) == 0.5
    assert ceiling(1, 0.01) > ceiling(1)
    assert ceiling(10_000) == 1.0


def test_percent_keeps_the_digits_that_matter() -> None:
    shown = [
        percent(p).replace("\u00a0", " ")
        for p in (0.5, 0.053, 0.0004, 0.997, 1, 0, 0.000_01, 0.999_999)
    ]
    assert shown == ["50 %", "5.3 %", "0.04 %", "99.7 %", "100 %", "0 %", "0.001 %", "over 99.99 %"]


def test_dice_are_fresh_and_even() -> None:
    dice = Dice()
    n = 100_000
    throws = dice.uniform(n)
    assert abs(throws.mean() - 0.5) < 6.2 * math.sqrt(1 / 12 / n)  # false alarm below 1e-9
    assert abs((dice.normal(n) ** 2).mean() - 1) < 6.2 * math.sqrt(2 / n)
    assert not np.array_equal(Dice().uniform(100), Dice().uniform(100))
    assert sorted(dice.order(1000)) == list(range(1000))
    for n, k in ((10, 10), (1000, 3)):
        assert len(set(dice.some(n, k).tolist())) == k
    assert set(dice.below(3, 10_000).tolist()) == {0, 1, 2}
