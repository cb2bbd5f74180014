"""Public tables beside private rows: what their columns may contain is known, because all of it is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from discreet.domain import MOST_LETTERS
from discreet.sql import work
from discreet.sql.parse import reject
from discreet.sql.relation import Field
from discreet.sql.values import Coded, Day, Flag, Moment, Number, Text, Value, literal, quoted
from discreet.total import tried

MAX_LISTED = 1_000  # distinct values up to which a public text is treated as a category
MAX_INLINE = 2_000  # rows of a computed public table that are written into the engine's SQL
MOST_FLOAT = 1_000_000_000_000  # floats beyond are NULL beside private rows: on a grid of a millionth they do not fit
SCHEMA = "public_tables"  # where a snapshot keeps public tables


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicSide:
    """A public table that is joined to private rows: engine SQL, its columns, and the rows themselves."""

    source: str
    fields: tuple[Field, ...]
    table: pa.Table

    def multiplicity(self, columns: list[int]) -> int:
        """How many rows of it one row can meet, when the columns at these places must equal given values."""
        if not columns:
            return int(self.table.num_rows)
        if not self.table.num_rows:
            return 0
        keys = self.table.select(columns).rename_columns([f"c{place}" for place in columns]).drop_null()
        if not keys.num_rows:
            return 0
        counts = keys.group_by(keys.column_names).aggregate([([], "count_all")])
        return int(pc.max(counts["count_all"]).as_py())


def public_side(
    table: pa.Table, *, alias: str, engine_alias: str, stored: str | None, node: exp.Expression
) -> PublicSide:
    """A public table as engine SQL: the stored one by its name, a computed one written out."""
    if stored is not None:
        source = f"{SCHEMA}.{quoted(stored)} AS {engine_alias}"
        columns = [quoted(name) for name in table.column_names]
    else:
        if table.num_rows > MAX_INLINE:
            raise reject(
                node,
                f"a computed public table of {table.num_rows} rows is too long to be joined.",
                f"Keep it under {MAX_INLINE} rows.",
            )
        # Privacy: under names of our own. Of two columns that an analyst calls a and A, the engine would read the first
        # for both, and the second one's range would bound it.
        columns = [f"c{index}" for index in range(table.num_columns)]
        source = _inline(table, columns, engine_alias)
    fields = tuple(
        Field(table=alias, name=name, value=_value(f"{engine_alias}.{written}", column), origins=frozenset())
        for name, written, column in zip(table.column_names, columns, table.columns, strict=True)
    )
    return PublicSide(source=source, fields=fields, table=table)


def _inline(table: pa.Table, columns: Sequence[str], alias: str) -> str:
    types = [_engine_type(column.type) for column in table.columns]
    if not table.num_rows:
        empty = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in zip(columns, types, strict=True))
        return f"({work.select(0)} {empty} WHERE FALSE) AS {alias}"
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    values = ", ".join(
        f"({', '.join(f'CAST({_literal(value)} AS {kind})' for value, kind in zip(row, types, strict=True))})"
        for row in rows
    )
    return f"(VALUES {values}) AS {alias}({', '.join(columns)})"


def _engine_type(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "BOOLEAN"
    if pa.types.is_integer(kind):
        return "HUGEINT" if kind == pa.uint64() else "BIGINT"
    if kind == pa.decimal128(38, 0):  # as Arrow holds a HUGEINT, which may have 39 digits
        return "HUGEINT"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_floating(kind):
        return "DOUBLE"
    if pa.types.is_date(kind):
        return "DATE"
    return "TIMESTAMP" if pa.types.is_timestamp(kind) else "VARCHAR"


def _literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case datetime(tzinfo=None):
            return literal(value.isoformat(sep=" "))
        case datetime():  # Privacy: the engine drops an offset where a TIMESTAMP is read, and with it the range's hours
            return literal(value.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" "))
        case Decimal():  # in digits: the engine cannot read all that have an exponent
            return literal(f"{value:f}")
    return literal(str(value))


def _value(sql: str, column: pa.ChunkedArray) -> Value:
    """A public column as a value: its domain is what stands in it."""
    kind, nullable, known = column.type, column.null_count > 0, column.drop_null()
    if pa.types.is_boolean(kind):
        return Value(sql=sql, domain=Flag(), nullable=nullable)
    if len(known) == 0:
        return Value(sql=f"CAST({sql} AS VARCHAR)", domain=Text(), nullable=True)
    if pa.types.is_integer(kind):
        return _number(tried(f"CAST({sql} AS {_engine_type(kind)})"), known, Fraction(1), nullable)
    # Privacy: what does not fit in the engine's decimals on the way would fail for those who meet that row only.
    if pa.types.is_decimal(kind) and _units(known, 10**kind.scale) < min(2**62, 10 ** (37 - kind.scale)):
        return _number(tried(f"CAST({sql} * {10**kind.scale} AS BIGINT)"), known, Fraction(1, 10**kind.scale), nullable)
    if pa.types.is_floating(kind):
        # Privacy: what is no number on the grid is NULL; a cast that fails would fail for those who meet that row only.
        finite = known.filter(pc.less(pc.abs(known.cast(pa.float64())), MOST_FLOAT))
        if len(finite) == 0:
            return Value(sql=f"CAST({sql} AS VARCHAR)", domain=Text(), nullable=nullable)
        # Privacy: and it stays within its ends where the engine rounds otherwise: 5e-7 is 0 here, a millionth there.
        lo, hi = _ends(finite, Fraction(1, 10**6))
        units = f"least(greatest(CAST(round({sql} * 1000000) AS BIGINT), {lo}), {hi})"
        inside = tried(f"CASE WHEN abs({sql}) < {MOST_FLOAT} THEN {units} END")
        return _number(inside, finite, Fraction(1, 10**6), nullable or len(finite) < len(known))
    if pa.types.is_date(kind):
        return Value(sql=sql, domain=Day(lo=pc.min(known).as_py(), hi=pc.max(known).as_py()), nullable=nullable)
    if pa.types.is_timestamp(kind):
        lo, hi = (end.as_py() for end in (pc.min(known), pc.max(known)))
        if kind.tz is not None:  # its range must not depend on where the machine stands
            sql = tried(f"make_timestamp(epoch_us({sql}))")
            lo, hi = (end.astimezone(UTC).replace(tzinfo=None) for end in (lo, hi))
        return Value(sql=sql, domain=Moment(lo=lo, hi=hi, step=Fraction(1, 10**6)), nullable=nullable)
    listed = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)
    texts = sorted(set(map(str, known.to_pylist()))) if listed or pa.types.is_time(kind) else []
    if listed and len(texts) > MAX_LISTED:
        return Value(sql=f"CAST({sql} AS VARCHAR)", domain=Text(letters=max(map(len, texts))), nullable=nullable)
    if not 0 < len(texts) <= MAX_LISTED:  # lists, intervals and whatever else has no domain of its own
        return Value(sql=f"left(CAST({sql} AS VARCHAR), {MOST_LETTERS})", domain=Text(), nullable=nullable)
    same = "TIME" if pa.types.is_time(kind) else "VARCHAR"  # the engine writes a time of day in another way
    values = ", ".join(f"{literal(text)}::{same}" for text in texts)
    position = tried(f"list_position([{values}], CAST({sql} AS {same})) - 1")
    return Value(sql=position, domain=Coded(values=tuple(texts)), nullable=nullable)


def _units(known: pa.ChunkedArray, scale: int) -> int:
    """The largest of the decimals, in units of their last digit."""
    return max(abs(int(end.as_py() * scale)) for end in (pc.min(known), pc.max(known)))


def _number(sql: str, known: pa.ChunkedArray, step: Fraction, nullable: bool) -> Value:
    lo, hi = _ends(known, step)
    return Value(sql=sql, domain=Number(step=step, lo=lo, hi=hi), nullable=nullable)


def _ends(known: pa.ChunkedArray, step: Fraction) -> tuple[int, int]:
    """The smallest and the largest, in steps."""
    lo, hi = (round(Fraction(end.as_py()) / step) for end in (pc.min(known), pc.max(known)))
    return lo, hi
