"""Rows of a model when some of their columns are known, row by row: exact, by messages in its
junction tree.
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

MOST_NUMBERS = 4_000_000  # that are held at once for one clique
LEAST = 1e-12  # the chance of what a model says cannot be: known columns come from another model


def draw_given(
    description: Description, width: int, known: Mapping[int, Integers], rows: int
) -> pa.Table:
    """Draw values of the first `width` columns of so many rows, given the groups that the other
    columns are in.
    """
    stream = Stream.fresh()
    groups = draw_groups(description.model, known, rows, stream.derive("groups", 0))
    arrays, names = [], []
    for column, axis in enumerate(description.axes[:width]):
        cells = _cells(
            description, column, groups[column], _uniforms(stream.derive("cells", column), rows)
        )
        spread = _uniforms(stream.derive("values", column), rows)
        arrays.append(axis.decoded(cells, spread).cast(description.schema.field(column).type))
        names.append(axis.name)
    return pa.table(arrays, names=names)


def draw_groups(
    model: Model, known: Mapping[int, Integers], rows: int, stream: Stream
) -> dict[int, Integers]:
    """Return the groups of all columns: those that are known, and the others drawn given them."""
    tree = model.tree
    uniforms = [
        _uniforms(stream.derive("clique", number), rows) for number in range(len(tree.cliques))
    ]
    largest = max(
        math.prod(tree.sizes[c] for c in clique if c not in known) for clique in tree.cliques
    )
    at_once = max(1, MOST_NUMBERS // largest)
    parts = []
    for first in range(0, rows, at_once):
        here = slice(first, min(rows, first + at_once))
        parts.append(
            _drawn(model, {c: g[here] for c, g in known.items()}, [each[here] for each in uniforms])
        )
    if not parts:
        return {column: np.zeros(0, dtype=np.int64) for column in range(len(tree.sizes))}
    return {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}


def _drawn(
    model: Model, known: Mapping[int, Integers], uniforms: list[Floats]
) -> dict[int, Integers]:
    tree, rows = model.tree, len(uniforms[0])
    separators = tree.separators
    beliefs = [_slice(model, number, known, rows) for number in range(len(tree.cliques))]
    for number in reversed(range(1, len(tree.cliques))):  # parents stand before their children
        parent = tree.parents[number]
        open_here, open_there = (
            _open(tree.cliques[number], known),
            _open(tree.cliques[parent], known),
        )
        kept = tuple(column for column in separators[number] if column not in known)
        gone = tuple(1 + place for place, column in enumerate(open_here) if column not in kept)
        message = beliefs[number].sum(axis=gone) + LEAST
        message /= message.reshape(rows, -1).max(axis=1).reshape(-1, *[1] * len(kept))
        shape = [tree.sizes[column] if column in kept else 1 for column in open_there]
        beliefs[parent] = beliefs[parent] * message.reshape(rows, *shape)
    found = {column: np.asarray(groups) for column, groups in known.items()}
    for number, clique in enumerate(tree.cliques):
        opened = _open(clique, known)
        new = [column for column in opened if column not in found]
        if not new:
            continue
        order = [*(column for column in opened if column in found), *new]
        table = np.transpose(beliefs[number], [0, *(1 + opened.index(column) for column in order)])
        met = tuple(found[column] for column in order[: len(order) - len(new)])
        chances = table[(np.arange(rows), *met)].reshape(rows, -1)
        ends = np.cumsum(chances, axis=1)
        place = (ends <= (uniforms[number] * ends[:, -1])[:, None]).sum(axis=1)
        place = np.minimum(place, chances.shape[1] - 1)
        sizes = tuple(tree.sizes[column] for column in new)
        found |= dict(zip(new, np.unravel_index(place, sizes), strict=True))
    return found


def _open(clique: Columns, known: Mapping[int, Integers]) -> Columns:
    return tuple(column for column in clique if column not in known)


def _slice(model: Model, number: int, known: Mapping[int, Integers], rows: int) -> Floats:
    """Return, for every row, the chances of a clique's open columns given its parent's, at the
    known ones.
    """
    clique, table = model.tree.cliques[number], model.tables[number]
    separator = model.tree.separators[number]
    if separator:
        shape = [
            size if column in separator else 1
            for column, size in zip(clique, table.shape, strict=True)
        ]
        table = table / np.maximum(summed(table, clique, separator).reshape(shape), LEAST)
    given = [column for column in clique if column in known]
    ordered = (
        np.transpose(table, [clique.index(column) for column in (*given, *_open(clique, known))])
        + LEAST
    )
    if not given:
        return np.broadcast_to(ordered, (rows, *ordered.shape))
    return np.asarray(ordered[tuple(known[column] for column in given)])


def _cells(description: Description, column: int, groups: Integers, uniforms: Floats) -> Integers:
    """Draw cells within groups, each as often as its count says."""
    of, counts = description.groups[column], description.counts[column]
    cells = np.empty(len(groups), dtype=np.int64)
    for group in np.unique(groups):
        inside, here = np.flatnonzero(of == group), groups == group
        held = counts[inside] if counts[inside].sum() > 0 else np.ones(len(inside))
        ends = np.cumsum(held) / held.sum()
        cells[here] = inside[
            np.minimum(np.searchsorted(ends, uniforms[here], side="right"), len(inside) - 1)
        ]
    return cells


def _uniforms(stream: Stream, rows: int) -> Floats:
    return (stream.words(Items.positions(rows), 0)[:, 0] >> np.uint64(11)).astype(
        np.float64
    ) * 2.0**-53
