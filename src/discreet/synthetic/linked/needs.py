"""Find the columns that questions about several tables need in each part of their description.

A question about people and their rows is answered by two parts. The people's part has to know how
the person's columns go with how many rows of which kinds she has; the part of a table's rows has to
know how the row's columns go with its kind and with the person's columns. So each question asks each
part for the columns that it names. Kinds that it names as texts stand for their own numbers of rows.
If it names none, it needs each number of rows beside the person's columns, and each two of them; all
of these together weigh as much as what another question needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from sqlglot import exp

from discreet.errors import UsageError
from discreet.synthetic.workload import Columns, Workload, queries

WEIGHT = 1000  # of one question, which its sets share
MOST_NUMBERS = 2  # numbers of rows that are counted together


@dataclass(frozen=True, slots=True, kw_only=True)
class TableNames:
    """A table beside the people: its columns, the place of its kind, and by kind the name of the
    person's number of rows.
    """

    columns: tuple[str, ...]
    kind: int | None
    counters: Mapping[str | None, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedNames:
    """The people's table with its columns, and the tables beside it."""

    name: str
    columns: tuple[str, ...]
    rows: Mapping[str, TableNames]

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        """Return the columns of every table."""
        beside = {name: rows.columns for name, rows in self.rows.items()}
        return {self.name: self.columns, **beside}

    @property
    def counters(self) -> tuple[str, ...]:
        """Return the names of all numbers of rows, in the order of the people's part."""
        return tuple(name for rows in self.rows.values() for name in rows.counters.values())


def needs(questions: Sequence[str], tables: LinkedNames) -> dict[str, Workload]:
    """Return the workload of every part that a question asks for, by the name of its table."""
    sets: dict[str, Counter[Columns]] = {name: Counter() for name in tables.names}
    for tree in queries(questions):
        used = _used(tree, tables.names)
        theirs = [tables.columns.index(name) for name in used.pop(tables.name, ())]
        numbers = list[int]()
        texts = {node.this for node in tree.find_all(exp.Literal) if node.is_string}
        for name, columns in used.items():
            rows = tables.rows[name]
            named = [counter for kind, counter in rows.counters.items() if kind in texts]
            every = tables.counters
            for counter in named or rows.counters.values():
                numbers.append(len(tables.columns) + every.index(counter))
            own = {rows.columns.index(column) for column in columns}
            own |= set() if rows.kind is None else {rows.kind}
            beside = [len(rows.columns) + place for place in theirs]
            sets[name][tuple(sorted({*own, *beside}))] += 1
        together = _together(theirs, numbers)
        for each in together:
            sets[tables.name][each] += max(1, WEIGHT // len(together))
    for counts in sets.values():
        del counts[()]
    if not any(sets.values()):
        raise UsageError("No question of the workload asks for a column that is described.")
    return {
        name: Workload(sets=tuple(sorted(counts.items())))
        for name, counts in sets.items()
        if counts
    }


def _together(theirs: Sequence[int], numbers: Sequence[int]) -> list[Columns]:
    """Return the sets of the people's columns that a question needs together."""
    if len(numbers) <= MOST_NUMBERS:
        return [tuple(sorted({*theirs, *numbers}))]
    beside = [tuple(sorted({*theirs, number})) for number in numbers]
    return [*beside, *combinations(sorted(numbers), 2)]


def _used(tree: exp.Query, columns: Mapping[str, tuple[str, ...]]) -> dict[str, set[str]]:
    """Return the described columns of every table in a question; a column without its table's name
    is that of every table in the question that has one.
    """
    places = {name.lower(): name for name in columns}
    called: dict[str, str] = {}  # the table behind each name in the question
    for node in tree.find_all(exp.Table):
        if node.name.lower() in places:
            called[node.alias_or_name.lower()] = places[node.name.lower()]
    used: dict[str, set[str]] = {name: set() for name in called.values()}
    for node in tree.find_all(exp.Column):
        own = called.get(node.table.lower())
        for name in used if own is None else (own,):
            used[name] |= {each for each in columns[name] if each.lower() == node.name.lower()}
    return used
