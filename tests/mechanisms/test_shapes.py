"""Shapes: every mechanism that the vault can use has one, and what it says it hides is what its
loss is for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.budget import Neighbors
from discreet.mechanisms import (
    MECHANISMS,
    AboveThreshold,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    FineQuantile,
    GaussianThreshold,
    LaplaceThreshold,
    PermuteAndFlip,
    Quantile,
    Quantiles,
    RandomizedResponse,
    TopK,
    TruncatedLaplaceThreshold,
)
from discreet.mechanisms.shapes import (
    Additive,
    Choice,
    Keys,
    Movement,
    Nearby,
    PersonRows,
    Scores,
    Selection,
    Threshold,
)

F = Fraction
SHAPES: tuple[Any, ...] = (Additive, Selection, Nearby, Choice, Threshold)
# no vault runs them: one answers a stream, one runs on a device
OUTSIDE = {AboveThreshold, RandomizedResponse}
RELATIONS: tuple[Neighbors, ...] = ("add_remove", "change_one")


def members(shape: Any) -> set[str]:
    """What a mechanism of a shape must have."""
    return {
        name
        for each in shape.__mro__
        for name in vars(each)
        if not name.startswith("_") and each is not object
    }


def missing(kind: type, shape: Any) -> set[str]:
    """What a mechanism lacks to have a shape."""
    fields: dict[str, Any] = getattr(kind, "__dataclass_fields__", {})
    return {name for name in members(shape) if not hasattr(kind, name) and name not in fields}


@pytest.mark.parametrize("kind", MECHANISMS)
def test_every_mechanism_has_a_shape_or_stands_outside(kind: type) -> None:
    lacking = {shape.__name__: missing(kind, shape) for shape in SHAPES}
    assert (set() not in lacking.values()) == (kind in OUTSIDE), lacking


def test_every_shape_is_had() -> None:
    had = {
        shape.__name__: {kind for kind in MECHANISMS if not missing(kind, shape)}
        for shape in SHAPES
    }
    least = {
        "Additive": {DiscreteLaplace, DiscreteGaussian},
        "Selection": {
            ExponentialMechanism,
            PermuteAndFlip,
            TopK,
            Quantile,
            Quantiles,
            FineQuantile,
        },
        "Nearby": {FineQuantile},
        "Choice": {ExponentialMechanism, PermuteAndFlip},
        "Threshold": {LaplaceThreshold, GaussianThreshold, TruncatedLaplaceThreshold},
    }
    assert all(kinds <= had[shape] for shape, kinds in least.items())


def test_added_noise_hides_what_its_loss_is_for_and_no_more() -> None:
    laplace = DiscreteLaplace(scale=F(3), l1=F(2))
    gaussian = DiscreteGaussian(sigma=F(3), l2_squared=F(5, 2))
    for moved in range(1, 6):
        epsilon = max(laplace.log_mass(z) - laplace.log_mass(z + moved) for z in range(-40, 40))
        claim = laplace.loss().epsilon
        assert claim is not None
        assert laplace.hides(Movement(l1=moved, l2_squared=None)) == (epsilon <= claim + 1e-9)
        rho = F(moved) / (2 * gaussian.sigma**2)
        assert gaussian.hides(Movement(l1=None, l2_squared=moved)) == (rho <= gaussian.loss().rho)


def test_a_norm_that_was_not_derived_is_hidden_by_nothing() -> None:
    assert not DiscreteLaplace(scale=F(3), l1=F(10**9)).hides(Movement(l1=None, l2_squared=1))
    assert not DiscreteGaussian(sigma=F(3), l2_squared=F(10**9)).hides(
        Movement(l1=1, l2_squared=None)
    )


# One person's single row, over one group or two of three cells each, beside up to two rows of
# others in a group.
CELLS = 3
OTHERS = [counts for counts in itertools.product(range(3), repeat=CELLS) if sum(counts) <= 2]


def worlds(
    groups: int, relation: Neighbors
) -> Iterator[tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]]:
    """All small neighbors: a row comes, or becomes another one, wherever it was."""
    places: list[tuple[int, int] | None] = [None, *itertools.product(range(groups), range(CELLS))]
    pairs = [(None, place) for place in places[1:]]
    if relation == "change_one":
        pairs += [(a, b) for a, b in itertools.combinations(places[1:], 2)]
    for others in itertools.product(OTHERS, repeat=groups):
        for one, other in pairs:
            yield with_row(others, one), with_row(others, other)


def with_row(
    others: tuple[tuple[int, ...], ...], place: tuple[int, int] | None
) -> tuple[np.ndarray, ...]:
    tables = [np.array(counts, dtype=np.int64) for counts in others]
    if place is not None:
        tables[place[0]][place[1]] += 1
    return tuple(tables)


def loss(
    mechanism: Any,
    one: tuple[np.ndarray, ...],
    other: tuple[np.ndarray, ...],
    known: dict[Any, Any],
) -> float:
    """The largest log-ratio, either way, of what all groups give; they draw independently."""

    def masses(counts: np.ndarray) -> np.ndarray:
        key = counts.tobytes()
        if key not in known:
            mass = mechanism.log_mass(counts)
            known[key] = np.array(
                [mass[each] for each in sorted(mass)] if isinstance(mass, dict) else mass
            )
        return known[key]

    ratios = [masses(a) - masses(b) for a, b in zip(one, other, strict=True)]
    return max(math.fsum(each.max() for each in ratios), math.fsum(-each.min() for each in ratios))


def selections() -> Iterator[Any]:
    for rows, relation, choice in itertools.product(
        (1, 2), RELATIONS, ("permute_and_flip", "exponential")
    ):
        grid: dict[str, Any] = {
            "epsilon": F(1),
            "cells": CELLS,
            "max_rows": rows,
            "neighbors": relation,
        }
        yield Quantile(**grid, q=F(1, 2), choice=choice)
        yield Quantile(**grid, q=F(9, 10), choice=choice)
        yield Quantiles(**grid, quantiles=(F(1, 3), F(2, 3)), slices=1, choice=choice)
    for relation in RELATIONS:
        yield FineQuantile(
            epsilon=F(1), q=F(1, 2), cells=CELLS, max_rows=1, neighbors=relation, reach=9
        )
    for kind, linf, monotone in itertools.product(
        (PermuteAndFlip, ExponentialMechanism), (F(1, 2), F(1), F(2)), (False, True)
    ):
        yield kind(epsilon=F(1), linf=linf, monotone=monotone)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("groups", [1, 2])
def test_what_a_selection_hides_costs_no_more_than_it_claims(
    groups: int, relation: Neighbors
) -> None:
    """On every pair of small neighbors; and of what is refused, something breaks the claim."""
    moved, pairs = (
        PersonRows(most=1, groups=groups, neighbors=relation),
        list(worlds(groups, relation)),
    )
    pairs = pairs[:: 1 if groups == 1 else 7]
    broken = 0
    for mechanism in selections():
        known: dict[Any, Any] = {}
        worst = max(loss(mechanism, one, other, known) for one, other in pairs)
        if mechanism.hides(moved):
            assert worst <= mechanism.loss().epsilon + 1e-9, mechanism
        broken += worst > mechanism.loss().epsilon + 1e-9
    assert broken


def test_more_rows_are_not_hidden() -> None:
    for mechanism in selections():
        assert not mechanism.hides(PersonRows(most=5, groups=1, neighbors="add_remove"))
        assert not mechanism.hides(PersonRows(most=3, groups=2, neighbors="change_one"))


def test_scores_that_move_apart_farther_are_not_hidden() -> None:
    choice = PermuteAndFlip(epsilon=F(1), linf=F(3))
    assert choice.hides_scores(Scores(linf=3, monotone=False))
    assert choice.hides_scores(Scores(linf=6, monotone=True))
    assert not choice.hides_scores(Scores(linf=F(31, 10), monotone=False))
    assert not choice.hides_scores(Scores(linf=7, monotone=True))


@pytest.mark.parametrize("kind", [LaplaceThreshold, GaussianThreshold, TruncatedLaplaceThreshold])
def test_a_threshold_hides_so_many_keys_of_its_relation(kind: Any) -> None:
    spread = "sigma" if kind is GaussianThreshold else "scale"
    made = {
        relation: kind(**{spread: F(5)}, linf=1, max_groups=2, neighbors=relation, delta=F(1, 50))
        for relation in RELATIONS
    }
    for relation, moved in itertools.product(RELATIONS, RELATIONS):
        hidden = relation == moved or relation == "change_one"
        assert made[relation].hides(Keys(most=2, neighbors=moved)) == hidden
        assert made[relation].hides(Keys(most=1, neighbors=moved)) == hidden
        assert not made[relation].hides(Keys(most=3, neighbors=moved))
