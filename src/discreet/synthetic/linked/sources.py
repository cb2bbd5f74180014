"""Read the tables for a description of several: people with their numbers of rows of each kind, and
rows beside their person.

The kind of a row is the first column of its table that lists two to `MOST_KINDS` values and is never
NULL: the test in a laboratory's table, the event in a table of events. We count a person's rows by
kind, so that synthetic people have each kind as often as true ones. Without such a column, all rows
count as one kind.

Privacy
    A person's number of rows of a kind is a column of the person's one row. Beside a row, it is a
    column that we compute from that person's rows alone. So no row changes its owner.
    A row weighs floor(u / (c n)), if its person has c kinds of rows and n rows of its kind. All
    rows of one kind weigh at most n u / (c n) = u / c, and there are c kinds. So all of a person's
    rows weigh at most u, whatever c and n are. A row without a kind has no weight and does not
    count.
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

UNIT = 1 << 12  # the most that all rows of one person weigh
MOST_KINDS = 20
SINGLE = 3  # numbers of rows up to this have cells of their own
GROWTH = Fraction(13, 10)  # each larger cell ends at this multiple of its start


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedTables:
    """A table of people and the tables of their rows."""

    people: Table
    rows: tuple[Table, ...]
    policy: Policy


def kind_of(table: Table) -> domains.Column | None:
    """Return the column with the kinds of a table's rows; None if it has no kinds."""
    for column in table.columns.values():
        if not isinstance(column.domain, domains.Categories) or column.nullable:
            continue
        if column.name != table.owner and 2 <= len(column.domain.values) <= MOST_KINDS:
            return column
    return None


def kinds(table: Table) -> tuple[str, ...]:
    """Return the kinds of a table's rows, as people write them."""
    column = kind_of(table)
    if column is None:
        return ()
    assert isinstance(column.domain, domains.Categories)
    return tuple(str(value) for value in column.domain.values)


def counters(table: Table) -> tuple[str, ...]:
    """Return the names of a person's numbers of rows, one for each kind."""
    return tuple(counter_name(table.name, kind) for kind in kinds(table) or (None,))


def counter_axes(table: Table) -> tuple[Axis, ...]:
    """Return the axes of a person's numbers of rows, one for each kind."""
    return tuple(counter_axis(name, table.max_rows) for name in counters(table))


def counter_axis(name: str, most: int) -> Axis:
    """Return the axis of a number of rows: cells of one number each, then wider and wider ones.

    The largest number has a cell of its own, because people with more rows have it too: their
    further rows are left out.
    """
    column = domains.Column(name=name, domain=domains.Integers(lo=0, hi=most))
    cuts = [*range(min(SINGLE, most) + 1)]
    while cuts[-1] < most:
        cuts.append(min(most, max(cuts[-1] + 1, int(cuts[-1] * GROWTH))))
    return Axis(column=column, bins=len(cuts), cuts=(*cuts, most + 1))


def people_source(work: LinkedTables) -> TableSource:
    """Return the source with one row for each person, with the numbers of rows of each kind in the
    other tables.
    """
    table_scan = scan(work.people, work.people.name, "t0", frozenset())
    source: Source = table_scan.source
    values = {field.name: field.value for field in table_scan.fields}
    for number, table in enumerate(work.rows):
        stage = f"n{number}"
        source = OwnerJoin(source, _count_rows(table, stage), outer=True)
        for place, name in enumerate(counters(table)):
            rows = call("coalesce", Column(stage, f"rows{place}"), 0)
            values[name] = _number(rows, table)
    return TableSource(scan=source, max_rows=1, neighbors=work.policy.neighbors, values=values)


def rows_source(work: LinkedTables, table: Table) -> TableSource:
    """Return the source of a table's rows beside their person; a person's rows weigh at most UNIT."""
    own = scan(table, table.name, "t0", frozenset())
    person = scan(work.people, work.people.name, "t1", frozenset())
    rows = OwnerJoin(OwnerJoin(own.source, person.source), _count_rows(table, "n0"))
    values = {field.name: field.value for field in own.fields}
    values |= {person_column(work.people.name, field.name): field.value for field in person.fields}
    numbers = [Column("n0", f"rows{place}") for place in range(len(counters(table)))]
    # the person's number of rows of this row's kind, and of kinds
    alike: Expression = numbers[0]
    kind = kind_of(table)
    if kind is not None:
        here = place_of(values[kind.name])
        alike = case(*((here.equals(place), number) for place, number in enumerate(numbers)))
    met: Expression = expression(0)
    for number in numbers:
        met = met + case((number > 0, 1), otherwise=0)
    values[person_column(work.people.name, _alike(table))] = _number(alike, table)
    return TableSource(
        scan=rows,
        max_rows=table.max_rows,
        neighbors=work.policy.neighbors,
        values=values,
        weight=expression(UNIT) // (met * alike),
        unit=UNIT,
    )


def alike_axis(table: Table) -> Axis:
    """Return the axis of the person's number of rows of the same kind, a column beside a row."""
    return counter_axis(_alike(table), table.max_rows)


def _alike(table: Table) -> str:
    return OWN_KIND if kind_of(table) is not None else COUNTER + table.name


def _count_rows(table: Table, stage: str) -> Stage:
    """Return the stage of the people who have rows, with their numbers of rows of each kind."""
    rows = scan(table, table.name, f"{stage}s", frozenset())
    columns: Columns = (("rows0", Fold("count", ())),)
    kind = kind_of(table)
    if kind is not None:
        [value] = [field.value for field in rows.fields if field.name == kind.name]
        ones = [case((place_of(value).equals(place), 1)) for place in range(len(kinds(table)))]
        columns = tuple((f"rows{place}", Fold("count", (one,))) for place, one in enumerate(ones))
    return Stage(PerPerson(rows.source, (), columns), stage)


def _number(rows: Expression, table: Table) -> Value:
    domain = Number(step=Fraction(1), lo=0, hi=table.max_rows)
    return Value(expression=rows, domain=domain, nullable=False)
