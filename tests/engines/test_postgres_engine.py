"""The engine postgres alone: its second wall, the rights of its roles, and a server that goes
away.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from conformance import opened, rows_of, store_on
from small_sources import policy_of
from test_every_engine import EXPRESSIONS, ODD, VISITS, odd_rows, slow_query
from test_spelling import VALUES

from discreet.algebra import (
    Aggregate,
    Careful,
    Cast,
    Column,
    Constant,
    Expression,
    Scan,
    Sum,
    call,
)
from discreet.algebra.exclusive import exclusive
from discreet.cli import run
from discreet.engines.limits.overrun import Overrun
from discreet.engines.postgres.engine import PostgresEngine
from discreet.engines.postgres.letters import ALL, FUNCTIONS, pairs
from discreet.engines.postgres.spelling import PostgresSpelling
from discreet.engines.quoting import literal
from discreet.engines.spelling import Spelling
from discreet.engines.words import Unspelled
from discreet.errors import EngineFailure, UsageError
from discreet.policy.engine import EngineChoice
from real_postgres import Server, server

psycopg = pytest.importorskip("psycopg")
DAYS = Column("v", "days")


@pytest.fixture(scope="module")
def engine(
    database: Callable[[], EngineChoice], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PostgresEngine]:
    folder = tmp_path_factory.mktemp("odd")
    with opened(
        policy_of(ODD, folder), database(), folder / "store", {"visits": odd_rows()}
    ) as found:
        assert isinstance(found, PostgresEngine)
        yield found


# --- conditions that exclude each other -----------------------------------------------------------

# Texts that Postgres reads as one flag, one day or one identifier, were they not texts to it.
ALIKE = (
    *("t", "tr", "tru", "true", "ye", "yes", "on", "of", "off", "fal", "a", "A", "a ", "Hill"),
    *("Jan 1 2020", "January 1 2020", "y2020m01d01", "J2458850", "1", "01", "1.0", "M", "BC"),
    *("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"),
)
HELD = {
    "BOOLEAN": ("true", "false"),
    "DATE": ("2020-01-01",),
    "TIMESTAMP": ("2020-01-01",),
    "UUID": ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",),
    "BIGINT": ("0", "1", "12"),
    "NUMERIC": ("1.00", "NaN"),
    "DOUBLE PRECISION": ("-0", "1", "NaN", "Infinity"),
    'TEXT COLLATE "C"': ALIKE,
}
MOMENTS = (date(2020, 1, 1), datetime(2020, 1, 1), datetime(2020, 1, 1, 12), date(2019, 12, 31))
PLAIN: tuple[Any, ...] = (*ALIKE, *MOMENTS, 0, 1, 2, 12, (1 << 53) - 1, True)


@pytest.mark.parametrize("kind", HELD)
def test_no_value_satisfies_two_that_exclude_each_other(postgres_server: Server, kind: str) -> None:
    """Whatever its type: a constant is what it is, and is not read as the type beside it."""
    x, spelled = Column("t", "x"), PostgresSpelling.of(None, {}).expression
    words = [*(call("=", x, each) for each in PLAIN), *(call("in", x, each) for each in ALIKE)]
    words += [call(sign, x, each) for sign in ("<", "<=", ">", ">=") for each in PLAIN[-9:-1]]
    said = [pair for pair in itertools.combinations(words, 2) if exclusive(*pair)]
    assert len(said) > 200
    rows = ", ".join(f"(CAST({literal(each)} AS {kind}))" for each in HELD[kind])
    refused, found = set[str](), []
    with psycopg.connect(postgres_server.address, autocommit=True) as connection:
        for each in words:
            try:
                connection.execute(f"SELECT FROM (VALUES {rows}) AS t(x) WHERE {spelled(each)}")
            except psycopg.Error:  # before the charge: the kinds do not fit
                refused.add(spelled(each))
        for pair in said:
            if refused.isdisjoint(map(spelled, pair)):
                both = " AND ".join(map(spelled, pair))
                sql = f"SELECT count(*) FROM (VALUES {rows}) AS t(x) WHERE {both}"
                [(count,)] = connection.execute(sql).fetchall()
                found += [both] if count else []
    assert found == []


# --- the second wall ------------------------------------------------------------------------------

SPELLED = [
    (node, value)
    for node, value in VALUES
    if not str(Spelling().expression(node)).startswith(("(row", "({'k'"))
]


@pytest.mark.parametrize("careful", [False, True])
def test_every_word_has_its_value(engine: PostgresEngine, careful: bool) -> None:
    """As test_spelling has it of DuckDB; pairs and rows stand in aggregates alone."""
    wrong = []
    for node, value in SPELLED:
        try:
            sql = PostgresSpelling.of(None, {}, careful=careful).expression(node)
        except Unspelled:
            assert "pair" in repr(node)
            continue
        with engine._linked(60) as connection:
            connection.execute("SET search_path = discreet_1, pg_catalog")
            ((found,),) = connection.execute(f"SELECT {sql}".encode()).fetchall()
        if found != value or (found is None) != (value is None):
            wrong.append((sql, found, value))
    assert wrong == []


@pytest.mark.parametrize("node", EXPRESSIONS, ids=lambda node: Spelling().expression(node)[:60])
def test_the_careful_form_has_the_same_value(node: Expression, engine: PostgresEngine) -> None:
    query = Aggregate(VISITS, (Column("v", "word"), DAYS, Careful(node)), (Sum(),))
    careful = PostgresSpelling.of(query, engine._tables, careful=True).numbers(query)
    plain = [table.to_pylist() for table in engine._read(engine.sql(query), 60, None)]
    again = [table.to_pylist() for table in engine._read(careful, 60, None)]
    assert sorted(map(repr, _plainly(plain))) == sorted(map(repr, _plainly(again)))


def _plainly(parts: list[list[dict[str, Any]]]) -> list[tuple[Any, ...]]:
    return [
        tuple(int(value) if type(value).__name__ == "Decimal" else value for value in row.values())
        for part in parts
        for row in part
    ]


BIG = Cast(DAYS, "BIGINT") * 1_000
OVERFLOWING: list[Expression] = [
    BIG * 1_000_000,
    BIG * BIG,
    BIG * BIG // 7,
    -(BIG * BIG) % 5,
    Cast(BIG * BIG, "BIGINT"),
    Cast(Cast(DAYS, "DOUBLE") * Cast(DAYS, "DOUBLE"), "BIGINT"),
    call("make_timestamp", BIG * 1_000_000),
    call("list_extract", call("list", 1, 2), BIG * BIG % 2 + 1),
    call("abs", BIG * BIG) + call("length", Column("v", "word")),
    call("coalesce", BIG * BIG, 0) - 1,
]


@pytest.mark.parametrize("node", OVERFLOWING, ids=lambda node: Spelling().expression(node)[:60])
def test_what_fails_on_a_row_is_computed_carefully(
    node: Expression, engine: PostgresEngine
) -> None:
    """The first run fails on a value, which nobody learns: the second gives every other row its
    value.
    """
    query = Aggregate(VISITS, (DAYS, call("is null", Careful(node))), (Sum(),))
    found = rows_of(engine, query)
    assert sum(row[-1] * count for row, count in found.items()) == sum(
        row[-1] for row in rows_of(engine, Aggregate(VISITS, (), (Sum(),)))
    )
    assert all(not null for days, null, _ in found if days in (0, 1))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_letter_beyond_those_that_are_looked_up_has_a_case(function: str) -> None:
    assert pairs(function) == pairs(function, ALL)
    assert all(len(letter) == len(other) == 1 for letter, other in pairs(function))


def test_what_has_no_form_is_refused_by_name(engine: PostgresEngine) -> None:
    for node, what in (
        (Cast(Cast(DAYS, "DOUBLE"), "VARCHAR"), "A float"),
        (Cast(Column("v", "word"), "BIGINT"), "A text as another type"),
        (call("like", Column("v", "word"), "a\\", "\\"), "LIKE with this escape"),
        (Constant("a\x00b"), "A text with the letter NUL"),
    ):
        with pytest.raises(Unspelled) as caught:
            engine.check(Aggregate(VISITS, (node,), (Sum(),)))
        assert caught.value.what.startswith(what)


# --- rights ---------------------------------------------------------------------------------------

EXCESS = {
    "ALTER ROLE {role} CREATEDB": "ALTER ROLE {role} NOSUPERUSER NOCREATEDB",
    "GRANT pg_read_all_data TO {role}": "REVOKE pg_read_all_data FROM {role}",
    "GRANT TEMPORARY ON DATABASE {database} TO PUBLIC": "REVOKE TEMPORARY ON DATABASE {database} FROM PUBLIC",
    "GRANT CREATE ON DATABASE {database} TO {role}": "REVOKE CREATE ON DATABASE {database}",
    "GRANT CREATE ON SCHEMA public TO {role}": "REVOKE CREATE ON SCHEMA public",
    "CREATE TABLE people (id int); GRANT SELECT ON people TO {role}": "REVOKE ALL ON public.people",
    "CREATE TABLE people (id int); GRANT SELECT (id) ON people TO PUBLIC": "REVOKE ALL ON public.people FROM PUBLIC",
    "GRANT INSERT ON discreet_1.visits TO {role}": "REVOKE ALL ON discreet_1.visits",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'": "REVOKE ALL ON FUNCTION f()",
    "GRANT EXECUTE ON FUNCTION pg_read_file(text) TO {role}": "REVOKE ALL ON FUNCTION pg_read_file(text)",
    "GRANT EXECUTE ON FUNCTION lo_export(oid, text) TO PUBLIC": "REVOKE ALL ON FUNCTION lo_export(oid,text)",
}


@pytest.mark.parametrize(("grant", "revoke"), EXCESS.items(), ids=EXCESS)
def test_a_role_with_more_rights_is_refused_with_what_to_revoke(
    grant: str, revoke: str, postgres_server: Server, tmp_path: Path
) -> None:
    role = "other_reader"
    choice = postgres_server.database(reader=role)
    store = store_on(policy_of(ODD, tmp_path), choice, tmp_path / "store")
    store.build(1, {"visits": odd_rows()})
    store.open(1).close()
    names = {"role": role, "database": choice.at.split("@/")[1].split("?")[0] if choice.at else ""}
    address = f"{postgres_server.address} dbname={names['database']}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(grant.format(**names))
        try:
            with pytest.raises(
                UsageError, match=f"The role {role} may do more than read snapshots"
            ) as caught:
                store.open(1)
            assert revoke.format(**names) in str(caught.value)
            for statement in str(caught.value).split("run: ")[1].removesuffix(".").split("; "):
                connection.execute(statement)  # what is shown can be pasted
        finally:
            connection.execute(f"ALTER ROLE {role} NOCREATEDB; REVOKE pg_read_all_data FROM {role}")
    store.open(1).close()


def test_a_superuser_does_not_ask(postgres_server: Server, tmp_path: Path) -> None:
    choice = postgres_server.database(reader="postgres")
    store = store_on(policy_of(ODD, tmp_path), choice, tmp_path / "store")
    store.build(1, {"visits": odd_rows()})
    with pytest.raises(UsageError, match="ALTER ROLE postgres NOSUPERUSER"):
        store.open(1)


def test_the_reader_can_only_read(engine: PostgresEngine) -> None:
    for sql in (
        "CREATE TABLE discreet_1.x (y int)",
        "CREATE TEMP TABLE x (y int)",
        "DELETE FROM discreet_1.visits",
        "INSERT INTO discreet_1.visits DEFAULT VALUES",
        "DROP SCHEMA discreet_1 CASCADE",
        "COPY discreet_1.visits TO PROGRAM 'true'",
        "SELECT pg_read_file('/etc/passwd')",
    ):
        connection = engine._connected()
        connection.execute("SET default_transaction_read_only = off")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(sql.encode())
        connection.close()
    connection = engine._connected()
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        connection.execute("CREATE TABLE discreet_1.x (y int)")
    connection.close()


# --- what goes wrong ------------------------------------------------------------------------------


def test_a_question_that_is_cancelled_on_the_server(
    engine: PostgresEngine, postgres_server: Server
) -> None:
    """Whoever cancels it, it took too long: that is counted."""
    began = threading.Event()

    def cancel() -> None:
        with psycopg.connect(postgres_server.address, autocommit=True) as connection:
            while not began.is_set():
                found = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'COPY (SELECT md5%'"
                if connection.execute(found).fetchall():
                    began.set()

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        with pytest.raises(Overrun):
            engine.fetch(slow_query(9), 60)
    finally:
        began.set()
        thread.join()


def test_a_fork_opens_it_again(engine: PostgresEngine) -> None:
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            engine.fetch(Aggregate(VISITS, (), (Sum(),)), 10)
            os.write(write, b"answered")
        except EngineFailure:
            os.write(write, b"refused")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 20) == b"refused"
    os.close(read)
    os.close(write)
    assert rows_of(engine, Aggregate(VISITS, (), (Sum(),)))


def test_threads_ask_at_once(engine: PostgresEngine) -> None:
    query = Aggregate(VISITS, (DAYS,), (Sum(),))
    expected, found = rows_of(engine, query), []
    threads = [
        threading.Thread(target=lambda: found.append(rows_of(engine, query))) for _ in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 12


def test_connections_that_were_lost_between_questions(
    engine: PostgresEngine, postgres_server: Server
) -> None:
    """The next question opens another: it is paid for already."""
    query = Aggregate(VISITS, (DAYS,), (Sum(),))
    expected = rows_of(engine, query)
    with psycopg.connect(postgres_server.address, autocommit=True) as connection:
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'discreet_reader'"
        assert connection.execute(ended).fetchall()
    assert rows_of(engine, query) == expected


def test_a_server_that_hangs(
    engine: PostgresEngine, postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that no longer answers is left for another, and a question that the server does
    not stop in time is cut off.
    """
    query = Aggregate(VISITS, (DAYS,), (Sum(),))
    expected = rows_of(engine, query)
    stopped = [each.info.backend_pid for each in engine._idle]
    for each in stopped:
        os.kill(each, signal.SIGSTOP)
    try:
        with monkeypatch.context() as patch:
            patch.setattr("discreet.engines.postgres.engine._ANSWERS", 0.5)
            assert stopped
            assert rows_of(engine, query) == expected
    finally:
        for each in stopped:
            os.kill(each, signal.SIGCONT)
    engine.check(slow_query(9))
    with monkeypatch.context() as patch:
        patch.setattr("discreet.engines.postgres.engine._GRACE", -59)
        with pytest.raises(Overrun):
            engine.fetch(slow_query(9), 60)
    assert rows_of(engine, query) == expected
    with psycopg.connect(postgres_server.address, autocommit=True) as connection:
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'COPY (SELECT md5%'"
        connection.execute(ended)


@pytest.mark.parametrize(
    ("at", "reader", "says"),
    [
        ("postgresql://curator@/town?host=/nowhere", None, "cannot be reached as the reader"),
        (None, "postgresql://nobody_here@/town?host=/nowhere", "cannot be reached as the reader"),
    ],
)
def test_a_server_or_a_role_that_is_not_there(
    at: str | None,
    reader: str | None,
    says: str,
    database: Callable[[], EngineChoice],
    tmp_path: Path,
) -> None:
    choice = database()
    wrong = replace(choice, at=at or choice.at, reader=reader if at is None else None)
    store = store_on(policy_of(ODD, tmp_path), wrong, tmp_path / "store")
    with pytest.raises(UsageError, match=says):
        store.build(1, {"visits": odd_rows()})


def test_a_curator_without_the_right_to_create(postgres_server: Server, tmp_path: Path) -> None:
    choice = postgres_server.database()
    store = store_on(
        policy_of(ODD, tmp_path), replace(choice, at=choice.reader), tmp_path / "store"
    )
    with pytest.raises(UsageError, match="needs CREATE on the database"):
        store.build(1, {"visits": odd_rows()})
    assert store.numbers() == []


def test_a_text_that_postgres_cannot_hold(
    database: Callable[[], EngineChoice], tmp_path: Path
) -> None:
    store = store_on(policy_of(ODD, tmp_path), database(), tmp_path / "store")
    rows = odd_rows()
    words = rows.column("word").to_pylist()
    words[3] = "a\x00b"
    import pyarrow as pa

    with pytest.raises(UsageError, match="letter NUL"):
        store.build(
            1, {"visits": rows.set_column(rows.column_names.index("word"), "word", pa.array(words))}
        )
    assert store.numbers() == []
    assert not [file for file in (tmp_path / "store").iterdir() if "building" in file.name]


def test_without_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    choice = EngineChoice(name="postgres", at="postgresql://curator@/town")
    monkeypatch.setattr("discreet.extras.find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"pip install 'discreet\[postgres\]'"):
        store_on(policy_of(ODD, tmp_path), choice, tmp_path / "store").numbers()


def test_no_value_is_logged(engine: PostgresEngine, caplog: pytest.LogCaptureFixture) -> None:
    query = Aggregate(VISITS, (Cast(Column("v", "days"), "BIGINT") * 1_000_000,), (Sum(),))
    engine.fetch(query, 10)
    assert "NumericValueOutOfRange" in caplog.text
    assert "9000000000000000" not in caplog.text


# --- a crash, and the command line ----------------------------------------------------------------


STEPS = ("binary._put", "schema.most_rows", "schema.keep_manifest")


def test_a_server_that_dies_in_the_middle_of_a_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While rows are sent, checked, or all is there but the end: nothing of it is there afterwards,
    and the next one is whole.
    """
    with server(options="") as own:
        store = store_on(policy_of(ODD, tmp_path), own.database(), tmp_path / "store")
        for step in STEPS:
            with monkeypatch.context() as patch:
                crash_before(patch, f"discreet.engines.postgres.{step}", own)
                with pytest.raises(
                    UsageError, match=r"server failed or went away\. Nothing of it is left"
                ):
                    store.build(1, {"visits": odd_rows()})
            with pytest.raises(UsageError, match="cannot be reached as the reader"):
                store.numbers()
            own.start()
            assert store.numbers() == []
            with store._writing() as connection:
                assert not connection.execute(
                    "SELECT 1 FROM pg_namespace WHERE nspname LIKE 'discreet%'"
                ).fetchall()
            assert not [file for file in (tmp_path / "store").iterdir() if "building" in file.name]
        store.build(1, {"visits": odd_rows()})
        own.crash()
        own.start()
        engine = store.open(1)
        assert rows_of(engine, Aggregate(VISITS, (), (Sum(),)))
        own.crash()  # while it is open
        with pytest.raises(EngineFailure, match="The engine could not answer this question"):
            engine.fetch(Aggregate(VISITS, (DAYS,), (Sum(),)), 10)
        engine.close()


def crash_before(patch: pytest.MonkeyPatch, step: str, own: Server) -> None:
    """Let the server crash when a step is first taken."""
    path, _, function = step.rpartition(".")
    taken = getattr(importlib.import_module(path), function)

    def crash(*arguments: Any) -> Any:
        patch.setattr(step, taken)
        own.crash()
        return taken(*arguments)

    patch.setattr(step, crash)


TOWN = """
CREATE TABLE people (person_id int PRIMARY KEY, age int CHECK (age BETWEEN 0 AND 120), sex text, zip text);
INSERT INTO people SELECT i, 20 + i % 60, (ARRAY['F', 'M'])[1 + i % 2], 'z' || i % 3 FROM generate_series(1, 900) AS i;
CREATE TABLE zips (zip text, name text);
INSERT INTO zips VALUES ('z0', 'Zero'), ('z1', 'One'), ('z2', 'Two');
"""
TOWN_POLICY = """
source: {at}
engine: {{name: postgres, reader: '{reader}'}}
unit: person
tables:
  people:
    owner: person_id
    columns:
      age: {{integer: [0, 120]}}
      sex: {{values: [F, M]}}
      zip: text
  zips: {{public: true}}
budget: {{epsilon: 1000, delta: 1e-6}}
limits: {{epsilon: 100}}
analysts: {{ann: {{epsilon: 500}}}}
"""
QUESTIONS = {
    "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex": [["F", 450], ["M", 450]],
    "SELECT zip, COUNT(*) AS n FROM people GROUP BY zip": [["z0", 300], ["z1", 300], ["z2", 300]],
    "SELECT z.name, COUNT(*) AS n FROM people p JOIN zips z ON z.zip = p.zip GROUP BY z.name ORDER BY 1": [
        ["One", 300],
        ["Two", 300],
        ["Zero", 300],
    ],
    "SELECT MEDIAN(age) AS n FROM people": [[49]],
}


def test_by_the_command_line(
    database: Callable[[], EngineChoice], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """init and check from the catalog, a snapshot, every verb that asks: source and engine are one
    database.
    """
    choice, file = database(), str(tmp_path / "town.yaml")
    with psycopg.connect(choice.at, autocommit=True) as connection:
        connection.execute(TOWN)
        connection.execute("REVOKE ALL ON people, zips FROM PUBLIC")

    def told(*command: str, code: int = 0) -> str:
        assert run(list(command)) == code
        return capfd.readouterr().out

    told("init", str(choice.at), "--out", str(tmp_path / "drafted.yaml"))
    assert "age: {integer: [0, 120]}" in (tmp_path / "drafted.yaml").read_text()
    Path(file).write_text(TOWN_POLICY.format(at=choice.at, reader=choice.reader))
    assert "The policy and its source agree" in told("check", file)
    told("ledger", file, "--create")
    assert "people: 900 of 900 rows kept" in told("snapshot", file)
    assert "Next: discreet ask" in told("check", file)
    who = ("--analyst", "ann", "--epsilon", "50", "--format", "json")
    for sql, rows in QUESTIONS.items():
        assert json.loads(told("quote", file, sql, *who))["cost"]["epsilon"] == 50
        answer = json.loads(told("ask", file, sql, *who))
        assert [row[:-1] for row in answer["rows"]] == [row[:-1] for row in rows]
        assert all(
            abs(row[-1] - true[-1]) <= 3 for row, true in zip(answer["rows"], rows, strict=True)
        )
        # free, and the same
        assert json.loads(told("ask", file, sql, *who))["rows"] == answer["rows"]
    explained = told("explain", file, "SELECT SUM(age) FROM people", *who[:4])
    assert 'FROM "people" AS t1' in explained
    told(
        "describe",
        file,
        "people",
        "--epsilon",
        "50",
        "--out",
        str(tmp_path / "d.json"),
        "--columns",
        "age,sex",
    )
    with psycopg.connect(choice.at, autocommit=True) as connection:
        connection.execute("GRANT SELECT ON people TO discreet_reader")
        refused = json.loads(told("ask", file, "SELECT COUNT(*) FROM people", *who, code=2))[
            "error"
        ]
        assert "run: REVOKE ALL ON public.people FROM PUBLIC, discreet_reader" in refused["message"]
    entries = json.loads(told("ledger", file, "--format", "json"))
    assert str(entries).count("SELECT") == len(QUESTIONS)


NAMES = ("date", "text", "numeric", "pg_class", "upper_letters", "_text", "visits")


def test_tables_with_the_names_of_types(
    database: Callable[[], EngineChoice], tmp_path: Path
) -> None:
    """A table is a type, too, and stands before those of Postgres on the path."""
    tables = "".join(ODD.replace("visits", f"'{each}'") for each in NAMES)
    source = {each: odd_rows() for each in NAMES}
    with opened(policy_of(tables, tmp_path), database(), tmp_path / "store", source) as engine:
        for node in (Cast(Column("v", "seen"), "DATE"), Cast(DAYS, "VARCHAR"), *EXPRESSIONS[::9]):
            found = [
                rows_of(engine, Aggregate(Scan(each, "v"), (node,), (Sum(),))) for each in NAMES
            ]
            assert all(each == found[-1] for each in found)
