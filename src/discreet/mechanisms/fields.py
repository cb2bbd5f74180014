"""Checks of a mechanism's fields. Each refusal is one sentence with the field and its value."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import get_args

from discreet.budget import Neighbors
from discreet.errors import UsageError


def positive(name: str, value: object) -> None:
    """Require a rational number above zero."""
    if isinstance(value, bool) or not isinstance(value, (int, Fraction)) or value <= 0:
        raise UsageError(f"{name} must be a positive rational number, not {value!r}.")


def rationals(mechanism: object, *names: str) -> None:
    """Require positive rationals, and store them as Fractions, so that losses are exact."""
    for name in names:
        value = getattr(mechanism, name)
        positive(name, value)
        object.__setattr__(mechanism, name, Fraction(value))


def whole(name: str, value: object, *, least: int = 1, most: int | None = None) -> None:
    """Require an integer from `least` to `most`."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or value < least
        or (most is not None and value > most)
    ):
        bounds = f"at least {least}" if most is None else f"from {least} to {most}"
        raise UsageError(f"{name} must be a whole number {bounds}, not {value!r}.")


def below(name: str, value: Fraction, limit: Fraction) -> None:
    if value >= limit:
        raise UsageError(f"{name} must be below {limit}, not {value}.")


def flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise UsageError(f"{name} must be True or False, not {value!r}.")


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UsageError(f"{name} must be one of {', '.join(allowed)}, not {value!r}.")


def neighbors(value: object) -> None:
    one_of("neighbors", value, get_args(Neighbors))


def confidence(value: object) -> Fraction:
    """Return a level of confidence as an exact number: 0.95 means 19/20."""
    exact = value
    if isinstance(value, float) and math.isfinite(value):
        exact = Fraction(str(value))
    if isinstance(exact, bool) or not isinstance(exact, (int, Fraction)) or not 0 < exact < 1:
        raise UsageError(f"confidence must be between 0 and 1, not {value!r}.")
    return Fraction(exact)
