"""Assemble all requests of one aggregation into few statistics: which exact sums are read, and
which get noise together.

- A count or sum that no other request shares its value with is one number: COUNT(*), COUNT(x),
  COUNT(DISTINCT owner), SUM(x).
- Moments of the same value are one statistic of the highest degree d among them. With v = x - lo
  and W = hi - lo its parts are the sums of binomial(d, i) v^i (W - v)^(d - i). In every row they
  add up to W^d, so noise on all of them costs as much as noise on one. Count, sum, mean and
  variance can be computed from any degree that is high enough.
- COUNT(*) with such a statistic over the same rows is one more part of it: a row without x adds
  the whole W^d to that part.
- Numbers whose conditions exclude each other, such as COUNT(*) FILTER (WHERE month = 1), COUNT(*)
  FILTER (WHERE month = 2), ..., are one vector: a row adds to at most one of them, so noise on all
  of them costs as much as noise on one.
- COUNT(*) with a few of these is their sum and that of one more part: the rows in which none of the
  conditions holds. Smokers and all people are measured as smokers and others.
- Pairs are products of the parts of two columns, which again add up to a constant in every row.
  Pairs of the same columns and degrees are measured once.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sqlglot import exp

from discreet.algebra import Persons, Reading, Sum
from discreet.budget import Neighbors
from discreet.sql.after.estimates import Linear, NoisyColumn
from discreet.sql.aggregates.count import AllRows
from discreet.sql.plan.block import PEOPLE, Statistic
from discreet.sql.plan.keys import key_position
from discreet.sql.plan.picks import Pick
from discreet.sql.plan.sensitivity import Sensitivity, of_persons
from discreet.sql.requests.readings import RowsRead, bernstein, coarse
from discreet.sql.requests.request import (
    AggregateRequest,
    Alone,
    Corner,
    Extent,
    Moment,
    Pair,
    Place,
    PublicChoice,
    constant_width,
    range_of,
)
from discreet.sql.requests.sharing import (
    SameNumber,
    all_rows_of,
    clusters_of,
    conditional,
    hosts_of,
    in_order,
    parts_of_all,
    targets_of,
    width_of,
)
from discreet.sql.text.parse import reject
from discreet.sql.values.numbers import grid
from discreet.sql.values.value import Category, Day, Flag, Number
from discreet.sql.values.value import Moment as Instant

Combination = dict[Reading, int]  # the factor of each reading
UNBOUNDED = 2**31  # the number of groups if it is not public


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A statistic under construction: requests may still be added to it."""

    # the label of each aggregate, and the size of one step in its own units
    labels: dict[str, Fraction]
    forms: list[Combination]
    sensitivity: Sensitivity
    additive: bool
    estimates: dict[int, NoisyColumn]  # by the request's number


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """Statistics and picks that answer all requests; each has the numbers of its requests."""

    statistics: tuple[Statistic, ...]
    picks: tuple[Pick, ...]


def assemble(
    requests: list[AggregateRequest],
    *,
    rows: RowsRead,
    touched: int,
    groups: int,
    neighbors: Neighbors,
    node: exp.Expression,
) -> Assembly:
    """Return the statistics that answer all requests with the least noise (see the module's
    docstring), and the picks.
    """
    extent = Extent(rows=rows.most, touched=touched, groups=groups, neighbors=neighbors)
    builder = _Builder(rows=rows, extent=extent, node=node)
    with_index = list(enumerate(requests))
    for index, request in with_index:
        if isinstance(request, PublicChoice):
            builder.choose(index, request)
        elif isinstance(request, Pair):
            builder.pair(index, request)
    all_rows = all_rows_of(with_index)
    targets = targets_of(with_index)
    hosts = hosts_of(targets)
    # Under change_one a person moves the count of all rows less than two of its parts. This must not
    # depend on `groups`: grouping sets are priced with several numbers of groups.
    parts = parts_of_all(targets, all_rows, hosts) if neighbors == "add_remove" else []
    everybody = None
    if parts:
        hosts.pop(None, None)
        everybody = all_rows.pop(None)
    order = in_order(targets, all_rows, hosts)
    single_numbers = [each for each, companions in order if companions is None]
    clusters = clusters_of(single_numbers)
    for each, companions in order:
        if companions is not None:
            builder.together(each, companions)
        for cluster in clusters:
            if each is cluster[0]:
                builder.side_by_side(cluster, everybody if cluster == parts else None)
    return builder.assembly()


@dataclass(slots=True, kw_only=True)
class _Builder:
    """Builds statistics and picks from requests."""

    rows: RowsRead
    extent: Extent
    node: exp.Expression
    readings: dict[Reading, int] = field(default_factory=dict)  # each with its place
    parts: list[_Part] = field(default_factory=list)
    picks: list[Pick] = field(default_factory=list)
    corners: dict[tuple[object, ...], tuple[Corner, _Part]] = field(default_factory=dict)

    def read(self, reading: Reading) -> Reading:
        """Add a reading unless it is there; each is fetched once, in this order."""
        self.readings.setdefault(reading, len(self.readings))
        return reading

    def choose(self, index: int, request: PublicChoice) -> None:
        """Add a pick."""
        value = request.value
        extent = self.extent
        assert isinstance(value.domain, Number | Category | Flag | Day | Instant)
        pick = Pick(
            name=request.label,
            kind=request.kind,
            position=key_position(value.expression, value.domain, nullable=False),
            condition=request.condition,
            domain=value.domain,
            quantiles=request.quantiles,
            listed=request.listed,
            rows=extent.rows,
            groups=extent.groups,
            neighbors=extent.neighbors,
            unknown=extent.groups >= UNBOUNDED,
            number=index,
        )
        if request.kind == "mode" and pick.fine:
            raise reject(
                self.node,
                f"{request.label} has too many values for {extent.groups} groups.",
                "Group by fewer columns.",
            )
        self.picks.append(pick)

    def alone(self, requests: SameNumber) -> None:
        """Add a statistic of one number, which may answer several requests."""
        first = requests[0][1]
        assert isinstance(first, Alone)
        labels = {request.label: request.step or Fraction(1) for _, request in requests}
        estimates: dict[int, NoisyColumn] = {}
        for index, request in requests:
            estimates[index] = Linear(factors=(Fraction(1),), step=labels[request.label])
        reading = self.read(first.reading(self.rows, self.node))
        part = _Part(
            labels=labels,
            forms=[{reading: 1}],
            sensitivity=first.sensitivity(self.extent),
            additive=first.additive(self.extent.touched),
            estimates=estimates,
        )
        self.parts.append(part)

    def side_by_side(
        self, cluster: Sequence[SameNumber], everybody: Sequence[tuple[int, AllRows]] | None
    ) -> None:
        """Add a vector of numbers such that a row adds to at most one: noise on all of them costs as
        much as noise on one.

        With `everybody` a last part counts the rows that add to none of them, so that all parts
        together are COUNT(*).
        """
        if len(cluster) == 1 and everybody is None:
            self.alone(cluster[0])
            return
        labels: dict[str, Fraction] = {}
        forms: list[Combination] = []
        estimates: dict[int, NoisyColumn] = {}
        width = width_of(cluster[0][0][1])
        assert width is not None
        parts = len(cluster) + (everybody is not None)
        for place, requests in enumerate(cluster):
            first = conditional(requests[0][1])
            assert isinstance(first, Alone)
            forms.append({self.read(first.reading(self.rows, self.node)): 1})
            for index, request in requests:
                step = request.step or Fraction(1)
                labels[request.label] = step
                factors = tuple(Fraction(each == place) for each in range(parts))
                estimates[index] = Linear(factors=factors, step=step)
        if everybody is not None:
            rest = {self.read(Sum()): 1}
            forms.append(rest | {reading: -1 for form in forms for reading in form})
            for index, request in everybody:
                labels[request.label] = Fraction(1)
                estimates[index] = Linear(factors=(Fraction(1),) * parts, step=Fraction(1))
        self._append(labels, forms, width, estimates)

    def together(self, requests: SameNumber, companions: list[tuple[int, AllRows]]) -> None:
        """Add the moments of one value, and the counts of rows measured with them, as the parts of
        one statistic. They add up to a constant in every row.
        """
        moments = [(index, request) for index, request in requests if isinstance(request, Moment)]
        degree = max(request.degree for _, request in moments)
        first = moments[0][1]
        lo, width = range_of(first.value) if degree else (0, 1)
        # All parts are sums of the same value: a row in which it is NULL adds to none of them.
        powers = [self._power(first, power, degree) for power in range(degree + 1)]
        polynomials = bernstein(lo, width, degree)
        if degree == 1:
            polynomials.reverse()
        forms = []
        for polynomial in polynomials:
            forms.append({powers[power]: factor for power, factor in polynomial.items()})
        if companions:
            everybody = self.read(Sum(where=first.condition))
            forms.append({everybody: width**degree, powers[0]: -(width**degree)})
        labels: dict[str, Fraction] = {}
        estimates: dict[int, NoisyColumn] = {}
        every: list[tuple[int, Moment | AllRows]] = [*moments, *companions]
        for index, request in every:
            value = request.value if isinstance(request, Moment) else first.value
            step = grid(value).step if degree else Fraction(1)
            labels[request.label] = step**degree
            place = Place(
                degree=degree,
                lo=lo,
                width=width,
                step=step,
                with_rows=bool(companions),
            )
            estimates[index] = request.estimate(place)
        self._append(labels, forms, width**degree, estimates)

    def _power(self, moment: Moment, power: int, degree: int) -> Reading:
        """Return the sum of a power of a moment's value; for degree 0 the value may be of any kind."""
        value = moment.value
        if not degree:
            return self.read(self.rows.present(value, moment.condition))
        return self.read(self.rows.total(value, power, moment.condition, self.node))

    def pair(self, index: int, request: Pair) -> None:
        """Add a pair, or let it share the products of an earlier one."""
        key = (request.value.identity, request.other.identity, request.condition, request.degrees)
        if key not in self.corners:
            self.corners[key] = self._products(request)
        corner, part = self.corners[key]
        x_step, y_step = corner.steps
        x_degree, y_degree = request.degrees
        part.labels[request.label] = x_step**x_degree * y_step**y_degree
        part.estimates[index] = request.estimate(corner)

    def _products(self, request: Pair) -> tuple[Corner, _Part]:
        """Add the products of two columns. Each column gets few steps, so that sums of fourth powers
        are still exact integers.
        """
        x = coarse(request.value)
        y = coarse(request.other)
        x_width = grid(x).hi
        y_width = grid(y).hi
        x_degree, y_degree = request.degrees
        powers: dict[tuple[int, int], Reading] = {}
        for i, j in itertools.product(range(x_degree + 1), range(y_degree + 1)):
            x_factor = self.rows.factor(x.expression, 0, x_width, i)
            y_factor = self.rows.factor(y.expression, 0, y_width, j)
            product = self.rows.product((x_factor, y_factor), request.condition, self.node)
            powers[i, j] = self.read(product)
        forms = []
        x_polynomials = bernstein(0, x_width, x_degree)
        y_polynomials = bernstein(0, y_width, y_degree)
        for in_x, in_y in itertools.product(x_polynomials, y_polynomials):
            form: Combination = {}
            for (i, p), (j, q) in itertools.product(in_x.items(), in_y.items()):
                reading = powers[i, j]
                form[reading] = form.get(reading, 0) + p * q
            forms.append(form)
        corner = Corner(widths=(x_width, y_width), steps=(grid(x).step, grid(y).step))
        part = self._append({}, forms, x_width**x_degree * y_width**y_degree, {})
        return corner, part

    def _append(
        self,
        labels: dict[str, Fraction],
        forms: list[Combination],
        width: int,
        estimates: dict[int, NoisyColumn],
    ) -> _Part:
        """Add a statistic whose numbers add up to at most `width` in each row."""
        sensitivity = constant_width(self.extent, width=width, parts=len(forms))
        part = _Part(
            labels=labels, forms=forms, sensitivity=sensitivity, additive=True, estimates=estimates
        )
        self.parts.append(part)
        return part

    def assembly(self) -> Assembly:
        return Assembly(statistics=tuple(map(self._statistic, self.parts)), picks=tuple(self.picks))

    def _statistic(self, part: _Part) -> Statistic:
        read = {each for form in part.forms for each, factor in form.items() if factor}
        used = tuple(sorted(read, key=self.readings.__getitem__))
        return Statistic(
            name=", ".join(part.labels),
            reads=used,
            forms=tuple(tuple(form.get(each, 0) for each in used) for form in part.forms),
            sensitivity=part.sensitivity,
            additive=part.additive,
            units=tuple(part.labels.items()),
            estimates=tuple(part.estimates.items()),
        )


def with_test(
    assembly: Assembly,
    requests: Sequence[AggregateRequest],
    *,
    rows: int,
    touched: int,
    neighbors: Neighbors,
    groups: int,
) -> tuple[Statistic, ...]:
    """Return the statistics with the threshold's test first: people per key (S5).

    If a statistic counts people anyway, and no public keys divide them into groups, the threshold
    tests that one. Otherwise the test is a number of its own.
    """
    by_number = {number: each for each in assembly.statistics for number, _ in each.estimates}
    for number, request in enumerate(requests if groups == 1 else ()):
        if not _counts_all_people(request, rows):
            continue
        statistic = by_number[number]
        if len(statistic.forms) == 1:
            others = (each for each in assembly.statistics if each is not statistic)
            return (replace(statistic, tested=True), *others)
    people = Statistic(
        name=PEOPLE,
        reads=(Sum() if rows == 1 else Persons(),),  # if nobody has two rows, rows are people
        forms=((1,),),
        sensitivity=of_persons(touched=touched, groups=UNBOUNDED, neighbors=neighbors),
        additive=False,
        tested=True,
    )
    return (people, *assembly.statistics)


def _counts_all_people(request: AggregateRequest, rows: int) -> bool:
    if not isinstance(request, Alone) or request.condition is not None:
        return False
    return request.counts_people(rows)
