"""Where the data is, and where questions run: a Plan's SELECT in, an Arrow table of exact aggregates out.

    source      a folder of Parquet or CSV files, a .duckdb file, tables from Python: what is there, and has it changed
    encode      the SQL that moves a value into its public domain
    parts       a table's rows by their schemas, each read by itself; frames does so for tables from Python
    order       which rows of a person come first
    prepare     a source into a numbered snapshot: owners resolved, values on their grid, at most max_rows a person
    verify      a finished snapshot against its policy
    duckdb      questions on a snapshot, locked down, with limits of time and memory
    survey      what a schema alone tells: check a policy against its source, or begin one

Only release and curator may call `fetch`: what it returns is exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


class Engine(Protocol):
    """Runs our own SQL on prepared tables."""

    @property
    def dialect(self) -> str: ...
    def columns(self, table: str) -> dict[str, str]: ...
    def fetch(self, sql: str, seconds: float) -> pa.Table: ...
    def public_table(self, name: str) -> pa.Table: ...
