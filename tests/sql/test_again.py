"""Columns made of several noisy rows: which have a margin, and that what has none says so (S11)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from coverage_kinds import curator
from discreet.mechanisms import DiscreteGaussian, DiscreteLaplace
from discreet.mechanisms.tails.simulate import straight_half_widths
from discreet.sql.after.widths.kinds import Kind

T = "WITH t AS (SELECT g, sex, COUNT(*) AS n, AVG(age) AS m, MEDIAN(age) AS q FROM people GROUP BY g, sex)"
CASES = {
    "g + 1": Kind.PUBLIC,
    "CASE sex WHEN 'F' THEN 1 ELSE 2 END": Kind.PUBLIC,
    "ROW_NUMBER() OVER (ORDER BY g, sex)": Kind.PUBLIC,
    "COUNT(*) OVER ()": Kind.PUBLIC,
    "n + g": Kind.STRAIGHT,
    "-n * 3 / 7": Kind.STRAIGHT,
    "n - LAG(n) OVER (ORDER BY g, sex)": Kind.STRAIGHT,
    "COALESCE(LAG(n) OVER (ORDER BY g, sex), 0)": Kind.STRAIGHT,
    "SUM(n) OVER (PARTITION BY sex ORDER BY g)": Kind.STRAIGHT,
    "CASE WHEN sex = 'F' THEN n ELSE 0 END": Kind.STRAIGHT,
    "n - (SELECT AVG(n) FROM t)": Kind.STRAIGHT,
    "ROUND(n / 3, 1)": Kind.STRAIGHT,
    "m": Kind.RATIONAL,
    "n * n": Kind.RATIONAL,
    "100.0 * n / SUM(n) OVER ()": Kind.RATIONAL,
    "n / (SELECT SUM(n) FROM t)": Kind.RATIONAL,
    "LN(n)": Kind.SMOOTH,
    "CASE WHEN n = 0 THEN NULL ELSE m / n END": Kind.RATIONAL,
    "q": Kind.UNKNOWN,
    "n + q": Kind.UNKNOWN,
    "RANK() OVER (ORDER BY n)": Kind.UNKNOWN,
    "MAX(n) OVER ()": Kind.UNKNOWN,
    "(n - LAG(n) OVER (ORDER BY g, sex)) * 2": Kind.STRAIGHT,
    "SUM((n)) OVER (ORDER BY g, sex)": Kind.STRAIGHT,
    "100.0 * (n - LAG(n) OVER (ORDER BY g, sex)) / LAG(n) OVER (ORDER BY g, sex)": Kind.RATIONAL,
    "(ROUND(n / 3)) * 2": Kind.UNKNOWN,
    "SUM((GREATEST(n, 0))) OVER ()": Kind.UNKNOWN,
    "SUM(n) OVER (ORDER BY n)": Kind.UNKNOWN,
    "POWER(n, 2)": Kind.RATIONAL,
    "POWER(n, 0.5)": Kind.UNKNOWN,
    "POWER(g, 0.5)": Kind.PUBLIC,
    "SUM(m) OVER ()": Kind.SUMMED,
    "SUM(n * n) OVER ()": Kind.SUMMED,
    "AVG(n / m) OVER (ORDER BY g, sex)": Kind.SUMMED,
    "SUM(CASE WHEN n > 0 THEN m / n END) OVER ()": Kind.SUMMED,
    "SUM(m * n) OVER () / SUM(n) OVER ()": Kind.SUMMED,
    "SUM(CASE WHEN n > 0 THEN m END) OVER ()": Kind.UNKNOWN,
    "SUM(SQRT(n)) OVER ()": Kind.UNKNOWN,
    "SQRT(SUM(n * n) OVER ())": Kind.UNKNOWN,
    "LN(SUM(m) OVER ())": Kind.UNKNOWN,
    "SUM(LN(n)) OVER ()": Kind.UNKNOWN,
    "SUM(GREATEST(n, 0)) OVER ()": Kind.UNKNOWN,
    "SUM(ROUND(n / 3)) OVER ()": Kind.UNKNOWN,
    "CASE WHEN n > 5 THEN n ELSE 0 END": Kind.UNKNOWN,
    "n - (SELECT MAX(n) FROM t)": Kind.UNKNOWN,
    "n - (SELECT COUNT(*) FROM t WHERE n > 5)": Kind.UNKNOWN,
    "n - (SELECT SUM(n) FROM t WHERE n > 5)": Kind.UNKNOWN,
}


@pytest.fixture(scope="module")
def made() -> Any:
    return curator("sum")[0]


def kinds(made: Any, sql: str) -> tuple[Kind, ...]:
    """The kinds of all columns; `m` is there so that some column always has none."""
    from discreet.sql import analyze

    found: list[tuple[Kind, ...]] = []

    def spied(*arguments: Any) -> Any:
        answer = again(*arguments)
        found.append(answer[0])
        return answer

    again = analyze.again
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(analyze, "again", spied)
        made._view.plans.clear()
        made._view.plan(sql)
    return found[-1]


@pytest.mark.parametrize("expression", CASES)
def test_how_a_column_depends_on_noise(made: Any, expression: str) -> None:
    assert kinds(made, f"{T} SELECT g, sex, {expression} AS x FROM t") == (0, 0, CASES[expression])


def test_rows_that_noise_chooses_have_no_known_sum(made: Any) -> None:
    filtered = "SELECT SUM(n) AS x FROM (SELECT g, COUNT(*) AS n FROM people GROUP BY g HAVING COUNT(*) > 50) AS t"
    assert kinds(made, filtered) == (Kind.UNKNOWN,)
    survivors = (
        "SELECT SUM(n) AS x FROM (SELECT word, COUNT(*) AS n FROM people GROUP BY word) AS t"
    )
    assert kinds(made, survivors) == (Kind.UNKNOWN,)
    grouped = f"{T} SELECT n // 10 AS k, SUM(n) AS x FROM t GROUP BY k"
    assert kinds(made, grouped)[1] == Kind.UNKNOWN


CALENDAR = (
    "SELECT s.g, COALESCE(t.n, 0) AS x FROM range(210) AS s(g) LEFT JOIN {} AS t ON t.g = s.g"
)


def test_noisy_numbers_beside_a_calendar(made: Any) -> None:
    counts = "(SELECT g, COUNT(*) AS n FROM people GROUP BY g)"
    assert kinds(made, CALENDAR.format(counts)) == (Kind.PUBLIC, Kind.STRAIGHT)
    answer = made.ask(CALENDAR.format(counts), analyst="alice", epsilon="0.5")
    margins = answer.margins.column("x").to_pylist()
    assert all(margin > 1 for margin in margins[:200])
    assert margins[200:] == [0] * 10


def test_a_row_that_noise_hid_is_no_zero(made: Any) -> None:
    """Beside a calendar a hidden group reads 0, which is not what it is."""
    few = "(SELECT g, COUNT(*) AS n FROM people GROUP BY g HAVING COUNT(*) > 60)"
    words = (
        "SELECT s.w, COALESCE(t.n, 0) AS x FROM (VALUES ('w001'), ('nobody')) AS s(w) LEFT JOIN"
        " (SELECT word, COUNT(*) AS n FROM people GROUP BY word) AS t ON t.word = s.w"
    )
    for sql in (CALENDAR.format(few), words):
        answer = made.ask(sql, analyst="alice", epsilon="0.5")
        assert set(answer.margins.column("x").to_pylist()) == {None}
        assert list(answer.certificate["without_margin"]) == ["x"]


def test_what_has_no_margin_says_so(made: Any) -> None:
    answer = made.ask(
        f"{T} SELECT SUM(n) AS s, MAX(n) AS largest FROM t", analyst="alice", epsilon="0.5"
    )
    [whole], [largest] = (
        answer.margins.column("s").to_pylist(),
        answer.margins.column("largest").to_pylist(),
    )
    assert whole is not None
    assert largest is None
    assert list(answer.certificate["without_margin"]) == ["largest"]
    shown = str(answer).splitlines()
    assert shown[1].endswith("± ?")
    assert any(line.startswith("largest: where ± ? stands") for line in shown)


def test_a_ratio_of_two_groups_has_a_margin(made: Any) -> None:
    """Each group's number is read by a subquery that leaves one row."""
    one = "(SELECT n * 1.0 / k FROM r WHERE sex = '{}')"
    counts = (
        "SELECT sex, COUNT(*) FILTER (WHERE smoker) AS n, COUNT(*) AS k FROM people GROUP BY sex"
    )
    sql = f"WITH r AS ({counts}) SELECT {one.format('F')} / {one.format('M')} AS ratio"
    assert kinds(made, sql) == (Kind.RATIONAL,)
    answer = made.ask(sql, analyst="alice", epsilon="0.5")
    [margin] = answer.margins.column("ratio").to_pylist()
    assert 0 < margin < 0.05


def test_a_mean_that_noise_hides_takes_the_margin_of_its_sum(made: Any) -> None:
    """Nobody is 99 and over: the mean of their ages is NULL, or that of noise."""
    means = "SELECT age // 33 AS k, AVG(balance) AS m FROM people WHERE {} GROUP BY k"
    for where, known in (("age < 99", True), ("age > 98", False)):
        sql = f"WITH t AS ({means.format(where)}) SELECT AVG(m) AS x FROM t"
        answer = made.ask(sql, analyst="alice", epsilon="0.5")
        [value], [margin] = (
            answer.table.column("x").to_pylist(),
            answer.margins.column("x").to_pylist(),
        )
        assert (margin is not None and margin < 10) == known, (value, margin)


def test_every_row_of_an_ordered_and_cut_answer_has_its_own_margin(made: Any) -> None:
    sql = f"{T} SELECT g, sex, n * 1.0 / SUM(n) OVER (PARTITION BY g) AS x FROM t QUALIFY n > 20 ORDER BY x LIMIT 7"
    answer = made.ask(sql, analyst="alice", epsilon="0.5")
    margins = answer.margins.column("x").to_pylist()
    assert len(margins) == 7
    assert None not in margins
    assert len(set(margins)) > 1


def test_noise_beyond_64_bits_moves_numbers_too(made: Any) -> None:
    sql = "SELECT sex, AVG(SUM(age)) OVER () AS a FROM people GROUP BY sex"
    answer = made.ask(sql, analyst="curator", epsilon="1e-18")
    [width, *others] = answer.margins.column("a").to_pylist()
    assert width > 2**63
    assert others == [width] * len(others)


def test_margins_of_sums_do_not_grow_with_the_grid() -> None:
    """200 numbers on a grid of ones, each with noise of scale 5: the sum is within 1.96 deviations
    and little more.
    """
    laplace = DiscreteLaplace(scale=Fraction(5), l1=Fraction(1))
    normal = DiscreteGaussian(sigma=Fraction(5), l2_squared=Fraction(1))
    for noise, deviation in ((laplace, 5 * 2**0.5), (normal, 5.0)):
        [width] = straight_half_widths(np.ones((200, 1)), [noise] * 200)
        assert 1.96 * deviation * 200**0.5 < width < 2.1 * deviation * 200**0.5 + 9


@pytest.mark.parametrize("scale", ["1/4", "1/2", "1", "3", "10"])
@pytest.mark.parametrize(
    "slopes", [[1] * 2, [1] * 8, [1] * 64, [7, *[1] * 30], [5, 5, *[1] * 60], list(range(1, 8))]
)
def test_half_widths_of_sums_cover_by_their_masses(scale: str, slopes: list[int]) -> None:
    """The exact distribution of sum(slope * noise), by convolution: at least 95 % within the
    half-width.
    """
    spread = float(Fraction(scale))
    for noise, mass in (
        (
            DiscreteLaplace(scale=Fraction(scale), l1=Fraction(1)),
            lambda x: np.exp(-np.abs(x) / spread),
        ),
        (
            DiscreteGaussian(sigma=Fraction(scale), l2_squared=Fraction(1)),
            lambda x: np.exp(-(x**2) / 2 / spread**2),
        ),
    ):
        reach = int(40 * spread + 20)
        one = mass(np.arange(-reach, reach + 1))
        total = np.ones(1)
        for slope in slopes:
            spaced = np.zeros(2 * reach * slope + 1)
            spaced[::slope] = one / one.sum()
            total = (
                np.convolve(total, spaced) if len(total) < 5000 else _by_transform(total, spaced)
            )
        [width] = straight_half_widths(
            np.array(slopes, dtype=np.float64)[:, None], [noise] * len(slopes)
        )
        middle, within = len(total) // 2, int(width)
        assert total[max(0, middle - within) : middle + within + 1].sum() >= 0.95


def _by_transform(one: Any, other: Any) -> Any:
    size = len(one) + len(other) - 1
    wide = 1 << (size - 1).bit_length()
    return np.maximum(
        np.fft.irfft(np.fft.rfft(one, wide) * np.fft.rfft(other, wide), wide)[:size], 0
    )
