"""Descriptions of several tables of the same people in one file, and linked rows drawn from them.

People are drawn first, each with a number of rows in every other table; then these rows, given
their person. Owners are fresh numbers from 1: nobody's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.errors import UsageError
from discreet.files import write_file
from discreet.synthetic.description import Description
from discreet.synthetic.given import draw_given

Integers = NDArray[np.int64]

FORMAT, VERSION = "discreet linked descriptions", 1
MOST_PEOPLE = 10**7  # at once
COUNTER = "rows of "


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkedDescription:
    """People with their numbers of rows, and the rows of every other table beside their person's
    columns.
    """

    people: Description
    # a table, how many columns are its own, and what they are
    rows: tuple[tuple[str, int, Description], ...]
    owners: Mapping[str, str]  # for each table, what its owner column is called
    cost: dict[str, Any]
    certificate: dict[str, Any]

    @property
    def tables(self) -> tuple[str, ...]:
        return (self.people.table, *(name for name, _, _ in self.rows))

    @property
    def parts(self) -> tuple[Description, ...]:
        """The descriptions: of people, then of the rows of each table."""
        return (self.people, *(each for _, _, each in self.rows))

    def generate(self, *, people: int | None = None) -> dict[str, pa.Table]:
        """Draw linked synthetic tables of so many people, by default about as many as there are;
        free, and fresh.
        """
        count = self.people.rows if people is None else people
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MOST_PEOPLE:
            raise UsageError(
                f"people must be a whole number from 0 to {MOST_PEOPLE:,}, not {count!r}."
            )
        drawn = self.people.generate(rows=count)
        numbers = pa.array(np.arange(1, count + 1))
        own = [name for name in drawn.column_names if not name.startswith(COUNTER)]
        found = {
            self.people.table: drawn.select(own).add_column(
                0, self.owners[self.people.table], numbers
            )
        }
        for table, width, description in self.rows:
            times = np.asarray(drawn.column(COUNTER + table).to_numpy(), dtype=np.int64)
            whose = np.repeat(np.arange(count), times)
            known = _require_known(description, width, drawn, self.people.table)
            made = draw_given(
                description, width, {c: cells[whose] for c, cells in known.items()}, len(whose)
            )
            linked = made.add_column(0, self.owners[table], pa.array(whose + 1))
            found[table] = _in_time(linked, description, width)
        return found

    # --- the file ---------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        write_file(Path(path), self.to_bytes())

    def to_bytes(self) -> bytes:
        parts = {
            "format": FORMAT,
            "version": VERSION,
            "cost": self.cost,
            "certificate": self.certificate,
            "owners": dict(self.owners),
            "people": json.loads(self.people.to_bytes()),
            "rows": [
                {"table": t, "own": w, "described": json.loads(d.to_bytes())}
                for t, w, d in self.rows
            ],
        }
        return (json.dumps(parts, ensure_ascii=False) + "\n").encode()

    @classmethod
    def load(cls, path: str | Path) -> LinkedDescription:
        """Read a file; one that is none, or a broken or hostile one, is a UsageError and runs
        nothing.
        """
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
        return cls.from_bytes(content, name=str(path))

    @classmethod
    def from_bytes(cls, content: bytes, *, name: str = "The file") -> LinkedDescription:
        try:
            parts = json.loads(content.decode("utf-8"))
        except (ValueError, RecursionError):
            raise UsageError(f"{name} is not a description: it is not valid JSON.") from None
        if not isinstance(parts, dict) or (parts.get("format"), parts.get("version")) != (
            FORMAT,
            VERSION,
        ):
            raise UsageError(
                f'{name} is not of several tables: it does not say "format": "{FORMAT}", version {VERSION}.'
            )
        try:
            people = Description.from_bytes(json.dumps(parts["people"]).encode(), name=name)
            rows = tuple(
                (
                    str(e["table"]),
                    int(e["own"]),
                    Description.from_bytes(json.dumps(e["described"]).encode(), name=name),
                )
                for e in parts["rows"]
            )
            owners = {str(table): str(owner) for table, owner in parts["owners"].items()}
            found = cls(
                people=people,
                rows=rows,
                owners=owners,
                cost=parts["cost"],
                certificate=parts["certificate"],
            )
            _check(found, name)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(
                f"{name} is broken: a field is missing or wrong ({type(error).__name__})."
            ) from None
        return found


def is_linked(path: str | Path) -> bool:
    """Return True if a file begins like one of several tables."""
    try:
        with Path(path).open("rb") as file:
            return FORMAT.encode() in file.read(200)
    except OSError:
        return False


def _check(found: LinkedDescription, name: str) -> None:
    """Refuse parts that do not belong together."""
    columns = {axis.name for axis in found.people.axes}
    for table, width, each in found.rows:
        names = [axis.name for axis in each.axes]
        known = {f"{found.people.table}.{column}" for column in columns}
        counted = next((axis for axis in found.people.axes if axis.name == COUNTER + table), None)
        least = None if counted is None else counted.column.domain
        sound = (
            0 < width <= len(names)
            and set(names[width:]) <= known
            and getattr(least, "lo", -1) == 0
        )
        if not sound or table not in found.owners or found.people.table not in found.owners:
            raise UsageError(f"{name} is broken: its tables do not belong together.")


def _require_known(
    description: Description, width: int, people: pa.Table, table: str
) -> dict[int, Integers]:
    """Return the model's groups of what is known of every person, by column of the rows'
    description.
    """
    found = {}
    for column, axis in enumerate(description.axes[width:], start=width):
        values = people.column(axis.name.removeprefix(f"{table}."))
        found[column] = description.groups[column][np.maximum(axis.codes(values), 0)]
    return found


def _in_time(table: pa.Table, description: Description, width: int) -> pa.Table:
    """Sort each person's rows by the first day or moment that they have; otherwise in any order."""
    moments = [
        a.name
        for a in description.axes[:width]
        if pa.types.is_temporal(table.schema.field(a.name).type)
    ]
    order = [(table.column_names[0], "ascending"), *((name, "ascending") for name in moments[:1])]
    return table.sort_by(order)
