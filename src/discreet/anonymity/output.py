"""The published table: labels instead of values, written whole or not at all, and measured once
more before it leaves.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.anonymity.hierarchies import Hierarchy, number_text
from discreet.anonymity.recoding.lattice import Recoding
from discreet.anonymity.source import SUFFIXES, Floats, Groups, Integers, SourceTable
from discreet.engines.quoting import literal
from discreet.engines.quoting import name as quoted
from discreet.errors import DiscreetError, UsageError


class PromiseBroken(DiscreetError):
    """The finished table breaks the promise, so it was not released. It should never happen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tight:
    """The interval that is published for each row group instead of its group (NaN: as the hierarchy
    says).
    """

    least: Floats
    most: Floats
    spans: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """The labels of a column: a text for each row group, and the share of the domain that the text
    covers.
    """

    text: pa.Array
    exact: bool  # nothing was coarsened
    tight: Tight | None = None


def labels(
    hierarchy: Hierarchy, codes: Integers, levels: Integers, classes: Integers, *, tight: bool
) -> Labels:
    """Return the label of each row group at its level; if tight, the smallest and largest number of
    its class.
    """
    offsets = np.cumsum([0, *(len(level) for level in hierarchy.labels)])
    nodes = np.stack(hierarchy.nodes)[levels, codes]
    every = pa.array([label for level in hierarchy.labels for label in level], pa.string())
    text = every.take(pa.array(offsets[levels] + nodes))
    exact = not levels[classes >= 0].any()
    if not tight or hierarchy.ordered is None or exact:
        return Labels(text=text, exact=exact)
    return _tighten(hierarchy, codes, levels, classes, text)


def _tighten(
    hierarchy: Hierarchy, codes: Integers, levels: Integers, classes: Integers, text: pa.Array
) -> Labels:
    ordered = np.asarray(hierarchy.ordered, dtype=np.float64)
    numbers = ordered[codes]
    kept = classes >= 0
    count = int(classes.max()) + 1
    least = np.full(count, np.inf)
    most = np.full(count, -np.inf)
    # NaN stands for null: a class that has both keeps its `*`
    np.minimum.at(least, classes[kept], numbers[kept])
    np.maximum.at(most, classes[kept], numbers[kept])
    known = np.isfinite(least) & np.isfinite(most)
    shown = [
        _interval(low, high, whole=hierarchy.whole) if ok else None
        for low, high, ok in zip(least.tolist(), most.tolist(), known.tolist(), strict=True)
    ]
    changed = kept & (levels > 0) & known[classes]
    step = 1.0 if hierarchy.whole else 0.0
    spread = float(np.nanmax(ordered) - np.nanmin(ordered)) + step
    shares = np.where(most > least, (most - least + step) / (spread or 1.0), 0.0)
    as_it_was = np.stack(
        [spans[nodes] for spans, nodes in zip(hierarchy.spans, hierarchy.nodes, strict=True)]
    )
    return Labels(
        text=pc.if_else(
            pa.array(changed),
            pa.array(shown, pa.string()).take(pa.array(np.maximum(classes, 0))),
            text,
        ),
        exact=False,
        tight=Tight(
            least=np.where(changed, least[classes], np.nan),
            most=np.where(changed, most[classes], np.nan),
            spans=np.where(changed, shares[classes], as_it_was[levels, codes]),
        ),
    )


def _interval(low: float, high: float, *, whole: bool) -> str:
    if low == high:
        return number_text(low)
    between = "-" if whole and low >= 0 else None
    if between:
        return f"{number_text(low)}-{number_text(high)}"
    return f"[{number_text(low)}, {number_text(high)}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRecoding:
    """A recoding with all that it was made from: row groups, and of each column its hierarchy and
    what is shown.
    """

    groups: Groups
    hierarchies: Sequence[Hierarchy]
    recoded: Recoding
    shown: tuple[Labels, ...]

    @property
    def spans(self) -> dict[str, Floats]:
        """Return the share of the domain that each row group's tightened interval covers, by
        column.
        """
        pairs = zip(self.hierarchies, self.shown, strict=True)
        return {each.column: label.tight.spans for each, label in pairs if label.tight is not None}


def query(source: SourceTable, made: TableRecoding, drop: Sequence[str]) -> str:
    """Write the SELECT that replaces quasi-identifiers, leaves suppressed rows out, and hides the
    original order.
    """
    groups = made.groups
    kept = pa.array(made.recoded.classes >= 0)
    pairs = zip(groups.values, groups.codes, strict=True)
    known = {f"k{i}": values.take(pa.array(codes)) for i, (values, codes) in enumerate(pairs)}
    new = {f"q{i}": each.text for i, each in enumerate(made.shown)}
    source.connection.register("recoded", pa.table({**known, **new}).filter(kept))
    changed = {each.column: i for i, each in enumerate(made.hierarchies) if not made.shown[i].exact}
    columns = [
        f"m.q{changed[name]} AS {quoted(name)}" if name in changed else f"d.{quoted(name)}"
        for name in source.types
        if name not in drop
    ]
    same = " AND ".join(
        f"d.{quoted(name)} IS NOT DISTINCT FROM m.k{i}" for i, name in enumerate(groups.columns)
    )
    return f"SELECT {', '.join(columns)} FROM data d JOIN recoded m ON {same} ORDER BY ALL"


# Writing.


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFile:
    """A file to be, and where it grows until it is checked."""

    path: Path
    temporary: Path

    @staticmethod
    def at(path: Path, source: object) -> OutputFile:
        if path.suffix not in SUFFIXES:
            raise UsageError(f"{path} should end in {' or '.join(SUFFIXES)}.")
        if not path.absolute().parent.is_dir():
            raise UsageError(f"{path.parent} is not a folder. Name a file in one that is there.")
        if (
            isinstance(source, str | Path)
            and path.exists()
            and Path(source).exists()
            and path.samefile(source)
        ):
            raise UsageError(f"{path} is the table itself. Name another file.")
        return OutputFile(
            path=path, temporary=path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
        )


@contextmanager
def write(source: SourceTable, select: str, target: OutputFile | None) -> Iterator[pa.Table | Path]:
    """Yield the finished table: in memory, or in a file that gets its name only if the block ends
    well.
    """
    if target is None:
        yield source.arrow(select)
        return
    kind = "FORMAT parquet" if target.path.suffix == ".parquet" else "FORMAT csv, HEADER"
    try:
        try:
            source.connection.execute(
                f"COPY ({select}) TO {literal(str(target.temporary))} ({kind})"
            ).fetchall()
        except duckdb.IOException:
            raise UsageError(f"{target.path} cannot be written.") from None
        yield target.temporary
        with target.temporary.open("rb") as file:
            os.fsync(file.fileno())
        target.temporary.replace(target.path)
    finally:
        target.temporary.unlink(missing_ok=True)


# The last look.


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """The figures of a finished table."""

    rows: int
    classes: int
    sizes: Integers
    l: int | None  # noqa: E741
    t: float | None
