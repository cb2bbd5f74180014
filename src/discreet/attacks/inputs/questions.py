"""A log of SQL questions about one table, as linear equations over its rows.

COUNT, SUM and AVG under a WHERE (with FILTER and GROUP BY) each add up one value per row over a set
of rows. With one column taken as the secret and the others as known, the set is what the known
conditions select, and the value summed is what the secret ones make of each row. Everything else is
listed as not analyzed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.engines.duckdb.locked import connect
from discreet.errors import UsageError

Bits = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """A piece of SQL and the columns it reads."""

    sql: str
    columns: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSum:
    """`column` of the answer: the sum (or mean) of a value over rows that meet all conditions."""

    column: int
    value: Fragment
    mean: bool
    conditions: tuple[Fragment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearQuestion:
    number: int
    sql: str
    aggregates: tuple[RowSum, ...]
    keys: tuple[tuple[int, Fragment], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    questions: tuple[LinearQuestion, ...]
    skipped: tuple[tuple[int, str], ...]

    @property
    def columns(self) -> list[str]:
        parts = [p for q in self.questions for a in q.aggregates for p in (a.value, *a.conditions)]
        parts += [part for q in self.questions for _, part in q.keys]
        return sorted(frozenset().union(*(part.columns for part in parts)))


def read_log(text: str | Sequence[str], table: str) -> Log:
    """Read statements separated by semicolons, or a list of them; numbered from 1."""
    statements = _statements(text) if isinstance(text, str) else list(text)
    questions, skipped = [], []
    for number, sql in enumerate(statements, start=1):
        found = _question(number, sql, table)
        if isinstance(found, LinearQuestion):
            questions.append(found)
        else:
            skipped.append((number, found))
    return Log(questions=tuple(questions), skipped=tuple(skipped))


def _statements(text: str) -> list[str]:
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        parsed = sqlglot.parse(text, dialect="duckdb")
        return [
            s.sql("duckdb") for s in parsed if s is not None and not isinstance(s, exp.Semicolon)
        ]
    except SqlglotError:  # one bad statement should not hide the others
        return [s for s in re.split(r";\s*(?:\n|$)", text) if s.strip()]


def _question(number: int, sql: str, table: str) -> LinearQuestion | str:
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(sql, dialect="duckdb")
    except SqlglotError:
        return "cannot be parsed"
    if (
        not isinstance(tree, exp.Select)
        or len(list(tree.find_all(exp.Select))) > 1
        or tree.args.get("joins")
    ):
        return "is not one SELECT from one table"
    tables = [node.name for node in tree.find_all(exp.Table)]
    if tables != [table]:
        return f"is not about {table}"
    where = tree.args.get("where")
    conditions = _conjuncts(where.this) if where else ()
    keys = _keys(tree)
    if keys is None:
        return "groups by something that it does not show"
    aggregates = []
    for column, shown in enumerate(tree.expressions):
        aggregate = _aggregate(column, shown.unalias(), conditions)
        if aggregate is not None:
            aggregates.append(aggregate)
        elif any(isinstance(node, exp.AggFunc) for node in shown.walk()):
            return "has an aggregate that is not a sum over rows"
    if not aggregates:
        return "shows no count, sum or mean"
    return LinearQuestion(number=number, sql=sql, aggregates=tuple(aggregates), keys=keys)


def _keys(tree: Any) -> tuple[tuple[int, Fragment], ...] | None:
    """Return each group key with the column of the answer that shows it; None if no column shows
    one.
    """
    group = tree.args.get("group")
    shown = {e.unalias().sql("duckdb"): i for i, e in enumerate(tree.expressions)}
    names = {e.alias_or_name: i for i, e in enumerate(tree.expressions)}
    keys = []
    for expression in group.expressions if group else ():
        text = expression.sql("duckdb")
        at = int(text) - 1 if text.isdigit() else shown.get(text, names.get(text))
        if at is None or at >= len(tree.expressions):
            return None
        keys.append((at, _part(tree.expressions[at].unalias())))
    return tuple(keys)


def _aggregate(column: int, node: Any, conditions: tuple[Fragment, ...]) -> RowSum | None:
    from sqlglot import exp

    if isinstance(node, exp.Filter):
        extra = _conjuncts(node.expression.this)
        return _aggregate(column, node.this, (*conditions, *extra))
    if isinstance(node, exp.CountIf):
        return _aggregate(column, exp.Count(this=exp.Star()), (*conditions, *_conjuncts(node.this)))
    if (
        isinstance(node, exp.Count)
        and not isinstance(node.this, exp.Distinct)
        and not node.expressions
    ):
        if isinstance(node.this, exp.Star | exp.Literal):
            return _one(column, conditions)
        present = Fragment(
            sql=f"{node.this.sql('duckdb')} IS NOT NULL", columns=_columns(node.this)
        )
        return _one(column, (*conditions, present))
    if isinstance(node, exp.Sum | exp.Avg) and not isinstance(node.this, exp.Distinct):
        return RowSum(
            column=column,
            value=_part(node.this),
            mean=isinstance(node, exp.Avg),
            conditions=conditions,
        )
    return None


def _one(column: int, conditions: tuple[Fragment, ...]) -> RowSum:
    return RowSum(
        column=column,
        value=Fragment(sql="1", columns=frozenset()),
        mean=False,
        conditions=conditions,
    )


def _conjuncts(node: Any) -> tuple[Fragment, ...]:
    from sqlglot import exp

    flat = node.flatten() if isinstance(node, exp.And) else [node]
    parts: list[Fragment] = []
    for each in flat:
        inner = each.unnest()
        parts += _conjuncts(inner) if isinstance(inner, exp.And) else [_part(inner)]
    return tuple(parts)


def _part(node: Any) -> Fragment:
    from sqlglot import exp

    plain = node.copy()
    for column in plain.find_all(exp.Column):
        column.set("table", None)
    return Fragment(sql=plain.sql("duckdb"), columns=_columns(node))


def _columns(node: Any) -> frozenset[str]:
    from sqlglot import exp

    return frozenset(column.name for column in node.find_all(exp.Column))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Row:
    """One equation: the secret values of the rows in `members` add up to a number in an answer."""

    question: LinearQuestion
    aggregate: RowSum
    members: Bits
    cell: tuple[tuple[int, Any], ...]  # which row of the answer: (column, key) pairs
    hidden: NDArray[np.float64]  # what the secret makes of each row: 0 or 1, or its value
    # by how much the answer counts it, which is known; None: hidden is all of it
    factor: NDArray[np.float64] | None
    inverted: bool = False  # the answer counts those without the secret


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowsByCondition:
    """The table's rows under every condition of a log, each evaluated once, by a DuckDB that can
    reach nothing else.
    """

    rows: int
    conditions: dict[str, Bits]
    numbers: dict[str, NDArray[np.float64]]
    keys: dict[str, NDArray[np.object_]]

    @classmethod
    def of(cls, log: Log, table: pa.Table) -> RowsByCondition:
        connection = connect()
        connection.register("data", table)
        conditions = {
            part.sql for q in log.questions for a in q.aggregates for part in a.conditions
        }
        numbers = {a.value.sql for q in log.questions for a in q.aggregates}
        keys = {part.sql for q in log.questions for _, part in q.keys}
        found = cls(
            rows=table.num_rows,
            conditions=_columns_of(
                connection, conditions, "coalesce(CAST(({}) AS BOOLEAN), false)"
            ),
            numbers=_columns_of(connection, numbers, "coalesce(CAST(({}) AS DOUBLE), 0)"),
            keys=_columns_of(connection, keys, "({})", plain=True),
        )
        connection.close()
        return found


def _columns_of(
    connection: Any, expressions: set[str], shape: str, *, plain: bool = False
) -> dict[str, NDArray[Any]]:
    import duckdb

    columns: dict[str, NDArray[Any]] = {}
    ordered = sorted(expressions)
    for start in range(0, len(ordered), 200):
        some = ordered[start : start + 200]
        shown = ", ".join(f"{shape.format(e)} AS c{i}" for i, e in enumerate(some))
        try:
            found = connection.sql(f"SELECT {shown} FROM data").to_arrow_table()
        except duckdb.Error as problem:
            first = str(problem).splitlines()[0]
            raise UsageError(f"A condition of the log does not fit the table: {first}") from None
        for i, expression in enumerate(some):
            values = found.column(i)
            columns[expression] = (
                np.array(values.to_pylist(), dtype=object) if plain else values.to_numpy()
            )
    return columns


def equations(
    log: Log, data: RowsByCondition, secret: str
) -> dict[bytes, tuple[str, NDArray[np.float64], list[Row]]]:
    """Return, for one secret column, the equations of each quantity summed: its name, true values
    and rows.
    """
    found: dict[bytes, tuple[str, NDArray[np.float64], list[Row]]] = {}
    for question in log.questions:
        for aggregate in question.aggregates:
            for name, values, row in _rows(question, aggregate, data, secret):
                key = values.tobytes()
                flipped = (1 - values).tobytes()
                if aggregate.value.sql == "1" and key not in found and flipped in found:
                    key = flipped
                    row = replace(row, hidden=1 - row.hidden, inverted=True)
                found.setdefault(key, (name, values, []))[2].append(row)
    return found


def means_over_secrets(log: Log, secret: str) -> list[int]:
    """Return numbers of questions with a mean over people whom the secret chooses: no sum over a
    known set.
    """
    return [
        question.number
        for question in log.questions
        for aggregate in question.aggregates
        if aggregate.mean and any(secret in part.columns for part in _choosing(question, aggregate))
    ]


def _choosing(question: LinearQuestion, aggregate: RowSum) -> list[Fragment]:
    return [*aggregate.conditions, *(part for _, part in question.keys)]


def _rows(
    question: LinearQuestion, aggregate: RowSum, data: RowsByCondition, secret: str
) -> Iterator[tuple[str, NDArray[np.float64], Row]]:
    hidden = [p for p in aggregate.conditions if secret in p.columns]
    hidden_keys = [(at, p) for at, p in question.keys if secret in p.columns]
    is_secret = secret in aggregate.value.columns
    choosing = bool(hidden or hidden_keys)
    if not (choosing or is_secret) or (aggregate.mean and choosing):
        # it tells nothing; or it is a mean over an unknown number of people, which is not a sum
        return
    members = _meeting([part for part in aggregate.conditions if secret not in part.columns], data)
    numbers = data.numbers[aggregate.value.sql]
    chosen = _meeting(hidden, data).astype(float)
    known_keys = [(at, p) for at, p in question.keys if secret not in p.columns]
    for known, inside in _split(known_keys, members, data):
        for unknown, having in _split(hidden_keys, np.ones_like(members), data):
            cells = [f"{p.sql} = {v}" for (_, p), (_, v) in zip(hidden_keys, unknown, strict=True)]
            values = numbers * chosen * having
            row = Row(
                question=question,
                aggregate=aggregate,
                members=inside,
                cell=known + unknown,
                hidden=values if is_secret else chosen * having,
                factor=None if is_secret else numbers,
            )
            yield _label(aggregate, [*(part.sql for part in hidden), *cells]), values, row


def _label(aggregate: RowSum, told: list[str]) -> str:
    """Return what is added up of each row, where the secret is as told: income where ill."""
    shown = aggregate.value.sql if aggregate.value.sql != "1" else ""
    return " where ".join(filter(None, [shown, " and ".join(sorted(told))]))


def _meeting(parts: Sequence[Fragment], data: RowsByCondition) -> Bits:
    """Return the rows that meet all of some conditions."""
    met = np.ones(data.rows, dtype=bool)
    for part in parts:
        met = met & data.conditions[part.sql]
    return met


def _split(
    keys: list[tuple[int, Fragment]], members: Bits, data: RowsByCondition
) -> Iterator[tuple[tuple[tuple[int, Any], ...], Bits]]:
    """Yield the groups within some rows: the values of the keys, and the members."""
    if not keys:
        yield (), members
        return
    labels: dict[tuple[Any, ...], int] = {}
    columns = [data.keys[part.sql] for _, part in keys]
    codes = np.full(len(members), -1, dtype=np.int64)
    for i in np.flatnonzero(members):
        codes[i] = labels.setdefault(tuple(column[i] for column in columns), len(labels))
    for label, code in labels.items():
        yield tuple((at, value) for (at, _), value in zip(keys, label, strict=True)), codes == code
