"""The workload of a description: the sets of columns that questions need together, with counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from discreet.errors import UsageError

Columns = tuple[int, ...]

_SELDOM = 0.05  # the weight of a column that no question needs: it gets a rough description
_MOST_TRIPLES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Sets of columns (by place), each with the number of questions that need it; without sets,
    every pair counts alike.
    """

    sets: tuple[tuple[Columns, int], ...] = ()

    def weight(self, columns: Columns) -> float:
        """Return the share of questions that need all of these columns."""
        if not self.sets:
            return 1.0
        need = sum(count for own, count in self.sets if set(columns) <= set(own))
        return need / sum(count for _, count in self.sets)

    def column_weight(self, column: int) -> float:
        return max(_SELDOM, self.weight((column,)))

    def candidates(self, width: int) -> list[Columns]:
        """Return the pairs of columns that are worth counting, and the triples that questions
        need.
        """
        pairs: list[Columns] = list(combinations(range(width), 2))
        if not self.sets:
            return pairs
        triples = Counter[Columns]()
        for own, count in self.sets:
            triples.update(dict.fromkeys(combinations(own, 3), count))
        frequent = [triple for triple, _ in triples.most_common(_MOST_TRIPLES)]
        return [pair for pair in pairs if self.weight(pair) > 0] + frequent


EVERY_PAIR = Workload()


def list_texts(given: Any, *, what: str) -> tuple[str, ...]:
    """Return any Python list of texts as a tuple; refuse other values."""
    try:
        texts = tuple(given)
    except TypeError:
        raise UsageError(f"{what} must be a list of texts, not {type(given).__name__}.") from None
    for text in texts:
        if not isinstance(text, str):
            raise UsageError(f"{what} must be a list of texts, not of {type(text).__name__}.")
    return texts


def statements(text: str, *, name: str) -> tuple[str, ...]:
    """Return the questions of a file, which semicolons separate."""
    try:
        trees = sqlglot.parse(text, dialect="duckdb")
    except SqlglotError as error:
        where = error.errors[0] if getattr(error, "errors", None) else {}
        raise UsageError(
            f"{name}, line {where.get('line') or 1}: this is not SQL that can be read."
        ) from None
    except (RecursionError, ValueError):
        raise UsageError(f"{name} is nested too deeply to be read.") from None
    return tuple(tree.sql(dialect="duckdb") for tree in trees if isinstance(tree, exp.Query))


def queries(questions: Sequence[str]) -> Iterator[exp.Query]:
    """Yield the questions of a workload, read."""
    for number, text in enumerate(list_texts(questions, what="workload"), start=1):
        try:
            trees = sqlglot.parse(text, dialect="duckdb")
        except (SqlglotError, RecursionError, ValueError):
            raise UsageError(
                f"Question {number} of the workload is not SQL that can be read."
            ) from None
        for tree in trees:
            if isinstance(tree, exp.Query):
                yield tree


def workload(questions: Sequence[str], *, table: str, columns: Sequence[str]) -> Workload:
    """Return the sets of a table's columns that the questions need, in SELECT, WHERE or anywhere
    else.
    """
    places = {name.lower(): place for place, name in enumerate(columns)}
    sets = Counter[Columns]()
    for tree in queries(questions):
        tables = {node.name.lower() for node in tree.find_all(exp.Table)}
        if table.lower() in tables:
            names = {node.name.lower() for node in tree.find_all(exp.Column)}
            needs = sorted(places[name] for name in names if name in places)
            sets[tuple(needs)] += 1
    del sets[()]  # COUNT(*): every description answers it well
    if not sets:
        raise UsageError(
            f"No question of the workload asks for a column of {table} that is described."
        )
    return Workload(sets=tuple(sorted(sets.items())))
