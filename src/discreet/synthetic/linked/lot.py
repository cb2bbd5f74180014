"""Describe several tables of the same people together: the people, and the rows of each further
table.

people        the columns of the first table, which has one row for each person, and the person's
              numbers of rows in the other tables
rows          for each further table, its columns beside those of the person, so that we can draw
              rows given their person

Privacy
    All of it is one charge, for a person with all of her rows in all tables. The first part is a
    table with one row for each person. Its last columns count the person's own rows, so one person
    moves one row (two under change_one). In the second part all rows of one person weigh at most u
    together, however many there are: see `sources`. So the counts of a marginal move by at most u
    in l1, and by at most u in l2, because a vector's l2 is at most its l1 (a person whose rows lie
    in one cell reaches both; 2u and sqrt(2) u under change_one). Noise goes on whole multiples of
    1 / u; we divide by u after the release. The grids of a person's columns are those that the
    first part has released. Both parts spend from one allowance, one after the other.

Why weights: if each row counted 1, m rows of one person would need m times the noise. Among the rows
of one person and one kind, all weights are equal. So given the person, the kind and the number of
rows of that kind, weighted rows have the same distribution as rows. And a rare kind weighs as much
as a frequent one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import chain, combinations
from typing import Any

from discreet.accounting import Accountant
from discreet.budget import Charge
from discreet.errors import UsageError
from discreet.policy import domain as domains
from discreet.policy.owners import EachRow
from discreet.policy.policy import Policy, Table
from discreet.synthetic.columns.axes import Grid, axes_of
from discreet.synthetic.columns.axis import USUAL, Axis, Intervals, Unlisted
from discreet.synthetic.compare import comparison, comparison_work
from discreet.synthetic.describe import (
    CarryOut,
    Commission,
    Fetch,
    Purse,
    currency,
    description,
    private_table,
    require_in_range,
    synthesizer_of,
)
from discreet.synthetic.description import Description
from discreet.synthetic.linked.description import (
    COUNTER,
    LinkedDescription,
    LinkedTable,
    person_column,
)
from discreet.synthetic.linked.needs import LinkedNames, TableNames, needs
from discreet.synthetic.linked.rows import LinkedRows, rows_given_people
from discreet.synthetic.linked.sources import (
    UNIT,
    LinkedTables,
    alike_axis,
    counter_axes,
    counters,
    kind_of,
    kinds,
    people_source,
    rows_source,
)
from discreet.synthetic.marginals import Progress
from discreet.synthetic.source import TableSource
from discreet.synthetic.synthesizers.family import DEFAULT, FOR_WORKLOADS
from discreet.synthetic.workload import EVERY_PAIR, Workload
from discreet.vault.allowance import Allowance

# the share of the amount for the people; the other tables get equal shares of the rest
PEOPLE_SHARE = Fraction(3, 5)
# the weights of pairs with a column of the row, and of pairs of the person's columns
OWN = 2
THEIRS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Lot(LinkedTables):
    """An order for a description of several tables, checked and priced."""

    synthesizer: str
    intervals: Intervals
    axes: Mapping[str, tuple[Grid, ...]]
    inside: Accountant
    paid: Charge
    cost: Charge
    workloads: Mapping[str, Workload]  # by table, of the parts that questions ask for

    @property
    def question(self) -> str:
        """Return the identity of an order: equal for two orders of the same descriptions."""
        parts = {
            "describe together": 3,  # counts up when a part changes its meaning
            "tables": [self.people.name, *(table.name for table in self.rows)],
            "synthesizer": self.synthesizer,
            "axes": {name: [axis.told for axis in axes] for name, axes in self.axes.items()},
            "inside": self.inside.terms,
            "paid": [str(self.paid.amount), str(self.paid.delta)],
            "workloads": {name: each.sets for name, each in self.workloads.items()},
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def text(self) -> str:
        names = ", ".join(table.name for table in (self.people, *self.rows))
        return f"describe {names} together by {self.synthesizer}"

    @property
    def meta(self) -> dict[str, str]:
        """Return the facts by which an auditor computes the charge from the mechanisms."""
        return {
            "currency": repr(self.inside),
            "amount": str(self.paid.amount),
            "delta": str(self.paid.delta),
        }

    @property
    def max_rows(self) -> int:
        return max(table.max_rows for table in self.rows)

    def carry_out(self, progress: Progress | None) -> CarryOut:
        """Return the function that makes the descriptions and spends what was paid."""

        def do(allowance: Allowance, fetch: Fetch, certificate: dict[str, Any]) -> bytes:
            return describe_together(self, allowance, fetch, certificate, progress)

        return do


def lot(
    policy: Policy,
    tables: Sequence[str],
    purse: Purse,
    *,
    synthesizer: str | None = None,
    intervals: Intervals = USUAL,
    questions: Sequence[str] | None = None,
) -> Lot:
    """Check and price a request for several tables, without reading data."""
    name = synthesizer_of(synthesizer, questions)
    declarations = [private_table(policy, table) for table in tables]
    _require_together(declarations)
    people, *others = declarations
    rows = tuple(others)
    if name == "random":
        intervals = replace(intervals, split=False)
    plain = replace(intervals, quantiles=())
    axes = {table.name: axes_of(table, columns=None, intervals=plain) for table in declarations}
    if intervals.quantiles:
        raise UsageError("Quantiles are found for one table at a time; describe several without.")
    width = sum(map(len, axes.values())) + sum(len(counters(table)) for table in rows)
    grids = chain.from_iterable(axes.values())
    texts = [axis.name for axis in grids if isinstance(axis, Unlisted)]
    inside, paid, cost = currency(purse, questions=3 * width, texts=bool(texts))
    if texts and not paid.delta:
        raise UsageError(
            f"{texts[0]} is text, whose values are found at the price of some δ, and the budget has none."
        )
    together = LinkedTables(people=people, rows=rows, policy=policy)
    # A row of the other tables is `UNIT` units, and one person moves as many units: so its noise, in
    # rows, is the same.
    require_in_range(inside, paid, people_source(together).moved)
    return Lot(
        people=people,
        rows=rows,
        policy=policy,
        synthesizer=name,
        intervals=intervals,
        axes=axes,
        inside=inside,
        paid=paid,
        cost=cost,
        workloads={} if questions is None else needs(questions, _tables(together, axes)),
    )


def _tables(work: LinkedTables, axes: Mapping[str, tuple[Grid, ...]]) -> LinkedNames:
    """Return the names of what is described, for `needs`."""
    columns = {name: tuple(axis.name for axis in grids) for name, grids in axes.items()}
    rows = {}
    for table in work.rows:
        kind = kind_of(table)
        rows[table.name] = TableNames(
            columns=columns[table.name],
            kind=None if kind is None else columns[table.name].index(kind.name),
            counters=dict(zip(kinds(table) or (None,), counters(table), strict=True)),
        )
    return LinkedNames(name=work.people.name, columns=columns[work.people.name], rows=rows)


def _require_together(tables: Sequence[Table]) -> None:
    """Refuse tables that we cannot describe together."""
    names = {table.name for table in tables}
    if len(tables) < 2 or len(names) < len(tables):
        raise UsageError("Name at least two tables, each of them once: the people first.")
    people = tables[0]
    if people.max_rows != 1:
        raise UsageError(
            f"The first of several tables has one row a person, and {people.name} may have {people.max_rows}. "
            "Name the table of people first, or declare max_rows: 1."
        )
    for table in tables:
        if isinstance(table.owner, EachRow):
            raise UsageError(
                f"In {table.name} every row is somebody else's: nothing joins it to other tables."
            )
        for column in table.columns:
            if table is people and column.startswith(COUNTER):
                raise UsageError(
                    f"{table.name}.{column} has the name of a number of rows. Call it otherwise."
                )
        if table.max_rows > UNIT:
            raise UsageError(
                f"{table.name} may have {table.max_rows} rows a person, and several tables together "
                f"take at most {UNIT}. Declare a smaller max_rows, or describe {table.name} alone."
            )


def sources(
    policy: Policy, linked: LinkedDescription
) -> list[tuple[tuple[Grid, ...], TableSource]]:
    """Return the columns that the policy has now, and the rows, for each part of a description of
    several tables.
    """
    declarations = [private_table(policy, name) for name in linked.tables]
    people, *others = declarations
    rows = tuple(others)
    axes = {table.name: axes_of(table, columns=None) for table in declarations}
    work = LinkedTables(people=people, rows=rows, policy=policy)
    numbers = [axis for table in rows for axis in counter_axes(table)]
    first = (*axes[people.name], *numbers)
    parts: list[tuple[tuple[Grid, ...], TableSource]] = [(first, people_source(work))]
    for table in rows:
        columns = list(axes[table.name])
        for axis in (*axes[people.name], alike_axis(table)):
            name = person_column(people.name, axis.name)
            columns.append(replace(axis, column=replace(axis.column, name=name)))
        parts.append((tuple(columns), rows_source(work, table)))
    for (grids, _), part in zip(parts, linked.parts, strict=True):
        if [axis.name for axis in grids] != [axis.name for axis in part.axes]:
            raise UsageError(
                "The description has other columns than the tables have now; describe them again."
            )
    return parts


def comparisons(
    policy: Policy, linked: LinkedDescription, purse: Purse
) -> list[tuple[Commission, CarryOut]]:
    """Check and price a comparison of each part with its table, without reading data.

    The parts get equal shares of the amount.
    """
    if not isinstance(linked, LinkedDescription):
        raise UsageError(
            f"Pass a description, from describe_together or load, not {type(linked).__name__}."
        )
    part = replace(purse, amount=purse.amount / len(linked.parts))
    works = []
    for own, joined in zip(linked.parts, sources(policy, linked), strict=True):
        work = comparison(policy, own, part, questions=None, target=None, joined=joined)
        works.append((work, work.carry_out(comparison_work(own, target=None), None)))
    return works


def describe_together(
    work: Lot,
    allowance: Allowance,
    fetch: Fetch,
    certificate: dict[str, Any],
    progress: Progress | None,
) -> bytes:
    """Describe the people, then the rows of each table given their person; spend what was paid."""
    numbers = [axis for table in work.rows for axis in counter_axes(table)]
    axes = (*work.axes[work.people.name], *numbers)
    workload = work.workloads.get(work.people.name, EVERY_PAIR)
    part = _part(work, work.people, axes, people_source(work), PEOPLE_SHARE, workload=workload)
    data = part.marginals(allowance, fetch, progress)
    people = Description.from_bytes(description(data, part, certificate))
    tables = []
    for table in work.rows:
        part = _rows_part(work, table, people)
        data = part.marginals(allowance, fetch, progress)
        own = len(work.axes[table.name])
        kind = _kind_place(work, table)
        synthesizer = None
        if work.synthesizer == DEFAULT:
            rows = LinkedRows(people=people, own=own, kind=kind, counters=counters(table))
            synthesizer = partial(rows_given_people, rows=rows)
        content = description(data, part, certificate, synthesizer)
        part_description = Description.from_bytes(content)
        tables.append(
            LinkedTable(table=table.name, own=own, kind=kind, description=part_description)
        )
    owners = {table.name: table.visible_owner or "owner" for table in (work.people, *work.rows)}
    return LinkedDescription(
        people=people,
        rows=tuple(tables),
        owners=owners,
        cost=certificate["cost"],
        certificate={**certificate, "mechanisms": data.mechanisms},
    ).to_bytes()


def _rows_part(work: Lot, table: Table, people: Description) -> Commission:
    """Return the order for the rows of a table: its own columns, then those of the person on the
    grids that the people's part has found.
    """
    source = rows_source(work, table)
    theirs = list[Axis]()
    texts = {axis.name for axis in work.axes[work.people.name] if isinstance(axis, Unlisted)}
    attributes = people.axes[: len(work.axes[work.people.name])]
    for axis in (*attributes, alike_axis(table)):
        name = person_column(work.people.name, axis.name)
        theirs.append(replace(axis, column=replace(axis.column, name=name)))
        if axis.name in texts:
            domain = axis.column.domain
            assert isinstance(domain, domains.Categories)
            source = source.listing(name, [str(value) for value in domain.values])
    own = work.axes[table.name]
    share = (1 - PEOPLE_SHARE) / len(work.rows)
    workload = work.workloads.get(table.name) or _workload(work, len(own), len(theirs))
    return _part(work, table, (*own, *theirs), source, share, workload=workload)


def _kind_place(work: Lot, table: Table) -> int | None:
    """Return the place of the kind among a table's columns."""
    kind = kind_of(table)
    names = [axis.name for axis in work.axes[table.name]]
    return None if kind is None else names.index(kind.name)


def _workload(work: Lot, own: int, theirs: int) -> Workload:
    """Return a workload in which pairs with a column of the row weigh more than pairs of the
    person's columns.
    """
    if work.synthesizer not in FOR_WORKLOADS:
        return EVERY_PAIR
    pairs = combinations(range(own + theirs), 2)
    return Workload(sets=tuple((pair, OWN if pair[0] < own else THEIRS) for pair in pairs))


def _part(
    work: Lot,
    table: Table,
    axes: tuple[Grid, ...],
    source: TableSource,
    share: Fraction,
    *,
    workload: Workload = EVERY_PAIR,
) -> Commission:
    paid = Charge(amount=work.paid.amount * share, delta=work.paid.delta * share)
    return Commission(
        table=table.name,
        synthesizer=work.synthesizer,
        axes=axes,
        source=source,
        inside=work.inside,
        paid=paid,
        cost=work.cost,
        workload=workload,
    )
