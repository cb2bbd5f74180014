"""Draws: the arrays give what integers alone give, every branch decides rightly, and many draws fit
their mass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from discreet.errors import UsageError
from discreet.mechanisms import DiscreteGaussian, DiscreteLaplace
from discreet.noise import (
    Items,
    Stream,
    add_noise,
    discrete_gaussian,
    discrete_laplace,
    exact,
    recording,
)
from discreet.noise.sample import _columns, _trial
from discreet.noise.table import TAIL, THRESHOLD_BITS, AliasTable, Mass, gaussian, laplace
from discreet.noise.tape import WordRequest

FALSE_ALARM = 1e-9
SCALES = [
    Fraction(s)
    for s in ("1/1000", "1/3", "1", "10", "64/5", "1000/3", "1000000000", "1000000000000000")
]


@dataclass(frozen=True)
class Kind:
    draw: Callable[..., NDArray[Any]]
    mass: Callable[[Fraction], Mass]
    mechanism: Callable[[Fraction], Any]

    def __repr__(self) -> str:
        return self.draw.__name__


LAPLACE = Kind(
    discrete_laplace, laplace, lambda scale: DiscreteLaplace(scale=scale, l1=Fraction(1))
)
GAUSSIAN = Kind(
    discrete_gaussian, gaussian, lambda sigma: DiscreteGaussian(sigma=sigma, l2_squared=Fraction(1))
)
KINDS = [LAPLACE, GAUSSIAN]
MASSES = [kind.mass(scale) for kind in KINDS for scale in SCALES]
MIXED = Mass(linear=Fraction(1, 30), quadratic=Fraction(1, 2000))


@pytest.mark.parametrize("mass", [*MASSES, MIXED], ids=str)
def test_arrays_agree_with_integers_alone(mass: Mass) -> None:
    columns, stream, items = _columns(mass), Stream.fresh(), Items.positions(1500)
    words, accepting = stream.words(items, 0), stream.words(items, 1)
    values, refused, unsure = columns.trial(words, accepting if columns.table.width_bits else None)
    assert len(unsure) == 0
    for i, item in enumerate(items.ids):
        exactly = _trial(
            columns.table, stream, 0, item, int(words[i, 0]), int(words[i, 1]), int(accepting[i, 0])
        )
        assert exactly == (None if refused[i] else values[i])


def crafted(
    kind: Kind, scale: Fraction, *words: tuple[int, int, int], more: int | None = None
) -> tuple[list[int], list[int]]:
    """The values, and the items drawn again, if the first trial meets these words: first, second,
    third, for each item.

    With `more`, that is each further word against a column's threshold. Later trials get words of
    their own.
    """

    def craft(asked: WordRequest, drawn: NDArray[np.uint64]) -> NDArray[np.uint64]:
        if asked.path[-1][0] == kind.draw.__name__ and asked.round == 0:
            drawn[:, 0], drawn[:, 1] = [w[0] for w in words], [w[1] for w in words]
        elif asked.path[-1][0] == kind.draw.__name__ and asked.round == 1:
            drawn[:, 0] = [w[2] for w in words]
        elif more is not None and len(asked.path) > 1 and asked.path[-2][0] == "column":
            drawn[:] = more
        return drawn

    with recording(craft=craft) as tape:
        noise = kind.draw(Stream.fresh(), Items.positions(len(words)), scale)
    again = [
        asked.ids[:, 0].tolist()
        for asked in tape.asked
        if asked.round == 2 and len(asked.path) == 1
    ]
    return noise.tolist(), again[0] if again else []


def first(column: int, fraction: int, *, minus: bool = False) -> int:
    return minus << 63 | column << THRESHOLD_BITS | fraction


@pytest.mark.parametrize("kind", KINDS)
def test_a_word_beside_its_threshold_is_decided_by_it(kind: Kind) -> None:
    made = _columns(kind.mass(Fraction(3))).table
    tried = [column for column in made.order if made.stored[column] > 0][::5]
    assert len(tried) > 3
    for column in tried:
        at = made.stored[column]
        for minus in (False, True):
            words = [(first(column, at + step, minus=minus), 0, 0) for step in (-1, 1)]
            values, _ = crafted(kind, Fraction(3), *words)
            assert [abs(value) for value in values] == [column, made.alias[column]]
            assert all(value == 0 or (value < 0) == minus for value in values)


def test_a_word_on_its_threshold_is_decided_by_more_bits_of_both() -> None:
    made = _columns(laplace(Fraction(3))).table
    for column in [column for column in made.order if made.stored[column] > 0][::20]:
        low, _ = made.threshold(column, THRESHOLD_BITS + 64)
        rest = low - (made.stored[column] << 64)  # the next 64 bits of the threshold
        word = (first(column, made.stored[column]), 0, 0)
        assert crafted(LAPLACE, Fraction(3), word, more=rest - 1)[0] == [column]
        assert crafted(LAPLACE, Fraction(3), word, more=rest + 1)[0] == [made.alias[column]]
        kept = crafted(LAPLACE, Fraction(3), *[word] * 400)[0].count(column)
        assert stats.binomtest(kept, 400, rest / 2**64).pvalue > FALSE_ALARM


@pytest.mark.parametrize("scale", [Fraction(1, 1000), Fraction(1)])
def test_a_threshold_of_many_zeros_is_still_compared_to_the_end(scale: Fraction) -> None:
    """The tail's threshold starts with hundreds of zero bits at scale 1, at 1/1000 with too many to
    try them all.
    """
    made = _columns(laplace(scale)).table
    assert made.stored[TAIL] == 0
    assert crafted(LAPLACE, scale, (first(TAIL, 0), 0, 0), more=1)[0] == [made.alias[TAIL]]
    assert crafted(LAPLACE, scale, (first(TAIL, 1), 0, 0))[0] == [made.alias[TAIL]]
    if scale == 1:
        assert crafted(LAPLACE, scale, (first(TAIL, 0, minus=True), 0, 0), more=0)[0][0] <= -TAIL


@pytest.mark.parametrize("minus", [False, True])
@pytest.mark.parametrize(
    ("kind", "scale"),
    [
        (LAPLACE, Fraction(127, 10)),
        (LAPLACE, Fraction(1634)),
        (GAUSSIAN, Fraction(57)),
        (GAUSSIAN, Fraction(913)),
        (GAUSSIAN, Fraction(57 * 2**30)),
    ],
)
def test_the_tail_fits_the_mass_beyond_the_bins(kind: Kind, scale: Fraction, minus: bool) -> None:
    made = _columns(kind.mass(scale)).table
    assert made.stored[TAIL] > 1
    n, start = 2500, TAIL << made.width_bits
    values, again = crafted(kind, scale, *[(first(TAIL, 0, minus=minus), 0, 0)] * n)
    tail = [abs(value) - start for i, value in enumerate(values) if i not in again]
    assert all((values[i] < 0) == minus for i in range(n) if i not in again)
    assert min(tail) >= 0
    # The geometric is the Laplace tail; above the Gaussian's it refuses 1 in 120: never in 2,500
    # with 1e-9.
    assert (len(again) == 0) == (kind is LAPLACE)
    # P(V > start + x | beyond) at the median of the geometric envelope, in float64: the terms are
    # few or smooth.
    slope = float(made.mass.exponent(start + 1) - made.mass.exponent(start))
    grid = np.arange(0, 60, 1 / 512) / slope if slope < 1e-3 else np.arange(int(60 / slope))
    weights = np.exp(
        -np.array(
            [float(made.mass.exponent(start + int(x)) - made.mass.exponent(start)) for x in grid]
        )
    )
    middle = int(0.7 / slope)
    p = weights[grid > middle].sum() / weights.sum()
    hits = sum(x > middle for x in tail)
    assert abs(hits - len(tail) * p) < 6.2 * (len(tail) * p * (1 - p)) ** 0.5 + 0.01 * len(tail)
    assert 0.3 < p < 0.6


@pytest.mark.parametrize(
    ("kind", "scale"), [(LAPLACE, Fraction(10**6, 7)), (GAUSSIAN, Fraction(10**5, 3))]
)
def test_acceptance_is_decided_at_its_boundary(kind: Kind, scale: Fraction) -> None:
    """Words far from the boundary are decided in float64, those near it in integers, the one on it
    by more bits.
    """
    columns = _columns(kind.mass(scale))
    made = columns.table
    column = next(c for c in range(5, 50) if made.stored[c] > 0)
    offset = made.width * 3 // 4
    low, high = made.refusal(column << made.width_bits, offset, 64)
    assert high - low == 1
    value = (column << made.width_bits) + offset
    steps = [-(10**6), -5000, -300, -1, 0, 1, 300, 5000, 10**6]
    words = [(first(column, 0), offset, low + step) for step in steps]
    values, again = crafted(kind, scale, *words)
    assert again[:4] == [0, 1, 2, 3]
    assert set(again) <= {0, 1, 2, 3, 4}
    assert values[5:] == [value] * 4
    as_array = np.array(words, dtype=np.uint64)
    _, refused, unsure = columns.trial(as_array[:, :2], as_array[:, 2:])
    assert set(unsure) >= {3, 4, 5}
    assert not {0, 8} & set(unsure)
    assert refused[[0, 8]].tolist() == [True, False]
    rest = (made.refusal(column << made.width_bits, offset, 128)[0] - (low << 64)) / 2**64
    _, again = crafted(kind, scale, *[(first(column, 0), offset, low)] * 400)
    assert stats.binomtest(len(again), 400, rest).pvalue > FALSE_ALARM


@pytest.mark.parametrize("kind", KINDS)
def test_zero_has_one_sign(kind: Kind) -> None:
    """In wide bins -0 is refused, whatever the word for acceptance; with width 1 both signs of 0
    are 0.
    """
    most = 2**64 - 1
    values, again = crafted(
        kind,
        Fraction(1000),
        (first(0, 0), 0, most),
        (first(0, 0, minus=True), 0, most),
        (first(0, 0), 0, 0),
    )
    assert again == [1]
    assert values[0] == values[2] == 0
    assert crafted(kind, Fraction(3), (first(0, 0), 0, 0), (first(0, 0, minus=True), 0, 0)) == (
        [0, 0],
        [],
    )


def test_a_draw_beyond_64_bits_is_returned_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    scale = Fraction(127, 10)
    monkeypatch.setattr(AliasTable, "tail", lambda self, source: 2**70)
    values, _ = crafted(
        LAPLACE,
        scale,
        (first(7, 0), 0, 0),
        (first(TAIL, 0), 0, 0),
        (first(TAIL, 0, minus=True), 0, 0),
    )
    assert values == [7, 2**70, -(2**70)]


def bins_of(kind: Kind, scale: Fraction, edges: NDArray[Any]) -> NDArray[np.float64]:
    """P(e_i <= Z < e_(i+1)), with -inf before the first edge and +inf after the last."""
    s = float(scale)
    if kind is LAPLACE:
        above = np.where(
            edges > 0,
            np.exp(-edges / s) / (1 + np.exp(-1 / s)),
            1 - np.exp((edges - 1) / s) / (1 + np.exp(-1 / s)),
        )
    elif s > 100:
        above = stats.norm.sf((edges - 0.5) / s)  # off by under 1 / (24 s^2)
    else:
        reach = int(40 * s) + 2
        mass = np.exp([kind.mechanism(scale).log_mass(z) for z in range(-reach, reach + 1)])
        above = np.array([mass[int(e) + reach :].sum() for e in edges])
    return -np.diff(np.concatenate([[1.0], above, [0.0]]))


def p_value(counts: NDArray[Any], probability: NDArray[np.float64]) -> float:
    expected = probability * counts.sum()
    return float(stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), len(counts) - 1))


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(10), Fraction(1000), Fraction(10**9)])
@pytest.mark.parametrize("kind", KINDS)
def test_ten_million_draws_fit_their_mass_and_no_other(kind: Kind, scale: Fraction) -> None:
    width = max(1, int(scale) // 16)
    reach = 3 * max(1, int(scale) // width)
    edges = np.arange(-reach, reach + 2) * width
    stream, counts = Stream.fresh(), np.zeros(len(edges) + 1, dtype=np.int64)
    for part in range(10):
        drawn = kind.draw(stream.derive("part", part), Items.positions(10**6), scale)
        place = np.clip(drawn // width + reach + 1, 0, len(edges))
        counts += np.bincount(place, minlength=len(edges) + 1)
    assert p_value(counts, bins_of(kind, scale, edges)) > FALSE_ALARM
    for wrong in (Fraction(98, 100), Fraction(102, 100)):
        assert p_value(counts, bins_of(kind, scale * wrong, edges)) < FALSE_ALARM


@pytest.mark.parametrize("kind", KINDS)
def test_draws_beyond_64_bits_fit_their_mass(kind: Kind) -> None:
    scale = Fraction(10**25, 3)
    drawn = kind.draw(Stream.fresh(), Items.positions(4000), scale)
    assert all(type(value) is int for value in drawn)
    edges = np.arange(-20, 22) / 8
    counts = np.histogram(
        np.array([float(value / scale) for value in drawn]), np.concatenate([[-1e9], edges, [1e9]])
    )[0]
    unit = Fraction(10**6)
    assert p_value(counts, bins_of(kind, unit, edges * 1e6)) > FALSE_ALARM
    for wrong in (Fraction(2, 3), Fraction(3, 2)):  # rejected but for a chance of 1e-30
        assert p_value(counts, bins_of(kind, unit * wrong, edges * 1e6)) < FALSE_ALARM
    # all digits are drawn, not only the leading ones
    assert len({value % 1000 for value in drawn.tolist()}) > 900


@pytest.mark.parametrize(
    "scale", [Fraction(1, 10**400), Fraction(10**400), Fraction(2**52 * 13), Fraction(2**53 * 13)]
)
@pytest.mark.parametrize("kind", KINDS)
def test_any_scale(kind: Kind, scale: Fraction) -> None:
    drawn = kind.draw(Stream.fresh(), Items.positions(20), scale)
    largest = max(abs(int(value)) for value in drawn)
    assert largest == 0 if scale < 1 else scale / 10**6 < largest < 100 * scale


def test_sums_never_overflow() -> None:
    top = 2**63 - 1
    for values in ([top, -top - 1], [0, 0], [2**70, -5], np.array([2**64 - 1, 0], dtype=np.uint64)):
        for noise in (
            np.array([1, -1]),
            np.array([top, -top]),
            np.array([2**90, -(2**80)], dtype=object),
        ):
            noisy = add_noise(
                np.array(values, dtype=object) if max(values) > 2**64 else values, noise
            )
            assert [int(x) for x in noisy] == [
                int(a) + int(b) for a, b in zip(values, noise, strict=True)
            ]
    assert add_noise([1, 2], np.array([3, 4])).dtype == np.int64
    assert len(add_noise(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))) == 0


@pytest.mark.parametrize(
    "values", [[1.5, 2.0], [True, False], ["1", "2"], [1], [[1, 2]], np.array([1, 2.5], object)]
)
def test_noise_is_added_to_as_many_integers(values: Any) -> None:
    with pytest.raises(UsageError, match="Noise"):
        add_noise(values, np.array([1, 1]))


@pytest.mark.parametrize("scale", [0, -1, Fraction(-1, 3), 1.5, "1", True, None, float("nan")])
@pytest.mark.parametrize("kind", KINDS)
def test_a_scale_is_a_positive_rational(kind: Kind, scale: Any) -> None:
    with pytest.raises(UsageError, match="must be a positive rational number"):
        kind.draw(Stream.fresh(), Items.positions(1), scale)


def test_float_window_is_as_wide_as_claimed() -> None:
    """`_refusal` against enclosures, over the whole range of x: within 8 units of 2^-53, and the
    window is 16.
    """
    for mass in (
        laplace(Fraction(1634)),
        gaussian(Fraction(913)),
        gaussian(Fraction(914)),
        laplace(Fraction(10**9)),
    ):
        columns = _columns(mass)
        bits = columns.table.width_bits
        most = mass.exponent(TAIL << bits) - mass.exponent((TAIL - 1) << bits)
        for x in np.linspace(0, float(most), 200)[1:]:
            low, high = exact.exp_minus(Fraction(float(x)), 200)
            truth = Fraction((1 << 201) - low - high, 2) / 2**136
            got = Fraction(float(columns._refusal(np.array([x]))[0]))
            assert abs(got - truth) < truth * 8 / 2**53
