"""Refuse windows whose result could depend on where rows are stored (S4).

Rows that are equal in a window's ORDER BY are tied. An engine returns tied rows in any order, and
another person's row in the table may change that order. Only some windows show it: ROW_NUMBER,
NTILE, LAG, LEAD, FIRST_VALUE, LAST_VALUE and frames of ROWS take rows by their place. With such
windows a query is a function of one person's rows if

1. tied rows are equal in everything that the query takes from them: each of its values is computed
   from the values in PARTITION BY and ORDER BY. Then exchanging two tied rows changes nothing; and
2. all windows by place in the query have the same order, which an engine sorts by once. Two sorts
   could break one tie in two ways, so that chance decides which row is first in one and second in
   the other.

Or the order has a column that numbers the rows of the query's source: then there are no ties.
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
Sorting = tuple[tuple[Expression, ...], tuple[Order, ...]]  # PARTITION BY and ORDER BY


def sortings(columns: Iterable[Expression]) -> set[Sorting]:
    """Return the partitions and orders of all windows that take rows by their place."""
    result: set[Sorting] = set()
    for column in columns:
        for part in walk(column):
            if isinstance(part, Over) and _takes_places(part):
                result.add((part.partition, part.order))
    return result


def require_no_ties(query: Select) -> None:
    """Refuse a query whose result depends on the order of tied rows."""
    columns = [value for _, value in query.columns]
    orders = sortings(columns)
    with_ties = [each for each in orders if not _has_row_number(each, query.source)]
    if with_ties and len(orders) > 1:
        raise Unproved("two windows with different orders can break one tie in two ways")
    here = stages(query.source)
    for partition, order in with_ties:
        decisive = {*partition, *(place.value for place in order)}
        if not all(_depends_only_on(decisive, column, here) for column in columns):
            raise Unproved("a window's order leaves rows tied that differ in what is read")


def _takes_places(window: Over) -> bool:
    if window.function.name in _BY_PLACE:
        return True
    return window.frame is not None and window.frame.unit == "ROWS"


def _depends_only_on(decisive: set[Expression], value: Expression, here: frozenset[str]) -> bool:
    """Return True if these values, and no other columns of the row, decide a value."""
    pending = [value]
    while pending:
        each = pending.pop()
        if each in decisive:
            continue
        if isinstance(each, Column) and each.stage in here and each.name != OWNER:
            return False
        pending.extend(parts_of(each))
        if isinstance(each, Exists):  # its inner rows are the person's, the same for every row
            pending.extend(each.where)
    return True


def _has_row_number(sorting: Sorting, source: Source) -> bool:
    """Return True if a row number of the source's own rows is in the order: no two rows tie."""
    if not isinstance(source, Stage) or not isinstance(source.query, Select):
        return False
    inner = source.query
    owner = owner_of(inner.source)
    row_numbers = {name for name, value in inner.columns if _is_row_number(value, owner)}
    _, order = sorting
    for place in order:
        column = place.value
        if not isinstance(column, Column) or column.stage != source.stage:
            continue
        if column.name in row_numbers:
            return True
    return False


def _is_row_number(value: Expression, owner: Column) -> bool:
    """Return True if a value numbers all rows of each person."""
    if not isinstance(value, Over) or value.partition:
        return False
    return value.function == Fold("row_number", ()) and value.owner == owner
