"""Several tables of the same people, described together: people, and for each further table their
rows.

people        the columns of the first table, in which a person has one row, and how many rows each
              has in the others
rows          of each further table: its columns beside those of the person, so that rows are drawn
              given whose they are

Privacy
    All is one charge, for a person with all of her rows in all tables. The first part is a table of
    one row a person: its last columns count a person's own rows, so one person still moves one row
    (two under change_one). In the second all rows of one person weigh at most u together, however
    many there are: see `sources`. The counts of a marginal then move by at most u in l1; and by at
    most u in l2, because a vector's l2 is at most its l1 (both are met by a person whose rows lie in
    one cell; 2u and sqrt(2) u under change_one). Noise is
    added to whole multiples of 1 / u, and what is divided by u afterwards is released already. The
    grids of a person's columns are those that the first part has released. Both parts spend from
    one allowance, one after the other.

Why weights. Counted one by one, m rows a person would need m times the noise. Given a person, a kind
and the number of rows of that kind, a row drawn by weight is any of them alike, so the attributes of
rows given these are the same; and a kind that few rows have weighs as much as another.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import combinations
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
)
from discreet.synthetic.description import Description
from discreet.synthetic.linked.description import (
    COUNTER,
    LinkedDescription,
    LinkedTable,
    person_column,
)
from discreet.synthetic.linked.rows import LinkedRows, rows_given_people
from discreet.synthetic.linked.sources import (
    UNIT,
    LinkedTables,
    alike_axis,
    counter_axes,
    counters,
    kind_of,
    people_source,
    rows_source,
)
from discreet.synthetic.marginals import Progress
from discreet.synthetic.source import TableSource
from discreet.synthetic.synthesizers.family import DEFAULT, FOR_WORKLOADS, SYNTHESIZERS
from discreet.synthetic.workload import EVERY_PAIR, Workload
from discreet.vault.allowance import Allowance

# of what was paid, for the people; the tables of their rows share the rest alike
PEOPLE_SHARE = Fraction(3, 5)
# how much pairs count that have a column of the row, and pairs of a person's columns alone
OWN, THEIRS = (2, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lot(LinkedTables):
    """Tables to be described together, checked and priced."""

    synthesizer: str
    intervals: Intervals
    axes: Mapping[str, tuple[Grid, ...]]
    inside: Accountant
    paid: Charge
    cost: Charge

    @property
    def question(self) -> str:
        """Return a text that is equal for two orders of the same descriptions."""
        parts = {
            "describe together": 2,  # counts up when a part changes its meaning
            "tables": [self.people.name, *(each.name for each in self.rows)],
            "synthesizer": self.synthesizer,
            "axes": {name: [axis.told for axis in axes] for name, axes in self.axes.items()},
            "inside": self.inside.terms,
            "paid": [str(self.paid.amount), str(self.paid.delta)],
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def text(self) -> str:
        names = ", ".join(each.name for each in (self.people, *self.rows))
        return f"describe {names} together by {self.synthesizer}"

    @property
    def meta(self) -> dict[str, str]:
        """Return how an auditor gets from the mechanisms to the charge."""
        return {
            "currency": repr(self.inside),
            "amount": str(self.paid.amount),
            "delta": str(self.paid.delta),
        }

    @property
    def max_rows(self) -> int:
        return max(each.max_rows for each in self.rows)

    def carry_out(self, progress: Progress | None) -> CarryOut:
        """Make the descriptions, within what was paid."""
        return lambda allowance, fetch, told: describe_together(
            self, allowance, fetch, told, progress
        )


def lot(
    policy: Policy,
    tables: Sequence[str],
    purse: Purse,
    *,
    synthesizer: str | None = None,
    intervals: Intervals = USUAL,
) -> Lot:
    """Check and price a request for several tables. Reads no data."""
    chosen = DEFAULT if synthesizer is None else synthesizer
    if chosen not in SYNTHESIZERS:
        raise UsageError(
            f"There is no synthesizer {chosen!r}; there are {', '.join(SYNTHESIZERS)}."
        )
    found = [private_table(policy, name) for name in tables]
    _require_together(found)
    people, rows = found[0], tuple(found[1:])
    if chosen == "random":
        intervals = replace(intervals, split=False)
    axes = {
        table.name: axes_of(table, columns=None, intervals=replace(intervals, quantiles=()))
        for table in found
    }
    if intervals.quantiles:
        raise UsageError("Quantiles are found for one table at a time; describe several without.")
    width = sum(map(len, axes.values())) + sum(len(counters(table)) for table in rows)
    texts = [
        axis.name for several in axes.values() for axis in several if isinstance(axis, Unlisted)
    ]
    inside, paid, cost = currency(purse, questions=3 * width, texts=bool(texts))
    if texts and not paid.delta:
        raise UsageError(
            f"{texts[0]} is text, whose values are found at the price of some δ, and the budget has none."
        )
    together = LinkedTables(people=people, rows=rows, policy=policy)
    # rows beside people are counted in units, of which one person moves as many as one row has
    require_in_range(inside, paid, people_source(together).moved)
    return Lot(
        people=people,
        rows=rows,
        policy=policy,
        synthesizer=chosen,
        intervals=intervals,
        axes=axes,
        inside=inside,
        paid=paid,
        cost=cost,
    )


def _require_together(found: Sequence[Table]) -> None:
    """Refuse tables that cannot be described together."""
    if len(found) < 2 or len({table.name for table in found}) < len(found):
        raise UsageError("Name at least two tables, each of them once: the people first.")
    people = found[0]
    if people.max_rows != 1:
        raise UsageError(
            f"The first of several tables has one row a person, and {people.name} may have {people.max_rows}. "
            "Name the table of people first, or declare max_rows: 1."
        )
    for table in found:
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
    """Return, for each part of a description of several tables, its columns as the policy has them
    now, and its rows.
    """
    found = [private_table(policy, name) for name in linked.tables]
    people, rows = found[0], tuple(found[1:])
    axes = {table.name: axes_of(table, columns=None) for table in found}
    work = LinkedTables(people=people, rows=rows, policy=policy)
    counted = [axis for table in rows for axis in counter_axes(table)]
    first = (*axes[people.name], *counted)
    parts: list[tuple[tuple[Grid, ...], TableSource]] = [(first, people_source(work))]
    for table in rows:
        known = (
            replace(axis, column=replace(axis.column, name=person_column(people.name, axis.name)))
            for axis in (*axes[people.name], alike_axis(table))
        )
        parts.append(((*axes[table.name], *known), rows_source(work, table)))
    for (grids, _), part in zip(parts, linked.parts, strict=True):
        if [axis.name for axis in grids] != [axis.name for axis in part.axes]:
            raise UsageError(
                "The description has other columns than the tables have now; describe them again."
            )
    return parts


def comparisons(
    policy: Policy, linked: LinkedDescription, purse: Purse
) -> list[tuple[Commission, CarryOut]]:
    """Check and price a comparison of each part with the truth, each for the same part of what may
    be spent. Reads no data.
    """
    if not isinstance(linked, LinkedDescription):
        raise UsageError(
            f"Pass a description, from describe_together or load, not {type(linked).__name__}."
        )
    part = replace(purse, amount=purse.amount / len(linked.parts))
    found = []
    for each, joined in zip(linked.parts, sources(policy, linked), strict=True):
        work = comparison(policy, each, part, questions=None, target=None, joined=joined)
        found.append((work, work.carry_out(comparison_work(each, target=None), None)))
    return found


def describe_together(
    work: Lot,
    allowance: Allowance,
    fetch: Fetch,
    certificate: dict[str, Any],
    progress: Progress | None,
) -> bytes:
    """People first, then the rows of each table given whose they are; within what was paid."""
    counted = [axis for table in work.rows for axis in counter_axes(table)]
    axes = (*work.axes[work.people.name], *counted)
    part = _part(work, work.people, axes, people_source(work), PEOPLE_SHARE)
    data = part.marginals(allowance, fetch, progress)
    people = Description.from_bytes(description(data, part, certificate))
    found = []
    for table in work.rows:
        part = _rows_part(work, table, people)
        data = part.marginals(allowance, fetch, progress)
        own, kind = len(work.axes[table.name]), _kind_place(work, table)
        given = None
        if work.synthesizer == DEFAULT:
            rows = LinkedRows(people=people, own=own, kind=kind, counters=counters(table))
            given = partial(rows_given_people, rows=rows)
        content = description(data, part, certificate, given)
        described = Description.from_bytes(content)
        found.append(LinkedTable(table=table.name, own=own, kind=kind, description=described))
    told = {**certificate, "mechanisms": data.mechanisms}
    return LinkedDescription(
        people=people,
        rows=tuple(found),
        owners={table.name: table.visible_owner or "owner" for table in (work.people, *work.rows)},
        cost=certificate["cost"],
        certificate=told,
    ).to_bytes()


def _rows_part(work: Lot, table: Table, people: Description) -> Commission:
    """The rows of a table, on grids of their own beside those that the people's part has found."""
    source, known = rows_source(work, table), list[Axis]()
    texts = {axis.name for axis in work.axes[work.people.name] if isinstance(axis, Unlisted)}
    attributes = people.axes[: len(work.axes[work.people.name])]
    for axis in (*attributes, alike_axis(table)):
        name = person_column(work.people.name, axis.name)
        known.append(replace(axis, column=replace(axis.column, name=name)))
        if axis.name in texts:
            listed = axis.column.domain
            assert isinstance(listed, domains.Categories)
            source = source.listing(name, [str(value) for value in listed.values])
    own, share = work.axes[table.name], (1 - PEOPLE_SHARE) / len(work.rows)
    workload = _workload(work, len(own), len(known))
    return _part(work, table, (*own, *known), source, share, workload=workload)


def _kind_place(work: Lot, table: Table) -> int | None:
    kind = kind_of(table)
    names = [axis.name for axis in work.axes[table.name]]
    return None if kind is None else names.index(kind.name)


def _workload(work: Lot, own: int, known: int) -> Workload:
    """Return pairs with a column of the row first; a person's own pairs are needed too, so as not
    to count them twice.
    """
    if work.synthesizer not in FOR_WORKLOADS:
        return EVERY_PAIR
    pairs = combinations(range(own + known), 2)
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
