"""Attacks that worked on others: each succeeds here against a strawman, and fails against us.

The strawmen are as small as the mistake allows; what we run is the real thing, through
`Curator.ask` where it is asked.
"""

from __future__ import annotations

import math
import multiprocessing
import shutil
import statistics
import threading
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.binding import create_ledger
from discreet.curator import Curator
from discreet.errors import BudgetExceeded, DiscreetError, LedgerUnavailable
from discreet.ledger import Ledger
from discreet.mechanisms.discrete_laplace import DiscreteLaplace
from discreet.noise import Items, Stream

POLICY = """\
unit: person
neighbors: add_remove
tables:
  people:
    owner: person_id
    columns:
      person_id: {identifier: true}
      age: {integer: [0, 120]}
      income: {decimal: [0, 200000], step: 0.01, nullable: true}
      sex: {values: [F, M]}
      zip: text
  visits:
    owner: person_id
    max_rows: 3
    columns:
      person_id: {identifier: true}
      cost: {decimal: [0, 1000], step: 0.01}
  offices: {public: true}
budget: {epsilon: EPSILON, delta: 1e-9}
limits: {epsilon: 100, seconds: 20DEADLINE}
analysts:
  alice: {epsilon: EPSILON}
  bob: {epsilon: EPSILON}
"""
VICTIM = 7


def people(
    *, victim_income: float = 56274.0, victim: bool = True, n: int = 200
) -> dict[str, pa.Table]:
    ids = [i for i in range(n) if victim or i != VICTIM]
    income = [victim_income if i == VICTIM else 20000.0 + i for i in ids]
    visits = [i for i in ids for _ in range(60 if i == VICTIM else 1)]
    return {
        "people": pa.table(
            {
                "person_id": ids,
                "age": [30 + i % 40 for i in ids],
                "income": income,
                "sex": ["FM"[i % 2] for i in ids],
                "zip": ["99999" if i == VICTIM else "10001" for i in ids],
            }
        ),
        "visits": pa.table({"person_id": visits, "cost": [10.0 for _ in visits]}),
        "offices": pa.table(
            {"zip": ["10001", "99999"], "opened": [date(2020, 1, 1), date(2021, 1, 1)]}
        ),
    }


def opened(
    folder: Path, tables: dict[str, pa.Table], *, epsilon: object = 1000, deadline: str = ""
) -> Curator:
    folder.mkdir(exist_ok=True)
    path = folder / "policy.yaml"
    text = POLICY.replace("EPSILON", str(epsilon)).replace(
        "DEADLINE", f", deadline: {deadline}" if deadline else ""
    )
    path.write_text(text, encoding="utf-8")
    create_ledger(discreet.Policy.read(path))
    return discreet.open(path, tables=tables)


@pytest.fixture
def curator(tmp_path: Path) -> Curator:
    return opened(tmp_path / "town", people())


def outcome(curator: Curator, sql: str, epsilon: object = "0.001") -> str:
    """Status and message: what an analyst sees apart from numbers."""
    try:
        curator.ask(sql, analyst="alice", epsilon=epsilon)
    except DiscreetError as error:
        return f"{type(error).__name__}: {error}"
    return "answered"


# --- noise ----------------------------------------------------------------------------------------


def test_low_bits_of_noise(curator: Curator) -> None:
    """Mironov 2012: which doubles x + Laplace noise can be depends on x; ours are integers on a
    public grid.
    """

    def float_laplace(x: float, n: int) -> np.ndarray[Any, Any]:
        u = np.random.default_rng().random(n)
        return x + np.where(u < 0.5, 1, -1) * np.log(1 - np.random.default_rng().random(n)) / 1.0

    grids = [np.abs(float_laplace(x, 4000)) for x in (0.0, 1024.0)]
    # Around 0 the noise uses all 52 bits below 1; around 1024 the last ten are always zero.
    fine = [np.mean(np.mod(grid * 2.0**50, 1.0) != 0) for grid in grids]
    assert fine[0] > 0.3
    assert fine[1] == 0  # one look at an answer's low bits tells which of the two it was

    for x in (0, 1024):
        noisy = DiscreteLaplace(scale=Fraction(1), l1=Fraction(1)).add_to(
            np.full(4000, x), Stream.fresh(), Items.positions(4000)
        )
        assert noisy.dtype == np.int64
    income = (
        curator.ask("SELECT SUM(income) FROM people", analyst="alice", epsilon=1)
        .table.column(0)[0]
        .as_py()
    )
    # a cent is the public grid, whatever the noise
    assert Fraction(income) * 100 == int(Fraction(income) * 100)


def test_precision_and_order_of_sums(tmp_path: Path) -> None:
    """Casacuberta et al. 2022: one person's row moves a float sum by more than its value, by
    rounding or by order.
    """
    rows = [2.0**53] + [1.0] * 100
    assert sum(rows) - sum(reversed(rows)) == -100  # the order alone
    assert float(np.float64(2.0**53) + 1) == 2.0**53  # and a person with value 1 can vanish

    sums = []
    for tables in (
        people(),
        {**people(), "people": people()["people"].take(list(range(199, -1, -1)))},
    ):
        curator = opened(tmp_path / str(len(sums)), tables)
        [block] = curator._view.plan("SELECT SUM(income) FROM people").blocks
        sums.append(curator._view.engine.fetch(block.sums, 10).unwrap().column(0)[0].as_py())
    assert (
        sums[0]
        == sums[1]
        == sum(round(100 * x) for x in people()["people"].column("income").to_pylist())
    )


def test_overflow(curator: Curator) -> None:
    """A sum that wraps or fails for one large row: the strawman's engine raises, ours refuses by
    the bounds alone.
    """
    with pytest.raises(duckdb.Error):
        duckdb.sql(
            "SELECT sum(CAST(x AS BIGINT) * CAST(x AS BIGINT)) FROM (VALUES (4000000000)) AS t(x)"
        ).fetchall()
    for power in range(1, 9):
        assert outcome(curator, f"SELECT SUM(POWER(income, {power})) FROM people").startswith(
            ("answered", "Rejected")
        )
    assert (
        outcome(curator, "SELECT SUM(LEAST(income * income * income, 5)) FROM people") == "answered"
    )


def test_averaging_by_repetition_and_paraphrase(tmp_path: Path) -> None:
    """Without a ledger the mean of many answers is the exact one; here it is the same answer again,
    or over budget.
    """
    many = [200 + x for x in np.random.default_rng().laplace(0, 10, 4000)]
    assert abs(statistics.fmean(many) - 200) < 2

    curator = opened(tmp_path / "town", people(), epsilon=1)
    paraphrases = (
        "SELECT COUNT(*) FROM people",
        "select count(*) from people",
        "SELECT COUNT(*) FROM people AS p",
        "SELECT COUNT(*) FROM (SELECT * FROM people) AS q",
        "SELECT COUNT(1) FROM people WHERE TRUE",
    )
    for _ in range(3):
        again = [
            curator.ask(paraphrases[0], analyst=who, epsilon="0.1") for who in ("alice", "bob")
        ]
        assert len({answer.table.column(0)[0].as_py() for answer in again}) == 1
    spent: list[Any] = []

    def insist() -> None:
        # always a little more than before, so that no stored answer will do
        for index in range(1000):
            price = Fraction(2, 10) + Fraction(index, 10**6)
            for sql in paraphrases:
                spent.append(curator.ask(sql, analyst="alice", epsilon=price).cost.epsilon)

    with pytest.raises(BudgetExceeded):
        insist()
    assert 0 < sum(spent) <= 1


def test_negative_and_odd_epsilon(curator: Curator) -> None:
    """Qrlew gave the exact sum for epsilon -1: a scale of -1 / epsilon is noise to nobody."""
    left = curator._ledger.left("alice")
    odd = (
        -1,
        0,
        "nan",
        "inf",
        float("nan"),
        float("inf"),
        -0.0,
        "1e-400",
        1e308,
        "2",
        None,
        True,
        "0x1",
        "1/0",
        [],
    )
    for epsilon in (*odd[:9], *odd[10:]):
        with pytest.raises(DiscreetError):
            curator.ask("SELECT COUNT(*) FROM people", analyst="alice", epsilon=epsilon)
    assert curator._ledger.left("alice") == left


# --- one person's value ---------------------------------------------------------------------------

ORACLES = (
    "SELECT COUNT(*) FROM people WHERE 1 / (income - 56274) > 0",
    "SELECT SUM(1 / (income - 56274)) FROM people",
    "SELECT SUM(SQRT(56273 - income)) FROM people WHERE person_id = 7",
    "SELECT SUM(LN(income - 56274)) FROM people WHERE person_id = 7",
    "SELECT SUM(CAST(zip AS INTEGER)) FROM people",
    "SELECT SUM(CASE WHEN income > 56000 AND person_id = 7 THEN 1 / (age - age) ELSE 0 END) FROM people",
    "SELECT COUNT(*) FROM people WHERE income = (SELECT income FROM people WHERE age > 30)",
    "SELECT error(zip) FROM people",
    "SELECT COUNT(*) FROM people WHERE zip ~ '(a+)+$'",
    "SELECT SUM(LEAST(income * income * income * age, 5)) FROM people WHERE person_id = 7 AND income > 56000",
    "SELECT SUM((income * 100 + 4600000000000) / (age + 4600000000000000000)) FROM people WHERE income > 56000",
    "SELECT COUNT(*) FROM people a JOIN people b ON a.income > b.income",
    "SELECT MEDIAN(income * income * income) FROM people WHERE income > 56000",
    "SELECT COUNT(*) FROM (SELECT EXP(income) AS e FROM people) AS t WHERE e > 0",
    "SELECT DATE '2020-01-01' + CAST(income AS INTEGER), COUNT(*) FROM people GROUP BY 1",
    "SELECT COUNT(DISTINCT zip || zip || zip) FROM people",
)


def test_errors_as_an_oracle(tmp_path: Path) -> None:
    """Is the victim's income 56274? The strawman's engine fails on exactly that row; ours says the
    same either way.
    """
    asked = "SELECT sum((income - 56000)::TINYINT)"
    strawman = [_fails(asked, each) for each in (people(), people(victim_income=56100.0))]
    assert strawman == [True, False]
    worlds = {
        "victim": people(),
        "other income": people(victim_income=1.0),
        "without": people(victim=False),
        "nobody": {
            name: table if name == "offices" else table.slice(0, 0)
            for name, table in people().items()
        },
    }
    curators = [
        opened(tmp_path / name.replace(" ", "_"), tables) for name, tables in worlds.items()
    ]
    for sql in ORACLES:
        seen = {outcome(curator, sql) for curator in curators}
        assert len(seen) == 1, (sql, seen)
        assert "56274" in sql or "56274" not in next(iter(seen))


def _fails(sql: str, tables: dict[str, pa.Table]) -> bool:
    incomes = ", ".join(
        f"({x})" for x in tables["people"].column("income").to_pylist() if x > 50000
    )
    try:
        duckdb.sql(f"{sql} FROM (VALUES {incomes}) AS t(income)").fetchall()
    except duckdb.Error:
        return True
    return False


def test_not_a_number(tmp_path: Path) -> None:
    """NaN survives min and max, and then it is the whole sum: one look tells that somebody has
    it.
    """
    assert math.isnan(np.clip(np.array([1.0, math.nan]), 0, 10).sum())
    for value in (float("nan"), float("inf"), -float("inf"), -0.0):
        curator = opened(tmp_path / str(value), people(victim_income=value))
        found = curator.ask(
            "SELECT SUM(income), AVG(income) FROM people", analyst="alice", epsilon=50
        ).table
        total = float(found.column(0)[0].as_py())
        assert math.isfinite(total)
        assert abs(total - sum(20000 + i for i in range(200))) < 400_000


def test_rare_key(tmp_path: Path) -> None:
    """A GROUP BY that lists every key shows that somebody lives in 99999; ours shows it once in a
    billion answers.
    """
    straw = (
        people()["people"].group_by("zip").aggregate([("zip", "count")]).column("zip").to_pylist()
    )
    assert "99999" in straw
    curator = opened(tmp_path / "town", people(), epsilon=1000)
    for price in range(1, 8):
        shown = curator.ask(
            "SELECT zip, COUNT(*) FROM people GROUP BY zip", analyst="alice", epsilon=price
        ).table
        assert "99999" not in shown.column(0).to_pylist()
        assert "10001" in shown.column(0).to_pylist()


def test_rows_instead_of_people(tmp_path: Path) -> None:
    """60 rows of one person move a row-level count by 60 sigma; ours keeps three of them."""
    with_, without = (people(victim=victim)["visits"].num_rows for victim in (True, False))
    assert with_ - without == 60
    counts = []
    for victim in (True, False):
        curator = opened(tmp_path / str(victim), people(victim=victim))
        offered = curator._view.offer(
            "SELECT COUNT(*) FROM visits", epsilon=1, margin=None, assuming=None
        )
        counts.append(
            curator._view.engine.fetch(offered.plan.blocks[0].sums, 10)
            .unwrap()
            .column(0)[0]
            .as_py()
        )
        assert offered.plan.blocks[0].statistics[0].sensitivity.l1 == 3
    assert counts[0] - counts[1] == 3


def test_limit_inside(curator: Curator) -> None:
    """The ten largest incomes are other people's when one person comes: refused, wherever the LIMIT
    stands.
    """
    incomes = sorted([20000.0 + i for i in range(200)], reverse=True)
    assert sum(sorted([*incomes, 200000.0], reverse=True)[:1]) - sum(incomes[:1]) > 100_000
    for sql in (
        "SELECT SUM(income) FROM (SELECT income FROM people ORDER BY income DESC LIMIT 10) AS t",
        "SELECT SUM(income) FROM (SELECT income FROM people LIMIT 1) AS t",
        "SELECT COUNT(*) FROM (SELECT * FROM people OFFSET 3) AS t",
        "SELECT SUM(n) FROM (SELECT ROW_NUMBER() OVER (ORDER BY income) AS n FROM people) AS t",
        "SELECT SUM(n) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY NULLIF(person_id, person_id)) AS n FROM people) t",
        "SELECT COUNT(*) FROM people TABLESAMPLE 10%",
        "SELECT COUNT(*) FROM offices LEFT JOIN people ON offices.zip = people.zip",
        "SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1 FROM visits WHERE cost > 5)",
        "SELECT COUNT(*) FROM people WHERE person_id IN (SELECT person_id FROM visits LIMIT 1)",
    ):
        assert outcome(curator, sql).startswith("Rejected"), sql


# --- the budget -----------------------------------------------------------------------------------


def _ask_in_child(path: str, queue: Any) -> None:
    try:
        answer = discreet.open(path).ask(
            "SELECT SUM(age) FROM people", analyst="alice", epsilon="0.6"
        )
        queue.put(answer.table.column(0)[0].as_py())
    except DiscreetError as error:
        queue.put(type(error).__name__)


def test_fork_and_race(tmp_path: Path) -> None:
    """OpenDP's context after a fork gave five answers from a budget of one: a copy in memory is no
    budget.
    """
    budgets = [1.0]
    copies = [list(budgets) for _ in range(5)]
    assert sum(copy.pop() for copy in copies) == 5.0

    folder = tmp_path / "town"
    curator = opened(folder, people(), epsilon=1)
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    children = [
        context.Process(target=_ask_in_child, args=(str(folder / "policy.yaml"), queue))
        for _ in range(2)
    ]
    for child in children:
        child.start()
    results = [queue.get(timeout=120) for _ in children]
    for child in children:
        child.join()
    assert len(set(results)) == 1, results  # one charge, one answer, whoever asks
    spent: list[str] = []

    def race(age: int) -> None:
        spent.append(outcome(curator, f"SELECT COUNT(*) FROM people WHERE age > {age}", "0.3"))

    threads = [threading.Thread(target=race, args=(age,)) for age in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(each == "answered" for each in spent) == 1  # 0.6 is gone, and 0.3 fits once
    assert curator._ledger.spent().amount <= 1


def test_rollback_of_the_ledger(tmp_path: Path) -> None:
    """An older copy of a counter is a fresh budget; ours does not lie on the exported head, and
    says so.
    """
    folder = tmp_path / "town"
    curator = opened(folder, people(), epsilon=1)
    ledger = Path(curator.policy.ledger)
    saved = tmp_path / "saved"
    shutil.copytree(folder, saved)
    curator.ask("SELECT COUNT(*) FROM people", analyst="alice", epsilon=1)
    head = curator._ledger.head()
    curator._ledger.close()
    for file in ledger.parent.glob(ledger.name + "*"):
        if file.is_file():
            file.unlink()
    for file in saved.glob(ledger.name + "*"):
        if file.is_file():
            shutil.copy(file, ledger.parent / file.name)
    with pytest.raises(LedgerUnavailable), Ledger.open(ledger) as older:
        older.verify(head)


def test_tiny_epsilon_does_not_determine_the_value(curator: Curator) -> None:
    """At epsilon 0.001 no answer is within 3 of the exact one twice in a row, by more than
    chance.
    """
    near = 0
    for age in range(30):
        answer = curator.ask(
            f"SELECT COUNT(*) FROM people WHERE age > {age - 1}", analyst="alice", epsilon="0.001"
        )
        near += abs(answer.table.column(0)[0].as_py() - 200) <= 3
    assert near <= 8  # each with probability 0.0035; eight by chance, 1e-15


def test_time_in_hardened_mode(tmp_path: Path) -> None:
    """A question that is slow for one person only: without a deadline its time tells, with one it
    does not.
    """
    import time

    slow = (
        "SELECT COUNT(*) FROM visits a JOIN visits b ON a.person_id = b.person_id"
        " JOIN visits c ON a.person_id = c.person_id WHERE a.person_id = 7"
    )
    for name, tables in (("victim", people()), ("without", people(victim=False))):
        curator = opened(tmp_path / name, tables, deadline="0.6s")
        outcome(curator, "SELECT COUNT(*) FROM people")  # which a busy machine may refuse
        began = time.monotonic()
        said = outcome(curator, slow)
        took = time.monotonic() - began
        assert took >= 0.6
        # overrun: charged, and refused no earlier than the deadline
        assert said == "answered" or took > 0.6
