"""Compute the most time that one person's rows can take the engine, from the tree that will run
(S21).

Each function, operator, join, group and window takes some nanoseconds for each of the person's rows
that it reads. Functions of texts take more for each letter.

Privacy
    One person takes at most `SHARE` of the time limits. So a question that took less than half of a
    limit would also have kept the limit with one person more or less. The costs were measured with
    the slowest texts and rounded up; `bench/work.py` compares them with the engine. This hardens
    the system (S13), and is no part of ε.
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
    PublicScan,
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

SHARE = Fraction(1, 1_000)  # one person's part of `limits.seconds` and of `limits.deadline`
Rows = Callable[[Source], int]  # the most rows of a source that one person has, without conditions
# the most letters of a text, by table and column
Letters = Callable[[str, str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The nanoseconds that a function takes."""

    row: float = 20.0  # for each row
    letter: float = 0.0  # for each letter of the text
    pair: float = 0.0  # for each letter of the text and each letter of the constant


PLAIN = Cost()  # of functions that are not listed here
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
}
COSTS |= dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), Cost(letter=0.1))
CAST = Cost(letter=1.0)
# nanoseconds for each row
SELECT = 100.0
EXISTS = 500.0
JOIN = 100.0
GROUP = 300.0
DISTINCT = 200.0
OVER = 700.0
FRAME = 2_500.0
# nanoseconds for each letter of all texts of a row, if the engine keeps rows or sorts them
HELD = 4.0
SORTED = 14.0
WILD = 8.0  # the cost of a pair for LIKE with _, which tries the pattern at every letter
# nanoseconds for each constant of a list, and for each that is compared to find a position
LISTED = 0.1
SOUGHT = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Computes costs from the rows that a person has in a source and from the lengths of texts."""

    rows: Rows
    letters: Letters
    # The lengths of columns computed so far. Each stage has a name of its own.
    memo: dict[Column, int] = field(default_factory=dict, compare=False, repr=False)

    def seconds(self, query: Numbers) -> float:
        """Return the most seconds that the engine works on one person's rows."""
        if isinstance(query, Nearest):  # it reads the rows once for each width
            return len(query.widths) * self.aggregate(query.counted) / 1e9
        return self.aggregate(query) / 1e9

    def aggregate(self, node: Aggregate) -> float:
        """Return the nanoseconds that an aggregation takes."""
        rows = self.rows(node.source)
        total = self.source(node.source)
        parts = [*node.keys, *node.where]
        for reading in node.readings:
            if reading.where is not None:
                parts.append(reading.where)
            match reading:
                case Sum(factors=factors):
                    for factor in factors:
                        parts += [factor.value] * max(factor.power, 1)
                case Distinct(values=values):
                    parts += values
                    total += rows * DISTINCT
                case Persons():
                    total += rows * DISTINCT
        letters = self.row_letters(parts, node.source)
        group = GROUP if node.keys else 0.0
        total += rows * (SELECT + group + HELD * letters)
        return total + rows * self.all(parts, node.source)

    def source(self, node: Source) -> float:
        """Return the nanoseconds that a source takes, with everything inside it."""
        match node:
            case Scan():
                return 0.0
            case OwnerJoin(left=left, right=right, on=on):
                return self.source(left) + self.source(right) + self.join(on, node)
            case PublicJoin(left=left, pins=pins, on=on):
                conditions = [*(ours for ours, _ in pins), *on]
                return self.source(left) + self.join(conditions, node)
            case Stage(query=query):
                return self.query(query)

    def join(self, conditions: Sequence[Expression], node: OwnerJoin | PublicJoin) -> float:
        """Return the nanoseconds that joining takes, without the two sides."""
        letters = self.row_letters(conditions, node)
        for_each_row = JOIN + HELD * letters + self.all(conditions, node)
        return self.rows(node) * for_each_row

    def query(self, node: Query) -> float:
        """Return the nanoseconds that a query takes, with everything inside it."""
        match node:
            case UnionAll(parts=parts):
                return sum(map(self.query, parts))
            case Select(source=source, columns=columns, where=where, distinct=distinct):
                values = [*(value for _, value in columns), *where]
                group = DISTINCT if distinct else 0.0
            case PerPerson(source=source, keys=keys, columns=columns, where=where):
                values = [value for _, value in (*keys, *columns)]
                values += where
                group = GROUP
        letters = self.row_letters(values, source)
        for_each_row = SELECT + group + HELD * letters + self.all(values, source)
        return self.source(source) + self.rows(source) * for_each_row

    # --- expressions ------------------------------------------------------------------------------

    def all(self, nodes: Sequence[Expression], source: Source) -> float:
        """Return the nanoseconds that expressions take for each row."""
        return sum(self.expression(each, source) for each in nodes)

    def expression(self, node: Expression, source: Source) -> float:
        """Return the nanoseconds that an expression takes for each row."""
        inner = sum(self.expression(part, source) for part in parts_of(node))
        match node:
            case Column() | Constant() | Careful():
                return inner
            case Call(name="list", arguments=arguments):
                return inner + LISTED * len(arguments)
            case Call(name="list_position", arguments=(constants, _)):
                return inner + PLAIN.row + SOUGHT * constants.weight
            case Call(name=name):
                return inner + self.call(node, COSTS.get(name, PLAIN), source)
            case Cast(kind="VARCHAR", value=value):
                return inner + CAST.row + CAST.letter * self.length(value, source)
            case Over(order=order, frame=frame):
                letters = self.row_letters([node], source)
                with_frame = FRAME if frame is not None or order else 0.0
                return inner + OVER + SORTED * letters + with_frame
            case Exists(source=inside, where=where):
                for_each_pair = EXISTS + self.all_within(where, inside, source)
                return inner + self.source(inside) + self.rows(inside) * for_each_pair
            case Case() | Cast() | Fold():
                return inner + PLAIN.row
        raise TypeError(f"no cost for {type(node).__name__}")

    def all_within(self, nodes: Sequence[Expression], inside: Source, outside: Source) -> float:
        """Return the nanoseconds that the conditions of an EXISTS take for each pair of an inner and
        an outer row.
        """
        both = OwnerJoin(outside, inside)
        return sum(self.expression(each, both) for each in nodes)

    def call(self, node: Call, cost: Cost, source: Source) -> float:
        """Return the nanoseconds that a function takes for each row, without its arguments."""
        lengths = [self.length(each, source) for each in (node, *node.arguments)]
        longest = max(lengths, default=0)
        texts = _texts(node.arguments)
        constant = max(map(len, texts), default=0)
        pair = cost.pair
        if node.name in ("like", "ilike") and any("_" in text for text in texts):
            pair = max(pair, WILD)
        return cost.row + cost.letter * longest + pair * longest * constant

    def row_letters(self, nodes: Sequence[Expression], source: Source) -> int:
        """Return the most letters of all texts that the expressions read from a row."""
        columns = {part for each in nodes for part in walk(each) if isinstance(part, Column)}
        return sum(self.length(column, source) for column in columns)

    def length(self, node: Expression, source: Source) -> int:
        """Return the most letters of an expression's text; 0 if it is no text."""
        match node:
            case Constant(value=str() as text):
                return len(text)
            case Column():
                return self.column(node, source)
            case Call(name="concat" | "||" | "concat_ws" | "replace"):
                together = sum(self.length(each, source) for each in node.arguments)
                return min(MOST_LETTERS, together * _growth(node))
            case Call(name="lpad" | "rpad", arguments=(_, Constant(value=int(letters)), _)):
                return max(letters, 0)
            case Call(name="left", arguments=(text, Constant(value=int(letters)))) if letters >= 0:
                return min(letters, self.length(text, source))
            case Cast(kind="VARCHAR", value=value):
                return max(40, self.length(value, source))
        return max((self.length(part, source) for part in parts_of(node)), default=0)

    def column(self, node: Column, source: Source) -> int:
        """Return the most letters of a column.

        Without the memo, a column that each stage uses twice would be looked up 2^stages times.
        """
        if node not in self.memo:
            self.memo[node] = self.look_up(node, source)
        return self.memo[node]

    def look_up(self, node: Column, source: Source) -> int:
        """Find the most letters of a column of a source."""
        match source:
            case Scan(table=table, stage=stage) if stage == node.stage:
                return self.letters(table, node.name)
            case OwnerJoin(left=left, right=right):
                return max(self.look_up(node, left), self.look_up(node, right))
            case PublicJoin(left=left, right=right):
                if right.stage != node.stage:
                    return self.look_up(node, left)
                if isinstance(right, PublicScan):
                    return self.letters(right.table, node.name)
                return MOST_LETTERS
            case Stage(query=query, stage=stage) if stage == node.stage:
                definitions = _definitions_of(query, node.name)
                return max((self.length(each, inner) for each, inner in definitions), default=0)
        return 0


def _texts(nodes: Sequence[Expression]) -> list[str]:
    """Return the constants that are texts."""
    values = [node.value for node in nodes if isinstance(node, Constant)]
    return [value for value in values if isinstance(value, str)]


def _growth(node: Call) -> int:
    """Return how many times longer REPLACE can make a text; 1 for other functions."""
    if node.name != "replace":
        return 1
    texts = _texts(node.arguments)
    return max((len(each) for each in texts), default=1) or 1


def _definitions_of(query: Query, name: str) -> Iterator[tuple[Expression, Source]]:
    """Yield the expressions of a query's column, each with its source: one for each part of a
    union.
    """
    parts = query.parts if isinstance(query, UnionAll) else (query,)
    for part in parts:
        columns = dict(part.columns)
        if isinstance(part, PerPerson):
            columns = dict((*part.keys, *part.columns))
        if name in columns:
            yield columns[name], part.source
