"""Regression and rank correlation against closed forms, scipy and an independent maximizer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

from discreet.evaluate.statistics import Fit, logit, ols, spearman

Floats = np.ndarray


def sample(rows: int = 400) -> tuple[Floats, Floats, Floats]:
    """Two columns that hang together, and noise: the same numbers every time, without a
    generator.
    """
    place = np.arange(rows)
    x1 = np.sin(place * 1.7) * 3 + 10
    x2 = np.cos(place * 0.37) + 0.3 * x1
    noise = np.sin(place * 12.9898) * 43758.5453 % 1 - 0.5
    return x1, x2, noise


def test_one_column_agrees_with_scipy() -> None:
    x, _, noise = sample()
    y = 2 - 0.25 * x + noise
    expected, found = stats.linregress(x, y), ols(y, [x])
    assert found.coefficient[0] == pytest.approx(expected.slope, rel=1e-9)
    assert found.intercept == pytest.approx(expected.intercept, rel=1e-9)
    assert found.error[0] == pytest.approx(expected.stderr, rel=1e-9)
    assert found.p[0] == pytest.approx(expected.pvalue, rel=1e-6)
    assert found.r2 == pytest.approx(expected.rvalue**2, rel=1e-9)
    assert found.rows == 400


def test_two_columns_agree_with_the_normal_equations() -> None:
    x1, x2, noise = sample()
    y = 1 + 2 * x1 - 3 * x2 + noise
    design = np.column_stack([np.ones(len(y)), x1, x2])
    beta = np.linalg.solve(design.T @ design, design.T @ y)
    left = y - design @ beta
    errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * (left @ left) / (len(y) - 3))
    found = ols(y, [x1, x2])
    assert found.intercept == pytest.approx(beta[0], rel=1e-8)
    assert found.coefficient == pytest.approx(tuple(beta[1:]), rel=1e-8)
    assert found.error == pytest.approx(tuple(errors[1:]), rel=1e-8)
    p = 2 * stats.t.sf(abs(beta[1:] / errors[1:]), len(y) - 3)
    assert found.p == pytest.approx(tuple(p), rel=1e-6, abs=1e-300)


def test_the_unit_of_a_column_changes_its_coefficient_and_nothing_else() -> None:
    x1, x2, noise = sample()
    y = x1 + x2 + noise
    plain, scaled = ols(y, [x1, x2]), ols(y, [x1 * 1e6 + 1e9, x2])
    assert scaled.coefficient[0] == pytest.approx(plain.coefficient[0] / 1e6, rel=1e-4)  # type: ignore[operator]
    assert scaled.t == pytest.approx(plain.t, rel=1e-4)


def test_logistic_regression_is_where_the_likelihood_is_highest() -> None:
    x1, x2, noise = sample()
    y = (x1 - 10 + 2 * (x2 - 3) + 6 * noise > 0).astype(float)
    design = np.column_stack([np.ones(len(y)), x1, x2])

    def deviance(beta: Floats) -> float:
        score = design @ beta
        return float(np.sum(np.logaddexp(0, score) - y * score))

    best = optimize.minimize(
        deviance, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-9, "maxiter": 20_000}
    )
    found = logit(y, [x1, x2])
    assert (found.intercept, *found.coefficient) == pytest.approx(tuple(best.x), rel=1e-3)
    chance = 1 / (1 + np.exp(-design @ best.x))
    errors = np.sqrt(np.diag(np.linalg.inv(design.T @ (design * (chance * (1 - chance))[:, None]))))
    assert found.error == pytest.approx(tuple(errors[1:]), rel=1e-3)
    flat = -math.fsum(np.where(y > 0, np.log(y.mean()), np.log(1 - y.mean())))
    assert found.r2 == pytest.approx(1 - best.fun / flat, rel=1e-4)
    assert found.accuracy == np.mean((chance > 0.5) == (y > 0.5))


def test_logistic_regression_on_one_condition_has_a_closed_form() -> None:
    """The coefficient is the logarithm of the odds ratio, its variance the sum of the inverse
    counts.
    """
    counts = {(0, 0): 40, (0, 1): 10, (1, 0): 20, (1, 1): 30}
    x, y = (
        np.repeat([cell[place] for cell in counts], list(counts.values())).astype(float)
        for place in (0, 1)
    )
    found = logit(y, [x])
    assert found.coefficient[0] == pytest.approx(math.log(40 * 30 / (10 * 20)), rel=1e-8)
    assert found.error[0] == pytest.approx(
        math.sqrt(sum(1 / each for each in counts.values())), rel=1e-6
    )


def test_spearman_agrees_with_scipy_also_with_ties() -> None:
    x1, x2, _ = sample()
    assert spearman(x1, x2) == pytest.approx(stats.spearmanr(x1, x2).statistic, rel=1e-12)
    rough = np.round(x1), np.round(x2)
    assert spearman(*rough) == pytest.approx(stats.spearmanr(*rough).statistic, rel=1e-12)


def nothing(fit: Fit) -> bool:
    return {fit.intercept, fit.r2, fit.accuracy, *fit.coefficient, *fit.error, *fit.t, *fit.p} == {
        None
    }


def test_what_does_not_exist_is_null() -> None:
    x1, x2, noise = sample(50)
    constant = np.full(50, 3.0)
    for columns in ([constant], [x1, x1], [x1, x2, x1 + x2], [x1, constant]):
        assert nothing(ols(noise, columns))
        assert nothing(logit((noise > 0).astype(float), columns))
    assert nothing(ols(noise[:3], [x1[:3], x2[:3]]))
    assert nothing(ols(np.zeros(0), [np.zeros(0)]))
    assert nothing(logit(noise, [x1]))  # neither 0 nor 1
    assert nothing(logit(np.ones(50), [x1]))
    assert spearman(constant, x1) is None
    assert spearman(x1[:1], x2[:1]) is None
    assert ols(constant, [x1]).r2 is None


@pytest.mark.parametrize("overlap", [0, 1])
def test_separated_classes_have_no_estimate(overlap: int) -> None:
    """Also where they touch in one value (quasi-separation), and where one column of two separates
    them.
    """
    x = np.arange(40.0)
    y = (x >= 20).astype(float)
    if overlap:
        x[20] = x[19]
    assert nothing(logit(y, [x]))
    assert nothing(logit(y, [np.sin(x), x]))
    y[3] = 1
    assert not nothing(logit(y, [x]))


def test_rows_with_a_missing_value_are_left_out() -> None:
    x1, x2, noise = sample()
    y = x1 - x2 + noise
    holed = x1.copy()
    holed[:7] = np.nan
    y2 = y.copy()
    y2[7:9] = np.nan
    assert ols(y2, [holed, x2]) == ols(y[9:], [x1[9:], x2[9:]])
    assert spearman(holed, x2) == spearman(x1[7:], x2[7:])


def test_a_perfect_fit_has_a_coefficient() -> None:
    found = ols(np.arange(50.0), [np.arange(50.0) * 2])
    assert found.coefficient[0] == pytest.approx(0.5)
    assert found.r2 == pytest.approx(1)
    assert found.p[0] is not None
    assert found.p[0] < 1e-12
