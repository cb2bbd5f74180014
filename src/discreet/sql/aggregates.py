"""The aggregates: which exact sums each one needs, and how they are measured together.

`REQUESTS` reads an aggregate's syntax; `assemble` turns all requests of one aggregation into few measurements:

- COUNT(*), COUNT(x), COUNT(DISTINCT owner) and SUM(x), each alone, are one number.
- AVG(x), or SUM(x) together with COUNT(x), are two: A, the sum of x - lo, and B, the sum of hi - x. In every row they
  make hi - lo, so noise on both costs what noise on one does; then count = (A + B) / (hi - lo), sum = lo count + A.
- VARIANCE(x) and STDDEV(x) are three: the sums of (W - v)², 2 v (W - v) and v² with v = x - lo, W = hi - lo, which make
  W² in every row. Count, sum and mean of the same x come out of them too.
- COUNT(*) beside any of these over the same rows is a further part: rows without x count as a whole width of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from sqlglot import exp

from discreet.budget import Neighbors
from discreet.sql.estimates import Estimate, Linear, Mean, Spread
from discreet.sql.expressions import Scope, as_flag, as_number, check_arguments, translate
from discreet.sql.numbers import check_size, grid
from discreet.sql.parse import reject, show
from discreet.sql.plan import Measurement
from discreet.sql.sensitivity import of_parts, of_persons, of_sum
from discreet.sql.values import Missing, Opaque, Value, integer_sql

Kind = Literal["rows", "count", "persons", "sum", "mean", "variance"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One aggregate that was asked for, over the rows that satisfy `condition`."""

    kind: Kind
    label: str
    value: Value | None = None
    condition: str | None = None
    sample: bool = True
    root: bool = False


def is_aggregate(node: exp.Expression) -> bool:
    return isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup) or type(node) in REQUESTS


def read(node: exp.Expression, scope: Scope) -> Request:
    """The request that an aggregate's syntax makes, or `Rejected`."""
    condition = None
    inner = node
    if isinstance(node, exp.Filter):
        check_arguments(node)
        condition = as_flag(translate(node.expression.this, scope), node).sql
        inner = node.this
    reader = REQUESTS.get(type(inner))
    if reader is None:
        raise reject(node, f"{show(inner)} is not an aggregate that can be answered.", f"Aggregates are {NAMES}.")
    if inner.find(exp.AggFunc) is not inner and any(part is not inner for part in inner.find_all(exp.AggFunc)):
        raise reject(node, f"{show(inner)} is an aggregate of an aggregate.", "Aggregate in a subquery first.")
    return reader(inner, scope, show(node), condition)


def _argument(node: exp.Expression, scope: Scope) -> Value:
    if isinstance(node.this, exp.Distinct):
        raise reject(
            node, f"{show(node)}: DISTINCT is answered in COUNT only.", f"Write {show(node).replace('DISTINCT ', '')}."
        )
    if isinstance(node.this, exp.Order):
        raise reject(
            node, f"{show(node)}: the order of rows has no meaning here.", "Leave ORDER BY out of the aggregate."
        )
    return translate(node.this, scope)


def _count(node: exp.Count, scope: Scope, label: str, condition: str | None) -> Request:
    if node.expressions:
        raise reject(node, f"{show(node)} counts several columns at once.", "Count one.")
    argument = node.this
    if argument is None or isinstance(argument, exp.Star):
        return Request(kind="rows", label=label, condition=condition)
    if isinstance(argument, exp.Distinct):
        return _count_distinct(argument, node, scope, label, condition)
    value = _argument(node, scope)
    if isinstance(value.domain, Missing):
        raise reject(node, "COUNT(NULL) is zero for everybody.", "Write COUNT(*).")
    if value.constant:
        return Request(kind="rows", label=label, condition=condition)
    return Request(kind="count", label=label, value=value, condition=condition)


def _count_distinct(
    distinct: exp.Distinct, node: exp.Expression, scope: Scope, label: str, condition: str | None
) -> Request:
    values = [translate(part, scope) for part in distinct.expressions]
    if len(values) == 1 and isinstance(values[0].domain, Opaque) and values[0].domain.owner:
        return Request(kind="persons", label=label, value=values[0], condition=condition)
    raise reject(
        node,
        f"{show(node)} is answered for the owner column only.",
        "Count people: COUNT(DISTINCT owner), or group by the column.",
    )


def _count_if(node: exp.CountIf, scope: Scope, label: str, condition: str | None) -> Request:
    flag = as_flag(translate(node.this, scope), node).sql
    return Request(kind="rows", label=label, condition=flag if condition is None else f"({flag} AND {condition})")


def _number(node: exp.Expression, scope: Scope) -> Value:
    return as_number(_argument(node, scope), node)


def _sum(node: exp.Sum, scope: Scope, label: str, condition: str | None) -> Request:
    return Request(kind="sum", label=label, value=_number(node, scope), condition=condition)


def _mean(node: exp.Avg, scope: Scope, label: str, condition: str | None) -> Request:
    return Request(kind="mean", label=label, value=_number(node, scope), condition=condition)


def _variance(*, sample: bool, root: bool) -> Reader:
    def apply(node: exp.Expression, scope: Scope, label: str, condition: str | None) -> Request:
        return Request(
            kind="variance", label=label, value=_number(node, scope), condition=condition, sample=sample, root=root
        )

    return apply


Reader = Callable[[exp.Expression, Scope, str, str | None], Request]

REQUESTS: dict[type[exp.Expression], Reader] = {
    exp.Count: _count,
    exp.CountIf: _count_if,
    exp.Sum: _sum,
    exp.Avg: _mean,
    exp.Variance: _variance(sample=True, root=False),
    exp.VariancePop: _variance(sample=False, root=False),
    exp.Stddev: _variance(sample=True, root=True),
    exp.StddevSamp: _variance(sample=True, root=True),
    exp.StddevPop: _variance(sample=False, root=True),
}
NAMES = "COUNT, COUNT(DISTINCT owner), SUM, AVG, VARIANCE and STDDEV"


# --- assembly -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Sums:
    """The exact sums that a block fetches, each once."""

    sql: list[str] = field(default_factory=list)

    def index(self, sql: str) -> int:
        if sql not in self.sql:
            self.sql.append(sql)
        return self.sql.index(sql)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A measurement before all sums are known: forms as {index of sum: factor}."""

    labels: list[str]
    forms: list[dict[int, int]]
    width: int | None  # None: a plain sum or persons, with its own sensitivity
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    sums: tuple[str, ...]
    measurements: tuple[Measurement, ...]
    estimates: tuple[Estimate, ...]  # one per request, in order


def assemble(
    requests: list[Request], *, rows: int, groups: int, neighbors: Neighbors, node: exp.Expression
) -> Assembly:
    """Measurements that serve all requests at the least noise (see the module's text), and each request's estimate."""
    sums, parts, estimates = _Sums(), [], dict[int, Estimate]()
    plain = {request.condition for request in requests if request.kind == "rows"}
    for target, wanted in _targets(requests).items():
        first = requests[wanted[0]]
        kinds = {requests[index].kind for index in wanted}
        if first.kind == "persons" or (kinds in ({"count"}, {"sum"}) and target[1] not in plain):
            parts.append(_single(first, sums, [requests[index].label for index in wanted], node))
            step = grid(first.value).step if first.value is not None and first.kind == "sum" else Fraction(1)
            estimates.update(
                {index: Linear(measurement=len(parts) - 1, factors=(Fraction(1),), step=step) for index in wanted}
            )
            continue
        degree = 2 if "variance" in kinds else 0 if kinds == {"count"} else 1
        condition = target[1]
        with_rows = condition in plain
        plain.discard(condition)
        parts.append(_parts_of(first, degree, sums, with_rows, node))
        companions = [
            index
            for index, request in enumerate(requests)
            if with_rows and request.kind == "rows" and request.condition == condition
        ]
        for index in (*wanted, *companions):
            parts[-1].labels.append(requests[index].label)
            estimates[index] = _estimate(requests[index], first.value, degree, with_rows, len(parts) - 1)
    for condition in sorted(plain, key=str):
        wanted = [
            index for index, request in enumerate(requests) if request.kind == "rows" and request.condition == condition
        ]
        parts.append(_single(requests[wanted[0]], sums, [requests[index].label for index in wanted], node))
        estimates.update(
            {index: Linear(measurement=len(parts) - 1, factors=(Fraction(1),), step=Fraction(1)) for index in wanted}
        )
    measurements = tuple(_measurement(part, len(sums.sql), rows, groups, neighbors) for part in parts)
    return Assembly(
        sums=tuple(sums.sql),
        measurements=measurements,
        estimates=tuple(estimates[index] for index in range(len(requests))),
    )


def _targets(requests: list[Request]) -> dict[tuple[str, str | None], list[int]]:
    """Requests over the same value and condition, which share their sums; persons stand by themselves."""
    targets: dict[tuple[str, str | None], list[int]] = {}
    for index, request in enumerate(requests):
        if request.value is not None:
            name = f"persons {request.value.sql}" if request.kind == "persons" else request.value.sql
            targets.setdefault((name, request.condition), []).append(index)
    return targets


def _filtered(sql: str, condition: str | None) -> str:
    return sql if condition is None else f"{sql} FILTER (WHERE {condition})"


def _single(request: Request, sums: _Sums, labels: list[str], node: exp.Expression) -> _Part:
    match request.kind:
        case "rows":
            sql = "count(*)"
        case "count":
            sql = f"count({request.value.sql})" if request.value else ""
        case "persons":
            sql = f"count(DISTINCT {request.value.sql})" if request.value else ""
        case _:
            sql = _total(request.value, 1, node)
    form = {sums.index(_filtered(sql, request.condition)): 1}
    return _Part(labels=labels, forms=[form], width=None if request.kind in ("sum", "persons") else 1, request=request)


def _total(value: Value | None, power: int, node: exp.Expression) -> str:
    """The exact sum of a number or of its square; the engine adds in 128 bits, which cannot overflow below 2^36 rows."""
    assert value is not None
    domain = grid(value)
    check_size(domain.lo, domain.largest**power, node)
    wide = integer_sql(value.sql, domain.largest**power)
    return f"sum({value.sql})" if power == 1 else f"sum({wide} * {wide})"


def _parts_of(request: Request, degree: int, sums: _Sums, with_rows: bool, node: exp.Expression) -> _Part:
    """Parts of a constant width: see the module's text. Forms are written in the sums of 1, x and x²."""
    value = request.value
    assert value is not None
    lo, width = _range(value) if degree else (0, 1)
    condition = request.condition
    one = sums.index(_filtered(f"count({value.sql})", condition))
    x = sums.index(_filtered(_total(value, 1, node), condition)) if degree else one
    if degree == 0:
        forms = [{one: 1}]
    elif degree == 1:
        forms = [{x: 1, one: -lo}, {x: -1, one: lo + width}]
    else:
        square = sums.index(_filtered(_total(value, 2, node), condition))
        v = {x: 1, one: -lo}
        v2 = {square: 1, x: -2 * lo, one: lo * lo}
        forms = [
            _combine((width * width, {one: 1}), (-2 * width, v), (1, v2)),
            _combine((2 * width, v), (-2, v2)),
            v2,
        ]
    if with_rows:
        forms.append({sums.index(_filtered("count(*)", condition)): width**degree, one: -(width**degree)})
    return _Part(labels=[], forms=forms, width=width**degree, request=request)


def _range(value: Value) -> tuple[int, int]:
    domain = grid(value)
    return domain.lo, max(domain.hi - domain.lo, 1)


def _combine(*terms: tuple[int, dict[int, int]]) -> dict[int, int]:
    total: dict[int, int] = {}
    for factor, form in terms:
        for index, value in form.items():
            total[index] = total.get(index, 0) + factor * value
    return total


def _estimate(request: Request, value: Value | None, degree: int, with_rows: bool, measurement: int) -> Estimate:
    assert value is not None
    (lo, width), step = (_range(value), grid(value).step) if degree else ((0, 1), Fraction(1))
    unit = Fraction(1, width**degree)
    rest = (Fraction(0),) if with_rows else ()
    counts = (unit,) * (degree + 1)
    match request.kind:
        case "rows":
            return Linear(measurement=measurement, factors=(*counts, unit), step=Fraction(1))
        case "count":
            return Linear(measurement=measurement, factors=(*counts, *rest), step=Fraction(1))
        case "sum":
            # x = lo + W * (weighted place in the range): the weights of the parts are 0, 1 or 0, 1/2, 1.
            factors = tuple(unit * (lo + Fraction(place * width, degree)) for place in range(degree + 1))
            ordered = factors[::-1] if degree == 1 else factors  # with two parts, the first is the one of x - lo
            return Linear(measurement=measurement, factors=(*ordered, *rest), step=step)
        case "mean":
            return Mean(measurement=measurement, lo=lo, width=width, step=step, degree=degree)
    return Spread(measurement=measurement, lo=lo, width=width, step=step, sample=request.sample, root=request.root)


def _measurement(part: _Part, sums: int, rows: int, groups: int, neighbors: Neighbors) -> Measurement:
    forms = tuple(tuple(form.get(index, 0) for index in range(sums)) for form in part.forms)
    request = part.request
    if request.kind == "persons":
        sensitivity = of_persons(rows=rows, groups=groups, neighbors=neighbors)
    elif part.width is None:
        domain = grid(request.value) if request.value else None
        assert domain is not None
        sensitivity = of_sum(rows=rows, lo=domain.lo, hi=domain.hi, groups=groups, neighbors=neighbors)
    else:
        sensitivity = of_parts(rows=rows, width=part.width, parts=len(forms), groups=groups, neighbors=neighbors)
    return Measurement(name=", ".join(dict.fromkeys(part.labels)), forms=forms, sensitivity=sensitivity)
