"""Measure running totals: add noise to sums of numbers instead of to each number (S15).

    SELECT day, SUM(COUNT(*)) OVER (ORDER BY day) FROM visits GROUP BY day

If every number gets noise of its own, a total of T numbers has the noise of T draws. Instead one can
measure sums (`mechanisms.running`); then the totals have less noise, and the numbers are
differences of totals. We choose the way in which the widest margin that the question asks for is
smaller. The choice follows from the question, the sizes of the keys and the sensitivities, which
are all public.

Privacy
    `mechanisms.running` defines the sums, and proves that they move by no more than is claimed;
    `sql.check` derives it again. This module only chooses between two proven ways.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sqlglot import exp

from discreet.algebra import Distinct, Persons, Reading, Sum
from discreet.budget import AccountantName
from discreet.mechanisms.currency import currency
from discreet.mechanisms.running import MOST_PERIODS, Grid, lengths, longest
from discreet.sql.after.estimates import Linear
from discreet.sql.after.naming import aggregate_number, key_number, table_name
from discreet.sql.plan.block import Block, Measured, Statistic, Totals
from discreet.sql.plan.keys import Joint, Key
from discreet.sql.plan.plan import TotalOf
from discreet.sql.values.value import Day, Moment, Number

Alone = Callable[
    [int], tuple[Statistic, ...]
]  # what a block would measure if people were only added
MOST_CELLS = 1 << 22  # the most groups times periods: more would take too long
_PLAIN = frozenset({"expressions", "from_", "order", "limit", "offset"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """The running totals that a statement computes from its only block, and other uses of the same
    numbers.
    """

    grid: Grid  # the periods along which totals run
    columns: dict[int, int]  # for each column of the answer that is a running total: its aggregate
    totals: frozenset[int]  # aggregates whose running totals are used
    single: frozenset[int]  # aggregates whose numbers are used in another way

    def of(self, column: int) -> TotalOf | None:
        """Return the running total in a column of the answer; None if it is none."""
        if column not in self.columns:
            return None
        return TotalOf(block=0, estimate=self.columns[column], periods=self.grid.periods)


def find_running_totals(
    tree: exp.Select, blocks: Sequence[Block], *, selected: bool
) -> Uses | None:
    """Return the running totals in a statement over one noisy table; None if none of them can be
    measured. `selected` is True if rows may be left out after noise.
    """
    if len(blocks) != 1 or not isinstance(blocks[0].kind, Measured):
        return None
    walk = _Walk(block=blocks[0], selected=selected)
    if tree.find(exp.Window) is None or not walk.possible(tree):
        return None
    columns = walk.columns(tree)
    if len(walk.axes) != 1:  # totals along several keys would need different sums
        return None
    axis = walk.axes.pop()
    sizes = _sizes(blocks[0])
    if sizes is None:
        return None
    return Uses(
        grid=Grid(periods=sizes[axis], inner=math.prod(sizes[axis + 1 :])),
        columns=columns,
        totals=frozenset(walk.totals),
        single=frozenset(walk.single),
    )


def measure_running_totals(
    block: Block, uses: Uses, alone: Alone, *, accountant: AccountantName
) -> Block:
    """Return the block; statistics whose margins become smaller measure running totals."""
    if currency(accountant).norm != "l2" or block.derived:
        return block  # Laplace noise depends on the l1 of the sums, which grows as much as it saves
    grid = uses.grid
    if not 2 <= grid.periods <= MOST_PERIODS or block.cells * grid.periods > MOST_CELLS:
        return block
    person = {(each.reads, each.forms): each.sensitivity.l1 for each in alone(block.cells)}
    statistics = tuple(_choose_noise(each, person, uses, block) for each in block.statistics)
    return replace(block, statistics=statistics)


def _choose_noise(
    statistic: Statistic, person: Mapping[Any, int], uses: Uses, block: Block
) -> Statistic:
    """Return the statistic with noise on its totals or on its numbers, whichever has the smaller
    margin. `person` has the l1 of what one person adds.
    """
    grid = uses.grid
    numbers = {number for number, _ in statistic.estimates}
    linear = all(isinstance(each, Linear) and not each.rounds for _, each in statistic.estimates)
    one = person.get((statistic.reads, statistic.forms))
    if not numbers & uses.totals or not linear or one is None:
        return statistic
    people = 1  # see `Checker.require_totals`: the square of 1, √2 or 2
    if block.neighbors == "change_one":
        people = 2 if _only_adds(statistic) else 4
    l2_squared = people * longest(grid.periods) * one**2
    lengths_of_totals, lengths_of_numbers = lengths(grid.periods)
    widest = float(lengths_of_totals.max())
    if numbers & uses.single:
        widest = max(widest, float(lengths_of_numbers.max()))
    apart = statistic.sensitivity.l2_squared * grid.periods
    if l2_squared * widest**2 >= apart:
        return statistic
    return replace(statistic, totals=Totals(grid=grid, l2_squared=l2_squared))


def _only_adds(statistic: Statistic) -> bool:
    """Return True if nobody can make a number smaller."""
    if any(factor < 0 for form in statistic.forms for factor in form):
        return False
    return all(map(_never_negative, statistic.reads))


def _never_negative(reading: Reading) -> bool:
    """Return True if no row makes a reading smaller."""
    match reading:
        case Persons() | Distinct():
            return True
        case Sum(factors=factors):
            return all(each.lo >= 0 for each in factors)
    return False


@dataclass(slots=True, kw_only=True)
class _Walk:
    """Looks for running totals in SELECTs that only list and compute columns of the noisy table."""

    block: Block
    selected: bool
    axes: set[int] = field(default_factory=set)
    totals: set[int] = field(default_factory=set)
    single: set[int] = field(default_factory=set)

    def possible(self, tree: exp.Select) -> bool:
        """Return True if the statement has one row for each row of the noisy table, in any order."""
        block = self.block
        if block.unknown or tree.find(exp.SetOperation):
            return False
        if len(set(block.places)) < len(block.places):
            return False
        return all(self._only_lists(each, tree) for each in tree.find_all(exp.Select))

    def _only_lists(self, node: exp.Select, tree: exp.Select) -> bool:
        """Return True if a SELECT has one row for each row that it reads, and is the statement or
        stands in its FROM clause.
        """
        clauses = {name for name, part in node.args.items() if part}
        if not clauses <= _PLAIN | {"where"} or "from_" not in clauses:
            return False
        if "where" in clauses and not self._keeps_all(node):
            return False
        if node is tree:
            return True
        inside = isinstance(node.parent, exp.Subquery) and isinstance(node.parent.parent, exp.From)
        return inside and not clauses & {"limit", "offset"}

    def _keeps_all(self, node: exp.Select) -> bool:
        """Return True if WHERE keeps every group, because groups that it excludes are not measured."""
        if self.selected or not any(isinstance(key, Joint) for key in self.block.keys):
            return False
        columns = node.args["where"].find_all(exp.Column)
        names = [self._noisy_column(each, node) or "" for each in columns]
        return all(key_number(name) is not None for name in names)

    def columns(self, tree: exp.Select) -> dict[int, int]:
        """Collect the uses of aggregates; return the aggregate of each column that is a running
        total.
        """
        totals = {}
        for place, item in enumerate(tree.expressions):
            number = self._total(item.unalias(), tree)
            if number is not None:
                totals[place] = number
            self._collect(item.unalias(), tree)
        for select in tree.find_all(exp.Select):
            for item in select.expressions:
                if select is not tree and not isinstance(item.unalias(), exp.Column):
                    self._collect(item.unalias(), select)
        return totals

    def _collect(self, node: exp.Expression, select: exp.Select) -> None:
        """Note the aggregates that an expression uses, as running totals or in another way."""
        number = self._total(node, select)
        if number is not None:
            self.totals.add(number)
            return
        if isinstance(node, exp.Column):
            aggregate = aggregate_number(self._noisy_column(node, select) or "")
            if aggregate is not None:
                self.single.add(aggregate)
        for part in _children(node):
            self._collect(part, select)

    def _total(self, node: exp.Expression, select: exp.Select) -> int | None:
        """Return the aggregate of which an expression is the running total; None if it is none."""
        if not isinstance(node, exp.Window) or not isinstance(node.this, exp.Sum):
            return None
        number = aggregate_number(self._noisy_column(node.this.this, select) or "")
        order = node.args.get("order")
        if number is None or order is None or not _from_the_first(node.args.get("spec")):
            return None
        [first, *rest] = order.expressions
        axis = key_number(self._noisy_column(first.this, select) or "")
        parts = {
            key_number(self._noisy_column(each, select) or "")
            for each in node.args.get("partition_by") or []
        }
        others = set(range(len(self.block.parts))) - {axis}
        if rest or first.args.get("desc") or first.args.get("nulls_first") or axis is None:
            return None
        key = self.block.parts[axis]
        ordered = isinstance(key, Key) and isinstance(key.domain, Number | Day | Moment)
        if not ordered or parts != others:
            return None
        self.axes.add(axis)
        return number

    def _noisy_column(self, node: exp.Expression, select: exp.Select) -> str | None:
        """Return the name of the noisy table's column that an expression is; None if it is none, or
        computed.
        """
        while isinstance(node, exp.Column):
            source = select.args["from_"].this
            if isinstance(source, exp.Table):
                return node.name if source.name == table_name(0) else None
            if not isinstance(source, exp.Subquery) or not isinstance(source.this, exp.Select):
                return None
            select = source.this
            name = node.name.lower()
            items = [each for each in select.expressions if each.alias_or_name.lower() == name]
            if len(items) != 1:
                return None
            node = items[0].unalias()
        return None


def _sizes(block: Block) -> tuple[int, ...] | None:
    """Return the number of values of each key if every combination of them is a group; otherwise
    None.
    """
    if not any(isinstance(key, Joint) for key in block.keys):
        return tuple(block.sizes)
    [joint] = block.keys  # a joint key has all keys of its block
    assert isinstance(joint, Joint)
    sizes = [key.size for key in joint.keys]
    places = np.unravel_index(np.array(joint.cells), sizes)
    values = [np.unique(each) for each in places]
    grid = np.ravel_multi_index(np.ix_(*values), sizes).ravel()
    if not np.array_equal(grid, joint.cells):
        return None
    return tuple(map(len, values))


def _from_the_first(spec: exp.WindowSpec | None) -> bool:
    """Return True if a window's frame is all rows up to this one."""
    if spec is None:
        return True
    args = {name: part for name, part in spec.args.items() if part}
    return (
        args.pop("start", None) == "UNBOUNDED"
        and args.pop("start_side", None) == "PRECEDING"
        and args.pop("end", "CURRENT ROW") == "CURRENT ROW"
        and args.pop("kind", "ROWS") in ("ROWS", "RANGE")
        and not args
    )


def _children(node: exp.Expression) -> Iterator[exp.Expression]:
    for part in node.args.values():
        for each in part if isinstance(part, list) else [part]:
            if isinstance(each, exp.Expression):
                yield each
