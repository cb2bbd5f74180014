"""A lesson: what was released, how it is attacked, what the attack finds, and the same attack
against noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.attacks.experiment.finding import Finding, Rate, ceiling, percent
from discreet.mechanisms import DiscreteLaplace
from discreet.noise import Items, Stream

EPSILONS = tuple(map(Fraction, ("1/10", "1/4", "1/2", "1", "2", "4", "8")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonStep:
    """A heading, a paragraph whose line breaks are ignored, and perhaps a table."""

    heading: str
    text: str
    table: Exhibit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The attack's success if the release has noise for this ε."""

    epsilon: Fraction
    finding: Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """The story of one attack, with its success without noise and at several ε."""

    attack: str
    title: str
    steps: tuple[LessonStep, ...]
    measure: str  # what is counted as a success
    exact: Finding  # without noise
    points: tuple[Point, ...]
    bounded: bool  # whether the ceiling of S20 applies
    moral: str

    def numbers(self) -> Exhibit:
        """Return a table of the success at each ε, with the ceiling if there is one."""
        columns = ("ε", "success", "95 % interval", "of", *(("ceiling",) if self.bounded else ()))
        rows = []
        for point in self.points:
            low, high = point.finding.interval
            row = (
                f"{float(point.epsilon):g}",
                percent(point.finding.success),
                f"{percent(low)} to {percent(high)}",
            )
            most = (percent(ceiling(float(point.epsilon))),) if self.bounded else ()
            rows.append((*row, f"{point.finding.n:,}", *most))
        return Exhibit(columns=columns, rows=tuple(rows))

    def as_json(self) -> dict[str, object]:
        points = [
            {"epsilon": float(point.epsilon), **point.finding.as_json()} for point in self.points
        ]
        return {
            **self.exact.as_json(),
            "title": self.title,
            "measure": self.measure,
            "with_noise": points,
        }


def noisy(values: Any, *, epsilon: Fraction, l1: int) -> NDArray[Any]:
    """Return counts with noise, as the curator would release them. One person changes them by at
    most l1 in all.
    """
    mechanism = DiscreteLaplace(scale=Fraction(l1) / epsilon, l1=Fraction(l1))
    given = np.asarray(values, dtype=np.int64)
    return np.asarray(mechanism.add_to(given, Stream.fresh(), Items.positions(len(given))))


def points(
    attack: str, rates: Sequence[tuple[Fraction, Rate]], *, chance: float
) -> tuple[Point, ...]:
    return tuple(
        Point(epsilon=epsilon, finding=rate.finding(attack, chance=chance))
        for epsilon, rate in rates
    )


def bits_guessed(guess: NDArray[Any], truth: NDArray[Any]) -> Rate:
    return Rate(hits=int((guess == truth).sum()), n=len(truth))
