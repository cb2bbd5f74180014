"""An allowance adds the noise that a charge has paid for, and releases no more than that."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet import arrow
from discreet.accounting import Accountant
from discreet.algebra import BEFORE, ROWS, TOTAL, key_column, number_column
from discreet.budget import Charge, Loss
from discreet.errors import BudgetExceeded, Unproved
from discreet.mechanisms.running import Grid
from discreet.mechanisms.shapes import (
    Additive,
    Choice,
    Keys,
    Mechanism,
    Near,
    Nearby,
    PersonRows,
    Scores,
    Selection,
    Sensitivity,
    Threshold,
)
from discreet.noise import Items, Stream
from discreet.vault.exact import Exact, IntegerArray
from discreet.vault.integers import cells_of, compact, integers, largest, narrow
from discreet.vault.keys import rows_among, wide_offsets
from discreet.vault.running import back, multiply_by_factor
from discreet.vault.steps import Encoder, Steps
from discreet.vault.unknown import Passing, Surviving

MOST_CELLS = 1 << 23  # most counts in memory at once, if a grid may have more: 64 MB


class Allowance:
    """The right to release what a charge has paid for.

    Each release is priced before it draws, and refused if the price of all releases together would
    pass the charge. Each states the sensitivity of its statistic (`moved`), in the integer units of
    the noise; a mechanism that claims less is refused before any exact value is opened.
    """

    def __init__(
        self, *, key: bytes, accountant: Accountant, paid: Charge, memory: int | None = None
    ) -> None:
        """Keep to `memory` bytes of exact values at once, if the plan could not bound them."""
        self._stream = Stream(key)
        self._memory = memory
        self._accountant = accountant
        self._paid = paid
        self._losses: tuple[Loss, ...] = ()
        self.used: tuple[Mechanism, ...] = ()

    @property
    def left(self) -> Charge:
        return self._paid - self._accountant.price(self._losses)

    def measure(
        self,
        mechanism: Additive,
        exact: Exact,
        *,
        moved: Sensitivity,
        sizes: Sequence[int],
        forms: Sequence[Sequence[int]],
        survivors: pa.Table | None = None,
        keys: Sequence[int] = (),
        totals: Grid | None = None,
    ) -> tuple[IntegerArray, ...]:
        """Return noisy numbers for every cell of a grid of keys, one array per form.

        `exact` has one row for each group that exists: the positions of its keys, and its sums. A
        group that does not exist counts as zeros and gets noise like all others. If the columns
        numbered `keys` are not public, the grid is the released `survivors` times the public keys.
        With `totals`, noise is added to running sums (`mechanisms.running`), and `moved` is the
        sensitivity of those.
        """
        _require(mechanism, mechanism.hides(moved))
        stream = self._spend(mechanism)
        table = exact.unwrap()
        if survivors is not None:
            table = rows_among(table, survivors, keys, public=len(sizes))
            sizes = [survivors.num_rows, *sizes]
        dense = cells_of(table, sizes, forms)
        items = Items.positions(len(dense[0]))
        if totals is not None:
            dense = [multiply_by_factor(values, totals) for values in dense]
        noisy = tuple(
            mechanism.add_to(values, stream.derive("part", index), items)
            for index, values in enumerate(dense)
        )
        if totals is None:
            return noisy
        return tuple(back(values, totals) for values in noisy)

    def steps(
        self,
        mechanism: Additive,
        encoder: Encoder,
        *,
        moved: Sensitivity,
        sizes: Sequence[int],
        forms: Sequence[Sequence[int]],
    ) -> Steps:
        """Begin a stream of measurements; this one mechanism pays for all of its steps (S15)."""
        _require(mechanism, mechanism.hides(moved))
        return Steps(mechanism, self._spend(mechanism), encoder, sizes=sizes, forms=forms)

    def threshold(
        self, mechanism: Threshold, exact: Exact, *, moved: Keys, keys: int
    ) -> tuple[pa.Table, IntegerArray]:
        """Return the keys whose noisy number reaches the threshold, sorted by value, and these
        numbers (S5).

        `exact` has the keys that exist and the number to test for each. How many exist is not
        public: they come part by part, and only the keys that pass stay in memory.
        """
        import pyarrow.compute as pc

        _require(mechanism, mechanism.hides(moved))
        stream = self._spend(mechanism)
        passing = list[pa.Table]()
        numbers = list[IntegerArray]()
        for table in exact.unwrap_each(Passing(mechanism=mechanism, stream=stream, keys=keys)):
            passing.append(wide_offsets(table.drop_columns(number_column(0))))
            numbers.append(integers(table.column(number_column(0))))
            self._require_memory(passing)
        survivors = pa.concat_tables(passing)
        order = pc.sort_indices(
            survivors, sort_keys=[(name, "ascending") for name in survivors.column_names]
        )
        places = arrow.numbers(order).astype(np.int64)
        return survivors.take(order), np.concatenate(numbers)[places]

    def keep(self, exact: Exact, survivors: pa.Table, *, keys: Sequence[int]) -> Exact:
        """Return the exact rows whose key is among the survivors.

        The columns numbered `keys` hold the key. The rows come part by part.
        """
        kept = list[pa.Table]()
        for table in exact.unwrap_each(Surviving(survivors=survivors, keys=tuple(keys))):
            kept.append(wide_offsets(table))
            self._require_memory(kept)
        return Exact(pa.concat_tables(kept))

    def _require_memory(self, tables: Sequence[pa.Table]) -> None:
        """Raise MemoryError if the tables take more than `memory` bytes.

        Like every failure after the charge, it stays charged and is counted (S22).
        """
        if self._memory is not None and sum(table.nbytes for table in tables) > self._memory:
            raise MemoryError

    def choose(
        self,
        mechanism: Selection,
        exact: Exact,
        *,
        moved: PersonRows,
        sizes: Sequence[int],
        cells: int,
        survivors: pa.Table | None = None,
        keys: Sequence[int] = (),
    ) -> npt.NDArray[np.int64]:
        """Return the cell that a selection chooses in every group; several quantiles choose one
        cell each, in a column each.

        `exact` has the positions of keys, then the cell, and the number of rows in it. If the
        columns numbered `keys` are not public, the groups are the `survivors` times the public
        keys, as in `measure`.
        """
        _require(mechanism, mechanism.hides(moved))
        stream = self._spend(mechanism)
        table = exact.unwrap()
        public = math.prod(sizes)
        keyed = 1  # survivors; if all keys are public, all groups are one batch
        at_once = 1
        if survivors is not None:
            table = rows_among(table, survivors, keys, public=len(sizes) + 1)
            keyed = survivors.num_rows
            at_once = max(1, MOST_CELLS // (public * cells))
            sizes = [keyed, *sizes]
        items = Items.positions(math.prod(sizes))
        chosen = [np.empty((0, mechanism.per_group), np.int64)]
        for begin in range(0, keyed, at_once):
            batch = table
            shape = list(sizes)
            if survivors is not None:
                shape[0] = min(at_once, keyed - begin)
                batch = _rows_of_batch(table, begin, shape[0])
            counts = cells_of(batch, [*shape, cells], [(1,)])[0].reshape(-1, cells)
            groups = slice(begin * public, begin * public + len(counts))
            picks = mechanism.choose_each(counts, stream, items.at(groups))
            chosen.append(picks.reshape(len(counts), mechanism.per_group))
        return np.concatenate(chosen)

    def choose_near(
        self,
        mechanism: Nearby,
        exact: Exact,
        *,
        moved: PersonRows,
        sizes: Sequence[int],
        survivors: pa.Table | None = None,
        keys: Sequence[int] = (),
    ) -> IntegerArray:
        """Return the cell of a fine grid that a quantile chooses in every group.

        The groups are those of `choose`. `exact` has the positions of keys, the cell, and the
        counts of `algebra.Nearest`, at least for the cells near the wanted rank.
        """
        _require(mechanism, mechanism.hides(moved))
        stream = self._spend(mechanism)
        table = exact.unwrap()
        if survivors is not None:
            table = rows_among(table, survivors, keys, public=len(sizes) + 1)
            sizes = [survivors.num_rows, *sizes]
        group = np.zeros(table.num_rows, dtype=np.int64)
        for index, size in enumerate(sizes):
            group = group * size + integers(table.column(key_column(index))).astype(np.int64)
        names = (key_column(len(sizes)), ROWS, BEFORE, TOTAL)
        cell, rows, before, total = (integers(table.column(name)) for name in names)
        order = np.lexsort((cell, group))
        near = Near(
            group=group[order],
            cell=cell[order],
            rows=rows[order],
            before=before[order],
            total=total[order],
        )
        chosen = mechanism.choose_near(near, stream, Items.positions(math.prod(sizes)))
        return np.asarray(chosen).reshape(-1, 1)

    def marginal(
        self,
        mechanism: Additive,
        exact: Exact,
        *,
        moved: Sensitivity,
        cells: IntegerArray,
        size: int,
    ) -> IntegerArray:
        """Return noisy counts of `size` groups of cells.

        A row at a place of the public grid counts in group cells[place].
        """
        _require(mechanism, mechanism.hides(moved))
        stream = self._spend(mechanism)
        counts = _group(exact.unwrap(), cells, size)
        return np.asarray(mechanism.add_to(counts, stream, Items.positions(size)))

    def roll_up(
        self,
        mechanism: Additive,
        exact: Exact,
        *,
        moved: Sensitivity,
        maps: Sequence[IntegerArray],
        sizes: Sequence[int],
    ) -> IntegerArray:
        """Return noisy counts of a public grid; maps[i] gives each place of key i its cell.

        A row whose place maps to -1 counts in no cell. There is one count for each cell of the
        product of `sizes`, in as few bits as hold it. There may be many more cells than rows, so
        the noise is added part by part.
        """
        _require(mechanism, mechanism.hides(moved))
        stream = self._spend(mechanism)
        place, number = _places_of(exact.unwrap(), maps, sizes)
        cells = math.prod(sizes)
        noisy = list[IntegerArray]()
        for first in range(0, cells, MOST_CELLS):
            size = min(MOST_CELLS, cells - first)
            counts = _count_cells(place, number, first, size)
            items = Items.positions(size, first=first)
            noisy.append(compact(np.asarray(mechanism.add_to(counts, stream, items))))
        return np.concatenate(noisy)

    def distances(
        self,
        mechanism: Additive,
        exact: Iterable[Exact],
        *,
        moved: Sensitivity,
        cells: Iterable[IntegerArray],
        models: Sequence[IntegerArray],
    ) -> IntegerArray:
        """Return noisy l1 distances of exact counts to released integer tables, as one vector (S16)."""
        _require(mechanism, mechanism.hides(moved))
        stream = self._spend(mechanism)
        distances = _distances(exact, cells, models)
        return np.asarray(mechanism.add_to(distances, stream, Items.positions(len(models))))

    def sums(
        self,
        mechanism: Additive,
        exact: Iterable[Exact],
        *,
        moved: Sensitivity,
        points: Iterable[IntegerArray],
    ) -> IntegerArray:
        """Return noisy sums of points over rows, as one vector.

        Each sum has exact counts of rows by cell, and the integer points of a row in each cell.
        """
        _require(mechanism, mechanism.hides(moved))
        stream = self._spend(mechanism)
        pairs = zip(exact, points, strict=True)
        sums = [_sum_of_points(counts.unwrap(), scores) for counts, scores in pairs]
        vector = narrow(np.array(sums, dtype=object))
        return np.asarray(mechanism.add_to(vector, stream, Items.positions(len(sums))))

    def farthest(
        self,
        mechanism: Choice,
        exact: Iterable[Exact],
        *,
        moved: int,
        cells: Iterable[IntegerArray],
        models: Sequence[IntegerArray],
        factors: Sequence[int],
        expected: Sequence[int],
    ) -> int:
        """Choose the exact counts that are farthest from their released table (S16).

        The score is factor * (distance - expected). `moved` is the sensitivity of each distance.
        """
        scale = max(abs(factor) for factor in factors)
        _require(mechanism, mechanism.hides_scores(Scores(linf=scale * moved, monotone=False)))
        stream = self._spend(mechanism)
        distances = _distances(exact, cells, models).astype(object)
        excess = distances - np.array(expected, dtype=object)
        scores = narrow(np.array(factors, dtype=object) * excess)
        return mechanism.choose(scores, stream)

    def _spend(self, mechanism: Mechanism) -> Stream:
        """Record the mechanism's loss before it runs, and return a stream of its own."""
        losses = (*self._losses, mechanism.loss())
        if not self._accountant.price(losses).fits(self._paid):
            raise BudgetExceeded(
                "An algorithm tried to release more than it had paid for; nothing was released."
            )
        stream = self._stream.derive("measurement", len(self.used))
        self._losses = losses
        self.used = (*self.used, mechanism)
        return stream


def _require(mechanism: Mechanism, hidden: bool) -> None:
    """Refuse a mechanism that claims less than the statistic's sensitivity: the second defence."""
    if not hidden:
        raise Unproved(
            f"{type(mechanism).__name__} claims less than one person moves this statistic: not released."
        )


def _rows_of_batch(table: pa.Table, begin: int, size: int) -> pa.Table:
    """Return the rows of the survivors from `begin` on, `size` of them, numbered from 0."""
    places = arrow.numbers(table.column(key_column(0))) - begin
    inside = (places >= 0) & (places < size)
    return table.set_column(0, key_column(0), arrow.array(places)).filter(arrow.array(inside))


def _group(table: pa.Table, cells: IntegerArray, size: int) -> IntegerArray:
    """Return exact counts of groups of cells."""
    counts = np.zeros(size, dtype=np.int64)
    places = integers(table.column(key_column(0)))
    np.add.at(counts, cells[places], integers(table.column(number_column(0))))
    return counts


def _sum_of_points(table: pa.Table, points: IntegerArray) -> int:
    """Return the exact sum of the points of all rows."""
    cells = integers(table.column(key_column(0)))
    rows = integers(table.column(number_column(0))).astype(object)  # no sum of these overflows
    return int((rows * points[cells]).sum())


def _places_of(
    table: pa.Table, maps: Sequence[IntegerArray], sizes: Sequence[int]
) -> tuple[IntegerArray, IntegerArray]:
    """Return the cell of each group of rows under public maps, in rising order, and the exact
    number of its rows.
    """
    place = np.zeros(table.num_rows, dtype=np.int64)
    inside = np.ones(table.num_rows, dtype=bool)
    for index, (cells, size) in enumerate(zip(maps, sizes, strict=True)):
        cell = cells[integers(table.column(key_column(index)))]
        inside &= cell >= 0
        place = place * size + cell
    place = place[inside]
    number = integers(table.column(number_column(0)))[inside]
    order = np.argsort(place)
    return place[order], number[order]


def _count_cells(place: IntegerArray, number: IntegerArray, first: int, size: int) -> IntegerArray:
    """Return exact counts of `size` cells from `first` on; places are in rising order."""
    low, high = np.searchsorted(place, [first, first + size])
    counts = np.zeros(size, dtype=np.int64)
    np.add.at(counts, place[low:high] - first, number[low:high])
    return counts


def _distances(
    exact: Iterable[Exact], cells: Iterable[IntegerArray], models: Sequence[IntegerArray]
) -> IntegerArray:
    """Return the exact l1 distance of each table of counts to its model.

    Read one table at a time: they may be large.
    """
    distances = []
    for table, places, model in zip(exact, cells, models, strict=True):
        counts = _group(table.unwrap(), places, len(model))
        distances.append(_distance(counts, model))
    return narrow(np.array(distances, dtype=object))


def _distance(counts: IntegerArray, model: IntegerArray) -> int:
    # Privacy: a model may come from a file that somebody wrote by hand. If its sum overflowed 64
    # bits and wrapped around, one person could move the distance by 2^64 instead of 1.
    if 2 * max(largest(counts), largest(model)) * len(model) >= 2**62:
        counts = counts.astype(object)
        model = model.astype(object)
    return int(np.abs(counts - model).sum())
