"""A snapshot in Postgres while something goes wrong: the source goes, the disk is full, the rights
are only those that docs/deploy.md gives.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from conformance import all_rows, rows_of, store_on
from small_sources import policy_of
from test_every_engine import ODD, VISITS, odd_rows

from discreet.algebra import Aggregate, Sum
from discreet.engines.postgres.schema import InSchema
from discreet.engines.readers import copied
from discreet.errors import UsageError
from discreet.policy.engine import EngineChoice
from real_postgres import Server
from small_disk import small_disk

DEPLOY = Path(__file__).parents[2] / "docs" / "deploy.md"
COUNT = Aggregate(VISITS, (), (Sum(),))


def test_a_source_that_goes_away_in_the_middle(
    postgres_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choice = postgres_server.database()
    assert choice.at is not None
    with psycopg.connect(choice.at, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE visits AS SELECT i::text AS person, repeat('x', 999) AS word"
            " FROM generate_series(1, 30000) AS i"
        )
    rows = copied._rows

    def end_soon(connection: Any, statement: str) -> Iterator[memoryview]:
        for place, row in enumerate(rows(connection, statement)):
            if place == 10:
                with psycopg.connect(postgres_server.address, autocommit=True) as administrator:
                    pid = connection.info.backend_pid
                    administrator.execute("SELECT pg_terminate_backend(%s)", [pid])
            yield row

    declared = "  visits: {owner: person, columns: {word: text}}\n"
    store = store_on(policy_of(declared, tmp_path), choice, tmp_path / "store")
    with monkeypatch.context() as patch:
        patch.setattr(copied, "_rows", end_soon)
        with pytest.raises(UsageError, match="the server failed or went away"):
            store.build(1, choice.at)
    assert store.numbers() == []
    assert not [file for file in (tmp_path / "store").iterdir() if "building" in file.name]
    assert store.build(1, choice.at).tables[0].kept == 30_000


def test_two_that_take_the_same_number_at_once(
    database: Callable[[], EngineChoice], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From two machines, each with a store of its own: one has it, the other is told."""
    choice = database()
    first, second = (
        store_on(policy_of(ODD, tmp_path), choice, tmp_path / place) for place in ("one", "other")
    )
    verify, rows = InSchema.verify, odd_rows()

    def meanwhile(target: InSchema) -> None:
        verify(target)
        monkeypatch.setattr(InSchema, "verify", verify)
        said.append(pool.submit(second.build, 1, {"visits": rows}))
        wait_for_lock(choice)

    said: list[Future[Any]] = []
    monkeypatch.setattr(InSchema, "verify", meanwhile)
    with ThreadPoolExecutor() as pool:
        first.build(1, {"visits": rows})
        with pytest.raises(UsageError, match=r"under the same number\. Take the next one"):
            said[0].result(60)
    assert first.numbers() == second.numbers() == [1]
    engine = first.open(1)
    assert sum(row[0] for row in rows_of(engine, COUNT)) == rows.num_rows
    engine.close()
    second.build(2, {"visits": rows})


def wait_for_lock(choice: EngineChoice) -> None:
    """Wait until somebody waits for a lock of this database."""
    assert choice.at is not None
    waiting = (
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
        " AND wait_event_type = 'Lock'"
    )
    with psycopg.connect(choice.at, autocommit=True) as connection:
        while not connection.execute(waiting).fetchall():
            time.sleep(0.01)


def test_a_disk_that_is_full(postgres_server: Server, tmp_path: Path) -> None:
    """Nothing of the snapshot is there; the one before is asked as ever; with room, it is made."""
    choice = postgres_server.database()
    assert choice.at is not None
    database = psycopg.conninfo.conninfo_to_dict(choice.at)["dbname"]
    store = store_on(policy_of(ODD, tmp_path), choice, tmp_path / "store")
    store.build(1, {"visits": odd_rows()})
    with (
        small_disk(postgres_server.folder / "small", "8m") as disk,
        psycopg.connect(postgres_server.address, autocommit=True) as administrator,
    ):
        os.chown(disk, postgres_server.folder.stat().st_uid, -1)
        administrator.execute(f"CREATE TABLESPACE little LOCATION '{disk}'".encode())
        administrator.execute("GRANT CREATE ON TABLESPACE little TO curator")
        administrator.execute(f"ALTER DATABASE {database} SET default_tablespace = little".encode())
        (disk / "ballast").write_bytes(bytes(shutil.disk_usage(disk).free - 40_000))
        with pytest.raises(UsageError, match="the Postgres server has no room left"):
            store.build(2, {"visits": odd_rows()})
        assert store.numbers() == [1]
        engine = store.open(1)
        assert rows_of(engine, COUNT)
        engine.close()
        (disk / "ballast").unlink()
        store.build(2, {"visits": odd_rows()})
        assert store.numbers() == [1, 2]
        administrator.execute(f"ALTER DATABASE {database} RESET default_tablespace".encode())
        store.remove(2)
        administrator.execute(b"DROP TABLESPACE little")


def test_the_sql_of_the_docs_gives_the_rights_that_are_needed(
    postgres_server: Server, tmp_path: Path
) -> None:
    """Pasted by the owner of a database with live tables: enough for a snapshot and to ask, and
    nobody may do more.
    """
    (sql,) = re.findall(r"```sql\n(.*?)```", DEPLOY.read_text(), re.DOTALL)
    other = postgres_server.database()
    assert other.at is not None
    database = psycopg.conninfo.conninfo_to_dict(other.at)["dbname"]
    assert isinstance(database, str)
    roles = {"curator": "paste_curator", "discreet_reader": "paste_reader"}
    for name, role in {"town": database, **roles}.items():
        sql = re.sub(rf"\b{name}\b", role, sql)
    with psycopg.connect(
        f"{postgres_server.address} dbname={database}", autocommit=True
    ) as connection:
        connection.execute(f"ALTER DATABASE {database} OWNER TO postgres".encode())
        connection.execute(f"GRANT TEMPORARY ON DATABASE {database} TO PUBLIC".encode())
        connection.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
        connection.execute("CREATE TABLE visits (person int, word text)")
        connection.execute("INSERT INTO visits VALUES (1, 'a'), (2, 'b')")
        connection.execute("CREATE VIEW seen AS TABLE visits")
        connection.execute(sql.encode())
        places = {
            role: f"postgresql://{role}@/{database}?host={postgres_server.folder}"
            for role in roles.values()
        }
        choice = EngineChoice(
            name="postgres", at=places["paste_curator"], reader=places["paste_reader"]
        )
        declared = "  visits: {owner: person, columns: {word: text}}\n"
        store = store_on(policy_of(declared, tmp_path), choice, tmp_path / "store")
        assert store.build(1, places["paste_curator"]).tables[0].kept == 2
        engine = store.open(1)
        assert sum(rows_of(engine, COUNT).values()) == 1
        engine.close()
        connection.execute("CREATE TABLE later (person int)")
        with psycopg.connect(places["paste_curator"], autocommit=True) as curator:
            assert curator.execute("SELECT * FROM later").fetchall() == []
            for forbidden in ("DELETE FROM visits", "CREATE TABLE public.mine (x int)"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    curator.execute(forbidden.encode())
        store.open(1).close()
        with (
            psycopg.connect(places["paste_reader"], autocommit=True) as reader,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            reader.execute("SELECT * FROM public.visits")


LONG = "é" * 40  # eighty bytes


def test_names_that_are_too_long_to_be_told_apart(
    database: Callable[[], EngineChoice], tmp_path: Path
) -> None:
    """Postgres keeps sixty-three bytes of a name."""
    rows = pa.table({"person": [1, 2], f"{LONG}a": [3, 4], f"{LONG}b": [5, 6]})
    column = f"{LONG}a: {{integer: [0, 9]}}"
    one = f"  {LONG}: {{owner: person, columns: {{{column}}}}}\n"
    policy = policy_of(one, tmp_path)
    store = store_on(policy, database(), tmp_path / "store")
    store.build(1, {LONG: rows})
    engine = store.open(1)
    assert sum(all_rows(engine, policy, LONG).values()) == 2
    engine.close()
    columns = one.replace(column, f"{column}, {column.replace('a:', 'b:')}")
    for declared in (columns, one + one.replace(f"  {LONG}", f"  {LONG}s")):
        store = store_on(policy_of(declared, tmp_path), database(), tmp_path / "other")
        with pytest.raises(UsageError, match="Postgres keeps 63 bytes of a name, and é"):
            store.build(1, {LONG: rows, f"{LONG}s": rows})
        assert store.numbers() == []


@pytest.mark.parametrize("taken", ["cmax", "cmin", "ctid", "tableoid", "xmax", "xmin"])
def test_a_name_that_postgres_keeps_for_itself(
    taken: str, database: Callable[[], EngineChoice], tmp_path: Path
) -> None:
    declared = f"  boxes: {{owner: person, columns: {{{taken}: {{integer: [0, 9]}}}}}}\n"
    store = store_on(policy_of(declared, tmp_path), database(), tmp_path / "store")
    with pytest.raises(UsageError, match=rf"boxes\.{taken}: Postgres keeps this name"):
        store.build(1, {"boxes": pa.table({"person": [1], taken: [2]})})


@pytest.fixture
def kept(database: Callable[[], EngineChoice], tmp_path: Path) -> tuple[Any, EngineChoice]:
    choice = database()
    store = store_on(policy_of(ODD, tmp_path), choice, tmp_path / "store")
    store.build(1, {"visits": odd_rows()})
    return store, choice


def test_a_manifest_that_was_changed(kept: tuple[Any, EngineChoice]) -> None:
    """A snapshot of other tables is refused, and so is one whose notes cannot be read."""
    store, choice = kept
    assert choice.at is not None
    with psycopg.connect(choice.at, autocommit=True) as connection:
        connection.execute('UPDATE discreet_1."#manifest" SET notes = \'{"number": 1}\'')
    with pytest.raises(UsageError, match="missing or damaged"):
        store.open(1)


def test_a_schema_of_somebody_else_under_a_name_of_ours(kept: tuple[Any, EngineChoice]) -> None:
    store, choice = kept
    assert choice.at is not None
    with psycopg.connect(choice.at, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA discreet_7")
    with pytest.raises(UsageError):
        store.open(7)
    store.open(1).close()
