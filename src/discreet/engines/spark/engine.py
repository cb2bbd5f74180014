"""Questions on a snapshot of Parquet files, answered by Spark: exact numbers arrive as Arrow.

The cluster is trusted with private rows and with nothing else; what fails there says so in a
message that can print values, so none leaves: the log gets the kind of error. Whoever may connect
to the cluster can read the snapshot.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from discreet.algebra import Numbers, number_column
from discreet.engines.duckdb.engine import MOST_BINDING
from discreet.engines.duckdb.shape import shape
from discreet.engines.limits.overrun import Overrun
from discreet.engines.spark.layout import address, arrow_file, kinds_file, public_file, table_folder
from discreet.engines.spark.session import ANSI, connect
from discreet.engines.spark.spelling import PRIVATE, PUBLIC, WHOLE, SparkSpelling, view
from discreet.engines.spark.workers import EachTable, kind_of
from discreet.engines.words import Unspelled
from discreet.errors import EngineFailure
from discreet.noise.bits import SYSTEM
from discreet.policy.policy import Policy
from discreet.vault.exact import Exact, TableOfPart

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger("discreet.engine")
PLAIN = SparkSpelling()
CAREFUL = SparkSpelling(careful=True)
Made = TypeVar("Made")
_NUMBER = number_column(0)[:-1]
_CHECKING = 60.0  # seconds that planning a statement may take
_OPENING = 600.0  # seconds that listing the files of a table may take


class Spark:
    """One snapshot, through a session of its own. Several threads may use it; a forked process
    opens it again.
    """

    # its workers share the keys out, and write to disk what does not fit
    in_passes: ClassVar[bool] = False

    def __init__(self, session: Any, policy: Policy, folder: Path) -> None:
        self._session = session
        self._policy = policy
        self._folder = folder
        self._process = os.getpid()
        self._lock = Lock()
        self._renewing = Lock()
        self._binding: set[object] = set()  # shapes of statements that bind, to be checked once
        self._noted: dict[str, Any] = json.loads(kinds_file(folder).read_text(encoding="utf-8"))
        self._show_all()

    def _show_all(self) -> None:
        for table in self._policy.tables:
            self._within(partial(self._show, table), _OPENING)

    def _show(self, table: str) -> None:
        """Make a view of a table, in the types that were noted when it was made: those of no file
        decide.
        """
        if self._policy.tables[table].public:
            self._session.read.parquet(
                address(public_file(self._folder, table))
            ).createOrReplaceTempView(view(PUBLIC, table))
            return
        reader = self._session.read.schema(self._noted["schemas"][table])
        reader.parquet(address(table_folder(self._folder, table))).createOrReplaceTempView(
            view(PRIVATE, table)
        )

    def fetch(self, query: Numbers, seconds: float) -> Exact:
        """Return the exact numbers of one aggregation: counts as int64, sums as that or as
        decimal128(38, 0).
        """
        return Exact(self._twice(query, seconds, self._read))

    def fetch_parts(self, query: Numbers, seconds: float, rows: int) -> Exact:
        """Return the result of `fetch` in parts, read when it is opened; what is made of the parts
        is made by the workers (vault).
        """
        return Exact.elsewhere(partial(self._parts, query, seconds, rows))

    def _parts(
        self, query: Numbers, seconds: float, rows: int, part: TableOfPart | None
    ) -> Iterator[pa.Table]:
        read = self._read if part is None else partial(self._made, part)
        table = self._twice(query, seconds, read)
        for first in range(0, max(1, table.num_rows), rows):
            yield table.slice(first, rows)

    def _read(self, sql: str) -> pa.Table:
        return self._session.sql(sql).toArrow()

    def _made(self, part: TableOfPart, sql: str) -> pa.Table:
        """Return what a part of the vault makes of every batch of a result, on the workers: only
        that comes here.
        """
        from pyspark.sql.pandas.types import to_arrow_schema

        frame = self._session.sql(sql)
        kinds = {each.name: each.dataType.simpleString() for each in frame.schema.fields}
        # noise may need more digits
        kinds |= {name: WHOLE for name in kinds if name.startswith(_NUMBER)}
        listed = part.columns or tuple(kinds)
        declared = ", ".join(f"{name} {kinds[name]}" for name in listed)
        schema = to_arrow_schema(self._session.createDataFrame([], declared).schema)
        return frame.mapInArrow(EachTable(work=part, schema=schema), declared).toArrow()

    def sql(self, query: Numbers) -> str:
        """Return a query as it will run."""
        return PLAIN.numbers(query)

    def check(self, query: Numbers) -> None:
        """Raise Unspelled for what Spark would not compute alike, and EngineFailure for what it
        cannot plan.

        Spark plans a statement from the schema of the files alone: what is in them decides nothing
        here.
        """
        known = shape(query)
        if known in self._binding:
            return
        sql = PLAIN.numbers(query)
        plan = partial(self._planned, sql)
        used = self._session
        try:
            self._within(plan, _CHECKING, told=sql)
        except EngineFailure:
            if not self._renewed(used):
                raise
            self._within(plan, _CHECKING, told=sql)
        with self._lock:
            if len(self._binding) >= MOST_BINDING:
                self._binding.clear()
            self._binding.add(known)

    def _planned(self, sql: str) -> str:
        return str(self._session.sql(sql)._explain_string())

    def columns(self, table: str) -> dict[str, str]:
        """Return a table's columns and their stored types, the hidden owner left out."""
        return dict(self._noted["kinds"][table])

    def public_table(self, name: str) -> pa.Table:
        """Return all of a public table, in an order that depends on its content alone (S19)."""
        import pyarrow as pa

        return pa.ipc.open_file(pa.memory_map(str(arrow_file(self._folder, name)))).read_all()

    def close(self) -> None:
        if self._process == os.getpid():
            self._session.stop()

    # running

    def _twice(self, query: Numbers, seconds: float, read: Callable[[str], Made]) -> Made:
        """Return what a query reads; once more, carefully, where it failed: on a row, or because
        something went away.
        """
        began = time.monotonic()
        sql = PLAIN.numbers(query)
        used = self._session
        try:
            return self._within(lambda: read(sql), seconds, told=sql)
        except Unspelled:
            raise
        except Overrun:
            self._forget()
            raise
        except EngineFailure:
            self._renewed(used)
            careful = CAREFUL.numbers(query)
        try:
            return self._within(
                lambda: read(careful), seconds - (time.monotonic() - began), told=careful
            )
        except EngineFailure:
            self._forget()
            raise

    def _forget(self) -> None:
        """Check every statement anew before it is charged: the cluster may have gone away."""
        with self._lock:
            self._binding.clear()

    def _renewed(self, used: object) -> bool:
        """Return True if the session is gone, as after an hour without a question, and a new one
        was opened.
        """
        with self._renewing:
            if self._session is not used:
                return True
            try:
                self._within(lambda: self._session.conf.get(ANSI), _CHECKING, told="a session")
            except EngineFailure:
                self._within(self._renew, _OPENING, told="a new session")
                self._show_all()
                return True
            return False

    def _renew(self) -> None:
        self._session = connect(self._policy.engine.at)

    def _within(
        self, work: Callable[[], Made], seconds: float, *, told: str = "opening a snapshot"
    ) -> Made:
        """Return what work on the cluster gives, within so many seconds: then it is cancelled
        there, and not waited for.
        """
        # the session's threads did not survive the fork: it would wait for ever
        if self._process != os.getpid():
            _log.error(
                "The snapshot was opened before a fork. Open the policy again in the new process."
            )
            raise EngineFailure
        made: Future[Made] = Future()
        session = self._session
        tag = f"discreet-{SYSTEM.bits(64):016x}"

        def run() -> None:
            try:
                session.addTag(tag)
                made.set_result(work())
            except BaseException as error:
                made.set_exception(error)

        Thread(target=run, name="discreet-spark", daemon=True).start()
        try:
            return made.result(max(0.0, seconds))
        except TooLate:
            self._cancel(tag)
            _log.error("Overrun in: %s", told)
            raise Overrun from None
        except (KeyboardInterrupt, SystemExit):
            self._cancel(tag)
            raise
        except EngineFailure:
            raise
        except BaseException as error:
            _log.error("%s in: %s", kind_of(error), told)
            raise EngineFailure from None

    def _cancel(self, tag: str) -> None:
        """Ask the cluster to stop what has this tag; whether and when it does is not waited for."""
        Thread(target=self._stop, args=(tag,), name="discreet-spark-cancel", daemon=True).start()

    def _stop(self, tag: str) -> None:
        try:
            self._session.interruptTag(tag)
        except Exception as error:
            _log.error("What overran could not be cancelled: %s.", type(error).__name__)
