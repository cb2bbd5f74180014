"""Find which requests share a statistic: those over the same value, those whose conditions exclude
each other, and the count of all rows beside either.

Nothing here depends on the order of columns, so that another order measures the same (S10).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from discreet.algebra import Careful, Case, Constant, Expression
from discreet.algebra.exclusive import exclusive
from discreet.sql.aggregates.count import AllRows, Count
from discreet.sql.aggregates.sum import Total
from discreet.sql.requests.request import AggregateRequest, Alone, Moment, Single
from discreet.sql.values.numbers import grid
from discreet.sql.values.value import Number

# a value, its range, and a condition on the rows
Target = tuple[Expression, object, Expression | None]
Wanted = Sequence[tuple[int, AggregateRequest]]  # requests for the same number, with their numbers
AllRowsByCondition = dict[Expression | None, list[tuple[int, AllRows]]]
MOST_CLUSTERED = 48  # numbers that are taken together: the proof tries every pair of them
# Numbers that are added up, with the rest, to that of all rows: the sum of so many and one has at
# most twice the deviation of each, which is what two numbers have that share ε.
MOST_ADDED = 3


def all_rows_of(numbered: list[tuple[int, AggregateRequest]]) -> AllRowsByCondition:
    """Return the counts of all rows, by their conditions."""
    plain: AllRowsByCondition = {}
    for index, request in numbered:
        if isinstance(request, AllRows):
            plain.setdefault(request.condition, []).append((index, request))
    return plain


def in_order(
    targets: dict[Target, list[tuple[int, Single | Moment]]],
    plain: AllRowsByCondition,
    hosts: dict[Expression | None, Target],
) -> list[tuple[Wanted, list[tuple[int, AllRows]] | None]]:
    """Return what is measured, in order, each with the counts of rows that stand beside it; None for
    what is one number.
    """
    rest = dict(plain)
    order: list[tuple[Wanted, list[tuple[int, AllRows]] | None]] = []
    for target, wanted in targets.items():
        companions = rest.pop(target[2], []) if hosts.get(target[2]) == target else []
        alone = isinstance(wanted[0][1], Single) or (not companions and _is_one_number(wanted))
        order.append((wanted, None if alone else companions))
    # all rows first
    order += [(rest[each], None) for each in sorted(rest, key=lambda each: each is not None)]
    return order


def parts_of_all(
    targets: dict[Target, list[tuple[int, Single | Moment]]],
    plain: AllRowsByCondition,
    hosts: dict[Expression | None, Target],
) -> list[Wanted]:
    """Return the counts that exclude each other beside which COUNT(*) is the sum of all parts: the
    most of those that are few enough. None where it stands beside a moment that has parts anyway,
    or beside one sum of ones, which has them then.
    """
    host = hosts.get(None)
    if None not in plain or (host is not None and not _counts_some(targets[host])):
        return []
    sums = [wanted for wanted in targets.values() if _counts_some(wanted)]
    counts: list[Wanted] = [own for condition, own in plain.items() if condition is not None]
    every = clusters_of([*sums, *counts])
    few = [each for each in every if len(each) <= MOST_ADDED]
    best = max(few, key=len, default=[])
    return [] if len(best) == 1 and host is not None else best


def _counts_some(wanted: Wanted) -> bool:
    """Return True if all are one SUM(CASE WHEN p THEN 1 ELSE 0 END), or COUNT(CASE WHEN p THEN 1
    END).
    """
    first = wanted[0][1]
    if isinstance(first, Single) or not _is_one_number(wanted) or first.condition is not None:
        return False
    return conditional(first).condition is not None and width_of(first) == 1


def clusters_of(single: Sequence[Wanted]) -> list[list[Wanted]]:
    """Group the numbers whose conditions exclude each other: a row adds to at most one of a group.

    They are taken in an order of their own, so that another order of columns measures the same
    (S10).
    """
    clusters: list[list[Wanted]] = []
    for wanted in sorted(single, key=lambda each: repr(replace(conditional(each[0][1]), label=""))):
        one = conditional(wanted[0][1])
        for cluster in clusters:
            others = [conditional(each[0][1]) for each in cluster]
            if len(cluster) < MOST_CLUSTERED and all(_apart(one, other) for other in others):
                cluster.append(wanted)
                break
        else:
            clusters.append([wanted])
    return clusters


def _apart(one: AggregateRequest, other: AggregateRequest) -> bool:
    """Return True if a row adds to one of two numbers at most, and to either as much."""
    if one.condition is None or other.condition is None or width_of(one) is None:
        return False
    return width_of(one) == width_of(other) and exclusive(one.condition, other.condition)


def conditional(request: AggregateRequest) -> AggregateRequest:
    """Read SUM(CASE WHEN p THEN x ELSE 0 END) and COUNT(CASE WHEN p THEN 1 END) as aggregates over
    the rows where p holds.
    """
    if not isinstance(request, Total | Count) or request.condition is not None:
        return request
    value = request.value.expression
    match value.value if isinstance(value, Careful) else value:
        case Case(branches=((condition, Constant()),), otherwise=Constant(value=None)) if (
            isinstance(request, Count)
        ):
            return AllRows(label=request.label, condition=condition)
        case Case(branches=((condition, chosen),), otherwise=Constant(value=0 | None)) if (
            isinstance(request, Total)
        ):
            return replace(
                request, value=replace(request.value, expression=chosen), condition=condition
            )
    return request


def width_of(request: AggregateRequest) -> int | None:
    """Return the most that a row adds to a count, or to a sum of what is not negative; None of
    other numbers.
    """
    if isinstance(request, AllRows | Count):
        return 1
    if isinstance(request, Total) and grid(request.value).lo >= 0:
        return grid(request.value).hi
    return None


def targets_of(
    numbered: list[tuple[int, AggregateRequest]],
) -> dict[Target, list[tuple[int, Single | Moment]]]:
    """Group the requests over the same value and condition, which share their sums; people and
    distinct values share nothing.
    """
    targets: dict[Target, list[tuple[int, Single | Moment]]] = {}
    for index, request in numbered:
        if isinstance(request, Single | Moment):
            # Numbers that differ in their step only are one sum; codes of other labels, or of the
            # same as numbers, not.
            domain = request.value.domain
            range_ = (domain.lo, domain.hi) if isinstance(domain, Number) else domain
            told = "distinct" if isinstance(request, Single) else range_
            targets.setdefault((request.value.expression, told, request.condition), []).append(
                (index, request)
            )
    return targets


def hosts_of(
    targets: dict[Target, list[tuple[int, Single | Moment]]],
) -> dict[Expression | None, Target]:
    """Choose, for each condition, the target beside which rows are counted: one that has parts
    anyway, and as few as can be.

    It does not depend on the order of columns, so that another order measures the same (S10).
    """

    def order(target: Target) -> tuple[bool, int, str]:
        degrees = [request.degree for _, request in targets[target] if isinstance(request, Moment)]
        return _is_one_number(targets[target]), max(degrees), repr(target)

    moments = (target for target, wanted in targets.items() if not isinstance(wanted[0][1], Single))
    found: dict[Expression | None, Target] = {}
    for target in sorted(moments, key=order):
        found.setdefault(target[2], target)
    return found


def _is_one_number(wanted: Wanted) -> bool:
    """Return True if all are the same count or sum."""
    first = wanted[0][1]
    return isinstance(first, Alone) and all(type(request) is type(first) for _, request in wanted)
