"""The flow: what is charged and what is free, what a crash leaves behind, and that no private row
reaches Python.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from discreet.binding import create_ledger
from discreet.curator import Curator
from discreet.door import Door
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.duckdb.store import SnapshotFolder
from discreet.errors import BudgetExceeded, EngineFailure, LedgerUnavailable, Rejected, UsageError
from discreet.ledger import Ledger
from discreet.ledger.stores.sqlite import File
from discreet.policy.policy import Policy
from discreet.vault.answer import Answer
from discreet.vault.exact import Exact
from small_town import POLICY as SMALL
from small_town import town
from sql import bounded, harness, policies

_REST = """
neighbors: {neighbors}
budget: {{epsilon: 4, delta: 1e-9, accountant: {accountant}}}
limits: {{epsilon: 1}}
analysts:
  alice: {{epsilon: 2}}
  bob: {{epsilon: 1}}
"""
COUNT = "SELECT COUNT(*) AS n FROM pupils"


def written(folder: Path, *, neighbors: str = "add_remove", accountant: str = "sum") -> Path:
    """The school's policy, with a budget that runs out."""
    file = folder / "school.yaml"
    file.write_text(
        policies.SCHOOL + _REST.format(neighbors=neighbors, accountant=accountant), encoding="utf-8"
    )
    return file


def source(people: int = 40) -> dict[str, pa.Table]:
    tables = bounded.tidy(policies.policy("school"), people=people, dice=random.Random())
    return {**tables, **policies.public("school")}


@pytest.fixture
def tables() -> dict[str, pa.Table]:
    return source()


@pytest.fixture
def opened(tmp_path: Path, tables: dict[str, pa.Table]) -> Callable[..., Curator]:
    """Opens the school; its ledger is made at the first time."""

    def open_it(**terms: str) -> Curator:
        policy = Policy.read(written(tmp_path, **terms))
        if not Path(str(policy.ledger)).exists():
            create_ledger(policy)
        return Curator(policy, tables=tables)

    return open_it


@pytest.fixture
def curator(opened: Callable[..., Curator]) -> Curator:
    return opened()


def released(answer: Answer) -> bytes:
    """What everybody who asks the same must get, byte by byte."""
    return b"".join(map(written_out, (answer.table, answer.margins))) + bytes(answer.selected)


def written_out(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue().to_pybytes())


def spent(curator: Curator) -> Fraction:
    return sum((entry.cost.amount for entry in curator.ledger()), Fraction(0))


# --- repeats and paraphrases ----------------------------------------------------------------------


@pytest.mark.parametrize("accountant", ["sum", "zcdp"])
def test_the_same_question_again_is_free_and_the_same(
    opened: Callable[..., Curator], accountant: str
) -> None:
    curator = opened(accountant=accountant)
    first = curator.ask(COUNT, analyst="alice", epsilon="0.5")
    before = spent(curator)
    again = curator.ask(COUNT, analyst="alice", epsilon="0.5")
    other = curator.ask(COUNT, analyst="bob", epsilon="0.5")
    assert released(first) == released(again) == released(other)
    assert first.id == again.id == other.id
    assert again.cost.epsilon == 0
    assert again.left == first.left
    assert spent(curator) == before


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT COUNT(*) AS n FROM pupils", "select   count(*) as n\nfrom pupils -- the same\n;"),
        (
            "SELECT COUNT(*) AS n FROM pupils WHERE grade = 6",
            "SELECT COUNT(*) AS n FROM pupils AS p WHERE p.grade = 6",
        ),
        (
            "SELECT sex, COUNT(*) AS n FROM pupils GROUP BY sex",
            "SELECT p.sex, COUNT(*) AS n FROM pupils p GROUP BY 1",
        ),
        ("SELECT AVG(height) AS h FROM pupils", "SELECT AVG(PUPILS.Height) AS h FROM Pupils"),
        ("SELECT SUM(lessons) AS n FROM absences", "(SELECT SUM(lessons) AS n FROM absences)"),
        (
            "SELECT COUNT(*) AS n FROM pupils WHERE bus",
            "SELECT COUNT(*) AS n FROM pupils WHERE (bus)",
        ),
        (
            "SELECT COUNT(*) AS n FROM marks WHERE mark > 4",
            "SELECT COUNT(*) AS n FROM marks WHERE mark > 4.0",
        ),
    ],
)
def test_paraphrases_are_one_question(curator: Curator, one: str, other: str) -> None:
    first, again = (curator.ask(sql, analyst="alice", epsilon="0.5") for sql in (one, other))
    assert released(first) == released(again)
    assert len(curator.ledger()) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "SELECT CASE WHEN bus THEN 'a' ELSE 'b' END AS k, COUNT(*) AS n FROM pupils GROUP BY k",
            "SELECT CASE WHEN bus THEN 'b' ELSE 'a' END AS k, COUNT(*) AS n FROM pupils GROUP BY k",
        ),
        (
            "SELECT COUNT(*) AS n FROM pupils WHERE street = 't1'",
            "SELECT COUNT(*) AS n FROM pupils WHERE street = 't2'",
        ),
    ],
)
def test_what_reads_alike_and_means_something_else_is_another_question(
    curator: Curator, one: str, other: str
) -> None:
    for sql in (one, other):
        curator.ask(sql, analyst="alice", epsilon="0.5")
    assert len(curator.ledger()) == 2


def test_blocks_that_differ_in_a_text_alone_are_measured_apart(curator: Curator) -> None:
    parts = [f"(SELECT COUNT(*) FROM pupils WHERE street = 't{number}')" for number in (1, 2)]
    sql = f"SELECT {parts[0]} AS a, {parts[1]} AS b, COUNT(*) AS n FROM pupils"
    assert len(curator.quote(sql, analyst="alice", epsilon="1").statistics) == 3


def test_a_smaller_epsilon_is_served_from_the_store_and_a_larger_one_charged(
    curator: Curator,
) -> None:
    first = curator.ask(COUNT, analyst="alice", epsilon="0.5")
    smaller = curator.ask(COUNT, analyst="alice", epsilon="0.1")
    assert released(smaller) == released(first)
    assert smaller.cost.epsilon == 0
    larger = curator.ask(COUNT, analyst="alice", epsilon="0.8")
    assert larger.id != first.id
    assert larger.cost.epsilon == Fraction(4, 5)
    assert spent(curator) == Fraction(13, 10)
    assert released(curator.ask(COUNT, analyst="alice", epsilon="0.6")) == released(larger)


def test_a_new_snapshot_charges_anew(curator: Curator) -> None:
    first = curator.ask(COUNT, analyst="alice", epsilon="0.5")
    curator.snapshot()
    again = curator.ask(COUNT, analyst="alice", epsilon="0.5")
    assert again.id != first.id
    assert spent(curator) == 1
    assert again.certificate["snapshot"] == first.certificate["snapshot"] + 1


def test_damaged_notes_are_left_behind_by_a_new_snapshot(opened: Callable[..., Curator]) -> None:
    """It was told to take one, and taking one read the same notes."""
    curator = opened()
    curator.snapshot()
    store = SnapshotFolder(Path(curator.policy.store))
    for damaged in (store.notes(2), store.file(3)):
        damaged.unlink()
        with pytest.raises(UsageError, match="discreet snapshot") as told:
            opened()
        assert str(store.path) not in str(told.value)
        made = curator.snapshot()
        assert (
            opened().ask(COUNT, analyst="alice", epsilon="0.1").certificate["snapshot"]
            == made.number
        )


def test_after_a_snapshot_of_somebody_else_the_policy_is_opened_again(
    opened: Callable[..., Curator],
) -> None:
    curator, other = opened(), opened()
    other.snapshot()
    works: list[Callable[[], Any]] = [
        lambda: curator.ask(COUNT, analyst="alice", epsilon="0.1"),
        lambda: curator.quote(COUNT, analyst="alice", epsilon="0.1"),
        lambda: curator.describe("pupils", epsilon="0.1"),
    ]
    for work in works:
        with pytest.raises(
            LedgerUnavailable, match="Snapshot 1 is not the current one, 2: open the policy again"
        ):
            work()
    assert spent(other) == 0
    assert opened().ask(COUNT, analyst="alice", epsilon="0.1").certificate["snapshot"] == 2


def test_a_forked_child_is_told_to_open_the_policy_again_and_pays_nothing(curator: Curator) -> None:
    works: list[Callable[[], Any]] = [
        lambda: curator.ask(COUNT, analyst="alice", epsilon="0.1"),
        lambda: curator.explain(COUNT, analyst="alice", epsilon="0.1"),
        lambda: curator.describe("pupils", epsilon="0.1"),
    ]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        for work in works:
            try:
                work()
            except BaseException as error:
                os.write(writing, f"{type(error).__name__}: {error}\n".encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as told:
        sentence = (
            "UsageError: The policy was opened before a fork. Open it again in the new process."
        )
        assert told.read().splitlines() == [sentence] * len(works)
    assert spent(curator) == 0
    curator.ask(COUNT, analyst="alice", epsilon="0.1")


def test_public_tables_are_exact_and_free(curator: Curator) -> None:
    answer = curator.ask(
        "SELECT subject, hours FROM subjects ORDER BY hours", analyst="alice", epsilon="1"
    )
    assert answer.table.to_pylist()[0] == {"subject": "art", "hours": 1}
    assert answer.cost.epsilon == 0
    assert not any(answer.selected)
    assert curator.ledger() == ()


# --- what a question may cost ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "epsilon",
    ["nan", "inf", "-inf", "-1", "0", "0.0", "1e308", "1e999", "1e-320", "2", "1.0000001", "", "one", float("nan"),
     float("inf"), float("-inf"), -1, 0, 1e308, 5e-324, True, [1], "1e-400", "٣²"],
)  # fmt: skip
def test_an_epsilon_that_is_none_changes_nothing(curator: Curator, epsilon: object) -> None:
    for call in (curator.ask, curator.quote, curator.explain):
        with pytest.raises(UsageError, match="epsilon"):
            call(COUNT, analyst="alice", epsilon=epsilon)
    assert curator.ledger() == ()
    assert curator.quote(COUNT, analyst="alice", epsilon="1").left.epsilon == 2


def test_either_epsilon_or_margin(curator: Curator) -> None:
    with pytest.raises(UsageError, match="Say what the answer may cost"):
        curator.ask(COUNT, analyst="alice")
    with pytest.raises(UsageError, match=r"Give epsilon, .* or margin, .* not both"):
        curator.ask(COUNT, analyst="alice", epsilon="1", margin="1")


@pytest.mark.parametrize("epsilon", ["1e-12", "1e-30", "1e-100", "1e-300"])
def test_a_tiny_epsilon_is_answered_with_nothing_but_noise(curator: Curator, epsilon: str) -> None:
    for sql in (
        COUNT,
        "SELECT AVG(height) AS h FROM pupils",
        "SELECT sex, SUM(height) AS n FROM pupils GROUP BY sex",
    ):
        try:
            answer = curator.ask(sql, analyst="alice", epsilon=epsilon)
        except UsageError:
            continue  # said before anything is charged
        assert answer.table.num_rows >= 1


def test_an_unknown_analyst_is_refused(curator: Curator) -> None:
    for call in (curator.ask, curator.quote, curator.explain):
        with pytest.raises(UsageError, match="mallory"):
            call(COUNT, analyst="mallory", epsilon="0.5")
    assert curator.ledger() == ()


@pytest.mark.parametrize("accountant", ["sum", "zcdp"])
def test_over_budget_nothing_is_read_or_charged(
    opened: Callable[..., Curator], accountant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    curator = opened(accountant=accountant)
    curator.ask(COUNT, analyst="bob", epsilon="1")
    before = spent(curator)
    monkeypatch.setattr(DuckDB, "fetch", lambda *_: pytest.fail("read without having paid"))
    with pytest.raises(BudgetExceeded):
        curator.ask("SELECT COUNT(*) AS n FROM marks", analyst="bob", epsilon="1")
    assert spent(curator) == before


def test_a_share_that_is_spent_is_spent(curator: Curator) -> None:
    for place, analyst in enumerate(["alice", "alice", "bob"]):
        curator.ask(
            f"SELECT COUNT(*) AS n FROM pupils WHERE height > {60 + place}",
            analyst=analyst,
            epsilon="1",
        )
    with pytest.raises(BudgetExceeded):
        curator.ask(COUNT, analyst="alice", epsilon="0.5")
    with pytest.raises(BudgetExceeded):
        curator.ask(COUNT, analyst="bob", epsilon="0.5")


def test_margin_finds_the_cheapest_epsilon(curator: Curator) -> None:
    for wanted in (5, 20, 100):
        quote = curator.quote(COUNT, analyst="alice", margin=wanted)
        assert quote.margins["n"] <= wanted
        cheaper = quote.cost.epsilon * Fraction(99, 100)
        assert curator.quote(COUNT, analyst="alice", epsilon=cheaper).margins["n"] > wanted
    answer = curator.ask(COUNT, analyst="alice", margin=20)
    assert answer.margins.column("n")[0].as_py() <= 20


def test_margin_of_a_mean_needs_a_number_of_rows(curator: Curator) -> None:
    sql = "SELECT AVG(height) AS h FROM pupils"
    with pytest.raises(UsageError, match="assuming"):
        curator.quote(sql, analyst="alice", margin=5)
    assert curator.quote(sql, analyst="alice", margin=5, assuming=1_000).cost.epsilon < 1


def test_a_margin_that_cannot_be_had(curator: Curator) -> None:
    with pytest.raises(UsageError, match="cannot be had"):
        curator.ask(COUNT, analyst="alice", margin="0.001")
    with pytest.raises(UsageError):
        curator.ask(
            "SELECT sex, MEDIAN(height) AS h FROM pupils GROUP BY sex", analyst="alice", margin=5
        )
    assert curator.ledger() == ()


# --- the lectures' own numbers --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "neighbors", "l1"),
    [
        ("SELECT COUNT(*) FROM pupils", "add_remove", 1),
        ("SELECT COUNT(*) FROM pupils WHERE height > 60", "add_remove", 1),
        ("SELECT sex, COUNT(*) FROM pupils GROUP BY sex", "add_remove", 1),
        ("SELECT sex, COUNT(*) FROM pupils GROUP BY sex", "change_one", 2),
        ("SELECT COUNT(*) FROM marks", "add_remove", 3),
        ("SELECT subject, COUNT(*) FROM marks GROUP BY subject", "add_remove", 3),
        ("SELECT SUM(height) FROM pupils", "add_remove", 96),
        ("SELECT AVG(height) FROM pupils", "add_remove", 48),
    ],
)
def test_the_numbers_of_the_lectures(
    opened: Callable[..., Curator], sql: str, neighbors: str, l1: int
) -> None:
    """A count has 1, with a filter too; group-by counts 1 and 2; m rows m; heights in [48, 96] have
    a width of 48.
    """
    (statistic,) = opened(neighbors=neighbors).quote(sql, analyst="alice", epsilon="1").statistics
    assert statistic["l1"] == l1
    assert statistic["scale"] == l1


# --- what a crash leaves --------------------------------------------------------------------------


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize("accountant", ["sum", "zcdp"])
def test_a_crash_before_posting_is_resumed_with_the_same_noise(
    opened: Callable[..., Curator], accountant: str, anew: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    curator, lost = opened(accountant=accountant), []
    sql = "SELECT grade, COUNT(*) AS n, AVG(height) AS h FROM pupils GROUP BY grade"

    def crash(ledger: Ledger, reservation: Any, answer: bytes, **_: Any) -> None:
        lost.append(answer)
        # the process ends; any other error closes the charge (tests/test_after_the_charge.py)
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "post", crash)
        for _ in range(2):
            with pytest.raises(SystemExit):
                curator.ask(sql, analyst="alice", epsilon="0.5")
    paid = spent(curator)
    assert [entry.state for entry in curator.ledger()] == ["open"]
    post = Ledger.post
    monkeypatch.setattr(
        Ledger, "post", lambda *given, **more: lost.append(given[2]) or post(*given, **more)
    )
    (opened(accountant=accountant) if anew else curator).ask(sql, analyst="alice", epsilon="0.5")
    assert lost == [lost[0]] * 3
    assert spent(curator) == paid
    assert [entry.state for entry in curator.ledger()] == ["posted"]


def test_a_failure_of_the_engine_stays_charged_and_says_nothing(
    curator: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> pa.Table:
        raise EngineFailure

    with monkeypatch.context() as patched:
        patched.setattr(DuckDB, "fetch", fail)
        with pytest.raises(EngineFailure, match="could not answer this question"):
            curator.ask(COUNT, analyst="alice", epsilon="0.5")
    assert spent(curator) == Fraction(1, 2)
    assert curator.ask(COUNT, analyst="alice", epsilon="0.5").cost.epsilon == Fraction(1, 2)
    assert spent(curator) == 1  # what failed is closed: it is charged anew


def test_charged_before_read(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    reserve, fetch, post = Ledger.reserve, DuckDB.fetch, Ledger.post
    monkeypatch.setattr(
        Ledger, "reserve", lambda *a, **k: order.append("charge") or reserve(*a, **k)
    )
    monkeypatch.setattr(DuckDB, "fetch", lambda *a, **k: order.append("read") or fetch(*a, **k))
    monkeypatch.setattr(Ledger, "post", lambda *a, **k: order.append("post") or post(*a, **k))
    curator.ask("SELECT AVG(mark) AS m, MEDIAN(mark) AS d FROM marks", analyst="alice", epsilon="1")
    assert order == ["charge", "read", "read", "post"]


# --- no private row reaches Python ----------------------------------------------------------------


def test_at_most_one_row_per_group_or_cell_leaves_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every question of plans.sql about a school of 3,000: what leaves the engine is bounded by
    groups, not people.
    """
    curator = bounded.opened(tmp_path, "school", source(3_000))
    fetch, fetch_parts, returned = DuckDB.fetch, DuckDB.fetch_parts, list[tuple[Any, int]]()

    def counted(engine: DuckDB, query: Any, seconds: float) -> Exact:
        exact = fetch(engine, query, seconds)
        returned.append((query, exact.unwrap().num_rows))
        return exact

    def counted_parts(engine: DuckDB, query: Any, seconds: float, rows: int) -> Exact:
        parts = list(fetch_parts(engine, query, seconds, rows).unwrap_parts())
        returned.append((query, sum(part.num_rows for part in parts)))
        return Exact(parts)

    monkeypatch.setattr(DuckDB, "fetch", counted)
    monkeypatch.setattr(DuckDB, "fetch_parts", counted_parts)
    for case in (case for case in harness.cases() if case.policy == "school"):
        plan = harness.plan_of(case)
        returned.clear()
        curator.ask(case.sql, analyst="ann", epsilon="1")
        if any(block.unknown for block in plan.blocks):
            assert all(
                rows <= 3 * max(1, block.cells) for block in plan.blocks for _, rows in returned
            )
            continue
        cells = [min(pick.domain.size, pick.fan) for block in plan.blocks for pick in block.picks]
        most = max((block.cells for block in plan.blocks), default=1) * max([1, *cells])
        assert all(rows <= most for _, rows in returned), case.id
        assert all(
            re.search(r" (count|sum|sum_no_overflow)\(", curator._view.engine.sql(each))
            for each, _ in returned
        )


# --- order of rows, threads, other people ---------------------------------------------------------

ORDER_MATTERS = (
    "SELECT subject, COUNT(*) AS n FROM (SELECT subject, ROW_NUMBER() OVER (PARTITION BY pupil_id ORDER BY mark) AS i"
    " FROM marks) AS t WHERE i = 1 GROUP BY subject",
    "SELECT SUM(points) AS p FROM (SELECT pupil_id, ARG_MAX(points, mark) AS points FROM marks GROUP BY pupil_id) AS t",
    "SELECT SUM(mark - last) AS d FROM (SELECT mark, LAG(mark) OVER (PARTITION BY pupil_id ORDER BY subject) AS last"
    " FROM marks) AS t",
    "SELECT subject, SUM(points) AS p, COUNT(*) AS n FROM marks GROUP BY subject",
    "SELECT grade, STDDEV(height) AS h FROM pupils GROUP BY grade",
    "SELECT street, COUNT(*) AS n FROM pupils GROUP BY street",
)


def test_neither_order_nor_threads_nor_other_people_change_which_rows_are_kept(
    tmp_path: Path,
) -> None:
    """People have up to five marks where three are allowed, many of them tied."""
    dice = random.Random()
    tables = bounded.dirty(policies.policy("school"), people=60, dice=dice)
    kept: list[list[Any]] = []
    for attempt in range(3):
        order = list(range(tables["marks"].num_rows))
        dice.shuffle(order)
        shuffled = {**tables, "marks": tables["marks"].take(pa.array(order))}
        folder = tmp_path / str(attempt)
        curator = (
            bounded.opened(folder, "school", shuffled)
            if not kept
            else _with_key(folder, shuffled, tmp_path / "0")
        )
        copy = shutil.copy(
            SnapshotFolder(Path(curator.policy.store)).file(1), folder / "copy.duckdb"
        )
        engine = DuckDB(copy, memory=10**9, threads=1 + attempt)
        answers = [
            curator.ask(sql, analyst="ann", epsilon="1e45").table.to_pylist()
            for sql in ORDER_MATTERS
        ]
        rows = engine.read('SELECT * FROM "marks" ORDER BY ALL', 60).to_pylist()
        kept.append([answers, rows])
    assert kept[0] == kept[1] == kept[2]


def _with_key(folder: Path, tables: dict[str, pa.Table], other: Path) -> Curator:
    """A curator whose store orders rows by the same key as another's."""
    store = folder / "school.store"
    store.mkdir(parents=True)
    (store / "order.key").write_text((other / "school.store" / "order.key").read_text())
    return bounded.opened(folder, "school", tables)


def test_a_snapshot_that_another_thread_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A charge is carried out on the snapshot that it was made for: the same noise is never on
    two.
    """
    tables = town(victim=True)
    policy = Policy.parse(
        SMALL.replace("NEIGHBORS", "add_remove").replace("ACCOUNTANT", "sum"),
        path=tmp_path / "town.yaml",
    )
    create_ledger(policy)
    curator = Curator(policy, tables=tables)

    reserve = Door._reserve

    def late(door: Door, request: Any) -> Any:
        """Another snapshot is taken when the question is charged, and not yet carried out."""
        charge = reserve(door, request)
        if curator._view.number == 1:
            tables.update(town(victim=False))
            curator.snapshot()
        return charge

    monkeypatch.setattr(Door, "_reserve", late)
    sql = "SELECT COUNT(*) AS n FROM people"
    first, second = (curator.ask(sql, analyst="alice", epsilon=100) for _ in range(2))
    assert [each.certificate["snapshot"] for each in (first, second)] == [1, 2]
    assert [each.table["n"][0].as_py() for each in (first, second)] == [60, 59]


def test_one_more_person_changes_no_row_of_others(tmp_path: Path) -> None:
    dice = random.Random()
    tables = bounded.dirty(policies.policy("school"), people=30, dice=dice)
    newcomer = {name: _renamed(table, 999) for name, table in tables.items()}
    more = {
        name: pa.concat_tables([table, newcomer[name].slice(0, 6)])
        for name, table in tables.items()
    }
    curator = bounded.opened(tmp_path / "0", "school", tables)
    other = _with_key(tmp_path / "1", more, tmp_path / "0")
    for name in ("marks", "absences", "pupils"):
        sql = f'SELECT * FROM "{name}" WHERE "#owner" <> 999 ORDER BY ALL'
        before, after = (each._view.engine.read(sql, 60).to_pylist() for each in (curator, other))
        assert before == after


def _renamed(table: pa.Table, owner: int) -> pa.Table:
    place = table.schema.get_field_index("pupil_id")
    return table.set_column(place, "pupil_id", pa.array([owner] * table.num_rows, pa.int64()))


# --- what an answer carries -----------------------------------------------------------------------


@pytest.mark.parametrize("accountant", ["sum", "zcdp"])
def test_the_certificate_is_enough_to_audit(
    opened: Callable[..., Curator], accountant: str
) -> None:
    curator = opened(accountant=accountant)
    answer = curator.ask(
        "SELECT sex, AVG(height) AS h FROM pupils GROUP BY sex", analyst="alice", epsilon="0.5"
    )
    certificate = answer.certificate
    wanted = {"question", "unit", "neighbors", "statistics", "mechanisms", "cost", "ledger"}
    assert wanted <= set(certificate)
    assert certificate["unit"] == "pupil"
    assert len(certificate["statistics"]) == len(certificate["mechanisms"]) == 1
    assert certificate["cost"]["exact"]["epsilon"] == str(answer.cost.epsilon)
    assert (certificate["cost"]["rho"] is None) == (accountant == "sum")


def test_explain_and_quote_read_nothing(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DuckDB, "fetch", lambda *_: pytest.fail("a quote read data"))
    for case in (case for case in harness.cases() if case.policy == "school"):
        assert str(curator.quote(case.sql, analyst="alice", epsilon="1")).startswith("cost ")
        text = curator.explain(case.sql, analyst="alice", epsilon="1")
        assert re.match(r"1\. ", text)
    assert curator.ledger() == ()


def test_quantiles_are_quoted_in_ranks(curator: Curator) -> None:
    picks = "MEDIAN(height) AS m, MIN(height) AS least, QUANTILE_CONT(height, [0.2, 0.5]) AS two"
    sql = f"SELECT {picks}, COUNT(*) AS n FROM pupils"
    few, many = (
        curator.quote(sql, analyst="alice", epsilon=epsilon).margins for epsilon in ("1", "0.1")
    )
    assert set(few) == {"m", "least", "two", "n"}
    for name in ("m", "least", "two"):
        assert 5 <= many[name]["ranks"] / few[name]["ranks"] <= 20  # type: ignore[index]
    assert f"m: within {few['m']['ranks']} ranks" in str(
        curator.quote(sql, analyst="alice", epsilon="1")
    )  # type: ignore[index]
    handed_on = "SELECT MAX(m) AS m FROM (SELECT grade, MEDIAN(height) AS m FROM pupils GROUP BY grade) AS t"
    assert curator.quote(handed_on, analyst="alice", epsilon="1").margins == {}


def test_answers_do_not_print_exact_values(tmp_path: Path) -> None:
    """At a tiny epsilon nothing of the exact answer is in any part of what is released.

    Of 120 pupils it has four digits; of 40 it may have three, and then be among those of
    123,456,789 by chance.
    """
    policy = Policy.read(written(tmp_path))
    create_ledger(policy)
    curator = Curator(policy, tables=source(120))
    answer = curator.ask("SELECT SUM(height) AS x FROM pupils", analyst="alice", epsilon="1e-9")
    truth = sum(value for value in curator._tables["pupils"].column("height").to_pylist() if value)  # type: ignore[index]
    assert truth >= 1000
    assert not re.search(rf"\b{truth}\b", f"{answer} {answer.certificate} {answer.as_json()}")


@pytest.mark.parametrize(
    ("seed", "times"), [("some", 300), pytest.param(None, 100_000, marks=pytest.mark.slow)]
)
def test_every_refusal_is_one_of_ours(curator: Curator, seed: str | None, times: int) -> None:
    """Whatever is asked, what comes back is an answer or a sentence. `make slow` draws others."""
    dice, words = random.Random(seed), _words()
    for _ in range(times):
        sql = " ".join(dice.choice(words) for _ in range(dice.randint(1, 14)))
        with contextlib.suppress(Rejected):
            curator.quote(sql, analyst="alice", epsilon="1")


def _words() -> list[str]:
    found = {
        word for case in harness.cases() if case.policy == "school" for word in case.sql.split()
    }
    return [
        *sorted(found),
        "SELECT",
        "FROM",
        "pupils",
        "GROUP BY",
        "(",
        ")",
        ",",
        "COUNT(*)",
        "WHERE",
        "NULL",
        "*",
    ]


# --- how often the ledger is locked ---------------------------------------------------------------


def test_an_ask_takes_three_transactions_and_a_free_one_takes_one(
    opened: Callable[..., Curator], monkeypatch: pytest.MonkeyPatch
) -> None:
    curator, began, transaction = opened(), list[bool](), File.transaction

    def counted(self: File, *, write: bool) -> Any:
        began.append(write)
        return transaction(self, write=write)

    def transactions(work: Callable[[], object]) -> list[bool]:
        began.clear()
        work()
        return list(began)

    monkeypatch.setattr(File, "transaction", counted)
    sql = "SELECT sex, COUNT(*) FROM pupils GROUP BY sex"
    assert transactions(lambda: curator.ask(sql, analyst="alice", epsilon="0.1")) == [
        False,
        True,
        True,
    ]
    assert transactions(lambda: curator.ask(sql, analyst="alice", epsilon="0.1")) == [False]
    assert transactions(lambda: curator.quote(sql, analyst="alice", epsilon="0.1")) == [False]
    assert transactions(lambda: curator.explain(sql, analyst="alice", epsilon="0.1")) == [False]
    assert transactions(lambda: curator.ask("SELECT 1 AS one", analyst="alice", epsilon="0.1")) == [
        False
    ]
    assert transactions(lambda: curator.describe("pupils", epsilon="0.1")) == [False, True, True]


def test_what_an_answer_says_of_the_ledger_is_what_the_ledger_says(
    opened: Callable[..., Curator],
) -> None:
    curator = opened()
    answer = curator.ask("SELECT COUNT(*) FROM pupils", analyst="alice", epsilon="0.1")
    assert answer.certificate["ledger"] == curator._ledger.head()
    assert answer.left == curator._accountant.left(curator._ledger.left("alice"))
    again = curator.ask("SELECT COUNT(*) FROM pupils", analyst="alice", epsilon="0.1")
    assert (again.certificate["ledger"], again.left) == (answer.certificate["ledger"], answer.left)
    assert curator._ledger.verify(answer.certificate["ledger"])
