"""The aggregates: which exact sums each one needs, and how they are measured together.

`requests` reads an aggregate's syntax; `assemble` turns all requests of one aggregation into few measurements:

- COUNT(*), COUNT(x), COUNT(DISTINCT owner) and SUM(x), each alone, are one number.
- AVG(x), or SUM(x) together with COUNT(x), are two: A, the sum of x - lo, and B, the sum of hi - x. In every row they
  make hi - lo, so noise on both costs what noise on one does; then count = (A + B) / (hi - lo), sum = lo count + A.
- VARIANCE(x) and STDDEV(x) are three: the sums of (W - v)², 2 v (W - v) and v² with v = x - lo, W = hi - lo, which make
  W² in every row. Count, sum and mean of the same x come out of them too.
- COUNT(*) beside any of these over the same rows is a further part: rows without x count as a whole width of their own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sqlglot import exp

from discreet.algebra import Distinct, Expression, Factor, Persons, Reading, Sum
from discreet.budget import Neighbors
from discreet.domain import MOST_PEOPLE
from discreet.sql.estimates import Estimate, Linear, Mean, Spread, Together
from discreet.sql.numbers import check_size, grid
from discreet.sql.parse import reject, show
from discreet.sql.picks import Pick, Picked
from discreet.sql.plan import Measurement, key_position
from discreet.sql.requests import Request
from discreet.sql.sensitivity import of_distinct, of_parts, of_persons, of_sum
from discreet.sql.unify import flag_as_number
from discreet.sql.values import Coded, Day, Flag, Moment, Number, Value, careful, widened

Target = tuple[Expression, object, Expression | None]  # a value, its range, and a condition on the rows
UNBOUNDED = 2**31  # groups, where their number is not public


@dataclass(slots=True)
class _Readings:
    """The exact numbers that a block fetches, each once."""

    listed: list[Reading] = field(default_factory=list)

    def index(self, reading: Reading) -> int:
        if reading not in self.listed:
            self.listed.append(reading)
        return self.listed.index(reading)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A measurement before all sums are known: forms as {index of sum: factor}."""

    labels: dict[str, Fraction]  # each aggregate as it was written, and what one step of the grid is in its own units
    forms: list[dict[int, int]]
    width: int | None  # None: a plain sum or persons, with its own sensitivity
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    readings: tuple[Reading, ...]
    measurements: tuple[Measurement, ...]
    picks: tuple[Pick, ...]
    estimates: tuple[Estimate | Picked, ...]  # one per request, in order


def assemble(
    requests: list[Request], *, rows: Rows, touched: int, groups: int, neighbors: Neighbors, node: exp.Expression
) -> Assembly:
    """Measurements that serve all requests at the least noise (see the module's text), and each request's estimate."""
    sums, parts, estimates = _Readings(), list[_Part](), dict[int, Estimate | Picked]()
    picks: list[Pick] = []
    for index, request in enumerate(requests):
        if request.kind in ("quantile", "mode"):
            estimates[index] = Picked(pick=len(picks))
            picks.append(_pick(request, rows=rows.most, groups=groups, neighbors=neighbors))
            if request.kind == "mode" and picks[-1].fine:
                raise reject(
                    node, f"{request.label} has too many values for {groups} groups.", "Group by fewer columns."
                )
        elif request.kind == "pair":
            part, estimates[index] = _together(request, sums, len(parts), rows, node)
            parts.append(part)
    plain = dict.fromkeys(request.condition for request in requests if request.kind == "rows")
    for target, wanted in _targets(requests).items():
        first = requests[wanted[0]]
        kinds = {requests[index].kind for index in wanted}
        if first.kind in ("persons", "distinct") or (kinds in ({"count"}, {"sum"}) and target[2] not in plain):
            labels = {requests[index].label: _unit(requests[index], int(first.kind == "sum")) for index in wanted}
            parts.append(_single(first, sums, labels, rows, node))
            for index in wanted:
                step = labels[requests[index].label]
                estimates[index] = Linear(measurement=len(parts) - 1, factors=(Fraction(1),), step=step)
            continue
        degree = 2 if "variance" in kinds else 0 if kinds == {"count"} else 1
        condition = target[2]
        with_rows = condition in plain
        plain.pop(condition, None)
        parts.append(_parts_of(first, degree, sums, with_rows, rows, node))
        companions = [
            index
            for index, request in enumerate(requests)
            if with_rows and request.kind == "rows" and request.condition == condition
        ]
        for index in (*wanted, *companions):
            request, value = requests[index], requests[index].value or first.value
            parts[-1].labels[request.label] = _unit(request if request.value else first, degree)
            estimates[index] = _estimate(request, value, degree, with_rows, len(parts) - 1)
    for condition in sorted(plain, key=lambda each: each is not None):  # all rows first
        wanted = [
            index for index, request in enumerate(requests) if request.kind == "rows" and request.condition == condition
        ]
        labels = {requests[index].label: Fraction(1) for index in wanted}
        parts.append(_single(requests[wanted[0]], sums, labels, rows, node))
        estimates.update(
            {index: Linear(measurement=len(parts) - 1, factors=(Fraction(1),), step=Fraction(1)) for index in wanted}
        )
    measurements = tuple(_measurement(part, len(sums.listed), rows.most, touched, groups, neighbors) for part in parts)
    return Assembly(
        readings=tuple(sums.listed),
        measurements=measurements,
        picks=tuple(picks),
        estimates=tuple(estimates[index] for index in range(len(requests))),
    )


def people_first(assembly: Assembly, requests: list[Request], *, rows: int) -> tuple[Assembly, bool]:
    """The measurement that counts people, first, if there is one: a threshold on it needs no number of its own (S5)."""
    for request, estimate in zip(requests, assembly.estimates, strict=True):
        counts = request.kind == "persons" or (request.kind == "rows" and rows == 1)
        if counts and request.condition is None and isinstance(estimate, Linear):
            first = estimate.measurement
            if len(assembly.measurements[first].forms) == 1:
                others = [index for index in range(len(assembly.measurements)) if index != first]
                order = [first, *others]
                return _reordered(assembly, order), True
    return assembly, False


def _reordered(assembly: Assembly, order: list[int]) -> Assembly:
    estimates = tuple(
        each if isinstance(each, Picked) else replace(each, measurement=order.index(each.measurement))  # type: ignore[type-var]
        for each in assembly.estimates
    )
    measurements = tuple(assembly.measurements[index] for index in order)
    return replace(assembly, measurements=measurements, estimates=estimates)


def _targets(requests: list[Request]) -> dict[Target, list[int]]:
    """Requests over the same value and condition, which share their sums; persons stand by themselves."""
    targets: dict[Target, list[int]] = {}
    for index, request in enumerate(requests):
        if request.value is not None and request.kind not in ("quantile", "mode", "pair"):
            alone = request.kind in ("persons", "distinct")
            # Numbers that differ in their step only are one sum; codes of other labels, or of the same as numbers, not.
            domain = request.value.domain
            range_ = (domain.lo, domain.hi) if isinstance(domain, Number) else domain
            told = "distinct" if alone else range_
            targets.setdefault((request.value.expression, told, request.condition), []).append(index)
    return targets


def _pick(request: Request, *, rows: int, groups: int, neighbors: Neighbors) -> Pick:
    value = request.value
    assert value is not None
    assert isinstance(value.domain, Number | Coded | Flag | Day | Moment)
    return Pick(
        name=request.label,
        kind="mode" if request.kind == "mode" else "quantile",
        position=key_position(value.expression, value.domain, nullable=False),
        condition=request.condition,
        domain=value.domain,
        quantiles=request.quantiles,
        listed=request.listed,
        rows=rows,
        groups=groups,
        neighbors=neighbors,
        unknown=groups >= UNBOUNDED,
    )


def _unit(request: Request, degree: int) -> Fraction:
    """What one of the integers that are measured is in the column's own units: its step, squared for a variance."""
    return grid(request.value).step ** degree if request.value is not None and degree else Fraction(1)


def _single(request: Request, sums: _Readings, labels: dict[str, Fraction], rows: Rows, node: exp.Expression) -> _Part:
    value, where = request.value, request.condition
    reading: Reading = Sum(where=where)
    match request.kind:
        case "persons":
            reading = Persons(where)
        case "distinct":
            reading = _distinct(value, where)
        case "count":
            assert value is not None
            reading = Sum((Factor(value.expression, 0, 0, 0, False),), where)
        case "sum":
            reading = rows.total(value, 1, where, node)
    form = {sums.index(reading): 1}
    return _Part(labels=labels, forms=[form], width=None if request.kind in ("sum", "persons") else 1, request=request)


def _distinct(value: Value | None, where: Expression | None) -> Distinct:
    """How many distinct values there are: of numbers and categories, at most as many as are public."""
    assert value is not None
    match value.domain:
        case Number(lo=lo, hi=hi):
            return Distinct((value.expression,), (lo, hi), where)
        case Coded(values=values):
            return Distinct((value.expression,), (0, len(values) - 1), where)
        case Flag():
            return Distinct((flag_as_number(value.expression),), (0, 1), where)
    return Distinct((value.expression,), None, where)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The rows that are aggregated: how many one person has, and which expressions a snapshot holds to their range."""

    most: int
    held: Callable[[Expression, int, int], bool]

    def total(self, value: Value | None, power: int, where: Expression | None, node: exp.Expression) -> Sum:
        """The exact sum of a power of a number; of the power 0, how many rows have it."""
        assert value is not None
        domain = grid(value)
        check_size(domain.lo, domain.largest**power, node)
        return self.product((self.factor(value.expression, domain.lo, domain.hi, power),), where, node)

    def factor(self, value: Expression, lo: int, hi: int, power: int) -> Factor:
        return Factor(value, lo, hi, power, clamp=not self.held(value, lo, hi))

    def product(self, factors: tuple[Factor, ...], where: Expression | None, node: exp.Expression) -> Sum:
        """A sum of products, in bits that hold every sum, whole or partial, of fewer than 2^36 people.

        Privacy
            S21. A sum that wraps around moves by 2^64 when one person arrives, and one that fails tells who did. Fewer
            than 2^36 people have at most `most` rows each (Relation holds every way to make rows to it), so no partial
            sum is beyond 2^36 * most * largest, in whatever order the engine adds; sums of 128 bits come back as
            decimals of 38 digits. Where 64 bits do, the engine adds up twice as fast in them; it would choose them
            itself only after a look at the data's range, which it may not take.
        """
        largest = math.prod(max(abs(each.lo), abs(each.hi)) ** each.power for each in factors)
        reach = largest * max(self.most, 1) * MOST_PEOPLE
        if reach >= 10**38:
            raise reject(
                node,
                f"{show(node)} adds up numbers that are too large for {self.most} rows a person.",
                "Scale them down, CLAMP them, or aggregate per person before joining.",
            )
        return Sum(factors, where, 64 if reach < 2**63 else 128)


def _parts_of(
    request: Request, degree: int, sums: _Readings, with_rows: bool, rows: Rows, node: exp.Expression
) -> _Part:
    """Parts of a constant width: see the module's text. Forms are written in the sums of 1, x and x²."""
    value = request.value
    assert value is not None
    lo, width = _range(value) if degree else (0, 1)
    condition = request.condition
    if degree:  # all of them over the same value: where it is NULL, a row adds to none
        powers = [sums.index(rows.total(value, power, condition, node)) for power in range(degree + 1)]
    else:
        powers = [sums.index(Sum((Factor(value.expression, 0, 0, 0, False),), condition))]
    one, x, square = (*powers, 0, 0)[:3]
    if degree == 0:
        forms = [{one: 1}]
    elif degree == 1:
        forms = [{x: 1, one: -lo}, {x: -1, one: lo + width}]
    else:
        v = {x: 1, one: -lo}
        v2 = {square: 1, x: -2 * lo, one: lo * lo}
        forms = [
            _combine((width * width, {one: 1}), (-2 * width, v), (1, v2)),
            _combine((2 * width, v), (-2, v2)),
            v2,
        ]
    if with_rows:
        forms.append({sums.index(Sum(where=condition)): width**degree, one: -(width**degree)})
    return _Part(labels={}, forms=forms, width=width**degree, request=request)


def _together(
    request: Request, sums: _Readings, measurement: int, rows: Rows, node: exp.Expression
) -> tuple[_Part, Together]:
    """Covariance and correlation: products of the parts of two columns, which again make a constant in every row.

    Both columns are taken to at most `PAIR_STEPS` steps of their range, so that fourth powers stay exact integers.
    """
    assert request.value is not None
    assert request.other is not None
    degree = 2 if request.correlation else 1
    (x, rounded_x), (y, rounded_y) = (_coarse(each, node) for each in (request.value, request.other))
    powers = {}
    for i, j in itertools.product(range(degree + 1), repeat=2):
        factors = (rows.factor(x, 0, rounded_x[1], i), rows.factor(y, 0, rounded_y[1], j))
        powers[i, j] = sums.index(rows.product(factors, request.condition, node))
    forms = []
    for a, b in itertools.product(_bernstein(rounded_x[1], degree), _bernstein(rounded_y[1], degree)):
        form: dict[int, int] = {}
        for (i, p), (j, q) in itertools.product(a.items(), b.items()):
            form[powers[i, j]] = form.get(powers[i, j], 0) + p * q
        forms.append(form)
    width = (rounded_x[1] * rounded_y[1]) ** degree
    estimate = Together(
        measurement=measurement,
        degree=degree,
        widths=(rounded_x[1], rounded_y[1]),
        steps=(rounded_x[0], rounded_y[0]),
        sample=request.sample,
        correlation=request.correlation,
    )
    unit = (rounded_x[0] * rounded_y[0]) ** degree
    return _Part(labels={request.label: unit}, forms=forms, width=width, request=request), estimate


PAIR_STEPS = 1 << 15


def _coarse(value: Value, node: exp.Expression) -> tuple[Expression, tuple[Fraction, int]]:
    """A column counted from the low end of its range in at most `PAIR_STEPS` steps, and (step, steps)."""
    domain = grid(value)
    span = max(domain.hi - domain.lo, 1)
    ratio = -(-span // PAIR_STEPS)
    shifted = widened(value.expression, 2 * domain.largest + ratio) - domain.lo
    counted = shifted if ratio == 1 else (2 * shifted + ratio) // (2 * ratio)
    return careful(counted), (domain.step * ratio, (2 * span + ratio) // (2 * ratio) if ratio > 1 else span)


def _bernstein(width: int, degree: int) -> list[dict[int, int]]:
    """Polynomials in v that are not negative on [0, width] and make width ** degree together: power -> factor."""
    if degree == 1:
        return [{0: width, 1: -1}, {1: 1}]
    return [{0: width**2, 1: -2 * width, 2: 1}, {1: 2 * width, 2: -2}, {2: 1}]


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


def _values(value: Value | None) -> int | None:
    """How many values a column can have; None where that is not known. Moments may lie between their steps."""
    return value.domain.size if value is not None and isinstance(value.domain, Number | Coded | Flag) else None


def _measurement(part: _Part, sums: int, rows: int, touched: int, groups: int, neighbors: Neighbors) -> Measurement:
    forms = tuple(tuple(form.get(index, 0) for index in range(sums)) for form in part.forms)
    request = part.request
    if request.kind == "persons":
        sensitivity = of_persons(touched=touched, groups=groups, neighbors=neighbors)
    elif request.kind == "distinct":
        sensitivity = of_distinct(rows=rows, values=_values(request.value), groups=groups, neighbors=neighbors)
    elif part.width is None:
        domain = grid(request.value) if request.value else None
        assert domain is not None
        sensitivity = of_sum(rows=rows, lo=domain.lo, hi=domain.hi, groups=groups, neighbors=neighbors)
    else:
        sensitivity = of_parts(rows=rows, width=part.width, parts=len(forms), groups=groups, neighbors=neighbors)
    # A person is counted once in every group, a value likewise: only where nobody is in two groups do people add up.
    additive = request.kind != "distinct" and (request.kind != "persons" or touched == 1)
    return Measurement(
        name=", ".join(part.labels),
        forms=forms,
        sensitivity=sensitivity,
        additive=additive,
        units=tuple(part.labels.items()),
    )
