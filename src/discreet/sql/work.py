"""Bound what one person's rows can cost the engine, from the tree that will run (S21).

Each function, operator, join, group and window costs so many nanoseconds for each of the person's
rows that it reads, and functions of texts for each letter too.

Privacy
    One person costs at most `SHARE` of the time limits. So a question that took less than half of a
    limit would have kept it with any one person more or less. The costs are measured ones, of the
    dearest text there is (`bench/work.py` compares them with the engine), rounded up: this hardens
    (S13), and is no part of ε.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from discreet.algebra import (
    Aggregate,
    Call,
    Careful,
    Case,
    Cast,
    Column,
    Constant,
    Distinct,
    Exists,
    Expression,
    Fold,
    Nearest,
    Numbers,
    Over,
    OwnerJoin,
    PerPerson,
    Persons,
    PublicJoin,
    Query,
    Scan,
    Select,
    Source,
    Stage,
    Sum,
    UnionAll,
    parts_of,
    walk,
)
from discreet.policy.domain import MOST_LETTERS

SHARE = Fraction(1, 1_000)  # of `limits.seconds` and of `limits.deadline`
Rows = Callable[[Source], int]  # how many rows of a source one person has, before any condition
# how many letters a text column of a table has at most: table, column
Letters = Callable[[str, str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Nanoseconds for a row; for each letter of it; for each letter of it and of the constant it is
    compared with.
    """

    row: float = 20.0
    letter: float = 0.0
    pair: float = 0.0


PLAIN = Cost()  # of whatever is computed and not listed here
COSTS = {
    "lower": Cost(letter=12.0),
    "upper": Cost(letter=12.0),
    "trim": Cost(letter=8.0),
    "ltrim": Cost(letter=8.0),
    "rtrim": Cost(letter=8.0),
    "substr": Cost(letter=4.0),
    "left": Cost(letter=4.0),
    "right": Cost(letter=5.0),
    "length": Cost(letter=1.0),
    "concat": Cost(letter=2.0),
    "concat_ws": Cost(letter=2.0),
    "||": Cost(letter=2.0),
    "replace": Cost(letter=12.0),
    "split_part": Cost(letter=8.0),
    "strpos": Cost(letter=8.0),
    "contains": Cost(letter=8.0, pair=0.2),
    "lpad": Cost(letter=8.0),
    "rpad": Cost(letter=8.0),
    "md5": Cost(row=200.0, letter=5.0),
    "row": Cost(row=100.0, letter=5.0),
    "strftime": Cost(row=200.0),
    "list_extract": Cost(row=150.0),
    "like": Cost(letter=8.0, pair=0.2),
    "ilike": Cost(letter=30.0, pair=4.0),
    "pair": Cost(row=6_500.0, letter=3.0),  # two values that are compared as one
} | dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), Cost(letter=0.1))
CAST = Cost(letter=1.0)
SELECT, EXISTS, JOIN, GROUP, DISTINCT, OVER, FRAME = (
    100.0,
    500.0,
    100.0,
    300.0,
    200.0,
    700.0,
    2_500.0,
)
# for each letter of all texts of a row, where rows are held or put in order
HELD, SORTED = (4.0, 14.0)
WILD = 8.0  # a pair of LIKE with _, which tries the pattern at every letter
LISTED, SOUGHT = 0.1, 3.0  # for each constant of a list, and of one that is looked through


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Computes costs, given how many rows a person has in a source and how long texts are."""

    rows: Rows
    letters: Letters
    # stages have names of their own
    known: dict[Column, int] = field(default_factory=dict, compare=False, repr=False)

    def seconds(self, query: Numbers) -> float:
        """Return how long the engine works on one person's rows at most; `Nearest` reads its rows
        several times.
        """
        if isinstance(query, Nearest):
            return len(query.widths) * self.aggregate(query.counted) / 1e9
        return self.aggregate(query) / 1e9

    def aggregate(self, node: Aggregate) -> float:
        rows, total = self.rows(node.source), self.source(node.source)
        listed = [*node.keys, *node.where]
        for reading in node.readings:
            listed += [] if reading.where is None else [reading.where]
            match reading:
                case Sum(factors=factors):
                    listed += [
                        factor.value for factor in factors for _ in range(max(factor.power, 1))
                    ]
                case Distinct(values=values):
                    listed += values
                    total += rows * DISTINCT
                case Persons():
                    total += rows * DISTINCT
        held = self.row_letters(listed, node.source)
        total += rows * (SELECT + (GROUP + HELD * held if node.keys else HELD * held))
        return total + rows * self.all(listed, node.source)

    def source(self, node: Source) -> float:
        """Return what reading a source costs, with all that stands inside it."""
        match node:
            case Scan():
                return 0.0
            case OwnerJoin(left=left, right=right, on=on):
                joined = self.rows(node) * (
                    JOIN + HELD * self.row_letters(on, node) + self.all(on, node)
                )
                return self.source(left) + self.source(right) + joined
            case PublicJoin(left=left, pins=pins, on=on):
                listed = [*(ours for ours, _ in pins), *on]
                joined = self.rows(node) * (
                    JOIN + HELD * self.row_letters(listed, node) + self.all(listed, node)
                )
                return self.source(left) + joined
            case Stage(query=query):
                return self.query(query)

    def query(self, node: Query) -> float:
        match node:
            case UnionAll(parts=parts):
                return sum(map(self.query, parts))
            case Select(source=source, columns=columns, where=where, distinct=distinct):
                listed = [*(each for _, each in columns), *where]
                grouped = DISTINCT if distinct else 0.0
            case PerPerson(source=source, keys=keys, columns=columns, where=where):
                listed = [*(each for _, each in keys), *(each for _, each in columns), *where]
                grouped = GROUP
        rows, held = self.rows(source), self.row_letters(listed, source)
        return self.source(source) + rows * (
            SELECT + grouped + HELD * held + self.all(listed, source)
        )

    # --- expressions ------------------------------------------------------------------------------

    def all(self, nodes: Sequence[Expression], source: Source) -> float:
        return sum(self.expression(each, source) for each in nodes)

    def expression(self, node: Expression, source: Source) -> float:
        """Return the nanoseconds that an expression takes for each row."""
        inner = sum(self.expression(part, source) for part in parts_of(node))
        match node:
            case Column() | Constant() | Careful():
                return inner
            case Call(name="list", arguments=arguments):
                return inner + LISTED * len(arguments)
            case Call(name="list_position", arguments=(listed, _)):
                return inner + PLAIN.row + SOUGHT * listed.weight
            case Call(name=name):
                return inner + self.call(node, COSTS.get(name, PLAIN), source)
            case Cast(kind="VARCHAR", value=value):
                return inner + CAST.row + CAST.letter * self.length(value, source)
            case Over(order=order, frame=frame):
                held = self.row_letters([node], source)
                return inner + OVER + SORTED * held + (FRAME if frame is not None or order else 0.0)
            case Exists(source=inside, where=where):
                pairs = self.rows(inside) * (EXISTS + self.all_within(where, inside, source))
                return inner + self.source(inside) + pairs
            case Case() | Cast() | Fold():
                return inner + PLAIN.row
        raise TypeError(f"no cost for {type(node).__name__}")

    def all_within(self, nodes: Sequence[Expression], inside: Source, outside: Source) -> float:
        """Return the cost of an EXISTS's conditions, which read the row inside and the one
        outside.
        """
        both = OwnerJoin(outside, inside)
        return sum(self.expression(each, both) for each in nodes)

    def call(self, node: Call, cost: Cost, source: Source) -> float:
        longest = max((self.length(each, source) for each in (node, *node.arguments)), default=0)
        pair = cost.pair
        constant = max((len(each) for each in _texts(node.arguments)), default=0)
        if node.name in ("like", "ilike") and any("_" in each for each in _texts(node.arguments)):
            pair = max(pair, WILD)
        return cost.row + cost.letter * longest + pair * longest * constant

    def row_letters(self, nodes: Sequence[Expression], source: Source) -> int:
        """Return the letters of all texts that a row must be kept with."""
        columns = {part for each in nodes for part in walk(each) if isinstance(part, Column)}
        return sum(self.length(column, source) for column in columns)

    def length(self, node: Expression, source: Source) -> int:
        """Return how many letters a text has at most; none of what is no text."""
        match node:
            case Constant(value=str() as text):
                return len(text)
            case Column():
                return self.column(node, source)
            case Call(name="concat" | "||" | "concat_ws" | "replace"):
                return min(
                    MOST_LETTERS,
                    sum(self.length(each, source) for each in node.arguments) * _growth(node),
                )
            case Call(name="lpad" | "rpad", arguments=(_, Constant(value=int(letters)), _)):
                return max(letters, 0)
            case Call(name="left", arguments=(text, Constant(value=int(letters)))) if letters >= 0:
                return min(letters, self.length(text, source))
            case Cast(kind="VARCHAR", value=value):
                return max(40, self.length(value, source))
        return max((self.length(part, source) for part in parts_of(node)), default=0)

    def column(self, node: Column, source: Source) -> int:
        """Return the letters of a column. They are remembered: what doubles in every stage would be
        looked up without end.
        """
        if node not in self.known:
            self.known[node] = self.look_up(node, source)
        return self.known[node]

    def look_up(self, node: Column, source: Source) -> int:
        match source:
            case Scan(table=table, stage=stage) if stage == node.stage:
                return self.letters(table, node.name)
            case OwnerJoin(left=left, right=right):
                return max(self.look_up(node, left), self.look_up(node, right))
            case PublicJoin(left=left, right=right):
                if right.stage != node.stage:
                    return self.look_up(node, left)
                return (
                    MOST_LETTERS
                    if not hasattr(right, "table")
                    else self.letters(right.table, node.name)
                )
            case Stage(query=query, stage=stage) if stage == node.stage:
                return max(
                    (self.length(each, inner) for each, inner in _definitions_of(query, node.name)),
                    default=0,
                )
        return 0


def _texts(nodes: Sequence[Expression]) -> list[str]:
    return [
        each.value for each in nodes if isinstance(each, Constant) and isinstance(each.value, str)
    ]


def _growth(node: Call) -> int:
    """Return how much longer REPLACE can make a text: a letter may become a longer text."""
    if node.name != "replace":
        return 1
    texts = _texts(node.arguments)
    return max((len(each) for each in texts), default=1) or 1


def _definitions_of(query: Query, name: str) -> Iterator[tuple[Expression, Source]]:
    """Yield what a column of a query is computed as, and from which rows."""
    parts = query.parts if isinstance(query, UnionAll) else (query,)
    for part in parts:
        columns = (
            dict(part.columns) if isinstance(part, Select) else dict((*part.keys, *part.columns))
        )
        if name in columns:
            yield columns[name], part.source
