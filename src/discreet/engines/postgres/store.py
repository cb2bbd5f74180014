"""Snapshots as schemas `discreet_<n>` of a Postgres database, each written in one transaction:
whole, or not there.

Rows are prepared by the very rules of the embedded engine, in a temporary file of the policy's
store, and copied from there. So both engines hold the same rows; what is in the schema is checked
before it is committed (S23).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.engines.duckdb.preparing.prepare import prepared
from discreet.engines.duckdb.preparing.verify import (
    count_violations,
    most_rows,
    require_none,
    rules_of,
    too_many,
)
from discreet.engines.engine import Progress
from discreet.engines.layout import OWNER
from discreet.engines.postgres.engine import PostgresEngine
from discreet.engines.postgres.kinds import Tables
from discreet.engines.postgres.letters import FUNCTIONS, define
from discreet.engines.postgres.server import (
    MANIFEST,
    SCHEMA,
    connect,
    reader_address,
    schema_of,
    twin_of,
)
from discreet.engines.postgres.spelling import micros
from discreet.engines.postgres.tables import (
    copy_rows,
    create_tables,
    keep_manifest,
    keep_public,
    stored_tables,
)
from discreet.engines.quoting import name
from discreet.engines.snapshot import Snapshot, read_notes, write_notes
from discreet.engines.source import engine_errors, loading
from discreet.errors import UsageError
from discreet.policy.policy import Policy

if TYPE_CHECKING:
    from discreet.engines.postgres.server import Link

_OWN = re.compile(rf"{SCHEMA}_([1-9][0-9]*)")
CURATOR, READER = "the curator (engine.at)", "the reader (engine.reader)"


@dataclass(frozen=True, slots=True)
class PostgresStore:
    """The snapshots of one policy in the database that it names."""

    policy: Policy

    @property
    def _at(self) -> str:
        assert self.policy.engine.at is not None  # the policy has seen to it
        return self.policy.engine.at

    @property
    def _reader(self) -> str:
        return reader_address(self._at, self.policy.engine.reader)

    @contextmanager
    def _reading(self) -> Iterator[Link]:
        import_driver()
        with _told(connect(self._reader, what=READER), "read") as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Link]:
        import_driver()
        with _told(connect(self._at, what=CURATOR), "written") as connection:
            yield connection

    def numbers(self) -> list[int]:
        with self._reading() as connection:
            schemas = connection.execute("SELECT nspname FROM pg_namespace").fetchall()
        return sorted(int(found[1]) for (each,) in schemas if (found := _OWN.fullmatch(str(each))))

    def snapshot(self, number: int) -> Snapshot:
        return self._manifest(number)[0]

    def _manifest(self, number: int) -> tuple[Snapshot, Tables]:
        if number not in self.numbers():
            raise UsageError(
                f"There is no snapshot {number} in the database. Take a new one: discreet snapshot."
            )
        with self._reading() as connection:
            kept = f"SELECT notes, tables FROM {schema_of(number)}.{name(MANIFEST)}"
            [(notes, tables)] = connection.execute(kept.encode()).fetchall()
        try:
            return read_notes(str(notes)), json.loads(str(tables))
        except (ValueError, KeyError, TypeError):
            raise UsageError(
                f"The notes of snapshot {number} are missing or damaged. Take a new one: discreet snapshot."
            ) from None

    def build(
        self,
        number: int,
        source: object,
        progress: Progress | None = None,
        *,
        threads: int | None = None,
    ) -> Snapshot:
        if number < 1 or number in self.numbers():
            raise UsageError(
                f"The snapshot {number} is there already, or is no number. Take the next one."
            )
        with prepared(
            self.policy, source, self.policy.store, number, progress, threads=threads
        ) as (building, notes):
            self.publish(building.path, number, notes)
        return notes

    def publish(self, path: Path, number: int, notes: Snapshot) -> None:
        """Copy a prepared file into the schema of its number, which appears at once."""
        role = self._role()
        with self._writing() as connection, connection.transaction():
            self._write(connection, path, number, notes, role)

    def _role(self) -> str:
        from psycopg.conninfo import conninfo_to_dict

        role = conninfo_to_dict(self._reader).get("user")
        if not isinstance(role, str):
            raise UsageError(
                "engine.reader must name a role: postgresql://discreet_reader@host/database."
            )
        return role

    def _write(self, connection: Link, path: Path, number: int, notes: Snapshot, role: str) -> None:
        with engine_errors("Copying a snapshot"):
            snapshot = loading(path, memory=self.policy.limits.memory, read_only=True)
        try:
            tables = stored_tables(snapshot)
            create_tables(connection, number, tables)
            for table, columns in tables.items():
                rows = copy_rows(snapshot, connection, number, table, columns)
                kept = next(each.kept for each in notes.tables if each.name == table)
                if rows != kept:
                    raise UsageError(
                        f"The snapshot was not made: {rows} of {kept} rows of {table} arrived in Postgres."
                    )
            keep_public(snapshot, connection, number, tables)
        finally:
            snapshot.close()
        for schema in (schema_of(number), twin_of(number)):
            for function in FUNCTIONS:
                connection.execute(define(function, schema).encode())
        for table in tables:
            connection.execute(f"ANALYZE {schema_of(number)}.{name(table)}".encode())
        self._verify(connection, number, tables)
        keep_manifest(connection, number, write_notes(notes), tables)
        for schema in (schema_of(number), twin_of(number)):
            connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {name(role)}".encode())
            connection.execute(
                f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {name(role)}".encode()
            )

    def _verify(self, connection: Link, number: int, tables: Tables) -> None:
        """Hold what is in the schema against the policy, as questions will find it (S23)."""
        # Whoever has too many rows is looked for in memory, as far as it goes.
        memory = f"{max(4_096, self.policy.limits.memory // 4_000)}kB"
        connection.execute("SELECT set_config('work_mem', %s, true)", [memory])
        for table in self.policy.tables.values():
            if OWNER not in tables[table.name]:
                continue
            place = f"{schema_of(number)}.{name(table.name)}"
            rules = rules_of(table, tables[table.name], micros=micros)
            [counts] = connection.execute(
                f"SELECT {count_violations(rules)} FROM {place}".encode()
            ).fetchall()
            require_none(table, rules, counts)
            if connection.execute(most_rows(table, place).encode()).fetchall():
                raise too_many(table)

    def open(self, number: int, *, threads: int | None = None) -> PostgresEngine:
        snapshot, tables = self._manifest(number)
        if snapshot.digest != self.policy.digest:
            raise UsageError(
                f"Snapshot {number} was made before the policy's tables, unit or neighbors changed. "
                "Take a new one: discreet snapshot."
            )
        return PostgresEngine(self._reader, number, tables, memory=self.policy.limits.engine_memory)

    def remove(self, number: int) -> None:
        with self._writing() as connection, connection.transaction():
            for schema in (schema_of(number), twin_of(number)):
                connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE".encode())


def import_driver() -> None:
    """Raise UsageError, with the command to type, where the driver is missing."""
    from discreet.extras import require

    require("psycopg", what="The engine postgres")


@contextmanager
def _told(connection: Link, how: str) -> Iterator[Link]:
    """Close a connection at the end, and make one sentence of what goes wrong."""
    import logging

    import psycopg

    try:
        yield connection
    except psycopg.errors.InsufficientPrivilege:
        raise UsageError(
            f"The snapshot could not be {how}: the role {connection.info.user} may not. The curator's role needs "
            "CREATE on the database; the reader gets its rights when a snapshot is made."
        ) from None
    except psycopg.errors.UndefinedObject:
        raise UsageError(
            f"The snapshot could not be {how}: the reader's role does not exist. "
            "Make it: CREATE ROLE discreet_reader LOGIN PASSWORD '...'."
        ) from None
    except psycopg.Error as error:
        logging.getLogger("discreet.engine").error(
            "Postgres: %s (%s).", type(error).__name__, error.sqlstate
        )
        raise UsageError(
            f"The snapshot could not be {how}: the Postgres server failed or went away."
        ) from None
    finally:
        connection.close()
