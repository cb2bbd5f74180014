"""Draw rows from a description: any number, any number of times, for free.

Draw them clique by clique down the junction tree. Rows that agree on the columns drawn before take
their values at evenly spread places of the distribution given these columns. So counts differ from
the model's by a few rows only, not by the square root of the count as in plain sampling.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.errors import UsageError
from discreet.noise import Items, Stream
from discreet.synthetic.synthesizers.graphical import Model, propagate, summed

if TYPE_CHECKING:
    from discreet.synthetic.description import Description

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Small = NDArray[np.int32]

BATCH = 1 << 17
MOST_ROWS = 10**9  # of one call
_GOLDEN = (5**0.5 - 1) / 2
_BELOW_ONE = 1 - 2.0**-30


class Places:
    """Cumulative distributions, one for each row of a table, to look up very many numbers in.

    The distribution of row i covers the numbers from i to i + 1. A guide holds the answers for
    evenly spaced numbers, which are right for most others too; search for the rest.
    """

    def __init__(self, table: Floats) -> None:
        table = np.where(table.sum(axis=1, keepdims=True) > 0, table, 1.0)
        ends = np.cumsum(table, axis=1)
        ends /= ends[:, -1:]
        ends += np.arange(len(ends))[:, None]
        self.units, self.width = table.shape
        self._ends = ends.ravel()
        self._finer = 1 << self.width.bit_length()  # a power of two, so the products are exact
        spaced = np.arange(self.units * self._finer) / self._finer
        guide = np.searchsorted(self._ends, spaced, side="right")
        # With millions of units a number may be rounded up to the last end.
        self._guide = np.append(guide, guide[-1])

    def at_most(self, numbers: Floats) -> NDArray[np.intp]:
        """Return for each number how many ends are at most as large; none is over the last end."""
        places: NDArray[np.intp] = self._guide[(numbers * self._finer).astype(np.intp)]
        late = np.flatnonzero(self._ends[places] <= numbers)
        places[late] = np.searchsorted(self._ends, numbers[late], side="right")
        return places


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrawStep:
    """Draw `new` columns given `known` ones: `places` has one unit for each known combination.

    With n axes, column i < n has the groups of axis i, and column n + i has its cells. Without
    `places` the new column is a copy of the known one.
    """

    known: tuple[int, ...]
    new: tuple[int, ...]
    places: Places | None
    known_sizes: tuple[int, ...] = ()  # a single column needs none
    new_sizes: tuple[int, ...] = ()


def batches(
    description: Description, *, rows: int, given: Mapping[str, str]
) -> Iterator[pa.RecordBatch]:
    """Yield record batches with `rows` rows in all; every call draws new rows."""
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 0:
        raise UsageError(f"rows must be a whole number of zero or more, not {rows!r}.")
    if rows > MOST_ROWS:
        raise UsageError(
            f"rows must be at most {MOST_ROWS:,}. Generate several files if you need more: each is free."
        )
    steps = _steps(description, given)
    schema = description.schema
    stream = Stream.fresh()

    def batch(done: int) -> pa.RecordBatch:
        size = min(BATCH, rows - done)
        return _batch(description, steps, size, stream.derive("batch", done), schema)

    return _in_parallel(batch, range(0, rows, BATCH))


def _in_parallel(batch: Callable[[int], pa.RecordBatch], starts: range) -> Iterator[pa.RecordBatch]:
    """Yield batches in their order; every core computes one ahead."""
    workers = min(len(starts), os.cpu_count() or 1)
    if workers <= 1:
        yield from map(batch, starts)
        return
    with ThreadPoolExecutor(workers) as pool:
        waiting = deque(pool.submit(batch, start) for start in starts[:workers])
        for start in starts[workers:]:
            yield waiting.popleft().result()
            waiting.append(pool.submit(batch, start))
        while waiting:
            yield waiting.popleft().result()


def codes(description: Description, *, rows: int, stream: Stream) -> Integers:
    """Draw the cells of synthetic rows from a stream; the result has a column for every axis."""
    columns = _draw_rows(_steps(description, {}), rows, stream)
    width = len(description.axes)
    cells = [columns[width + axis] for axis in range(width)]
    return np.column_stack(cells).astype(np.int64)


def _batch(
    description: Description,
    steps: Sequence[DrawStep],
    size: int,
    stream: Stream,
    schema: pa.Schema,
) -> pa.RecordBatch:
    """Return `size` synthetic rows in random order."""
    axes = description.axes
    columns = _draw_rows(steps, size, stream)
    items = Items.positions(size)
    order = np.argsort(stream.words(items, len(steps))[:, 0])
    arrays = []
    for column, axis in enumerate(axes):
        cells = columns[column + len(axes)][order].astype(np.int64)
        uniforms = np.zeros(0)
        if axis.bins < axis.values:
            uniforms = _uniforms(stream.words(items, len(steps) + 1 + column))
        arrays.append(axis.decoded(cells, uniforms).cast(schema.field(column).type))
    return pa.record_batch(arrays, schema=schema)


def _draw_rows(steps: Sequence[DrawStep], size: int, stream: Stream) -> dict[int, Small]:
    """Draw the groups and cells of `size` rows."""
    columns: dict[int, Small] = {}
    order = np.arange(size, dtype=np.int32)
    for number, step in enumerate(steps):
        if step.places is None:
            columns[step.new[0]] = columns[step.known[0]]
        else:
            starts = _uniforms(stream.words(Items.positions(step.places.units), number))
            order = _draw(step, step.places, columns, order, starts)
    return columns


def _draw(
    step: DrawStep, places: Places, columns: dict[int, Small], order: Small, uniforms: Floats
) -> Small:
    """Draw a step's columns for all rows, and return the order of rows for the next step.

    Rows that agree on the known columns take their values at multiples of the golden ratio, from a
    random start: so any run of them is spread evenly over the distribution. They come in the order
    of the values drawn before. So combinations with columns outside the clique also stay close to
    what the model expects.
    """
    kinds = len(uniforms)
    if kinds > 1:
        group = columns[step.known[0]]
        for column, cells in zip(step.known[1:], step.known_sizes[1:], strict=True):
            group = group * np.int32(cells) + columns[column]
        group = group[order]
        counts = np.bincount(group, minlength=kinds)
        order = order[_stable(group, kinds)]
    else:
        counts = np.array([len(order)])
    first = np.cumsum(counts) - counts
    place: Floats = np.arange(len(order), dtype=np.float64)
    place *= _GOLDEN
    place += np.repeat(uniforms - first * _GOLDEN, counts)
    place -= np.floor(place)
    place *= _BELOW_ONE
    place += np.repeat(np.arange(kinds, dtype=np.float64), counts)
    cell = places.at_most(place)
    cell -= np.repeat(np.arange(kinds) * places.width, counts)
    choice: Small = np.minimum(cell, places.width - 1).astype(np.int32)
    # the choice is one number for all new columns: take it apart
    number = np.empty(len(order), dtype=np.int32)
    number[order] = choice
    for column, cells in zip(step.new[:0:-1], step.new_sizes[:0:-1], strict=True):
        rest = number // np.int32(cells)  # several times as fast as divmod
        columns[column] = number - rest * np.int32(cells)
        number = rest
    columns[step.new[0]] = number
    return order[_stable(choice, places.width)]


def _stable(codes: Small, size: int) -> NDArray[np.intp]:
    """Return a stable order, in linear time if the codes are small."""
    if size <= 1 << 8:
        return np.argsort(codes.astype(np.uint8), kind="stable")
    if size <= 1 << 16:
        return np.argsort(codes.astype(np.uint16), kind="stable")
    return np.argsort(codes.astype(np.int32), kind="stable")


def _uniforms(words: NDArray[np.uint64]) -> Floats:
    return (words[:, 0] >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _steps(description: Description, given: Mapping[str, str]) -> list[DrawStep]:
    """Return the steps that draw a row's groups, clique by clique, and then its cells."""
    conditions = codes_of_conditions(description, given)
    model = condition_on(description, conditions)
    tree = model.tree
    axes = description.axes
    steps = []
    for clique, separator, table in zip(tree.cliques, tree.separators, model.tables, strict=True):
        new = tuple(column for column in clique if column not in separator)
        if not new:
            continue
        axis_order = [clique.index(column) for column in (*separator, *new)]
        flat = np.transpose(table, axis_order).reshape(tree.cells_of(separator), -1)
        sizes = {"known_sizes": tree.shape(separator), "new_sizes": tree.shape(new)}
        steps.append(DrawStep(known=separator, new=new, places=Places(flat), **sizes))
    for column, groups in enumerate(description.groups):
        cells = description.counts[column].copy()
        every = np.arange(len(groups))
        if (groups == every).all():
            steps.append(DrawStep(known=(column,), new=(column + len(axes),), places=None))
            continue
        if column in conditions:
            only = conditions[column]
            cells[every != only] = 0.0
            cells[only] = max(cells[only], 1.0)
        inside = np.zeros((int(groups.max()) + 1, len(cells)))
        inside[groups, every] = cells
        empty = inside.sum(axis=1) <= 0
        # in a group without expected rows all cells are equal
        inside[groups, every] += empty[groups]
        steps.append(DrawStep(known=(column,), new=(column + len(axes),), places=Places(inside)))
    return steps


def codes_of_conditions(description: Description, given: Mapping[str, str]) -> dict[int, int]:
    """Return the cells that conditions name, by column."""
    if not isinstance(given, Mapping):
        raise UsageError(
            f'given names columns and their values, as in {{"sex": "F"}}, and is not {type(given).__name__}.'
        )
    names = [axis.name for axis in description.axes]
    for name in given:
        if name not in names:
            raise UsageError(f"The description has no column {name}; it has {', '.join(names)}.")
    cells = {}
    for name, text in given.items():
        column = names.index(name)
        cells[column] = description.axes[column].code(text)
    return cells


def condition_on(description: Description, conditions: Mapping[int, int]) -> Model:
    """Return the model of the rows with these cells."""
    model = description.model
    if not conditions:
        return model
    tree = model.tree
    potentials = []
    for clique, separator, table in zip(tree.cliques, tree.separators, model.tables, strict=True):
        sums = summed(table, clique, separator) if separator else np.ones(())
        shape = [
            size if column in separator else 1
            for column, size in zip(clique, table.shape, strict=True)
        ]
        with np.errstate(divide="ignore", invalid="ignore"):
            potential = np.log(table) - np.log(sums.reshape(shape) if separator else 1.0)
        potential = np.where(table > 0, potential, -1e3)
        for axis, column in enumerate(clique):
            if column in conditions:
                group = description.groups[column][conditions[column]]
                others = np.arange(tree.sizes[column]) != group
                potential[tuple([slice(None)] * axis + [others])] = -1e4
        potentials.append(potential)
    tables, log_z = propagate(tree, potentials)
    if log_z < -700:
        names = []
        for column, cell in conditions.items():
            own = description.axes[column]
            names.append(f"{own.name} = {own.label(cell)}")
        raise UsageError(
            f"The model expects no rows with {', '.join(names)}. Ask for fewer conditions."
        )
    return Model(tree=tree, tables=tuple(tables), total=model.total * float(np.exp(log_z)))
