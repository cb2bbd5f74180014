"""The empty twin of a snapshot: a database with the same tables and no rows. Whether a query can
run is tried there, so the result cannot depend on data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.engines.duckdb.locked import STATISTICS, connect, lock
from discreet.engines.layout import PUBLIC, SCHEMAS
from discreet.engines.quoting import literal, name

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MEMORY = 10**9


def empty_twin(snapshot: DuckDBPyConnection) -> DuckDBPyConnection:
    """Make a locked database in memory with a snapshot's tables, columns and types."""
    twin = connect(memory=_MEMORY, threads=1, without=(STATISTICS,))
    listed = snapshot.cursor().execute(
        "SELECT schema_name, table_name, column_name, data_type FROM duckdb_columns() "
        f"WHERE schema_name IN ({', '.join(map(literal, SCHEMAS))}) AND NOT internal ORDER BY column_index"
    )
    tables: dict[tuple[str, str], list[str]] = {}
    for schema, table, column, kind in listed.fetchall():
        tables.setdefault((schema, table), []).append(f"{name(column)} {kind}")
    twin.execute(f"CREATE SCHEMA IF NOT EXISTS {PUBLIC}")
    for (schema, table), columns in tables.items():
        twin.execute(f"CREATE TABLE {schema}.{name(table)} ({', '.join(columns)})")
    lock(twin)
    return twin
