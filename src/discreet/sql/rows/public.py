"""Join public tables to private rows: what a public column may contain is known, because all of it
is known.
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

MAX_LISTED = 1_000  # distinct values up to which a public text is treated as a category
MAX_INLINE = 2_000  # rows of a computed public table that are written into the engine's SQL
# floats beyond are NULL beside private rows: on a grid of a millionth they do not fit
MOST_FLOAT = 1_000_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicSide:
    """A public table that is joined to private rows: what the engine reads, its columns, and the
    rows themselves.
    """

    source: PublicScan | ConstantTable
    fields: tuple[Field, ...]
    table: pa.Table

    def multiplicity(self, columns: list[int]) -> int:
        """Return how many of its rows one row can meet, if the columns at these places equal given
        values.
        """
        import pyarrow.compute as pc

        if not columns:
            return int(self.table.num_rows)
        if not self.table.num_rows:
            return 0
        keys = (
            self.table.select(columns)
            .rename_columns([f"c{place}" for place in columns])
            .drop_null()
        )
        if not keys.num_rows:
            return 0
        counts = keys.group_by(keys.column_names).aggregate([([], "count_all")])
        return int(pc.max(counts["count_all"]).as_py())


def public_side(
    table: pa.Table, *, alias: str, engine_alias: str, stored: str | None, node: exp.Expression
) -> PublicSide:
    """Return a public table for the engine: the stored one by its name, a computed one written
    out.
    """
    source: PublicScan | ConstantTable
    if stored is not None:
        source, columns = PublicScan(stored, engine_alias), table.column_names
    else:
        if table.num_rows > MAX_INLINE:
            raise reject(
                node,
                f"a computed public table of {table.num_rows} rows is too long to be joined.",
                f"Keep it under {MAX_INLINE} rows.",
            )
        # Privacy: under names of our own. Of two columns that an analyst calls a and A, the engine
        # would read the first for both, and the second one's range would bound it.
        columns = [f"c{index}" for index in range(table.num_columns)]
        source = _write(table, columns, engine_alias)
    fields = tuple(
        Field(
            table=alias,
            name=name,
            value=replace(
                _value(Column(engine_alias, written), column), kind=public_column_kind(column)
            ),
            origins=frozenset(),
        )
        for name, written, column in zip(table.column_names, columns, table.columns, strict=True)
    )
    return PublicSide(source=source, fields=fields, table=table)


def write_out_table(table: pa.Table, alias: str) -> ConstantTable:
    """Return a stored public table, written out under its own names."""
    return _write(table, table.column_names, alias)


def _write(table: pa.Table, columns: Sequence[str], alias: str) -> ConstantTable:
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    written = tuple(tuple(_text(value) for value in row) for row in rows)
    return ConstantTable(
        tuple(columns), tuple(_engine_type(column.type) for column in table.columns), written, alias
    )


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
    """Return a value as the text from which the engine casts it."""
    match value:
        case None:
            return None
        case datetime(tzinfo=None):
            return value.isoformat(sep=" ")
        case datetime():  # Privacy: the engine drops an offset where a TIMESTAMP is read, and with it the range's hours
            return value.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ")
        case Decimal():  # in digits: the engine cannot read all that have an exponent
            return f"{value:f}"
    return str(value)


def _value(stored: Column, column: pa.ChunkedArray) -> Value:
    """Return a public column as a value: its domain is what stands in it."""
    import pyarrow.compute as pc

    kind, nullable, known = column.type, column.null_count > 0, column.drop_null()
    if pa.types.is_boolean(kind):
        return Value(expression=stored, domain=Flag(), nullable=nullable)
    if len(known) == 0:
        return Value(expression=Cast(stored, "VARCHAR"), domain=Text(), nullable=True)
    if pa.types.is_integer(kind):
        return _number(Cast(stored, _engine_type(kind)), known, Fraction(1), nullable)
    # Privacy: what does not fit in the engine's decimals on the way would fail for those who meet
    # that row only.
    if pa.types.is_decimal(kind) and _units(known, 10**kind.scale) < min(
        2**62, 10 ** (37 - kind.scale)
    ):
        return _number(
            Cast(stored * 10**kind.scale, "BIGINT"), known, Fraction(1, 10**kind.scale), nullable
        )
    if pa.types.is_floating(kind):
        return _float(stored, known, nullable)
    if pa.types.is_date(kind):
        return Value(
            expression=stored,
            domain=Day(lo=pc.min(known).as_py(), hi=pc.max(known).as_py()),
            nullable=nullable,
        )
    if pa.types.is_timestamp(kind):
        return _moment(stored, known, nullable)
    return _texts(stored, known, nullable)


def _float(stored: Column, known: pa.ChunkedArray, nullable: bool) -> Value:
    import pyarrow.compute as pc

    # Privacy: what is no number on the grid is NULL; a cast that fails would fail for those who
    # meet that row only.
    finite = known.filter(pc.less(pc.abs(known.cast(pa.float64())), MOST_FLOAT))
    if len(finite) == 0:
        return Value(expression=Cast(stored, "VARCHAR"), domain=Text(), nullable=nullable)
    # Privacy: and it stays within its ends where the engine rounds otherwise: 5e-7 is 0 here, a
    # millionth there.
    lo, hi = _ends(finite, Fraction(1, 10**6))
    units = call(
        "least", call("greatest", Cast(call("round", stored * 1_000_000), "BIGINT"), lo), hi
    )
    inside = call("abs", stored) < MOST_FLOAT
    return _number(
        case((inside, units)), finite, Fraction(1, 10**6), nullable or len(finite) < len(known)
    )


def _moment(stored: Column, known: pa.ChunkedArray, nullable: bool) -> Value:
    import pyarrow.compute as pc

    # In microseconds, which is what the engine compares; of nanoseconds Arrow makes another class.
    zone = known.type.tz
    ends = (
        end.cast(pa.timestamp("us", zone), safe=False) for end in (pc.min(known), pc.max(known))
    )
    lo, hi = (end.as_py() for end in ends)
    moment: Expression = stored
    if zone is not None:  # its range must not depend on where the machine stands
        moment = careful(call("make_timestamp", call("epoch_us", stored)))
        lo, hi = (end.astimezone(UTC).replace(tzinfo=None) for end in (lo, hi))
    return Value(
        expression=moment, domain=Moment(lo=lo, hi=hi, step=Fraction(1, 10**6)), nullable=nullable
    )


def _texts(stored: Column, known: pa.ChunkedArray, nullable: bool) -> Value:
    """Texts and times of day: one of a list, where there are few; and whatever else has no domain
    of its own.
    """
    kind = known.type
    listed = (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)
    )
    texts = sorted(set(map(str, known.to_pylist()))) if listed or pa.types.is_time(kind) else []
    if listed and len(texts) > MAX_LISTED:
        return Value(
            expression=Cast(stored, "VARCHAR"),
            domain=Text(letters=max(map(len, texts))),
            nullable=nullable,
        )
    # lists, intervals and whatever else has no domain of its own
    if not 0 < len(texts) <= MAX_LISTED:
        return Value(
            expression=call("left", Cast(stored, "VARCHAR"), MOST_LETTERS),
            domain=Text(),
            nullable=nullable,
        )
    # the engine writes a time of day in another way
    same = "TIME" if pa.types.is_time(kind) else "VARCHAR"
    listed_texts = call("list", *(Cast(Constant(text), same) for text in texts))
    position = careful(call("list_position", listed_texts, Cast(stored, same)) - 1)
    return Value(expression=position, domain=Category(values=tuple(texts)), nullable=nullable)


def _units(known: pa.ChunkedArray, scale: int) -> int:
    """Return the largest of the decimals, in units of their last digit."""
    import pyarrow.compute as pc

    return max(abs(int(end.as_py() * scale)) for end in (pc.min(known), pc.max(known)))


def _number(units: Expression, known: pa.ChunkedArray, step: Fraction, nullable: bool) -> Value:
    lo, hi = _ends(known, step)
    return Value(
        expression=careful(units), domain=Number(step=step, lo=lo, hi=hi), nullable=nullable
    )


def _ends(known: pa.ChunkedArray, step: Fraction) -> tuple[int, int]:
    """Return the smallest and the largest, in steps."""
    import pyarrow.compute as pc

    lo, hi = (round(Fraction(end.as_py()) / step) for end in (pc.min(known), pc.max(known)))
    return lo, hi
