"""Linkage (Sweeney): join a release without names to a list with names, on what both know.

Use it on any table that "contains no names" beside any list that does: a voter list, a directory, a
leaked file. It says how many rows of the release belong to one known person, by which columns, and
with what confidence; and for each set of columns, how many people are unique in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.attacks.experiment.finding import Finding, Rate
from discreet.attacks.inputs import source
from discreet.engines.duckdb.locked import connect
from discreet.errors import UsageError

Codes = NDArray[np.int64]

MOST_SUBSETS = 4096
NAMED = 0.5  # more likely this person than all others together


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A column of both tables; equal, or within `tolerance` (days, units), or of text at least so
    similar.
    """

    release: str
    identified: str
    tolerance: float | None = None

    @classmethod
    def parse(cls, text: str) -> Field:
        """Parse `born`, `birth=born`, `born~3` or `name~0.9`."""
        columns, _, tolerance = text.partition("~")
        release, _, identified = columns.partition("=")
        try:
            within = float(tolerance) if tolerance else None
        except ValueError:
            raise UsageError(
                f'After ~ in "{text}" comes a number: born~3 (days), name~0.9 (similarity).'
            ) from None
        return cls(
            release=release.strip(), identified=(identified or release).strip(), tolerance=within
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A row of the release and the likeliest person of the list."""

    release_row: int
    identified_row: int
    confidence: float
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniqueness:
    """The share of rows that nobody shares these columns with: in the release, and in the list."""

    columns: tuple[str, ...]
    release: float
    identified: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Linkage:
    """`risks`: the attacker knows the target is in the release (prosecutor), or not (journalist),
    or wants everybody (marketer).
    """

    finding: Finding
    links: tuple[Link, ...]
    uniqueness: tuple[Uniqueness, ...]
    risks: dict[str, float]
    identity: pa.Table  # what the list says beyond the columns linked by: names
    released: pa.Table  # what the release says beyond them: secrets

    def as_json(self, *, reveal: bool = False) -> dict[str, object]:
        return {
            **self.finding.as_json(),
            "named": len(self.links),
            "risks": self.risks,
            "uniqueness": [
                {"columns": list(u.columns), "release": u.release, "identified": u.identified}
                for u in self.uniqueness
            ],
            "links": [self._describe(link, reveal=reveal) for link in self.links],
        }

    def _describe(self, link: Link, *, reveal: bool) -> dict[str, object]:
        shown: dict[str, object] = {
            "release_row": link.release_row,
            "confidence": link.confidence,
            "columns": list(link.columns),
        }
        if reveal:
            shown["identified_row"] = link.identified_row
            shown["identity"] = self.identity.slice(link.identified_row, 1).to_pylist()[0]
            shown["released"] = self.released.slice(link.release_row, 1).to_pylist()[0]
        return shown


def link(
    release: pa.Table | str | Path,
    identified: pa.Table | str | Path,
    *,
    on: Sequence[str | Field],
    truth: str | None = None,
    coverage: float = 1.0,
) -> Linkage:
    """Re-identify the rows of a release.

    `truth` names a column of both that says who is who, for experiments: success then counts right
    names only. `coverage` is the share of the population on the list: somebody who is not on it may
    be the one.
    """
    left = release if isinstance(release, pa.Table) else source.table(release)
    right = identified if isinstance(identified, pa.Table) else source.table(identified)
    fields = [field if isinstance(field, Field) else Field.parse(field) for field in on]
    _refuse_if_unknown(left, right, fields, coverage)
    exact = [field for field in fields if field.tolerance is None]
    codes = [_codes(left, right, field) for field in exact]
    if len(exact) == len(fields):
        links = _exact(codes, exact, left.num_rows, coverage)
    else:
        links = _fuzzy(left, right, fields, codes)
    hits = len(links) if truth is None else _right(left, right, links, truth)
    whole = _together(codes, left.num_rows + right.num_rows)
    return Linkage(
        finding=Rate(hits=hits, n=left.num_rows).finding("link", chance=1 / max(right.num_rows, 1)),
        links=tuple(links),
        uniqueness=tuple(uniqueness(codes, [field.release for field in exact], left.num_rows)),
        risks=_risks(whole, left.num_rows),
        identity=right.drop_columns(sorted({f.identified for f in fields} - {truth})),
        released=left.drop_columns(sorted({f.release for f in fields} - {truth})),
    )


def _refuse_if_unknown(
    left: pa.Table, right: pa.Table, fields: list[Field], coverage: float
) -> None:
    if not fields:
        raise UsageError("Say which columns to link by: --on zip --on sex --on born.")
    for field in fields:
        source.column(left, field.release, "The release")
        source.column(right, field.identified, "The list")
    if not 0 < coverage <= 1:
        raise UsageError(f"The coverage of a list lies between 0 and 1, not at {coverage}.")
    if left.num_rows == 0:
        raise UsageError("The release is empty: there is nobody to find.")


def _codes(left: pa.Table, right: pa.Table, field: Field) -> Codes:
    """Encode both columns as numbers, equal where the values are; NULL is -1 and equals nothing."""
    a = left.column(field.release)
    b = right.column(field.identified)
    if a.type != b.type:
        a = a.cast(pa.string())
        b = b.cast(pa.string())
    both = pa.chunked_array([*a.chunks, *b.chunks], type=a.type).combine_chunks()
    indices = (
        both.dictionary_encode().indices if not pa.types.is_dictionary(both.type) else both.indices
    )
    return np.asarray(indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)


def _together(codes: Sequence[Codes], rows: int) -> Codes:
    """Join several columns into one; a NULL in any makes a row equal to nothing."""
    together = np.zeros(rows, dtype=np.int64)
    missing = np.zeros(rows, dtype=bool)
    for column in codes:
        missing |= column < 0
        together = np.unique(
            together * (column.max(initial=0) + 2) + column + 1, return_inverse=True
        )[1].reshape(-1)
    together[missing] = -1
    return together


def _sizes(together: Codes, split: int) -> tuple[Codes, Codes]:
    """Count for each row of both tables who shares its key in the release and in the list; rows
    with NULL: 0, 0.
    """
    size = int(together.max(initial=-1)) + 1
    left = np.bincount(together[:split][together[:split] >= 0], minlength=size)
    right = np.bincount(together[split:][together[split:] >= 0], minlength=size)
    known = together >= 0
    at = np.where(known, together, 0)
    if not size:
        return np.zeros_like(together), np.zeros_like(together)
    return np.where(known, left[at], 0), np.where(known, right[at], 0)


def _exact(codes: list[Codes], fields: list[Field], split: int, coverage: float) -> list[Link]:
    rows = len(codes[0])
    together = _together(codes, rows)
    in_release, on_list = _sizes(together, split)
    candidates = np.maximum(in_release, on_list)[:split]
    found = np.flatnonzero((on_list[:split] > 0) & (candidates == 1))
    person = {key: row for row, key in enumerate(together[split:].tolist()) if key >= 0}
    others = _expect_unlisted(codes, split, coverage)
    smallest = _smallest(codes, fields, split, found)
    links = []
    for row in found.tolist():
        mean = float(others[row])
        confidence = (1 - exp(-mean)) / mean if mean > 0 else 1.0  # of E[1 / (1 + Poisson(mean))]
        if confidence > NAMED:
            to = person[int(together[row])]
            links.append(
                Link(
                    release_row=row, identified_row=to, confidence=confidence, columns=smallest[row]
                )
            )
    return links


def _expect_unlisted(codes: list[Codes], split: int, coverage: float) -> NDArray[np.float64]:
    """Return how many people outside the list should share each row's key, if columns were
    independent.
    """
    listed = len(codes[0]) - split
    expected = np.full(split, listed / coverage - listed)
    for column in codes:
        there = column[split:][column[split:] >= 0]
        # the last is of what is missing
        shares = np.bincount(there, minlength=int(column.max()) + 2) / max(listed, 1)
        expected *= shares[column[:split]]
    return expected


def _smallest(
    codes: list[Codes], fields: list[Field], split: int, rows: Codes
) -> dict[int, tuple[str, ...]]:
    """Return, for each re-identified row, the fewest columns that are enough."""
    names = [field.release for field in fields]
    found: dict[int, tuple[str, ...]] = {}
    for chosen in _subsets(len(codes)):
        in_release, on_list = _sizes(_together([codes[i] for i in chosen], len(codes[0])), split)
        alone = (in_release[:split] == 1) & (on_list[:split] == 1)
        for row in rows[alone[rows]].tolist():
            found.setdefault(row, tuple(names[i] for i in chosen))
        if len(found) == len(rows):
            break
    everything = tuple(names)
    return {row: found.get(row, everything) for row in rows.tolist()}


def uniqueness(codes: list[Codes], names: list[str], split: int) -> Iterable[Uniqueness]:
    """Return the share of unique rows by each subset of columns, smallest subsets first."""
    for chosen in _subsets(len(codes)):
        together = _together([codes[i] for i in chosen], len(codes[0]))
        in_release, on_list = _sizes(together, split)
        yield Uniqueness(
            columns=tuple(names[i] for i in chosen),
            release=float((in_release[:split] == 1).mean()),
            identified=float((on_list[split:] == 1).mean()) if split < len(together) else 0.0,
        )


def _subsets(n: int) -> list[tuple[int, ...]]:
    subsets: list[tuple[int, ...]] = []
    for size in range(1, n + 1):
        subsets += combinations(range(n), size)
        if len(subsets) > MOST_SUBSETS:
            return [*subsets[:MOST_SUBSETS], tuple(range(n))]
    return subsets


def _risks(together: Codes, split: int) -> dict[str, float]:
    in_release, on_list = (sizes[:split] for sizes in _sizes(together, split))
    alone = np.where(in_release > 0, 1 / np.maximum(in_release, 1), 0.0)
    listed = np.where(on_list > 0, 1 / np.maximum(on_list, 1), 0.0)
    return {
        "prosecutor_highest": float(alone.max(initial=0)),
        "prosecutor_average": float(alone.mean()),
        "journalist_highest": float(listed.max(initial=0)),
        "marketer": float(listed.mean()),
    }


def _fuzzy(left: pa.Table, right: pa.Table, fields: list[Field], codes: list[Codes]) -> list[Link]:
    """Join within tolerances; a candidate is as likely as its similarity among the candidates of
    both sides.
    """
    split = left.num_rows
    key = _together(codes, split + right.num_rows)
    fuzzy = [field for field in fields if field.tolerance is not None]
    connection = connect()
    connection.register("release", _columns(left, [f.release for f in fuzzy], key[:split]))
    connection.register("list", _columns(right, [f.identified for f in fuzzy], key[split:]))
    parts = [_similarity(left, field, f"r.c{i}", f"l.c{i}") for i, field in enumerate(fuzzy)]
    condition = " AND ".join(["r.k = l.k", "r.k >= 0", *(within for within, _ in parts)])
    score = " * ".join(similar for _, similar in parts)
    found = connection.sql(
        f"SELECT r.row, l.row, {score} AS score FROM release r JOIN list l ON {condition} ORDER BY 1, 3 DESC, 2"
    ).to_arrow_table()
    connection.close()
    row, to, similar = (np.asarray(found.column(i).to_numpy()) for i in range(3))
    by_row = np.bincount(row, weights=similar, minlength=split)
    by_person = np.bincount(to, weights=similar, minlength=right.num_rows)
    confidence = similar / np.maximum(by_row[row], by_person[to])
    names = tuple(field.release for field in fields)
    return [
        Link(
            release_row=int(row[i]),
            identified_row=int(to[i]),
            confidence=float(confidence[i]),
            columns=names,
        )
        for i in np.flatnonzero(confidence > NAMED)
    ]


def _columns(table: pa.Table, names: list[str], key: Codes) -> pa.Table:
    columns: dict[str, Any] = {"row": np.arange(table.num_rows), "k": key}
    return pa.table(columns | {f"c{i}": table.column(name) for i, name in enumerate(names)})


def _similarity(left: pa.Table, field: Field, a: str, b: str) -> tuple[str, str]:
    """Return SQL that tests whether values are near enough, and SQL for how near, from 1 down."""
    kind = left.column(field.release).type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        similar = f"jaro_winkler_similarity(lower({a}), lower(CAST({b} AS VARCHAR)))"
        return f"{similar} >= {field.tolerance}", similar
    apart = f"abs(date_diff('day', {a}, {b}))" if pa.types.is_temporal(kind) else f"abs({a} - {b})"
    return f"{apart} <= {field.tolerance}", f"(1 - {apart} / ({field.tolerance} + 1.0))"


def _right(left: pa.Table, right: pa.Table, links: list[Link], truth: str) -> int:
    a = source.column(left, truth, "The release").to_pylist()
    b = source.column(right, truth, "The list").to_pylist()
    return sum(a[link.release_row] == b[link.identified_row] for link in links)
