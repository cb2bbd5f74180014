"""Every margin that is printed covers 95 % at least: kinds of questions by `coverage_kinds`, other
doors by own tests.

False alarms: 1e-9 in all, no seeds. Of 1,000 answers of a kind, 10 in a hundred may be missed; of
20,000, 6.1 in a hundred, so that a coverage of 93.5 % is found out in 98 of 100 runs. Where answers
share noise (running totals), there are as many times more of them.
"""

from __future__ import annotations

import ast
import importlib
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from coverage_kinds import ACCOUNTANTS, EPSILON, KINDS, TOGETHER, answered, curator
from discreet.budget import with_margin
from discreet.display.show import cell
from discreet.mechanisms import DiscreteGaussian, DiscreteLaplace, combined
from discreet.mechanisms.tails.simulate import redrawn, straight_half_widths
from discreet.sql.aggregates import AGGREGATES

SOURCE = Path(__file__).parent.parent / "src" / "discreet"
ALARM = 1e-9 / 200
FEW, MANY = 1_000, 20_000

DOORS = {  # where ± is printed, and the test of what stands behind it
    "asking/savings.py": "test_savings.test_whoever_follows_gets_the_figure",
    # a sentence about ±, and margins that quotes tell
    "asking/explain.py": "test_savings.test_whoever_follows_gets_the_figure",
    "display/show.py": "test_coverage.test_margins_cover",
    "budget.py": "test_coverage.test_what_is_printed_holds",
    "display/formats.py": "test_coverage.test_margins_cover",
    "cli/start/demo.py": "test_coverage.test_margins_cover",
    # of an example
    "engines/drafts/dialogue.py": "test_every_mechanism.test_margins_of_added_noise_cover_exactly",
    "continual/quote.py": "continual.test_release_quote.test_what_is_quoted_is_what_is_published",
    "continual/chart.py": "test_every_stream.test_margins_cover_what_leaves_by_the_door",
    "continual/page.py": "test_every_stream.test_margins_cover_what_leaves_by_the_door",
    "synthetic/compare.py": "synthetic.test_compare.test_margins_of_correlations_cover",
    "synthetic/report/reports.py": "synthetic.test_compare.test_margins_of_distances_are_the_smallest_that_cover",
    # of such figures, as many digits as their margins have
    "synthetic/report/digits.py": "synthetic.test_compare.test_margins_of_distances_are_the_smallest_that_cover",
    "census/page.py": "census.test_errors.test_whole_numbers_err_as_the_margins_say",
    "census/running.py": "census.test_errors.test_whole_numbers_err_as_the_margins_say",
    "server/pgwire/question.py": "test_coverage.test_margins_cover",
    "evaluate/report.py": "test_coverage.test_margins_cover",  # of answers that were asked for
    "anonymity/report/page.py": "test_every_mechanism.test_margins_of_added_noise_cover_exactly",
    "anonymity/report/words.py": "test_every_mechanism.test_margins_of_added_noise_cover_exactly",
    "local/collector/chart.py": "test_every_protocol.test_intervals_of_frequencies_cover",
    # the size of made-up noise, of no answer
    "attacks/lessons/reconstruct.py": "test_coverage.test_margins_cover",
}


def _prints(path: Path) -> bool:
    """Whether a string that is no docstring has a ± in it, or a function is called that writes
    one.
    """
    tree = ast.parse(path.read_text())
    if any(isinstance(node, ast.Name) and node.id == "with_margin" for node in ast.walk(tree)):
        return True
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return any("±" in node.value and id(node) not in told for node in texts)


def test_every_door_has_a_case(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if _prints(path)}
    assert found == set(DOORS)
    for name in set(DOORS.values()):
        module, _, function = name.rpartition(".")
        # what it imports beside it
        monkeypatch.syspath_prepend(Path(__file__).parent.joinpath(*module.split(".")[:-1]))
        assert callable(getattr(importlib.import_module(module), function)), name


def _most_missed(kind: str, told: int) -> float:
    """Bound the misses of so many answers with a coverage of 95 %.

    Where answers come in runs that share noise, those at the same place of every run are
    independent: each such part keeps within its own binomial bound, at its share of the false
    alarms.
    """
    parts = TOGETHER.get(kind, 1)
    return float(parts * stats.binom.ppf(1 - ALARM / parts, -(-told // parts), 0.05))


def test_every_sum_of_the_language_has_a_kind() -> None:
    chosen = ("minimum", "median", "mode")  # which have margins in ranks, or none
    asked = " ".join(KINDS.values())
    summed = [member for member in AGGREGATES if member.tags[0] not in chosen]
    assert not [
        name for each in summed for name in each.names if f"{name.split('(')[0]}(" not in asked
    ]


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("kind", KINDS)
def test_margins_cover(kind: str, accountant: str) -> None:
    seen = answered(kind, accountant, answers=FEW * TOGETHER.get(kind, 1))
    assert seen.missed <= _most_missed(kind, seen.told)
    assert seen.told >= 0.3 * seen.answers


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
def test_quotients_by_what_may_be_zero_mislead_in_few_of_all_answers(
    accountant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of few of them a margin is shown, by noise that makes the divisor look large: of those more
    are missed, of all answers at most 5 in 100.
    """
    sql = "SELECT g, SUM(age) * 1.0 / SUM(balance) AS x FROM people GROUP BY g"
    monkeypatch.setitem(KINDS, "near zero", sql)
    seen = answered("near zero", accountant, answers=2 * FEW)
    assert seen.missed <= stats.binom.ppf(1 - ALARM, seen.answers, 0.05)
    assert 0 < seen.told < 0.3 * seen.answers


@pytest.mark.slow
@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("kind", KINDS)
def test_margins_of_many_answers_cover(kind: str, accountant: str) -> None:
    seen = answered(kind, accountant, answers=MANY * TOGETHER.get(kind, 1))
    assert seen.missed <= _most_missed(kind, seen.told)


def test_a_smaller_coverage_is_found_out() -> None:
    """The long test has power against 93.5 %."""
    assert stats.binom.cdf(stats.binom.ppf(1 - ALARM, MANY, 0.05), MANY, 0.065) < 0.02


def test_runs_of_answers_share_noise() -> None:
    """Misses of neighboring running totals come together, and the bound allows for it."""
    assert TOGETHER.keys() <= KINDS.keys()
    assert _most_missed("running total", 4 * FEW) > 1.2 * _most_missed("count", 4 * FEW)
    assert _most_missed("running total", 4 * MANY) < 0.0625 * 4 * MANY


@pytest.mark.parametrize("kind", ["count", "negated sum", "difference", "two tables", "root"])
def test_margins_are_not_wider_than_they_need_be(kind: str) -> None:
    """With 0.6 of them the truth is missed more often than in 5 % of the answers."""
    seen = answered(kind, "zcdp", answers=2 * FEW)
    assert seen.missed_by_fewer > stats.binom.ppf(1 - ALARM, seen.told, 0.05)


@pytest.mark.parametrize(
    "kind", ["share", "ratio of sums", "variance", "logarithm", "rolled up mean"]
)
def test_whoever_simulates_a_margin_finds_the_same(kind: str) -> None:
    """The same noisy numbers, finished twice; one of the two in a process that has simulated others
    before.
    """
    from discreet.asking.measure import measure
    from discreet.vault.allowance import Allowance

    made, _ = curator("sum")
    offered = made._view.offer(KINDS[kind], epsilon=EPSILON, margin=None, assuming=None)
    allowance = Allowance(key=bytes(32), accountant=made._accountant, paid=offered.cost)
    noisy = measure(offered, allowance, made._view.fetch)
    first = made._view.finish(offered, noisy).margins
    answered("product", "sum", answers=1)
    assert made._view.finish(offered, noisy).margins.equals(first)


def test_where_no_margin_is_known_the_answer_says_so() -> None:
    """A quotient by so few that noise may make them none, or negative: in most of 20 answers."""
    made, _ = curator("sum")
    few = "COUNT(*) FILTER (WHERE age > 97)"
    near_zero = 0
    for ask in range(20):
        answer = made.ask(
            f"SELECT SUM(age) / {few} AS x, -{few} AS y FROM people",
            analyst="alice",
            epsilon=Fraction(100 + ask, 10_000),
        )
        [divisor], [within] = (
            answer.table.column(1).to_pylist(),
            answer.margins.column(1).to_pylist(),
        )
        assert within is not None
        notes = [line for line in str(answer).splitlines() if "no margin is known" in line]
        assert all(line.startswith("x:") for line in notes)
        if abs(divisor) <= within / 2:
            near_zero += 1
            assert answer.margins.column(0).to_pylist() == [None]
            assert len(notes) == 1 - answer.table.column(0).null_count
    assert near_zero  # four in five of them: none of 20 once in 10^13


def test_what_noise_may_divide_by_or_shows_once_says_so() -> None:
    """Of aggregates as they are, too: a skewness of 60 people has no margin at this epsilon."""
    made, _ = curator("sum")
    for sql, why in (
        ("SELECT g, SKEWNESS(age) AS x FROM people GROUP BY g", "noise may hide what it is"),
        ("SELECT DISTINCT COUNT(*) AS x, MEDIAN(age) AS m FROM people", "rows that are alike"),
    ):
        answer = made.ask(sql, analyst="alice", epsilon="0.1")
        assert list(answer.certificate["without_margin"]) == ["x"]
        assert answer.certificate["without_margin"]["x"].startswith(why)
        assert " ± ?" in str(answer)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "expression",
    ["POWER(SUM(age), 1000)", "POWER(SUM(age), 70)", "EXP(COUNT(*) / 10)", "0 * AVG(age) / 7"],
)
def test_numbers_beyond_all_bounds_are_no_failure(expression: str) -> None:
    made, _ = curator("zcdp")
    answer = made.ask(f"SELECT {expression} AS x FROM people", analyst="alice", epsilon="0.001")
    assert answer.table.num_rows == 1


# --- what simulated margins rest on ---------------------------------------------------------------


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_straight_half_widths_are_those_of_the_masses(kind: str) -> None:
    """Of many slopes at once, beside the half-width of each: never less, and hardly more."""
    spread = Fraction(40)
    noise: Any = (
        DiscreteLaplace(scale=spread, l1=Fraction(1))
        if kind == "laplace"
        else DiscreteGaussian(sigma=spread, l2_squared=Fraction(1))
    )
    whole = [
        (1, 0, 0),
        (1, 1, 0),
        (3, 1, 0),
        (5, 2, 1),
        (1, 1, 1),
        (20, 1, 1),
        (7, 6, 0),
        (4, 3, 3),
    ]
    slopes = np.array(whole, dtype=np.float64).T
    found = straight_half_widths(slopes, [noise] * 3)
    for each, factors in zip(found, whole, strict=True):
        exact = float(
            combined.half_width(combined.DrawSum(noise=noise, factor=Fraction(f)) for f in factors)
        )
        assert exact - 0.01 * sum(factors) <= each <= 1.03 * exact + sum(factors)


def test_redrawn_noise_is_the_declared_noise() -> None:
    for noise in (
        *(DiscreteLaplace(scale=Fraction(s), l1=Fraction(1)) for s in ("1/2", "3", "500")),
        *(DiscreteGaussian(sigma=Fraction(s), l2_squared=Fraction(1)) for s in ("1/2", "3", "500")),
    ):
        (drawn,) = redrawn([noise], 20_001)
        assert drawn.sum() == 0
        for half in {noise.margin(level) for level in (0.5, 0.9, 0.99)}:
            inside = sum(np.exp(noise.log_mass(z)) for z in range(-half, half + 1))
            assert (np.abs(drawn) <= half).mean() == pytest.approx(inside, abs=2e-4)
    a, b = redrawn([noise] * 2, 20_001)
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.03


# --- what is read ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "margin", [1e-7, 0.00123456, 0.0999999, 0.5, 1.0, 9.9999, 12.3456, 99.96, 100.4, 12345.678]
)
@pytest.mark.parametrize("value", [0.0, 0.123456789, 40.0717171, -3.14159, 1234567.891])
def test_what_is_printed_holds(value: float, margin: float) -> None:
    """The printed interval holds the one that was meant, and is at most 8 % wider."""
    for text in (with_margin(value, margin), cell(value, margin)):
        shown, wide = (float(each.replace(",", "")) for each in text.split(" ± "))
        assert wide + 1e-12 >= abs(shown - value) + margin - 1e-9 * margin
        assert wide <= 1.08 * margin + 1e-12
    wide = float(cell(7, margin).split(" ± ")[1].replace(",", ""))
    assert margin * (1 - 1e-6) <= wide <= 1.02 * margin
