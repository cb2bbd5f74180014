"""Prepare a source as a numbered snapshot: find the owner of every row, move values to their public
grid, and keep at most max_rows rows of each person.

A snapshot (layout.py) is made once and never changed. Questions on it need neither clamping nor
truncation, so their SQL does not depend on the data. Its notes, for the curator alone, say what
happened to rows and values.

Privacy (S4, S23): the prepared rows of a person are a function of that person's rows and the
store's key. Values are encoded row by row (encode.py), by types that no other file or row decides
(parts.py). A total order of owner and content decides which rows are kept (order.py), so neither
the order of the input nor threads nor other people can change the choice. A table is read once,
into a temporary table, and everything about its rows is decided there. The finished file is
verified (verify.py). One assumption is made: a key that leads to an owner through another table
belongs to one owner. A row whose key has several owners is dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

from discreet.engines.duckdb.preparing import encode
from discreet.engines.duckdb.preparing.mending import best_of, mendings, unread
from discreet.engines.duckdb.preparing.order import ROW, first_rows, row_owner
from discreet.engines.duckdb.preparing.reading import (
    KEY,
    SourceReading,
    counts_of,
    is_missing,
    key_of,
    list_values,
    reports_of,
    source_column,
    values_of,
)
from discreet.engines.duckdb.preparing.schema import kind_of, schemas, used_columns
from discreet.engines.duckdb.preparing.target import InFile, Target
from discreet.engines.duckdb.store import Building, SnapshotFolder
from discreet.engines.engine import Progress
from discreet.engines.files import fault_of
from discreet.engines.layout import OWNER, PUBLIC, public
from discreet.engines.quoting import name
from discreet.engines.snapshot import ColumnReport, Snapshot, TableReport
from discreet.engines.source import (
    Database,
    Folder,
    Source,
    attach,
    engine_errors,
    files_of,
    find_changes,
    fingerprint,
    is_csv,
    loading,
    source_at,
    told_to_curator,
)
from discreet.errors import EngineFailure, PolicyError, UsageError
from discreet.policy.owners import EachRow, Through
from discreet.policy.policy import Policy, Table

_HUGE = ("UHUGEINT", "BIGNUM")
_log = logging.getLogger("discreet.engine")


def prepare(
    policy: Policy,
    source: object,
    store: str | Path,
    number: int,
    progress: Progress | None = None,
    *,
    threads: int | None = None,
) -> Snapshot:
    """Make snapshot `number` in a folder. Nobody sees anything of it before it is complete."""
    with prepare_file(policy, source, store, number, progress, threads=threads) as (
        building,
        snapshot,
    ):
        building.finish(snapshot)
        return snapshot


@contextmanager
def prepare_file(
    policy: Policy,
    source: object,
    store: str | Path,
    number: int,
    progress: Progress | None = None,
    *,
    threads: int | None = None,
    target: Target | None = None,
) -> Iterator[tuple[Building, Snapshot]]:
    """Yield a verified file with snapshot `number`, and its notes. The file is removed afterwards,
    unless it was moved to its place.

    If there is a `target`, it gets the private tables, and the file only the public ones. `source`
    is a folder, a .duckdb file or a mapping of names to tables. Raise PolicyError if the source
    does not have what the policy declares; UsageError if it does not exist or changes meanwhile, or
    if the number is taken.
    """
    found = source_at(source, policy)
    with told_to_curator(), SnapshotFolder(Path(store)).build(number) as building:
        before = fingerprint(found, policy.tables)
        kept = target or InFile(path=building.path, policy=policy, threads=threads)
        fill = partial(_fill, building, policy, found, kept, progress, threads=threads)
        try:
            if isinstance(found, Folder) and _copies_first(policy):
                raise EngineFailure
            reports = fill(scratch=None)
        except EngineFailure:
            if not isinstance(found, Folder):
                raise
            with _say_where(policy, found):
                reports = fill(scratch=building.renewed())
        if before is not None and find_changes(before, found, policy.tables):
            raise UsageError(
                "The source changed while it was read. Take the snapshot again when it is at rest."
            )
        with engine_errors("Checking a snapshot"):
            kept.verify()
        yield building, building.notes(digest=policy.digest, source=before, tables=reports)


def _copies_first(policy: Policy) -> bool:
    """Return True if a table's files must be copied, as UTF-8, before they can be read."""
    return any(table.read.encoding is not None for table in policy.tables.values())


@contextmanager
def _say_where(policy: Policy, source: Folder) -> Iterator[None]:
    """Tell the curator which line of which file cannot be cut into fields, and no value of it."""
    try:
        yield
    except EngineFailure:
        for table in policy.tables.values():
            for file in files_of(source, table.name) if is_csv(source, table.name) else ():
                fault = fault_of(file, table.read.encoding)
                if fault is not None:
                    raise UsageError(fault) from None
        raise


def _fill(
    building: Building,
    policy: Policy,
    source: Source,
    target: Target,
    progress: Progress | None,
    *,
    threads: int | None,
    scratch: Path | None,
) -> tuple[TableReport, ...]:
    again = scratch is None and isinstance(source, Folder)
    with engine_errors("Preparing a snapshot", again=again):
        target.begin()
        connection = loading(building.path, memory=policy.limits.memory, threads=threads)
        try:
            with attach(connection, source, rows=used_columns(policy)):
                work = _Work(connection, policy, source, building.key, target, scratch=scratch)
                reports = work.tables(progress)
            connection.execute("CHECKPOINT")
            return reports
        finally:
            connection.close()


def load(connection: Any, policy: Policy, source: object, *, scratch: Path) -> None:
    """Prepare the tables of a policy as they are now, into an open connection that nobody else
    uses.
    """
    found = source_at(source, policy)
    target = InFile(path=scratch, policy=policy, threads=None)
    wanted = used_columns(policy)
    with engine_errors("Reading the source"), attach(connection, found, rows=wanted):
        for carefully in (scratch,) if _copies_first(policy) else (None, scratch):
            connection.execute("BEGIN")  # never committed: nothing of it has to reach the disk
            try:
                _Work(connection, policy, found, 0, target, scratch=carefully).tables()
                return
            except EngineFailure:
                if carefully is not None or not isinstance(found, Folder):
                    raise
                connection.execute("ROLLBACK")


# --- the work -------------------------------------------------------------------------------------


class _Work:
    """The preparation of one snapshot: the connection to its file, and the facts about its
    source.
    """

    def __init__(
        self,
        connection: Any,
        policy: Policy,
        source: Source,
        key: int,
        target: Target,
        *,
        scratch: Path | None,
    ) -> None:
        self.connection = connection
        self.policy = policy
        self.source = source
        self.key = key
        self.target = target
        self.progress: Progress | None = None
        self.again = scratch is None and isinstance(source, Folder)
        self.parts, problems = schemas(connection, policy, source, scratch=scratch)
        if problems:
            raise PolicyError(*problems)
        self.reading = SourceReading(policy, self.parts)
        connection.execute(f"CREATE SCHEMA {PUBLIC}")

    def tables(self, progress: Progress | None = None) -> tuple[TableReport, ...]:
        """Read every table, those first that others go through; return their reports in the
        policy's order.
        """
        self.progress = progress
        if progress is not None:
            self.connection.execute("SET enable_progress_bar = true")
            self.connection.execute("SET enable_progress_bar_print = false")
        found: dict[str, TableReport] = {}
        for table in self.policy.tables.values():
            chain = [table]
            while isinstance(chain[-1].owner, Through):
                chain.append(self.policy.tables[chain[-1].owner.table])
            for each in reversed(chain):
                if each.name not in found:
                    found[each.name] = self._public(each) if each.public else self._private(each)
        return tuple(found[table] for table in self.policy.tables)

    def _public(self, table: Table) -> TableReport:
        self._run(f"CREATE TABLE {public(table.name)} AS FROM {self._as_it_is(table)}", table, 0, 1)
        rows = self._one(f"SELECT count(*) FROM {public(table.name)}", table, 1, 1)[0]
        return TableReport(
            name=table.name, rows=rows, kept=rows, ownerless=0, truncated=0, columns=()
        )

    def _private(self, table: Table) -> TableReport:
        list_values(self.connection, table)
        # Privacy: S23. The source is scanned here and nowhere else: two scans may differ (random(),
        # a file that is written meanwhile), and whoever has too many rows in one of them would not
        # in the other.
        self._run(f"CREATE TEMP TABLE {_READ} AS {self._read(table)}", table, 0, 3)
        for other in self.reading.going_through(table):
            self._resolve(other)
        rows, owned, columns = self._count(table)
        columns = self._explain(table, columns, owned)
        heavy = f"SELECT {name(OWNER)} FROM {_READ} WHERE {name(OWNER)} IS NOT NULL GROUP BY 1"
        self._run(
            f"CREATE TEMP TABLE {_HEAVY} AS {heavy} HAVING count(*) > {table.max_rows}", table, 1, 3
        )
        rows_kept = self._kept(table)
        with self._doing(table, 2, 3):
            kept = self.target.keep(self.connection, table, rows_kept)
        self.connection.execute(f"DROP TABLE {_READ}; DROP TABLE {_HEAVY}")
        return TableReport(
            name=table.name,
            rows=rows,
            kept=kept,
            ownerless=rows - owned,
            truncated=owned - kept,
            columns=columns,
        )

    # whose rows

    def _resolve(self, table: Table) -> None:
        """Make a temporary table that maps the keys of the table just read to their owner, for a
        table that finds its owners through it.
        """
        key = key_of(table)
        owner = name(OWNER)
        self._run(
            f"CREATE TEMP TABLE {_owners(table)} AS SELECT {key} AS {KEY}, min({owner}) AS {owner} FROM {_READ} "
            f"WHERE {key} IS NOT NULL AND {owner} IS NOT NULL GROUP BY 1 HAVING min({owner}) = max({owner})",
            table,
            0,
            3,
        )

    def _read(self, table: Table) -> str:
        """Read all rows of a table, with their owners (or NULL), and for each value what happened
        to it.
        """
        rows = self.reading.rows(table, self.parts[table.name])
        owner = name(OWNER)
        if isinstance(table.owner, EachRow):
            return self._each_owned(
                table, f"SELECT {KEY} AS {owner}, * EXCLUDE ({KEY}) FROM ({rows})"
            )
        if isinstance(table.owner, Through):
            owners = f"LEFT JOIN {_owners(table)} AS o ON e.{KEY} = o.{KEY}"
            return f"SELECT o.{owner}, e.* EXCLUDE ({KEY}) FROM ({rows}) AS e {owners}"
        return f"SELECT {KEY} AS {owner}, * EXCLUDE ({KEY}) FROM ({rows})"

    def _each_owned(self, table: Table, rows: str) -> str:
        """Return the rows, each with an owner of its own."""
        domains = {column.name: column.domain for column in table.columns.values()}
        equal = f"PARTITION BY {', '.join(map(name, domains))}" if domains else ""
        copies = f"SELECT *, row_number() OVER ({equal}) AS {_COPY} FROM ({rows})"
        owner = row_owner(domains, self.key, copy=_COPY)
        return f"SELECT * EXCLUDE ({_COPY}) REPLACE ({owner} AS {name(OWNER)}) FROM ({copies})"

    # which rows

    def _kept(self, table: Table) -> str:
        owner = name(OWNER)
        stored = [name(column) for column in table.columns]
        listed = ", ".join([owner, *stored])
        heavy = self._one(f"SELECT count(*) FROM {_HEAVY}", table, 2, 3)[0]
        if not heavy:
            return f"SELECT {listed} FROM {_READ} WHERE {owner} IS NOT NULL"
        types = {column.name: column.domain for column in table.columns.values()}
        too_many = (
            f"SELECT rowid AS {ROW}, {listed} FROM {_READ} SEMI JOIN {_HEAVY} USING ({owner})"
        )
        chosen = first_rows(too_many, types, self.key, table.max_rows)
        return (
            f"SELECT {listed} FROM {_READ} ANTI JOIN {_HEAVY} USING ({owner}) WHERE {owner} IS NOT NULL UNION ALL "
            f"SELECT {listed} FROM {_READ} AS r SEMI JOIN ({chosen}) AS c ON r.rowid = c.{ROW}"
        )

    def _count(self, table: Table) -> tuple[int, int, tuple[ColumnReport, ...]]:
        counts = ", ".join(counts_of(table, name(OWNER)))
        return reports_of(table, self._one(f"SELECT {counts} FROM {_READ}", table, 1, 3))

    def _explain(
        self, table: Table, reports: tuple[ColumnReport, ...], owned: int
    ) -> tuple[ColumnReport, ...]:
        """Add to the reports the declarations that would read columns of which much became NULL.
        This scans the source again, for these columns alone.
        """
        found = []
        for report in reports:
            column = table.columns[report.name]
            if not report.stands_out(owned) or not report.nulled:
                found.append(report)
                continue
            mended: dict[str, int] = {}
            for part in self.parts[table.name]:
                kind = kind_of(part, column.name)
                if kind is None or encode.family(kind) != encode.TEXT:
                    continue
                rows = self._owned(table, self.reading.as_written(table, part, column.name))
                ways = mendings(
                    column, source_column(column.name), table.read, lookup=values_of(table, column)
                )
                counts = ", ".join(f"count(*) FILTER (WHERE {rule})" for rule in ways.values())
                bad = unread(
                    column, source_column(column.name), table.read, lookup=values_of(table, column)
                )
                sql = f"SELECT {counts} FROM (SELECT * FROM ({rows}) WHERE NOT {is_missing(column.name)} AND {bad})"
                with engine_errors(f"Looking at {table.name}"):
                    (counted,) = self.connection.execute(sql).fetchall()
                for way, count in zip(ways, counted, strict=True):
                    mended[way] = mended.get(way, 0) + count
            found.append(replace(report, mended=best_of(mended)))
        return tuple(found)

    def _owned(self, table: Table, rows: str) -> str:
        """Return those of the rows with a KEY that have an owner."""
        if isinstance(table.owner, EachRow):
            return rows
        if isinstance(table.owner, Through):
            return f"SELECT * FROM ({rows}) SEMI JOIN {_owners(table)} USING ({KEY})"
        return f"SELECT * FROM ({rows}) WHERE {KEY} IS NOT NULL"

    def _as_it_is(self, table: Table) -> str:
        """Copy a public table."""
        (part,) = self.parts[table.name]
        # Texts are equal when their bytes are, whatever a database says of 'a' and 'A' (COLLATE
        # NOCASE).
        kinds = part.columns.items()
        texts = [
            f'{name(column)} COLLATE "binary" AS {name(column)}'
            for column, kind in kinds
            if kind == "VARCHAR"
        ]
        # Arrow holds no number of more than 128 bits with its sign: beyond, the engine's would be
        # another one.
        huge = [
            f"CAST({name(column)} AS VARCHAR) AS {name(column)}"
            for column, kind in kinds
            if kind in _HUGE
        ]
        changed = [*(texts if isinstance(self.source, Database) else ()), *huge]
        if changed:
            return f"(SELECT * REPLACE ({', '.join(changed)}) FROM {part.relation})"
        return part.relation

    # running

    def _one(self, sql: str, table: Table, part: int, parts: int) -> tuple[int, ...]:
        # half-fetched, the connection would block
        return tuple(self._run(sql, table, part, parts).fetchall()[0])

    def _run(self, sql: str, table: Table, part: int, parts: int) -> Any:
        """Execute one part of a table's work."""
        with self._doing(table, part, parts):
            return self.connection.execute(sql)

    @contextmanager
    def _doing(self, table: Table, part: int, parts: int) -> Iterator[None]:
        """Tell the progress of this part of a table's work meanwhile, and nothing of an error."""
        watched = (
            nullcontext()
            if self.progress is None
            else _watch(self.connection, self.progress, table.name, part, parts)
        )
        with engine_errors(f"Preparing {table.name}", again=self.again), watched:
            yield


_READ, _HEAVY, _COPY = name("#read"), name("#heavy"), name("#copy")


def _owners(table: Table) -> str:
    return name(f"#owners of {table.name}")


@contextmanager
def _watch(
    connection: Any, progress: Progress, table: str, part: int, parts: int
) -> Iterator[None]:
    done = Event()

    def watch() -> None:
        while not done.wait(0.1):
            share = max(0.0, min(100.0, connection.query_progress())) / 100
            progress(table, min(1.0, (part + share) / parts))

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
    progress(table, min(1.0, (part + 1) / parts))
