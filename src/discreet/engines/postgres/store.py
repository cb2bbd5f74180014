"""Snapshots as schemas `discreet_<n>` of a Postgres database, each written in one transaction:
whole, or not there.

Rows are prepared by the very rules of the embedded engine, and copied from it. So both engines hold
the same rows; what is in the schema is checked before it is committed (S23).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.engines.duckdb.preparing.prepare import prepare_file
from discreet.engines.engine import Progress
from discreet.engines.postgres.engine import PostgresEngine
from discreet.engines.postgres.kinds import Tables
from discreet.engines.postgres.schema import InSchema
from discreet.engines.postgres.server import (
    MANIFEST,
    SCHEMA,
    connect,
    reader_address,
    schema_of,
    twin_of,
)
from discreet.engines.quoting import name
from discreet.engines.snapshot import Snapshot, read_notes
from discreet.errors import UsageError
from discreet.policy.policy import Policy

if TYPE_CHECKING:
    from discreet.engines.postgres.server import Link

_OWN = re.compile(rf"{SCHEMA}_([1-9][0-9]*)")
_NO_ROOM = "53"  # the class of errors of a full disk and of too little memory
CURATOR = "the curator (engine.at)"
READER = "the reader (engine.reader)"


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
        role = self._role()
        with self._writing() as connection, connection.transaction():
            # the source takes as long as it takes, whatever the server allows by default
            for setting in ("statement_timeout", "idle_in_transaction_session_timeout"):
                connection.execute("SELECT set_config(%s, '0', true)", [setting])
            target = InSchema(connection=connection, policy=self.policy, number=number)
            with prepare_file(
                self.policy,
                source,
                self.policy.store,
                number,
                progress,
                threads=threads,
                target=target,
            ) as (building, notes):
                target.finish(building.path, notes, role)
        return notes

    def _role(self) -> str:
        from psycopg.conninfo import conninfo_to_dict

        role = conninfo_to_dict(self._reader).get("user")
        if not isinstance(role, str):
            raise UsageError(
                "engine.reader must name a role: postgresql://discreet_reader@host/database."
            )
        return role

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
    except (psycopg.errors.DuplicateSchema, psycopg.errors.UniqueViolation):
        raise UsageError(
            "Another snapshot was taken in this database meanwhile, under the same number. Take the next one."
        ) from None
    except psycopg.Error as error:
        logging.getLogger("discreet.engine").error(
            "Postgres: %s (%s).", type(error).__name__, error.sqlstate
        )
        full = (error.sqlstate or "").startswith(_NO_ROOM)
        why = "has no room left" if full else "failed or went away"
        left = " Nothing of it is left: take it again." if how == "written" else ""
        raise UsageError(
            f"The snapshot could not be {how}: the Postgres server {why}.{left}"
        ) from None
    finally:
        connection.close()
