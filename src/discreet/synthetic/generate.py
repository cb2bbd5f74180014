"""Rows from a description: any number, any number of times, free.

Rows are drawn clique by clique down the junction tree. The rows that agree on what is known already
take their values from evenly spread places of its distribution: counts stay within a few rows of
the model's, instead of a sampling error of their square root.
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
MOST_ROWS = 10**9  # at once; more are more calls
_GOLDEN = (5**0.5 - 1) / 2
_BELOW_ONE = 1 - 2.0**-30


class Places:
    """Cumulative distributions, one unit for each row of a table, to be looked up for very many
    numbers.

    A guide holds the answers for evenly spaced numbers, which are those of most others too; the
    rest are searched.
    """

    def __init__(self, table: Floats) -> None:
        table = np.where(table.sum(axis=1, keepdims=True) > 0, table, 1.0)
        ends = np.cumsum(table, axis=1)
        ends /= ends[:, -1:]
        ends += np.arange(len(ends))[:, None]
        self.units, self.width = table.shape
        self._ends = ends.ravel()
        self._finer = 1 << self.width.bit_length()  # a power of two: what the guide says is exact
        guide = np.searchsorted(
            self._ends, np.arange(self.units * self._finer) / self._finer, side="right"
        )
        # among millions of units a number may be rounded up to the last end
        self._guide = np.append(guide, guide[-1])

    def at_most(self, numbers: Floats) -> NDArray[np.intp]:
        """Return how many ends are at most each of the numbers, which do not lie beyond the last
        end.
        """
        found: NDArray[np.intp] = self._guide[(numbers * self._finer).astype(np.intp)]
        late = np.flatnonzero(self._ends[found] <= numbers)
        found[late] = np.searchsorted(self._ends, numbers[late], side="right")
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrawStep:
    """Draw `new` columns given `known` ones: `places` has one unit per known combination.

    Columns below the number of axes are groups; the cells of axis i are column i plus that number.
    Without `places` the new column is the known one.
    """

    known: tuple[int, ...]
    new: tuple[int, ...]
    places: Places | None
    known_sizes: tuple[int, ...] = ()  # not needed of a single column
    new_sizes: tuple[int, ...] = ()


def batches(
    description: Description, *, rows: int, given: Mapping[str, str]
) -> Iterator[pa.RecordBatch]:
    """Yield record batches that hold `rows` rows together; every call draws afresh."""
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 0:
        raise UsageError(f"rows must be a whole number of zero or more, not {rows!r}.")
    if rows > MOST_ROWS:
        raise UsageError(
            f"rows must be at most {MOST_ROWS:,}. Generate several files if you need more: each is free."
        )
    steps = _steps(description, given)
    schema, stream = description.schema, Stream.fresh()

    def batch(done: int) -> pa.RecordBatch:
        return _batch(
            description, steps, min(BATCH, rows - done), stream.derive("batch", done), schema
        )

    return _ahead(batch, range(0, rows, BATCH))


def _ahead(batch: Callable[[int], pa.RecordBatch], starts: range) -> Iterator[pa.RecordBatch]:
    """Yield batches in their order, each core working on one while the first of them is used."""
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
    """Draw the cells of synthetic rows, a column for every axis, from a given stream."""
    drawn = _draw_rows(_steps(description, {}), rows, stream)
    found = [drawn[column + len(description.axes)] for column in range(len(description.axes))]
    return np.column_stack(found).astype(np.int64)


def _batch(
    description: Description,
    steps: Sequence[DrawStep],
    size: int,
    stream: Stream,
    schema: pa.Schema,
) -> pa.RecordBatch:
    axes, drawn = description.axes, _draw_rows(steps, size, stream)
    items = Items.positions(size)
    shuffled = np.argsort(stream.words(items, len(steps))[:, 0])
    arrays = []
    for column, axis in enumerate(axes):
        cells = drawn[column + len(axes)][shuffled].astype(np.int64)
        spread = axis.bins < axis.values
        uniforms = (
            _uniforms(stream.words(items, len(steps) + 1 + column)) if spread else np.zeros(0)
        )
        arrays.append(axis.decoded(cells, uniforms).cast(schema.field(column).type))
    return pa.record_batch(arrays, schema=schema)


def _draw_rows(steps: Sequence[DrawStep], size: int, stream: Stream) -> dict[int, Small]:
    """Draw groups and cells of `size` rows."""
    drawn: dict[int, Small] = {}
    order = np.arange(size, dtype=np.int32)
    for number, step in enumerate(steps):
        if step.places is None:
            drawn[step.new[0]] = drawn[step.known[0]]
        else:
            starts = _uniforms(stream.words(Items.positions(step.places.units), number))
            order = _draw(step, step.places, drawn, order, starts)
    return drawn


def _draw(
    step: DrawStep, places: Places, drawn: dict[int, Small], order: Small, uniforms: Floats
) -> Small:
    """Draw a step's columns for all rows, and return the order in which the next step takes them.

    Rows that agree on what is known take their values at multiples of the golden ratio, from a
    random start: any run of them is spread evenly over the distribution. They come in the order of
    what was drawn before, so that also combinations with columns that are not in the same clique
    keep close to what the model expects.
    """
    kinds = len(uniforms)
    if kinds > 1:
        group = drawn[step.known[0]]
        for column, cells in zip(step.known[1:], step.known_sizes[1:], strict=True):
            group = group * np.int32(cells) + drawn[column]
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
    found = places.at_most(place)
    found -= np.repeat(np.arange(kinds) * places.width, counts)
    chosen: Small = np.minimum(found, places.width - 1).astype(np.int32)
    together = np.empty(len(order), dtype=np.int32)
    together[order] = chosen
    for column, cells in zip(step.new[:0:-1], step.new_sizes[:0:-1], strict=True):
        rest = together // np.int32(cells)  # several times as fast as divmod
        drawn[column] = together - rest * np.int32(cells)
        together = rest
    drawn[step.new[0]] = together
    return order[_stable(chosen, places.width)]


def _stable(codes: Small, size: int) -> NDArray[np.intp]:
    """Return a stable order; in linear time where the codes are small."""
    return np.argsort(
        codes.astype(np.uint8 if size <= 1 << 8 else np.uint16 if size <= 1 << 16 else np.int32),
        kind="stable",
    )


def _uniforms(words: NDArray[np.uint64]) -> Floats:
    return (words[:, 0] >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _steps(description: Description, given: Mapping[str, str]) -> list[DrawStep]:
    wanted = codes_of_conditions(description, given)
    model = condition_on(description, wanted)
    tree, axes = model.tree, description.axes
    steps = []
    for clique, separator, table in zip(tree.cliques, tree.separators, model.tables, strict=True):
        new = tuple(column for column in clique if column not in separator)
        if not new:
            continue
        ordered = np.transpose(table, [clique.index(column) for column in (*separator, *new)])
        flat = ordered.reshape(tree.cells_of(separator), -1)
        sizes = {"known_sizes": tree.shape(separator), "new_sizes": tree.shape(new)}
        steps.append(DrawStep(known=separator, new=new, places=Places(flat), **sizes))
    for column, (groups, counts) in enumerate(
        zip(description.groups, description.counts, strict=True)
    ):
        cells = counts.copy()
        if (groups == np.arange(len(groups))).all():
            steps.append(DrawStep(known=(column,), new=(column + len(axes),), places=None))
            continue
        if column in wanted:
            cells[np.arange(len(cells)) != wanted[column]] = 0.0
            cells[wanted[column]] = max(cells[wanted[column]], 1.0)
        inside = np.zeros((int(groups.max()) + 1, len(cells)))
        inside[groups, np.arange(len(cells))] = cells
        empty = inside.sum(axis=1) <= 0
        # a group of no expected rows: all its cells alike
        inside[groups, np.arange(len(cells))] += empty[groups]
        steps.append(DrawStep(known=(column,), new=(column + len(axes),), places=Places(inside)))
    return steps


def codes_of_conditions(description: Description, given: Mapping[str, str]) -> dict[int, int]:
    """Return the cells that conditions name."""
    if not isinstance(given, Mapping):
        raise UsageError(
            f'given names columns and their values, as in {{"sex": "F"}}, and is not {type(given).__name__}.'
        )
    names = [axis.name for axis in description.axes]
    for name in given:
        if name not in names:
            raise UsageError(f"The description has no column {name}; it has {', '.join(names)}.")
    return {
        names.index(name): description.axes[names.index(name)].code(text)
        for name, text in given.items()
    }


def condition_on(description: Description, wanted: Mapping[int, int]) -> Model:
    """Return the model of the rows that have these values."""
    model = description.model
    if not wanted:
        return model
    tree, potentials = model.tree, []
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
            if column in wanted:
                groups = np.arange(tree.sizes[column]) != description.groups[column][wanted[column]]
                potential[tuple([slice(None)] * axis + [groups])] = -1e4
        potentials.append(potential)
    tables, log_z = propagate(tree, potentials)
    if log_z < -700:
        named = ", ".join(
            f"{description.axes[c].name} = {description.axes[c].label(v)}"
            for c, v in wanted.items()
        )
        raise UsageError(f"The model expects no rows with {named}. Ask for fewer conditions.")
    return Model(tree=tree, tables=tuple(tables), total=model.total * float(np.exp(log_z)))
