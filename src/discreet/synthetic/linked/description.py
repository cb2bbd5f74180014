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
from discreet.policy.domain import Categories, Integers
from discreet.synthetic.columns.axis import Axis
from discreet.synthetic.description import Description
from discreet.synthetic.linked.given import draw_given

Places = NDArray[np.int64]

FORMAT, VERSION = "discreet linked descriptions", 2
MOST_PEOPLE = 10**7  # at once
COUNTER = "rows of "  # begins the names of a person's numbers of rows
OWN_KIND = "rows of its kind"


def counter_name(table: str, kind: str | None) -> str:
    """Return what a person's number of rows is called, of one kind or of all."""
    return f"{COUNTER}{table}" if kind is None else f"{COUNTER}{table}: {kind}"


def person_column(people: str, name: str) -> str:
    """Return what a person's column is called beside a row."""
    return f"{people}.{name}"


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkedTable:
    """The rows of a table beside their person's columns: the first `own` columns are the table's."""

    table: str
    own: int
    kind: int | None  # the column by whose values a person's rows were counted
    description: Description

    @property
    def counters(self) -> tuple[str, ...]:
        """Return what a person's numbers of rows are called, one for each kind."""
        if self.kind is None:
            return (counter_name(self.table, None),)
        listed = self.description.axes[self.kind].column.domain
        assert isinstance(listed, Categories)
        return tuple(counter_name(self.table, str(value)) for value in listed.values)


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkedDescription:
    """People with their numbers of rows, and the rows of every other table beside their person's
    columns.
    """

    people: Description
    rows: tuple[LinkedTable, ...]
    owners: Mapping[str, str]  # for each table, what its owner column is called
    cost: dict[str, Any]
    certificate: dict[str, Any]

    @property
    def tables(self) -> tuple[str, ...]:
        return (self.people.table, *(part.table for part in self.rows))

    @property
    def parts(self) -> tuple[Description, ...]:
        """The descriptions: of people, then of the rows of each table."""
        return (self.people, *(part.description for part in self.rows))

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
        for part in self.rows:
            found[part.table] = self._rows(part, drawn)
        return found

    def _rows(self, part: LinkedTable, people: pa.Table) -> pa.Table:
        """Draw as many rows of each kind as every person has, given the person."""
        times = _times(part, people)
        places = np.repeat(np.arange(times.size), times.ravel())
        whose, kinds = np.divmod(places, times.shape[1])
        known = self._known(part, people, whose, times[whose, kinds])
        if part.kind is not None:
            known[part.kind] = part.description.groups[part.kind][kinds]
        made = draw_given(part.description, part.own, known, len(whose))
        if part.kind is not None:  # a group of the model may be several kinds
            axis = part.description.axes[part.kind]
            made = made.set_column(part.kind, axis.name, axis.decoded(kinds, np.zeros(len(kinds))))
        linked = made.add_column(0, self.owners[part.table], pa.array(whose + 1))
        return _in_time(linked, part.description, part.own)

    def _known(
        self, part: LinkedTable, people: pa.Table, whose: Places, alike: Places
    ) -> dict[int, Places]:
        """Return the model's groups of what is known of every row, by column of the rows'
        description.
        """
        found, description = {}, part.description
        for column, axis in enumerate(description.axes[part.own :], start=part.own):
            own = axis.name.removeprefix(person_column(self.people.table, ""))
            if own == OWN_KIND:
                codes = axis.codes(pa.chunked_array([pa.array(alike)]))
            else:
                codes = axis.codes(people.column(own))[whose]
            found[column] = description.groups[column][np.maximum(codes, 0)]
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
                {
                    "table": part.table,
                    "own": part.own,
                    "kind": part.kind,
                    "described": json.loads(part.description.to_bytes()),
                }
                for part in self.rows
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
            rows = tuple(_part(entry, name) for entry in parts["rows"])
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


def _part(entry: dict[str, Any], name: str) -> LinkedTable:
    kind = entry["kind"]
    return LinkedTable(
        table=str(entry["table"]),
        own=int(entry["own"]),
        kind=None if kind is None else int(kind),
        description=Description.from_bytes(json.dumps(entry["described"]).encode(), name=name),
    )


def _check(found: LinkedDescription, name: str) -> None:
    """Refuse parts that do not belong together."""
    columns = {axis.name: axis for axis in found.people.axes}
    known = {person_column(found.people.table, column) for column in (*columns, OWN_KIND)}
    for part in found.rows:
        names = [axis.name for axis in part.description.axes]
        sound = 0 < part.own <= len(names) and set(names[part.own :]) <= known
        sound = sound and part.table in found.owners and found.people.table in found.owners
        if sound and part.kind is not None:
            sound = 0 <= part.kind < part.own and isinstance(
                part.description.axes[part.kind].column.domain, Categories
            )
        counted = [columns.get(each) for each in part.counters] if sound else [None]
        if not all(axis is not None and _from_zero(axis) for axis in counted):
            raise UsageError(f"{name} is broken: its tables do not belong together.")


def _from_zero(axis: Axis) -> bool:
    domain = axis.column.domain
    return isinstance(domain, Integers) and domain.lo == 0 and not axis.column.nullable


def _times(part: LinkedTable, people: pa.Table) -> Places:
    """Return how many rows of each kind every person has; together at most as many as one of them may
    be.
    """
    counted = [people.column(name).to_numpy() for name in part.counters]
    times: Places = np.stack(counted, axis=1).astype(np.int64)
    most = part.description.axes[-1].column.domain
    assert isinstance(most, Integers)
    every = np.maximum(times.sum(axis=1), 1)
    fewer: Places = times * np.minimum(every, int(most.hi))[:, None] // every[:, None]
    return fewer


def _in_time(table: pa.Table, description: Description, width: int) -> pa.Table:
    """Sort each person's rows by the first day or moment that they have; otherwise in any order."""
    moments = [
        a.name
        for a in description.axes[:width]
        if pa.types.is_temporal(table.schema.field(a.name).type)
    ]
    order = [(table.column_names[0], "ascending"), *((name, "ascending") for name in moments[:1])]
    return table.sort_by(order)
