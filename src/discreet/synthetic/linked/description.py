"""Descriptions of several tables of the same people in one file, and the linked rows that we draw
from them.

Draw people first, each with the numbers of rows in the other tables; then draw these rows given
their person. Owners are new numbers from 1, so they are nobody's real identifiers.
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

FORMAT = "discreet linked descriptions"
VERSION = 2
MOST_PEOPLE = 10**7  # of one call
COUNTER = "rows of "  # the begin of the names of a person's numbers of rows
OWN_KIND = "rows of its kind"


def counter_name(table: str, kind: str | None) -> str:
    """Return what a person's number of rows is called, of one kind or of all."""
    return f"{COUNTER}{table}" if kind is None else f"{COUNTER}{table}: {kind}"


def person_column(people: str, name: str) -> str:
    """Return the name of a person's column beside a row."""
    return f"{people}.{name}"


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkedTable:
    """The description of a table's rows: its `own` columns come first, then their person's."""

    table: str
    own: int
    kind: int | None  # the column with the kinds of rows
    description: Description

    @property
    def counters(self) -> tuple[str, ...]:
        """Return the names of a person's numbers of rows, one for each kind."""
        if self.kind is None:
            return (counter_name(self.table, None),)
        domain = self.description.axes[self.kind].column.domain
        assert isinstance(domain, Categories)
        return tuple(counter_name(self.table, str(value)) for value in domain.values)


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkedDescription:
    """The descriptions of people with their numbers of rows, and of the rows of every other table."""

    people: Description
    rows: tuple[LinkedTable, ...]
    owners: Mapping[str, str]  # for each table, the name of its owner column
    cost: dict[str, Any]
    certificate: dict[str, Any]

    @property
    def tables(self) -> tuple[str, ...]:
        return (self.people.table, *(part.table for part in self.rows))

    @property
    def parts(self) -> tuple[Description, ...]:
        """Return the descriptions: of people, then of the rows of each table."""
        return (self.people, *(part.description for part in self.rows))

    def generate(self, *, people: int | None = None) -> dict[str, pa.Table]:
        """Draw linked synthetic tables, for free and different each time; by default with about as
        many people as there are.
        """
        count = self.people.rows if people is None else people
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MOST_PEOPLE:
            raise UsageError(
                f"people must be a whole number from 0 to {MOST_PEOPLE:,}, not {count!r}."
            )
        people_rows = self.people.generate(rows=count)
        numbers = pa.array(np.arange(1, count + 1))
        own = [name for name in people_rows.column_names if not name.startswith(COUNTER)]
        name = self.people.table
        tables = {name: people_rows.select(own).add_column(0, self.owners[name], numbers)}
        for part in self.rows:
            tables[part.table] = self._rows(part, people_rows)
        return tables

    def _rows(self, part: LinkedTable, people: pa.Table) -> pa.Table:
        """Draw the rows of every person: as many of each kind as the person has."""
        times = _times(part, people)
        places = np.repeat(np.arange(times.size), times.ravel())
        whose, kinds = np.divmod(places, times.shape[1])
        groups = self._person_groups(part, people, whose, times[whose, kinds])
        if part.kind is not None:
            groups[part.kind] = part.description.groups[part.kind][kinds]
        rows = draw_given(part.description, part.own, groups, len(whose))
        if part.kind is not None:  # a group of the model may be several kinds
            axis = part.description.axes[part.kind]
            rows = rows.set_column(part.kind, axis.name, axis.decoded(kinds, np.zeros(len(kinds))))
        with_owner = rows.add_column(0, self.owners[part.table], pa.array(whose + 1))
        return _in_time(with_owner, part.description, part.own)

    def _person_groups(
        self, part: LinkedTable, people: pa.Table, whose: Places, alike: Places
    ) -> dict[int, Places]:
        """Return the model's groups of the person's columns for every row, by column of the rows'
        description.
        """
        groups = {}
        description = part.description
        for column, axis in enumerate(description.axes[part.own :], start=part.own):
            own = axis.name.removeprefix(person_column(self.people.table, ""))
            if own == OWN_KIND:
                codes = axis.codes(pa.chunked_array([pa.array(alike)]))
            else:
                codes = axis.codes(people.column(own))[whose]
            groups[column] = description.groups[column][np.maximum(codes, 0)]
        return groups

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
        """Read a file; raise UsageError for any other file, also a broken or hostile one.

        Nothing in the file runs.
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
        is_object = isinstance(parts, dict)
        if not is_object or (parts.get("format"), parts.get("version")) != (FORMAT, VERSION):
            raise UsageError(
                f'{name} is not of several tables: it does not say "format": "{FORMAT}", version {VERSION}.'
            )
        try:
            people = Description.from_bytes(json.dumps(parts["people"]).encode(), name=name)
            rows = tuple(_part(entry, name) for entry in parts["rows"])
            owners = {str(table): str(owner) for table, owner in parts["owners"].items()}
            linked = cls(
                people=people,
                rows=rows,
                owners=owners,
                cost=parts["cost"],
                certificate=parts["certificate"],
            )
            _check(linked, name)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(
                f"{name} is broken: a field is missing or wrong ({type(error).__name__})."
            ) from None
        return linked


def is_linked(path: str | Path) -> bool:
    """Return True if a file begins like a description of several tables."""
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


def _check(linked: LinkedDescription, name: str) -> None:
    """Refuse parts that do not belong together."""
    for part in linked.rows:
        if not _belongs(linked, part):
            raise UsageError(f"{name} is broken: its tables do not belong together.")


def _belongs(linked: LinkedDescription, part: LinkedTable) -> bool:
    """Return True if a table's rows belong to the people of a description."""
    people = linked.people
    columns = {axis.name: axis for axis in people.axes}
    theirs = {person_column(people.table, column) for column in (*columns, OWN_KIND)}
    names = [axis.name for axis in part.description.axes]
    if not 0 < part.own <= len(names) or not set(names[part.own :]) <= theirs:
        return False
    if part.table not in linked.owners or people.table not in linked.owners:
        return False
    if part.kind is not None:
        if not 0 <= part.kind < part.own:
            return False
        if not isinstance(part.description.axes[part.kind].column.domain, Categories):
            return False
    numbers = [columns.get(counter) for counter in part.counters]
    return all(axis is not None and _from_zero(axis) for axis in numbers)


def _from_zero(axis: Axis) -> bool:
    domain = axis.column.domain
    return isinstance(domain, Integers) and domain.lo == 0 and not axis.column.nullable


def _times(part: LinkedTable, people: pa.Table) -> Places:
    """Return how many rows of each kind every person has, scaled down to at most `max_rows` rows
    together.
    """
    numbers = [people.column(name).to_numpy() for name in part.counters]
    times: Places = np.stack(numbers, axis=1).astype(np.int64)
    # the last column, a number of rows of one kind, goes up to max_rows
    most = part.description.axes[-1].column.domain
    assert isinstance(most, Integers)
    total = np.maximum(times.sum(axis=1), 1)
    fewer: Places = times * np.minimum(total, int(most.hi))[:, None] // total[:, None]
    return fewer


def _in_time(table: pa.Table, description: Description, width: int) -> pa.Table:
    """Sort rows by person, and by the first column of dates or times if there is one."""
    order = [(table.column_names[0], "ascending")]
    for axis in description.axes[:width]:
        if pa.types.is_temporal(table.schema.field(axis.name).type):
            order.append((axis.name, "ascending"))
            break
    return table.sort_by(order)
