"""A ledger in PostgreSQL: what only a server can do to it, and which server and role it refuses."""

from __future__ import annotations

import os
import select
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from places import ROLE, address, in_postgres
from small_ledger import ask, charge, noisy, recalled, released, some_terms

from discreet.errors import LedgerUnavailable
from discreet.ledger import Ledger
from discreet.ledger.backup import backup, move, restore
from discreet.ledger.place import Place
from discreet.ledger.stores.postgres import LedgerTables
from discreet.ledger.stores.rights import setup
from real_postgres import Server, server
from small_disk import small_disk

AWAY = (
    "The PostgreSQL of hospital.ledger cannot be reached, or not with this address and role: ask again when it is "
    "back. Nothing was answered."
)


@pytest.fixture
def place(path: Path, running_postgres: Server) -> Place:
    return in_postgres(path, lambda: running_postgres)


@pytest.fixture
def run(place: Place, running_postgres: Server) -> Iterator[Callable[[str], Any]]:
    """Run SQL as the administrator, `home` being the ledger's schema."""
    assert place.address is not None
    home = place.address.rpartition("%3D")[2]
    with psycopg.connect(running_postgres.address, autocommit=True) as administrator:
        yield lambda text: administrator.execute(text.replace("home", home).encode())


def refused(place: Place) -> str:
    with pytest.raises(LedgerUnavailable) as error:
        Ledger.open(place)
    assert (error.value.kind, error.value.exit_code) == ("ledger", 5)
    assert "\n" not in str(error.value)
    return str(error.value)


# --- rights ---------------------------------------------------------------------------------------

TOO_MUCH = {
    f"ALTER ROLE {ROLE} SUPERUSER": (
        f'ALTER ROLE "{ROLE}" NOSUPERUSER;',
        f"ALTER ROLE {ROLE} NOSUPERUSER",
    ),
    f"ALTER ROLE {ROLE} CREATEROLE": (
        f'ALTER ROLE "{ROLE}" NOCREATEROLE;',
        f"ALTER ROLE {ROLE} NOCREATEROLE",
    ),
    f"GRANT postgres TO {ROLE}": (
        f'REVOKE "postgres" FROM "{ROLE}";',
        f"REVOKE postgres FROM {ROLE}",
    ),
    f"GRANT UPDATE ON home.rows TO {ROLE}": (
        "REVOKE UPDATE ON",
        f"REVOKE UPDATE ON home.rows FROM {ROLE}",
    ),
    "GRANT DELETE ON home.answers TO PUBLIC": (
        "REVOKE DELETE ON",
        "REVOKE DELETE ON home.answers FROM PUBLIC",
    ),
    f"GRANT pg_write_all_data TO {ROLE}": (
        'REVOKE "pg_write_all_data"',
        f"REVOKE pg_write_all_data FROM {ROLE}",
    ),
    f"GRANT TRIGGER ON home.keys TO {ROLE}": (
        "REVOKE TRIGGER ON",
        f"REVOKE TRIGGER ON home.keys FROM {ROLE}",
    ),
    f"GRANT CREATE ON SCHEMA home TO {ROLE}": (
        "REVOKE CREATE ON",
        f"REVOKE CREATE ON SCHEMA home FROM {ROLE}",
    ),
    f"ALTER TABLE home.rows OWNER TO {ROLE}": (
        "OWNER TO another role",
        "ALTER TABLE home.rows OWNER TO postgres",
    ),
}


@pytest.mark.parametrize("grant", TOO_MUCH)
def test_a_role_that_may_do_more_is_refused_with_what_to_revoke(
    ledger: Ledger, place: Place, run: Callable[[str], Any], grant: str
) -> None:
    said, undo = TOO_MUCH[grant]
    run(grant)
    try:
        assert said in refused(place)
    finally:
        run(undo)
    run(f"GRANT SELECT, INSERT ON home.rows TO {ROLE}")  # what a change of owner may have taken
    Ledger.open(place).close()


def test_the_role_can_neither_change_nor_remove_a_row(ledger: Ledger, place: Place) -> None:
    ask(ledger)
    assert place.address is not None
    for statement in (
        "UPDATE rows SET body = ''",
        "DELETE FROM rows",
        "TRUNCATE rows",
        "DROP TABLE rows",
    ):
        with (
            psycopg.connect(place.address) as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            connection.execute(statement.encode())


def test_a_role_with_too_few_rights(ledger: Ledger, run: Callable[[str], Any]) -> None:
    run(f"REVOKE INSERT ON home.rows FROM {ROLE}")
    with pytest.raises(
        LedgerUnavailable, match=r"denies a right to the role: run what .* --setup prints"
    ):
        ask(ledger)
    run(f"GRANT INSERT ON home.rows TO {ROLE}")
    assert not ask(ledger).resumed
    ledger.verify()


# --- tables ---------------------------------------------------------------------------------------

SWALLOW = """
CREATE FUNCTION home.swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER swallow BEFORE INSERT ON home.rows FOR EACH ROW EXECUTE FUNCTION home.swallow();
"""


@pytest.mark.parametrize(
    "change",
    [
        SWALLOW,
        "ALTER TABLE home.rows SET UNLOGGED",
        "ALTER TABLE home.rows ENABLE ROW LEVEL SECURITY",
        "CREATE RULE quiet AS ON INSERT TO home.answers DO INSTEAD NOTHING",
        "CREATE TABLE home.child () INHERITS (home.rows)",
        "ALTER TABLE home.rows DROP CONSTRAINT rows_pkey",
        "ALTER TABLE home.rows ALTER mac DROP NOT NULL",
        "ALTER TABLE home.keys ADD note text",
    ],
)
def test_other_tables_than_a_ledger_has_are_refused(
    ledger: Ledger, place: Place, run: Callable[[str], Any], change: str
) -> None:
    run(change)
    assert "has other tables in its PostgreSQL than a ledger has" in refused(place)
    with pytest.raises(LedgerUnavailable):
        ledger.verify()


def test_a_trigger_that_swallows_a_charge_is_noticed_at_once(
    ledger: Ledger, run: Callable[[str], Any]
) -> None:
    ask(ledger)
    run(SWALLOW)
    with pytest.raises(LedgerUnavailable, match="did not keep a row"):
        ask(ledger, "swallowed")
    run("DROP TRIGGER swallow ON home.rows")
    assert not ask(ledger, "swallowed").resumed
    assert ledger.spent() == charge("2/10")


def test_no_tables(path: Path, running_postgres: Server) -> None:
    place = Place(path=path, address=address(running_postgres, "nowhere"))
    with pytest.raises(
        LedgerUnavailable, match=r"has no tables in its PostgreSQL.* --setup prints"
    ):
        Ledger.create(place, some_terms())
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE home.rows SET body = replace(body, '1/10', '1/20') WHERE number = 2",
        "DELETE FROM home.rows WHERE number = 2",
        "DELETE FROM home.rows WHERE number = 4",
        "INSERT INTO home.rows SELECT 5, body, mac FROM home.rows WHERE number = 4",
        "UPDATE home.rows SET mac = (SELECT mac FROM home.rows WHERE number = 3) WHERE number = 4",
        "UPDATE home.answers SET answer = 'other'",
        "DELETE FROM home.answers",
        "DELETE FROM home.keys",
        "UPDATE home.keys SET sealed = 'other'",
        "INSERT INTO home.keys VALUES (2, 'more')",
        "INSERT INTO home.contents VALUES (2, 'more')",
    ],
)
def test_what_an_administrator_changes_is_noticed(
    ledger: Ledger, place: Place, run: Callable[[str], Any], change: str
) -> None:
    released(ledger)
    ask(ledger, "open")
    ledger.verify()
    run(change)
    with pytest.raises(LedgerUnavailable), Ledger.open(place) as again:
        again.verify()
    with pytest.raises(LedgerUnavailable):
        ledger.verify()


def test_a_database_that_was_set_back_is_noticed(
    ledger: Ledger, place: Place, run: Callable[[str], Any]
) -> None:
    """As by a restore of the database, or a standby that took over without the last rows."""
    ask(ledger)
    ask(ledger, "lost")
    run("DELETE FROM home.rows WHERE number = 3")
    run("DELETE FROM home.keys WHERE charge = 3")
    with pytest.raises(LedgerUnavailable, match="once had row 3 and no longer has it"):
        ask(ledger, "next")
    assert "once had row 3" in refused(place)


def test_a_server_that_has_written_nothing_since_needs_the_head_of_the_other(
    ledger: Ledger, place: Place, run: Callable[[str], Any], tmp_path: Path
) -> None:
    """Of rows that a standby lost it can know by nothing else."""
    ask(ledger)
    other = Place(path=tmp_path / "hospital.ledger", address=place.address)
    for end in (".key", ".head"):
        shutil.copy(f"{place.path}{end}", f"{other.path}{end}")
    ask(ledger, "lost")
    head = ledger.head()
    run("DELETE FROM home.rows WHERE number = 3")
    run("DELETE FROM home.keys WHERE charge = 3")
    with pytest.raises(LedgerUnavailable, match="once had row 3"):
        ask(ledger, "next")
    with Ledger.open(other) as second:
        with pytest.raises(LedgerUnavailable):
            second.verify(head)
        second.verify()


# --- the server -----------------------------------------------------------------------------------


def test_a_connection_that_was_lost_while_idle_is_opened_anew(
    ledger: Ledger, run: Callable[[str], Any]
) -> None:
    ask(ledger)
    run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'discreet ledger'"
    )
    assert ask(ledger).resumed
    assert ledger.spent() == charge("1/10")


def test_locked_for_too_long(ledger: Ledger, place: Place, run: Callable[[str], Any]) -> None:
    run("BEGIN; SELECT * FROM home.book FOR UPDATE")
    with Ledger.open(place, timeout=0.1) as other:
        with pytest.raises(LedgerUnavailable, match=r"locked by another process for 0\.1 seconds"):
            ask(other)
        assert other.spent() == charge("0")  # reading still works
        run("ROLLBACK")
        assert not ask(other).resumed


def test_no_message_shows_a_password(path: Path, running_postgres: Server) -> None:
    host = str(running_postgres.folder).replace("/", "%2F")
    for wrong in (
        f"postgresql://nobody:verysecret@/postgres?host={host}",
        "postgresql://spender:verysecret@[broken/postgres",
        "postgresql://spender:verysecret@127.0.0.1:1/postgres",
        f"postgresql://spender:verysecret@/nodatabase?host={host}&nonsense=1",
    ):
        place = Place(path=path, address=wrong)
        with pytest.raises(LedgerUnavailable) as error:
            Ledger.create(place, some_terms())
        assert str(error.value) == AWAY
        assert "verysecret" not in repr(place)
        assert error.value.__cause__ is None
        assert error.value.__suppress_context__


@pytest.fixture(scope="module")
def crashing() -> Iterator[Server]:
    """A server of its own, to be stopped."""
    with server("-c max_connections=20") as made:
        yield made


@pytest.mark.parametrize("moment", ["before it is sent", "before the commit", "after the commit"])
def test_a_server_that_crashes_in_the_middle_of_a_write(
    path: Path, crashing: Server, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Nothing is charged, or it is charged and goes on with the same noise; never twice."""
    place = in_postgres(path, lambda: crashing)
    send, commit, armed = LedgerTables._send, LedgerTables._commit, list[bool]()

    def crash(now: str) -> bool:
        if now != moment or not armed:
            return False
        armed.clear()
        crashing.crash()
        return True

    def crash_at_send(tables: LedgerTables) -> None:
        if tables._pending:
            crash("before it is sent")
        send(tables)

    def crash_at_commit(tables: LedgerTables) -> None:
        writes = tables._last is not None
        if writes:
            crash("before the commit")
        commit(tables)
        if writes and crash("after the commit"):
            raise tables._away()  # nobody heard of it

    monkeypatch.setattr(LedgerTables, "_send", crash_at_send)
    monkeypatch.setattr(LedgerTables, "_commit", crash_at_commit)
    with Ledger.create(place, some_terms()) as ledger:
        posted, waiting = released(ledger, "posted"), ask(ledger, "waiting")
        for work in (lambda: ask(ledger, "new"), lambda: released(ledger, "waiting")):
            armed.append(True)
            with pytest.raises(LedgerUnavailable) as error:
                work()
            assert str(error.value) == AWAY
            with pytest.raises(LedgerUnavailable):
                ledger.spent()
            crashing.start()
        assert ledger.spent() == charge("3/10" if moment == "after the commit" else "2/10")
        assert ask(ledger, "new").resumed == (moment == "after the commit")
        assert released(ledger, "waiting") == noisy(waiting)
        assert released(ledger, "posted") == posted
        assert ledger.spent() == charge("3/10")
        ledger.verify()


@pytest.mark.parametrize("what", ["a charge", "an answer"])
def test_a_commit_of_which_the_reply_is_lost(
    path: Path, running_postgres: Server, what: str
) -> None:
    """On the wire: the server has it, and nobody hears of it. It is there once, and goes on."""
    place = in_postgres(path, lambda: running_postgres)
    with ExitStack() as stack:
        wire = stack.enter_context(Wire(running_postgres.folder))
        assert place.address is not None
        folder = str(running_postgres.folder).replace("/", "%2F")
        between = place.address.replace(folder, str(wire.folder).replace("/", "%2F"))
        ledger = stack.enter_context(
            Ledger.create(Place(path=place.path, address=between), some_terms())
        )
        waiting = ask(ledger, "waiting")
        wire.lose_commit = True
        asked = (ask, "new") if what == "a charge" else (released, "waiting")
        with pytest.raises(LedgerUnavailable) as error:
            asked[0](ledger, asked[1])
        assert str(error.value) == AWAY
        assert wire.lost == 1
        with Ledger.open(place) as other:  # what another server sees meanwhile
            assert other.spent() == charge("2/10" if what == "a charge" else "1/10")
            assert recalled(other, "waiting") == ([] if what == "a charge" else [noisy(waiting)])
        assert ask(ledger, "new").resumed == (what == "a charge")
        assert released(ledger, "waiting") == noisy(waiting)
        assert ledger.spent() == charge("2/10")
        ledger.verify()


class Wire:
    """A socket in a folder of its own that passes on what goes to a server and comes back, until the
    reply to a commit of a write is to be lost: then it ends instead of passing that on.
    """

    def __init__(self, server: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="wire-"))
        self._server, self.lose_commit, self.lost = str(server / ".s.PGSQL.5432"), False, 0
        self._socket = socket.socket(socket.AF_UNIX)

    def __enter__(self) -> Wire:
        self._socket.bind(str(self.folder / ".s.PGSQL.5432"))
        self._socket.listen()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        shutil.rmtree(self.folder)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.connect(self._server)
            written = False
            while True:
                ready, _, _ = select.select([client, server], [], [])
                source = ready[0]
                data = source.recv(65_536)
                if not data:
                    return
                if source is client:
                    written = written or b"INSERT" in data
                    server.sendall(data)
                    continue
                if written and b"COMMIT\x00" in data:
                    written = False
                    if self.lose_commit:
                        self.lose_commit, self.lost = False, self.lost + 1
                        return
                client.sendall(data)


def test_a_server_that_does_not_sync_is_refused(path: Path, crashing: Server) -> None:
    place = in_postgres(path, lambda: crashing)
    Ledger.create(place, some_terms()).close()
    crashing.crash()
    options = f"-c listen_addresses='' -k {crashing.folder} -c fsync=off"
    crashing.control("-o", options, "-l", str(crashing.folder / "log"), "-w", "start")
    assert "runs with fsync = off" in refused(place)
    crashing.crash()
    crashing.start()
    Ledger.open(place).close()


def test_a_server_whose_disk_is_full(path: Path, crashing: Server) -> None:
    with small_disk(crashing.folder / "small", "8m") as disk:
        os.chown(disk, crashing.folder.stat().st_uid, -1)
        place = in_postgres(path, lambda: crashing)
        assert place.address is not None
        home = place.address.rpartition("%3D")[2]
        with psycopg.connect(crashing.address, autocommit=True) as administrator:
            administrator.execute(f"CREATE TABLESPACE small LOCATION '{disk}'".encode())
            administrator.execute(f"ALTER TABLE {home}.answers SET TABLESPACE small".encode())
        with Ledger.create(place, some_terms()) as ledger:
            before = ask(ledger)
            big = os.urandom(2_000_000)
            (disk / "ballast").write_bytes(bytes(shutil.disk_usage(disk).free - 1_000_000))
            with pytest.raises(
                LedgerUnavailable, match="cannot grow, its disk is full: free some space"
            ):
                ledger.post(before, big)
            assert recalled(ledger) == []
            (disk / "ballast").unlink()
            assert released(ledger) == noisy(before)
            assert ledger.spent() == charge("1/10")
            ledger.verify()
        with psycopg.connect(crashing.address, autocommit=True) as administrator:
            administrator.execute(f"DROP SCHEMA {home} CASCADE".encode())
            administrator.execute(b"DROP TABLESPACE small")


# --- keys, copies, moves --------------------------------------------------------------------------


def test_two_servers_have_the_key_each(ledger: Ledger, place: Place, tmp_path: Path) -> None:
    other = Place(path=tmp_path / "hospital.ledger", address=place.address)
    assert "The key of hospital.ledger is missing" in refused(other)
    for end in (".key", ".head"):
        shutil.copy(f"{place.path}{end}", f"{other.path}{end}")
    with Ledger.open(other) as second:
        waiting = ask(ledger)
        assert ask(second).key == waiting.key
        Ledger.rotate_key(place)
        with pytest.raises(
            LedgerUnavailable, match=r"rotated on another server: copy hospital\.ledger\.key"
        ):
            ask(second)
        shutil.copy(f"{place.path}.key", f"{other.path}.key")
        assert ask(second).key == waiting.key
        assert second.verify(ledger.head()) == 3


def test_a_ledger_moves_to_postgresql_and_back(
    path: Path, running_postgres: Server, tmp_path: Path
) -> None:
    file = Place(path=path)
    with Ledger.create(file, some_terms()) as ledger:
        answer, waiting, head = released(ledger), ask(ledger, "waiting"), ledger.head()
        stream = ask(ledger, "stream", stream=True)
        shared = in_postgres(path, lambda: running_postgres)
        assert move(file, shared) == 6
        with pytest.raises(
            LedgerUnavailable, match="was moved to PostgreSQL: name it there in the policy"
        ):
            ask(ledger, "more")
    with Ledger.open(shared) as ledger:
        assert recalled(ledger) == [answer]
        assert ask(ledger, "waiting").key == waiting.key
        assert ask(ledger, "stream", stream=True).key == stream.key
        more = released(ledger, "more")
        ledger.verify(head)
        back = Place(path=tmp_path / "back.ledger")
        assert move(shared, back) == 9
        with pytest.raises(LedgerUnavailable, match="was moved to a file"):
            ledger.spent()
    with Ledger.open(back) as ledger:
        assert recalled(ledger, "more") == [more]
        assert released(ledger, "waiting") == noisy(waiting)
        assert ledger.spent() == charge("4/10")
        ledger.verify(head)
    with pytest.raises(LedgerUnavailable, match="holds a ledger already"):
        move(back, Place(path=tmp_path / "again.ledger", address=shared.address))
    with Ledger.open(back) as ledger:  # refused before anything was done
        ask(ledger, "last")


def test_a_move_that_was_interrupted_is_run_again(
    path: Path, running_postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In between nobody spends anywhere."""
    file, shared = Place(path=path), in_postgres(path, lambda: running_postgres)
    with Ledger.create(file, some_terms()) as ledger:
        answer = released(ledger)

    def interrupted(self: Ledger, target: Place) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "copy", interrupted)
        with pytest.raises(KeyboardInterrupt):
            move(file, shared)
    for place, said in ((file, "was moved to PostgreSQL"), (shared, "There is no ledger")):
        assert said in refused(place)
    assert move(file, shared) == 4
    with Ledger.open(shared) as ledger:
        assert recalled(ledger) == [answer]


def test_a_backup_is_files_that_spend_nothing(ledger: Ledger, place: Place, tmp_path: Path) -> None:
    answer, waiting = released(ledger), ask(ledger, "waiting")
    assert backup(place, tmp_path / "backup") == 4
    copy = tmp_path / "backup" / "hospital.ledger"
    assert "was moved to PostgreSQL" in refused(Place(path=copy))
    with pytest.raises(LedgerUnavailable, match="holds a ledger already"):
        restore(tmp_path / "backup", place, head=None)
    head = ledger.head()
    back = tmp_path / "back" / "hospital.ledger"
    back.parent.mkdir()
    assert restore(tmp_path / "backup", back, head=head)  # into a file, as where the server is gone
    with Ledger.open(back) as again:
        assert recalled(again) == [answer]
        assert ask(again, "waiting").key == waiting.key


def test_a_backup_is_put_back_into_empty_tables(
    ledger: Ledger, place: Place, run: Callable[[str], Any], tmp_path: Path
) -> None:
    answer, head = released(ledger), ledger.head()
    backup(place, tmp_path / "backup")
    run("TRUNCATE home.rows, home.keys, home.answers, home.contents")
    for end in (".key", ".head"):
        Path(f"{place.path}{end}").unlink()
    assert restore(tmp_path / "backup", place, head=head)
    with Ledger.open(place) as again:
        assert recalled(again) == [answer]
        assert again.head() == head


def test_the_setup_is_plain_sql() -> None:
    text = setup('od"d', "spender")
    assert 'CREATE SCHEMA "od""d";' in text
    assert "SUPERUSER" not in text
    assert text.count("GRANT") == 6
