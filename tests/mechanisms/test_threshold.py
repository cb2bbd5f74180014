"""Unknown keys: every small table and every neighbor by brute force; thresholds exactly where δ
allows them.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from by_definition import delta, epsilon, given, product, rho
from discreet.mechanisms import GaussianThreshold, LaplaceThreshold, TruncatedLaplaceThreshold
from discreet.noise import Items, Stream, recording
from mechanism_cases import with_coins

F = Fraction
THREE = (
    LaplaceThreshold(scale=F(2), linf=1, max_groups=2, neighbors="add_remove", delta=F(1, 20)),
    TruncatedLaplaceThreshold(
        scale=F(2), linf=1, max_groups=2, neighbors="add_remove", delta=F(1, 20)
    ),
    GaussianThreshold(sigma=F(2), linf=1, max_groups=2, neighbors="add_remove", delta=F(1, 20)),
)
KEYS = "abc"


def key_distribution(mechanism: Any, value: int, reach: int = 45) -> dict[Any, float]:
    """Of one key with so many persons; one with none does not exist and never leaves."""
    if value == 0:
        return {None: 0.0}
    shown = range(mechanism.threshold, mechanism.threshold + reach)
    masses = {None: mechanism.log_mass(value, None)} | {
        y: mechanism.log_mass(value, y) for y in shown
    }
    return {outcome: log_mass for outcome, log_mass in masses.items() if log_mass > -math.inf}


def neighboring_counts(neighbors: str) -> set[tuple[tuple[int, int], ...]]:
    """For each table of up to two persons with up to two of three keys each, and each neighbor: the
    changed keys only.

    Sorted: keys are independent and alike, and one that does not change costs nothing.
    """
    touches = [set(keys) for n in range(3) for keys in itertools.combinations(KEYS, n)]
    pairs = set()
    for others in itertools.combinations_with_replacement(touches, 2):
        for before, after in itertools.product(touches, repeat=2):
            if neighbors == "add_remove" and before and after:
                continue
            counts = [
                [Counter(k for keys in (*others, one) for k in keys)[k] for k in KEYS]
                for one in (before, after)
            ]
            pairs.add(
                tuple(sorted(pair for pair in zip(*counts, strict=True) if pair[0] != pair[1]))
            )
    return pairs


@pytest.mark.parametrize("mechanism", THREE, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("neighbors", ["add_remove", "change_one"])
def test_every_small_table_and_every_neighbor(mechanism: Any, neighbors: str) -> None:
    mechanism = dataclasses.replace(mechanism, neighbors=neighbors)
    loss = mechanism.loss()
    attained = 0.0
    for pairs in neighboring_counts(neighbors):
        if not pairs or (len(pairs) == 3 and loss.epsilon is None):
            continue
        one, other = (
            product(*(key_distribution(mechanism, pair[side], 25) for pair in pairs))
            for side in (0, 1)
        )
        if loss.epsilon is not None:
            found = delta(one, other, float(loss.epsilon) * (1 + 1e-12))
            attained = max(attained, found)
            assert found <= loss.delta
        if isinstance(mechanism, TruncatedLaplaceThreshold):
            one, other = (
                with_coins(mechanism, [pair[side] or None for pair in pairs]) for side in (0, 1)
            )
        common = [outcome for outcome in one if outcome in other]
        (one, on_one), (other, on_other) = given(one, common), given(other, common)
        # what lies beyond the numbers looked at
        assert min(on_one, on_other) >= 1 - loss.delta - F(1, 10**4)
        assert rho(one, other, orders=(1, 1.5, 2, 4)) <= float(loss.rho) * (1 + 1e-3)
    if loss.epsilon is not None:
        assert attained > 0.3 * loss.delta
        if neighbors == "add_remove":
            assert attained > 0.99 * loss.delta  # the coin leaves almost nothing of it unused


@pytest.mark.parametrize("mechanism", THREE, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("max_groups", [1, 3, 50])
@pytest.mark.parametrize("d", [F(1, 3), F(1, 10**3), F(1, 10**9), F(1, 10**15)])
def test_a_threshold_lower_now_and_then_spends_more_than_delta(
    mechanism: Any, max_groups: int, d: Fraction
) -> None:
    """With 60 digits of mpmath, which shares nothing with the enclosures."""
    mechanism = dataclasses.replace(mechanism, max_groups=max_groups, delta=d, linf=2)
    allowed = mpmath.mpf(d.numerator) / d.denominator
    assert chance_to_be_shown(mechanism, mechanism.later) <= allowed
    if mechanism.later == 0:
        assert mechanism.threshold == 3  # the lowest there is
    else:
        assert chance_to_be_shown(mechanism, mechanism.later - F(1, 256)) > allowed


def chance_to_be_shown(mechanism: Any, later: Fraction) -> Any:
    """1 - (1 - P(linf + Z >= threshold))^max_groups, term by term; truncated noise ends just below
    the threshold.
    """
    with mpmath.workdps(60):
        if hasattr(mechanism, "sigma"):
            width = 2 * mpmath.mpf(mechanism.sigma.numerator) ** 2
            weight = lambda z: mpmath.exp(-(mpmath.mpf(z) ** 2) / width)  # noqa: E731
        else:
            scale = mechanism.scale.numerator
            weight = lambda z: mpmath.exp(-abs(mpmath.mpf(z)) / scale)  # noqa: E731
        p = 0
        for threshold, share in (
            (mechanism.threshold, 1 - later),
            (mechanism.threshold + 1, later),
        ):
            end = threshold - 1 if isinstance(mechanism, TruncatedLaplaceThreshold) else 400
            masses = [weight(z) for z in range(end + 1)]
            shown = mpmath.fsum(masses[threshold - mechanism.linf :]) / (
                2 * mpmath.fsum(masses) - 1
            )
            p += shown * share.numerator / share.denominator
        return 1 - (1 - p) ** mechanism.max_groups


def test_truncated_noise_before_the_threshold() -> None:
    """The proof's own event: on the overlap of two truncated noises the ratio is pure, and it has
    the same chance.
    """
    mechanism = TruncatedLaplaceThreshold(
        scale=F(3), linf=2, max_groups=1, neighbors="add_remove", delta=F(1, 100)
    )
    assert 0 < mechanism.later < 1
    ends, on = zip(
        *(overlap(mechanism, reach) for reach in (mechanism.reach, mechanism.reach + 1)),
        strict=True,
    )
    assert ends == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    later = float(mechanism.later)
    assert (
        0.99 * mechanism.delta < (1 - later) * (1 - on[0]) + later * (1 - on[1]) <= mechanism.delta
    )


def overlap(mechanism: Any, reach: int) -> tuple[float, float]:
    """Of noise within this reach and the same shifted by linf: the ratio on the overlap, and its
    chance.
    """
    noise = {z: math.log(mechanism._noise_mass(z, reach)) for z in range(-reach, reach + 1)}
    shifted = {z + 2: log_mass for z, log_mass in noise.items()}
    common = [z for z in noise if z in shifted]
    (one, on_one), (other, on_other) = given(noise, common), given(shifted, common)
    assert on_one == pytest.approx(on_other)
    assert rho(one, other) <= float(mechanism.loss().rho)
    return epsilon(one, other), on_one


def test_truncation_keeps_more_keys() -> None:
    """At ε 0.1, δ 1e-6: half of the keys of 109 persons, where plain Laplace needs 133; nobody can
    do better.
    """
    shared = {
        "scale": F(10),
        "linf": 1,
        "max_groups": 1,
        "neighbors": "add_remove",
        "delta": F(1, 10**6),
    }
    plain, truncated = LaplaceThreshold(**shared), TruncatedLaplaceThreshold(**shared)
    assert plain.loss().epsilon == truncated.loss().epsilon == F(1, 10)
    kept = {
        mechanism: next(
            n for n in itertools.count(1) if math.exp(mechanism.log_mass(n, None)) < 0.5
        )
        for mechanism in (plain, truncated)
    }
    assert kept == {plain: 133, truncated: 109}
    assert optimal(109, 0.1, 1e-6) >= 0.5 > optimal(108, 0.1, 1e-6)
    for n in (20, 80, 105, 112, 150):
        chance = 1 - math.exp(truncated.log_mass(n, None))
        assert 0.998 * optimal(n, 0.1, 1e-6) <= chance <= optimal(n, 0.1, 1e-6) * (1 + 1e-9)


def optimal(n: int, at: float, spent: float) -> float:
    """The best chance to show a key of n persons, by the recursion of Desfontaines et al."""
    chance = 0.0
    for _ in range(n):
        chance = min(math.exp(at) * chance + spent, 1 - math.exp(-at) * (1 - chance - spent), 1.0)
    return chance


@pytest.mark.parametrize("mechanism", THREE, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("confidence", [F(1, 2), F(19, 20), F(999, 1000)])
def test_margins_cover_exactly(mechanism: Any, confidence: Fraction) -> None:
    mechanism = dataclasses.replace(mechanism, delta=F(1, 10**6))
    value = 10_000  # far above the threshold: all the noise is seen

    def coverage(half_width: int) -> float:
        return math.fsum(
            math.exp(mechanism.log_mass(value, value + z))
            for z in range(-half_width, half_width + 1)
        )

    margin = mechanism.margin(confidence)
    assert coverage(margin) >= confidence > coverage(margin - 1)


@pytest.mark.parametrize("mechanism", THREE, ids=lambda m: type(m).__name__)
def test_what_leaves_is_what_was_tested(mechanism: Any) -> None:
    values = np.arange(1, 2001)
    kept, noisy = mechanism.release(values, Stream.fresh(), Items.positions(2000))
    assert (noisy >= mechanism.threshold).all()
    assert 1900 < len(kept) < 2000
    assert abs(noisy - values[kept]).max() < 90


@pytest.mark.parametrize("mechanism", THREE, ids=lambda m: type(m).__name__)
def test_the_keys_of_others_get_the_same_noise(mechanism: Any) -> None:
    """S14 for unknown keys: one person more brings a key; what leaves of all other keys is
    unchanged, draw by draw.
    """
    keys = [("x", 1), ("y", None), ("z", 3)]
    with recording() as tape:
        stream = Stream.fresh()
        kept, noisy = mechanism.release(np.array([90, 91, 92]), stream, Items.keys(keys, stream))
    more = [("new", 0), *keys[::-1]]
    with recording(replay=tape) as beside:
        stream = Stream.fresh()
        others, values = mechanism.release(
            np.array([1, 92, 91, 90]), stream, Items.keys(more, stream)
        )
    shown = {more[i]: value for i, value in zip(others, values, strict=True)}
    assert {keys[i]: value for i, value in zip(kept, noisy, strict=True)} == {
        k: shown[k] for k in keys
    }
    # Truncated noise is drawn again while a key's is out of reach: the newcomer's may need more
    # trials, or fewer.
    drawn, drawn_beside = (
        [(d.path, d.sampler, d.scale) for d in each.draws] for each in (tape, beside)
    )
    assert all(one == other for one, other in zip(drawn, drawn_beside, strict=False))
    assert drawn == drawn_beside or type(mechanism) is TruncatedLaplaceThreshold


def test_truncated_noise_never_goes_out_of_reach() -> None:
    mechanism = TruncatedLaplaceThreshold(
        scale=F(5), linf=1, max_groups=1, neighbors="add_remove", delta=F(1, 3)
    )
    assert mechanism.reach == 1  # two thirds of the draws are out of reach, and drawn again
    kept, noisy = mechanism.release(np.full(100_000, 100), Stream.fresh(), Items.positions(100_000))
    assert len(kept) == 100_000
    assert set(np.unique(noisy)) == {99, 100, 101}
    thirds = np.bincount(noisy - 99) / 100_000
    assert thirds[1] == pytest.approx(mechanism.coverage(0), abs=0.011)
