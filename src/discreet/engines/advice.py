"""Compare a policy with its source: what would stop a snapshot, what cannot be asked, and what to
do next.

It reads names, types and the notes of the last snapshot, and never a value of the source (S1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from discreet.budget import number
from discreet.engines.duckdb.preparing.parts import SourcePart
from discreet.engines.duckdb.preparing.schema import schemas
from discreet.engines.layout import RULES
from discreet.engines.report import doubt, few_kept, standing_out
from discreet.engines.source import attach, engine_errors, loading, source_at
from discreet.engines.stores import changes_since_snapshot, store_of
from discreet.errors import Problem
from discreet.policy.domain import Column, Identifier, Texts
from discreet.policy.owners import EachRow
from discreet.policy.policy import Policy, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The result of `check`, for the curator: what would stop a snapshot, and notes."""

    problems: tuple[Problem, ...]
    groups: Mapping[str, tuple[str, ...]]  # notes by their subject

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the notes of all groups."""
        return tuple(note for group in self.groups.values() for note in group)


def check(policy: Policy, source: object = None) -> Findings:
    """Compare a policy with its source's schema, and say which questions it rules out."""
    found = source_at(policy.source if source is None else source, policy)
    connection = loading(None)
    try:
        with engine_errors("Checking the source"), attach(connection, found):
            parts, problems = schemas(connection, policy, found)
    finally:
        connection.close()
    tables = policy.tables.values()
    groups: dict[str, list[str]] = {
        "Whom it protects": [],
        "The budget": [*_budget_notes(policy)],
        "What can be asked": [],
        "What is left out": [],
        "The snapshot": [*_snapshot_notes(policy)],
    }
    for table in tables:
        columns = _names(parts.get(table.name, ()))
        groups["Whom it protects"] += _owner_notes(policy, table)
        groups["What can be asked"] += _table_notes(policy, table)
        groups["What is left out"] += _lacks_declaration(table, columns)
    if source is None:
        groups["The snapshot"] += _move_notes(policy)
    return Findings(
        problems=tuple(problems),
        groups={title: tuple(notes) for title, notes in groups.items() if notes},
    )


def _move_notes(policy: Policy) -> Iterator[str]:
    moved = changes_since_snapshot(policy)
    if moved:
        yield (
            f"The source has moved on since the last snapshot ({', '.join(moved)}). Questions are still answered from "
            "the snapshot; `discreet snapshot` takes a new one, after which every question is charged anew."
        )


def _owner_notes(policy: Policy, table: Table) -> Iterator[str]:
    if isinstance(table.owner, EachRow):
        yield (
            f"EACH ROW of {table.name} is taken to be one {policy.unit}. Whoever is in k rows is protected k times "
            "less: if there is a column that tells people apart, name it as owner."
        )
    for column in table.owner_columns if isinstance(table.owner, str) else ():
        declared = table.columns.get(column)
        size = None if declared is None else declared.domain.size
        if size is not None and size <= 1000:
            yield (
                f"{table.name}.{column} is the owner, and is declared to have {size:,} values: at most so many people "
                f"can be told apart, and {table.max_rows} row of each is kept. Is it what tells people apart?"
            )


def _snapshot_notes(policy: Policy) -> Iterator[str]:
    store = store_of(policy)
    for newest in store.numbers()[-1:]:
        snapshot = store.snapshot(newest)
        for table in snapshot.tables if snapshot.digest == policy.digest else ():
            if few_kept(table) and not policy.tables[table.name].public:
                yield f"{doubt(table, policy.tables[table.name])} (Snapshot {newest}; for the curator's eyes only.)"
            for column in () if policy.tables[table.name].public else standing_out(table):
                yield f"{column}. (Snapshot {newest}; for the curator's eyes only.)"
        if snapshot.rules < RULES:
            yield (
                f"Snapshot {newest} was made by an earlier version: it was not checked, and where somebody had more "
                "than max_rows rows those that were kept are no fair sample. Take a new one: discreet snapshot."
            )


def _budget_notes(policy: Policy) -> Iterator[str]:
    budget = policy.budget
    if budget.epsilon > 10:
        yield f"The budget is ε = {number(budget.epsilon)}: above 10 it hardly protects anybody. Around 1 is common."
    if budget.delta > Fraction(1, 10**6):
        yield (
            f"The budget's δ = {number(budget.delta)} is the chance that the promise fails for somebody: "
            "keep it far below one in the number of people."
        )
    if not budget.delta:
        yield "The budget has no δ: text columns cannot be group keys. Declare one, such as `delta: 1e-9`, to allow it."
    if not policy.analysts:
        yield "No analyst is declared: only the curator can spend. Add `analysts: {alice: {epsilon: 0.5}}`."


def _table_notes(policy: Policy, table: Table) -> Iterator[str]:
    if not table.public and not table.columns:
        yield f"{table.name} declares no columns: its rows and people can be counted, nothing else."
    alike: dict[str, list[str]] = {}
    for column in table.columns.values():
        note = _column_note(policy, column)
        if note is not None:
            alike.setdefault(note, []).append(f"{table.name}.{column.name}")
    for note, columns in alike.items():
        yield f"{', '.join(columns)} {note}"


def _column_note(policy: Policy, column: Column) -> str | None:
    size = column.domain.size
    if isinstance(column.domain, Identifier):
        return "(identifier): can be joined on and counted by person, never shown, summed or grouped by."
    if isinstance(column.domain, Texts):
        return "(text): no public values, so as a group key only values that enough people share are shown."
    if size is not None and size > policy.limits.keys:
        return (
            f"has {size:,} possible values, more than limits.keys: as a group key its values are treated as unknown. "
            "Group by a coarser expression, such as a range, a month or a rounded value."
        )
    return None


def _names(parts: Iterable[SourcePart]) -> list[str]:
    return list({column.lower(): column for part in parts for column in part.columns}.values())


def _lacks_declaration(table: Table, columns: Iterable[str]) -> Iterator[str]:
    declared = {name.lower() for name in (*table.columns, *table.owner_columns)}
    left = [] if table.public else [name for name in columns if name.lower() not in declared]
    if left:
        yield f"{table.name} has columns that are not declared, so no question can use them: {', '.join(left)}."
