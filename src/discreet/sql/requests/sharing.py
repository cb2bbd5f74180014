"""Decide which requests share a statistic: those of the same value, those whose conditions exclude
each other, and the count of all rows beside either.

Nothing here depends on the order of the columns, so the same columns in another order measure the
same (S10).
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
Targets = dict[Target, list[tuple[int, Single | Moment]]]
SameNumber = Sequence[tuple[int, AggregateRequest]]  # requests that one number answers, by index
AllRowsByCondition = dict[Expression | None, list[tuple[int, AllRows]]]
Hosts = dict[Expression | None, Target]
MOST_IN_CLUSTER = 48  # the most numbers of one vector: the proof tries every pair of them
# The most counts that are added up, with the rest, to all rows. Four numbers together have twice the
# deviation of one: the same as if two numbers shared the ε.
MOST_ADDED = 3


def all_rows_of(requests: list[tuple[int, AggregateRequest]]) -> AllRowsByCondition:
    """Return the counts of all rows, by their conditions."""
    all_rows: AllRowsByCondition = {}
    for index, request in requests:
        if isinstance(request, AllRows):
            all_rows.setdefault(request.condition, []).append((index, request))
    return all_rows


def in_order(
    targets: Targets, all_rows: AllRowsByCondition, hosts: Hosts
) -> list[tuple[SameNumber, list[tuple[int, AllRows]] | None]]:
    """Return what is measured, in order.

    Each has the counts of rows that are measured with it, or None if it is one number.
    """
    rest = dict(all_rows)
    order: list[tuple[SameNumber, list[tuple[int, AllRows]] | None]] = []
    for target, requests in targets.items():
        condition = target[2]
        companions: list[tuple[int, AllRows]] = []
        if hosts.get(condition) == target:
            companions = rest.pop(condition, [])
        is_single = isinstance(requests[0][1], Single)
        alone = is_single or (not companions and _is_one_number(requests))
        order.append((requests, None if alone else companions))
    # COUNT(*) without a condition comes first
    conditions = sorted(rest, key=lambda condition: condition is not None)
    order += [(rest[condition], None) for condition in conditions]
    return order


def parts_of_all(targets: Targets, all_rows: AllRowsByCondition, hosts: Hosts) -> list[SameNumber]:
    """Return the counts that are measured together with COUNT(*) as its parts: they exclude each
    other, and COUNT(*) is their sum and that of one more part, the other rows.

    Of all such groups of counts that are small enough, it is the largest. It is empty if the
    question has no COUNT(*), or if a moment has parts anyway, so that COUNT(*) is one more part
    there.
    """
    host = hosts.get(None)
    if None not in all_rows or (host is not None and not _counts_some(targets[host])):
        return []
    sums = [requests for requests in targets.values() if _counts_some(requests)]
    counts: list[SameNumber] = []
    for condition, requests in all_rows.items():
        if condition is not None:
            counts.append(requests)
    clusters = clusters_of([*sums, *counts])
    small = [each for each in clusters if len(each) <= MOST_ADDED]
    best = max(small, key=len, default=[])
    if len(best) == 1 and host is not None:
        return []  # one sum of ones has its parts with COUNT(*) anyway
    return best


def _counts_some(requests: SameNumber) -> bool:
    """Return True if all requests are one SUM(CASE WHEN p THEN 1 ELSE 0 END), or one COUNT(CASE
    WHEN p THEN 1 END).
    """
    first = requests[0][1]
    if isinstance(first, Single) or not _is_one_number(requests) or first.condition is not None:
        return False
    return conditional(first).condition is not None and width_of(first) == 1


def clusters_of(numbers: Sequence[SameNumber]) -> list[list[SameNumber]]:
    """Group the numbers whose conditions exclude each other: a row adds to at most one number of a
    group.

    They are sorted first, so the same columns in another order measure the same (S10).
    """
    clusters: list[list[SameNumber]] = []
    for requests in sorted(numbers, key=_sort_text):
        one = conditional(requests[0][1])
        for cluster in clusters:
            others = [conditional(each[0][1]) for each in cluster]
            has_room = len(cluster) < MOST_IN_CLUSTER
            if has_room and all(_exclude_each_other(one, other) for other in others):
                cluster.append(requests)
                break
        else:
            clusters.append([requests])
    return clusters


def _sort_text(requests: SameNumber) -> str:
    """Return a text that does not depend on labels or on the order of columns."""
    first = conditional(requests[0][1])
    return repr(replace(first, label=""))


def _exclude_each_other(one: AggregateRequest, other: AggregateRequest) -> bool:
    """Return True if a row adds to at most one of two numbers, and as much to either."""
    if one.condition is None or other.condition is None or width_of(one) is None:
        return False
    return width_of(one) == width_of(other) and exclusive(one.condition, other.condition)


def conditional(request: AggregateRequest) -> AggregateRequest:
    """Return SUM(CASE WHEN p THEN x ELSE 0 END) as the sum of x over the rows where p holds, and
    COUNT(CASE WHEN p THEN 1 END) as their count; other requests as they are.
    """
    if not isinstance(request, Total | Count) or request.condition is not None:
        return request
    value = request.value.expression
    match value.value if isinstance(value, Careful) else value:
        case Case(branches=((condition, Constant()),), otherwise=Constant(value=None)) if (
            isinstance(request, Count)
        ):
            return AllRows(label=request.label, condition=condition)
        case Case(branches=((condition, inner),), otherwise=Constant(value=0 | None)) if isinstance(
            request, Total
        ):
            inner_value = replace(request.value, expression=inner)
            return replace(request, value=inner_value, condition=condition)
    return request


def width_of(request: AggregateRequest) -> int | None:
    """Return the most that a row adds to a count, or to a sum of values that are not negative; None
    for other requests.
    """
    if isinstance(request, AllRows | Count):
        return 1
    if isinstance(request, Total) and grid(request.value).lo >= 0:
        return grid(request.value).hi
    return None


def targets_of(requests: list[tuple[int, AggregateRequest]]) -> Targets:
    """Group the requests over the same value and condition, which share their sums. Requests for
    people or distinct values share nothing with them.
    """
    targets: Targets = {}
    for index, request in requests:
        if not isinstance(request, Single | Moment):
            continue
        # Numbers that differ only in their step are one sum. Codes of categories with different
        # labels are not, nor codes and numbers.
        domain = request.value.domain
        range_ = (domain.lo, domain.hi) if isinstance(domain, Number) else domain
        second = "distinct" if isinstance(request, Single) else range_
        target = (request.value.expression, second, request.condition)
        targets.setdefault(target, []).append((index, request))
    return targets


def hosts_of(targets: Targets) -> Hosts:
    """Choose, for each condition, the target with which COUNT(*) is measured: one that has several
    parts anyway, and as few parts as possible.

    The choice does not depend on the order of columns, so another order measures the same (S10).
    """

    def order(target: Target) -> tuple[bool, int, str]:
        requests = targets[target]
        degrees = [request.degree for _, request in requests if isinstance(request, Moment)]
        return _is_one_number(requests), max(degrees), repr(target)

    moments = [each for each, requests in targets.items() if isinstance(requests[0][1], Moment)]
    hosts: Hosts = {}
    for target in sorted(moments, key=order):
        condition = target[2]
        hosts.setdefault(condition, target)
    return hosts


def _is_one_number(requests: SameNumber) -> bool:
    """Return True if all requests are for the same count or sum."""
    first = requests[0][1]
    if not isinstance(first, Alone):
        return False
    return all(type(request) is type(first) for _, request in requests)
