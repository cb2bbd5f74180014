"""Open DuckDB connections. No other module does, so what they may not do is written once.

No connection loads or installs an extension, keeps a secret, or reads a table from Python's
variables. None reaches other files than its own, unless the caller demands it. A connection that
runs questions is locked when it is ready: then no setting can be changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Privacy: this optimizer rewrites statements by statistics of the data, so it must be off. DuckDB
# 2.0 fails to bind split_part(x, ...) = 'a' if it knows that x is NULL in every row: the error
# would tell whether one person has a value.
STATISTICS = "statistics_propagation"
# Privacy: this optimizer of DuckDB 2.0 moves an expression that occurs twice out of TRY (...), and
# there it can fail.
COMMON_PARTS = "common_subexpressions"
# Privacy: this optimizer of DuckDB 2.0 drops conditions `x IS NULL` where outer joins are nested,
# so that rows are counted which the checker has proved to be left out. It is off everywhere.
OUTER_JOINS = "outer_join_simplification"
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
    """Open a database in memory, or the file at a path.

    `files` lets it reach other files, `without` names further optimizers to turn off. `memory` is
    in bytes; what does not fit is written to the folder `spill`, or beside the file.
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
    config["disabled_optimizers"] = ",".join((OUTER_JOINS, *without))
    if spill is not None:
        config["temp_directory"] = str(spill)
    return duckdb.connect(
        ":memory:" if path is None else str(path), read_only=read_only, config=config
    )


def lock(connection: DuckDBPyConnection, *, files: bool = True) -> None:
    """Lock the settings of a connection, and set its time zone to UTC. If `files` is false, forbid
    it all other files too.
    """
    import duckdb

    if not files:
        connection.execute("SET enable_external_access = false")
    # Connections to one file share their settings, and another one may have locked them.
    with suppress(duckdb.InvalidInputException):
        connection.execute("SET GLOBAL TimeZone = 'UTC'")
    with suppress(duckdb.InvalidInputException):
        connection.execute("SET lock_configuration = true")
    found = connection.execute(
        "SELECT current_setting('TimeZone'), current_setting('lock_configuration')"
    ).fetchall()
    if found != [("UTC", True)]:
        raise duckdb.InvalidInputException("the configuration cannot be locked")
