"""Many respondents, large domains: transforms against brute force, packed bits, the prefix tree,
the square wave.
"""

from __future__ import annotations

import itertools
import string
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats
from small_survey import SURE

from discreet.local.collector.distribution import invert, likeliest
from discreet.local.collector.estimate import column_sums, norm_sub
from discreet.local.collector.many import _PLACES, Draws
from discreet.local.collector.prefix_tree import dots as packed_dots
from discreet.local.collector.prefix_tree import trace_masks
from discreet.local.collector.transform import dots, supports, walsh_hadamard
from discreet.local.protocols import field as finite
from discreet.local.protocols.hadamard import HadamardResponse
from discreet.local.protocols.hashing import LocalHashing
from discreet.local.protocols.heavy_hitters import STRIDE, HeavyHitters
from discreet.local.protocols.response import KaryResponse
from discreet.local.protocols.square_wave import SquareWave
from discreet.local.protocols.subset import SubsetSelection
from discreet.local.protocols.unary import OptimizedUnary, SymmetricUnary
from discreet.noise import recording
from discreet.policy.domain import Decimals

FALSE_ALARM = 1e-9


def uniform(n: int, size: int) -> np.ndarray:
    """Numbers to test with; nothing depends on which they are."""
    return np.random.default_rng().integers(0, size, n)


# Fields
# ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("g", [g for g in finite.sizes() if g <= 32] + [64, 128, 256])
def test_a_field_is_a_field(g: int) -> None:
    some = range(g) if g <= 32 else [0, 1, 2, 3, g // 2, g - 2, g - 1]
    for a, b, c in (
        itertools.product(some, repeat=3) if g <= 16 else itertools.product([1, 2, g - 1], repeat=3)
    ):
        assert finite.times(a, finite.add(b, c, g), g) == finite.add(
            finite.times(a, b, g), finite.times(a, c, g), g
        )
        assert finite.times(a, finite.times(b, c, g), g) == finite.times(
            finite.times(a, b, g), c, g
        )
    for a in some:
        assert sorted(finite.add(a, b, g) for b in range(g)) == list(range(g))
        if a:
            # so a has an inverse
            assert sorted(finite.times(a, b, g) for b in range(g)) == list(range(g))


@pytest.mark.parametrize(("g", "d"), [(2, 8), (3, 9), (4, 16), (5, 20), (8, 9)])
def test_any_two_values_collide_under_the_same_share_of_functions(g: int, d: int) -> None:
    k = finite.length(d, g)
    for v, w in itertools.combinations(range(d), 2):
        together = sum(finite.dot(a, v, g) == finite.dot(a, w, g) for a in range(1, g**k))
        assert together == g ** (k - 1) - 1


@pytest.mark.parametrize("g", [2, 4, 16])
def test_traces_give_inner_products(g: int) -> None:
    element = g.bit_length() - 1
    for a, v in itertools.product(range(g), repeat=2):
        assert (finite.mask(a, g) & v).bit_count() % 2 == finite.trace(finite.times(a, v, g), g)
    a, v = (uniform(200, 1 << 60).astype(np.uint64).reshape(100, 2) for _ in range(2))
    found = packed_dots(trace_masks(a, g), v, g)
    for i in range(100):
        whole = [int.from_bytes(each[i].tobytes(), "little") for each in (a, v)]
        assert found[i] == finite.dot(*whole, g)
    assert 16 % element == 0


# Transforms
# --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("g", [2, 3, 4, 5, 8])
def test_supports_are_those_counted_one_by_one(g: int) -> None:
    k = 3 if g < 5 else 2
    counts = uniform((g**k - 1) * g, 10)
    found = supports(counts, g)
    for v in range(g**k):
        assert found[v] == sum(counts[(a - 1) * g + finite.dot(a, v, g)] for a in range(1, g**k))
    a, v = uniform(300, g**k), uniform(300, g**k)
    assert dots(a, v, g).tolist() == [
        finite.dot(int(x), int(y), g) for x, y in zip(a, v, strict=True)
    ]


@pytest.mark.parametrize("size", [2, 4, 8, 32, 64])
def test_walsh_hadamard(size: int) -> None:
    values = uniform(size, 100)
    expected = [
        sum(int(x) * (-1) ** (j & v).bit_count() for j, x in enumerate(values)) for v in range(size)
    ]
    assert walsh_hadamard(values).tolist() == expected


@pytest.mark.parametrize("d", [1, 7, 64, 65, 200])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 100, 5000])
def test_column_sums(n: int, d: int) -> None:
    shown = uniform(n * d, 2).reshape(n, d)
    padded = np.zeros((n, 64 * -(-d // 64)), dtype=np.uint8)
    padded[:, :d] = shown
    packed = np.packbits(padded, axis=1, bitorder="little").view(np.uint64)
    found = column_sums(packed, d)
    assert found.n == n
    assert found.counts.tolist() == shown.sum(axis=0).tolist()


# Packed coins
# ------------------------------------------------------------------------------------------------------


def test_packed_coins_compare_whole_numbers_with_the_threshold() -> None:
    """Words are put in place of the random ones, so that the coins' 64-bit numbers are known; many
    are near to it.
    """
    threshold = 0x44D9_0123_4567_89AB
    numbers = [
        threshold - 1,
        threshold,
        threshold + 1,
        0,
        (1 << 64) - 1,
        threshold ^ 1,
        threshold - (1 << 51),
    ]
    numbers += [
        (threshold & ~((1 << 51) - 1)) | int(x) for x in uniform(64 - len(numbers), 1 << 51)
    ]
    rest = []

    def craft(asked: Any, words: Any) -> Any:
        if asked.path[-1][0] == "rest":
            # The undecided, in the order of their lanes: bits beyond the first _PLACES, in the high
            # end of a word.
            undecided = [x for x in numbers if x >> (64 - _PLACES) == threshold >> (64 - _PLACES)]
            rest.append(len(undecided))
            words[:, 0] = [(x << _PLACES) & ((1 << 64) - 1) for x in undecided]
            return words
        plane = sum(
            (1 - (number >> (63 - asked.round) & 1)) << lane for lane, number in enumerate(numbers)
        )
        words[:, 0] = plane
        return words

    with recording(craft=craft):
        found = int(Draws(1).packed_coins(1, threshold)[0, 0])
    assert rest
    assert rest[0] > 50
    assert [found >> lane & 1 for lane in range(64)] == [
        int(number < threshold) for number in numbers
    ]


@pytest.mark.parametrize("protocol", [OptimizedUnary, SymmetricUnary])
def test_unary_bits_are_set_as_often_as_they_should_be_and_independently(protocol: Any) -> None:
    made = protocol(domain=130, epsilon=1)
    n = 20_000
    counts = made.tally(made.encode(np.full(n, 70))).counts
    p, q = float(made.support.p), float(made.support.q)
    expected = np.full(130, q)
    expected[70] = p
    z = (counts - n * expected) / np.sqrt(n * expected * (1 - expected))
    assert abs(z).max() < 7.5  # the largest of 130
    assert stats.chi2.sf((z**2).sum(), 130) > FALSE_ALARM
    # nor more even than chance: coins are not shared
    assert stats.chi2.cdf((z**2).sum(), 130) > FALSE_ALARM


# Whole protocols
# ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [KaryResponse, OptimizedUnary, SymmetricUnary, LocalHashing, SubsetSelection, HadamardResponse],
)
@pytest.mark.parametrize("epsilon", [1, 4])
def test_a_large_domain_is_estimated_within_its_margins(kind: Any, epsilon: int) -> None:
    d, n = 300, 60_000
    protocol = kind(domain=d, epsilon=epsilon)
    values = np.minimum(uniform(n, d), uniform(n, d)) if kind is not KaryResponse else uniform(n, d)
    truth = np.bincount(values, minlength=d) / n
    tally = protocol.tally(protocol.encode(values))
    found = protocol.read(tally, confidence=SURE)
    assert (abs(found.estimates - truth) <= found.margins).all()
    covered = (abs(found.estimates - truth) <= protocol.read(tally).margins).mean()
    assert covered > 0.8  # of 300 correlated intervals of 95 %
    # The error is that of the formula, and not twice that or half.
    error = ((found.estimates - truth) ** 2).mean()
    formula = float(protocol.variance(n=n, frequency=Fraction(1, d)))
    assert 0.5 < error / formula < 1.8
    assert found.consistent.min() >= 0
    assert found.consistent.sum() == pytest.approx(1)
    assert ((found.consistent - truth) ** 2).mean() <= error


def test_norm_sub_is_the_nearest_distribution() -> None:
    for _ in range(20):
        estimates = (uniform(6, 2001) - 700) / 1000
        found = norm_sub(estimates)
        assert found.min() >= 0
        assert found.sum() == pytest.approx(1)
        shift = (estimates - found)[found > 0]
        assert np.ptp(shift) < 1e-9  # one number is subtracted from all that stay
        assert (estimates[found == 0] <= shift[0] + 1e-9).all()


# The square wave
# ---------------------------------------------------------------------------------------------------

HALF_HOURS = Decimals(lo=Fraction(0), hi=Fraction(24), step=Fraction(1, 2))


def test_the_likeliest_distribution_is_near_the_truth_and_beats_inversion() -> None:
    wave, n = SquareWave(domain=HALF_HOURS, epsilon=2), 50_000
    errors = np.zeros(2)
    for _ in range(12):  # in one of some hundreds inversion is the nearer one
        hours = np.array(["6", "7", "7.5", "8", "8", "9"], dtype=float)[uniform(n, 6)]
        truth = np.bincount((hours * 2).astype(int), minlength=49) / n
        found = wave.estimate(wave.encode(hours))
        assert abs(np.cumsum(found.consistent - truth)).max() < 0.1  # Kolmogorov's distance
        assert found.consistent.sum() == pytest.approx(1)
        errors += [((each - truth) ** 2).sum() for each in (found.consistent, found.estimates)]
    assert errors[0] < errors[1]  # which is several times as large


def test_smoothing_suits_a_smooth_density() -> None:
    grid = Decimals(lo=Fraction(0), hi=Fraction(1), step=Fraction(1, 200))
    wave, n = SquareWave(domain=grid, epsilon=1), 40_000
    steps = (uniform(n, 101) + uniform(n, 101)) // 1
    truth = np.bincount(steps, minlength=201) / n
    counts = wave.tally(wave.encode(steps / 200)).counts
    errors = [
        abs(likeliest(wave.window, counts, smooth=smooth, patience=3e-3) - truth).sum()
        for smooth in (True, False)
    ]
    assert errors[0] < errors[1]


def test_intervals_of_a_distribution_cover() -> None:
    """Margins of least squares, over many collections of reports."""
    grid = Decimals(lo=Fraction(0), hi=Fraction(8), step=Fraction(1))
    wave, n, runs = SquareWave(domain=grid, epsilon=1), 2000, 400
    values = np.repeat([2.0, 3.0, 3.0, 7.0], n // 4)
    truth = np.bincount(values.astype(int), minlength=9) / n
    reports = wave.encode(np.tile(values, runs)).reshape(runs, n)
    inside = []
    for each in reports:
        estimates, margins = invert(wave.window, wave.tally(each), confidence=0.95)
        inside.append(abs(estimates - truth) <= margins)
    covered = int(np.array(inside).sum(axis=0).min())
    # The least covered of nine values: 95 % would be missed by this much once in 10^9 times nine.
    assert stats.binom.cdf(covered, runs, 0.945) > FALSE_ALARM


# Heavy hitters
# -----------------------------------------------------------------------------------------------------


def words(n: int) -> list[str]:
    letters = uniform(8 * n, 26).reshape(n, 8)
    return [
        "".join(string.ascii_lowercase[i] for i in row[: 3 + k % 6])
        for k, row in enumerate(letters)
    ]


def test_heavy_hitters_are_found_and_nothing_else() -> None:
    """Every string that is frequent enough by `finds`; a level lets another through once in a
    hundred runs.
    """
    n, some = 120_000, words(3000)
    frequent = {"firefox": 0.2, "chrome": 0.15, "é": 0.1}
    protocol = HeavyHitters(length=8, epsilon=4)
    assert protocol.finds(n=n) < 0.1
    many = [name for name, share in frequent.items() for _ in range(int(share * n))]
    many += [some[i % len(some)] for i in range(n - len(many))]
    found = protocol.read(protocol.tally(protocol.encode(many)), confidence=SURE)
    estimates = dict(
        zip(found.values, zip(found.estimates, found.margins, strict=True), strict=True)
    )
    for name, share in frequent.items():
        estimate, margin = estimates[name]
        assert abs(estimate - share) <= margin
    assert len(found.values) <= 8


def test_items_of_sets_are_found_too() -> None:
    n = 100_000
    protocol = HeavyHitters(length=4, alphabet=string.ascii_lowercase, items=3, epsilon=4)
    sets = [{"tea", "milk"} if i % 2 else {"tea", "rum", "cola"} for i in range(n)]
    found = protocol.read(protocol.tally(protocol.encode(sets)), confidence=SURE)
    truth = {"tea": 1.0, "milk": 0.5, "rum": 0.5, "cola": 0.5}
    for name, share in truth.items():
        place = found.values.index(name)
        assert abs(found.estimates[place] - share) <= found.margins[place]


@pytest.mark.parametrize("length", [1, 2, 3, 7, 16, 33, 64])
def test_codes_and_texts(length: int) -> None:
    for alphabet, texts in (
        (None, ["", "a", "é" * (length // 2)]),
        ("abc", ["", "a", "c" * length, "b" * (length - 1)]),
    ):
        protocol = HeavyHitters(length=length, alphabet=alphabet, epsilon=1)
        assert protocol.levels == -(-protocol.code_bits // STRIDE)
        for text in texts:
            assert protocol.text(protocol.code(text), protocol.code_bits) == text
            for level in range(protocol.levels):  # every prefix of a string could begin one
                prefix = protocol.prefix(protocol.code(text), level)
                assert (
                    protocol.text(prefix, min(STRIDE * (level + 1), protocol.code_bits)) is not None
                )


@pytest.mark.parametrize("wrong", ["123456789", "x\0", ["a", "b"]])
def test_strings_that_cannot_be_answers_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"not an answer to|at most 1 items"):
        HeavyHitters(length=8, epsilon=1).respond(wrong)
