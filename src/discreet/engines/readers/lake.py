"""Read tables with Spark: of its catalog, or in the formats Delta and Iceberg.

All of them declare the types of a table, so no file decides how others are read (S23). A view is
refused: nobody could notice if it makes one row from the rows of two people.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from discreet.engines.readers.reader import NO_ROWS, Declarations, Wanted
from discreet.engines.spark.session import connect
from discreet.engines.spark.spelling import identifier
from discreet.errors import UsageError
from discreet.policy.engine import CATALOG

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger("discreet.engine")
_PACKAGES = {
    "delta": "io.delta:delta-spark_2.13:VERSION",
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime-SPARK_2.13:VERSION",
}
_SIMPLE = (  # types from which a domain can be read
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal"),
    *("string", "char", "varchar", "binary", "date", "timestamp", "timestamp_ntz"),
)
_NOT_THERE = ("DATA_SOURCE_NOT_FOUND", "Failed to find the data source")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lake:
    """The tables of a policy at a place that the Spark at an address can read."""

    kind: str
    place: str
    at: str | None = field(default=None, repr=False)  # it may hold a token
    names: tuple[str, ...]
    file: None = None

    def tables(self) -> tuple[str, ...]:
        with self._opened() as session:
            return tuple(self.frames(session))

    def declared(self, table: str) -> Declarations:
        with self.read(NO_ROWS) as found:
            schema = found[table].schema
        return Declarations(types={field.name: str(field.type) for field in schema})

    def unheld(self, table: str) -> dict[str, str]:
        """Return nothing, because `frames` leaves such columns out."""
        return {}

    @contextmanager
    def read(self, rows: Wanted) -> Iterator[Mapping[str, pa.Table]]:
        with self._opened() as session:
            yield self.arrow(self.frames(session), rows)

    def arrow(self, frames: Mapping[str, Any], rows: Iterable[str]) -> dict[str, pa.Table]:
        """Return the tables as Arrow tables: those that `rows` names, in lower case, with their
        rows, and the others without.
        """
        from pyspark.sql.pandas.types import to_arrow_schema

        wanted = set(rows)
        tables = {}
        for name, frame in frames.items():
            if name.lower() in wanted:
                tables[name] = frame.toArrow()
            else:
                tables[name] = to_arrow_schema(frame.schema).empty_table()
        return tables

    def frames(self, session: Any) -> dict[str, Any]:
        """Return the policy's tables that exist, by name, without reading them.

        Raise UsageError for a view, and if this Spark cannot read the format.
        """
        found = ((name, self._frame(session, name)) for name in self.names)
        return {name: frame for name, frame in found if frame is not None}

    def _frame(self, session: Any, table: str) -> Any:
        from pyspark.errors import PySparkException

        try:
            if self.kind == CATALOG:
                named = ".".join(map(identifier, (*self.place.split("."), table)))
                if (session.catalog.getTable(named).tableType or "").upper() == "VIEW":
                    raise UsageError(_VIEW.format(table=f"{self.place}.{table}"))
                frame = session.table(named)
            else:
                frame = session.read.format(self.kind).load(f"{self.place.rstrip('/')}/{table}")
            simple = [
                field.name
                for field in frame.schema.fields  # Spark looks for the table now
                if field.dataType.simpleString().split("(")[0] in _SIMPLE
            ]
            frame = frame.select(*map(identifier, simple))
        except PySparkException as error:
            _log.warning("Spark does not read %s: %s.", table, error.getCondition())
            if any(each in str(error) for each in _NOT_THERE):
                raise UsageError(_lacking(self.kind)) from None
            return None
        return frame

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        session = connect(self.at)
        try:
            yield session
        finally:
            session.stop()


def _lacking(kind: str) -> UsageError:
    return UsageError(
        f"This Spark cannot read {kind}: start it with --packages {_PACKAGES[kind]}, in the versions that fit it."
    )


_VIEW = (
    "{table} is a view: whether each of its rows is made from rows of one person, nothing here can "
    "notice. Make it a table, or name the tables that it reads."
)
