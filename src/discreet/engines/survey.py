"""What a schema alone tells: check a policy against its source, or begin a policy for some data.

Both read names and types and never a value: what a policy says must not come from the data (S1).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from discreet.budget import number
from discreet.engines.duckdb import encode
from discreet.engines.duckdb.parts import Part
from discreet.engines.duckdb.prepare import moved_on
from discreet.engines.duckdb.schema import schemas
from discreet.engines.duckdb.store import SnapshotFolder
from discreet.engines.layout import RULES
from discreet.engines.source import (
    DATABASES,
    attach,
    columns_of,
    engine_errors,
    is_csv,
    loading,
    scan,
    source_at,
    tables_in,
)
from discreet.errors import Problem, UsageError
from discreet.policy.document import PLACEHOLDER
from discreet.policy.domain import Column, Identifier, Text
from discreet.policy.policy import Policy, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """For the curator: what would stop a snapshot, and what would be refused, and why."""

    problems: tuple[Problem, ...]
    notes: tuple[str, ...]


def check(policy: Policy, source: object = None) -> Findings:
    """Compare a policy with its source's schema, and say which questions it rules out."""
    found = source_at(policy.source if source is None else source)
    connection = loading(None)
    try:
        with engine_errors("Checking the source"):
            attach(connection, found)
            parts, problems = schemas(connection, policy, found)
    finally:
        connection.close()
    notes = [
        *_budget_notes(policy),
        *(note for table in policy.tables.values() for note in _table_notes(policy, table)),
        *(note for table in policy.tables.values() for note in _undeclared(table, _names(parts.get(table.name, ())))),
    ]
    notes += _snapshot_notes(policy)
    moved = moved_on(policy, policy.store) if source is None else ()
    if moved:
        notes.append(
            f"The source has moved on since the last snapshot ({', '.join(moved)}). Questions are still answered from "
            "the snapshot; `discreet snapshot` takes a new one, after which every question is charged anew."
        )
    return Findings(problems=tuple(problems), notes=tuple(notes))


def _snapshot_notes(policy: Policy) -> Iterator[str]:
    store = SnapshotFolder(policy.store)
    for newest in store.numbers()[-1:]:
        if store.snapshot(newest).rules < RULES:
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
    for column in table.columns.values():
        note = _column_note(policy, column)
        if note is not None:
            yield f"{table.name}.{column.name} {note}"


def _column_note(policy: Policy, column: Column) -> str | None:
    size = column.domain.size
    if isinstance(column.domain, Identifier):
        return "is an identifier: it can be joined on and counted by person, never shown, summed or grouped by."
    if isinstance(column.domain, Text):
        return "is text: it has no public values, so as a group key only values that enough people share are shown."
    if size is not None and size > policy.limits.keys:
        return (
            f"has {size:,} possible values, more than limits.keys: as a group key its values are treated as unknown. "
            "Group by a coarser expression, such as a range, a month or a rounded value."
        )
    return None


def _names(parts: Iterable[Part]) -> list[str]:
    return list({column.lower(): column for part in parts for column in part.columns}.values())


def _undeclared(table: Table, columns: Iterable[str]) -> Iterator[str]:
    declared = {name.lower() for name in (*table.columns, *table.owner_columns)}
    left = [] if table.public else [name for name in columns if name.lower() not in declared]
    if left:
        yield f"{table.name} has columns that are not declared, so no question can use them: {', '.join(left)}."


# --- a policy to begin with -------------------------------------------------------------------------------------------

_HEAD = """\
# A policy to fill in. Every {open} is yours to state, from what everybody may know and never from the data itself;
# what each key means is in docs/policy.md. Lines that nobody shall ask about can be removed.
source: {source}
unit: {open}  # whom you protect: person, patient, household
neighbors: add_remove
tables:
"""
_TABLE = """\
  {name}:  # is it about nobody and known to all? Then write only {{public: true}}
    owner: {open}  # the column that names whom a row is about, or {{through: table, on: column}}
    max_rows: 1  # how many rows each may have at most; the excess is dropped
    columns:
"""
_TAIL = """\
budget:
  epsilon: {open}  # for all questions of all analysts together; around 1 or smaller protects well
  delta: 1e-9
analysts: {{}}  # for instance {{alice: {{epsilon: 0.5}}}}
"""
_HINTS = {
    encode.WHOLE: "{integer: [lo, hi]}, {values: [1, 2, 3]} or {identifier: true}",
    encode.FLOAT: "{decimal: [lo, hi], step: 0.01}",
    encode.DECIMAL: "{decimal: [lo, hi], step: 0.01}",
    encode.TEXT: "{values: [a, b, c]}, text or {identifier: true}",
    encode.BOOLEAN: "{boolean: true}",
    encode.DATE: "{date: [first, last]}",
    encode.TIMESTAMP: "{timestamp: [first, last], step: 1s}",
    encode.UUID: "{identifier: true}",
}
_CSV_HINT = "{integer: [lo, hi]}, {decimal: [lo, hi], step: 0.01}, {values: [a, b]}, {date: [first, last]}, text, ..."


def init(data: str | Path, *, beside: str | Path | None = None) -> str:
    """The text of a policy for the data at a path, with everything that is not in a schema left open.

    `beside` is the folder in which the policy will stand, so that its source can be written from there.
    """
    path = Path(data)
    if path.is_file() and path.suffix not in DATABASES:
        path = path.parent  # a single data file stands for the folder it lies in
    source = source_at(path)
    connection = loading(None)
    try:
        with engine_errors("Reading the schema"):
            attach(connection, source)
            # CSV is read as text: its types would have to be guessed from values.
            columns = {
                name: columns_of(connection, scan(source, name, as_text=True)) for name in tables_in(connection, source)
            }
    finally:
        connection.close()
    if not columns:
        raise UsageError(f"There are no Parquet or CSV files and no tables in {data}.")
    location = str(path) if beside is None else os.path.relpath(path, beside)
    tables = "".join(
        _TABLE.format(name=_yaml(name), open=PLACEHOLDER) + _columns_text(columns[name], csv=is_csv(source, name))
        for name in columns
    )
    return _HEAD.format(open=PLACEHOLDER, source=_yaml(location)) + tables + _TAIL.format(open=PLACEHOLDER)


def _columns_text(columns: Mapping[str, str], *, csv: bool) -> str:
    return "".join(_column_text(_yaml(name), type_name, csv=csv) for name, type_name in columns.items())


def _column_text(name: str, type_name: str, *, csv: bool) -> str:
    hint = _CSV_HINT if csv else _HINTS.get(encode.family(type_name))
    if hint is None:
        return f"      # {name}: {type_name} cannot be asked about\n"
    shown = "CSV" if csv else type_name.split("(")[0]  # an ENUM type lists its values
    return f"      {name}: {PLACEHOLDER}  # {shown}: {hint}\n"


def _yaml(name: str) -> str:
    plain = re.fullmatch(r"[A-Za-z_./][A-Za-z0-9_./-]*", name) and name.lower() not in ("true", "false", "null")
    if not name.isprintable():
        return json.dumps(name)  # YAML reads JSON's escapes, and no character breaks the line or its comment
    return name if plain else "'" + name.replace("'", "''") + "'"
