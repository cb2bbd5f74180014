"""The rows of one table as they arrive: each row counts once, in the period in which it was first
seen (S15).

A live source is prepared like a snapshot, into a scratch file that nobody asks and that is gone
afterwards. What was seen and who was counted before is handed in, and what is new of it handed out,
to be sealed with the step.

Privacy: which rows of a person count in which period is a function of that person's own rows, then
and now. A late row counts when it arrives, a corrected one once more, a removed one stays counted;
each uses up one of the person's periods. Among a person's new rows those kept are the first in the
order of order.py (S4). A release that began when the order was another goes on with this one: what
was frozen stays, and everybody stays within the same limits.
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

from discreet.algebra import Aggregate
from discreet.engines.duckdb.preparing.order import shuffle_key
from discreet.engines.duckdb.preparing.prepare import load
from discreet.engines.layout import LIVE, OWNER
from discreet.engines.quoting import name
from discreet.engines.source import engine_errors, loading
from discreet.engines.spelling import Spelling
from discreet.policy.owners import Through
from discreet.policy.policy import Policy, Table
from discreet.policy.schedule import Schedule

_EVERY_ROW = 2**31 - 1
_LIVE, _SEEN, _COUNTED, _FRESH = (name(f"#{each}") for each in ("live", "seen", "counted", "fresh"))
_CONTENT, _COPY = name("#content"), name("#copy")


class Arrivals:
    """A live source, opened for one release; a context that clears away after itself."""

    def __init__(
        self, policy: Policy, source: object, schedule: Schedule, table: Table, *, key: bytes
    ) -> None:
        self._schedule = schedule
        self._table = table
        self._columns = [name(column) for column in table.columns]
        domains = {column.name: column.domain for column in table.columns.values()}
        self._order = shuffle_key(domains, key.hex(), copy=f"f.{_COPY}", table="f.")
        policy.store.mkdir(mode=0o700, parents=True, exist_ok=True)
        _clear(policy.store)
        self._folder = Path(tempfile.mkdtemp(prefix=f"{LIVE}{os.getpid()}-", dir=policy.store))
        self._connection = loading(self._folder / "live.duckdb", memory=policy.limits.memory)
        try:
            load(self._connection, _whole(policy, table), source, scratch=self._folder)
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> Arrivals:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._close()

    def _close(self) -> None:
        self._connection.close()
        shutil.rmtree(self._folder)

    def remember(self, steps: Iterable[Sequence[pa.Table]]) -> None:
        """Keep what each step so far has seen and counted; what comes later is new."""
        seen, counted = [], []
        for period, (*_, rows, owners) in enumerate(steps):
            seen.append(rows)
            counted.append(
                owners.append_column("period", pa.array([period] * owners.num_rows, pa.int64()))
            )
        columns = ", ".join(self._columns)
        table = name(self._table.name)
        owner = name(OWNER)
        when = name(self._schedule.time)
        begins = self._schedule.begins(0)
        with engine_errors("Reading what has arrived"):
            self._run(
                f"CREATE TEMP TABLE {_COUNTED} AS SELECT {owner} AS owner, 0::BIGINT AS period FROM {table} LIMIT 0"
            )
            self._run(
                f"CREATE TEMP TABLE {_SEEN} AS SELECT {owner} AS owner, 0::UBIGINT AS content, 0::BIGINT AS copies "
                f"FROM {table} LIMIT 0"
            )
            self._fill(_COUNTED, "owner, period", counted)
            self._fill(_SEEN, "owner, content, max(copies)", seen, "GROUP BY owner, content")
            self._run(
                f"CREATE TEMP TABLE {_LIVE} AS SELECT r.* FROM (SELECT *, hash({columns}) AS {_CONTENT}, row_number() "
                f"OVER (PARTITION BY {owner}, hash({columns}) ORDER BY {columns}) AS {_COPY} FROM {table} "
                f"WHERE {when} >= {_moment(begins)}) AS r LEFT JOIN {_SEEN} AS s "
                f"ON r.{owner} = s.owner AND r.{_CONTENT} = s.content WHERE r.{_COPY} > coalesce(s.copies, 0)"
            )

    def step(self, period: int, queries: Sequence[Aggregate]) -> bytes:
        """Return the exact answers to `queries` on the rows that count in a period, and what to
        remember of them.
        """
        owner = name(OWNER)
        table = name(self._table.name)
        person = self._schedule.per_person
        ended = f"{name(self._schedule.time)} < {_moment(self._schedule.begins(period + 1))}"
        fewer = "TRUE" if person.periods is None else f"coalesce(c.times, 0) < {person.periods}"
        with engine_errors("Reading what has arrived"):
            self._run(
                f"CREATE OR REPLACE TEMP TABLE {_FRESH} AS SELECT * FROM {_LIVE} WHERE {ended}"
            )
            self._run(f"DELETE FROM {_LIVE} WHERE {ended}")
            self._run(
                f"CREATE OR REPLACE TABLE {table} AS SELECT f.{owner}, {', '.join(f'f.{c}' for c in self._columns)} "
                f"FROM {_FRESH} AS f LEFT JOIN (SELECT owner, count(*) AS times, max(period) AS latest "
                f"FROM {_COUNTED} GROUP BY owner) AS c ON f.{owner} = c.owner "
                f"WHERE {fewer} AND coalesce(c.latest, -{_EVERY_ROW}) <= {period - person.apart} "
                f"QUALIFY row_number() OVER (PARTITION BY f.{owner} ORDER BY {self._order}) <= {person.rows}"
            )
            self._run(f"INSERT INTO {_COUNTED} SELECT DISTINCT {owner}, {period} FROM {table}")
            seen = f"SELECT {owner} AS owner, {_CONTENT} AS content, max({_COPY}) AS copies FROM {_FRESH} GROUP BY ALL"
            counted = f"SELECT DISTINCT {owner} AS owner FROM {table}"
            return pack(
                [
                    self._connection.sql(sql).to_arrow_table()
                    for sql in (*map(Spelling().aggregate, queries), seen, counted)
                ]
            )

    def _fill(self, table: str, columns: str, parts: list[pa.Table], ending: str = "") -> None:
        if parts:
            self._connection.register("#part", pa.concat_tables(parts))
            self._run(f"INSERT INTO {table} SELECT {columns} FROM {name('#part')} {ending}")
            self._connection.unregister("#part")

    def _run(self, sql: str) -> Any:
        return self._connection.execute(sql)


def _clear(store: Path) -> None:
    """Remove what processes that are gone have left behind: it holds rows."""
    for folder in store.glob(f"{LIVE}*"):
        try:
            os.kill(int(folder.name.removeprefix(LIVE).split("-")[0]), 0)
        except ProcessLookupError:
            shutil.rmtree(folder, ignore_errors=True)
        except PermissionError:
            continue  # somebody else's, and alive


def _whole(policy: Policy, table: Table) -> Policy:
    """Return the policy of the release's table, those its owners are found through, and public
    ones; with all of its rows.
    """
    needed = {table.name}
    each = table
    while isinstance(each.owner, Through):
        each = policy.tables[each.owner.table]
        needed.add(each.name)
    tables = {
        name: replace(found, max_rows=_EVERY_ROW, max_groups=None)
        for name, found in policy.tables.items()
        if name in needed or found.public
    }
    return replace(policy, tables=tables)


def _moment(moment: datetime) -> str:
    return f"TIMESTAMP '{moment.isoformat(sep=' ')}'"


def pack(tables: Sequence[pa.Table]) -> bytes:
    """Write tables as bytes, one after the other."""
    parts = []
    for table in tables:
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        parts.append(len(sink.getvalue()).to_bytes(8, "little") + sink.getvalue())
    return b"".join(parts)


def unpack(content: bytes) -> list[pa.Table]:
    """Read the tables that `pack` wrote."""
    stream = io.BytesIO(content)
    found = []
    while head := stream.read(8):
        found.append(pa.ipc.open_stream(stream.read(int.from_bytes(head, "little"))).read_all())
    return found
