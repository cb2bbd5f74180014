"""Choose the grids of a description's columns, and write and read domains in its file."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from discreet.errors import UsageError
from discreet.policy.domain import (
    Booleans,
    Categories,
    Column,
    Dates,
    Decimals,
    Identifier,
    Integers,
    Texts,
    Timestamps,
)
from discreet.policy.policy import Table
from discreet.synthetic.columns.axis import (
    MOST_VALUES,
    USUAL,
    Axis,
    Intervals,
    Uncut,
    Unlisted,
    Unsplit,
)

Grid = Axis | Unlisted | Uncut | Unsplit


def axes_of(
    table: Table, *, columns: tuple[str, ...] | None, intervals: Intervals = USUAL
) -> tuple[Grid, ...]:
    """Return the columns of a private table that a description covers.

    It leaves out the owner and other identifiers: they point at people.
    """
    own = []
    for column in table.columns.values():
        if not isinstance(column.domain, Identifier) and column.name != table.owner:
            own.append(column)
    if columns is not None:
        names = [column.name for column in own]
        for name in columns:
            if name not in names:
                raise UsageError(
                    f"{table.name} has no column {name} to describe; it has {', '.join(names)}."
                )
        own = [column for column in own if column.name in columns]
    if not own:
        raise UsageError(
            f"{table.name} declares no columns to describe. Declare some in the policy, with their domains."
        )
    unordered = (Categories, Booleans, Texts)
    able = [column.name for column in own if not isinstance(column.domain, unordered)]
    for name in intervals.quantiles:
        if name not in able:
            raise UsageError(
                f"{table.name}.{name} has no quantiles: numbers, dates and times have, {', '.join(able)}."
            )
        if table.columns[name].cells:
            raise UsageError(
                f"The policy says where {table.name}.{name} is cut: leave it out of the quantiles."
            )
    return tuple(_grid(table.name, column, intervals) for column in own)


def _grid(table: str, column: Column, intervals: Intervals) -> Grid:
    """Return the grid of a column, or what it is before its grid is found."""
    if column.name in intervals.quantiles:
        return Uncut(column=column)
    domain = column.domain
    if isinstance(domain, Texts):
        return Unlisted(column=column)
    size = domain.size
    assert size is not None
    if isinstance(domain, Categories) and size > MOST_VALUES:
        raise UsageError(
            f"{table}.{column.name} lists {size} values, and a model holds at most {MOST_VALUES} of one column. "
            "Declare coarser values, or leave the column out with --columns."
        )
    if column.cells:
        return Axis(column=column, bins=len(column.cells) - 1, cuts=column.cells)
    if isinstance(domain, Categories | Booleans) or size <= intervals.bins:
        return Axis(column=column, bins=size)
    if intervals.split:
        return Unsplit(column=column, bins=intervals.bins)
    return Axis(column=column, bins=intervals.bins)


def plain_domain(domain: Any) -> dict[str, Any]:
    """Return a domain as the description's file has it, in the policy's own words."""
    match domain:
        case Integers(lo=lo, hi=hi):
            return {"integer": [int(lo), int(hi)]}
        case Decimals(lo=lo, hi=hi, step=step):
            return {"decimal": [str(lo), str(hi)], "step": str(step)}
        case Categories(values=values):
            return {"values": list(values)}
        case Booleans():
            return {"boolean": True}
        case Dates(lo=lo, hi=hi):
            return {"date": [lo.isoformat(), hi.isoformat()]}
        case Timestamps(lo=lo, hi=hi, step=step):
            return {"timestamp": [lo.isoformat(), hi.isoformat()], "step": str(step)}
    raise AssertionError(domain)


def domain_from(plain: dict[str, Any]) -> Any:
    """Read a domain that `plain_domain` wrote; raise ValueError, KeyError or TypeError on anything
    else.
    """
    from fractions import Fraction

    match plain:
        case {"integer": [int() as lo, int() as hi], **rest} if not rest:
            return Integers(lo=lo, hi=hi)
        case {"decimal": [str() as lo, str() as hi], "step": str() as step, **rest} if not rest:
            return Decimals(lo=Fraction(lo), hi=Fraction(hi), step=Fraction(step))
        case {"values": [*values], **rest} if not rest and all(
            type(v) in (str, int) for v in values
        ):
            return Categories(values=tuple(values))
        case {"boolean": True, **rest} if not rest:
            return Booleans()
        case {"date": [str() as lo, str() as hi], **rest} if not rest:
            return Dates(lo=date.fromisoformat(lo), hi=date.fromisoformat(hi))
        case {"timestamp": [str() as lo, str() as hi], "step": str() as step, **rest} if not rest:
            return Timestamps(
                lo=datetime.fromisoformat(lo), hi=datetime.fromisoformat(hi), step=Fraction(step)
            )
    raise ValueError("not a domain")
