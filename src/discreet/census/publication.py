"""A publication: measurements with margins, tables that add up, generated people, and errors."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.census.counts import Counts
from discreet.census.grid import Columns, Floats, Integers
from discreet.census.measure import Noisy, levels_of
from discreet.census.plan import PublicationPlan
from discreet.census.solve.least_squares import down, from_below
from discreet.files import replacing, write_file

ROWS_AT_ONCE = 1 << 20  # of a file, while it is written
Key = tuple[str, str]  # a level and a table


class Tables(Mapping[Key, pa.Table]):
    """Tables by level and name, `tables["county", "sex"]`; each is put together when somebody looks
    at it.
    """

    def __init__(self, publication: Publication, kind: str) -> None:
        self._publication = publication
        self._kind = kind

    def __getitem__(self, key: Key) -> pa.Table:
        return self._publication.table(*key, kind=self._kind)

    def __iter__(self) -> Iterator[Key]:
        plan = self._publication.plan
        keys = [
            (level, at) for level in range(len(plan.places.levels)) for at in range(len(plan.names))
        ]
        if self._kind == "measurements":
            keys = [key for key in keys if plan.noises[key[0]][key[1]] is not None]
        return iter([(plan.places.levels[level], plan.names[at]) for level, at in keys])

    def __len__(self) -> int:
        return len(list(iter(self)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Publication:
    """One publication that was paid for.

    `tables` are whole numbers, none below zero, which add up over levels and tables; `measurements`
    are what was measured, unbiased, with the half-width of a 95 % interval; `estimates` their least
    squares, unbiased too; `microdata` has one row a person, none of them real, and gives exactly
    the tables; `margins` says how far the tables may be off by level, table and size of place (`of`
    place) or of count (`of` cell), with their bias.
    """

    plan: PublicationPlan
    noisy: Noisy
    people: Counts  # at the finest level
    margins: pa.Table
    certificate: dict[str, Any]

    @property
    def tables(self) -> Tables:
        return Tables(self, "tables")

    @property
    def measurements(self) -> Tables:
        return Tables(self, "measurements")

    @property
    def estimates(self) -> Tables:
        return Tables(self, "estimates")

    @cached_property
    def microdata(self) -> pa.Table:
        """One row a person: where they are and the columns of all tables."""
        return self._persons(slice(None))

    def _persons(self, entries: slice) -> pa.Table:
        people = self.people
        finest = len(self.plan.places.levels) - 1
        place, cell = (
            np.repeat(each[entries], people.count[entries]) for each in (people.place, people.cell)
        )
        return pa.table(self._where(finest, place) | self._values(cell, self.plan.grid.every))

    def counts(self, level: int, table: Columns) -> Integers:
        """Return the whole numbers of a table: places by cells."""
        places = self.plan.places.sizes[level]
        return self._at(level).table(self.plan.grid, table, places).reshape(places, -1)

    def _at(self, level: int) -> Counts:
        """Return the people by the places of a level, in the order of these."""
        place = self.plan.places.above(level)[self.people.place]
        return Counts(place=place, cell=self.people.cell, count=self.people.count)

    def table(self, level: str, table: str, *, kind: str) -> pa.Table:
        """Return one table as it leaves; `kind` is tables, measurements or estimates."""
        if level not in self.plan.places.levels or table not in self.plan.names:
            raise KeyError((level, table))
        at = self.plan.names.index(table)
        here = self.plan.places.levels.index(level)
        return self._rows(here, at, kind, 0, self.plan.places.sizes[here])

    def _rows(self, level: int, at: int, kind: str, first: int, last: int) -> pa.Table:
        """Return one table of some places."""
        columns = self.plan.grid.tables[at]
        places = last - first
        cells = self.plan.grid.cells(columns)
        found = self._where(level, np.repeat(np.arange(first, last), cells))
        found |= self._values(np.tile(np.arange(cells), places), columns, within=columns)
        if kind == "tables":
            counts = self._at(level).between(first, last).table(self.plan.grid, columns, places)
            found["count"] = pa.array(counts.ravel())
        elif kind == "estimates":
            found["estimate"] = pa.array(self._least_squares[level][columns][first:last].ravel())
        else:
            noise = self.plan.noises[level][at]
            if noise is None:
                raise KeyError((self.plan.places.levels[level], self.plan.names[at]))
            found["count"] = pa.array(self.noisy[level, at][first:last].ravel().astype(np.int64))
            found["margin"] = pa.array(np.full(places * cells, noise.margin(0.95)))
        return pa.table(found)

    @cached_property
    def _least_squares(self) -> list[dict[Columns, Floats]]:
        levels = levels_of(self.plan, self.noisy)
        solved = down(from_below(levels, self.plan.grid), levels, self.plan.grid)
        return [{table: each.of(table) for table in self.plan.grid.tables} for each in solved]

    def _where(self, level: int, place: Integers) -> dict[str, pa.Array]:
        names = self.plan.places.levels[1 : level + 1]
        taken = pa.array(place)
        return {
            name: path.take(taken) for name, path in zip(names, self._paths[level], strict=True)
        }

    @cached_property
    def _paths(self) -> list[list[pa.Array]]:
        """Return, for every level, the names of the places that each of its places lies in."""
        places = self.plan.places
        return [
            [pa.array(names) for names in places.path(level)] for level in range(len(places.levels))
        ]

    def _values(
        self, cell: Integers, columns: Columns, *, within: Columns | None = None
    ) -> dict[str, pa.Array]:
        """Return the values that cells stand for; `within` names their table, all columns if left
        out.
        """
        found, left = {}, cell
        for column in reversed(columns if within is None else within):
            axis = self.plan.axes[column]
            code = left % axis.size
            left = left // axis.size
            found[axis.name] = axis.decoded(np.arange(axis.size), np.zeros(axis.size)).take(
                pa.array(code)
            )
        return dict(reversed(found.items()))

    # --- stored -----------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return all that is stored: what was measured, whole numbers, errors and the
        certificate.
        """
        noisy = {f"{level} {at}": counts.ravel() for (level, at), counts in self.noisy.items()}
        people = {"place": self.people.place, "cell": self.people.cell, "count": self.people.count}
        parts = [_pack(pa.table({name: pa.array(values)})) for name, values in noisy.items()]
        parts += [_pack(pa.table({name: pa.array(values) for name, values in people.items()}))]
        parts += [_pack(self.margins), json.dumps(self.certificate, sort_keys=True).encode()]
        return b"".join(len(part).to_bytes(8, "little") + part for part in parts)

    @classmethod
    def from_bytes(cls, content: bytes, plan: PublicationPlan) -> Publication:
        parts = []
        stream = io.BytesIO(content)
        while head := stream.read(8):
            parts.append(stream.read(int.from_bytes(head, "little")))
        *measured, people, margins, certificate = parts
        noisy: Noisy = {}
        for part in measured:
            table = pa.ipc.open_stream(part).read_all()
            level, at = map(int, table.column_names[0].split())
            noisy[level, at] = table.column(0).to_numpy().reshape(plan.places.sizes[level], -1)
        found = pa.ipc.open_stream(people).read_all()
        counts = Counts(
            **{name: found.column(name).to_numpy() for name in ("place", "cell", "count")}
        )
        return cls(
            plan=plan,
            noisy=noisy,
            people=counts,
            margins=pa.ipc.open_stream(margins).read_all(),
            certificate=json.loads(certificate),
        )

    # --- files ------------------------------------------------------------------------------------

    def save(self, folder: str | Path, *, csv: bool = False) -> list[Path]:
        """Write every table, measurement and the microdata into a folder, as Parquet or CSV;
        returns the files.
        """
        home = Path(folder)
        home.mkdir(parents=True, exist_ok=True)
        named = {
            f"{level}_{table}": self._parts("tables", level, table) for level, table in self.tables
        }
        for level, table in self.measurements:
            named[f"{level}_{table}_noisy"] = self._parts("measurements", level, table)
        named |= {"microdata": self._people_in_parts(), "margins": iter([self.margins])}
        written = []
        for name, parts in named.items():
            safe = re.sub(r"[^\w.-]", "_", name)  # columns may be called by anything
            path = home / f"{safe}.{'csv' if csv else 'parquet'}"
            _write(path, parts, csv=csv)
            written.append(path)
        write_file(
            home / "certificate.json",
            json.dumps(self.certificate, indent=1, sort_keys=True, ensure_ascii=False),
        )
        return [*written, home / "certificate.json"]

    def _parts(self, kind: str, level: str, table: str) -> Iterator[pa.Table]:
        """Yield one table, so many places at once that it fits into memory."""
        here = self.plan.places.levels.index(level)
        at = self.plan.names.index(table)
        places = self.plan.places.sizes[here]
        at_once = max(1, ROWS_AT_ONCE // self.plan.grid.cells(self.plan.grid.tables[at]))
        for first in range(0, places, at_once):
            yield self._rows(here, at, kind, first, min(first + at_once, places))

    def _people_in_parts(self) -> Iterator[pa.Table]:
        ends = np.cumsum(self.people.count)
        bounds = np.searchsorted(
            ends, np.arange(0, int(ends[-1]) if len(ends) else 1, ROWS_AT_ONCE), side="right"
        )
        for first, last in pairwise([*bounds.tolist(), len(ends)]):
            yield self._persons(slice(first, last))

    def as_json(self) -> dict[str, Any]:
        """Return what `publish show --format json` prints: sizes, errors and the certificate;
        tables are files.
        """
        plan = self.plan
        sizes = zip(plan.places.levels, plan.places.sizes, strict=True)
        return {
            "publication": plan.terms.name,
            "levels": [{"level": level, "places": places} for level, places in sizes],
            "tables": list(plan.names),
            "people": int(self.people.count.sum()),
            "invariants": plan.promise,
            "margins": self.margins.to_pylist(),
            "certificate": self.certificate,
        }


def _write(path: Path, parts: Iterator[pa.Table], *, csv: bool) -> None:
    import pyarrow.csv
    import pyarrow.parquet

    first = next(parts)
    open_writer = pyarrow.csv.CSVWriter if csv else pyarrow.parquet.ParquetWriter
    with replacing(path) as file, open_writer(file, first.schema) as writer:
        for part in chain([first], parts):
            writer.write_table(part)


def _pack(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(
        sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def totals_by_level(
    publication: Publication, most: int
) -> Iterator[tuple[str, Sequence[tuple[str, int]]]]:
    """Yield the largest places of every level with their totals."""
    plan = publication.plan
    for level, name in enumerate(plan.places.levels):
        counts = publication.counts(level, ()).ravel()
        largest = np.argsort(-counts, kind="stable")[:most]
        yield (
            name,
            [(plan.places.names[level][place], int(counts[place])) for place in largest.tolist()],
        )
