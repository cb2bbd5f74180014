"""Quantiles of small groups: where a margin in ranks tells nothing, the answer says so.

Probabilities are exact sums of masses: nothing here fails by chance.
"""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from coverage_kinds import curator
from discreet.display import formats
from discreet.display.show import answer_html
from discreet.mechanisms import DiscreteLaplace
from discreet.mechanisms.quantile import Quantile
from discreet.sql.after.widths.small_groups import counting_column
from discreet.vault.answer import Answer, ranks_tell

CELLS = 8


def counted(sql: str, column: int) -> str | None:
    made, _ = curator("sum")
    offered = made._view.offer(sql, epsilon="0.5", margin=None, assuming=None)
    return counting_column(offered.plan, column)


@pytest.mark.parametrize(
    ("aggregates", "name"),
    [
        ("MEDIAN(balance), COUNT(*) AS n", "n"),
        ("MEDIAN(balance), COUNT(*) AS n, COUNT(balance) AS k", "k"),
        ("MEDIAN(income), COUNT(*) AS n, COUNT(income) AS k", "k"),
        ("MEDIAN(income), COUNT(age) AS k", None),
        ("MEDIAN(age), COUNT(*) FILTER (WHERE smoker) AS n", None),
        ("MEDIAN(age) FILTER (WHERE smoker), COUNT(*) FILTER (WHERE smoker) AS n", "n"),
        ("MEDIAN(age) FILTER (WHERE smoker), COUNT(*) AS n", None),
        ("MEDIAN(age), SUM(age) AS n", None),
        ("MEDIAN(age), COUNT(DISTINCT person_id) AS n", None),
        ("MEDIAN(age), COUNT(*) + 1 AS n", None),
        ("MEDIAN(age), -COUNT(*) AS n", None),
        ("MEDIAN(age), 1 AS n", None),
    ],
)
def test_what_counts_the_rows(aggregates: str, name: str | None) -> None:
    assert counted(f"SELECT g, {aggregates} FROM people GROUP BY g", 1) == name


def test_other_rows_count_nothing() -> None:
    t = "WITH t AS (SELECT g, COUNT(*) AS n, MEDIAN(age) AS m FROM people GROUP BY g) "
    assert counted(t + "SELECT m, n FROM t WHERE n > 20 ORDER BY n LIMIT 5", 0) == "n"
    assert counted(t + "SELECT b.m, a.n FROM t AS a JOIN t AS b ON a.g = b.g + 1", 0) is None
    assert counted(t + "SELECT m, (SELECT MAX(n) FROM t) AS n FROM t", 0) is None
    assert counted(t + "SELECT m, n FROM t UNION ALL SELECT m, n FROM t", 0) is None


# --- what is told holds ---------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["1/2", "3", "40"])
@pytest.mark.parametrize("rows", [0, 1, 7, 200])
def test_small_groups_are_shown_as_such(scale: str, rows: int) -> None:
    """A group of so few rows that ranks tell nothing passes for a larger one with 2.5 % at most,
    by the masses of the noise on its count; one of three margins more hardly ever fails to."""
    noise = DiscreteLaplace(scale=Fraction(scale), l1=Fraction(1))
    margin = noise.margin(0.95)
    draws = np.arange(-60 * (margin + 1), 60 * (margin + 1))
    masses = np.exp([noise.log_mass(int(draw)) for draw in draws])
    for there in {0, rows // 2, rows}:
        told = _told(there + draws, margin, rows)
        assert masses[told].sum() <= 0.025 + 1e-9
    assert masses[_told(rows + 3 * margin + 2 + draws, margin, rows)].sum() > 0.97


def _told(counts: Any, margin: int, rows: int) -> Any:
    """Return which of these noisy counts pass for a larger group."""
    made, _ = curator("sum")
    answer = made.ask(
        "SELECT COUNT(*) AS n, MEDIAN(age) AS m FROM people", analyst="alice", epsilon="0.5"
    )
    several = replace(
        answer,
        table=pa.table({"n": counts, "m": counts}),
        margins=pa.table({"n": [float(margin)] * len(counts), "m": pa.nulls(len(counts))}),
        certificate={"ranks": {"m": 1}, "beside_ranks": {"m": {"rows": rows, "counted": "n"}}},
    )
    return np.array(ranks_tell(several, "m"))


@pytest.mark.parametrize("choice", ["permute_and_flip", "exponential"])
@pytest.mark.parametrize("q", ["1/2", "1/4", "9/10"])
def test_values_of_larger_groups_are_among_the_rows(q: str, choice: Any) -> None:
    """With more rows than `rows`, the chosen value lies within the least and the greatest one with
    95 %: all at one value, at two, spread; at the ends of the range or not. With far fewer it may
    not, so that the mark is needed."""
    quantile = Quantile(
        epsilon=Fraction(1),
        q=Fraction(q),
        cells=CELLS,
        max_rows=1,
        neighbors="add_remove",
        choice=choice,
    )
    ranks = quantile.ranks(0.95)
    rows = int(ranks / min(quantile.q, 1 - quantile.q))
    larger = [_outside(quantile, counts) for counts in _tables(rows + 1)]
    assert max(larger) <= 0.05
    assert max(_outside(quantile, counts) for counts in _tables(max(1, rows // 8))) > 0.05


def _tables(rows: int) -> list[Any]:
    found = []
    for cells in ([3], [0], [7], [2, 5], [2, 3], [1, 6], [3, 4, 5]):
        counts = np.zeros(CELLS, dtype=np.int64)
        counts[cells] = rows // len(cells)
        counts[cells[0]] += rows - counts.sum()
        found.append(counts)
        found.append(counts[::-1].copy())
    return found


def _outside(quantile: Quantile, counts: Any) -> float:
    there = np.flatnonzero(counts)
    masses = np.exp(quantile.log_mass(counts))
    return float(masses[: there[0]].sum() + masses[there[-1] + 1 :].sum())


# --- how it is shown ------------------------------------------------------------------------------


def asked(sql: str, epsilon: str) -> Answer:
    made, _ = curator("sum")
    return made.ask(sql, analyst="alice", epsilon=epsilon)


def test_every_format_has_ranks() -> None:
    """Groups of 25 smokers: at this price a median needs more than 28."""
    answer = asked(
        "SELECT g, COUNT(*) FILTER (WHERE smoker) AS n, MEDIAN(age) FILTER (WHERE smoker) AS m "
        "FROM people GROUP BY g ORDER BY g",
        "1",
    )
    told = answer.as_json()["ranks"]["m"]
    assert told["counted"] == "n"
    assert told["range"] == [0, 99]
    assert told["rows"] == 2 * told["ranks"] == 2 * answer.certificate["ranks"]["m"]
    assert told["told"].count(False) > 150
    marked = str(answer).count(" in [0, 99]")
    assert marked == told["told"].count(False)
    assert answer_html(answer, "").count(" in [0, 99]") == marked
    assert f"the group may have {told['rows']} rows or fewer" in str(answer)
    flat = formats.with_margins(answer)
    assert flat.column_names == ["g", "n", "n ±", "m", "m ± ranks"]
    assert flat.column(4).null_count == marked
    assert set(flat.column(4).drop_null().to_pylist()) <= {told["ranks"]}
    again = formats.from_arrow(formats.as_arrow(flat))
    assert again.as_json() == answer.as_json()
    assert json.dumps(again.as_json())


def test_a_quantile_that_nothing_counts_is_no_bare_number() -> None:
    answer = asked("SELECT sex, MEDIAN(age) AS m FROM people GROUP BY sex ORDER BY sex", "1")
    ranks = answer.certificate["ranks"]["m"]
    for row, value in enumerate(answer.table.column("m").to_pylist(), start=1):
        assert str(answer).splitlines()[row].endswith(f"  {value} ± {ranks} ranks")
    assert answer_html(answer, "").count(f"± {ranks} ranks") == answer.table.num_rows


def test_large_groups_have_no_mark() -> None:
    answer = asked("SELECT sex, COUNT(*) AS n, MEDIAN(age) AS m FROM people GROUP BY sex", "1")
    assert answer.as_json()["ranks"]["m"]["told"] == [True, True]
    assert " in [0, 99]" not in str(answer)
    assert "rows or fewer" not in str(answer)


def test_without_a_count_the_sentence_says_it() -> None:
    made, _ = curator("sum")
    sql = "SELECT sex, QUANTILE_CONT(income, 0.1) AS low, MAX(age) AS top FROM people GROUP BY sex"
    quote = made.quote(sql, analyst="alice", epsilon="1")
    answer = asked(sql, "1")
    low, top = (quote.margins[name] for name in ("low", "top"))
    assert low["rows"] == 10 * low["ranks"]
    assert low["range"] == ["0.00", "1000.00"]
    assert top["rows"] == top["ranks"]
    for text in (str(quote), str(answer)):
        assert f"that tells nothing about a group of {low['rows']} rows or fewer" in text
    assert answer.as_json()["ranks"]["low"]["told"] == [None, None]
    assert formats.with_margins(answer).column("low ± ranks").to_pylist() == [low["ranks"]] * 2
