"""The source of the data: a folder of Parquet or CSV files, a database or workbook, or tables
passed from Python.

A source is never written, and read only by this module and only to make a snapshot. Tables from
Python must be passed in: DuckDB's replacement scans, which look up variables, stay off.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.engines.duckdb.locked import connect
from discreet.engines.files import CSV, PARQUET, delimiter_of, guess_csv, parquet, texts
from discreet.engines.frames import arrow
from discreet.engines.quoting import literal, name
from discreet.engines.readers import lake_at, reader_at
from discreet.engines.readers.reader import NO_ROWS, Reader, Wanted
from discreet.errors import EngineFailure, SnapshotFailure, UsageError
from discreet.policy.addresses import hide_passwords
from discreet.policy.policy import Policy

DATABASES = (".duckdb", ".db", ".ddb")
_log = logging.getLogger("discreet.engine")
ATTACHED = "#source"  # the name of a DuckDB file that is a source, in a connection that reads it
_BY_NAME = ", union_by_name = true"


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder with a file for each table (people.parquet), or a folder for each
    (people/2024.parquet, people/2025.parquet).
    """

    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """One .duckdb file."""

    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonTables:
    """Tables from Python: Arrow tables and datasets, and data frames that can become such."""

    tables: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """A source that one of `readers` reads: a SQLite file, a workbook, a labelled file, a
    PostgreSQL database, or tables of Spark.
    """

    reader: Reader


Source = Folder | Database | PythonTables | Foreign


def source_at(location: object, policy: Policy | None = None) -> Source:
    """Return the source that a policy or a call names; raise UsageError if it does not exist.

    Spark reads its tables with the policy's engine, under the names of the policy's tables.
    """
    if isinstance(location, Mapping):
        for name, table in location.items():
            if hasattr(table, "read_next_batch"):
                raise UsageError(
                    f"The table {name} is a stream that can be read once: pass its read_all() instead."
                )
        return PythonTables(tables=location)
    if location is None:
        raise UsageError(
            "The policy names no source: add `source: data/` to it, or pass the tables from Python."
        )
    reader = lake_at(str(location), policy) or reader_at(str(location))
    if reader is not None:
        return Foreign(reader=reader)
    if isinstance(location, str) and "://" in location:
        kind = location.split(":", 1)[0]
        raise UsageError(
            f"A source cannot be {kind}://. Name a folder of Parquet or CSV files, a .duckdb, .sqlite, .xlsx or "
            ".sav file, postgresql://... or catalog:..., delta:... or iceberg:..., or pass the tables from Python."
        )
    path = Path(str(location))
    if path.is_dir():
        return Folder(path=path)
    if path.is_file() and path.suffix in DATABASES:
        return Database(path=path)
    if path.exists():
        known = "a folder nor a .duckdb, .sqlite, .xlsx, .sav, .dta or .sas7bdat file"
        raise UsageError(f"The source {path} is neither {known}: name the folder it lies in.")
    named = hide_passwords(str(path))
    raise UsageError(
        f"The source {named} does not exist. A relative path starts at the policy file."
    )


def loading(
    path: Path | None,
    *,
    memory: int | None = None,
    threads: int | None = None,
    read_only: bool = False,
) -> Any:
    """Open a connection for reading sources, writing snapshots and checking them: in memory, a new
    file, or an existing one.
    """
    # Row order is not kept (nothing may depend on it, S4), which halves the memory of a load.
    connection = connect(
        path, files=True, read_only=read_only, memory=memory, threads=threads, keep_order=False
    )
    connection.execute("SET TimeZone = 'UTC'")
    # DuckDB prints its own in interactive sessions
    connection.execute("SET enable_progress_bar = false")
    return connection


class SourceFailure(EngineFailure):
    """DuckDB failed while it was `doing` something with a source. `error` is the type of its error,
    which is not in the message.
    """

    def __init__(self, doing: str, error: str) -> None:
        super().__init__(f"{doing} failed in the engine.")
        self.doing = doing
        self.error = error


@contextmanager
def engine_errors(doing: str, *, again: bool = False) -> Iterator[None]:
    """Replace an error of DuckDB by a fixed sentence, because its messages can print values. The
    log gets the type of the error, unless the work will be tried `again` in another way.
    """
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        line = re.search(r"\bLine: (\d+)", str(error))
        place = f" at line {line[1]} of the file" if line else ""
        level = logging.DEBUG if again else logging.ERROR
        _log.log(level, "%s failed in the engine: %s%s.", doing, type(error).__name__, place)
        raise SourceFailure(doing, type(error).__name__) from None


@contextmanager
def told_to_curator() -> Iterator[None]:
    """Say what failed while a snapshot was prepared, and what to do about errors of its kind."""
    try:
        yield
    except SourceFailure as failure:
        doing = failure.doing[0].lower() + failure.doing[1:]
        raise SnapshotFailure(doing, remedy_for(failure.error)) from None


def remedy_for(error: str) -> str:
    """Return what the curator can do about an error of this kind."""
    return next((remedy for kind, remedy in _REMEDIES.items() if error.endswith(kind)), _LOOK)


_LOOK = (
    "Is a file of the source damaged? `discreet check` looks at its columns; the log discreet.engine "
    "has the kind of error."
)
_REMEDIES = {
    "OutOfMemoryException": "It ran out of memory, or of room for its temporary files: raise limits.memory in the "
    "policy, or free some.",
    "IOException": "A file could not be read or written: is the disk full, or a file of the source damaged?",
}


@contextmanager
def attach(connection: Any, source: Source, *, rows: Wanted = NO_ROWS) -> Iterator[None]:
    """Make the source's tables readable through `scan`. Of a foreign source, read only the wanted
    rows and columns.
    """
    import duckdb

    if isinstance(source, Database):
        try:
            connection.execute(
                f"ATTACH {literal(str(source.path))} AS {name(ATTACHED)} (READ_ONLY)"
            )
        except duckdb.Error:
            why = "it is no DuckDB file, or another program is writing to it"
            raise UsageError(f"The source {source.path} cannot be opened: {why}.") from None
        # Privacy: a view of files would have the types that its files' rows decide together.
        connection.execute("SET enable_external_access = false")
    elif isinstance(source, PythonTables):
        for table, content in source.tables.items():
            connection.register(f"#{table}", arrow(table, content))
    elif isinstance(source, Foreign):
        with source.reader.read(rows) as tables:
            for table, content in tables.items():
                connection.register(f"#{table}", content)
            yield
        return
    yield


def scan(source: Source, table: str, *, as_text: bool) -> str:
    """Return the SQL of a table, to write after FROM. Read CSV files of private tables as texts,
    whose values are cast one by one, so that no value can fail.
    """
    if isinstance(source, Database):
        return f"{name(ATTACHED)}.main.{name(table)}"
    if isinstance(source, PythonTables | Foreign):
        return name(f"#{table}")
    files = files_of(source, table)
    if files[0].name.endswith(PARQUET):
        return parquet(files, options=_BY_NAME)
    if not as_text:  # a public table: types may be guessed
        return guess_csv(files, delimiter=delimiter_of(files[0]), options=_BY_NAME)
    parts = [f"SELECT * FROM {texts(file)}" for file in files]
    return f"({' UNION ALL BY NAME '.join(parts)})"


def is_csv(source: Source, table: str) -> bool:
    return isinstance(source, Folder) and not files_of(source, table)[0].name.endswith(PARQUET)


def tables_in(connection: Any, source: Source) -> tuple[str, ...]:
    """Return the names of the tables that the source has, whether declared or not."""
    if isinstance(source, PythonTables):
        return tuple(source.tables)
    if isinstance(source, Foreign):
        return source.reader.tables()
    if isinstance(source, Database):
        here = (
            f"WHERE database_name = {literal(ATTACHED)} AND schema_name = 'main' AND NOT internal"
        )
        sql = f"SELECT table_name FROM duckdb_tables() {here} UNION SELECT view_name FROM duckdb_views() {here}"
        return tuple(sorted(row[0] for row in connection.execute(sql).fetchall()))
    files = (
        entry
        for entry in source.path.iterdir()
        if entry.is_file() and entry.name.endswith((*PARQUET, *CSV))
    )
    folders = (entry for entry in source.path.iterdir() if entry.is_dir() and _data_files(entry))
    return tuple(
        sorted({file.name.split(".")[0] for file in files} | {folder.name for folder in folders})
    )


def files_of(source: Folder, table: str) -> tuple[Path, ...]:
    """Return the files of one table, in a fixed order; raise UsageError if there are none, or two
    kinds.
    """
    single = [source.path / f"{table}{suffix}" for suffix in (*PARQUET, *CSV)]
    found: list[tuple[Path, ...]] = [(file,) for file in single if file.is_file()]
    if several := _data_files(source.path / table):
        found.append(several)
    if not found:
        raise UsageError(
            f"The source has no table {table}: expected {source.path / table}.parquet, .csv or a folder."
        )
    if len(found) > 1:
        raise UsageError(
            f"The source has the table {table} twice: {found[0][0]} and {found[1][0]}. Keep one."
        )
    if len({file.name.endswith(PARQUET) for file in found[0]}) > 1:
        raise UsageError(
            f"The folder {source.path / table} mixes Parquet and CSV files. Keep one kind."
        )
    return found[0]


def _data_files(folder: Path) -> tuple[Path, ...]:
    return tuple(
        sorted(
            file
            for file in folder.rglob("*")
            if file.is_file() and file.name.endswith((*PARQUET, *CSV))
        )
    )


def columns_of(connection: Any, relation: str) -> dict[str, str]:
    """Return names and DuckDB types, from the schema alone."""
    return {
        row[0]: row[1]
        for row in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    }


# --- fingerprints: for the curator alone (S9) -----------------------------------------------------

# file, from the source's folder -> size, time of change, SHA-256 of content
Fingerprint = dict[str, list[int | str]]


def fingerprint(source: Source, tables: Iterable[str]) -> Fingerprint | None:
    """Return a fingerprint of the source as it is now; None for tables from Python, which cannot be
    read again later.
    """
    if isinstance(source, PythonTables) or (
        isinstance(source, Foreign) and source.reader.file is None
    ):
        return None
    return {label: [*_stat(file), _digest(file)] for label, file in _files(source, tables).items()}


def find_changes(before: Fingerprint, source: Source, tables: Iterable[str]) -> tuple[str, ...]:
    """Return the files that have changed. Contents are read only of files whose size or time
    differs.
    """
    now = _files(source, tables)
    gone = before.keys() ^ now.keys()
    touched = {each for each in before.keys() & now.keys() if _stat(now[each]) != before[each][:2]}
    return tuple(sorted(gone | {each for each in touched if _digest(now[each]) != before[each][2]}))


def _files(source: Source, tables: Iterable[str]) -> dict[str, Path]:
    """Return the source's files by their paths within its folder, so that the source may be moved.
    It has none for a table without files.
    """
    if isinstance(source, PythonTables):
        return {}
    if isinstance(source, Database):
        return {source.path.name: source.path}
    if isinstance(source, Foreign):
        file = source.reader.file
        return {} if file is None else {file.name: file}
    found = {}
    for table in tables:
        with suppress(UsageError):
            found.update(
                {file.relative_to(source.path).as_posix(): file for file in files_of(source, table)}
            )
    return found


def _stat(file: Path) -> list[int | str]:
    status = file.stat()
    return [status.st_size, status.st_mtime_ns]


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
