"""Text columns: the values that enough people share are found by a paid threshold, and all others become one (S5).

Privacy
    A person has at most m rows, hence at most m of a column's values, and adds 1 to the people of each. The price of
    the threshold, in ε or ρ and in δ, is that of unknown keys in a question. What follows uses the released list only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from discreet.accounting.calibrate import gaussian_sigma, laplace_scale
from discreet.budget import AccountantName
from discreet.domain import Categories
from discreet.mechanisms import Mechanism
from discreet.mechanisms.threshold import GaussianThreshold, TruncatedLaplaceThreshold
from discreet.release import Allowance, Exact
from discreet.synthetic.axis import MOST_VALUES, OTHER, Axis, Unlisted
from discreet.synthetic.source import Source

SHARE = Fraction(1, 10)  # of what was paid, for one text column; for several
MOST_SHARE = Fraction(1, 4)


def share_of_texts(count: int) -> Fraction:
    """The part of what was paid that finds the values of so many text columns."""
    return min(MOST_SHARE, count * SHARE)


def list_texts(
    axes: Sequence[Axis | Unlisted],
    source: Source,
    *,
    currency: AccountantName,
    amount: Fraction,
    delta: Fraction,
    allowance: Allowance,
    fetch: Callable[[str], Exact],
) -> tuple[tuple[Axis, ...], Source]:
    """The columns with lists in the place of texts, for an amount and a δ."""
    texts, found = sum(isinstance(axis, Unlisted) for axis in axes), []
    for axis in axes:
        if isinstance(axis, Unlisted):
            mechanism = _threshold(source, currency, amount / texts, delta / texts)
            survivors, people = allowance.threshold(mechanism, fetch(source.people(axis.name)), keys=1)
            listed = _most(survivors.column(0).to_pylist(), people)
            source = source.listing(axis.name, listed)
            found.append(listed_axis(axis, listed))
        else:
            found.append(axis)
    return tuple(found), source


def listed_axis(axis: Unlisted, values: tuple[str, ...]) -> Axis:
    """A text column as a list of values, the last of which stands for all others."""
    return Axis(column=replace(axis.column, domain=Categories(values=values)), bins=len(values))


def _most(values: list[str], people: np.ndarray) -> tuple[str, ...]:
    """In the order of their values, the ones that most people share; those that engine SQL cannot spell are others."""
    able = [place for place, value in enumerate(values) if value != OTHER and "\0" not in value]
    kept = sorted(sorted(able, key=lambda place: -int(people[place]))[: MOST_VALUES - 1])
    return (*(values[place] for place in kept), OTHER)


def _threshold(source: Source, currency: AccountantName, amount: Fraction, delta: Fraction) -> Mechanism:
    touched = Fraction(source.max_rows * (2 if source.neighbors == "change_one" else 1))
    if currency == "sum":
        return TruncatedLaplaceThreshold(
            scale=laplace_scale(l1=touched, epsilon=amount),
            linf=1,
            max_groups=source.max_rows,
            neighbors=source.neighbors,
            delta=delta,
        )
    return GaussianThreshold(
        sigma=gaussian_sigma(l2_squared=touched, rho=amount),
        linf=1,
        max_groups=source.max_rows,
        neighbors=source.neighbors,
        delta=delta,
    )
