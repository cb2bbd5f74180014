"""Reconstruction: the methods against each other, the law of Dinur and Nissim, published tables, a
live curator.
"""

from __future__ import annotations

import importlib
import math

import numpy as np
import pyarrow as pa
import pytest

from discreet.attacks import reconstruct
from discreet.attacks.reconstruct import against, consistent, published, reconstruct_file
from discreet.errors import UsageError


def drawn(n, m, rng, noise=0.0):
    bits, queries = rng.integers(0, 2, n), rng.integers(0, 2, (m, n))
    return bits, queries, queries @ bits + noise * rng.normal(size=m)


@pytest.mark.parametrize("method", ["exhaustive", "lp", "least-squares"])
def test_exact_answers_give_all_bits(method):
    bits, queries, answers = drawn(12, 60, np.random.default_rng())
    found = reconstruct(queries, answers, method=method, truth=bits)
    assert (found.bits == bits).all()
    assert found.finding.success == 1.0
    assert found.residual < 1e-6
    assert found.as_json()["method"] == method


def all_subsets(n):
    return (np.arange(1 << n)[:, None] >> np.arange(n)) & 1


def test_the_law_of_the_exponential_case():
    """All 2^n subsets, answers wrong by at most E: whoever fits is within 4E of the truth; E <
    n/401 gives 99 %.
    """
    rng = np.random.default_rng()
    n = 10
    subsets = all_subsets(n)
    for error in (0.0, n / 402, 0.5, 1.0, 2.0):
        bits = rng.integers(0, 2, n)
        answers = subsets @ bits + rng.uniform(-error, error, len(subsets))
        apart = np.abs(consistent(subsets, answers, error=error) - bits).sum(axis=1)
        assert len(apart) >= 1  # the truth itself fits
        assert apart.max() <= 4 * error
        guess = reconstruct(subsets, answers, method="exhaustive", truth=bits)
        assert guess.finding.success >= 1 - 4 * error / n


def test_the_law_is_tight_against_the_worst_noise():
    """Answers half-way between two people sets that differ in k ones and k zeros: wrong by k/2, and
    2k = 4E apart.
    """
    n = 10
    subsets = all_subsets(n)
    for k in (1, 2, 3):
        bits, other = np.zeros(n, dtype=int), np.zeros(n, dtype=int)
        bits[:k], other[k : 2 * k] = 1, 1
        answers = subsets @ (bits + other) / 2
        error = k / 2
        assert np.abs(subsets @ bits - answers).max() == error
        apart = np.abs(consistent(subsets, answers, error=error) - bits).sum(axis=1)
        assert apart.max() == 4 * error
        assert (
            np.abs(consistent(subsets, answers, error=error - 0.25) - bits)
            .sum(axis=1)
            .max(initial=0)
            < 4 * error
        )


def test_least_squares_beats_the_program_under_bounded_noise():
    """The facts' case: n = 100, m = 4n, uniform noise of 0.5 sqrt(n): about 0.95 against 0.84 of
    the bits.
    """
    rng = np.random.default_rng()
    right = {"lp": 0, "least-squares": 0}
    for _ in range(7):
        bits, queries, answers = drawn(100, 400, rng)
        noisy = answers + rng.uniform(-5, 5, 400)
        for method in right:
            right[method] += int(
                (reconstruct(queries, noisy, method=method, truth=bits).bits == bits).sum()
            )
    assert right["least-squares"] > right["lp"]
    # at least seven deviations away, like the others
    assert 0.88 < right["least-squares"] / 700 <= 1
    assert 0.70 < right["lp"] / 700 < 0.95


@pytest.mark.parametrize("noise", [0.0, 1.0, 5.0, 20.0])
def test_a_large_program_is_solved_as_a_small_one_is(noise, monkeypatch):
    """Step by step the sum of misses is never under the least, and within a thousandth of it."""
    _, queries, answers = drawn(100, 400, np.random.default_rng())
    noisy = answers + np.random.default_rng().uniform(-noise, noise, 400)
    # the package's name for it is the function
    solved = importlib.import_module("discreet.attacks.reconstruct")
    exact = solved._program(queries.astype(float), noisy)
    monkeypatch.setattr(solved, "MOST_SOLVED", 10)
    stepped = solved._program(queries.astype(float), noisy)
    assert ((stepped >= 0) & (stepped <= 1)).all()
    least, found = (np.abs(queries @ bits - noisy).sum() for bits in (exact, stepped))
    assert least - 1e-3 <= found <= 1.001 * least + 1


def test_laplace_at_total_epsilon_one_stays_near_chance():
    """400 answers share epsilon = 1. Hoeffding over 5 times 100 bits: 0.5 +- 0.15 at 1e-9."""
    rng = np.random.default_rng()
    hits = 0
    for _ in range(5):
        bits, queries, answers = drawn(100, 400, rng)
        hits += int(
            (
                reconstruct(queries, answers + rng.laplace(0, 400, 400), truth=bits).bits == bits
            ).sum()
        )
    assert hits / 500 < 0.5 + 0.02 + math.sqrt(math.log(1e9) / 1000)


def test_success_is_estimated_when_the_truth_is_unknown():
    rng = np.random.default_rng()
    _, queries, answers = drawn(100, 400, rng, 0.5)
    found = reconstruct(queries, answers)
    assert not found.measured
    assert found.finding.success > 0.95
    _, queries, answers = drawn(100, 400, rng, 1000.0)
    assert reconstruct(queries, answers).finding.success < 0.8


def test_from_a_file_and_from_published_tables(tmp_path):
    rng = np.random.default_rng()
    bits, queries, answers = drawn(30, 120, rng)
    np.savez(tmp_path / "asked.npz", queries=queries, answers=answers, bits=bits)
    assert reconstruct_file(tmp_path / "asked.npz").finding.success == 1.0
    np.savez(tmp_path / "half.npz", queries=queries)
    with pytest.raises(UsageError, match="answers"):
        reconstruct_file(tmp_path / "half.npz")
    people = pa.table({"team": ["a", "a", "b", "b"], "floor": ["1", "2", "1", "2"]})
    tables = pa.table(
        {"team": ["a", "b", None, None], "floor": [None, None, "1", "2"], "ill": [1, 2, 1, 2]}
    )
    q, a = published(tables, people, count="ill")
    assert q.tolist() == [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]
    assert reconstruct(q, a, method="exhaustive").bits.tolist() == [0, 1, 1, 1]


def test_against_an_answering_function():
    bits = np.random.default_rng().integers(0, 2, 40)
    assert (
        against(lambda mask: float(bits[mask].sum()), 40, questions=160, truth=bits).finding.success
        == 1.0
    )


@pytest.mark.parametrize(
    ("queries", "answers", "method", "message"),
    [
        ([[0, 1]], [1, 2], "lp", "m x n"),
        ([[0, 2]], [1], "lp", "zeros and ones"),
        ([[0, 1]], [float("nan")], "lp", "finite"),
        ([[0, 1]], [1], "magic", "one of exhaustive"),
        ([[0] * 30], [1], "exhaustive", "at most 22"),
    ],
)
def test_refusals(queries, answers, method, message):
    with pytest.raises(UsageError, match=message):
        reconstruct(queries, answers, method=method)


@pytest.mark.slow
def test_five_thousand_people():
    bits, queries, answers = drawn(5000, 20_000, np.random.default_rng(), noise=10.0)
    assert reconstruct(queries, answers, truth=bits).finding.success > 0.95
