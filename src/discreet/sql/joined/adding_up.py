"""Aggregates of rows, from those of their groups, where groups meet the rows of a noisy result.

Each group meets at most one row. If it stays a group, its numbers stay as they are. Otherwise they
are added up: COUNT(*) is the sum of the groups' counts, and AVG(n) of the noisy result's n is the
sum of n times the group's count, divided by the sum of these counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field

from sqlglot import exp

from discreet.errors import Rejected
from discreet.sql.after.released import OutputTable
from discreet.sql.rows.persons import is_own
from discreet.sql.rows.relation import Names, Relation
from discreet.sql.text.parse import reject, show
from discreet.sql.text.postgres import kind_of

_ADDED = exp.Count | exp.Sum | exp.Avg | exp.Min | exp.Max


@dataclass(frozen=True, slots=True, kw_only=True)
class Adding:
    """How the numbers of the measured groups become those of the result."""

    alone: bool  # True if each group stays a group
    grouped: bool  # True if the result has groups
    names: Names  # the columns of the private rows
    one_row: bool  # True if a person has one row, and so is in one group
    keys: list[exp.Expression]
    table: str  # what the measured groups are called
    there: Set[tuple[str, str]]  # tables and names of the noisy results' columns without NULL
    numbers: list[exp.Expression] = field(default_factory=list)  # aggregates that they need

    def number(self, aggregate: exp.Expression) -> exp.Expression:
        """Return the column of an aggregate of the measured groups."""
        if aggregate not in self.numbers:
            self.numbers.append(aggregate)
        name = f"number {self.numbers.index(aggregate)}"
        return exp.column(name, table=self.table, quoted=True)

    def of_rows(self, part: exp.Expression) -> exp.Expression:
        """Return an aggregate of private rows, with or without FILTER."""
        if self.alone:
            return self.number(part)
        inner = part.this if isinstance(part, exp.Filter) else part
        distinct = isinstance(inner.args.get("this"), exp.Distinct)
        if not isinstance(inner, _ADDED) or (distinct and not self.counts_people(inner)):
            raise self.cannot_add(part)
        if isinstance(inner, exp.Avg):
            return _quotient(
                *(exp.Sum(this=self.number(_with(part, kind))) for kind in (exp.Sum, exp.Count))
            )
        column = self.number(part)
        if isinstance(inner, exp.Min | exp.Max):
            return type(inner)(this=column)
        total: exp.Expression = exp.Sum(this=column)
        if isinstance(inner, exp.Count) and not self.grouped:
            total = exp.Coalesce(this=total, expressions=[exp.Literal.number(0)])
        if kind_of(part, self.names.kind) == "bigint":
            total = exp.cast(total, "BIGINT")  # a sum of such numbers has digits elsewhere
        return total

    def of_noise(
        self, part: exp.Expression, rewrite: Callable[[exp.Expression], exp.Expression]
    ) -> exp.Expression:
        """Return an aggregate of the noisy result's values, each as often as rows meet it."""
        inner = part.this if isinstance(part, _ADDED) else None
        if inner is None or isinstance(inner, exp.Distinct):
            raise self.cannot_add(part)
        value = exp.Paren(this=rewrite(inner))
        if isinstance(part, exp.Min | exp.Max):
            return value if self.alone else type(part)(this=value)
        if isinstance(part, exp.Avg) and self.alone:
            return exp.cast(value, "DOUBLE")
        rows = self.number(exp.Count(this=exp.Star()))
        times = exp.Mul(this=value, expression=rows)
        missing = exp.If(
            this=exp.Is(this=value.copy(), expression=exp.Null()), true=exp.Literal.number(0)
        )
        present: exp.Expression = exp.Case(ifs=[missing], default=rows.copy())
        if isinstance(inner, exp.Column) and (inner.table, inner.name) in self.there:
            present = rows.copy()  # so that its margin depends on no test of a noisy number
        if isinstance(part, exp.Avg):
            return _quotient(exp.Sum(this=times), exp.Sum(this=present))
        found = exp.Paren(this=present if isinstance(part, exp.Count) else times)
        return found if self.alone else self.total_of(found, part)

    def total_of(self, found: exp.Expression, part: exp.Expression) -> exp.Expression:
        total = exp.Sum(this=found)
        return exp.cast(total, "BIGINT") if isinstance(part, exp.Count) else total

    def counts_people(self, count: exp.Expression) -> bool:
        """Return True for COUNT(DISTINCT owner) where a person is in one group."""
        parts = count.this.expressions
        if not self.one_row or len(parts) != 1 or not isinstance(parts[0], exp.Column):
            return False
        return isinstance(count, exp.Count) and is_own(self.names.column(parts[0]))

    def cannot_add(self, part: exp.Expression) -> Rejected:
        keys = " and ".join(show(key) for key in self.keys)
        reason = f"{show(part)} cannot be added up over the groups of {keys or 'all rows'}"
        return reject(
            part,
            f"{reason} that meet the noisy result.",
            f"Write GROUP BY {keys.replace(' and ', ', ')}, or use COUNT, SUM and AVG."
            if keys
            else "Use COUNT, SUM and AVG.",
        )


def columns_there(
    sources: Sequence[Relation | OutputTable], parts: Sequence[exp.Expression], inner: Set[str]
) -> Iterator[tuple[str, str]]:
    """Yield the tables and names of the columns of inner joined noisy results that are never NULL."""
    for source, part in zip(sources, parts, strict=True):
        alias = part.alias_or_name.lower()
        if isinstance(source, OutputTable) and alias in inner:
            for output in source.outputs:
                if output.forms and all(form.present for form in output.forms):
                    yield alias, output.name.lower()


def _with(part: exp.Expression, kind: type[exp.Expression]) -> exp.Expression:
    """Return the aggregate with another function, and the same FILTER."""
    if not isinstance(part, exp.Filter):
        return kind(this=part.this.copy())
    return exp.Filter(this=kind(this=part.this.this.copy()), expression=part.expression.copy())


def _quotient(above: exp.Expression, below: exp.Expression) -> exp.Expression:
    return exp.Paren(this=exp.Div(this=above, expression=below, typed=False, safe=True))
