"""Assemble all requests of one aggregation into few statistics: which exact sums are read, and
which get noise together.

- What is alone over its value is one number: COUNT(*), COUNT(x), COUNT(DISTINCT owner), SUM(x).
- Moments over the same value are the parts of one statistic, of the highest degree d among them:
  for v = x - lo and W = hi - lo, the sums of binomial(d, i) v^i (W - v)^(d - i), which make W^d in
  every row. So noise on all of them costs what noise on one does, and count, sum, mean and variance
  come out of any degree that is high enough.
- COUNT(*) beside any of these over the same rows is a further part: rows without x count as a whole
  width of their own.
- Numbers whose conditions exclude each other, COUNT(*) FILTER (WHERE month = 1), COUNT(*) FILTER
  (WHERE month = 2), ... are one vector: a row adds to one of them at most, so noise on all of them
  costs what noise on one does.
- COUNT(*) beside a few of these is their sum and that of one more part, the rows in which none of
  the conditions holds: smokers and all are measured as smokers and others.
- Pairs are products of the parts of two columns, which again make a constant in every row; those of
  the same columns and degrees are measured once.
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
    Wanted,
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

Combination = dict[Reading, int]  # factors of what is read
UNBOUNDED = 2**31  # groups, where their number is not public


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A statistic in the making: requests may still be added to it."""

    # each aggregate as it was written, and what one step of the grid is in its own units
    labels: dict[str, Fraction]
    forms: list[Combination]
    sensitivity: Sensitivity
    additive: bool
    estimates: dict[int, NoisyColumn]  # by the request's number


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """Statistics and picks that answer all requests; each has the numbers of those that it
    answers.
    """

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
    """Return the statistics that serve all requests with the least noise (see the module's text),
    and the picks.
    """
    extent = Extent(rows=rows.most, touched=touched, groups=groups, neighbors=neighbors)
    making = _Making(rows=rows, extent=extent, node=node)
    numbered = list(enumerate(requests))
    for index, request in numbered:
        if isinstance(request, PublicChoice):
            making.choose(index, request)
        elif isinstance(request, Pair):
            making.pair(index, request)
    plain = all_rows_of(numbered)
    targets = targets_of(numbered)
    hosts = hosts_of(targets)
    # One person who changes leaves one number of everybody as it is, and moves two of the parts.
    together = neighbors == "add_remove" or groups > 1
    parts = parts_of_all(targets, plain, hosts) if together else []
    everybody = None
    if parts:
        hosts.pop(None, None)
        everybody = plain.pop(None)
    order = in_order(targets, plain, hosts)
    clusters = clusters_of([each for each, beside in order if beside is None])
    for each, beside in order:
        if beside is not None:
            making.together(each, beside)
        for cluster in clusters:
            if each is cluster[0]:
                making.side_by_side(cluster, everybody if cluster == parts else None)
    return making.assembly()


@dataclass(slots=True, kw_only=True)
class _Making:
    """Builds statistics and picks from requests."""

    rows: RowsRead
    extent: Extent
    node: exp.Expression
    readings: list[Reading] = field(default_factory=list)
    parts: list[_Part] = field(default_factory=list)
    picks: list[Pick] = field(default_factory=list)
    corners: dict[tuple[object, ...], tuple[Corner, _Part]] = field(default_factory=dict)

    def read(self, reading: Reading) -> Reading:
        """Note that this is read, in the order in which things are read first; each is fetched
        once.
        """
        if reading not in self.readings:
            self.readings.append(reading)
        return reading

    def choose(self, index: int, request: PublicChoice) -> None:
        value, extent = request.value, self.extent
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

    def alone(self, wanted: Wanted) -> None:
        """Add a statistic of one number, which may have several names."""
        first = wanted[0][1]
        assert isinstance(first, Alone)
        labels = {request.label: request.step or Fraction(1) for _, request in wanted}
        part = _Part(
            labels=labels,
            forms=[{self.read(first.reading(self.rows, self.node)): 1}],
            sensitivity=first.sensitivity(self.extent),
            additive=first.additive(self.extent.touched),
            estimates={
                index: Linear(factors=(Fraction(1),), step=labels[request.label])
                for index, request in wanted
            },
        )
        self.parts.append(part)

    def side_by_side(
        self, cluster: Sequence[Wanted], everybody: Sequence[tuple[int, AllRows]] | None
    ) -> None:
        """Add a vector of numbers of which a row adds to one at most: noise on all of them costs
        what it does on one. With `everybody` a last part counts the rows that add to none, and all
        parts together are all rows.
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
        for place, wanted in enumerate(cluster):
            first = conditional(wanted[0][1])
            assert isinstance(first, Alone)
            forms.append({self.read(first.reading(self.rows, self.node)): 1})
            for index, request in wanted:
                labels[request.label] = step = request.step or Fraction(1)
                factors = tuple(Fraction(each == place) for each in range(parts))
                estimates[index] = Linear(factors=factors, step=step)
        if everybody is not None:
            rest = {self.read(Sum()): 1}
            forms.append(rest | {reading: -1 for form in forms for reading in form})
            for index, request in everybody:
                labels[request.label] = Fraction(1)
                estimates[index] = Linear(factors=(Fraction(1),) * parts, step=Fraction(1))
        self._append(labels, forms, width, estimates)

    def together(self, wanted: Wanted, companions: list[tuple[int, AllRows]]) -> None:
        """Add the moments of one value, and the rows beside them, as parts of a constant width."""
        moments = [(index, request) for index, request in wanted if isinstance(request, Moment)]
        degree = max(request.degree for _, request in moments)
        first = moments[0][1]
        lo, width = range_of(first.value) if degree else (0, 1)
        # All of them over the same value: where it is NULL, a row adds to none.
        value, where = first.value, first.condition
        powers = [
            self.read(
                self.rows.total(value, power, where, self.node)
                if degree
                else self.rows.present(value, where)
            )
            for power in range(degree + 1)
        ]
        polynomials = bernstein(lo, width, degree)
        forms = [
            {powers[power]: factor for power, factor in each.items()}
            for each in (reversed(polynomials) if degree == 1 else polynomials)
        ]
        if companions:
            everybody = self.read(Sum(where=first.condition))
            forms.append({everybody: width**degree, powers[0]: -(width**degree)})
        labels, estimates = {}, {}
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

    def pair(self, index: int, request: Pair) -> None:
        """Add products of two columns, each taken to few steps, so that fourth powers stay exact
        integers.
        """
        key = (request.value.identity, request.other.identity, request.condition, request.degrees)
        if key not in self.corners:
            x, y = coarse(request.value), coarse(request.other)
            widths = grid(x).hi, grid(y).hi
            corner = Corner(widths=widths, steps=(grid(x).step, grid(y).step))
            degrees, powers = request.degrees, {}
            for i, j in itertools.product(*(range(degree + 1) for degree in degrees)):
                factors = (
                    self.rows.factor(x.expression, 0, widths[0], i),
                    self.rows.factor(y.expression, 0, widths[1], j),
                )
                powers[i, j] = self.read(self.rows.product(factors, request.condition, self.node))
            forms = []
            for a, b in itertools.product(*map(bernstein, (0, 0), widths, degrees)):
                form: Combination = {}
                for (i, p), (j, q) in itertools.product(a.items(), b.items()):
                    form[powers[i, j]] = form.get(powers[i, j], 0) + p * q
                forms.append(form)
            part = self._append({}, forms, widths[0] ** degrees[0] * widths[1] ** degrees[1], {})
            self.corners[key] = corner, part
        (corner, part), (one, two) = self.corners[key], request.degrees
        part.labels[request.label] = corner.steps[0] ** one * corner.steps[1] ** two
        part.estimates[index] = request.estimate(corner)

    def _append(
        self,
        labels: dict[str, Fraction],
        forms: list[Combination],
        width: int,
        estimates: dict[int, NoisyColumn],
    ) -> _Part:
        sensitivity = constant_width(self.extent, width=width, parts=len(forms))
        part = _Part(
            labels=labels, forms=forms, sensitivity=sensitivity, additive=True, estimates=estimates
        )
        self.parts.append(part)
        return part

    def assembly(self) -> Assembly:
        return Assembly(statistics=tuple(map(self._statistic, self.parts)), picks=tuple(self.picks))

    def _statistic(self, part: _Part) -> Statistic:
        used = tuple(each for each in self.readings if any(form.get(each) for form in part.forms))
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

    Where a statistic counts people anyway, and no public keys part them into `groups`, that one is
    tested and the test needs no number of its own.
    """
    own = {number: each for each in assembly.statistics for number, _ in each.estimates}
    for number, request in enumerate(requests if groups == 1 else ()):
        counts = (
            isinstance(request, Alone) and request.condition is None and request.counts_people(rows)
        )
        if counts and len(own[number].forms) == 1:
            others = (each for each in assembly.statistics if each is not own[number])
            return (replace(own[number], tested=True), *others)
    people = Statistic(
        name=PEOPLE,
        reads=(Sum() if rows == 1 else Persons(),),  # where a person has one row, rows are people
        forms=((1,),),
        sensitivity=of_persons(touched=touched, groups=UNBOUNDED, neighbors=neighbors),
        additive=False,
        tested=True,
    )
    return (people, *assembly.statistics)
