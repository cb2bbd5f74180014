"""A source into a numbered snapshot: owners resolved, values on their public grid, at most max_rows rows a person.

A snapshot is one DuckDB file that holds private tables under their own names, each with a hidden column "#owner", and
public tables in the schema `public_tables`. It is made once and never changed; questions on it need no clamping and no
truncation, so their SQL does not depend on the data. Beside it lies what was found on the way, for the curator alone.

Privacy (S4): the prepared rows of a person are a function of that person's rows and the store's key. Values are moved
row by row (encode.py); which rows are kept is decided by a total order of a row's own content, so neither the order of
the input nor the threads nor other people can change it. One assumption: a key that leads to an owner through another
table belongs to one owner. A row whose key has several would have two owners, and is dropped.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from discreet.domain import Categories, Column
from discreet.engines import encode
from discreet.engines.source import (
    Database,
    Source,
    attach,
    changed,
    columns_of,
    connect,
    fingerprint,
    name,
    scan,
    source_at,
    tables_in,
)
from discreet.engines.store import ColumnReport, Snapshot, Store, TableReport
from discreet.errors import EngineFailure, PolicyError, Problem, UsageError
from discreet.policy import Policy, Table, Through

Progress = Callable[[str, float], None]  # a table's name and how much of it is done, from 0 to 1

OWNER = "#owner"
PUBLIC = "public_tables"
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
    """Make snapshot `number`; nothing of it is seen until it is whole.

    `source` is a folder, a .duckdb file or a mapping of names to tables. Raises PolicyError when the source does not
    have what the policy declares, UsageError when it is not there or changes meanwhile, or the number is taken.
    """
    found = source_at(source)
    with Store(Path(store)).build(number) as building:
        with engine_errors("Preparing a snapshot"):
            connection = connect(building.path, memory=policy.limits.memory, threads=threads)
            try:
                attach(connection, found)
                work = _Work(connection, policy, found, building.key, progress)
                before = fingerprint(found, policy.tables)
                reports = tuple(work.table(table) for table in policy.tables.values())
                connection.execute("CHECKPOINT")
            finally:
                connection.close()
        if before is not None and changed(before, found, policy.tables):
            raise UsageError("The source changed while it was read. Take the snapshot again when it is at rest.")
        return building.finish(digest=policy.digest, source=before, tables=reports)


def load(connection: Any, policy: Policy, source: object) -> None:
    """The tables of a policy as they are now, prepared into an open connection that nobody else uses."""
    found = source_at(source)
    with engine_errors("Reading the source"):
        attach(connection, found)
        work = _Work(connection, policy, found, 0, None)
        for table in policy.tables.values():
            work.table(table)


def moved_on(policy: Policy, store: str | Path) -> tuple[str, ...]:
    """The source files that differ from the newest snapshot. For the curator: it tells about single people (S9)."""
    kept = Store(Path(store))
    newest = next((kept.snapshot(number) for number in reversed(kept.numbers())), None)
    if newest is None or newest.source is None or policy.source is None:
        return ()
    return changed(newest.source, source_at(policy.source), policy.tables)


@contextmanager
def engine_errors(doing: str) -> Iterator[None]:
    """DuckDB's messages can print values: the log gets the kind of error, the caller a fixed sentence."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        line = re.search(r"\bLine: (\d+)", str(error))
        place = f" at line {line[1]} of the file" if line else ""
        _log.error("%s failed in the engine: %s%s.", doing, type(error).__name__, place)
        raise EngineFailure from None


# --- what the policy needs of the source ------------------------------------------------------------------------------


def schemas(connection: Any, policy: Policy, source: Source) -> tuple[dict[str, dict[str, str]], list[Problem]]:
    """The columns and types of every declared table, and where the source does not have what is declared."""
    found: dict[str, dict[str, str]] = {}
    problems: list[Problem] = []
    there = {table.lower() for table in tables_in(connection, source)}
    for table in policy.tables.values():
        try:
            if table.name.lower() not in there:
                raise UsageError(f"The source has no table {table.name}. It has {', '.join(sorted(there)) or 'none'}.")
            with engine_errors(f"Reading {table.name}"):
                found[table.name] = columns_of(connection, scan(source, table.name, as_text=not table.public))
        except UsageError as error:
            problems.append(policy.problem("tables", table.name, message=str(error)))
            continue
        if not table.public:
            problems += _mismatches(policy, table, found[table.name])
    return found, problems


def _mismatches(policy: Policy, table: Table, columns: Mapping[str, str]) -> Iterator[Problem]:
    types = {column.lower(): type_name for column, type_name in columns.items()}
    for key in sorted(_keys(policy, table)):
        if encode.family(types.get(key.lower(), "")) == encode.OTHER:
            message = f"{table.name}.{key} leads to the owner, and the source has no such column of a simple type."
            yield policy.problem("tables", table.name, "owner", message=message)
    for column in table.columns.values():
        mismatch = _mismatch(f"{table.name}.{column.name}", column, types.get(column.name.lower()))
        if mismatch is not None:
            yield policy.problem("tables", table.name, "columns", column.name, message=mismatch)


def _mismatch(what: str, column: Column, type_name: str | None) -> str | None:
    if type_name is None:
        return f"{what}: the source has no such column."
    if encode.family(type_name) not in encode.accepted(column.domain):
        return f"{what} is declared {column.domain.yaml}, and the source has {type_name} there."
    return None


def _keys(policy: Policy, table: Table) -> set[str]:
    """The source columns of a table that say whose its rows are, or those of a table that goes through it."""
    own = set() if table.owner is None else {_key_column(table)}
    return own | {each.on for each in _throughs(policy) if each.table == table.name}


def _key_column(table: Table) -> str:
    return table.owner.on if isinstance(table.owner, Through) else str(table.owner)


def _throughs(policy: Policy) -> Iterator[Through]:
    return (table.owner for table in policy.tables.values() if isinstance(table.owner, Through))


# --- the work ---------------------------------------------------------------------------------------------------------


class _Work:
    """One snapshot in the making: the connection to its file, and what is known about the source."""

    def __init__(self, connection: Any, policy: Policy, source: Source, key: int, progress: Progress | None) -> None:
        self.connection, self.policy, self.source, self.key = connection, policy, source, key
        self.progress = progress
        self.schemas, problems = schemas(connection, policy, source)
        if problems:
            raise PolicyError(*problems)
        owners = [table for table in policy.tables.values() if isinstance(table.owner, str)]
        self.owner_type = encode.key_type(self._type(table, _key_column(table)) for table in owners)
        self.resolved: set[str] = set()
        connection.execute(f"CREATE SCHEMA {PUBLIC}")
        if progress is not None:
            connection.execute("SET enable_progress_bar = true")
            connection.execute("SET enable_progress_bar_print = false")

    def table(self, table: Table) -> TableReport:
        if table.public:
            self._run(f"CREATE TABLE {PUBLIC}.{name(table.name)} AS FROM {self._scan(table)}", table, 0, 1)
            rows = self._one(f"SELECT count(*) FROM {PUBLIC}.{name(table.name)}", table, 1, 1)[0]
            return TableReport(name=table.name, rows=rows, kept=rows, ownerless=0, truncated=0, columns=())
        self._resolve(table)
        self._list_values(table)
        rows, owned, columns = self._count(table)
        self._run(f"CREATE OR REPLACE TEMP TABLE {_HEAVY} AS {self._heavy(table)}", table, 1, 3)
        heavy = self._one(f"SELECT count(*) FROM {_HEAVY}", table, 1, 3)[0]
        kept_rows = self._truncated(table) if heavy else self._encoded(table)
        self._run(f"CREATE TABLE main.{name(table.name)} AS {kept_rows}", table, 2, 3)
        kept = self._one(f"SELECT count(*) FROM main.{name(table.name)}", table, 3, 3)[0]
        return TableReport(
            name=table.name, rows=rows, kept=kept, ownerless=rows - owned, truncated=owned - kept, columns=columns
        )

    # whose rows

    def _resolve(self, table: Table) -> None:
        """For a table that goes through another: a temporary table from keys to their one owner."""
        if not isinstance(table.owner, Through) or table.name in self.resolved:
            return
        self.resolved.add(table.name)
        via, on = self.policy.tables[table.owner.table], table.owner.on
        self._resolve(via)
        key = encode.key(name(on), self._type(via, on), self._common(table))
        self._run(
            f"CREATE TEMP TABLE {_owners(table)} AS SELECT {key} AS {_KEY}, min({name(OWNER)}) AS {name(OWNER)} "
            f"FROM ({self._rows(via, [on])}) WHERE {key} IS NOT NULL AND {name(OWNER)} IS NOT NULL "
            f"GROUP BY 1 HAVING min({name(OWNER)}) = max({name(OWNER)})",
            table,
            0,
            3,
        )

    def _rows(self, table: Table, columns: list[str]) -> str:
        """The source's rows with their owner, NULL where there is none."""
        on = _key_column(table)
        listed = "".join(f", s.{name(column)}" for column in columns)
        if isinstance(table.owner, Through):
            key = encode.key(f"s.{name(on)}", self._type(table, on), self._common(table))
            return (
                f"SELECT o.{name(OWNER)}{listed} FROM {self._scan(table)} AS s "
                f"LEFT JOIN {_owners(table)} AS o ON {key} = o.{_KEY}"
            )
        key = encode.key(f"s.{name(on)}", self._type(table, on), self.owner_type)
        return f"SELECT {key} AS {name(OWNER)}{listed} FROM {self._scan(table)} AS s"

    def _common(self, table: Table) -> str:
        """The type in which a table's keys and those of the table it goes through are compared."""
        assert isinstance(table.owner, Through)
        via, on = self.policy.tables[table.owner.table], table.owner.on
        return encode.key_type((self._type(table, on), self._type(via, on)))

    # which rows, and as what

    def _encoded(self, table: Table) -> str:
        values = "".join(
            f", {self._stored(table, column).value} AS {name(column.name)}" for column in table.columns.values()
        )
        rows = self._rows(table, list(table.columns))
        return f"SELECT {name(OWNER)}{values} FROM ({rows}) WHERE {name(OWNER)} IS NOT NULL"

    def _heavy(self, table: Table) -> str:
        """The owners with more rows than they may have; for all others there is nothing to choose."""
        rows = f"SELECT {name(OWNER)} FROM ({self._rows(table, [])}) WHERE {name(OWNER)} IS NOT NULL"
        return f"{rows} GROUP BY 1 HAVING count(*) > {table.max_rows}"

    def _truncated(self, table: Table) -> str:
        # Privacy: S4. A total order of content: a keyed hash of the stored columns, then the columns themselves. Rows
        # that are equal in all of them are interchangeable. The finalizing hash makes the order depend on every bit
        # of the key, so that no value is preferred.
        columns = [name(column) for column in table.columns]
        content = f"hash({', '.join(columns)})" if columns else "0::UBIGINT"
        order = ", ".join([f"hash(xor({content}, {self.key}::UBIGINT))", *columns])
        encoded, owner = self._encoded(table), name(OWNER)
        return (
            f"SELECT * FROM ({encoded}) AS r ANTI JOIN {_HEAVY} AS h ON r.{owner} = h.{owner} UNION ALL "
            f"SELECT * FROM (SELECT * FROM ({encoded}) AS r SEMI JOIN {_HEAVY} AS h ON r.{owner} = h.{owner}) "
            f"QUALIFY row_number() OVER (PARTITION BY {owner} ORDER BY {order}) <= {table.max_rows}"
        )

    def _count(self, table: Table) -> tuple[int, int, tuple[ColumnReport, ...]]:
        counts = ["count(*)", f"count({name(OWNER)})"]
        for column in table.columns.values():
            stored = self._stored(table, column)
            owned = f"FILTER (WHERE {name(OWNER)} IS NOT NULL"
            counts += [
                f"count({name(column.name)}) {owned})",
                f"count({stored.value}) {owned})",
                f"count(*) {owned} AND {stored.clamped})",
            ]
        rows, owned_rows, *found = self._one(
            f"SELECT {', '.join(counts)} FROM ({self._rows(table, list(table.columns))})", table, 0, 3
        )
        reports = tuple(
            ColumnReport(name=column, missing=owned_rows - there, nulled=there - kept, clamped=clamped)
            for column, there, kept, clamped in zip(table.columns, found[0::3], found[1::3], found[2::3], strict=True)
        )
        return rows, owned_rows, reports

    def _stored(self, table: Table, column: Column) -> encode.Stored:
        type_name = self._type(table, column.name)
        return encode.stored(column.domain, name(column.name), type_name, lookup=_values(table, column))

    def _list_values(self, table: Table) -> None:
        """A temporary table from values to codes for each long list."""
        import pyarrow as pa

        for column in table.columns.values():
            if encode.is_long(column.domain) and isinstance(column.domain, Categories):
                values = [str(value) for value in column.domain.values]
                self.connection.register("#list", pa.table({"#value": values, "#code": range(len(values))}))
                self.connection.execute(f"CREATE TEMP TABLE {_values(table, column)} AS FROM {name('#list')}")
                self.connection.unregister("#list")

    def _type(self, table: Table, column: str) -> str:
        return next(kind for each, kind in self.schemas[table.name].items() if each.lower() == column.lower())

    def _scan(self, table: Table) -> str:
        found = scan(self.source, table.name, as_text=not table.public)
        kinds = self.schemas[table.name].items()
        # Privacy: texts are equal when their bytes are. Where a database says that 'a' and 'A' are (COLLATE NOCASE),
        # one row would meet both, and a group of many would be called as one person spells it.
        texts = [f'{name(column)} COLLATE "binary" AS {name(column)}' for column, kind in kinds if kind == "VARCHAR"]
        # Arrow holds no number of more than 128 bits with its sign: beyond, the engine's would be another one.
        huge = [f"CAST({name(column)} AS VARCHAR) AS {name(column)}" for column, kind in kinds if kind in _HUGE]
        changed = [*(texts if isinstance(self.source, Database) else ()), *huge]
        return f"(SELECT * REPLACE ({', '.join(changed)}) FROM {found})" if changed else found

    # running

    def _one(self, sql: str, table: Table, part: int, parts: int) -> tuple[int, ...]:
        return tuple(self._run(sql, table, part, parts).fetchall()[0])  # half-fetched, the connection would block

    def _run(self, sql: str, table: Table, part: int, parts: int) -> Any:
        """Execute, telling the progress of this part of a table's work while it runs."""
        with engine_errors(f"Preparing {table.name}"):
            if self.progress is None:
                return self.connection.execute(sql)
            with _watched(self.connection, self.progress, table.name, part, parts):
                return self.connection.execute(sql)


_HEAVY, _KEY = name("#heavy"), name("#key")


def _owners(table: Table) -> str:
    return name(f"#owners of {table.name}")


def _values(table: Table, column: Column) -> str:
    return name(f"#values of {table.name}.{column.name}")


@contextmanager
def _watched(connection: Any, progress: Progress, table: str, part: int, parts: int) -> Iterator[None]:
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
