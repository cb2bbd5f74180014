"""Place the columns of a description on their grids, and write their domains as the file holds
them.
"""

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

    The owner and other identifiers are left out: they point at people.
    """
    known = [
        c
        for c in table.columns.values()
        if not isinstance(c.domain, Identifier) and c.name != table.owner
    ]
    if columns is not None:
        for name in columns:
            if name not in {column.name for column in known}:
                raise UsageError(
                    f"{table.name} has no column {name} to describe; it has {', '.join(c.name for c in known)}."
                )
        known = [column for column in known if column.name in columns]
    if not known:
        raise UsageError(
            f"{table.name} declares no columns to describe. Declare some in the policy, with their domains."
        )
    able = [
        column.name
        for column in known
        if not isinstance(column.domain, Categories | Booleans | Texts)
    ]
    for name in intervals.quantiles:
        if name not in able:
            raise UsageError(
                f"{table.name}.{name} has no quantiles: numbers, dates and times have, {', '.join(able)}."
            )
        if table.columns[name].cells:
            raise UsageError(
                f"The policy says where {table.name}.{name} is cut: leave it out of the quantiles."
            )
    return tuple(
        Uncut(column=column)
        if column.name in intervals.quantiles
        else _axis(table.name, column, intervals)
        for column in known
    )


def _axis(table: str, column: Column, intervals: Intervals) -> Axis | Unlisted | Unsplit:
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
    return (Unsplit if intervals.split else Axis)(column=column, bins=intervals.bins)


def plain_domain(domain: Any) -> dict[str, Any]:
    """Return a domain as the description file holds it: the policy's own words."""
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
