"""Build a snapshot in Postgres: fill the schema of its number, and its empty twin, in a transaction
that nobody else sees.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.engines.duckdb.preparing.verify import (
    count_violations,
    most_rows,
    require_none,
    rules_of,
    too_many,
)
from discreet.engines.layout import public
from discreet.engines.postgres.letters import FUNCTIONS, define
from discreet.engines.postgres.server import PUBLIC_TABLES, schema_of, twin_of
from discreet.engines.postgres.spelling import micros
from discreet.engines.postgres.tables import (
    copy_rows,
    create_table,
    keep_manifest,
    keep_public,
    require_names,
)
from discreet.engines.quoting import name
from discreet.engines.snapshot import Snapshot, write_notes
from discreet.engines.source import columns_of, engine_errors, loading
from discreet.policy.policy import Policy, Table

if TYPE_CHECKING:
    from discreet.engines.postgres.server import Link


@dataclass(slots=True, kw_only=True)
class InSchema:
    """The `Target` of the rows of snapshot `number`, inside a transaction of the caller."""

    connection: Link
    policy: Policy
    number: int
    # for each table its columns, with DuckDB's types
    tables: dict[str, dict[str, str]] = field(default_factory=dict)
    begun: bool = False

    @property
    def _schemas(self) -> tuple[str, str]:
        return schema_of(self.number), twin_of(self.number)

    def begin(self) -> None:
        require_names(self.policy.tables)
        for schema in self._schemas:
            # the schema is our own: another process that creates it would wait for us
            if self.begun:
                self.connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())
            self.connection.execute(f"CREATE SCHEMA {schema}".encode())
        self.begun = True
        self.tables.clear()

    def keep(self, connection: Any, table: Table, rows: str) -> int:
        self.tables[table.name] = columns_of(connection, f"({rows})")
        return self._copy(connection, table, rows)

    def _copy(self, duckdb: Any, table: Table, rows: str) -> int:
        columns = self.tables[table.name]
        create_table(self.connection, self.number, table.name, columns)
        arrived = copy_rows(duckdb, rows, self.connection, self.number, table.name, columns)
        place = f"{schema_of(self.number)}.{name(table.name)}"
        self.connection.execute(f"ANALYZE {place}".encode())
        return arrived

    def verify(self) -> None:
        """Compare the rows in the schema, as questions will read them, with the policy (S23)."""
        # memory for the search for people with too many rows
        memory = f"{max(4_096, self.policy.limits.memory // 4_000)}kB"
        self.connection.execute("SELECT set_config('work_mem', %s, true)", [memory])
        for table in self.policy.tables.values():
            if table.public:
                continue
            place = f"{schema_of(self.number)}.{name(table.name)}"
            rules = rules_of(table, self.tables[table.name], micros=micros)
            [counts] = self.connection.execute(
                f"SELECT {count_violations(rules)} FROM {place}".encode()
            ).fetchall()
            require_none(table, rules, counts)
            if self.connection.execute(most_rows(table, place).encode()).fetchall():
                raise too_many(table)

    def finish(self, file: Path, notes: Snapshot, reader: str) -> None:
        """Add the public tables of a prepared file, the functions that questions call, the
        manifest, and the rights of the reader's role.
        """
        kept = f"{schema_of(self.number)}.{name(PUBLIC_TABLES)}"
        self.connection.execute(f"CREATE TABLE {kept} (name text, content bytea)".encode())
        with engine_errors("Copying a snapshot"):
            prepared = loading(file, memory=self.policy.limits.memory, read_only=True)
        try:
            for table in self.policy.tables.values():
                if table.public:
                    self.tables[table.name] = columns_of(prepared, public(table.name))
                    self._copy(prepared, table, f"FROM {public(table.name)}")
                    keep_public(prepared, self.connection, self.number, table.name)
        finally:
            prepared.close()
        for schema in self._schemas:
            for function in FUNCTIONS:
                self.connection.execute(define(function, schema).encode())
        keep_manifest(self.connection, self.number, write_notes(notes), self.tables)
        for schema in self._schemas:
            for grant in (
                f"GRANT USAGE ON SCHEMA {schema} TO {name(reader)}",
                f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {name(reader)}",
            ):
                self.connection.execute(grant.encode())
