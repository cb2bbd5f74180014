"""Read what a description of several tables needs: people with how many rows they have of each
kind, and rows beside whose they are.

The kind of a row is the first column of its table that lists two to `MOST_KINDS` values and is never
missing: the test of a laboratory's row, the event of an event. A person's rows are counted for each
kind, so that synthetic people have each as often as true ones; without such a column they are
counted together.

Privacy
    How many rows of a kind a person has is a column of that person's one row, and, beside a row, a
    column computed of that person's rows alone: neither changes whose row it is.
    A row whose person has c kinds of rows, and n of its own kind, weighs floor(u / (c n)). All rows
    of one kind weigh at most n u / (c n) = u / c, and there are c kinds, so all of a person's rows
    weigh at most u, whatever c and n are. A row of no kind has no weight, and is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet.algebra import (
    Column,
    Columns,
    Expression,
    Fold,
    OwnerJoin,
    PerPerson,
    Source,
    Stage,
    call,
    case,
    expression,
)
from discreet.policy import domain as domains
from discreet.policy.policy import Policy, Table
from discreet.sql.rows.relation import scan
from discreet.sql.values.value import Number, Value
from discreet.synthetic.columns.axis import Axis, place_of
from discreet.synthetic.linked.description import COUNTER, OWN_KIND, counter_name, person_column
from discreet.synthetic.source import TableSource

UNIT = 1 << 12  # that all rows of one person weigh, at most
MOST_KINDS = 20
SINGLE = 3  # numbers of rows up to this have cells of their own
GROWTH = Fraction(13, 10)  # of the cells beyond


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedTables:
    """A table of people and the tables of their rows."""

    people: Table
    rows: tuple[Table, ...]
    policy: Policy


def kind_of(table: Table) -> domains.Column | None:
    """The column by whose values a table's rows are counted; None: they are counted together."""
    for column in table.columns.values():
        if not isinstance(column.domain, domains.Categories) or column.nullable:
            continue
        if column.name != table.owner and 2 <= len(column.domain.values) <= MOST_KINDS:
            return column
    return None


def kinds(table: Table) -> tuple[str, ...]:
    """The values of a table's kind, as people write them; none where it has no kind."""
    column = kind_of(table)
    if column is None:
        return ()
    assert isinstance(column.domain, domains.Categories)
    return tuple(str(value) for value in column.domain.values)


def counters(table: Table) -> tuple[str, ...]:
    """Return what a person's numbers of rows are called, one for each kind."""
    return tuple(counter_name(table.name, kind) for kind in kinds(table) or (None,))


def counter_axes(table: Table) -> tuple[Axis, ...]:
    """A person's numbers of rows as columns: small numbers one by one, large ones in wider and wider
    cells. The most that there can be has a cell of its own, because rows beyond it are left out.
    """
    return tuple(counter_axis(name, table.max_rows) for name in counters(table))


def counter_axis(name: str, most: int) -> Axis:
    column = domains.Column(name=name, domain=domains.Integers(lo=0, hi=most))
    cuts = [*range(min(SINGLE, most) + 1)]
    while cuts[-1] < most:
        cuts.append(min(most, max(cuts[-1] + 1, int(cuts[-1] * GROWTH))))
    return Axis(column=column, bins=len(cuts), cuts=(*cuts, most + 1))


def people_source(work: LinkedTables) -> TableSource:
    """One row a person, with how many rows of each kind each has in the other tables."""
    read = scan(work.people, work.people.name, "t0", frozenset())
    source: Source = read.source
    values = {field.name: field.value for field in read.fields}
    for number, table in enumerate(work.rows):
        stage = f"n{number}"
        source = OwnerJoin(source, _count_rows(table, stage), outer=True)
        for place, name in enumerate(counters(table)):
            rows = call("coalesce", Column(stage, f"rows{place}"), 0)
            values[name] = _number(rows, table)
    return TableSource(scan=source, max_rows=1, neighbors=work.policy.neighbors, values=values)


def rows_source(work: LinkedTables, table: Table) -> TableSource:
    """The rows of a table beside their person's; all rows of one person weigh at most UNIT."""
    read, person = (
        scan(table, table.name, "t0", frozenset()),
        scan(work.people, work.people.name, "t1", frozenset()),
    )
    joined = OwnerJoin(OwnerJoin(read.source, person.source), _count_rows(table, "n0"))
    values = {field.name: field.value for field in read.fields}
    values |= {person_column(work.people.name, field.name): field.value for field in person.fields}
    numbers = [Column("n0", f"rows{place}") for place in range(len(counters(table)))]
    alike: Expression = numbers[0]
    kind = kind_of(table)
    if kind is not None:
        here = place_of(values[kind.name])
        alike = case(*((here.equals(place), each) for place, each in enumerate(numbers)))
    met: Expression = expression(0)
    for each in numbers:
        met = met + case((each > 0, 1), otherwise=0)
    values[person_column(work.people.name, _alike(table))] = _number(alike, table)
    return TableSource(
        scan=joined,
        max_rows=table.max_rows,
        neighbors=work.policy.neighbors,
        values=values,
        weight=expression(UNIT) // (met * alike),
        unit=UNIT,
    )


def alike_axis(table: Table) -> Axis:
    """How many rows of a row's own kind its person has, as a column beside the row."""
    return counter_axis(_alike(table), table.max_rows)


def _alike(table: Table) -> str:
    return OWN_KIND if kind_of(table) is not None else COUNTER + table.name


def _count_rows(table: Table, stage: str) -> Stage:
    """Return how many rows of each kind each person has who has any."""
    read = scan(table, table.name, f"{stage}s", frozenset())
    columns: Columns = (("rows0", Fold("count", ())),)
    kind = kind_of(table)
    if kind is not None:
        [value] = [field.value for field in read.fields if field.name == kind.name]
        ones = [case((place_of(value).equals(place), 1)) for place in range(len(kinds(table)))]
        columns = tuple((f"rows{place}", Fold("count", (one,))) for place, one in enumerate(ones))
    return Stage(PerPerson(read.source, (), columns), stage)


def _number(rows: Expression, table: Table) -> Value:
    domain = Number(step=Fraction(1), lo=0, hi=table.max_rows)
    return Value(expression=rows, domain=domain, nullable=False)
