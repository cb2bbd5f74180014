"""The one place that opens a DuckDB, whatever for: what every connection of ours cannot do is said
once.

None loads or installs an extension, keeps a secret, or takes a table from Python's variables. None
reaches a file but its own unless it asks to, and what is to be asked is locked when it is ready:
nothing can be set any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Privacy: a statement must not be rewritten by what the statistics of the data say of it. DuckDB
# 2.0 fails to bind split_part(x, ...) = 'a' where it knows x to be NULL in every row: the error
# told whether one person has a value.
STATISTICS = "statistics_propagation"
# Privacy: DuckDB 2.0 takes what stands in two places of a statement out of TRY (...), where it
# fails.
COMMON_PARTS = "common_subexpressions"
_ALWAYS = {
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "python_enable_replacements": "false",
}


def connect(
    path: str | Path | None = None,
    *,
    files: bool = False,
    read_only: bool = False,
    memory: int | None = None,
    threads: int | None = None,
    keep_order: bool = True,
    without: Sequence[str] = (),
    spill: str | Path | None = None,
) -> DuckDBPyConnection:
    """Open a database in memory, or the file at a path; `files` lets it reach others, `without`
    names optimizers to go.

    `memory` is in bytes; what does not fit goes to the folder `spill`, or beside the file.
    """
    import duckdb

    config: dict[str, str] = dict(_ALWAYS)
    if not files:
        config["enable_external_access"] = "false"
    if not keep_order:
        config["preserve_insertion_order"] = "false"
    if memory is not None:
        config["memory_limit"] = f"{memory}B"
    if threads is not None:
        config["threads"] = str(threads)
    if without:
        config["disabled_optimizers"] = ",".join(without)
    if spill is not None:
        config["temp_directory"] = str(spill)
    return duckdb.connect(
        ":memory:" if path is None else str(path), read_only=read_only, config=config
    )


def lock(connection: DuckDBPyConnection, *, files: bool = True) -> None:
    """Let nothing be set any more, without `files` reach none either; and wherever the machine
    stands, it is UTC.
    """
    import duckdb

    if not files:
        connection.execute("SET enable_external_access = false")
    # Connections to one file share what is set: another one may have locked it.
    with suppress(duckdb.InvalidInputException):
        connection.execute("SET GLOBAL TimeZone = 'UTC'")
    with suppress(duckdb.InvalidInputException):
        connection.execute("SET lock_configuration = true")
    found = connection.execute(
        "SELECT current_setting('TimeZone'), current_setting('lock_configuration')"
    ).fetchall()
    if found != [("UTC", True)]:
        raise duckdb.InvalidInputException("the configuration cannot be locked")
