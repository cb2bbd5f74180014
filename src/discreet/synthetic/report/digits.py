"""Numbers with the digits that mean something: as many as a margin leaves, or else about four."""

from __future__ import annotations

import math

from discreet.budget import with_margin


def few_digits(value: float) -> str:
    """Write a number in four digits, or all those before the point; below 1 in four decimals, or
    two digits if that is more. There are no exponents.

    >>> few_digits(24631.72), few_digits(44.9625), few_digits(0.0274745), few_digits(4.44871e-05)
    ('24,632', '44.96', '0.0275', '0.000044')
    """
    if not value:
        return "0"
    size = math.floor(math.log10(abs(value)))
    places = max(0, 3 - size) if size >= 0 else max(4, 1 - size)
    return f"{value:,.{places}f}"


def as_exact_as(margin: float, value: float) -> str:
    """Write a number in as many digits as one that has this margin.

    >>> as_exact_as(0.0043, 0.0274745), as_exact_as(0.0043, 4.44871e-05), as_exact_as(0, 44.9625)
    ('0.0275', '0.0000', '44.96')
    """
    return with_margin(value, margin).split(" ± ")[0] if margin else few_digits(value)
