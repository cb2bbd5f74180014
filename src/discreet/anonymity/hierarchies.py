"""Hierarchies: how a column's values may be coarsened, step by step, from exact to `*`.

What people write (`Bands`, `Cuts`, `Prefix`, `Dates`, `Tree`) says nothing about any table; `build`
applies it to the values that a column has. Every level is a partition of the values, and each is
coarser than the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.anonymity.source import Floats, Integers, plain
from discreet.errors import UsageError

PARTS = ("day", "month", "quarter", "year", "decade", "century")
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200}
_MOST_BANDS = 2**52  # from zero: beyond, floating point cannot tell neighboring bands apart

Branches = Mapping[str, "Branches | tuple[str, ...]"]
Label = str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bands:
    """Numbers in bands of equal width, each width a multiple of the one before: 23, 20-24, 20-29,
    20-39, *.

    `tight`: publish the smallest and largest number of a class instead of its band. It loses less,
    and it says that somebody in the class has exactly that number.
    """

    widths: tuple[Fraction, ...]
    start: Fraction = Fraction(0)
    tight: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Numbers between cut points; each level's points are among those of the level before."""

    levels: tuple[tuple[Fraction, ...], ...]
    tight: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """Codes by their first characters: 02139, 0213*, 021**, *."""

    lengths: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dates:
    """Dates by their parts: 2000-09-27, 2000-09, 2000, 2000s, *."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Named groups of values, possibly of groups; what stands in no group must be listed in the
    tree's top level.

    `branches` maps a group to its values or to further groups. `closed` False admits values that
    are not listed.
    """

    branches: Branches
    closed: bool = True


Spec = Bands | Cuts | Prefix | Dates | Tree
FLAT = Tree(branches={}, closed=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """The levels of one column: `nodes[level][value]` is the group a value falls in, named
    `labels[level][node]`.

    `spans[level][node]` is the share of the domain that the group stands for: 0 if it stands for
    one value, 1 for `*`. `domain` is how many values the domain has: whole numbers, days, leaves of
    a tree; infinite for other numbers. Level 0 is exact and the last level is `*`. `ordered` are
    the values as numbers where they have an order.
    """

    column: str
    spec: Spec
    names: tuple[str, ...]
    nodes: tuple[Integers, ...]
    labels: tuple[tuple[Label, ...], ...]
    spans: tuple[Floats, ...]
    domain: float
    ordered: Floats | None = None
    whole: bool = False  # of numbers: they are whole ones

    @property
    def height(self) -> int:
        return len(self.nodes) - 1

    @property
    def tight(self) -> bool:
        return isinstance(self.spec, Bands | Cuts) and self.spec.tight


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    name: str
    nodes: Integers
    labels: tuple[Label, ...]
    spans: Floats


def build(spec: Spec, column: str, values: pa.Array) -> Hierarchy:
    """Build the hierarchy of the values that a column has (distinct, null last)."""
    missing = len(values) - 1 if values.null_count else None
    present = values.slice(0, len(values) - values.null_count)
    kept: Floats | None = None
    match spec:
        case Bands() | Cuts():
            kept = _numbers(column, present)
            levels = _intervals(spec, column, kept, whole=_is_whole(present))
        case Dates():
            days = _days(column, present)
            kept = days.astype(np.float64)
            levels = _calendar(spec, days)
        case Prefix():
            levels = _prefixes(spec, column, present)
        case Tree():
            levels = _branches(spec, column, [plain(value) or "" for value in present.to_pylist()])
    exact = _Level(
        name="exact",
        nodes=np.arange(len(present), dtype=np.int64),
        labels=tuple(plain(value) for value in present.to_pylist()),
        spans=np.zeros(len(present)),
    )
    below = [exact, *levels]
    if missing is not None:
        below = [_with_missing(level) for level in below]
    top = _Level(
        name="*",
        nodes=np.zeros(len(values), dtype=np.int64),
        labels=("*",),
        spans=np.array([0.0 if len(values) == 1 else 1.0]),
    )
    every = [*below, top]
    return Hierarchy(
        column=column,
        spec=spec,
        names=tuple(level.name for level in every),
        nodes=tuple(level.nodes for level in every),
        labels=tuple(level.labels for level in every),
        spans=tuple(level.spans for level in every),
        domain=_domain(spec, present, kept),
        ordered=kept if kept is None or missing is None else np.append(kept, np.nan),
        whole=_is_whole(present),
    )


def _domain(spec: Spec, present: pa.Array, kept: Floats | None) -> float:
    """Return the number of values in the domain that spans are shares of."""
    if isinstance(spec, Tree):
        listed = leaf_paths(spec.branches)
        return len(listed) + sum(plain(value) not in listed for value in present.to_pylist())
    if kept is None:
        return len(present)
    counted = isinstance(spec, Dates) or _is_whole(present)
    return float(np.ptp(kept)) + 1 if counted and len(kept) else float("inf")


def _with_missing(level: _Level) -> _Level:
    """Add null, a value like any other: it stays null until `*`."""
    return _Level(
        name=level.name,
        nodes=np.append(level.nodes, len(level.labels)),
        labels=(*level.labels, None),
        spans=np.append(level.spans, 0.0),
    )


def _level(
    name: str,
    keys: Integers | Sequence[str],
    label: Mapping[object, str],
    spans: Mapping[object, float],
) -> _Level:
    found, nodes = np.unique(np.asarray(keys), return_inverse=True)
    listed = found.tolist()
    return _Level(
        name=name,
        nodes=nodes.astype(np.int64),
        labels=tuple(label[key] for key in listed),
        spans=np.array([spans[key] for key in listed], dtype=np.float64),
    )


# Numbers.


def _is_whole(values: pa.Array) -> bool:
    return bool(pa.types.is_integer(values.type))


def _numbers(column: str, values: pa.Array) -> Floats:
    kind = values.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise UsageError(
            f"{column} is not a column of numbers: bands and cuts are for numbers. Write a tree for it."
        )
    numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    if not np.isfinite(numbers).all():
        raise UsageError(
            f"{column} holds a number that is not finite. Make it null, or leave the column out."
        )
    return np.asarray(numbers, dtype=np.float64)


Ends = tuple[Fraction | None, Fraction | None]
"""An interval from the first, included, to the second, excluded; None is without end."""


def _intervals(spec: Bands | Cuts, column: str, numbers: Floats, *, whole: bool) -> list[_Level]:
    made = []
    low, high = (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 0.0)
    for name, keys, ends in _cut(spec, column, numbers):
        labels: dict[object, str] = {
            key: interval_text(a, b, whole=whole) for key, (a, b) in ends.items()
        }
        spans: dict[object, float] = {
            key: interval_span(a, b, low=low, high=high, whole=whole)
            for key, (a, b) in ends.items()
        }
        made.append(_level(name, keys, labels, spans))
    return made


def _cut(
    spec: Bands | Cuts, column: str, numbers: Floats
) -> Iterator[tuple[str, Integers, dict[int, Ends]]]:
    """Yield for each level its name, the interval of each number, and the ends of the intervals."""
    if isinstance(spec, Cuts):
        for points in spec.levels:
            keys = np.searchsorted(
                [float(point) for point in points], numbers, side="right"
            ).astype(np.int64)
            padded = (None, *points, None)
            yield (
                f"{len(points)} cuts",
                keys,
                {key: (padded[key], padded[key + 1]) for key in np.unique(keys).tolist()},
            )
        return
    for width in spec.widths:
        keys = _bands(column, numbers, spec.start, width)
        ends = {
            key: (spec.start + key * width, spec.start + (key + 1) * width)
            for key in np.unique(keys).tolist()
        }
        yield f"width {number_text(width)}", keys, ends


def _bands(column: str, numbers: Floats, start: Fraction, width: Fraction) -> Integers:
    """Return the band of each number.

    Division rounds, so the function compares numbers with the edges themselves: 0.3 starts a band
    of 0.1, though 0.3 / 0.1 is a little less than 3 in floating point. Equal edges are equal
    floats, so bands nest.
    """
    guess = np.floor((numbers - float(start)) / float(width))
    if not (np.abs(guess) < _MOST_BANDS).all():
        raise UsageError(
            f"{column}: bands of {number_text(width)} are too narrow for its numbers. Write wider ones."
        )
    keys: Integers = guess.astype(np.int64)
    bottom = start.denominator * width.denominator
    first = start.numerator * width.denominator
    step = width.numerator * start.denominator
    while True:
        found, index = np.unique(keys, return_inverse=True)
        # the nearest float, as float(Fraction) is
        low = np.array([(first + key * step) / bottom for key in found.tolist()])
        high = np.array([(first + (key + 1) * step) / bottom for key in found.tolist()])
        moved = (numbers >= high[index]).astype(np.int64) - (numbers < low[index])
        if not moved.any():
            return keys
        keys = keys + moved


def interval_span(
    a: Fraction | None, b: Fraction | None, *, low: float, high: float, whole: bool
) -> float:
    """Return the share of [low, high] that [a, b) covers: of its whole numbers, or else of its
    length.
    """
    first = low if a is None else max(low, float(a))
    if whole:
        last = high if b is None else min(high, float(-(-b // 1) - 1))
        inside = last - float(np.ceil(first)) + 1
        all_of_it = high - low + 1
        return 0.0 if inside <= 1 else inside / all_of_it
    last = high if b is None else min(high, float(b))
    return (last - first) / (high - low) if high > low else 0.0


def interval_text(a: Fraction | None, b: Fraction | None, *, whole: bool) -> str:
    if a is None or b is None:
        if a is None and b is None:
            return "any"
        if b is not None:
            return f"< {number_text(b)}"
        return f">= {number_text(a or 0)}"
    if whole and a.denominator == b.denominator == 1 and a >= 0:
        return number_text(a) if b == a + 1 else f"{number_text(a)}-{number_text(b - 1)}"
    return f"[{number_text(a)}, {number_text(b)})"


def number_text(value: Fraction | int | float) -> str:
    exact = Fraction(value)
    return str(exact.numerator) if exact.denominator == 1 else f"{float(exact):.12g}"


# Dates.


def _days(column: str, values: pa.Array) -> Integers:
    if not (pa.types.is_date(values.type) or pa.types.is_timestamp(values.type)):
        raise UsageError(f"{column} is not a column of dates. Write bands, prefix or tree for it.")
    whole = pc.floor_temporal(values, unit="day") if pa.types.is_timestamp(values.type) else values
    return np.asarray(whole.cast(pa.date32(), safe=False).cast(pa.int32())).astype(np.int64)


def _calendar(spec: Dates, days: Integers) -> list[_Level]:
    made = []
    low, high = (int(days.min()), int(days.max())) if len(days) else (0, 0)
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) + 1970 * 12
    for part in spec.parts:
        keys = days if part == "day" else months // _MONTHS[part]
        labels: dict[object, str] = {}
        spans: dict[object, float] = {}
        for key in np.unique(keys).tolist():
            labels[key] = date_text(part, key)
            first, end = (
                (key, key + 1)
                if part == "day"
                else (_first_day(part, key), _first_day(part, key + 1))
            )
            inside = min(high + 1, end) - max(low, first)
            spans[key] = 0.0 if inside <= 1 else inside / (high - low + 1)
        made.append(_level(part, keys, labels, spans))
    return made


def _first_day(part: str, key: int) -> int:
    month = key * _MONTHS[part] - 1970 * 12
    return int(np.datetime64(month, "M").astype("datetime64[D]").astype(np.int64))


def date_text(part: str, key: int) -> str:
    if part == "day":
        return str(np.datetime64(key, "D"))
    year, month = divmod(key * _MONTHS[part], 12)
    return {
        "month": f"{year:04d}-{month + 1:02d}",
        "quarter": f"{year:04d}-Q{month // 3 + 1}",
        "year": f"{year:04d}",
        "decade": f"{year:04d}s",
        "century": f"{year:04d}-{year + 99:04d}",
    }[part]


# Codes and categories.


def _prefixes(spec: Prefix, column: str, values: pa.Array) -> list[_Level]:
    texts = [plain(value) or "" for value in values.to_pylist()]
    width = max((len(text) for text in texts), default=0)
    if pa.types.is_integer(values.type):  # 2139 was 02139 before a program took it for a number
        texts = [text.zfill(width) for text in texts]
    made = []
    for length in spec.lengths:
        keys = [text[:length] + "*" * max(0, width - length) for text in texts]
        made.append(_level(f"first {length}", keys, {key: key for key in keys}, _leaf_shares(keys)))
    return made


def _leaf_shares(keys: Sequence[str]) -> dict[object, float]:
    found, counts = np.unique(np.asarray(keys), return_counts=True)
    shares = np.where(counts == 1, 0.0, counts / max(1, len(keys)))
    return dict(zip(found.tolist(), shares.tolist(), strict=True))


def _branches(spec: Tree, column: str, texts: Sequence[str]) -> list[_Level]:
    paths = leaf_paths(spec.branches)
    unlisted = [text for text in texts if text not in paths]
    if unlisted and spec.closed:
        raise UsageError(
            f"{column} has {len(unlisted)} different value{'s' * (len(unlisted) > 1)} that its tree does not list. "
            f"Add them: --write-hierarchies FILE writes the file with them under `unlisted`."
        )
    for text in unlisted:
        paths[text] = (text,)
    depth = max((len(path) for path in paths.values()), default=1)
    leaves = len(paths)
    made = []
    # from the leaves up; a shallow leaf stays itself until its own group begins
    for level in range(1, depth):
        at = {text: "\0".join(path[: depth - level]) for text, path in paths.items()}
        sizes: dict[object, int] = {}
        for key in at.values():
            sizes[key] = sizes.get(key, 0) + 1
        labels: dict[object, str] = {
            at[text]: path[: depth - level][-1] for text, path in paths.items()
        }
        spans: dict[object, float] = {
            key: 0.0 if size == 1 else size / leaves for key, size in sizes.items()
        }
        made.append(
            _level(
                f"group {level}" if depth > 2 else "group",
                [at[text] for text in texts],
                labels,
                spans,
            )
        )
    return made


def leaf_paths(branches: Branches, above: tuple[str, ...] = ()) -> dict[str, tuple[str, ...]]:
    """Return, for every value of a tree, the groups it is in from the outermost, and itself."""
    found: dict[str, tuple[str, ...]] = {}
    for name, below in branches.items():
        inner = (
            leaf_paths(below, (*above, name))
            if isinstance(below, Mapping)
            else {value: (*above, name, value) for value in below}
        )
        if not below:  # a value that stands alone
            inner = {name: (*above, name)}
        found.update(inner)
    return found


def why_not_nested(spec: Spec) -> str | None:
    """Say why a specification's levels do not get coarser and coarser; None if they do."""
    match spec:
        case Bands(widths=widths):
            if any(width <= 0 for width in widths):
                return "a band must be wider than 0"
            for narrow, wide in pairwise(widths):
                if (wide / narrow).denominator != 1 or wide <= narrow:
                    what = f"{number_text(wide)} is none of {number_text(narrow)}"
                    return f"each width must be a multiple of the one before: {what}"
        case Cuts(levels=levels):
            if any(list(points) != sorted(set(points)) for points in levels):
                return "cut points must rise"
            for fine, coarse in pairwise(levels):
                if not set(coarse) < set(fine):
                    return "each list of cuts must leave out some points of the one before, and add none"
        case Prefix(lengths=lengths):
            if any(length < 1 for length in lengths) or list(lengths) != sorted(
                set(lengths), reverse=True
            ):
                return "lengths must fall, down to 1 at least"
        case Dates(parts=parts):
            order = [PARTS.index(part) for part in parts]
            if order != sorted(set(order)):
                return f"parts must go from fine to coarse: {', '.join(PARTS)}"
    return None
