"""Draw rows of a model given some of their columns, row by row: exactly, by messages in its junction
tree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.noise import Items, Stream
from discreet.synthetic.description import Description
from discreet.synthetic.synthesizers.graphical import Model, summed

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Columns = tuple[int, ...]

MOST_NUMBERS = 4_000_000  # the most numbers in memory at a time for one clique
# The chance of a combination that the model excludes: known columns come from another model, which
# may have it.
LEAST = 1e-12


def draw_given(
    description: Description, width: int, known: Mapping[int, Integers], rows: int
) -> pa.Table:
    """Draw the values of the first `width` columns, given the groups of the other columns."""
    stream = Stream.fresh()
    groups = draw_groups(description.model, known, rows, stream.derive("groups", 0))
    arrays = []
    names = []
    for column, axis in enumerate(description.axes[:width]):
        uniforms = _uniforms(stream.derive("cells", column), rows)
        cells = _cells(description, column, groups[column], uniforms)
        spread = _uniforms(stream.derive("values", column), rows)
        arrays.append(axis.decoded(cells, spread).cast(description.schema.field(column).type))
        names.append(axis.name)
    return pa.table(arrays, names=names)


def draw_groups(
    model: Model, known: Mapping[int, Integers], rows: int, stream: Stream
) -> dict[int, Integers]:
    """Return the groups of all columns: the known ones, and the others drawn given them."""
    tree = model.tree
    uniforms = [
        _uniforms(stream.derive("clique", number), rows) for number in range(len(tree.cliques))
    ]
    cells = [
        math.prod(tree.sizes[column] for column in _open(clique, known)) for clique in tree.cliques
    ]
    at_once = max(1, MOST_NUMBERS // max(cells))
    parts = []
    for first in range(0, rows, at_once):
        here = slice(first, min(rows, first + at_once))
        some = {column: groups[here] for column, groups in known.items()}
        parts.append(_draw_part(model, some, [numbers[here] for numbers in uniforms]))
    if not parts:
        return {column: np.zeros(0, dtype=np.int64) for column in range(len(tree.sizes))}
    return {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}


def _draw_part(
    model: Model, known: Mapping[int, Integers], uniforms: list[Floats]
) -> dict[int, Integers]:
    tree = model.tree
    rows = len(uniforms[0])
    separators = tree.separators
    beliefs = [_slice(model, number, known, rows) for number in range(len(tree.cliques))]
    for number in reversed(range(1, len(tree.cliques))):  # parents come before their children
        parent = tree.parents[number]
        open_here = _open(tree.cliques[number], known)
        open_there = _open(tree.cliques[parent], known)
        shared = _open(separators[number], known)
        rest = tuple(1 + place for place, column in enumerate(open_here) if column not in shared)
        message = beliefs[number].sum(axis=rest) + LEAST
        message /= message.reshape(rows, -1).max(axis=1).reshape(-1, *[1] * len(shared))
        shape = [tree.sizes[column] if column in shared else 1 for column in open_there]
        beliefs[parent] = beliefs[parent] * message.reshape(rows, *shape)
    groups_of = {column: np.asarray(groups) for column, groups in known.items()}
    for number, clique in enumerate(tree.cliques):
        columns = _open(clique, known)
        old = [column for column in columns if column in groups_of]
        new = [column for column in columns if column not in groups_of]
        if not new:
            continue
        axes = [1 + columns.index(column) for column in (*old, *new)]
        table = np.transpose(beliefs[number], [0, *axes])
        at = tuple(groups_of[column] for column in old)
        chances = table[(np.arange(rows), *at)].reshape(rows, -1)
        ends = np.cumsum(chances, axis=1)
        place = (ends <= (uniforms[number] * ends[:, -1])[:, None]).sum(axis=1)
        place = np.minimum(place, chances.shape[1] - 1)
        sizes = tuple(tree.sizes[column] for column in new)
        groups_of |= dict(zip(new, np.unravel_index(place, sizes), strict=True))
    return groups_of


def _open(columns: Columns, known: Mapping[int, Integers]) -> Columns:
    """Return the columns that are not known."""
    return tuple(column for column in columns if column not in known)


def _slice(model: Model, number: int, known: Mapping[int, Integers], rows: int) -> Floats:
    """Return, for every row, the chances of a clique's open columns given its separator and the
    known columns.
    """
    clique = model.tree.cliques[number]
    table = model.tables[number]
    separator = model.tree.separators[number]
    if separator:
        shape = [
            size if column in separator else 1
            for column, size in zip(clique, table.shape, strict=True)
        ]
        table = table / np.maximum(summed(table, clique, separator).reshape(shape), LEAST)
    given = [column for column in clique if column in known]
    order = [clique.index(column) for column in (*given, *_open(clique, known))]
    chances = np.transpose(table, order) + LEAST
    if not given:
        return np.broadcast_to(chances, (rows, *chances.shape))
    return np.asarray(chances[tuple(known[column] for column in given)])


def _cells(description: Description, column: int, groups: Integers, uniforms: Floats) -> Integers:
    """Draw cells within groups in proportion to their counts."""
    group_of = description.groups[column]
    counts = description.counts[column]
    cells = np.empty(len(groups), dtype=np.int64)
    for group in np.unique(groups):
        inside = np.flatnonzero(group_of == group)
        here = groups == group
        weights = counts[inside] if counts[inside].sum() > 0 else np.ones(len(inside))
        ends = np.cumsum(weights) / weights.sum()
        place = np.searchsorted(ends, uniforms[here], side="right")
        cells[here] = inside[np.minimum(place, len(inside) - 1)]
    return cells


def _uniforms(stream: Stream, rows: int) -> Floats:
    """Return a uniform number in [0, 1) for each row."""
    words = stream.words(Items.positions(rows), 0)[:, 0]
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
