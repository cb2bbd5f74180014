"""Refuse windows whose ties could be broken by where rows happen to lie (S4).

An engine puts rows that an order leaves tied into any order, and another row in the table may
change which. Only some windows can tell: ROW_NUMBER, NTILE, LAG, LEAD, FIRST_VALUE, LAST_VALUE and
frames of ROWS take rows by their place. With them a query is a function of one person's rows if

1. tied rows are alike in all that the query takes from them: each value is computed from the values
   that the window parts and orders by. To exchange such rows is to exchange equal ones; and
2. all windows by place in the query have one order, which an engine makes once. Two orders may
   break one tie in two ways, and which row is first by the one and second by the other is chance.

Or else the order has a column that numbers the rows of the query's source, so there are no ties.
"""

from __future__ import annotations

from collections.abc import Iterable

from discreet.algebra import (
    OWNER,
    Column,
    Exists,
    Expression,
    Fold,
    Order,
    Over,
    Select,
    Source,
    Stage,
    owner_of,
    parts_of,
    stages,
    walk,
)
from discreet.errors import Unproved

_BY_PLACE = frozenset({"row_number", "ntile", "lag", "lead", "first_value", "last_value"})
Sorting = tuple[tuple[Expression, ...], tuple[Order, ...]]  # what rows are parted and ordered by


def sortings(columns: Iterable[Expression]) -> set[Sorting]:
    """Return the orders in which windows take rows by their place."""
    windows = (part for each in columns for part in walk(each) if isinstance(part, Over))
    return {(each.partition, each.order) for each in windows if _takes_places(each)}


def require_no_ties(query: Select) -> None:
    """Refuse a query in which rows that are tied in a window's order can be told apart."""
    columns = [value for _, value in query.columns]
    found = sortings(columns)
    tied = [each for each in found if not _numbers_rows(each, query.source)]
    if tied and len(found) > 1:
        raise Unproved("two windows put equal rows in orders of their own")
    for partition, order in tied:
        decided = {*partition, *(each.value for each in order)}
        if not all(_is_decided(each, decided, stages(query.source)) for each in columns):
            raise Unproved("a window's order leaves rows tied that are not alike")


def _takes_places(window: Over) -> bool:
    frame = window.frame
    return window.function.name in _BY_PLACE or (frame is not None and frame.unit == "ROWS")


def _is_decided(value: Expression, decided: set[Expression], here: frozenset[str]) -> bool:
    """Return True if a value is computed from the row by values that are decided, and no others."""
    pending = [value]
    while pending:
        each = pending.pop()
        if each in decided:
            continue
        if isinstance(each, Column) and each.stage in here and each.name != OWNER:
            return False
        pending.extend(parts_of(each))
        if isinstance(each, Exists):  # its own rows are the person's, whichever row this is
            pending.extend(each.where)
    return True


def _numbers_rows(sorting: Sorting, source: Source) -> bool:
    """Return True if a row number of the source's own rows is in the order: no two rows tie."""
    if not isinstance(source, Stage) or not isinstance(source.query, Select):
        return False
    inner = source.query
    numbered = {
        name
        for name, value in inner.columns
        if isinstance(value, Over)
        and value.function == Fold("row_number", ())
        and value.owner == owner_of(inner.source)
        and not value.partition
    }
    by = (each.value for each in sorting[1])
    return any(
        isinstance(each, Column) and each.stage == source.stage and each.name in numbered
        for each in by
    )
