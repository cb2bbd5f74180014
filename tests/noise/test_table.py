"""The tables are exact: the probabilities that follow from their own thresholds are those of the
mass, by enclosure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from math import exp, log

import pytest
from scipy import stats

from discreet.noise import exact
from discreet.noise.bits import SYSTEM
from discreet.noise.exact import Enclosure
from discreet.noise.table import (
    COLUMNS,
    TAIL,
    THRESHOLD_BITS,
    AliasTable,
    Mass,
    gaussian,
    geometric,
    laplace,
    table,
    thresholds,
)

FALSE_ALARM = 1e-9
BITS = 320
SCALES = [
    Fraction(1, 1000),
    Fraction(1, 3),
    Fraction(1),
    Fraction(10),
    Fraction(64, 5),
    Fraction(1000),
    Fraction(10**9),
]
MASSES = [kind(scale) for kind in (laplace, gaussian) for scale in SCALES]
MIXED = Mass(linear=Fraction(1, 30), quadratic=Fraction(1, 2000))


@pytest.mark.parametrize("mass", MASSES)
def test_too_few_bits_are_found_out_and_more_taken(
    mass: Mass, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table from hardly any guard bits either cannot be told, or is the same."""
    wanted = table(mass)
    for guard in (-64, -60, -48):
        monkeypatch.setattr("discreet.noise.table._guard", lambda *_, guard=guard: guard)
        assert table.__wrapped__(mass) == wanted


def bins(made: AliasTable) -> list[Enclosure]:
    """The probability of each bin, from the thresholds and aliases that draws use: what falls to it
    in all.
    """
    one = 1 << BITS
    thresholds = exact_thresholds(made)
    low, high = [t[0] for t in thresholds], [t[1] for t in thresholds]
    for column, other in enumerate(made.alias):
        if other != column:
            low[other] += one - thresholds[column][1]
            high[other] += one - thresholds[column][0]
    return list(zip(low, high, strict=True))  # in units of 2^-BITS / COLUMNS


def exact_thresholds(made: AliasTable) -> list[Enclosure]:
    return [(low >> 200, -(-high >> 200)) for low, high in thresholds(made, BITS + 200)]


def trial(made: AliasTable, probability: list[Enclosure], z: int) -> Enclosure:
    """The probability, times a constant, that a trial gives z: its bin, its sign, its place in the
    bin, acceptance.
    """
    v, bits = abs(z), BITS
    column = min(v >> made.width_bits, TAIL)
    start = column << made.width_bits
    low, high = probability[column]
    if column == TAIL:  # geometric by the envelope's slope, then accepted
        slope = made.mass.exponent(start + 1) - made.mass.exponent(start)
        step = exact.exp_minus(slope, bits)
        low, high = exact.times((low, high), ((1 << bits) - step[1], (1 << bits) - step[0]), bits)
        low, high = exact.times((low, high), exact.exp_minus(slope * (v - start), bits), bits)
        x = made.mass.exponent(v) - made.mass.exponent(start) - slope * (v - start)
        return exact.times(
            (low << made.width_bits, high << made.width_bits), exact.exp_minus(x, bits), bits
        )
    if made.width_bits == 0 and v == 0:
        low, high = 2 * low, 2 * high  # both signs of the bin give 0
    elif made.width_bits:
        refusal = made.refusal(start, v - start, bits)
        low, high = exact.times(
            (low, high), ((1 << bits) - refusal[1], (1 << bits) - refusal[0]), bits
        )
    return low, high


@pytest.mark.parametrize("mass", [*MASSES, MIXED], ids=str)
def test_each_integer_has_its_mass(mass: Mass) -> None:
    """P(trial gives z) = P(trial gives 0) * mass(z) / mass(0): for |z| <= 50, at bins' edges, and
    in the tail.
    """
    made = table(mass)
    probability = bins(made)
    zero = trial(made, probability, 0)
    for z in sorted(interesting(made)):
        ratio = exact.over(trial(made, probability, z), zero, BITS)
        low, high = exact.exp_minus(mass.exponent(abs(z)), BITS)
        assert max(ratio[0], low) <= min(ratio[1], high), z
        assert ratio[1] - ratio[0] < 1 << 80, z  # so they agree to 240 bits


def interesting(made: AliasTable) -> Iterator[int]:
    yield from range(-50, 51)
    for column in (1, 2, 100, TAIL - 1, TAIL):
        start = column << made.width_bits
        yield from (start - 1, start, start + 1, start + made.width // 2, -start)


@pytest.mark.parametrize("mass", [*MASSES, MIXED], ids=str)
def test_stored_thresholds_are_the_first_bits_of_the_true_ones(mass: Mass) -> None:
    made = table(mass)
    spare = BITS - THRESHOLD_BITS
    for column, (low, high) in enumerate(exact_thresholds(made)):
        assert 0 <= low <= high <= 1 << BITS
        assert low >> spare == made.stored[column]
        assert column not in made.order or high >> spare == made.stored[column]
    last = set(range(COLUMNS)) - set(made.order)
    assert [made.stored[column] for column in last] == [1 << THRESHOLD_BITS]


@pytest.mark.parametrize("mass", MASSES, ids=str)
def test_bins_are_narrow_and_the_tail_is_rare(mass: Mass) -> None:
    made = table(mass)
    probability = bins(made)
    assert probability[TAIL][1] < COLUMNS << (BITS - 56)
    assert (
        sum(high for _, high in probability)
        >= COLUMNS << BITS
        >= sum(low for low, _ in probability)
    )
    if made.width_bits:
        last = mass.exponent(TAIL << made.width_bits) - mass.exponent((TAIL - 1) << made.width_bits)
        assert last < Fraction(63, 100)  # what the proof of the float window takes as given
        assert mass.exponent(TAIL << (made.width_bits - 1)) < 40


def test_threshold_to_any_precision_narrows_the_same_number() -> None:
    made = table(laplace(Fraction(10)))
    column = made.order[0]
    coarse, fine = made.threshold(column, 100), made.threshold(column, 700)
    assert coarse[0] <= fine[0] >> 600 <= coarse[1]
    assert fine[1] - fine[0] <= 2


@pytest.mark.parametrize("slope", [Fraction(1, 10**9), Fraction(1, 3), Fraction(1), Fraction(7, 2)])
def test_geometric(slope: Fraction) -> None:
    """P(G >= g) = exp(-slope g), at the median and beyond, and not that of a steeper slope."""
    n = 3000
    drawn = [geometric(SYSTEM, slope) for _ in range(n)]
    for at in (int(log(2) / slope), int(2 / slope) + 1):
        p = float(exact.exp_minus(slope * at, 64)[0]) / 2**64
        wrong = float(exact.exp_minus(slope * at * Fraction(3, 2) + slope, 64)[0]) / 2**64
        hits = sum(g >= at for g in drawn)
        assert stats.binomtest(hits, n, p).pvalue > FALSE_ALARM
        assert at == 0 or stats.binomtest(hits, n, wrong).pvalue < FALSE_ALARM


def test_tail_starts_where_the_bins_end_and_follows_the_mass() -> None:
    """Beyond the bins of a Gaussian: refusals and all, the ratio of neighbors is that of their
    masses.
    """
    # a steep one: the first number beyond is nearly all there is
    made = table(gaussian(Fraction(1, 2)))
    drawn = Counter(made.tail(SYSTEM) for _ in range(300))
    assert set(drawn) == {TAIL}
    wide = table(laplace(Fraction(1)))
    drawn = Counter(wide.tail(SYSTEM) for _ in range(3000))
    assert None not in drawn
    assert min(drawn) == TAIL
    assert stats.binomtest(drawn[TAIL], 3000, 1 - exp(-1)).pvalue > FALSE_ALARM
