"""Amounts: what is refused, what is exact, how it prints."""

from __future__ import annotations

import json
import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.budget import Budget, Charge, Loss, amount, number, round_down, round_up
from discreet.errors import UsageError

REFUSED = [
    (math.nan, "epsilon must be a finite number, not nan."),
    (math.inf, "epsilon must be a finite number, not inf."),
    (-math.inf, "epsilon must be a finite number, not -inf."),
    (Decimal("sNaN"), "epsilon must be a finite number, not sNaN."),
    ("1e400", "epsilon must be a finite number, not '1e400'."),
    (
        "1e999999999",
        "epsilon must be a finite number, not '1e999999999'.",
    ),  # would be a gigabyte as an integer
    ("1/0", "epsilon must be a finite number, not '1/0'."),
    ("half", "epsilon must be a finite number, not 'half'."),
    ("", "epsilon must be a finite number, not ''."),
    ("1_0", "epsilon must be a finite number, not '1_0'."),  # Python reads 10
    ("1_0/3", "epsilon must be a finite number, not '1_0/3'."),
    ("٠.١", "epsilon must be a finite number, not '٠.١'."),
    ("\uff10.\uff11", "epsilon must be a finite number, not '\uff10.\uff11'."),
    ("١/٣", "epsilon must be a finite number, not '١/٣'."),
    (10**5000, "epsilon must be a finite number, not a number of thousands of digits."),
    (-1, "epsilon must be greater than zero, not -1."),
    ("-1e-999999999", "epsilon must be greater than zero, not '-1e-999999999'."),
    (0, "epsilon must be greater than zero, not 0."),
    (-0.0, "epsilon must be greater than zero, not -0.0."),
    (1e-310, "epsilon must be at least 2.226e-308, not 1e-310."),
    (5e-324, "epsilon must be at least 2.226e-308, not 5e-324."),
    ("1e-999999999", "epsilon must be at least 2.226e-308, not '1e-999999999'."),
    (
        Fraction(1, 10**5000),
        "epsilon must be at least 2.226e-308, not a number of thousands of digits.",
    ),
    (4.5, "epsilon must be at most 4, not 4.5."),
    (1e308, "epsilon must be at most 4, not 1e+308."),
    (True, "epsilon must be a number, not True."),
    (None, "epsilon must be a number, not None."),
    ([0.5], "epsilon must be a number, not [0.5]."),
    (1j, "epsilon must be a number, not 1j."),
    (np.float32("nan"), "epsilon must be a finite number, not nan."),
    (np.float32("inf"), "epsilon must be a finite number, not inf."),
    (np.int64(-1), "epsilon must be greater than zero, not -1."),
    (np.bool_(True), "epsilon must be a number, not np.True_."),
    (
        np.timedelta64(1, "s"),
        "epsilon must be a finite number, not 1 seconds.",
    ),  # numpy calls it an integer
]


@pytest.mark.parametrize(
    ("value", "sentence"), REFUSED, ids=[sentence[8:] for _, sentence in REFUSED]
)
def test_refuses_in_one_sentence_with_the_value(value: object, sentence: str) -> None:
    with pytest.raises(UsageError) as refusal:
        amount(value, name="epsilon", most=Fraction(4))
    assert str(refusal.value) == sentence


def test_a_long_text_is_refused_and_not_repeated_in_full() -> None:
    with pytest.raises(UsageError) as refusal:
        amount("9" * 10**6, name="epsilon")
    assert len(str(refusal.value)) < 100


@pytest.mark.parametrize(
    "value", [0.1, "0.1", "1e-1", " .1 ", "1/10", Decimal("0.1"), Fraction(1, 10)]
)
def test_means_what_was_written(value: object) -> None:
    assert amount(value, name="epsilon") == Fraction(1, 10)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_numbers_of_numpy_mean_what_they_print(kind: type[np.floating]) -> None:
    assert amount(kind(0.1), name="epsilon") == Fraction(1, 10)


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint64])
def test_integers_of_numpy_become_exact(kind: type[np.integer]) -> None:
    found = amount(kind(3), name="epsilon")
    assert found == 3
    assert type(found.numerator) is int


def test_zero_only_where_it_is_allowed() -> None:
    assert amount(0, name="delta", zero=True) == 0
    with pytest.raises(UsageError, match=r"delta must be zero or more, not -1\."):
        amount(-1, name="delta", zero=True)


def test_the_limits_of_the_normal_floats_are_inside() -> None:
    assert amount(2.0**-1022, name="epsilon") > 0
    assert amount(1.7976931348623157e308, name="epsilon") > 0


def test_ten_times_a_tenth_is_one_and_eleven_times_is_not() -> None:
    limit, spent = Charge(amount=Fraction(1)), Charge(amount=Fraction(0))
    tenth = Charge(amount=amount(0.1, name="epsilon"))
    for _ in range(10):
        assert (spent + tenth).fits(limit)
        spent += tenth
    assert spent == limit
    assert not (spent + tenth).fits(limit)
    assert limit - spent == Charge(amount=Fraction(0))


def test_a_charge_must_fit_in_both_parts() -> None:
    limit = Charge(amount=Fraction(1), delta=Fraction(1, 10**9))
    assert Charge(amount=Fraction(1), delta=Fraction(1, 10**9)).fits(limit)
    assert not Charge(amount=Fraction(1, 2), delta=Fraction(2, 10**9)).fits(limit)
    assert not Charge(amount=Fraction(2)).fits(limit)


@pytest.mark.parametrize("part", ["epsilon", "rho", "delta"])
def test_no_mechanism_earns_budget(part: str) -> None:
    fields = {"epsilon": Fraction(1), "rho": Fraction(1), "delta": Fraction(0), part: Fraction(-1)}
    with pytest.raises(UsageError, match=f"{part} is -1"):
        Loss(**fields)


PRINTED = [
    (Fraction(1, 10**9), "1e-9"),
    (Fraction(1, 10**400), "1e-400"),
    (Fraction(25, 10**11), "2.5e-10"),
    (Fraction("0.12345"), "0.12345"),
    (Fraction(1, 3), "0.3333"),
    (Fraction(1, 10), "0.1"),
    (0.1, "0.1"),
    (4, "4"),
    (Fraction(100), "100"),
    (Fraction(0), "0"),
    (Fraction("0.0001"), "0.0001"),
    (Fraction("0.00001"), "1e-5"),
    (Fraction("1234567.89"), "1.235e6"),
    (math.inf, "inf"),
]


@pytest.mark.parametrize(("value", "text"), PRINTED, ids=[text for _, text in PRINTED])
def test_numbers_read_well(value: Fraction | float, text: str) -> None:
    assert number(value) == text


@given(st.fractions(min_value=0))
def test_only_zero_prints_as_zero(value: Fraction) -> None:
    assert (Decimal(number(value)) == 0) == (value == 0)


@given(st.fractions(min_value=0))
def test_costs_can_be_printed_rounded_up_and_what_is_left_rounded_down(value: Fraction) -> None:
    low, high = (
        Fraction(number(value, rounding=rounding)) for rounding in (ROUND_FLOOR, ROUND_CEILING)
    )
    assert low <= value <= high <= low + value / 999


@given(st.integers(1, 999_999), st.integers(-300, 290))
def test_what_was_written_in_six_digits_prints_so_that_it_reads_back(
    mantissa: int, exponent: int
) -> None:
    value = mantissa * Fraction(10) ** exponent
    assert amount(number(value), name="epsilon") == value


@given(st.fractions(min_value=0), st.integers(1, 30))
def test_rounding_keeps_its_direction_and_its_digits(value: Fraction, digits: int) -> None:
    low, high = round_down(value, digits=digits), round_up(value, digits=digits)
    assert low <= value <= high
    assert high - low <= value / 10 ** (digits - 1)
    assert round_up(low, digits=digits) == low
    assert round_down(high, digits=digits) == high


def test_a_budget_reads_in_one_line() -> None:
    assert str(Budget(epsilon=Fraction(1, 2), delta=Fraction(0))) == "ε = 0.5"
    assert str(Budget(epsilon=Fraction(4), delta=Fraction(1, 10**9), rho=Fraction(1, 7))) == (
        "ε = 4, ρ = 0.1429, δ = 1e-9"
    )
    left = Budget(epsilon=Fraction("0.49999999"), delta=Fraction(0))
    assert (str(left), left.text(rounding=ROUND_FLOOR)) == ("ε = 0.5", "ε = 0.4999")


@given(
    st.fractions(min_value=0, max_value=100), st.fractions(0, 1), st.none() | st.fractions(0, 100)
)
def test_json_keeps_the_exact_rationals(
    epsilon: Fraction, delta: Fraction, rho: Fraction | None
) -> None:
    budget = Budget(epsilon=epsilon, delta=delta, rho=rho)
    told = json.loads(json.dumps(budget.as_json()))
    exact = {
        name: None if text is None else Fraction(text) for name, text in told.pop("exact").items()
    }
    assert Budget(**exact) == budget
    assert told == {name: None if value is None else float(value) for name, value in exact.items()}
