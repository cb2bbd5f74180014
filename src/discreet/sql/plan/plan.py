"""A Plan: what will be read, what gets noise, what runs after. A printable value that has seen no
data.

Block       one aggregation of private rows: its keys, and the statistics and picks that are made in
            each group
Statistic   numbers that get noise of one scale: what is read, how far one person moves it, what is
            computed of it
Pick        a value that is chosen (`sql.plan.picks`)
after       SQL over the noisy tables and the public ones, for everything that stands above the
            aggregation
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import pyarrow as pa

from discreet.sql.after.error_bars import HalfWidth
from discreet.sql.after.estimates import number_type
from discreet.sql.after.widths.again import Again
from discreet.sql.after.widths.linear import Form
from discreet.sql.plan.block import Block
from discreet.sql.text.parse import quote
from discreet.sql.values.value import (
    Category,
    Day,
    Domain,
    Flag,
    Moment,
    Number,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalOf:
    """A running total: of which block and aggregate, and over how many periods."""

    block: int
    estimate: int
    periods: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerColumn:
    """A column of the answer; `measured` says that its margins come behind all columns of the final
    table.
    """

    name: str
    measured: bool
    # (block, aggregate) where the column is an aggregate as it was measured
    estimate: tuple[int, int] | None
    # further ones that stand in the same column, as of grouping sets
    also: tuple[tuple[int, int], ...] = ()
    # of computed ones that are linear in noise: one, or one for each grouping
    forms: tuple[Form, ...] = ()

    simulated: bool = False  # computed, and not linear in noise: its margins are simulated
    noisy: bool = False  # computed from noisy numbers, in whatever way
    total_of: TotalOf | None = None  # where it is the running total of an aggregate
    # where MARGIN made it: it has no margin itself, and needs none
    half_width: HalfWidth | None = None

    @property
    def tells_margin(self) -> bool:
        """Return True if its margin can be told beforehand, for a number of rows if need be."""
        of_row = self.measured and (self.estimate is not None or bool(self.forms))
        return of_row or self.total_of is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """The way in which several groupings of the same rows are measured, and what was weighed for it
    (S3).

    `together` and `apart` are mean margins over the groupings, up to a factor that depends on the
    amount: when some are added up from others' noisy numbers, and when each is measured. None where
    there was no choice: `why` tells.
    """

    blocks: tuple[int, ...]
    together: float | None
    apart: float
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that will happen to answer one question, and nothing of the data."""

    blocks: tuple[Block, ...]
    after: str
    # the columns of the only noisy table, where `after` does nothing but list them
    listed: tuple[str, ...] | None
    columns: tuple[AnswerColumn, ...]
    # rows may have been left out after noise (HAVING, LIMIT, ...): coverage holds before that
    selected: bool
    public: tuple[str, ...]  # public tables that `after` reads
    # of several numbers: their half-widths are columns of `HALF_WIDTHS`
    combined: tuple[Form, ...] = ()
    ways: tuple[Way, ...] = ()
    # of the private tables that are read: what is beyond is in no answer
    max_rows: tuple[tuple[str, int], ...] = ()
    # the same statement on changed numbers, for margins of what is made of several rows
    again: Again | None = None
    today: date | None = None  # what CURRENT_DATE meant, where it was asked for
    probe: bool = False  # no row can come of it: only names and types are asked for


def empty_plan(columns: Sequence[tuple[str, pa.DataType]]) -> Plan:
    """Return a plan that reads nothing and costs nothing: no rows, under these names and of these
    types.
    """
    listed = ", ".join(
        f"CAST(NULL AS {_sql_type(kind)}) AS {quote(name)}" for name, kind in columns
    )
    return Plan(
        blocks=(),
        after=f"SELECT {listed} WHERE FALSE",
        listed=None,
        columns=tuple(
            AnswerColumn(name=name, measured=False, estimate=None) for name, _ in columns
        ),
        selected=False,
        public=(),
        probe=True,
    )


def _sql_type(kind: pa.DataType) -> str:
    """Return the SQL type, after noise, that gives this type of Arrow."""
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return f"{_sql_type(kind.value_type)}[]"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    named = {
        pa.bool_(): "BOOLEAN",
        pa.int32(): "INTEGER",
        pa.int64(): "BIGINT",
        pa.date32(): "DATE",
    }
    named |= {pa.float64(): "DOUBLE", pa.timestamp("us"): "TIMESTAMP"}
    return named.get(kind, "VARCHAR")


def arrow_type(domain: Domain) -> pa.DataType:
    """Return the type in which values of a domain are shown; of an identifier, text."""
    match domain:
        case Number():
            return number_type(domain.step, domain.largest)
        case Flag():
            return pa.bool_()
        case Day():
            return pa.timestamp("us") if domain.stamp else pa.date32()
        case Moment():
            return pa.timestamp("us")
        case Category(values=values) if values and all(isinstance(each, int) for each in values):
            return pa.int64()
    return pa.string()
