"""A model of rows given whose they are: what `default` makes of the tables beside the people.

The kind of a row, and how many of them a person has, is drawn with the person. So all that was paid
here goes to what is left: each other column of the row is counted beside the kind, because a value
means something else in every test; then pairs of it with the person's columns, and triples with the
kind, are chosen one by one (see `scarce`). How often each kind meets each of the person's columns is
known from the people's part, and so is how these go together.

Choices and counts are those of `Marginals`, and what is taken from the people's part is released
already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from discreet.synthetic.columns.axis import Axis
from discreet.synthetic.description import Description
from discreet.synthetic.marginals import Columns, Marginals
from discreet.synthetic.synthesizers.graphical import FitTarget, estimate
from discreet.synthetic.synthesizers.independent import Histogram, Synthesis
from discreet.synthetic.synthesizers.scarce import PRIOR, pair_by_pair
from discreet.synthetic.synthesizers.smooth import fair, in_groups, smoothed

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

OWN = 0.5  # share of the row's own columns, each beside the kind
LEAST = 2.0  # standard deviations of noise that a group should hold
MOST_GROUPS = 32  # of the row's own columns
MOST_KNOWN = 8  # and of those that are known
LEVELS = (2, 4, 8, 32)  # most groups of a column at each level
LEAST_OF_LEVEL = 0.5  # of an even part of what is not in spikes
FEWEST = 1e-6  # of all rows, what a group of a known column holds
TRUST = 0.02  # of all rows: how far the people's part may be off among rows


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedRows:
    """The rows of a table: the first `own` columns are its own, one of them the kind; the others are
    known of their people. `counters` are what a person's numbers of rows of each kind are called.
    """

    people: Description
    own: int
    kind: int | None
    counters: tuple[str, ...]


def rows_given_people(data: Marginals, rows: LinkedRows) -> Synthesis:
    """The row's own columns given those of its person."""
    tables, std = _by_kind(data, rows)
    total = float(np.mean([table.sum() for table in tables.values()]))
    columns = [_own(data.axes[place], place, tables, rows, std) for place in range(rows.own)]
    columns += [_known(data.axes[place], rows, total) for place in range(rows.own, len(data.axes))]
    targets = [_target(columns, rows, place, tables[place], std[place]) for place in tables]
    targets += _met(columns, data, rows, tables, total) + _associations(columns, data, rows, total)
    sizes = [column.size for column in columns]
    model = estimate(sizes, targets, total=total, prior=PRIOR).model
    levels = [
        _levels(column, ordered=axis.ordered, whole=place == rows.kind)
        for place, (column, axis) in enumerate(zip(columns, data.axes, strict=True))
    ]
    sets, share = _sets(len(columns), rows), (1 - OWN) * (1 - 1e-6)
    if sets:
        model = pair_by_pair(data, columns, levels, model, targets, sets=sets, share=share)
    return Synthesis(histograms=tuple(columns), model=model)


def _by_kind(data: Marginals, rows: LinkedRows) -> tuple[dict[int, Floats], dict[int, float]]:
    """Each own column's cells beside the kinds (one line for each), smoothed; and the noise's
    standard deviation. Where the kind is the only column, it is counted alone.
    """
    others = [place for place in range(rows.own) if place != rows.kind]
    counted = others or [0]
    kinds = 1 if rows.kind is None or not others else data.axes[rows.kind].size
    weights = np.array([data.axes[place].size * kinds for place in counted]) ** (2 / 3)
    tables, std = {}, {}
    for place, weight in zip(counted, weights / weights.sum(), strict=True):
        columns: Columns = (place,)
        if kinds > 1 and rows.kind is not None:
            columns = (min(place, rows.kind), max(place, rows.kind))
        found = data.measure(columns, share=OWN * float(weight) * (1 - 1e-7))
        noisy = found.counts.astype(np.float64).reshape(found.shape)
        if columns[0] == place and len(columns) == 2:
            noisy = noisy.T
        axis = data.axes[place]
        lines = [_smooth(axis, line, found.std) for line in noisy.reshape(kinds, axis.size)]
        tables[place], std[place] = np.array(lines), found.std
    return tables, std


def _smooth(axis: Axis, noisy: Floats, std: float) -> Floats:
    """One kind's cells: those that are missing have no neighbors."""
    total = max(1.0, float(noisy.sum()))
    if not (axis.ordered and axis.column.nullable):
        return smoothed(noisy, std=std, ordered=axis.ordered, total=total)
    missing = min(max(0.0, float(noisy[-1])), total - 1.0)
    rest = smoothed(noisy[:-1], std=std, ordered=True, total=total - missing)
    return np.append(rest, missing)


def _own(
    axis: Axis, place: int, tables: Mapping[int, Floats], rows: LinkedRows, std: Mapping[int, float]
) -> Histogram:
    """A column of the row's own, in groups fine enough for every kind; kinds stay by themselves."""
    if place not in tables:  # the kind, of which each table has a line
        counts = np.mean([table.sum(axis=1) for table in tables.values()], axis=0)
        return _column(np.arange(axis.size), counts, max(std.values()))
    counts = tables[place].sum(axis=0)
    if place == rows.kind:
        return _column(np.arange(axis.size), counts, std[place])
    each = tables[place] / tables[place].sum(axis=1, keepdims=True)
    alike = each.mean(axis=0) * counts.sum()
    groups = _groups(axis, alike, least=LEAST * std[place], most=MOST_GROUPS)
    return _column(groups, counts, std[place])


def _known(axis: Axis, rows: LinkedRows, total: float) -> Histogram:
    """A column of the person's, as the people's part has it; a number of rows, as that has it of all
    kinds together.
    """
    place = _place_in(rows.people, axis.name)
    places = [place] if place is not None else _counter_places(rows)
    counts = np.sum([rows.people.counts[each] for each in places], axis=0)
    counts = np.maximum(counts, 1e-9)
    if place is None:
        counts[0] = 1e-9  # a row's person has at least one
    counts = counts * (total / counts.sum())
    groups = _groups(axis, counts, least=FEWEST * total, most=MOST_KNOWN)
    scale = total / max(1.0, rows.people.model.total)
    return _column(groups, counts, scale * max(_noise(rows.people, each) for each in places))


def _noise(people: Description, place: int) -> float:
    """Return the standard deviation of a column's counts in the people's part; of what it did not
    count alone, none is known.
    """
    counted = [each.std for each in people.measured if each.columns == (place,)]
    return sum(std**-2 for std in counted) ** -0.5 if counted else 0.0


def _column(groups: Integers, counts: Floats, std: float) -> Histogram:
    return Histogram(groups=groups, counts=counts, std=std, noisy=counts)


def _groups(axis: Axis, counts: Floats, *, least: float, most: int) -> Integers:
    """Groups of a column's cells; what is missing is one of its own."""
    nulls = axis.ordered and axis.column.nullable
    cells = counts[:-1] if nulls else counts
    groups = in_groups(cells, least=least, most=most, ordered=axis.ordered)
    return np.append(groups, groups.max() + 1) if nulls else groups


def _target(
    columns: Sequence[Histogram], rows: LinkedRows, place: int, table: Floats, std: float
) -> FitTarget:
    """An own column beside the kind as a model is to fit it."""
    groups = columns[place].groups
    grouped = np.zeros((len(table), columns[place].size))
    np.add.at(grouped.T, groups, table.T)
    error = std * float(np.bincount(groups).mean()) ** 0.5
    if len(table) == 1 or rows.kind is None:
        return _fit((place,), grouped.ravel(), error)
    if place < rows.kind:
        return _fit((place, rows.kind), grouped.T.ravel(), error)
    return _fit((rows.kind, place), grouped.ravel(), error)


def _fit(columns: Columns, counts: Floats, std: float) -> FitTarget:
    return FitTarget(columns=columns, cells=np.arange(len(counts)), counts=counts, std=std)


def _met(
    columns: Sequence[Histogram],
    data: Marginals,
    rows: LinkedRows,
    tables: Mapping[int, Floats],
    total: float,
) -> list[FitTarget]:
    """How often each kind meets the groups of each known column: of the people who have rows of that
    kind, in the people's model.
    """
    if rows.kind is None:
        return []
    kinds, counted = columns[rows.kind].counts, _counter_places(rows)
    found = []
    for place in range(rows.own, len(columns)):
        theirs, lines = _place_in(rows.people, data.axes[place].name), []
        for counter in counted:
            line = _having(rows.people, theirs, counter)
            sums = np.bincount(columns[place].groups, weights=line)
            lines.append(sums / max(float(sums.sum()), 1e-9))
        counts = np.array(lines) * kinds[:, None]
        std = TRUST * total / len(kinds)
        found.append(_fit((rows.kind, place), counts.ravel(), std))
    return found


def _having(people: Description, column: int | None, counter: int) -> Floats:
    """People who have rows of a kind, by the cells of a column; of none, by how many rows."""
    if column is None:
        return np.append(0.0, people.counts[counter][1:])
    pair = people.marginal((column, counter))
    return np.asarray(pair[:, 1:].sum(axis=1))


def _counter_places(rows: LinkedRows) -> list[int]:
    names = [axis.name for axis in rows.people.axes]
    return [names.index(counter) for counter in rows.counters]


def _place_in(people: Description, name: str) -> int | None:
    names = [axis.name for axis in people.axes]
    own = name.removeprefix(f"{people.table}.")
    return names.index(own) if own in names else None


def _associations(
    columns: Sequence[Histogram], data: Marginals, rows: LinkedRows, total: float
) -> list[FitTarget]:
    """How the person's columns go together, of the people's model: the pairs of a tree that are
    farthest from independence.
    """
    able = dict[int, int]()
    for place in range(rows.own, len(columns)):
        theirs = _place_in(rows.people, data.axes[place].name)
        if theirs is not None:
            able[place] = theirs
    tables = {}
    for a, b in combinations(able, 2):
        table = np.zeros((columns[a].size, columns[b].size))
        counts = rows.people.marginal((able[a], able[b]))
        np.add.at(table, np.ix_(columns[a].groups, columns[b].groups), counts)
        tables[a, b] = table / max(float(table.sum()), 1e-9)
    found = list[FitTarget]()
    for a, b in _tree(tables):
        counts = tables[a, b].ravel() * total
        found.append(_fit((a, b), counts, TRUST * total / len(counts) ** 0.5))
    return found


def _tree(tables: Mapping[tuple[int, int], Floats]) -> list[tuple[int, int]]:
    """The edges of a tree over columns, the pairs farthest from independence first."""
    far = {
        pair: float(np.abs(table - np.outer(table.sum(axis=1), table.sum(axis=0))).sum())
        for pair, table in tables.items()
    }
    tree_of = {place: place for pair in tables for place in pair}
    found = []
    for a, b in sorted(far, key=lambda pair: (-far[pair], pair)):
        gone, kept = tree_of[a], tree_of[b]
        if gone != kept:
            tree_of = {place: kept if tree == gone else tree for place, tree in tree_of.items()}
            found.append((a, b))
    return found


def _sets(width: int, rows: LinkedRows) -> list[Columns]:
    """Return what may be counted: a column of the row's own with any other, the kind left out; and
    each such pair together with the kind.
    """
    others = [place for place in range(rows.own) if place != rows.kind]
    pairs: list[Columns] = [
        (place, other)
        for place in others
        for other in range(place + 1, width)
        if other != rows.kind
    ]
    if rows.kind is None:
        return pairs
    return [*pairs, *(tuple(sorted((rows.kind, *pair))) for pair in pairs)]


def _levels(column: Histogram, *, ordered: bool, whole: bool) -> list[Integers]:
    """Coarser and coarser groupings of a column's groups."""
    counts = column.grouped
    found = []
    for most in LEVELS:
        if whole or len(counts) <= most:
            found.append(np.arange(len(counts)))
        else:
            least = fair(counts, most) * LEAST_OF_LEVEL
            found.append(in_groups(counts, least=least, most=most, ordered=ordered))
    return found
