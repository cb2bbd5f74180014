"""Find the sets of people (worlds) that fit published statistics, with a constraint program.

The program decides, for each cell, the number of its people and the sum of their positions. If a
published median lies between two people, it also decides the highest and lowest position of a cell.
Every solution stands for a known number of worlds (`Solution.worlds`), so worlds that only exchange
twins are never listed. The solver is CP-SAT of ortools.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor, lcm, prod
from time import monotonic
from typing import Any

from discreet.attacks.experiment.dice import Dice
from discreet.attacks.inputs.published import Count, Mean, Quantile, Sum, Tables
from discreet.attacks.solve.cells import Frame, RecordCell, arrangements, cells, spacing
from discreet.errors import UsageError
from discreet.extras import missing

Record = tuple[tuple[str, Any], ...]
"""A row of the published domain as (column, value) pairs, so that rows can be counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """A cell with n people, whose positions have the sum `total`. `top` and `bottom` are their
    highest and lowest position, if the program decides them.
    """

    cell: RecordCell
    n: int
    total: int
    top: int | None
    bottom: int | None

    def ways(self, position: int = 0, copies: int = 0) -> int:
        """Return the number of such sets of people, with `copies` of one record at `position`."""
        lows = [self.cell.low] if self.bottom is None else [self.bottom, self.bottom + 1]
        highs = [self.cell.high] if self.top is None else [self.top, self.top - 1]
        found = 0
        # by inclusion and exclusion, because somebody must be at the bottom and somebody at the top
        for i, low in enumerate(lows):
            for j, high in enumerate(highs):
                if low <= high and (not copies or low <= position <= high):
                    rest = self.total - copies * position - (self.n - copies) * low
                    found += (-1) ** (i + j) * arrangements(
                        high - low + 1, self.cell.twins, self.n - copies, rest
                    )
        return found

    def positions(self) -> range:
        """Return the positions that somebody in the cell may have."""
        low, high, rest = self.cell.low, self.cell.high, self.n - 1
        return range(max(low, self.total - rest * high), min(high, self.total - rest * low) + 1)

    def kept(self, position: int) -> int:
        """Return how many copies of one record at `position` all these sets have."""
        copies = 0
        while copies < self.n and self.ways(position, copies + 1) == self.ways():
            copies += 1
        return copies


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """A solution of the program: the cells that have people."""

    filled: tuple[Filling, ...]

    def kept(self, frame: Frame) -> Counter[Record]:
        """Return the records that all worlds of this solution contain, with the number of
        copies.
        """
        records: Counter[Record] = Counter()
        for filled in self.filled:
            for position in filled.positions() if filled.cell.twins == 1 else ():
                copies = filled.kept(position)
                if copies:
                    records[tuple(next(frame.records(filled.cell, position)).items())] += copies
        return records

    def people(self, frame: Frame) -> list[dict[str, Any]]:
        """Return one world of this solution: the positions of a cell are as equal as possible."""
        rows = []
        for filled in self.filled:
            each, more = divmod(filled.total, filled.n)
            for k in range(filled.n):
                rows.append(next(frame.records(filled.cell, each + (k < more))))
        return rows

    @property
    def worlds(self) -> int:
        return prod(filled.ways() for filled in self.filled)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The solutions that the solver found. `complete` is True if there are no others."""

    solutions: tuple[Solution, ...]
    complete: bool


@dataclass(slots=True)
class Program:
    """A constraint program that is being built. `sums` are linear expressions in positions."""

    frame: Frame
    cells: tuple[RecordCell, ...]
    model: Any
    counts: list[Any] = field(default_factory=list)
    sums: list[Any] = field(default_factory=list)
    tops: dict[int, Any] = field(default_factory=dict)
    bottoms: dict[int, Any] = field(default_factory=dict)
    occupied: dict[int, Any] = field(default_factory=dict)

    def within(self, group: int) -> list[int]:
        return [i for i, cell in enumerate(self.cells) if group in cell.groups]

    def count(self, among: Sequence[int]) -> Any:
        return sum(self.counts[i] for i in among)

    def least(self, expression: Any, bound: int) -> Any:
        """Return a literal that is true if and only if expression >= bound."""
        literal = self.model.new_bool_var("")
        self.model.add(expression >= bound).only_enforce_if(literal)
        self.model.add(expression < bound).only_enforce_if(~literal)
        return literal


def search(tables: Tables, *, cap: int, seconds: float) -> Search:
    """Find up to `cap` solutions within a time limit."""
    return _solutions(_program(tables), cap=cap, seconds=seconds)


def sample(tables: Tables, *, times: int, seconds: float) -> tuple[Solution, ...]:
    """Find solutions far apart, each the first of a new search. They are not drawn uniformly."""
    program = _program(tables)
    end = monotonic() + seconds
    found: list[Solution] = []
    for seed in Dice().below(1 << 31, times).tolist():
        if monotonic() < end:
            found += _solutions(program, cap=1, seconds=end - monotonic(), seed=seed).solutions
    return tuple(found)


def lacking(tables: Tables, records: Counter[Record], *, seconds: float) -> Search:
    """Look for a solution with fewer copies of one of these records. If there is none, all worlds
    contain all of them.
    """
    frame = Frame.of(tables)
    rows = [(dict(record), copies) for record, copies in records.items()]
    at = [
        0 if frame.long is None else frame.long.values.index(row[frame.long.name])
        for row, _ in rows
    ]
    program = _program(tables, cuts=frozenset(cut for place in at for cut in (place, place + 1)))
    fewer = []
    for (row, copies), place in zip(rows, at, strict=True):
        cells_here = [i for i, cell in enumerate(program.cells) if cell.low == place == cell.high]
        here = [i for i in cells_here if row in frame.records(program.cells[i], place)]
        fewer.append(program.model.new_bool_var(""))
        program.model.add(program.count(here) < copies).only_enforce_if(fewer[-1])
    program.model.add_bool_or(fewer)
    return _solutions(program, cap=1, seconds=seconds, seed=int(Dice().below(1 << 31, 1)[0]))


def likeliest(
    tables: Tables, noisy: Sequence[tuple[Count | Sum, int, int]], *, seconds: float
) -> Solution | None:
    """Return the solution that is nearest to noisy statistics, given as (statistic, published
    value, weight). The distance is the sum of weight times difference.

    With Laplace noise and weights of 1 / scale, it is the likeliest solution. The statistics of
    `tables` only limit the search.
    """
    program = _program(tables)
    cost = 0
    for statistic, value, weight in noisy:
        among = program.within(program.frame.group(statistic))
        exact = (
            program.count(among)
            if isinstance(statistic, Count)
            else _total(program, statistic.column, among)
        )
        apart = program.model.new_int_var(0, 10**9, "")
        program.model.add(apart >= exact - value)
        program.model.add(apart >= value - exact)
        cost = cost + weight * apart
    program.model.minimize(cost)
    found = _solutions(program, cap=1, seconds=seconds, best=True)
    return found.solutions[-1] if found.solutions else None


def solver() -> Any:
    """Load CP-SAT when it is needed."""
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise missing("ortools", what="The census attack") from None
    return cp_model


def _program(tables: Tables, cuts: frozenset[int] = frozenset()) -> Program:
    frame = Frame.of(tables)
    program = Program(frame=frame, cells=cells(frame, cuts), model=solver().CpModel())
    for cell in program.cells:
        _people(program, cell)
    for statistic in tables.statistics:
        if isinstance(statistic, Count):
            count = program.count(program.within(frame.group(statistic)))
            program.model.add(count >= statistic.low)
            program.model.add(count <= statistic.high)
        elif isinstance(statistic, Quantile):
            _quantile(program, statistic)
        else:
            _moment(program, statistic)
    _extremes(program)
    return program


def _people(program: Program, cell: RecordCell) -> None:
    """Add the number of people of a cell, and the sum of their positions, which can be any."""
    most = _most(program.frame, [cell])
    count = program.model.new_int_var(0, max(most, 0), "")
    program.counts.append(count)
    if cell.low == cell.high:
        program.sums.append(cell.low * count)
        return
    total = program.model.new_int_var(0, max(most, 0) * cell.high, "")
    program.model.add(total >= cell.low * count)
    program.model.add(total <= cell.high * count)
    program.sums.append(total)


def _most(frame: Frame, among: Sequence[RecordCell]) -> int:
    """Return the most people that the published counts allow in some cells."""
    shared = frozenset.intersection(*(cell.groups for cell in among)) if among else frozenset()
    counts = [
        s.high for s in frame.tables.statistics if isinstance(s, Count) and frame.group(s) in shared
    ]
    if counts:
        return min(counts)
    if len(among) <= 1:
        raise UsageError(
            "Nothing published bounds the number of people. Add the total, "
            'such as {"group": {}, "count": 7} or {"group": {}, "count": [0, 50]}.'
        )
    return sum(_most(frame, [cell]) for cell in among)


def _moment(program: Program, statistic: Sum | Mean) -> None:
    among = program.within(program.frame.group(statistic))
    count, total = program.count(among), _total(program, statistic.column, among)
    if isinstance(statistic, Sum):
        program.model.add(total >= ceil(statistic.low))
        program.model.add(total <= floor(statistic.high))
        return
    program.model.add(count >= 1)
    program.model.add(statistic.low.denominator * total >= statistic.low.numerator * count)
    program.model.add(statistic.high.denominator * total <= statistic.high.numerator * count)


def _total(program: Program, column: str, among: Sequence[int]) -> Any:
    long = program.frame.long
    if long is not None and column == long.name:
        first, step = spacing(long)
        return sum(first * program.counts[i] + step * program.sums[i] for i in among)
    return sum(dict(program.cells[i].values)[column] * program.counts[i] for i in among)


def _quantile(program: Program, statistic: Quantile) -> None:
    """Add the constraints of a quantile, for each number of people that the group may have."""
    frame = program.frame
    group = frame.group(statistic)
    among = program.within(group)
    count = program.count(among)
    known = [s for s in frame.tables.statistics if isinstance(s, Count) and frame.group(s) == group]
    fewest = max([1, *(s.low for s in known)])
    most = min([_most(frame, [program.cells[i] for i in among]), *(s.high for s in known)])
    program.model.add(count >= fewest)
    sizes = range(fewest, most + 1)
    literals = {size: program.model.new_bool_var("") for size in sizes} if len(sizes) > 1 else {}
    if literals:
        program.model.add_exactly_one(literals.values())
    for size in sizes:
        only = [literals[size]] if literals else []
        program.model.add(count == size).only_enforce_if(only)
        _place(program, statistic, among, size, only)


def _place(
    program: Program, statistic: Quantile, among: Sequence[int], size: int, only: list[Any]
) -> None:
    """Add the constraint that (1 - f) x_j + f x_(j+1) is in [low, high], for one size of the
    group.
    """
    j, between = statistic.position(size)
    axis = _Axis.of(program, statistic, among)
    below, above = program.count(axis.below), program.count(axis.above)
    program.model.add(below <= (j if between else j - 1)).only_enforce_if(only)
    program.model.add(above <= size - j).only_enforce_if(only)
    if not between:
        return
    lower, upper = axis.rank(program, j), axis.rank(program, j + 1)
    if axis.long:  # one of the two may also lie outside the quantile's range
        lower = _either(
            program, program.least(below, j), axis.highest_below(program), lower, axis.size
        )
        upper = _either(
            program, program.least(above, size - j), axis.lowest_above(program), upper, axis.size
        )
    scale = lcm(between.denominator, axis.low.denominator, axis.high.denominator)
    value = int((1 - between) * scale) * lower + int(between * scale) * upper
    program.model.add(value >= int(axis.low * scale)).only_enforce_if(only)
    program.model.add(value <= int(axis.high * scale)).only_enforce_if(only)


def _either(program: Program, condition: Any, if_true: Any, if_false: Any, size: int) -> Any:
    chosen = program.model.new_int_var(-1, size, "")
    program.model.add(chosen == if_true).only_enforce_if(condition)
    program.model.add(chosen == if_false).only_enforce_if(~condition)
    return chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    """One column as positions from 0 to `size` - 1, and the cells below and above the range of a
    published quantile.

    In the long column, each cell within that range has a single position. In other columns, all
    cells have.
    """

    long: bool
    low: Fraction
    high: Fraction
    size: int
    first: int
    steps: tuple[tuple[int, int], ...]
    at: dict[int, tuple[int, int]]
    below: tuple[int, ...]
    above: tuple[int, ...]

    @classmethod
    def of(cls, program: Program, statistic: Quantile, among: Sequence[int]) -> _Axis:
        frame = program.frame
        long = frame.long is not None and statistic.column == frame.long.name
        low, high = statistic.low, statistic.high
        numbers = frame.tables.column(statistic.column).numbers
        if long:
            low, high = frame.positions(low, high)
            size, first = len(numbers), max(ceil(low), 0)
            steps = [(v, 1) for v in range(first, min(floor(high), size - 1))]
            at = {i: (program.cells[i].low, program.cells[i].high) for i in among}
        else:
            size, first = numbers[-1] + 1, numbers[0]
            steps = [(a, b - a) for a, b in pairwise(numbers)]
            at = {
                i: (v, v)
                for i in among
                for name, v in program.cells[i].values
                if name == statistic.column
            }
        return cls(
            long=long,
            low=low,
            high=high,
            size=size,
            first=first,
            steps=tuple(steps),
            at=at,
            below=tuple(i for i in among if at[i][1] < low),
            above=tuple(i for i in among if at[i][0] > high),
        )

    def rank(self, program: Program, j: int) -> Any:
        """Return the j-th person's position: a step further for each up to which fewer than j
        lie.
        """
        reached = [([i for i in self.at if self.at[i][1] <= v], step) for v, step in self.steps]
        return self.first + sum(
            step * ~program.least(program.count(among), j) for among, step in reached
        )

    def highest_below(self, program: Program) -> Any:
        highest = program.model.new_int_var(-1, self.size, "")
        program.model.add_max_equality(
            highest, [-1, *(_end(program, i, program.tops, -1) for i in self.below)]
        )
        return highest

    def lowest_above(self, program: Program) -> Any:
        lowest = program.model.new_int_var(-1, self.size, "")
        ends = [_end(program, i, program.bottoms, self.size) for i in self.above]
        program.model.add_min_equality(lowest, [self.size, *ends])
        return lowest


def _end(program: Program, i: int, ends: dict[int, Any], none: int) -> Any:
    """Return a variable: the highest (or lowest) position in a cell; `none` if it is empty."""
    if i not in ends:
        cell = program.cells[i]
        if i not in program.occupied:
            program.occupied[i] = program.least(program.counts[i], 1)
        somebody = program.occupied[i]
        domain = solver().Domain.from_intervals([[none, none], [cell.low, cell.high]])
        ends[i] = program.model.new_int_var_from_domain(domain, "")
        program.model.add(ends[i] == none).only_enforce_if(~somebody)
        program.model.add(ends[i] != none).only_enforce_if(somebody)
    return ends[i]


def _extremes(program: Program) -> None:
    """Limit sums by the highest and lowest position: (n - 1) b + t <= sum <= (n - 1) t + b."""
    for i in program.tops.keys() | program.bottoms.keys():
        cell, count, total = program.cells[i], program.counts[i], program.sums[i]
        if cell.low == cell.high:
            continue
        somebody = program.occupied[i]
        top, bottom = program.tops.get(i, cell.high), program.bottoms.get(i, cell.low)
        least = _times(program, count, bottom)
        most = _times(program, count, top)
        if i in program.tops:
            program.model.add(total >= least - bottom + top).only_enforce_if(somebody)
        if i in program.bottoms:
            program.model.add(total <= most - top + bottom).only_enforce_if(somebody)
        program.model.add(total >= least).only_enforce_if(somebody)
        program.model.add(total <= most).only_enforce_if(somebody)
        if i in program.tops and i in program.bottoms:
            program.model.add(bottom <= top).only_enforce_if(somebody)


def _times(program: Program, count: Any, position: Any) -> Any:
    if isinstance(position, int):
        return position * count
    product = program.model.new_int_var(-(10**9), 10**9, "")
    program.model.add_multiplication_equality(product, [count, position])
    return product


def _solutions(
    program: Program, *, cap: int, seconds: float, best: bool = False, seed: int = 0
) -> Search:
    cp = solver()
    found: dict[tuple[tuple[int, ...], ...], None] = {}
    ends = [(program.tops.get(i), program.bottoms.get(i)) for i in range(len(program.cells))]

    class Collect(cp.CpSolverSolutionCallback):  # type: ignore[misc, name-defined]
        def on_solution_callback(self) -> None:
            people = [self.value(count) for count in program.counts]
            row = []
            for i, n in enumerate(people):
                top, bottom = ends[i]
                tracked = (
                    -1 if top is None else self.value(top),
                    -1 if bottom is None else self.value(bottom),
                )
                row.append((i, n, self.value(program.sums[i]), *tracked) if n else ())
            found[tuple(entry for entry in row if entry)] = None
            if len(found) >= cap and not best:
                self.stop_search()

    run = cp.CpSolver()
    run.parameters.num_workers = 1
    run.parameters.random_seed = seed
    # linear relaxations help to find one solution, and slow down the search for all
    run.parameters.linearization_level = 0 if cap > 1 else 1
    run.parameters.enumerate_all_solutions = cap > 1
    run.parameters.max_time_in_seconds = max(seconds, 0.01)
    status = run.solve(program.model, Collect())
    complete = status == cp.INFEASIBLE or (status == cp.OPTIMAL and cap > 1)
    solutions = tuple(_solution(program, row) for row in found)
    return Search(solutions=solutions, complete=complete)


def _solution(program: Program, row: tuple[tuple[int, ...], ...]) -> Solution:
    filled = []
    for i, n, total, top, bottom in row:
        cell = program.cells[i]
        wide = cell.low < cell.high
        filled.append(
            Filling(
                cell=cell,
                n=n,
                total=total,
                top=top if wide and i in program.tops else None,
                bottom=bottom if wide and i in program.bottoms else None,
            )
        )
    return Solution(filled=tuple(filled))
