"""A model of rows given their person: what `default` makes of the tables beside the people.

The numbers of rows of each kind are drawn with the person. So the amount goes to the other columns
of the row. First count each of them beside the kind, because a value means something else in every
kind; then choose pairs with the person's columns, and triples with the kind, one by one (see
`scarce`). The people's part tells how often each kind goes with each of the person's columns, and
how these columns go together.

All choices and counts are those of `Marginals`, and the people's part is released already.
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

OWN = 0.5  # the share of the amount for the row's own columns, each beside the kind
LEAST = 2.0  # a group should hold this many standard deviations of noise
MOST_GROUPS = 32  # of a row's own column
MOST_KNOWN = 8  # of a column of the person
LEVELS = (2, 4, 8, 32)  # the most groups of a column at each level
LEAST_OF_LEVEL = 0.5  # a group holds at least this part of an even share of the rows not in spikes
FEWEST = 1e-6  # a group of a person's column holds at least this share of all rows
TRUST = 0.02  # the people's part may be off by this share of all rows


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedRows:
    """The columns of a table's rows: the first `own` are its own, one of them the kind; the others
    are the person's. `counters` are the names of a person's numbers of rows of each kind.
    """

    people: Description
    own: int
    kind: int | None
    counters: tuple[str, ...]


def rows_given_people(data: Marginals, rows: LinkedRows) -> Synthesis:
    """Return the model of a row's own columns given those of its person."""
    tables, std = _by_kind(data, rows)
    total = float(np.mean([table.sum() for table in tables.values()]))
    columns = [_own(data.axes[place], place, tables, rows, std) for place in range(rows.own)]
    columns += [_known(data.axes[place], rows, total) for place in range(rows.own, len(data.axes))]
    targets = [_target(columns, rows, place, tables[place], std[place]) for place in tables]
    targets += _kinds_by_person(columns, data, rows, total)
    targets += _associations(columns, data, rows, total)
    sizes = [column.size for column in columns]
    model = estimate(sizes, targets, total=total, prior=PRIOR).model
    levels = [
        _levels(column, ordered=axis.ordered, whole=place == rows.kind)
        for place, (column, axis) in enumerate(zip(columns, data.axes, strict=True))
    ]
    sets = _sets(len(columns), rows)
    share = (1 - OWN) * (1 - 1e-6)
    if sets:
        model = pair_by_pair(data, columns, levels, model, targets, sets=sets, share=share)
    return Synthesis(histograms=tuple(columns), model=model)


def _by_kind(data: Marginals, rows: LinkedRows) -> tuple[dict[int, Floats], dict[int, float]]:
    """Return each own column's smoothed counts, with a line for each kind, and the noise's standard
    deviations. If the kind is the only column, count it alone.
    """
    others = [place for place in range(rows.own) if place != rows.kind]
    places = others or [0]
    kinds = 1 if rows.kind is None or not others else data.axes[rows.kind].size
    sizes = [data.workload.column_weight(place) * data.axes[place].size for place in places]
    weights = np.array(sizes) ** (2 / 3)
    tables = {}
    std = {}
    for place, weight in zip(places, weights / weights.sum(), strict=True):
        columns: Columns = (place,)
        if kinds > 1 and rows.kind is not None:
            columns = (min(place, rows.kind), max(place, rows.kind))
        marginal = data.measure(columns, share=OWN * float(weight) * (1 - 1e-7))
        noisy = marginal.counts.astype(np.float64).reshape(marginal.shape)
        if columns[0] == place and len(columns) == 2:
            noisy = noisy.T
        axis = data.axes[place]
        lines = [_smooth(axis, line, marginal.std) for line in noisy.reshape(kinds, axis.size)]
        tables[place] = np.array(lines)
        std[place] = marginal.std
    return tables, std


def _smooth(axis: Axis, noisy: Floats, std: float) -> Floats:
    """Return the smoothed counts of one kind; the cell of NULL has no neighbors."""
    total = max(1.0, float(noisy.sum()))
    if not (axis.ordered and axis.column.nullable):
        return smoothed(noisy, std=std, ordered=axis.ordered, total=total)
    missing = min(max(0.0, float(noisy[-1])), total - 1.0)
    rest = smoothed(noisy[:-1], std=std, ordered=True, total=total - missing)
    return np.append(rest, missing)


def _own(
    axis: Axis, place: int, tables: Mapping[int, Floats], rows: LinkedRows, std: Mapping[int, float]
) -> Histogram:
    """Return the histogram of an own column, in groups that suit every kind; each kind is a group."""
    if place not in tables:  # the kind: each table has its counts as the sums of lines
        counts = np.mean([table.sum(axis=1) for table in tables.values()], axis=0)
        return _column(np.arange(axis.size), counts, max(std.values()))
    counts = tables[place].sum(axis=0)
    if place == rows.kind:
        return _column(np.arange(axis.size), counts, std[place])
    shares = tables[place] / tables[place].sum(axis=1, keepdims=True)
    alike = shares.mean(axis=0) * counts.sum()  # as if every kind had equally many rows
    groups = _groups(axis, alike, least=LEAST * std[place], most=MOST_GROUPS)
    return _column(groups, counts, std[place])


def _known(axis: Axis, rows: LinkedRows, total: float) -> Histogram:
    """Return the histogram of a person's column from the people's part; for a number of rows, the
    sum over all kinds.
    """
    place = _place_in(rows.people, axis.name)
    places = [place] if place is not None else _counter_places(rows)
    counts = np.sum([rows.people.counts[own] for own in places], axis=0)
    counts = np.maximum(counts, 1e-9)
    if place is None:
        counts[0] = 1e-9  # a row's person has at least one
    counts = counts * (total / counts.sum())
    groups = _groups(axis, counts, least=FEWEST * total, most=MOST_KNOWN)
    scale = total / max(1.0, rows.people.model.total)
    return _column(groups, counts, scale * max(_noise(rows.people, own) for own in places))


def _noise(people: Description, place: int) -> float:
    """Return the standard deviation of a column's counts in the people's part; 0 if that did not
    count the column alone.
    """
    stds = [marginal.std for marginal in people.measured if marginal.columns == (place,)]
    return sum(std**-2 for std in stds) ** -0.5 if stds else 0.0


def _column(groups: Integers, counts: Floats, std: float) -> Histogram:
    return Histogram(groups=groups, counts=counts, std=std, noisy=counts)


def _groups(axis: Axis, counts: Floats, *, least: float, most: int) -> Integers:
    """Return the groups of a column's cells; NULL is a group of its own."""
    nulls = axis.ordered and axis.column.nullable
    cells = counts[:-1] if nulls else counts
    groups = in_groups(cells, least=least, most=most, ordered=axis.ordered)
    return np.append(groups, groups.max() + 1) if nulls else groups


def _target(
    columns: Sequence[Histogram], rows: LinkedRows, place: int, table: Floats, std: float
) -> FitTarget:
    """Return the counts of an own column beside the kind, for the model to fit."""
    groups = columns[place].groups
    sums = np.zeros((len(table), columns[place].size))
    np.add.at(sums.T, groups, table.T)
    error = std * float(np.bincount(groups).mean()) ** 0.5
    if len(table) == 1 or rows.kind is None:
        return _fit((place,), sums.ravel(), error)
    if place < rows.kind:
        return _fit((place, rows.kind), sums.T.ravel(), error)
    return _fit((rows.kind, place), sums.ravel(), error)


def _fit(columns: Columns, counts: Floats, std: float) -> FitTarget:
    return FitTarget(columns=columns, cells=np.arange(len(counts)), counts=counts, std=std)


def _kinds_by_person(
    columns: Sequence[Histogram],
    data: Marginals,
    rows: LinkedRows,
    total: float,
) -> list[FitTarget]:
    """Return, for each of the person's columns, how often each kind goes with its groups: as among
    the people with rows of that kind, in the people's model.
    """
    if rows.kind is None:
        return []
    kinds = columns[rows.kind].counts
    targets = []
    for place in range(rows.own, len(columns)):
        theirs = _place_in(rows.people, data.axes[place].name)
        lines = []
        for counter in _counter_places(rows):
            line = _having(rows.people, theirs, counter)
            sums = np.bincount(columns[place].groups, weights=line)
            lines.append(sums / max(float(sums.sum()), 1e-9))
        counts = np.array(lines) * kinds[:, None]
        std = TRUST * total / len(kinds)
        targets.append(_fit((rows.kind, place), counts.ravel(), std))
    return targets


def _having(people: Description, column: int | None, counter: int) -> Floats:
    """Return the people with rows of a kind, by the cells of a column, or if that is None, by their
    number of rows.
    """
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
    """Return how the person's columns go together in the people's model, for the pairs of a tree
    that are farthest from independence.
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
    targets = list[FitTarget]()
    for a, b in _tree(tables):
        counts = tables[a, b].ravel() * total
        targets.append(_fit((a, b), counts, TRUST * total / len(counts) ** 0.5))
    return targets


def _tree(tables: Mapping[tuple[int, int], Floats]) -> list[tuple[int, int]]:
    """Return the edges of a tree over columns, the pairs farthest from independence first."""
    far = {}
    for pair, table in tables.items():
        independent = np.outer(table.sum(axis=1), table.sum(axis=0))
        far[pair] = float(np.abs(table - independent).sum())
    tree_of = {place: place for pair in tables for place in pair}
    edges = []
    for a, b in sorted(far, key=lambda pair: (-far[pair], pair)):
        old = tree_of[a]
        new = tree_of[b]
        if old != new:
            tree_of = {place: new if tree == old else tree for place, tree in tree_of.items()}
            edges.append((a, b))
    return edges


def _sets(width: int, rows: LinkedRows) -> list[Columns]:
    """Return the sets to choose from: pairs of an own column with any other, without the kind, and
    each such pair with the kind.
    """
    pairs: list[Columns] = []
    for a, b in combinations(range(width), 2):
        if a < rows.own and rows.kind not in (a, b):
            pairs.append((a, b))
    if rows.kind is None:
        return pairs
    return [*pairs, *(tuple(sorted((rows.kind, *pair))) for pair in pairs)]


def _levels(column: Histogram, *, ordered: bool, whole: bool) -> list[Integers]:
    """Return groupings of a column's groups, the coarsest first."""
    counts = column.grouped
    levels = []
    for most in LEVELS:
        if whole or len(counts) <= most:
            levels.append(np.arange(len(counts)))
        else:
            least = fair(counts, most) * LEAST_OF_LEVEL
            levels.append(in_groups(counts, least=least, most=most, ordered=ordered))
    return levels
