"""A Plan says what will be read, what gets noise, and what runs after noise. It is a printable value
that depends on no data.

Block       one aggregation of private rows: its keys, and the statistics and picks of each group
Statistic   numbers with noise of one scale: what is read, how far one person moves it, and what is
            computed from it
Pick        an aggregate that chooses a value (`sql.plan.picks`)
after       SQL over the noisy and the public tables, for everything above the aggregation
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
    """A running total: its block, its aggregate, and the number of periods."""

    block: int
    estimate: int
    periods: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerColumn:
    """A column of the answer."""

    name: str
    # True if its margins are a column of the final table, behind all columns of the answer
    measured: bool
    # (block, aggregate) if the column is an aggregate as it was measured
    estimate: tuple[int, int] | None
    # more of these, if the column has several aggregates, as with grouping sets
    also: tuple[tuple[int, int], ...] = ()
    # for a computed column that is linear in noise: one form, or one for each grouping
    forms: tuple[Form, ...] = ()

    simulated: bool = False  # computed, and not linear in noise: its margins are simulated
    noisy: bool = False  # computed from noisy numbers
    distinct: bool = False  # one of several rows that are alike, so it has no margins
    total_of: TotalOf | None = None  # set if the column is the running total of an aggregate
    # set if MARGIN made the column: it is a margin, and has none itself
    half_width: HalfWidth | None = None

    @property
    def tells_margin(self) -> bool:
        """Return True if the margin is known before the question is paid, maybe for an assumed number
        of rows.
        """
        if self.total_of is not None:
            return True
        return self.measured and (self.estimate is not None or bool(self.forms))


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How several groupings of the same rows are measured, and which margins were compared (S3).

    Both are mean margins over the groupings, up to a factor that depends on the amount. `together`:
    some groupings are added up from the noisy numbers of others. `apart`: each is measured. With
    `together` None there was no choice; `why` says the reason.
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
    # the columns of the only noisy table, if `after` does nothing but list them
    listed: tuple[str, ...] | None
    columns: tuple[AnswerColumn, ...]
    # rows may be left out after noise (HAVING, LIMIT, ...): margins cover 95 % of all rows before that
    selected: bool
    public: tuple[str, ...]  # public tables that `after` reads
    # forms of several numbers: their half-widths are columns of `HALF_WIDTHS`
    combined: tuple[Form, ...] = ()
    ways: tuple[Way, ...] = ()
    # max_rows of each private table that is read: no answer counts more rows of a person
    max_rows: tuple[tuple[str, int], ...] = ()
    # the same statement on changed numbers, for margins of values made from several rows
    again: Again | None = None
    today: date | None = None  # the meaning of CURRENT_DATE, if the question has it
    probe: bool = False  # the question only asks for names and types: it returns no row


def empty_plan(columns: Sequence[tuple[str, pa.DataType]]) -> Plan:
    """Return a plan that reads nothing and costs nothing: its answer has these columns and no
    rows.
    """
    nulls = [f"CAST(NULL AS {_sql_type(kind)}) AS {quote(name)}" for name, kind in columns]
    answer = [AnswerColumn(name=name, measured=False, estimate=None) for name, _ in columns]
    return Plan(
        blocks=(),
        after=f"SELECT {', '.join(nulls)} WHERE FALSE",
        listed=None,
        columns=tuple(answer),
        selected=False,
        public=(),
        probe=True,
    )


def _sql_type(kind: pa.DataType) -> str:
    """Return the SQL type whose values have this type of Arrow after noise."""
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return f"{_sql_type(kind.value_type)}[]"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    names = {
        pa.bool_(): "BOOLEAN",
        pa.int32(): "INTEGER",
        pa.int64(): "BIGINT",
        pa.date32(): "DATE",
        pa.float64(): "DOUBLE",
        pa.timestamp("us"): "TIMESTAMP",
    }
    return names.get(kind, "VARCHAR")


def arrow_type(domain: Domain) -> pa.DataType:
    """Return the type in which values of a domain are shown; identifiers are shown as text."""
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
