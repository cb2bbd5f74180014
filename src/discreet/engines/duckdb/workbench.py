"""Run SQL on released tables, in a locked in-memory DuckDB that never holds private data (S19). It
stays open, because opening one takes time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from discreet.algebra import PublicScan
from discreet.engines.duckdb.locked import COMMON_PARTS, connect, lock
from discreet.engines.limits.watch import interrupt_after
from discreet.engines.spelling import Spelling
from discreet.errors import EngineFailure

_MEMORY = 10**9
_BATCH = 100_000  # rows
_MOST_BYTES = 500_000_000  # of a result


@dataclass(frozen=True, slots=True)
class WorkbenchSpelling(Spelling):
    """SQL that reads public tables by their names, as a workbench is given them."""

    def place(self, node: PublicScan) -> str:
        return self.name(node.table)


class Workbench:
    """Runs the SQL above the noise, on the tables that it is given."""

    def __init__(self) -> None:
        self._connection = connect(memory=_MEMORY, threads=1, without=(COMMON_PARTS,))
        lock(self._connection)

    def run(self, sql: str, tables: Mapping[str, pa.Table], *, seconds: float) -> pa.Table:
        cursor = self._connection.cursor()
        try:
            for name, table in tables.items():
                cursor.register(name, table)
            with (
                interrupt_after(seconds, cursor.interrupt),
                cursor.sql(sql).to_arrow_reader(_BATCH) as reader,
            ):
                return read_within(reader, _MOST_BYTES)
        except (duckdb.Error, pa.ArrowException, OSError):
            raise EngineFailure from None
        finally:
            for name in tables:
                cursor.unregister(name)
            cursor.close()


def read_within(reader: pa.RecordBatchReader, most_bytes: int) -> pa.Table:
    """Return all of a result; raise EngineFailure if it has more than so many bytes.

    The engine's own limit does not count rows that it has handed over.
    """
    batches = []
    size = 0
    for batch in reader:
        batches.append(batch)
        size += batch.nbytes
        if size > most_bytes:
            raise EngineFailure
    return pa.Table.from_batches(batches, reader.schema)
