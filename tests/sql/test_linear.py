"""Margins of arithmetic that is linear in noise: those of the noise itself, and known before paying
(S11).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.asking.offer import Offer, amount_for_margin, offer
from discreet.binding import accountant_of, terms_of
from sql import harness, policies

ACCOUNTANTS = ("sum", "zcdp")


def offered(sql: str, accountant: str = "sum", epsilon: str = "1/2") -> Offer:
    policy = policies.policy("hospital", "add_remove", accountant)
    plan, purse = harness.planned(sql, policy, name="hospital"), accountant_of(policy)
    return offer(
        plan, purse, amount=purse.allot(epsilon=Fraction(epsilon)), limit=terms_of(policy).limit
    )


def told(items: str, *, rest: str = "FROM people", accountant: str = "sum") -> list[float | None]:
    found = offered(f"SELECT {items} {rest}", accountant)
    return [found.margin(column, assuming=None) for column in range(len(found.plan.columns))]


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize(
    ("expression", "of", "times"),
    [
        ("-SUM(balance)", "SUM(balance)", 1),
        ("COUNT(*) + 1", "COUNT(*)", 1),
        ("7 - COUNT(*)", "COUNT(*)", 1),
        ("100 * COUNT(*)", "COUNT(*)", 100),
        ("COUNT(*) * 1e3", "COUNT(*)", 1000),
        ("COUNT(*) / 4", "COUNT(*)", 0.25),
        ("(COUNT(*) + 2) * 3 - COUNT(*)", "COUNT(*)", 2),
        ("CAST(COUNT(*) AS DOUBLE)", "COUNT(*)", 1),
        ("CAST(COUNT(*) AS DECIMAL(18, 2))", "COUNT(*)", 1),
        ("COALESCE(SUM(balance), 0)", "SUM(balance)", 1),
        ("GREATEST(COUNT(*), 0)", "COUNT(*)", 1),
        ("ABS(COUNT(*) - 5)", "COUNT(*)", 1),
        ("LEAST(GREATEST(COUNT(*), 0), 10)", "COUNT(*)", 1),
    ],
)
def test_of_one_number(expression: str, of: str, times: float, accountant: str) -> None:
    """The same noise, so the same half-width, times the factor: the smallest there is."""
    ((computed,), (plain,)) = (
        told(expression, accountant=accountant),
        told(of, accountant=accountant),
    )
    assert plain is not None
    assert computed == pytest.approx(times * plain)


@pytest.mark.parametrize(
    ("expression", "more"),
    [
        ("ROUND(COUNT(*) / 3, 1)", 0.1),
        ("ROUND(COUNT(*) / 3)", 1),
        ("CAST(COUNT(*) / 3 AS INTEGER)", 1),
        ("FLOOR(COUNT(*) / 3)", 1),
        ("COUNT(*) // 3", 1),
    ],
)
def test_what_rounds_is_a_step_wider(expression: str, more: float) -> None:
    ((computed,), (plain,)) = told(expression), told("COUNT(*)")
    assert plain is not None
    assert computed == pytest.approx(plain / 3 + more)


def masses(mechanism: Any) -> Any:
    return np.exp([mechanism.log_mass(z) for z in range(-400, 401)])


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FILTER (WHERE smoker) - COUNT(*) FILTER (WHERE NOT smoker) FROM people",
        "SELECT COUNT(*) FILTER (WHERE smoker) + COUNT(*) FILTER (WHERE NOT smoker) + 7 FROM people",
        "SELECT (SELECT COUNT(*) FROM people) - (SELECT COUNT(*) FROM people WHERE smoker)",
        "SELECT COUNT(*) - (SELECT COUNT(*) FROM people WHERE smoker) FROM people",
        "WITH t AS (SELECT COUNT(*) AS n FROM people WHERE smoker) "
        "SELECT a.n - t.n FROM (SELECT COUNT(*) AS n FROM people) AS a, t",
        "SELECT a - b FROM (SELECT COUNT(*) FILTER (WHERE smoker) AS a, COUNT(*) FILTER (WHERE age > 9) AS b "
        "FROM people) AS t",
    ],
)
def test_of_two_independent_numbers(sql: str, accountant: str) -> None:
    """The smallest half-width that covers the convolution of both masses; numbers that exclude each
    other are drawn by one mechanism.
    """
    found = offered(sql, accountant)
    first = found.mechanisms[0]
    second = found.mechanisms[-1]
    total = np.convolve(masses(first), masses(second))
    half = found.margin(0, assuming=None)
    assert half == int(half or 0.5)
    inside = [float(total[800 - h : 801 + h].sum()) for h in (int(half) - 1, int(half))]
    assert inside[0] < 0.95 <= inside[1]


def test_numbers_that_share_their_draws() -> None:
    """COUNT and SUM of AVG's two parts: A the sum of x - lo, B of hi - x, so that a combination of
    them may be one.
    """
    found = offered(
        "SELECT COUNT(age), SUM(age), AVG(age), 120 * COUNT(age) - SUM(age) AS rest FROM people"
    )
    (mechanism,) = found.mechanisms
    _, mean = found.plan.blocks[0].aggregates[2]  # type: ignore[misc]
    lo, width = mean.lo, mean.width  # type: ignore[attr-defined]
    assert (lo, width) == (0, 120)
    # B itself, and what rounding the count, 120 times, may add
    half, slack = (found.margin(3, assuming=None), 60)
    assert half == pytest.approx(mechanism.margin(0.95) + slack)  # type: ignore[union-attr]


def test_one_table_met_twice() -> None:
    """The rows are one or two: the wider of both."""
    table = "WITH t AS (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)"
    for sign, rows in (("+", 1), ("-", 2)):
        found = offered(
            f"{table} SELECT a.n {sign} b.n AS x FROM t AS a JOIN t AS b ON a.sex >= b.sex"
        )
        (mechanism, *_) = found.mechanisms
        total = np.convolve(masses(mechanism), masses(mechanism))
        half = found.margin(0, assuming=None)
        assert half == (2 * mechanism.margin(0.95) if rows == 1 else int(half or 0.5))  # type: ignore[union-attr]
        inside = float(total[800 - int(half) : 801 + int(half)].sum())
        assert inside >= 0.95
        assert rows == 1 or float(total[801 - int(half) : 800 + int(half)].sum()) < 0.95


def test_rows_that_may_share_some_noise() -> None:
    """Three rows of one table: within their half-widths at 1 - 5 % / 3, but for 5 % in all."""
    table = "WITH t AS (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)"
    found = offered(f"{table} SELECT a.n + b.n - c.n AS x FROM t AS a, t AS b, t AS c")
    (mechanism, *_) = found.mechanisms
    assert found.margin(0, assuming=None) == 3 * mechanism.margin(1 - 0.05 / 3)  # type: ignore[union-attr]


def test_a_total_that_is_added_up_shares_the_noise_of_its_parts() -> None:
    sql = "SELECT sex, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex)"
    found = offered(f"SELECT a.n - b.n AS x FROM ({sql}) AS a, ({sql}) AS b")
    assert found.plan.columns[0].forms == ()  # which of two groupings a row is of is not known here
    assert found.margins(0, assuming=None) is None


@pytest.mark.parametrize(
    "expression",
    [
        "COUNT(*) * COUNT(*)",
        "SUM(balance) / COUNT(*)",
        "COUNT(*) % 7",
        "CASE WHEN COUNT(*) > 3 THEN COUNT(*) END",
        "CAST(COUNT(*) AS FLOAT)",
        "SQRT(COUNT(*))",
        "ABS(COUNT(*)) + SUM(balance)",
        "AVG(age) - AVG(balance)",
        "NULLIF(COUNT(*), 5)",
    ],
)
def test_what_is_not_linear_is_simulated(expression: str) -> None:
    found = offered(f"SELECT {expression} AS x FROM people")
    (column,) = found.plan.columns
    assert column.measured
    assert not column.forms
    assert found.plan.blocks[0].derived


def test_means_keep_their_margins_through_arithmetic() -> None:
    found = offered("SELECT 2 * AVG(age) + 1 AS x, AVG(age) AS y FROM people")
    x, y = (found.margin(column, assuming=500) for column in (0, 1))
    assert y is not None
    assert x == pytest.approx(2 * y)
    assert found.margin(0, assuming=None) is None


@pytest.mark.parametrize(
    "sql", ["SELECT COUNT(*) + 1 FROM people", "SELECT -SUM(balance) FROM people"]
)
def test_a_margin_can_be_asked_for(sql: str) -> None:
    policy = policies.policy("hospital")
    plan, purse = harness.planned(sql, policy, name="hospital"), accountant_of(policy)
    limit = terms_of(policy).limit
    amount = amount_for_margin(
        plan, purse, margin=Fraction(5000), assuming=None, most=Fraction(3), limit=limit
    )
    half = offer(plan, purse, amount=amount, limit=limit).margin(0, assuming=None)
    assert half is not None
    assert half <= 5000


def test_margins_are_dropped_where_rows_stand_for_several() -> None:
    found = offered(
        "SELECT n + 1 AS m FROM (SELECT DISTINCT COUNT(*) AS n FROM people GROUP BY sex) AS t"
    )
    assert not found.plan.columns[0].measured
