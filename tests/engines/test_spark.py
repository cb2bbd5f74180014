"""What Spark's engine has of its own: sources that workers read, noise that workers draw, and what
goes wrong.

Sail stands in for Spark; one test asks a real one, and `make slow` kills some of its executors.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import shutil
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conformance import all_rows, opened, store_on
from small_sources import policy_of
from spark_servers import sail

import discreet
from discreet.accounting import accountant
from discreet.algebra import Aggregate, Column, Persons, Scan, Sum, call
from discreet.binding import create_ledger
from discreet.budget import Charge
from discreet.engines.engine import Engine
from discreet.engines.limits.overrun import Overrun
from discreet.engines.spark import prepare
from discreet.engines.spark import session as sessions
from discreet.engines.spark.layout import manifest_file, snapshot_folder
from discreet.engines.spark.store import SparkStore
from discreet.engines.spark.workers import (
    EachTable,
    OfPartition,
    WorkerFailure,
    WriteFiles,
    Writer,
    WriteRows,
    silent,
)
from discreet.errors import EngineFailure, SnapshotFailure, UsageError
from discreet.mechanisms.currency import currency
from discreet.mechanisms.shapes import Keys
from discreet.policy.engine import EngineChoice
from discreet.policy.policy import Policy
from discreet.vault.allowance import Allowance
from discreet.vault.exact import Exact
from small_disk import small_disk

PEOPLE = """\
  people:
    owner: person
    max_rows: 3
    columns:
      person: {identifier: true}
      age: {integer: [0, 120], nullable: true}
      word: {text: true, nullable: true}
      visit: {identifier: true}
  visits:
    owner: {through: people, on: visit}
    max_rows: 2
    columns:
      day: {date: [2024-01-01, 2024-12-31], nullable: true}
  towns: {public: true}
"""
EACH_ROW = "  rows:\n    owner: row\n    columns:\n      kind: {values: [a, b], nullable: true}\n"


def rows(count: int) -> pa.Table:
    """People of whom some have too many rows, and some rows nobody."""
    return pa.table(
        {
            "person": pa.array(
                [None if at % 13 == 0 else at * at % 40 for at in range(count)], pa.int64()
            ),
            "age": pa.array([at % 130 - 5 for at in range(count)], pa.int64()),
            "word": pa.array([f"w{at % 17 * (at % 3)}" for at in range(count)]),
            "visit": pa.array(range(count), pa.int64()),
        }
    )


VISITS = pa.table(
    {
        "visit": [at % 90 for at in range(300)],
        "day": [f"2024-0{at % 9 + 1}-01" for at in range(300)],
    }
)
ROWS = pa.table({"kind": ["a", "b", None, "c", "a", "a"] * 5})
TOWNS = pa.table({"town": ["y", "x"], "people": [7, 100]})
TABLES = {"people": rows(120), "visits": VISITS, "towns": TOWNS}
SPARK = "spark"


def on_sail() -> EngineChoice:
    return EngineChoice(name=SPARK, at=sail())


def folder_of(path: Path) -> Path:
    """The same tables as files: of two schemas, one of them CSV, and a text that is no UTF-8."""
    (path / "people").mkdir(parents=True)
    people = rows(120)
    pq.write_table(people.slice(0, 50), path / "people/a.parquet")
    pq.write_table(
        people.slice(50, 40).append_column("more", pa.array([1] * 40)), path / "people/b.parquet"
    )
    broken = pa.array([b"w\xff", *[f"w{at}".encode() for at in range(29)]], pa.binary())
    texts = pa.StringArray.from_buffers(len(broken), *broken.buffers()[1:3])
    pq.write_table(people.slice(90, 30).set_column(2, "word", texts), path / "people/c.parquet")
    lines = [f"{row['visit']},{row['day']}" for row in VISITS.to_pylist()]
    (path / "visits.csv").write_text("\n".join(["visit,day", *lines, "7,no day", ""]))
    pq.write_table(TOWNS, path / "towns.parquet")
    return path


def same_rows(policy: Policy, one: Engine, other: Engine) -> None:
    for table in (each for each in policy.tables.values() if not each.public):
        ours = all_rows(one, policy, table.name)
        assert ours
        assert all_rows(other, policy, table.name) == ours


@pytest.mark.parametrize("source", ["tables", "files"])
def test_workers_prepare_the_same_rows(source: str, tmp_path: Path) -> None:
    """Owners through another table, rows that are people, dirty texts, files of several schemas;
    and the same notes.
    """
    policy = policy_of(PEOPLE, tmp_path)
    content: Any = TABLES if source == "tables" else folder_of(tmp_path / "data")
    with (
        opened(policy, EngineChoice(), tmp_path / "duckdb", content) as truth,
        opened(policy, on_sail(), tmp_path / "spark", content) as spark,
    ):
        same_rows(policy, truth, spark)
        assert spark.public_table("towns").to_pylist() == truth.public_table("towns").to_pylist()
    notes = [
        store_on(policy, choice, tmp_path / choice.name).snapshot(1)
        for choice in (EngineChoice(), on_sail())
    ]
    for ours, theirs in zip(*(each.tables for each in notes), strict=True):
        plain = tuple(replace(column, mended=()) for column in ours.columns)
        assert replace(ours, columns=plain) == theirs


def test_rows_that_are_people(tmp_path: Path) -> None:
    policy, content = policy_of(EACH_ROW, tmp_path), {"rows": ROWS}
    with (
        opened(policy, EngineChoice(), tmp_path / "duckdb", content) as truth,
        opened(policy, on_sail(), tmp_path / "spark", content) as spark,
    ):
        ours, theirs = (all_rows(engine, policy, "rows") for engine in (truth, spark))
    # UUIDs, which Spark has as texts
    assert Counter((str(owner), *rest) for owner, *rest in ours.elements()) == theirs


# --- keys that pass their threshold where the rows are --------------------------------------------

THRESHOLD = currency("sum").people(
    amount=Fraction(1), max_groups=1, neighbors="add_remove", delta=Fraction(1, 100)
)
ONE_KEY = Keys(most=1, neighbors="add_remove")
WORD = Column("t", "word")
BY_WORD = Aggregate(Scan("people", "t"), (WORD,), (Persons(),))


def allowed(key: bytes) -> Allowance:
    paid = Charge(amount=Fraction(10), delta=Fraction(1, 10))
    return Allowance(
        key=key, accountant=accountant("sum", delta=Fraction(1, 10), keys=Fraction(1)), paid=paid
    )


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A thousand words of a few people each, some of them of more."""
    folder = tmp_path_factory.mktemp("words")
    people = [
        (number, f"w{number % 31 * (number % 29)}" if number % 4 else None)
        for number in range(3000)
    ]
    table = pa.table(
        {"person": [person for person, _ in people], "word": [word for _, word in people]}
    )
    text = "  people:\n    owner: person\n    columns:\n      word: {text: true, nullable: true}\n"
    with opened(policy_of(text, folder), on_sail(), folder / "spark", {"people": table}) as engine:
        yield engine


def test_a_key_has_the_same_noise_wherever_it_is_drawn(words: Engine) -> None:
    """S8: on workers, here, in parts, and once more; and another charge has other noise."""
    key = bytes(range(32))
    exact = words.fetch(BY_WORD, 60).unwrap()
    here, numbers = allowed(key).threshold(THRESHOLD, Exact(exact), moved=ONE_KEY, keys=1)
    assert 10 < here.num_rows < exact.num_rows
    for _ in range(2):
        there, same = allowed(key).threshold(
            THRESHOLD, words.fetch_parts(BY_WORD, 60, 7), moved=ONE_KEY, keys=1
        )
        assert there.to_pylist() == here.to_pylist()
        assert same.tolist() == numbers.tolist()
    _, others = allowed(bytes(32)).threshold(
        THRESHOLD, words.fetch_parts(BY_WORD, 60, 7), moved=ONE_KEY, keys=1
    )
    assert others.tolist() != numbers.tolist()


def test_what_travels_holds_no_charge_s_key(words: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A measurement's stream is derived from the charge's key, which stays here."""
    from pyspark import cloudpickle

    sent, made = list[bytes](), words._made

    def kept(part: Any, sql: str) -> pa.Table:
        sent.append(cloudpickle.dumps(part))
        return made(part, sql)

    monkeypatch.setattr(words, "_made", kept)
    key = bytes(range(32))
    allowed(key).threshold(THRESHOLD, words.fetch_parts(BY_WORD, 60, 9), moved=ONE_KEY, keys=1)
    (travels,) = sent
    assert pickle.loads(travels).stream._secret() in travels
    assert key not in travels


def test_only_survivors_come_to_the_server(words: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of the keys nor of what is measured of them does any other row come."""
    came = list[int]()

    class Counted:
        def __init__(self, engine: Any) -> None:
            self._made = engine._made

        def __call__(self, part: Any, sql: str) -> pa.Table:
            found = self._made(part, sql)
            came.append(found.num_rows)
            return found

    monkeypatch.setattr(words, "_made", Counted(words))
    allowance = allowed(bytes(32))
    survivors, _ = allowance.threshold(
        THRESHOLD, words.fetch_parts(BY_WORD, 60, 9), moved=ONE_KEY, keys=1
    )
    sums = Aggregate(Scan("people", "t"), (WORD,), (Sum(), Sum()))
    kept = allowance.keep(words.fetch_parts(sums, 60, 9), survivors, keys=[0]).unwrap()
    assert came == [survivors.num_rows, survivors.num_rows]
    exact = words.fetch(sums, 60).unwrap().to_pylist()
    among = {row["k0"] for row in survivors.to_pylist()}
    expected = {row["k0"]: row["s0"] for row in exact if row["k0"] in among}
    assert {row["k0"]: int(row["s0"]) for row in kept.to_pylist()} == expected


# --- a policy from its file to an answer ----------------------------------------------------------


def test_a_policy_that_names_spark(tmp_path: Path) -> None:
    folder_of(tmp_path / "data")
    text = f"source: data\nunit: person\nengine: {{name: spark, at: '{sail()}'}}\ntables:\n{PEOPLE}"
    text += "budget: {epsilon: 50, delta: 1e-3}\nlimits: {epsilon: 20}\nanalysts: {alice: {epsilon: 40}}\n"
    (tmp_path / "policy.yaml").write_text(text)
    create_ledger(Policy.read(tmp_path / "policy.yaml"))
    curator = discreet.open(tmp_path / "policy.yaml")
    assert SparkStore(curator.policy).numbers() == [1]
    answer = curator.ask("SELECT COUNT(*), MEDIAN(age) FROM people", analyst="alice", epsilon=5)
    assert answer.table.num_rows == 1
    by_word = curator.ask(
        "SELECT word, COUNT(*) FROM people GROUP BY word", analyst="alice", epsilon=20
    )
    assert by_word.table.num_rows > 0
    seen = "SELECT 1 FROM people q WHERE q.person = p.person AND q.age > 50"
    with pytest.raises(
        discreet.Rejected, match="EXISTS within FILTER cannot be computed by the engine"
    ):
        curator.ask(
            f"SELECT COUNT(*) FILTER (WHERE EXISTS ({seen})) FROM people p",
            analyst="alice",
            epsilon=1,
        )


# --- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "says"),
    [
        (None, "needs an address: write engine: {name: spark"),
        ("http://host", "needs an address"),
        ("sc://127.0.0.1:1", "no Spark Connect server at sc://127.0.0.1:1"),
    ],
)
def test_no_spark(at: str | None, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        sessions.connect(at)


def test_a_session_that_is_gone_is_opened_again(words: Any) -> None:
    """As after an hour without a question, or when the server was started anew: with its views and
    its settings, before anything is charged.
    """
    query = Aggregate(Scan("people", "t"), (), (Sum(),))
    words.check(query)
    gone = words._session
    gone.stop()
    assert words.fetch(query, 60).unwrap().to_pylist() == [{"s0": 3000}]
    assert words._session is not gone
    words._session.stop()
    words._forget()
    words.check(query)
    assert words._session.conf.get(sessions.ANSI) == "true"


def test_what_fails_is_checked_anew_before_the_next_charge(
    words: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster may have gone away: then the next question fails before it is charged."""
    query = Aggregate(Scan("people", "t"), (), (Sum(),))
    words.check(query)
    monkeypatch.setattr(words, "_read", lambda sql: words._session.sql("SELECT nothing").toArrow())
    assert words._binding
    with pytest.raises(EngineFailure):
        words.fetch(query, 60)
    assert not words._binding
    words.check(query)
    monkeypatch.setattr(words, "_read", lambda sql: time.sleep(5))
    with pytest.raises(Overrun):
        words.fetch(query, 0.1)
    assert not words._binding


def test_no_java_and_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(UsageError, match="needs Java 17: apt install openjdk-17-jre-headless"):
        sessions.connect("local[2]")
    monkeypatch.undo()
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(UsageError, match="needs Java 17: apt install openjdk-17-jre-headless"):
        sessions.connect("local[2]")
    monkeypatch.setattr("discreet.extras.find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"pip install 'discreet\[spark\]'"):
        sessions.connect("local[2]")


def test_a_snapshot_without_its_manifest_is_not_there(tmp_path: Path) -> None:
    """As a crash before the last step leaves it: the number is free, and what is left is cleared
    away.
    """
    policy = policy_of(PEOPLE, tmp_path)
    store = store_on(policy, on_sail(), tmp_path / "store")
    store.build(1, TABLES)
    manifest_file(tmp_path / "store", 1).unlink()
    assert store.numbers() == []
    with pytest.raises(UsageError, match="no snapshot 1"):
        store.open(1)
    store.build(1, TABLES)
    assert store.numbers() == [1]
    store.remove(1)
    assert not snapshot_folder(tmp_path / "store", 1).exists()


def test_a_snapshot_is_checked_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S23: with too many rows of somebody there is none."""
    policy = policy_of(PEOPLE, tmp_path)
    store = store_on(policy, on_sail(), tmp_path / "store")
    monkeypatch.setattr("discreet.engines.spark.prepare.first_rows_of", lambda *_: 'FROM "#rows"')
    with pytest.raises(
        UsageError, match=r"somebody has more than max_rows = 3 rows \(table people\)"
    ):
        store.build(1, TABLES)
    assert store.numbers() == []
    monkeypatch.undo()
    few = {**TABLES, "people": rows(3)}
    of = prepare._in_spark
    monkeypatch.setattr(prepare, "_in_spark", lambda kinds: [*of(kinds)][:2])
    with pytest.raises(UsageError, match="its columns are not those of the policy"):
        store.build(1, few)
    assert store.numbers() == []


def test_rows_that_a_worker_wrote_wrongly_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S23: values beyond their range in the files make no snapshot."""
    policy = policy_of(PEOPLE, tmp_path)
    store = store_on(policy, on_sail(), tmp_path / "store")
    finished = prepare.Work._stored_written

    def spoiled(self: Any, connection: Any, reading: Any, table: Any) -> list[int]:
        counts = finished(self, connection, reading, table)
        file = next(self._place(table).glob("*.parquet"))
        content = pq.read_table(file)
        ages = pa.array([121] * content.num_rows, content.schema.field("age").type)
        pq.write_table(content.set_column(content.schema.get_field_index("age"), "age", ages), file)
        return counts

    monkeypatch.setattr(prepare.Work, "_stored_written", spoiled)
    with pytest.raises(UsageError, match=r"age has values outside its domain \(table people\)"):
        store.build(1, TABLES)
    assert store.numbers() == []


def test_what_another_attempt_of_a_task_wrote_is_in_no_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that is tried twice, and reads the source again when it has changed: S23."""
    policy = policy_of(PEOPLE, tmp_path)
    store = store_on(policy, on_sail(), tmp_path / "store")
    told = prepare.Work._written_by

    def twice(self: Any, writer: Writer, table: Any) -> Any:
        told(self, writer, table).toArrow()
        return told(self, writer, table)

    monkeypatch.setattr(prepare.Work, "_written_by", twice)
    with opened(policy, EngineChoice(), tmp_path / "duckdb", TABLES) as truth:
        store.build(1, TABLES)
        with contextlib.closing(store.open(1)) as spark:
            same_rows(policy, truth, spark)


def test_no_error_of_a_worker_prints_a_value() -> None:
    """Spark writes errors of workers into its logs and shows them on its pages."""

    @dataclass
    class Failing:
        @silent
        def __call__(self, batches: Any) -> Any:
            for batch in batches:
                raise ValueError(f"Cannot read {batch}")
            yield

    with pytest.raises(WorkerFailure) as raised:
        list(Failing()(iter([" ".join(["what", "nobody", "may", "know"])])))
    shown = "".join(traceback.format_exception(raised.value))
    assert "ValueError" in shown
    assert "nobody may know" not in shown
    for each in (WriteFiles, WriteRows, OfPartition, EachTable):
        assert hasattr(each.__call__, "__wrapped__"), each


def test_a_disk_that_is_full(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """There is no snapshot, the log has the kind of error and no value; with room there is one."""
    folder_of(tmp_path / "data")
    count = 200_000
    many = pa.table(
        {
            "person": range(count),
            "age": [at % 130 for at in range(count)],
            "word": [hashlib.sha256(str(at).encode()).hexdigest() for at in range(count)],
            "visit": range(count),
        }
    )
    pq.write_table(many, tmp_path / "data/people/d.parquet")
    policy = policy_of(PEOPLE, tmp_path)
    with small_disk(tmp_path / "disk", "6m") as disk:
        store = store_on(policy, on_sail(), disk)
        with pytest.raises(SnapshotFailure, match="preparing it on the cluster failed"):
            store.build(1, tmp_path / "data")
        assert "Preparing a snapshot failed in Spark: PythonException, on a worker" in caplog.text
        assert store.numbers() == []
        (tmp_path / "data/people/d.parquet").unlink()
        store.build(1, tmp_path / "data")
        assert store.numbers() == [1]


def test_a_store_in_a_folder_of_any_name(tmp_path: Path) -> None:
    """Spark undoes no escapes in a path, and takes some letters for a pattern."""
    policy, tables = policy_of(PEOPLE, tmp_path), {**TABLES, "people": rows(120)}
    with (
        opened(policy, EngineChoice(), tmp_path / "duckdb", tables) as truth,
        opened(policy, on_sail(), tmp_path / "a störe + & so on", tables) as spark,
    ):
        same_rows(policy, truth, spark)
    for name, mark in {"a*": "*", "a[1]": "[", "50%20": "%", "at 12:30": ":", "a,b": ","}.items():
        store = store_on(policy, on_sail(), tmp_path / name)
        says = (
            rf"has a \{mark}, which Spark does not take as it is\. Rename the folder, or name one"
        )
        with pytest.raises(UsageError, match=says):
            store.build(1, tables)
        assert store.numbers() == []


def test_what_fails_on_spark_says_one_sentence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    policy = policy_of(PEOPLE, tmp_path)
    with opened(policy, on_sail(), tmp_path / "store", TABLES) as engine:
        failing = Aggregate(
            Scan("people", "t"), (call("date_part", "year", Column("t", "nothing")),), (Sum(),)
        )
        with pytest.raises(EngineFailure, match="The engine could not answer this question"):
            engine.fetch(failing, 60)
    assert "nothing" not in [
        record.message for record in caplog.records if "SELECT" not in record.message
    ]
