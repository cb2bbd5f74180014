"""Membership, singling out, linkability and inference: on copies, on strangers, and against brute
force.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from discreet.attacks import inference, linkability, membership, single_out, trace
from discreet.attacks.experiment.dice import Dice
from discreet.attacks.experiment.nearest import encode, nearest
from discreet.attacks.experiment.trials import until_narrow
from discreet.attacks.membership import judge
from discreet.attacks.single_out import Predicates, _adjust
from discreet.errors import UsageError

# a rate over n trials is off by more than SURE / sqrt(n) once in 1e9
SURE = math.sqrt(math.log(2e9) / 2)


def people(n, rng):
    job = rng.integers(0, 12, n)
    return pa.table(
        {
            "age": rng.integers(18, 90, n),
            "job": [f"job {j}" for j in job],
            "income": np.round(rng.lognormal(10, 0.5, n)),
            "town": [None if t == 0 else f"town {t}" for t in rng.integers(0, 30, n)],
            "ill": (rng.random(n) < 0.2 + 0.05 * (job % 3)).tolist(),
        }
    )


def by_hand(target, candidates, numeric):
    """Gower: share of the range for numbers, 0 or 1 for the rest."""
    pairs = [zip(target, candidate, numeric, strict=True) for candidate in candidates]
    return [sum(abs(a - b) if number else a != b for a, b, number in each) for each in pairs]


def test_nearest_is_the_nearest():
    rng = np.random.default_rng(8)  # of other people two may be as near as a rounding error
    release, targets = people(200, rng), people(40, rng)
    coded = encode(release, targets)
    assert coded.rows[0].shape == (200, 5)
    assert coded.numeric.tolist() == [True, False, True, False, False]
    at, away = nearest(coded.rows[1], coded.rows[0], coded.numeric)
    three, aways = nearest(coded.rows[1], coded.rows[0], coded.numeric, k=3)
    for i, target in enumerate(coded.rows[1]):
        expected = np.array(by_hand(target, coded.rows[0], coded.numeric))
        assert away[i, 0] == pytest.approx(expected.min(), abs=1e-5)
        assert at[i, 0] == np.flatnonzero(np.isclose(expected, expected.min(), atol=1e-5))[0]
        assert aways[i] == pytest.approx(np.sort(expected)[:3], abs=1e-5)
        assert len(set(three[i])) == 3


def test_predicates_count_what_they_say():
    rng = np.random.default_rng()
    rows = rng.integers(0, 4, (300, 3)).astype(np.float32)
    test = rng.integers(-1, 3, (50, 3)).astype(np.int8)
    value = rng.integers(0, 4, (50, 3)).astype(np.float32)
    ops = {
        -1: lambda a, b: a <= b,
        0: lambda a, b: a == b,
        1: lambda a, b: a >= b,
        2: lambda a, b: True,
    }
    expected = [
        sum(all(ops[int(t)](r, v) for t, v, r in zip(ts, vs, row, strict=True)) for row in rows)
        for ts, vs in zip(test, value, strict=True)
    ]
    assert Predicates(test=test, value=value).counts(rows).tolist() == expected


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng()
    everybody = people(4500, rng)
    return everybody.slice(0, 1500), everybody.slice(1500, 1500), everybody.slice(3000, 1500)


ATTACKS = {
    "single-out": lambda r, o, c: single_out(r, o, c, columns=3, trials=400),
    "linkability": lambda r, o, c: linkability(
        r, o, c, halves=(("age", "town"), ("job", "income")), trials=400
    ),
    "inference": lambda r, o, c: inference(r, o, c, secret="ill", trials=400),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_copy_is_all_risk_and_strangers_are_none(name, tables):
    original, strangers, control = tables
    copy = ATTACKS[name](original, original, control)
    other = ATTACKS[name](strangers, original, control)
    assert copy.finding.attack == name
    assert copy.risk.value > 0.3
    assert copy.risk.interval[0] > 0.15
    assert other.risk.interval[0] < 0.2
    assert abs(other.finding.success - other.control.value) < 2 * SURE / math.sqrt(400)
    assert {
        "attack",
        "success",
        "chance",
        "interval",
        "n",
        "control",
        "risk",
    } <= copy.as_json().keys()


def test_without_control_there_is_no_risk(tables):
    original, _, _ = tables
    found = inference(original, original, secret="ill", trials=100)
    assert found.risk is None
    assert found.finding.success > found.finding.chance


def test_numbers_are_trialled_until_the_interval_is_narrow():
    """A rate of 1 is narrow at once; one half needs some 1,500 trials for a width of 0.05; nobody
    is tried twice.
    """
    tried = []

    def attempt(rows):
        tried.extend(rows.tolist())
        return rows % 2 == 0

    found = until_narrow("test", attempt, 100_000, None, chance=0.0, width=0.05)
    low, high = found.finding.interval
    assert high - low <= 0.05
    assert 1500 < found.finding.n < 5000
    assert len(set(tried)) == len(tried) == found.finding.n
    quick = until_narrow("test", lambda rows: rows >= 0, 100_000, None, chance=0.0, width=0.05)
    assert quick.finding.n == 500


def test_the_control_is_adjusted_to_the_size():
    """Counts of predicates among m strangers, and how many would be one among 3 m: six deviations
    of it and a bias.
    """
    rng = np.random.default_rng()
    rates = rng.gamma(0.7, 1.0, 20_000)
    truth = (3 * rates * np.exp(-3 * rates)).sum()
    found = _adjust(rng.poisson(rates), 3.0)
    assert abs(found / truth - 1) < 0.35
    assert _adjust(np.array([1, 1, 0, 2]), 1) == 2


def test_membership_by_records_and_by_totals(tables):
    original, strangers, control = tables
    found = membership(original, original, control)
    assert found.finding.success > 0.8
    assert found.auc > 0.9
    blind = membership(strangers, original, control)
    assert abs(blind.finding.success - 0.5) < SURE / math.sqrt(blind.finding.n / 2)
    rng = np.random.default_rng()
    common = rng.uniform(0.1, 0.9, 800)
    inside, outside = (rng.random((100, 800)) < common for _ in range(2))
    leaky = trace(inside.sum(axis=0), 100, inside, outside, reference=common)
    assert leaky.finding.success > 0.8
    noisy = trace(
        inside.sum(axis=0) + rng.laplace(0, 800, 800), 100, inside, outside, reference=common
    )
    assert noisy.finding.success < 0.5 + 2 * SURE / math.sqrt(200)


def test_thresholds_are_judged_on_others():
    """With equal scores for all, every guess is a coin; with separated scores, every guess is
    right.
    """
    assert judge(np.zeros(500), np.zeros(500)).finding.success == 0.5
    assert judge(np.ones(500), np.zeros(500)).finding.success == 1.0
    n = 2000
    same = judge(Dice().uniform(n), Dice().uniform(n))
    assert abs(same.finding.success - 0.5) < SURE / math.sqrt(n)
    assert abs(same.auc - 0.5) < SURE / math.sqrt(n)


def test_mistakes_are_told(tables):
    original, _, _ = tables
    with pytest.raises(UsageError, match="share a column"):
        linkability(original, original, halves=(("age",), ("age", "job")))
    with pytest.raises(UsageError, match="known column"):
        inference(original, original, secret="shoe size")
    with pytest.raises(UsageError, match="1 to 5 columns"):
        single_out(original, original, columns=9)
    with pytest.raises(UsageError, match="at least two"):
        membership(original, original.slice(0, 0), original)
    square = pa.table({"x": ["a", "a", "b", "b"], "y": ["a", "b", "a", "b"]})
    with pytest.raises(UsageError, match="use more columns"):
        single_out(square, square, columns=1)
