"""The workload of a description: which columns questions need together, and how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from discreet.errors import UsageError

Columns = tuple[int, ...]

_SELDOM = 0.05  # the weight of a column that no question needs: it is described, roughly
_MOST_TRIPLES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Sets of columns (by place) with the number of questions that need them together; none: every
    pair alike.
    """

    sets: tuple[tuple[Columns, int], ...] = ()

    def weight(self, columns: Columns) -> float:
        """Return the share of questions that need all of these columns."""
        if not self.sets:
            return 1.0
        asked = sum(count for each, count in self.sets if set(columns) <= set(each))
        return asked / sum(count for _, count in self.sets)

    def column_weight(self, column: int) -> float:
        return max(_SELDOM, self.weight((column,)))

    def candidates(self, width: int) -> list[Columns]:
        """Return the pairs, and where questions say so triples, that are worth counting."""
        pairs: list[Columns] = list(combinations(range(width), 2))
        if not self.sets:
            return pairs
        triples = Counter[Columns]()
        for each, count in self.sets:
            triples.update(dict.fromkeys(combinations(each, 3), count))
        return [pair for pair in pairs if self.weight(pair) > 0] + [
            triple for triple, _ in triples.most_common(_MOST_TRIPLES)
        ]


EVERY_PAIR = Workload()


def list_texts(given: Any, *, what: str) -> tuple[str, ...]:
    """Return a list of texts from Python, of whatever kind."""
    try:
        found = tuple(given)
    except TypeError:
        raise UsageError(f"{what} must be a list of texts, not {type(given).__name__}.") from None
    for each in found:
        if not isinstance(each, str):
            raise UsageError(f"{what} must be a list of texts, not of {type(each).__name__}.")
    return found


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


def workload(questions: Sequence[str], *, table: str, columns: Sequence[str]) -> Workload:
    """Return which of a table's columns the questions need. A name counts wherever it stands: in
    SELECT, WHERE, GROUP BY.
    """
    places = {name.lower(): place for place, name in enumerate(columns)}
    found = Counter[Columns]()
    for number, text in enumerate(list_texts(questions, what="workload"), start=1):
        try:
            trees = [
                tree
                for tree in sqlglot.parse(text, dialect="duckdb")
                if isinstance(tree, exp.Query)
            ]
        except (SqlglotError, RecursionError, ValueError):
            raise UsageError(
                f"Question {number} of the workload is not SQL that can be read."
            ) from None
        for tree in trees:
            if table.lower() in {each.name.lower() for each in tree.find_all(exp.Table)}:
                named = {
                    places[each.name.lower()]
                    for each in tree.find_all(exp.Column)
                    if each.name.lower() in places
                }
                found[tuple(sorted(named))] += 1
    del found[()]  # COUNT(*): every description is good at that
    if not found:
        raise UsageError(
            f"No question of the workload asks for a column of {table} that is described."
        )
    return Workload(sets=tuple(sorted(found.items())))
