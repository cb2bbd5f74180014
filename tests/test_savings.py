"""What a quote says would save: whoever follows it gets the figure, and nothing is said that does
not hold.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from discreet.curator import Curator
from discreet.display.show import short_margin
from discreet.errors import DiscreetError
from sql import bounded, policies

# A question, how the sentence begins, the question that follows it, and which column gains.
FOLLOWED = {
    "two medians of one": (
        "SELECT MEDIAN(age) AS a, MEDIAN(income) AS i FROM people",
        "Without MEDIAN(income), a would be",
        "SELECT MEDIAN(age) AS a FROM people",
        "a",
    ),
    "a count beside a median": (
        "SELECT COUNT(*) AS n, MEDIAN(age) AS m FROM people",
        "Without MEDIAN(age), n would be",
        "SELECT COUNT(*) AS n FROM people",
        "n",
    ),
    "a count beside a mean": (
        "SELECT sex, COUNT(*) AS n, AVG(age) AS m FROM people GROUP BY sex",
        "Without AVG(age), n would be",
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex",
        "n",
    ),
    "two means": (
        "SELECT AVG(age) AS a, AVG(balance) AS b FROM people",
        "Without AVG(balance), a would be",
        "SELECT AVG(age) AS a FROM people",
        "a",
    ),
    "three of two values": (
        "SELECT COUNT(DISTINCT person_id) AS p, SUM(cost) AS s, MEDIAN(pain) AS m FROM visits",
        "Without MEDIAN(pain), p would be",
        "SELECT COUNT(DISTINCT person_id) AS p, SUM(cost) AS s FROM visits",
        "p",
    ),
    "ordered": (
        "SELECT clinic, SUM(cost) AS s, COUNT(DISTINCT person_id) AS p FROM visits GROUP BY 1 ORDER BY 1 DESC",
        "Without COUNT(DISTINCT person_id), s would be",
        "SELECT clinic, SUM(cost) AS s FROM visits GROUP BY 1 ORDER BY 1 DESC",
        "s",
    ),
    "joined": (
        "SELECT p.sex, SUM(v.cost) AS s, MEDIAN(p.age) AS m FROM people AS p JOIN visits AS v USING (person_id)"
        " GROUP BY p.sex",
        "Without MEDIAN(p.age), s would be",
        "SELECT p.sex, SUM(v.cost) AS s FROM people AS p JOIN visits AS v USING (person_id) GROUP BY p.sex",
        "s",
    ),
    "of every grouping": (
        "SELECT sex, smoker, COUNT(*) AS n, COUNT(DISTINCT age) AS d FROM people GROUP BY ROLLUP (sex, smoker)",
        "Without COUNT(DISTINCT age), n would be",
        "SELECT sex, smoker, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex, smoker)",
        "n",
    ),
    "keys that are not public": (
        "SELECT zip, COUNT(*) AS n, MEDIAN(age) AS m FROM people GROUP BY zip",
        "Without MEDIAN(age), n would be",
        "SELECT zip, COUNT(*) AS n FROM people GROUP BY zip",
        "n",
    ),
    "rows": (
        "SELECT COUNT(*) AS n FROM visits",
        "COUNT(DISTINCT person_id) counts each patient once:",
        "SELECT COUNT(DISTINCT person_id) AS n FROM visits",
        "n",
    ),
    "rows that are chosen": (
        "SELECT COUNT(*) FILTER (WHERE pain > 2) FROM visits WHERE cost > 10",
        "COUNT(DISTINCT person_id) counts each patient once:",
        "SELECT COUNT(DISTINCT person_id) FILTER (WHERE pain > 2) AS n FROM visits WHERE cost > 10",
        "n",
    ),
    "rows of a join": (
        "SELECT p.sex, COUNT(*) AS n FROM visits AS v JOIN people AS p USING (person_id) GROUP BY p.sex"
        " HAVING COUNT(*) > 5",
        "COUNT(DISTINCT v.person_id) counts each patient once:",
        "SELECT p.sex, COUNT(DISTINCT v.person_id) AS n FROM visits AS v JOIN people AS p USING (person_id)"
        " GROUP BY p.sex HAVING COUNT(DISTINCT v.person_id) > 5",
        "n",
    ),
    "rows beside a median": (
        "SELECT COUNT(*) AS n, MEDIAN(cost) AS m FROM visits",
        "COUNT(DISTINCT person_id) counts each patient once:",
        "SELECT COUNT(DISTINCT person_id) AS n, MEDIAN(cost) AS m FROM visits",
        "n",
    ),
    "rows beside a median, without it": (
        "SELECT COUNT(*) AS n, MEDIAN(cost) AS m FROM visits",
        "Without MEDIAN(cost), n would be",
        "SELECT COUNT(*) AS n FROM visits",
        "n",
    ),
}
# Nothing better is known of these.
NOTHING = (
    "SELECT COUNT(*) AS n FROM people",
    "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex",
    "SELECT COUNT(DISTINCT person_id) AS n FROM visits",
    "SELECT SUM(age) AS s, COUNT(age) AS n, AVG(age) AS m FROM people",  # one statistic, with or without AVG
    "SELECT COUNT(*) AS n FROM labs",  # whose owner has to be joined
    "SELECT COUNT(*) AS n FROM clinics",
    "SELECT n, m FROM (SELECT COUNT(*) AS n, MEDIAN(age) AS m FROM people) AS q",
    # without m there is nothing to order by
    "SELECT sex, COUNT(*) AS n, MEDIAN(age) AS m FROM people GROUP BY sex ORDER BY m",
    "SELECT COUNT(*) AS n FROM people UNION ALL SELECT COUNT(*) AS n FROM people",
    "SELECT COUNT(*) AS n FROM people WHERE FALSE LIMIT 0",
)
RELATIONS = [(n, a) for n in ("add_remove", "change_one") for a in ("sum", "zcdp")]
EPSILON = "0.5"


@pytest.fixture(scope="module", params=RELATIONS, ids="-".join)
def curator(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Curator:
    neighbors, accountant = request.param
    return _opened(tmp_path_factory.mktemp("savings"), neighbors, accountant)


def _opened(folder: Path, neighbors: str = "add_remove", accountant: str = "sum") -> Curator:
    tables = bounded.tidy(policies.policy("hospital"), people=20, dice=random.Random("savings"))
    return bounded.opened(folder, "hospital", tables, neighbors=neighbors, accountant=accountant)


def _quote(curator: Curator, sql: str, **asked: Any) -> Any:
    return curator.quote(sql, analyst="ann", **({"epsilon": EPSILON} | asked))


def _figure(quote: Any, column: str, rows: int = 1_000) -> str:
    """A column's margin as a sentence has it."""
    margin = quote.margins[column]
    if not isinstance(margin, dict):
        return f"± {short_margin(margin)}"
    if "ranks" in margin:
        return f"within {margin['ranks']:,} ranks"
    if "most" in margin:
        return f"± {short_margin(margin['most'])}"
    [at] = [
        each
        for there, each in zip(margin["at_rows"], margin["margin"], strict=True)
        if there == rows
    ]
    return f"± {short_margin(at)}"


@pytest.mark.parametrize("case", FOLLOWED)
def test_whoever_follows_gets_the_figure(curator: Curator, case: str) -> None:
    sql, begins, other, column = FOLLOWED[case]
    now, then = _quote(curator, sql), _quote(curator, other)
    [told] = [each for each in now.savings if each.startswith(begins)] or [None]
    if told is None:  # where it is not better, nothing is said
        assert not _better(now, then, column)
        return
    named = column if column in now.margins else next(iter(now.margins))
    assert f" {_figure(then, column)} instead of " in told
    was = _figure(now, named).removeprefix("within ").removesuffix(" ranks")
    assert f" instead of {was}" in told
    assert _better(now, then, column)
    assert float(then.cost.epsilon) <= float(now.cost.epsilon) * (1 + 1e-9)
    assert float(then.cost.delta) <= float(now.cost.delta) * (1 + 1e-9)
    others = set(now.margins) & set(then.margins)
    assert all(_size(then, each) <= _size(now, each) * (1 + 1e-9) for each in others)


def _size(quote: Any, column: str) -> float:
    return float(re.sub(r"[^0-9.e-]", "", _figure(quote, column)))


def _better(now: Any, then: Any, column: str) -> bool:
    named = column if column in now.margins else next(iter(now.margins))
    return _size(then, column) <= 0.9 * _size(now, named)


def test_every_case_is_told(tmp_path: Path) -> None:
    curator = _opened(tmp_path)
    for sql, begins, *_ in FOLLOWED.values():
        told = _quote(curator, sql).savings
        assert any(each.startswith(begins) for each in told), (sql, told)
        assert len(told) <= 2


@pytest.mark.parametrize("sql", NOTHING)
def test_nothing_is_said_where_nothing_is_better(curator: Curator, sql: str) -> None:
    quote = _quote(curator, sql)
    assert quote.savings == ()
    assert "savings" not in quote.as_json()


def test_a_column_that_shares_is_not_spoilt(curator: Curator) -> None:
    """COUNT(*) is a part of AVG's sums: as people it would take half of the ε from AVG."""
    told = _quote(curator, "SELECT COUNT(*) AS n, AVG(cost) AS m FROM visits").savings
    assert not any(each.startswith("COUNT(DISTINCT") for each in told)


def test_columns_that_exclude_each_other(tmp_path: Path) -> None:
    """They are one vector: of two, one alone has no smaller margin. A person who is replaced leaves
    one of them and enters the other, so there it has.
    """
    sql = "SELECT COUNT(*) FILTER (WHERE sex = 'F') AS f, COUNT(*) FILTER (WHERE sex = 'M') AS m FROM people"
    assert _quote(_opened(tmp_path / "one"), sql).savings == ()
    curator = _opened(tmp_path / "other", "change_one")
    [told] = _quote(curator, sql).savings
    then = _quote(curator, "SELECT COUNT(*) FILTER (WHERE sex = 'F') AS f FROM people")
    assert f"f would be {_figure(then, 'f')} instead of" in told


def test_where_it_is_shown(tmp_path: Path) -> None:
    curator, sql = _opened(tmp_path), "SELECT COUNT(*) AS n, MEDIAN(age) AS m FROM people"
    quote = _quote(curator, sql)
    [told] = quote.savings
    assert quote.as_json()["savings"] == [told]
    assert told in str(quote).splitlines()
    assert told in curator.explain(sql, analyst="ann", epsilon=EPSILON)
    answer = curator.ask(sql, analyst="ann", epsilon=EPSILON)
    assert "Without" not in f"{answer}{answer.as_json()}{answer.certificate}"


def test_what_is_paid_for_saves_nothing_more(tmp_path: Path) -> None:
    curator, sql = _opened(tmp_path), "SELECT COUNT(*) AS n, MEDIAN(age) AS m FROM people"
    curator.ask(sql, analyst="ann", epsilon=EPSILON)
    assert _quote(curator, sql).savings == ()


def test_an_alternative_that_was_paid_for_has_its_own_figure(tmp_path: Path) -> None:
    curator, people = _opened(tmp_path), "SELECT COUNT(DISTINCT person_id) AS n FROM visits"
    curator.ask(people, analyst="ann", epsilon="2")
    [told] = _quote(curator, "SELECT COUNT(*) AS n FROM visits").savings
    then = _quote(curator, people)
    assert float(then.cost.epsilon) == 0
    assert f": {_figure(then, 'n')} instead of " in told


def test_as_many_rows_as_are_assumed(tmp_path: Path) -> None:
    curator = _opened(tmp_path)
    sql, other = (
        "SELECT AVG(age) AS a, AVG(balance) AS b FROM people",
        "SELECT AVG(age) AS a FROM people",
    )
    [told] = _quote(curator, sql, assuming=50_000).savings
    assert told.endswith(" at 50,000 rows.")
    assert f"be {_figure(_quote(curator, other, assuming=50_000), 'a')} instead" in told


def test_of_a_margin_that_is_asked_for(tmp_path: Path) -> None:
    """What a smaller margin would cost without a column is at that ε, too."""
    curator = _opened(tmp_path)
    quote = _quote(
        curator, "SELECT COUNT(*) AS n, SUM(age) AS s FROM people", epsilon=None, margin=500
    )
    [told] = quote.savings
    epsilon = quote.as_json()["cost"]["exact"]["epsilon"]
    then = _quote(curator, "SELECT COUNT(*) AS n FROM people", epsilon=epsilon)
    assert f"n would be {_figure(then, 'n')} instead of" in told


def test_in_another_dialect(tmp_path: Path) -> None:
    curator = _opened(tmp_path)
    [told] = _quote(curator, 'SELECT count(*) FROM "visits"', dialect="postgres").savings
    assert told.startswith("COUNT(DISTINCT person_id) counts each patient once: ± ")


def test_a_quote_stands_where_an_alternative_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    curator, sql = _opened(tmp_path), "SELECT COUNT(*) AS n FROM visits"
    view = curator._view
    view.plan(sql)

    def refuse(*_: object) -> None:
        raise DiscreetError("no")

    monkeypatch.setattr(type(view), "_plan", refuse)
    assert _quote(curator, sql).savings == ()
