"""Measure running totals of noisy numbers: the noise is added to sums instead of each number (S15).

    SELECT day, SUM(COUNT(*)) OVER (ORDER BY day) FROM visits GROUP BY day

Noise of its own on every number is as much as the numbers can bear, but a total of T numbers then
has T draws. Where totals are asked for, one can measure them instead (`mechanisms.running`), and
find the numbers as their differences. Which is done follows from the question, the sizes of the
keys and the sensitivities, which are all public: it is the way in which the widest margin among
what is asked for is the smaller one.

Privacy
    The sums that are measured, and why they move by no more than is claimed, are in
    `mechanisms.running`; `sql.check` derives it again. Here is decided only which of two proven
    ways is taken.
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

Alone = Callable[[int], tuple[Statistic, ...]]  # what a block measures where people are added only
MOST_CELLS = 1 << 22  # of the grid, times its periods: more take too long
_PLAIN = frozenset({"expressions", "from_", "order", "limit", "offset"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """The running totals that a statement asks of its only block, and its other uses of the same
    numbers.
    """

    grid: Grid  # along which totals run
    columns: dict[int, int]  # columns of the answer that are running totals: of which aggregate
    totals: frozenset[int]  # aggregates whose running totals are used
    single: frozenset[int]  # aggregates whose numbers are used in any other way

    def of(self, column: int) -> TotalOf | None:
        """Return the aggregate whose running total a column of the answer is."""
        if column not in self.columns:
            return None
        return TotalOf(block=0, estimate=self.columns[column], periods=self.grid.periods)


def find_running_totals(
    tree: exp.Select, blocks: Sequence[Block], *, selected: bool
) -> Uses | None:
    """Return the running totals in a statement over one noisy table; None if it has none that can
    be measured. `selected` says that rows may be left out after noise.
    """
    if len(blocks) != 1 or not isinstance(blocks[0].kind, Measured):
        return None
    walk = _Walk(block=blocks[0], selected=selected)
    if tree.find(exp.Window) is None or not walk.possible(tree):
        return None
    columns = walk.columns(tree)
    if len(walk.axes) != 1:  # totals along different keys: each would need sums of its own
        return None
    axis, sizes = walk.axes.pop(), _sizes(blocks[0])
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
    """Return the block with running totals measured instead of single numbers, where margins are
    smaller that way.
    """
    if currency(accountant).norm != "l2" or block.derived:
        return block  # Laplace noise needs the l1 of the sums, which is as large as what it saves
    grid = uses.grid
    if not 2 <= grid.periods <= MOST_PERIODS or block.cells * grid.periods > MOST_CELLS:
        return block
    people = {(each.reads, each.forms): each.sensitivity.l1 for each in alone(block.cells)}
    statistics = tuple(_choose_noise(each, people, uses, block) for each in block.statistics)
    return replace(block, statistics=statistics)


def _choose_noise(
    statistic: Statistic, alone: Mapping[Any, int], uses: Uses, block: Block
) -> Statistic:
    """Return the statistic with noise on its totals or on its numbers, by the smaller margin;
    `alone` is the l1 of one person's part.
    """
    numbers, grid = {number for number, _ in statistic.estimates}, uses.grid
    straight = all(isinstance(each, Linear) and not each.rounds for _, each in statistic.estimates)
    one = alone.get((statistic.reads, statistic.forms))
    if not numbers & uses.totals or not straight or one is None:
        return statistic
    people = 1 if block.neighbors == "add_remove" else 2 if _only_adds(statistic) else 4
    moved = people * longest(grid.periods) * one**2
    of_totals, of_numbers = (float(each.max()) for each in lengths(grid.periods))
    widest = max(of_totals, of_numbers) if numbers & uses.single else of_totals
    apart = statistic.sensitivity.l2_squared * grid.periods
    if moved * widest**2 >= apart:
        return statistic
    return replace(statistic, totals=Totals(grid=grid, l2_squared=moved))


def _only_adds(statistic: Statistic) -> bool:
    """Return True if nobody makes a number smaller."""
    whole = all(factor >= 0 for form in statistic.forms for factor in form)
    return whole and all(map(_never_negative, statistic.reads))


def _never_negative(reading: Reading) -> bool:
    match reading:
        case Persons() | Distinct():
            return True
        case Sum(factors=factors):
            return all(each.lo >= 0 for each in factors)
    return False


@dataclass(slots=True, kw_only=True)
class _Walk:
    """Looks through SELECTs that only list and compute columns, down to the noisy table, for
    running totals.
    """

    block: Block
    selected: bool
    axes: set[int] = field(default_factory=set)
    totals: set[int] = field(default_factory=set)
    single: set[int] = field(default_factory=set)

    def possible(self, tree: exp.Select) -> bool:
        """Return True if each row of the statement is one of the noisy table's, in any order."""
        block = self.block
        return (
            not block.unknown
            and len(set(block.places)) == len(block.places)
            and all(self._only_lists(each, tree) for each in tree.find_all(exp.Select))
            and not tree.find(exp.SetOperation)
        )

    def _only_lists(self, node: exp.Select, tree: exp.Select) -> bool:
        """Return True if a SELECT has a row for each row of what it reads, and is read by FROM."""
        used = {name for name, part in node.args.items() if part}
        if not used <= _PLAIN | {"where"} or "from_" not in used:
            return False
        if "where" in used and not self._leaves_all(node):
            return False
        if node is tree:
            return True
        inside = isinstance(node.parent, exp.Subquery) and isinstance(node.parent.parent, exp.From)
        return inside and not used & {"limit", "offset"}

    def _leaves_all(self, node: exp.Select) -> bool:
        """Return True if WHERE leaves every group: those that it rules out were not measured."""
        listed = any(isinstance(key, Joint) for key in self.block.keys)
        stored = [
            self._stored(each, node) or "" for each in node.args["where"].find_all(exp.Column)
        ]
        return listed and not self.selected and all(key_number(each) is not None for each in stored)

    def columns(self, tree: exp.Select) -> dict[int, int]:
        """Collect how aggregates are used; return the columns that are running totals."""
        found = {}
        for place, item in enumerate(tree.expressions):
            number = self._total(item.unalias(), tree)
            if number is not None:
                found[place] = number
            self._collect(item.unalias(), tree)
        for select in tree.find_all(exp.Select):
            for item in select.expressions:
                if select is not tree and not isinstance(item.unalias(), exp.Column):
                    self._collect(item.unalias(), select)
        return found

    def _collect(self, node: exp.Expression, select: exp.Select) -> None:
        number = self._total(node, select)
        if number is not None:
            self.totals.add(number)
            return
        if isinstance(node, exp.Column):
            used = aggregate_number(self._stored(node, select) or "")
            self.single |= set() if used is None else {used}
        for part in _children(node):
            self._collect(part, select)

    def _total(self, node: exp.Expression, select: exp.Select) -> int | None:
        """Return the aggregate whose running total an expression is."""
        if not isinstance(node, exp.Window) or not isinstance(node.this, exp.Sum):
            return None
        number = aggregate_number(self._stored(node.this.this, select) or "")
        order = node.args.get("order")
        if number is None or order is None or not _from_the_first(node.args.get("spec")):
            return None
        [first, *rest] = order.expressions
        axis = key_number(self._stored(first.this, select) or "")
        parts = {
            key_number(self._stored(each, select) or "")
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

    def _stored(self, node: exp.Expression, select: exp.Select) -> str | None:
        """Return the column of the noisy table that a column is, as it is."""
        while isinstance(node, exp.Column):
            source = select.args["from_"].this
            if isinstance(source, exp.Table):
                return node.name if source.name == table_name(0) else None
            if not isinstance(source, exp.Subquery) or not isinstance(source.this, exp.Select):
                return None
            select, name = source.this, node.name.lower()
            items = [each for each in select.expressions if each.alias_or_name.lower() == name]
            if len(items) != 1:
                return None
            node = items[0].unalias()
        return None


def _sizes(block: Block) -> tuple[int, ...] | None:
    """Return how many values each key has, where every combination of them is a group."""
    if not any(isinstance(key, Joint) for key in block.keys):
        return tuple(block.sizes)
    [joint] = block.keys  # alone: no other key is there
    assert isinstance(joint, Joint)
    sizes = [key.size for key in joint.keys]
    values = [np.unique(each) for each in np.unravel_index(np.array(joint.cells), sizes)]
    whole = np.ravel_multi_index(np.ix_(*values), sizes).ravel()
    if not np.array_equal(whole, joint.cells):
        return None
    return tuple(map(len, values))


def _from_the_first(spec: exp.WindowSpec | None) -> bool:
    """Return True if a window has all rows up to this one."""
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
