"""Domains: their size, their ends in steps, and what cannot be written."""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.policy.domain import (
    DOMAINS,
    MOST_STEPS,
    Booleans,
    Categories,
    Dates,
    Decimals,
    Identifier,
    Integers,
    Texts,
    Timestamps,
    write_number,
)

F = Fraction
DAY = datetime(2024, 1, 1)


@pytest.mark.parametrize(
    ("domain", "size"),
    [
        (Integers(lo=0, hi=120), 121),
        (Integers(lo=-3, hi=-3), 1),
        (Decimals(lo=F(0), hi=F(1), step=F(1, 100)), 101),
        (Decimals(lo=F(-1, 2), hi=F(1), step=F(1, 2)), 4),
        (Decimals(lo=F(0), hi=F(1), step=F(1, 3)), 4),
        (Categories(values=("F", "M", "X")), 3),
        (Categories(values=(1, 2)), 2),
        (Booleans(), 2),
        (Dates(lo=date(2024, 1, 1), hi=date(2024, 12, 31)), 366),
        (Timestamps(lo=DAY, hi=datetime(2024, 1, 2), step=F(3600)), 25),
        (Timestamps(lo=DAY, hi=datetime(2024, 1, 1, 0, 0, 1), step=F(1, 1000)), 1001),
        (Texts(), None),
        (Identifier(), None),
    ],
)
def test_size(domain: object, size: int | None) -> None:
    assert domain.size == size  # type: ignore[attr-defined]


def test_every_domain_has_its_own_word() -> None:
    assert len({domain.yaml for domain in DOMAINS}) == len(DOMAINS)


@given(st.integers(-(10**6), 10**6), st.integers(0, 10**6), st.fractions(F(1, 1000), 1000))
def test_ends_in_steps(first: int, more: int, step: Fraction) -> None:
    domain = Decimals(lo=first * step, hi=(first + more) * step, step=step)
    assert (domain.first, domain.last, domain.size) == (first, first + more, more + 1)
    assert domain.first * domain.step == domain.lo


@pytest.mark.parametrize(
    ("kind", "fields", "reason"),
    [
        (Integers, {"lo": 1, "hi": 0}, "ends"),
        (Integers, {"lo": 0, "hi": MOST_STEPS + 1}, "2\\^62"),
        (Integers, {"lo": -MOST_STEPS - 1, "hi": 0}, "2\\^62"),
        (
            Decimals,
            {"lo": F(0), "hi": F(1), "step": F(3, 10)},
            "1 is not a multiple of the step 0.3",
        ),
        (Decimals, {"lo": F(1, 3), "hi": F(1), "step": F(1, 2)}, "1/3 is not a multiple"),
        (Decimals, {"lo": F(0), "hi": F(1), "step": F(0)}, "step"),
        (Decimals, {"lo": F(0), "hi": F(1), "step": F(-1)}, "step"),
        (Decimals, {"lo": F(0), "hi": F(10) ** 18, "step": F(1, 100)}, "2\\^62"),
        (Categories, {"values": ()}, "empty"),
        (Categories, {"values": ("a", "a")}, "twice"),
        (Categories, {"values": ("a", 1)}, "mixes"),
        (Dates, {"lo": date(2024, 1, 2), "hi": date(2024, 1, 1)}, "ends"),
        (Timestamps, {"lo": DAY, "hi": DAY, "step": F(1, 10**7)}, "microseconds"),
        (
            Timestamps,
            {"lo": DAY, "hi": datetime(2024, 1, 1, 0, 0, 1), "step": F(2)},
            "whole number of steps",
        ),
    ],
)
def test_what_cannot_be_written(kind: type, fields: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        kind(**fields)


@given(st.fractions(max_denominator=10**6))
def test_written_is_exact(value: Fraction) -> None:
    assert Fraction(write_number(value)) == value


def test_written_reads_well() -> None:
    assert [write_number(F(x)) for x in ("0.01", "-0.5", "1/3", "200000", "0")] == [
        "0.01",
        "-0.5",
        "1/3",
        "200000",
        "0",
    ]
