"""Where released tables are worked on: one warm, locked, in-memory DuckDB that never holds private data (S19)."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pyarrow as pa

from discreet.engines.watch import interrupted
from discreet.errors import EngineFailure

_CONFIG = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "python_enable_replacements": "false",
    "lock_configuration": "true",
    "threads": "1",
    "memory_limit": "1GB",
}


class Workbench:
    """Runs the SQL that stands above the noise, on the tables it is handed."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(":memory:", config=_CONFIG)

    def run(self, sql: str, tables: Mapping[str, pa.Table], *, seconds: float) -> pa.Table:
        cursor = self._connection.cursor()
        try:
            for name, table in tables.items():
                cursor.register(name, table)
            with interrupted(seconds, cursor.interrupt):
                return cursor.sql(sql).to_arrow_table()
        except duckdb.Error:
            raise EngineFailure from None
        finally:
            for name in tables:
                cursor.unregister(name)
            cursor.close()
