"""An allowance: adds the noise that a reservation has paid for, and releases no more than that."""

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

MOST_CELLS = 1 << 23  # counts that are held at once where there may be very many: 64 MB


class Allowance:
    """The right to release what was paid for. Each release is priced and kept within it, planned
    ahead or chosen on the way.

    Every release says how far one person moves its statistic (`moved`), in the whole units that
    noise is added in. A mechanism that claims less is refused before anything is opened.
    """

    def __init__(
        self, *, key: bytes, accountant: Accountant, paid: Charge, memory: int | None = None
    ) -> None:
        """`memory` is how many bytes of exact values may be held at once, where the plan could not
        tell how many.
        """
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
        """Return noisy numbers for every cell of a grid of public keys, one array per form.

        `exact` has positions of keys and sums, one row per group that exists; groups that do not
        exist are zeros, and get noise like all others. Where the columns numbered `keys` are not
        public, the grid is that of the `survivors`, which have been released, times the public
        keys. With `totals`, noise is added to sums of the numbers (`mechanisms.running`), and
        `moved` is how far one person moves those.
        """
        _require(mechanism, mechanism.hides(moved))
        stream = self._spend(mechanism)
        table = exact.unwrap()
        if survivors is not None:
            table = rows_among(table, survivors, keys, public=len(sizes))
            sizes = [survivors.num_rows, *sizes]
        dense = cells_of(table, sizes, forms)
        items = Items.positions(len(dense[0]))
        dense = (
            dense if totals is None else [multiply_by_factor(values, totals) for values in dense]
        )
        noisy = tuple(
            mechanism.add_to(values, stream.derive("part", index), items)
            for index, values in enumerate(dense)
        )
        return noisy if totals is None else tuple(back(values, totals) for values in noisy)

    def steps(
        self,
        mechanism: Additive,
        encoder: Encoder,
        *,
        moved: Sensitivity,
        sizes: Sequence[int],
        forms: Sequence[Sequence[int]],
    ) -> Steps:
        """Return a measurement of a stream: the mechanism pays for all of its steps together
        (S15).
        """
        _require(mechanism, mechanism.hides(moved))
        return Steps(mechanism, self._spend(mechanism), encoder, sizes=sizes, forms=forms)

    def threshold(
        self, mechanism: Threshold, exact: Exact, *, moved: Keys, keys: int
    ) -> tuple[pa.Table, IntegerArray]:
        """Return the keys whose noisy number passes, in the order of their values, and those
        numbers (S5).

        `exact` has the keys themselves and the number that is tested; only existing keys.
        How many there are is not public. They are taken part by part, and only those are held that
        leave.
        """
        import pyarrow.compute as pc

        _require(mechanism, mechanism.hides(moved))
        stream = self._spend(mechanism)
        left, numbers = list[pa.Table](), list[IntegerArray]()
        for table in exact.unwrap_each(Passing(mechanism=mechanism, stream=stream, keys=keys)):
            left.append(wide_offsets(table.drop_columns(number_column(0))))
            numbers.append(integers(table.column(number_column(0))))
            self._hold(left)
        survivors = pa.concat_tables(left)
        order = pc.sort_indices(
            survivors, sort_keys=[(name, "ascending") for name in survivors.column_names]
        )
        return survivors.take(order), np.concatenate(numbers)[arrow.numbers(order).astype(np.int64)]

    def keep(self, exact: Exact, survivors: pa.Table, *, keys: Sequence[int]) -> Exact:
        """Return the rows of keys that have left, part by part; the columns numbered `keys` are the
        keys'.
        """
        kept = list[pa.Table]()
        for table in exact.unwrap_each(Surviving(survivors=survivors, keys=tuple(keys))):
            kept.append(wide_offsets(table))
            self._hold(kept)
        return Exact(pa.concat_tables(kept))

    def _hold(self, tables: Sequence[pa.Table]) -> None:
        """Raise MemoryError where more is held than may be: as every failure, it is charged and
        counted (S22).
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
        """Return the cell that a selection chooses in every group (for several quantiles: cells,
        one column each).

        `exact` has positions of keys, then the cell, and the rows in it. Where the columns
        numbered `keys` are not public, groups are those of the `survivors`, times the public keys,
        as in `measure`.
        """
        _require(mechanism, mechanism.hides(moved))
        stream = self._spend(mechanism)
        table, first = exact.unwrap(), 1
        if survivors is not None:
            table, first = (
                rows_among(table, survivors, keys, public=len(sizes) + 1),
                survivors.num_rows,
            )
            sizes = [first, *sizes]
        items, found = Items.positions(math.prod(sizes)), []
        at_once = (
            first if survivors is None else max(1, MOST_CELLS // (math.prod(sizes[1:]) * cells))
        )
        # all at once, unless there is no telling how many there are
        for begin in range(0, first, at_once):
            part, shape = table, list(sizes)
            if survivors is not None:
                shape[0] = min(at_once, first - begin)
                places = arrow.numbers(table.column(key_column(0))) - begin
                inside = (places >= 0) & (places < shape[0])
                part = table.set_column(0, key_column(0), arrow.array(places)).filter(
                    arrow.array(inside)
                )
            counts = cells_of(part, [*shape, cells], [(1,)])[0].reshape(-1, cells)
            here = slice(begin * math.prod(sizes[1:]), begin * math.prod(sizes[1:]) + len(counts))
            chosen = mechanism.choose_each(counts, stream, items.at(here))
            found.append(chosen.reshape(len(counts), mechanism.per_group))
        return np.concatenate(found) if found else np.empty((0, mechanism.per_group), np.int64)

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
        """Return the cell of a fine grid that a quantile chooses in every group; groups as in
        `choose`.

        `exact` has positions of keys, the cell, and what `algebra.Nearest` gives beside them, for
        the cells near the wanted rank at least.
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
        """Return noisy counts of `size` groups of cells: a row at a place of a public grid counts
        for cells[place].
        """
        _require(mechanism, mechanism.hides(moved))
        stream = self._spend(mechanism)
        return np.asarray(
            mechanism.add_to(_group(exact.unwrap(), cells, size), stream, Items.positions(size))
        )

    def roll_up(
        self,
        mechanism: Additive,
        exact: Exact,
        *,
        moved: Sensitivity,
        maps: Sequence[IntegerArray],
        sizes: Sequence[int],
    ) -> IntegerArray:
        """Return noisy counts of a public grid: each of `maps` puts the places of one key into its
        cells.

        A place -1 is none: such rows are in no cell. The counts are as long as the product of
        `sizes`, in as few bits as hold them. They are made part by part: there may be many more
        cells than rows.
        """
        _require(mechanism, mechanism.hides(moved))
        stream = self._spend(mechanism)
        place, number = _places_of(exact.unwrap(), maps, sizes)
        cells, noisy = math.prod(sizes), list[IntegerArray]()
        for first in range(0, cells, MOST_CELLS):
            size = min(MOST_CELLS, cells - first)
            counts = _count_cells(place, number, first, size)
            noisy.append(
                compact(
                    np.asarray(mechanism.add_to(counts, stream, Items.positions(size, first=first)))
                )
            )
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
        """Return noisy l1 distances of exact counts to released integer tables; together one vector
        (S16).
        """
        _require(mechanism, mechanism.hides(moved))
        stream = self._spend(mechanism)
        return np.asarray(
            mechanism.add_to(_apart(exact, cells, models), stream, Items.positions(len(models)))
        )

    def sums(
        self,
        mechanism: Additive,
        exact: Iterable[Exact],
        *,
        moved: Sensitivity,
        points: Iterable[IntegerArray],
    ) -> IntegerArray:
        """Return noisy sums over rows of points; together one vector.

        Each sum has exact counts of rows by cell, and the whole number of points of every cell.
        """
        _require(mechanism, mechanism.hides(moved))
        stream = self._spend(mechanism)
        found = [_points(e.unwrap(), each) for e, each in zip(exact, points, strict=True)]
        whole = narrow(np.array(found, dtype=object))
        return np.asarray(mechanism.add_to(whole, stream, Items.positions(len(found))))

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
        """Return which exact counts are farthest from their released table, by factor * (distance -
        expected) (S16).

        `moved` is how far one person moves each distance.
        """
        scale = max(abs(factor) for factor in factors)
        _require(mechanism, mechanism.hides_scores(Scores(linf=scale * moved, monotone=False)))
        stream = self._spend(mechanism)
        apart = _apart(exact, cells, models).astype(object) - np.array(expected, dtype=object)
        scores = narrow(np.array(factors, dtype=object) * apart)
        return mechanism.choose(scores, stream)

    def _spend(self, mechanism: Mechanism) -> Stream:
        """Count the mechanism before it runs, and give it randomness of its own."""
        losses = (*self._losses, mechanism.loss())
        if not self._accountant.price(losses).fits(self._paid):
            raise BudgetExceeded(
                "An algorithm tried to release more than it had paid for; nothing was released."
            )
        stream = self._stream.derive("measurement", len(self.used))
        self._losses, self.used = losses, (*self.used, mechanism)
        return stream


def _require(mechanism: Mechanism, hidden: bool) -> None:
    """Refuse noise made for another statistic than this one: the second defence."""
    if not hidden:
        raise Unproved(
            f"{type(mechanism).__name__} claims less than one person moves this statistic: not released."
        )


def _group(table: pa.Table, cells: IntegerArray, size: int) -> IntegerArray:
    """Return exact counts of groups of cells."""
    counts = np.zeros(size, dtype=np.int64)
    np.add.at(
        counts,
        cells[integers(table.column(key_column(0)))],
        integers(table.column(number_column(0))),
    )
    return counts


def _points(table: pa.Table, points: IntegerArray) -> int:
    """Return the exact sum of the points of all rows."""
    cells = integers(table.column(key_column(0)))
    rows = integers(table.column(number_column(0))).astype(object)  # which no sum overflows
    return int((rows * points[cells]).sum())


def _places_of(
    table: pa.Table, maps: Sequence[IntegerArray], sizes: Sequence[int]
) -> tuple[IntegerArray, IntegerArray]:
    """Return the cells that public maps put rows into, in rising order, and how many rows are in
    each; exact.
    """
    place, inside = np.zeros(table.num_rows, dtype=np.int64), np.ones(table.num_rows, dtype=bool)
    for index, (mapped, size) in enumerate(zip(maps, sizes, strict=True)):
        here = mapped[integers(table.column(key_column(index)))]
        inside &= here >= 0
        place = place * size + here
    place, number = place[inside], integers(table.column(number_column(0)))[inside]
    order = np.argsort(place)
    return place[order], number[order]


def _count_cells(place: IntegerArray, number: IntegerArray, first: int, size: int) -> IntegerArray:
    """Return exact counts of the cells from `first` on. Places are in rising order."""
    low, high = np.searchsorted(place, [first, first + size])
    counts = np.zeros(size, dtype=np.int64)
    np.add.at(counts, place[low:high] - first, number[low:high])
    return counts


def _apart(
    exact: Iterable[Exact], cells: Iterable[IntegerArray], models: Sequence[IntegerArray]
) -> IntegerArray:
    """Return the l1 distance of each table of counts to its model; reads counts in turn, as they
    may be large.
    """
    pairs = zip(exact, cells, models, strict=True)
    return narrow(
        np.array([_distance(_group(e.unwrap(), c, len(m)), m) for e, c, m in pairs], dtype=object)
    )


def _distance(counts: IntegerArray, model: IntegerArray) -> int:
    # Privacy: a model may come from a file that somebody wrote by hand. Were its sum to pass 64
    # bits and start again at the other end, one person would move it by 2^64 and not by 1.
    if 2 * max(largest(counts), largest(model)) * len(model) >= 2**62:
        counts, model = counts.astype(object), model.astype(object)
    return int(np.abs(counts - model).sum())
