"""SQLite files, by Python's own reader."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.engines.readers.reader import Declarations, Wanted, texts
from discreet.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class SQLite:
    """One SQLite file."""

    file: Path

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = sqlite3.connect(f"{self.file.absolute().as_uri()}?mode=ro", uri=True)
            connection.text_factory = _utf8_or_nothing
            try:
                yield connection
            finally:
                connection.close()
        except sqlite3.Error:
            why = "it is no SQLite file, or another program is writing to it"
            raise UsageError(f"The source {self.file} cannot be read: {why}.") from None

    def tables(self) -> tuple[str, ...]:
        with self._opened() as connection:
            named = (
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
                "AND name NOT LIKE 'sqlite_%' ORDER BY name"
            )
            return tuple(row[0] for row in connection.execute(named))

    def declared(self, table: str) -> Declarations:
        with self._opened() as connection:
            columns = connection.execute(
                "SELECT name, type, pk FROM pragma_table_info(?)", [table]
            ).fetchall()
            keys = connection.execute(
                'SELECT "from", "table", "to" FROM pragma_foreign_key_list(?)', [table]
            )
            foreign = {
                column: (other, key or _primary(connection, other))
                for column, other, key in keys.fetchall()
            }
            made = connection.execute(
                "SELECT sql FROM sqlite_master WHERE name = ?", [table]
            ).fetchone()
        return Declarations(
            types={name: (kind or "").upper() for name, kind, _ in columns},
            primary=tuple(
                name for name, _, place in sorted(columns, key=lambda row: row[2]) if place
            ),
            foreign=foreign,
            checks=tuple(_checks(made[0] if made and made[0] else "")),
        )

    def unheld(self, table: str) -> dict[str, str]:
        """Return nothing: its columns hold values of any type."""
        return {}

    @contextmanager
    def read(self, rows: Wanted) -> Iterator[dict[str, pa.Table]]:
        found = {}
        columns = {table: list(self.declared(table).types) for table in self.tables()}
        with self._opened() as connection:
            connection.execute("BEGIN")  # what others write from here on is not seen
            for table, names in columns.items():
                quoted = table.replace('"', '""')
                read = f'SELECT * FROM "{quoted}"' if table.lower() in rows else None
                found[table] = texts(
                    names, [] if read is None else connection.execute(read).fetchall()
                )
        yield found


def _primary(connection: sqlite3.Connection, table: str) -> str:
    """Return the first column of a table's primary key: what a foreign key refers to that names no
    column.
    """
    found = connection.execute(
        "SELECT name FROM pragma_table_info(?) WHERE pk = 1", [table]
    ).fetchone()
    return str(found[0]) if found else ""


def _utf8_or_nothing(data: bytes) -> str | None:
    """Decode a text, and return NULL for one whose bytes are not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _checks(sql: str) -> Iterator[str]:
    """Return the conditions of CHECK ( ... ) in a CREATE TABLE."""
    upper = sql.upper()
    start = 0
    while (found := upper.find("CHECK", start)) >= 0:
        begin = sql.find("(", found)
        depth, end = 0, begin
        for end in range(begin, len(sql)):
            depth += {"(": 1, ")": -1}.get(sql[end], 0)
            if depth == 0:
                break
        if begin >= 0:
            yield sql[begin + 1 : end]
        start = max(end, found + 5)
