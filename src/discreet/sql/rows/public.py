"""Prepare public tables for joins with private rows. Their values are public, so the domain of each
column is computed from the column itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
from sqlglot import exp

from discreet.algebra import (
    Cast,
    Column,
    Constant,
    ConstantTable,
    Expression,
    PublicScan,
    call,
    case,
)
from discreet.policy.domain import MOST_LETTERS
from discreet.sql.after.tables import public_column_kind
from discreet.sql.rows.relation import Field
from discreet.sql.text.parse import reject
from discreet.sql.values.value import Category, Day, Flag, Moment, Number, Text, Value, careful

MAX_LISTED = 1_000  # the most distinct values of a public text that becomes a category
MAX_INLINE = 2_000  # the most rows of a computed public table that are written into the SQL
# Larger floats become NULL in joins with private rows: in steps of a millionth they do not fit.
MOST_FLOAT = 1_000_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicSide:
    """The public side of a join with private rows: what the engine reads, the columns, the rows."""

    source: PublicScan | ConstantTable
    fields: tuple[Field, ...]
    table: pa.Table

    def multiplicity(self, columns: list[int]) -> int:
        """Return the most rows that have equal values in these columns: so many can match one
        private row.
        """
        import pyarrow.compute as pc

        if not columns:
            return int(self.table.num_rows)
        if not self.table.num_rows:
            return 0
        names = [f"c{place}" for place in columns]
        keys = self.table.select(columns).rename_columns(names).drop_null()
        if not keys.num_rows:
            return 0
        counts = keys.group_by(keys.column_names).aggregate([([], "count_all")])
        return int(pc.max(counts["count_all"]).as_py())


def public_side(
    table: pa.Table, *, alias: str, engine_alias: str, stored: str | None, node: exp.Expression
) -> PublicSide:
    """Return a public table as a side of a join: a stored one by its name, a computed one written
    out.
    """
    source: PublicScan | ConstantTable
    if stored is not None:
        source = PublicScan(stored, engine_alias)
        columns = table.column_names
    else:
        if table.num_rows > MAX_INLINE:
            raise reject(
                node,
                f"a computed public table of {table.num_rows} rows is too long to be joined.",
                f"Keep it under {MAX_INLINE} rows.",
            )
        # Privacy: the columns get names of our own. If an analyst calls two of them a and A, the
        # engine would read the first for both, with the range of the second as its bound.
        columns = [f"c{index}" for index in range(table.num_columns)]
        source = _write(table, columns, engine_alias)
    fields = []
    for name, engine_name, column in zip(table.column_names, columns, table.columns, strict=True):
        value = _value(Column(engine_alias, engine_name), column)
        value = replace(value, kind=public_column_kind(column))
        fields.append(Field(table=alias, name=name, value=value, origins=frozenset()))
    return PublicSide(source=source, fields=tuple(fields), table=table)


def _write(table: pa.Table, columns: Sequence[str], alias: str) -> ConstantTable:
    lists = [column.to_pylist() for column in table.columns]
    rows = [tuple(map(_text, row)) for row in zip(*lists, strict=True)]
    types = [_engine_type(column.type) for column in table.columns]
    return ConstantTable(tuple(columns), tuple(types), tuple(rows), alias)


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


def _text(value: Any) -> str | None:
    """Return a value as a text that the engine casts to its type."""
    match value:
        case None:
            return None
        case datetime(tzinfo=None):
            return value.isoformat(sep=" ")
        case datetime():
            # Privacy: the engine ignores the offset of a text that it reads as a TIMESTAMP. Then the
            # moment would be hours outside of its range.
            return value.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ")
        case Decimal():  # without an exponent, which the engine cannot always read
            return f"{value:f}"
    return str(value)


def _value(stored: Column, column: pa.ChunkedArray) -> Value:
    """Return a public column as a value; its domain is computed from the values in it."""
    import pyarrow.compute as pc

    kind = column.type
    nullable = column.null_count > 0
    known = column.drop_null()
    if pa.types.is_boolean(kind):
        return Value(expression=stored, domain=Flag(), nullable=nullable)
    if len(known) == 0:
        return Value(expression=Cast(stored, "VARCHAR"), domain=Text(), nullable=True)
    if pa.types.is_integer(kind):
        return _number(Cast(stored, _engine_type(kind)), known, Fraction(1), nullable)
    if pa.types.is_decimal(kind):
        # Privacy: a product that does not fit in the engine's decimals would raise an error, but only
        # if a person meets that row.
        scale = 10**kind.scale
        if _units(known, scale) < min(2**62, 10 ** (37 - kind.scale)):
            return _number(Cast(stored * scale, "BIGINT"), known, Fraction(1, scale), nullable)
    if pa.types.is_floating(kind):
        return _float(stored, known, nullable)
    if pa.types.is_date(kind):
        days = Day(lo=pc.min(known).as_py(), hi=pc.max(known).as_py())
        return Value(expression=stored, domain=days, nullable=nullable)
    if pa.types.is_timestamp(kind):
        return _moment(stored, known, nullable)
    return _texts(stored, known, nullable)


def _float(stored: Column, known: pa.ChunkedArray, nullable: bool) -> Value:
    """Return a column of floats as a number in steps of a millionth."""
    import pyarrow.compute as pc

    # Privacy: a float that does not fit is NULL. A cast would raise an error, but only if a person
    # meets that row.
    finite = known.filter(pc.less(pc.abs(known.cast(pa.float64())), MOST_FLOAT))
    if len(finite) == 0:
        return Value(expression=Cast(stored, "VARCHAR"), domain=Text(), nullable=nullable)
    # Privacy: clamp to the ends, because the engine may round in another way: 5e-7 becomes 0 here,
    # and a millionth there.
    step = Fraction(1, 10**6)
    lo, hi = _ends(finite, step)
    units = call(
        "least", call("greatest", Cast(call("round", stored * 1_000_000), "BIGINT"), lo), hi
    )
    fits = call("abs", stored) < MOST_FLOAT
    may_be_null = nullable or len(finite) < len(known)
    return _number(case((fits, units)), finite, step, may_be_null)


def _moment(stored: Column, known: pa.ChunkedArray, nullable: bool) -> Value:
    """Return a column of timestamps as a moment in microseconds, in UTC if it has a time zone."""
    import pyarrow.compute as pc

    # The engine compares microseconds, and Arrow returns another class for nanoseconds.
    zone = known.type.tz
    kind = pa.timestamp("us", zone)
    lo = pc.min(known).cast(kind, safe=False).as_py()
    hi = pc.max(known).cast(kind, safe=False).as_py()
    moment: Expression = stored
    if zone is not None:  # the range must not depend on the time zone of the machine
        moment = careful(call("make_timestamp", call("epoch_us", stored)))
        lo = lo.astimezone(UTC).replace(tzinfo=None)
        hi = hi.astimezone(UTC).replace(tzinfo=None)
    domain = Moment(lo=lo, hi=hi, step=Fraction(1, 10**6))
    return Value(expression=moment, domain=domain, nullable=nullable)


def _texts(stored: Column, known: pa.ChunkedArray, nullable: bool) -> Value:
    """Return a column of texts or times of day as a category, if it has few values; otherwise, and
    for types without a domain, as a text.
    """
    kind = known.type
    is_text = (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)
    )
    is_time = pa.types.is_time(kind)
    texts = sorted(set(map(str, known.to_pylist()))) if is_text or is_time else []
    if is_text and len(texts) > MAX_LISTED:
        domain = Text(letters=max(map(len, texts)))
        return Value(expression=Cast(stored, "VARCHAR"), domain=domain, nullable=nullable)
    # lists, intervals and other types without a domain
    if not 0 < len(texts) <= MAX_LISTED:
        start = call("left", Cast(stored, "VARCHAR"), MOST_LETTERS)
        return Value(expression=start, domain=Text(), nullable=nullable)
    # Compare times as times: the engine writes them as other texts.
    type_to_compare = "TIME" if is_time else "VARCHAR"
    constants = call("list", *(Cast(Constant(text), type_to_compare) for text in texts))
    position = careful(call("list_position", constants, Cast(stored, type_to_compare)) - 1)
    return Value(expression=position, domain=Category(values=tuple(texts)), nullable=nullable)


def _units(known: pa.ChunkedArray, scale: int) -> int:
    """Return the largest absolute value of decimals, in units of their last digit."""
    import pyarrow.compute as pc

    ends = (pc.min(known).as_py(), pc.max(known).as_py())
    return max(abs(int(end * scale)) for end in ends)


def _number(units: Expression, known: pa.ChunkedArray, step: Fraction, nullable: bool) -> Value:
    """Return an expression in units of a step as a number with the range of a column."""
    lo, hi = _ends(known, step)
    domain = Number(step=step, lo=lo, hi=hi)
    return Value(expression=careful(units), domain=domain, nullable=nullable)


def _ends(known: pa.ChunkedArray, step: Fraction) -> tuple[int, int]:
    """Return the smallest and the largest value, in steps."""
    import pyarrow.compute as pc

    lo = round(Fraction(pc.min(known).as_py()) / step)
    hi = round(Fraction(pc.max(known).as_py()) / step)
    return lo, hi
