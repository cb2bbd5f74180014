"""Ask the curator a client's statement: with the price of the session's settings, and with margins
as columns or in a notice.

Everything here runs on a worker's thread and may take as long as a question takes. Describing a
statement never answers it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from discreet.budget import number
from discreet.curator import Curator
from discreet.display.show import notes
from discreet.errors import DiscreetError, Rejected
from discreet.server.pgwire.faults import NO_PRICE, UNPRICED, Fault, Notice, fault_of
from discreet.server.pgwire.lexer import split
from discreet.server.settings import Settings
from discreet.server.users import User

if TYPE_CHECKING:
    import discreet

DIALECT = "postgres"
NEXT_TO_NOTHING = "1e-9"
MARGIN = "_margin"  # the column of a column's margins has its name with this ending


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a statement: its tag, its rows if it has any, notices, and whether it was
    charged.
    """

    tag: str
    table: pa.Table | None = None
    notices: tuple[Notice, ...] = ()
    charged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Asks a curator in the name of one analyst, with the settings of a session."""

    curator: Curator
    user: User
    settings: Settings

    @property
    def analyst(self) -> str:
        if self.user.analyst is None:
            hint = "Log in as an analyst of the policy to ask."
            raise Fault(
                "42501", f"{self.user.name} is an auditor, who reads and never asks.", hint=hint
            )
        return self.user.analyst

    def schema(self, sql: str, *, offset: int = 0) -> pa.Schema:
        """Return the columns of a question's answer, without answering it."""
        try:
            shape = self.curator.shape(sql, analyst=self.analyst, dialect=DIALECT)
        except Rejected as refused:
            nothing = self._no_rows(sql)
            if nothing is None:
                raise fault_of(refused, sql=sql, offset=offset) from None
            return nothing
        except DiscreetError as error:
            raise fault_of(error, sql=sql, offset=offset) from None
        if self.settings["discreet.margins"] != "columns":
            return shape.schema
        return pa.schema([*shape.schema, *_margin_fields(shape.schema, shape.measured)])

    def ask(self, sql: str, *, offset: int = 0) -> Result:
        """Answer a question at the session's price."""
        try:
            price = self.settings.price() or self._free(sql)
            answer = self.curator.ask(sql, analyst=self.analyst, dialect=DIALECT, **price)
            table = self._with_margins(sql, answer)
        except Rejected as refused:
            nothing = self._no_rows(sql)
            if nothing is None:
                raise fault_of(refused, sql=sql, offset=offset) from None
            told = Notice(message=f"No rows: {refused.reason}", detail="discreet.rows is none.")
            return Result(tag="SELECT 0", table=nothing.empty_table(), notices=(told,))
        except DiscreetError as error:
            raise fault_of(error, sql=sql, offset=offset) from None
        return Result(
            tag=f"SELECT {table.num_rows}",
            table=table,
            notices=(_tell(answer, margins=self.settings["discreet.margins"] == "notice"),),
            charged=answer.cost.epsilon > 0,
        )

    def _free(self, sql: str) -> Mapping[str, Any]:
        """Return a price for a question that is free; refuse a question that is not.

        The price is almost nothing. So if the question stops being free at this moment, because a
        new day begins, no more than that is charged.
        """
        if not self.curator.shape(sql, analyst=self.analyst, dialect=DIALECT).free:
            raise Fault(UNPRICED, "What may this answer cost? No ε is set.", hint=NO_PRICE)
        return {"epsilon": NEXT_TO_NOTHING}

    def _no_rows(self, sql: str) -> pa.Schema | None:
        """Return the columns of a SELECT of rows, if the session wants no rows instead of a
        refusal; else None.
        """
        if self.settings["discreet.rows"] != "none":
            return None
        try:
            probe = self.curator.shape(_without_rows(sql), analyst=self.analyst, dialect=DIALECT)
        except DiscreetError:
            return None
        return probe.schema if probe.free else None

    def _with_margins(self, sql: str, answer: discreet.Answer) -> pa.Table:
        table = answer.table
        if self.settings["discreet.margins"] != "columns":
            return table
        shape = self.curator.shape(sql, analyst=self.analyst, dialect=DIALECT)
        for field in _margin_fields(table.schema, shape.measured):
            table = table.append_column(
                field, answer.margins.column(field.name.removesuffix(MARGIN))
            )
        return table

    def explain(self, sql: str, *, offset: int = 0, as_json: bool = False) -> Result:
        """Return sentences about what would happen. The first line has the cost in the form that
        Postgres gives it.
        """
        try:
            price: Mapping[str, Any] = self.settings.price() or self._free(sql)
            quote = self.curator.quote(sql, analyst=self.analyst, dialect=DIALECT, **price)
            text = self.curator.explain(sql, analyst=self.analyst, dialect=DIALECT, **price)
        except DiscreetError as error:
            raise fault_of(error, sql=sql, offset=offset) from None
        sentences = text.split("\n")
        cost = two_places(quote.cost.epsilon)
        lines = [f"cost=0.00..{cost} rows=0 width=0", *sentences]
        if as_json:
            plan = {
                "Node Type": "Discreet",
                "Startup Cost": 0.0,
                "Total Cost": float(cost),
                "Explanation": sentences,
            }
            lines = [json.dumps([{"Plan": plan}], ensure_ascii=False)]
        kind = pa.field("QUERY PLAN", pa.string(), metadata={b"oid": b"114"} if as_json else None)
        table = pa.table([pa.array(lines, pa.string())], schema=pa.schema([kind]))
        return Result(tag="EXPLAIN", table=table)

    def budget(self) -> str:
        """Return what is left, in words."""
        try:
            return str(self.curator.left(analyst=self.analyst))
        except DiscreetError as error:
            raise fault_of(error) from None


def _without_rows(sql: str) -> str:
    """Return a SELECT with LIMIT 0 instead of its own ORDER BY, LIMIT and OFFSET."""
    depth = 0
    for token in split(sql)[0].tokens:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.upper in ("ORDER", "LIMIT", "OFFSET", "FETCH"):
            return f"{sql[: token.start]} LIMIT 0"
    return f"{sql}\nLIMIT 0"


def two_places(value: Fraction) -> str:
    """Return an amount in decimals, rounded up: with two places, or more if it is small."""
    if not value:
        return "0.00"
    places = max(2, 3 - math.floor(math.log10(value)))
    scaled = math.ceil(value * 10**places)
    whole, part = divmod(scaled, 10**places)
    return f"{whole}.{part:0{places}}".rstrip("0").ljust(len(str(whole)) + 3, "0")


def _margin_fields(schema: pa.Schema, measured: Sequence[bool]) -> list[pa.Field]:
    pairs = zip(schema, measured, strict=True)
    return [pa.field(f"{field.name}{MARGIN}", pa.float64()) for field, has in pairs if has]


def _tell(answer: discreet.Answer, *, margins: bool) -> Notice:
    """Return a notice with the cost of an answer and what is left, and with its margins if they are
    wanted.
    """
    lines = notes(answer)
    if margins:
        columns = zip(answer.margins.column_names, answer.margins.columns, strict=True)
        told = [_margin_line(name, column.to_pylist()) for name, column in columns]
        lines += [line for line in told if line]
    return Notice(message=lines[0], detail="\n".join(lines[1:]))


def _margin_line(name: str, margins: Sequence[float | None]) -> str:
    known = [margin for margin in margins if margin is not None]
    if not known:
        return ""
    least = number(min(known), rounding=ROUND_CEILING)
    most = number(max(known), rounding=ROUND_CEILING)
    return f"{name} ± {most}" if least == most else f"{name} ± {least} to {most}"
