"""What cannot be computed is refused before it is paid, and what was paid is answered, whatever its
size.
"""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.algebra import Aggregate, Column, Distinct, Factor, Scan, Sum
from discreet.curator import Curator
from discreet.errors import EngineFailure, Rejected
from discreet.mechanisms.discrete_laplace import DiscreteLaplace
from discreet.sql.aggregates.covariance import Together
from discreet.sql.aggregates.variance import Spread
from discreet.sql.analyze import plan
from discreet.sql.plan.plan import Plan
from sql import bounded, harness, policies


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    tables = bounded.tidy(policies.policy("hospital"), people=40, dice=random.Random())
    return bounded.opened(tmp_path_factory.mktemp("paying"), "hospital", tables)


def test_what_does_not_bind_is_refused_unpaid(
    curator: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = Scan("people", "t0")
    for reading in (
        Distinct((Column("t0", "nothing"),)),
        Sum((Factor(Column("t0", "zip"), 0, 1, 1, False),)),
    ):
        with pytest.raises(EngineFailure):
            curator._view.engine.check(Aggregate(people, (), (reading,)))

    def failing(_: Aggregate) -> None:
        raise EngineFailure

    paid = curator.ledger()
    monkeypatch.setattr(curator._view.engine, "check", failing)
    with pytest.raises(Rejected, match="cannot be computed by the engine"):
        curator.ask("SELECT COUNT(*) FROM people WHERE age > 77", analyst="ann", epsilon="1")
    assert curator.ledger() == paid


def test_a_question_is_planned_and_tried_once_a_snapshot(
    curator: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its plan is kept, and what does not bind is found out each time; another snapshot begins with
    nothing.
    """
    asked: list[str] = []

    def watched(text: str, *rest: Any, **more: Any) -> Plan:
        asked.append(text)
        return plan(text, *rest, **more)

    monkeypatch.setattr("discreet.asking.view.plan", watched)
    count = "SELECT COUNT(*) FROM people WHERE age > {}"
    for _ in range(2):
        curator.quote(count.format(11), analyst="ann", epsilon="1")
    assert asked == [count.format(11)]
    monkeypatch.setattr("discreet.asking.view.MOST_PLANS", 1)
    curator.quote(count.format(12), analyst="ann", epsilon="1")
    curator.quote(count.format(11), analyst="ann", epsilon="1")
    assert asked == [count.format(age) for age in (11, 12, 11)]
    nothing = Aggregate(Scan("people", "t0"), (), (Distinct((Column("t0", "nothing"),)),))
    for _ in range(2):
        with pytest.raises(EngineFailure):
            curator._view.engine.check(nothing)
    curator._open(curator._view.number)
    assert not curator._view.plans


@pytest.mark.parametrize("kept", ["n > 0", "n < 0", "n = 0", "n BETWEEN 3 AND 5"])
def test_what_fails_behind_a_filter_is_refused_unpaid(curator: Curator, kept: str) -> None:
    """Which rows pass is noise's to decide: a comparison of texts with numbers is tried with each
    kind of them.
    """
    paid, groups = curator.ledger(), "(SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)"
    with pytest.raises(Rejected, match="does not fit together"):
        curator.ask(
            f"SELECT sex > 5 AS x FROM {groups} AS t WHERE {kept}", analyst="ann", epsilon="1"
        )
    assert curator.ledger() == paid


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("SELECT n FROM g WHERE n > -1000000", None),
        ("SELECT n FROM g WHERE n > 1000000", None),
        ("SELECT a.n FROM g AS a JOIN g AS b ON a.n > b.n - 1000000", None),
        ("SELECT town FROM clinics WHERE LENGTH(town) < (SELECT 1000000 + MAX(n) FROM g)", None),
        ("SELECT sex FROM g WHERE sex = 'F' AND n > -1000000", "F"),
    ],
)
def test_noise_decides_how_many_rows_a_value_has(
    curator: Curator, value: str, expected: str | None
) -> None:
    """Several rows give NULL, as a division by zero does: an error would come after the charge."""
    groups = "WITH g AS (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)"
    answer = curator.ask(f"{groups} SELECT n, ({value}) AS x FROM g", analyst="ann", epsilon="1")
    assert set(answer.table.column("x").to_pylist()) == {expected}
    assert None not in answer.margins.column("n").to_pylist()


@pytest.mark.parametrize(
    "value",
    [
        "COALESCE(NULLIF(n, {n}), 'eleven')",
        "DATE '2024-02-03' + INTERVAL 1 YEAR * CASE WHEN n = {n} THEN 999999999 ELSE 1 END",
        "CASE WHEN n = {n} THEN 'foo' ELSE '3' END = 5",
        "SUM(COALESCE(NULLIF(n, {n}), 'eleven')) OVER (PARTITION BY sex)",
    ],
)
def test_what_fails_at_one_noisy_number_is_null_there(curator: Curator, value: str) -> None:
    """No made-up number met it before the charge, so it is answered all the same."""
    groups = "(SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS t"
    counts = curator.ask(
        f"SELECT sex, n FROM {groups}", analyst="ann", epsilon="50"
    ).table.to_pylist()
    n = max(each["n"] for each in counts)  # not zero, which is made up too
    asked = f"SELECT sex, {value.format(n=n)} AS x FROM {groups}"
    found = {
        each["sex"]: each["x"]
        for each in curator.ask(asked, analyst="ann", epsilon="50").table.to_pylist()
    }
    assert all((found[each["sex"]] is None) == (each["n"] == n) for each in counts)


@pytest.mark.parametrize(
    "value",
    [
        "DATE '9999-12-31' + 1",
        "MAX(day) + INTERVAL 8000 YEAR",
        "MIN(day) - 800000",
        "CAST('infinity' AS TIMESTAMP)",
    ],
)
def test_a_day_that_no_calendar_has_is_null(curator: Curator, value: str) -> None:
    answer = curator.ask(
        f"SELECT {value} AS x, COUNT(*) AS n FROM visits", analyst="ann", epsilon="1"
    )
    assert answer.as_json()["rows"][0][0] is None
    assert "–" in str(answer) or "NULL" in str(answer)


def test_a_text_has_no_margin(curator: Curator) -> None:
    answer = curator.ask(
        "SELECT 'about ' || COUNT(*) AS x, COUNT(*) + 1 AS n FROM people",
        analyst="ann",
        epsilon="1",
    )
    assert answer.table.column("x")[0].as_py().startswith("about ")
    assert answer.margins.column("x").to_pylist() == [None]
    assert answer.margins.column("n")[0].as_py() > 0


def test_which_group_is_the_largest(curator: Curator) -> None:
    groups = "(SELECT sex, 1000 * COUNT(*) AS n FROM people GROUP BY sex) AS t"
    every = curator.ask(
        f"SELECT sex, n FROM {groups}", analyst="ann", epsilon="50"
    ).table.to_pylist()
    picked = "ARG_MAX(sex, n) AS sex, QUANTILE_DISC(n, 1) AS n, BOOL_AND(n > 1000000) AS large"
    found = curator.ask(
        f"SELECT {picked} FROM {groups}", analyst="ann", epsilon="50"
    ).table.to_pylist()[0]
    assert not found.pop("large")
    assert found in every
    assert found["n"] == max(each["n"] for each in every)
    with pytest.raises(Rejected, match="lists several values"):
        curator.ask(f"SELECT ARG_MAX(sex, n, n) AS most FROM {groups}", analyst="ann", epsilon="1")


def test_several_rows_that_noise_does_not_decide_are_refused_unpaid(curator: Curator) -> None:
    paid = curator.ledger()
    groups = "WITH g AS (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)"
    with pytest.raises(Rejected, match="one row and one column"):
        curator.ask(f"{groups} SELECT n, (SELECT n FROM g) AS x FROM g", analyst="ann", epsilon="1")
    assert curator.ledger() == paid


def test_every_query_of_every_plan_binds(curator: Curator) -> None:
    """The tables without rows are those of the snapshot: nothing that is answered is refused for
    its binding.
    """
    for case in harness.cases():
        if case.policy == "hospital":
            for block in harness.plan_of(case).blocks:
                for query in block.queries:
                    curator._view.engine.check(query)


def test_margins_of_noise_beyond_64_bits() -> None:
    """Draws of a very large scale are Python's integers, of which numpy takes no root."""
    noise = DiscreteLaplace(scale=Fraction(10**22), l1=Fraction(10**20))
    together = Together(
        degree=2,
        widths=(25_000, 25_000),
        steps=(Fraction(1), Fraction(1)),
        sample=False,
        correlation=True,
    )
    parts = tuple(np.array([5 * 10**20, 0], dtype=object) for _ in range(9))
    assert np.isfinite(together.margins(parts, noise)).all()
    spread = Spread(lo=0, width=10**9, step=Fraction(1), sample=True, root=True)
    assert np.isfinite(spread.margins(parts[:3], noise)).all()
