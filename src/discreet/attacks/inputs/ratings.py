"""Sparse records by item: who rated (bought, visited) it, how, and when. The index that the
scoreboard attack reads.

Entries of one item lie together, so an attack with eight items touches eight slices of the arrays
and nothing else. 100 million ratings take about a gigabyte; `save` writes the arrays, `open` maps
them without reading them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.attacks.inputs import source
from discreet.attacks.inputs.source import Batches
from discreet.errors import UsageError

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Index:
    """`start[i] : start[i + 1]` are the entries of item i. `value` and `day` are None where the
    release has none.
    """

    users: pa.Array
    items: pa.Array
    start: NDArray[np.int64]
    user: NDArray[np.int32]
    value: Array | None
    day: Array | None
    first_day: int

    def support(self, items: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.start[items + 1] - self.start[items]

    def activity(self) -> NDArray[np.int64]:
        """Count the entries of each user."""
        total = np.zeros(len(self.users), dtype=np.int64)
        for low in range(0, len(self.user), CHUNK):
            total += np.bincount(self.user[low : low + CHUNK], minlength=len(self.users))
        return total

    def entries_of(self, users: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return (entry, item) of all entries of some users, in one pass over the index."""
        wanted = np.zeros(len(self.users), dtype=bool)
        wanted[users] = True
        entries = np.concatenate(
            [
                low + np.flatnonzero(wanted[self.user[low : low + CHUNK]])
                for low in range(0, len(self.user), CHUNK)
            ]
        )
        return entries, np.searchsorted(self.start, entries, side="right") - 1

    def thin(self, keep: NDArray[np.bool_]) -> Index:
        """Return the index of a release that left some entries out."""
        kept = np.concatenate([[0], np.cumsum(keep)])[self.start]
        return Index(
            users=self.users,
            items=self.items,
            start=kept,
            user=self.user[keep],
            value=None if self.value is None else self.value[keep],
            day=None if self.day is None else self.day[keep],
            first_day=self.first_day,
        )

    def save(self, folder: str | Path) -> None:
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("start", "user", "value", "day"):
            array = getattr(self, name)
            if array is not None:
                np.save(folder / f"{name}.npy", array)
        labels = {
            "first_day": self.first_day,
            "value": self.value is not None,
            "day": self.day is not None,
        }
        (folder / "index.json").write_text(json.dumps(labels), encoding="utf-8")
        for name in ("users", "items"):
            with pa.OSFile(str(folder / f"{name}.arrow"), "wb") as sink:
                batch = pa.record_batch([getattr(self, name)], names=[name])
                with pa.ipc.new_file(sink, batch.schema) as writer:
                    writer.write_batch(batch)

    @classmethod
    def open(cls, folder: str | Path) -> Index:
        folder = Path(folder)
        if not (folder / "index.json").is_file():
            raise UsageError(
                f"{folder} holds no index; write one with --index {folder} and a release."
            )
        labels = json.loads((folder / "index.json").read_text(encoding="utf-8"))
        arrays: dict[str, Any] = {
            name: np.load(folder / f"{name}.npy", mmap_mode="r") if labels.get(name, True) else None
            for name in ("start", "user", "value", "day")
        }
        names = {
            name: pa.ipc.open_file(str(folder / f"{name}.arrow")).read_all()
            for name in ("users", "items")
        }
        columns = {name: table.column(0).combine_chunks() for name, table in names.items()}
        return cls(**columns, **arrays, first_day=labels["first_day"])


CHUNK = 1 << 23


def index(release: str | Path | pa.Table) -> Index:
    """Read a release of (user, item[, value][, day]) twice: once to count, once to put each entry
    in its place.
    """
    have = source.names(release)
    for needed in ("user", "item"):
        if needed not in have:
            listed = ", ".join(have)
            raise UsageError(
                f"The release needs columns user and item, and may have value and day; it has {listed}."
            )
    columns: list[str] = [name for name in ("user", "item", "value", "day") if name in have]
    read = source.batches(release, columns)
    users, items, ranges, rows = _survey(read, columns)
    arrays = {"user": np.empty(rows, dtype=np.int32)}
    arrays |= {name: np.empty(rows, dtype=kind) for name, (kind, _) in ranges.items()}
    counts = np.zeros(len(items), dtype=np.int64)
    for codes in _codes(read, "item", items):
        counts += np.bincount(codes, minlength=len(items))
    start = np.concatenate([[0], np.cumsum(counts)])
    at = start[:-1].copy()
    for batch in read():
        item = _encode(batch.column("item"), items)
        order = np.argsort(item, kind="stable")
        sorted_item = item[order]
        here = np.bincount(item, minlength=len(items))
        within = np.arange(len(item)) - np.repeat(np.concatenate([[0], np.cumsum(here)[:-1]]), here)
        place = at[sorted_item] + within
        at += here
        arrays["user"][place] = _encode(batch.column("user"), users)[order]
        for name, (_, base) in ranges.items():
            arrays[name][place] = (numbers(batch.column(name), name) - base)[order]
    first_day = int(ranges["day"][1]) if "day" in ranges else 0
    return Index(
        users=users,
        items=items,
        start=start,
        user=arrays["user"],
        value=arrays.get("value"),
        day=arrays.get("day"),
        first_day=first_day,
    )


def _survey(
    read: Batches, columns: list[str]
) -> tuple[pa.Array, pa.Array, dict[str, tuple[Any, float]], int]:
    """Return the users, the items, the smallest types that hold values and days exactly, and the
    rows.
    """
    seen: dict[str, pa.Array] = {}
    spans: dict[str, tuple[float, float, bool]] = {}
    rows = 0
    for batch in read():
        rows += batch.num_rows
        for name in ("user", "item"):
            fresh = pc.unique(batch.column(name))
            seen[name] = (
                fresh if name not in seen else pc.unique(pa.concat_arrays([seen[name], fresh]))
            )
        for name in columns[2:]:
            array = numbers(batch.column(name), name)
            low, high, whole = spans.get(name, (np.inf, -np.inf, True))
            whole = whole and bool((array == np.floor(array)).all())
            low = min(low, float(array.min(initial=np.inf)))
            high = max(high, float(array.max(initial=-np.inf)))
            spans[name] = low, high, whole
    if rows == 0:
        raise UsageError("The release is empty: there is nobody to find.")
    if any(seen[name].null_count for name in seen):
        raise UsageError("The release has rows without user or item; leave them out.")
    return (
        seen["user"],
        seen["item"],
        {name: _smallest(name, *span) for name, span in spans.items()},
        rows,
    )


def _smallest(name: str, low: float, high: float, whole: bool) -> tuple[Any, float]:
    base = low if name == "day" else 0.0  # days are kept from the first one on
    for kind in (np.uint8, np.uint16, np.int32) if whole else ():
        if np.iinfo(kind).min <= low - base and high - base <= np.iinfo(kind).max:
            return kind, base
    return np.float32, base


def numbers(array: pa.Array, name: str) -> NDArray[np.float64]:
    """Return numbers as they are, dates and times as days since 1970, and text read as ISO
    dates.
    """
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        array = _parse(array, name)
        kind = array.type
    if pa.types.is_date(kind):
        return np.asarray(
            array.cast(pa.date32()).cast(pa.int32()).to_numpy(zero_copy_only=False),
            dtype=np.float64,
        )
    if pa.types.is_timestamp(kind):
        seconds = (
            array.cast(pa.timestamp("s"), safe=False)
            .cast(pa.int64())
            .to_numpy(zero_copy_only=False)
        )
        return np.floor(np.asarray(seconds, dtype=np.float64) / 86400)
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.float64)


def _parse(array: pa.Array, name: str) -> pa.Array:
    try:
        return array.cast(pa.date32()) if name == "day" else array.cast(pa.float64())
    except pa.ArrowInvalid:
        wanted = "dates (2024-12-31) or numbers of days" if name == "day" else "numbers"
        raise UsageError(f"The column {name} must hold {wanted}.") from None


def _codes(read: Batches, name: str, labels: pa.Array) -> Iterator[NDArray[np.int64]]:
    for batch in read():
        yield _encode(batch.column(name), labels)


def _encode(array: pa.Array, labels: pa.Array) -> NDArray[np.int64]:
    return np.asarray(
        pc.index_in(array, value_set=labels).to_numpy(zero_copy_only=False), dtype=np.int64
    )
