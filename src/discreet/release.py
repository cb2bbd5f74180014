"""Where exact values meet noise: the only place.

    Exact        what an engine read; it does not print, does not pickle, and only an Allowance opens it
    Allowance    what a reservation paid for; it adds the noise, and releases no more than that
    Steps        a measurement that was paid for once and is released step by step
    Answer       what leaves

The order is always: charge, read, add noise, store, release (DESIGN 1). An Allowance exists only after the charge is on
disk, and every draw it makes is a function of the charge's own key (S8).
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from discreet import arrow
from discreet.accounting import Accountant
from discreet.budget import Budget, Charge, Loss
from discreet.errors import BudgetExceeded, Unproved
from discreet.mechanisms import to_row
from discreet.mechanisms.fine_quantile import Near
from discreet.mechanisms.shapes import (
    Additive,
    Choice,
    Keys,
    Mechanism,
    Nearby,
    Rows,
    Scores,
    Selection,
    Sensitivity,
    Threshold,
)
from discreet.noise import Items, Stream, Texts, text_items

MOST_CELLS = 1 << 23  # counts that are held at once for unknown keys: 64 MB
IntegerArray = npt.NDArray[Any]  # int64, or Python integers where sums pass 64 bits


class Exact:
    """Exact values. They can be held and handed on, and be seen only by what adds noise to them.

    Given as a table; or as several of the same columns, one after another, which are then read once.
    """

    __slots__ = ("_tables",)

    def __init__(self, values: pa.Table | Iterable[pa.Table]) -> None:
        self._tables = [values] if isinstance(values, pa.Table) else values

    @classmethod
    def chained(cls, several: Iterable[Exact]) -> Exact:
        """What several hold, one after another."""
        return cls(table for each in several for table in each.unwrap_parts())

    def unwrap(self) -> pa.Table:
        """The values. A test holds the list of who may call this: `Allowance`, and nobody else."""
        return pa.concat_tables(self._tables)

    def unwrap_parts(self) -> Iterable[pa.Table]:
        """The values, table by table; for the same callers."""
        return self._tables

    def __repr__(self) -> str:
        return "<Exact>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("Exact values do not leave the process.")


class Allowance:
    """What was paid for. Each release is priced and kept within it; fixed plans and adaptive algorithms alike.

    Every release says how far one person moves its statistic (`moved`), in the whole units that noise is added in. A
    mechanism that claims less is refused before anything is opened.
    """

    def __init__(self, *, key: bytes, accountant: Accountant, paid: Charge, memory: int | None = None) -> None:
        """`memory` is how many bytes of exact values may be held at once, where the plan could not tell how many."""
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
    ) -> tuple[IntegerArray, ...]:
        """Noisy numbers for every cell of a grid of public keys, one array per form.

        `exact` has columns k0, k1, ... (positions of keys) and s0, s1, ... (sums), one row per group that exists;
        groups that do not exist are zeros, and get noise like all others. Where the columns numbered `keys` are not
        public, the grid is that of the `survivors`, which have been released, times the public keys.
        """
        _require(mechanism, mechanism.hides(moved))
        stream = self._spend(mechanism)
        table = exact.unwrap()
        if survivors is not None:
            table, sizes = _among(table, survivors, keys), [survivors.num_rows, *sizes]
        dense = _dense(table, sizes, forms)
        items = Items.positions(len(dense[0]))
        return tuple(
            mechanism.add_to(values, stream.derive("part", index), items) for index, values in enumerate(dense)
        )

    def steps(
        self,
        mechanism: Additive,
        encoder: Encoder,
        *,
        moved: Sensitivity,
        sizes: Sequence[int],
        forms: Sequence[Sequence[int]],
    ) -> Steps:
        """A measurement of a stream: the mechanism pays for all of its steps together (S15)."""
        _require(mechanism, mechanism.hides(moved))
        return Steps(mechanism, self._spend(mechanism), encoder, sizes=sizes, forms=forms)

    def threshold(self, mechanism: Threshold, exact: Exact, *, moved: Keys, keys: int) -> tuple[pa.Table, IntegerArray]:
        """The keys whose noisy number passes, in the order of their values, and those numbers (S5).

        `exact` has columns k0, k1, ... (the keys themselves) and s0, the number that is tested; only existing keys.
        How many there are is not public. They are taken part by part, and only those are held that leave.
        """
        _require(mechanism, mechanism.hides(moved))
        stream = self._spend(mechanism)
        left, numbers = list[pa.Table](), list[IntegerArray]()
        for table in exact.unwrap_parts():
            named = _wide(table.select([f"k{index}" for index in range(keys)]))
            # Privacy: S8. The noise of a key is a function of the key itself, never of its place among others.
            items = text_items([_texts(column) for column in named.columns], stream)
            places, noisy = mechanism.release(_integers(table.column("s0")), stream, items)
            left.append(named.take(arrow.array(np.asarray(places), pa.int64())))
            numbers.append(np.asarray(noisy))
            self._hold(left)
        survivors = pa.concat_tables(left)
        order = pc.sort_indices(survivors, sort_keys=[(name, "ascending") for name in survivors.column_names])
        return survivors.take(order), np.concatenate(numbers)[arrow.numbers(order).astype(np.int64)]

    def keep(self, exact: Exact, survivors: pa.Table, *, keys: Sequence[int]) -> Exact:
        """The rows of keys that have left, taken part by part; the columns numbered `keys` are those of the keys."""
        kept = list[pa.Table]()
        for table in exact.unwrap_parts():
            _, among = _places(table, survivors, keys)
            kept.append(_wide(table.filter(arrow.array(among))))
            self._hold(kept)
        return Exact(pa.concat_tables(kept))

    def _hold(self, tables: Sequence[pa.Table]) -> None:
        """Raise MemoryError where more is held than may be: as every failure, it is charged and counted (S22)."""
        if self._memory is not None and sum(table.nbytes for table in tables) > self._memory:
            raise MemoryError

    def choose(
        self,
        mechanism: Selection,
        exact: Exact,
        *,
        moved: Rows,
        sizes: Sequence[int],
        cells: int,
        survivors: pa.Table | None = None,
        keys: Sequence[int] = (),
    ) -> npt.NDArray[np.int64]:
        """The cell that a selection chooses in every group (for several quantiles: cells, one column each).

        `exact` has columns k0, k1, ... (positions of keys), then the cell, and s0, the rows in it. Where the columns
        numbered `keys` are not public, groups are those of the `survivors`, times the public keys, as in `measure`.
        """
        _require(mechanism, mechanism.hides(moved))
        stream = self._spend(mechanism)
        table, first = exact.unwrap(), 1
        if survivors is not None:
            table, first = _among(table, survivors, keys), survivors.num_rows
            sizes = [first, *sizes]
        items, found = Items.positions(math.prod(sizes)), []
        at_once = first if survivors is None else max(1, MOST_CELLS // (math.prod(sizes[1:]) * cells))
        for begin in range(0, first, at_once):  # all at once, unless there is no telling how many there are
            part, shape = table, list(sizes)
            if survivors is not None:
                shape[0] = min(at_once, first - begin)
                places = arrow.numbers(table.column("k0")) - begin
                inside = (places >= 0) & (places < shape[0])
                part = table.set_column(0, "k0", arrow.array(places)).filter(arrow.array(inside))
            counts = _dense(part, [*shape, cells], [(1,)])[0].reshape(-1, cells)
            here = slice(begin * math.prod(sizes[1:]), begin * math.prod(sizes[1:]) + len(counts))
            chosen = mechanism.choose_each(counts, stream, items.at(here))
            found.append(chosen.reshape(len(counts), mechanism.per_group))
        return np.concatenate(found) if found else np.empty((0, mechanism.per_group), np.int64)

    def choose_near(
        self,
        mechanism: Nearby,
        exact: Exact,
        *,
        moved: Rows,
        sizes: Sequence[int],
        survivors: pa.Table | None = None,
        keys: Sequence[int] = (),
    ) -> IntegerArray:
        """The cell of a fine grid that a quantile chooses in every group, in one column; groups as in `choose`.

        `exact` has columns k0, k1, ... (positions of keys), then the cell, s0 (the rows in it), s1 (those in cells
        before it) and s2 (those of its group), for the cells near the wanted rank at least.
        """
        _require(mechanism, mechanism.hides(moved))
        stream = self._spend(mechanism)
        table = exact.unwrap()
        if survivors is not None:
            table, sizes = _among(table, survivors, keys), [survivors.num_rows, *sizes]
        group = np.zeros(table.num_rows, dtype=np.int64)
        for index, size in enumerate(sizes):
            group = group * size + _integers(table.column(f"k{index}")).astype(np.int64)
        cell, rows, before, total = (_integers(table.column(name)) for name in (f"k{len(sizes)}", "s0", "s1", "s2"))
        order = np.lexsort((cell, group))
        near = Near(group=group[order], cell=cell[order], rows=rows[order], before=before[order], total=total[order])
        chosen = mechanism.choose_near(near, stream, Items.positions(math.prod(sizes)))
        return np.asarray(chosen).reshape(-1, 1)

    def marginal(
        self, mechanism: Additive, exact: Exact, *, moved: Sensitivity, cells: IntegerArray, size: int
    ) -> IntegerArray:
        """Noisy counts of `size` groups of cells: a row at place k0 of a public grid counts for group cells[k0]."""
        _require(mechanism, mechanism.hides(moved))
        stream = self._spend(mechanism)
        return np.asarray(mechanism.add_to(_grouped(exact.unwrap(), cells, size), stream, Items.positions(size)))

    def distances(
        self,
        mechanism: Additive,
        exact: Iterable[Exact],
        *,
        moved: Sensitivity,
        cells: Iterable[IntegerArray],
        models: Sequence[IntegerArray],
    ) -> IntegerArray:
        """Noisy l1 distances of exact counts to released integer tables; all of them are one vector (S16)."""
        _require(mechanism, mechanism.hides(moved))
        stream = self._spend(mechanism)
        return np.asarray(mechanism.add_to(_apart(exact, cells, models), stream, Items.positions(len(models))))

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
        """Which exact counts are farthest from a released integer table, by factor * (distance - expected) (S16).

        `moved` is how far one person moves each distance.
        """
        scale = max(abs(factor) for factor in factors)
        _require(mechanism, mechanism.hides_scores(Scores(linf=scale * moved, monotone=False)))
        stream = self._spend(mechanism)
        apart = _apart(exact, cells, models).astype(object) - np.array(expected, dtype=object)
        scores = _narrow(np.array(factors, dtype=object) * apart)
        return mechanism.choose(scores, stream)

    def _spend(self, mechanism: Mechanism) -> Stream:
        """Count the mechanism before it runs, and give it randomness of its own."""
        losses = (*self._losses, mechanism.loss())
        if not self._accountant.price(losses).fits(self._paid):
            raise BudgetExceeded("An algorithm tried to release more than it had paid for; nothing was released.")
        stream = self._stream.derive("measurement", len(self.used))
        self._losses, self.used = losses, (*self.used, mechanism)
        return stream


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """Exact numbers of one step, a row each, and the draws that go on them: row i gets the sum of signs[i] * draws."""

    values: IntegerArray
    draws: tuple[int, ...]
    signs: npt.NDArray[np.int64]


class Encoder(Protocol):
    """The exact side of a stream: a period's numbers in, integer combinations of all numbers so far out."""

    def add(self, values: IntegerArray) -> Measured: ...


class Steps:
    """Released step by step. Every step is fed once and in order; steps that left before are fed without a release."""

    def __init__(
        self,
        mechanism: Additive,
        stream: Stream,
        encoder: Encoder,
        *,
        sizes: Sequence[int],
        forms: Sequence[Sequence[int]],
    ) -> None:
        self._mechanism, self._stream, self._encoder = mechanism, stream, encoder
        self._sizes, self._forms = sizes, forms

    def skip(self, exact: Exact) -> None:
        """A step that was released already, by this process or another."""
        self._encoder.add(self._numbers(exact))

    def release(self, *exact: Exact) -> list[IntegerArray]:
        """The noisy rows of the next steps, one column per cell. Draws are numbered: same number, same noise."""
        steps = [self._encoder.add(self._numbers(each)) for each in exact]
        cells = steps[0].values.shape[1]
        numbers = np.unique(np.concatenate([step.draws for step in steps]))
        places = np.add.outer(numbers * cells, np.arange(cells)).ravel()
        drawn = self._mechanism.add_to(np.zeros(len(places), dtype=np.int64), self._stream, Items.codes(places))
        noise = drawn.reshape(-1, cells)
        return [_added(step, noise[np.searchsorted(numbers, step.draws)]) for step in steps]

    def _numbers(self, exact: Exact) -> IntegerArray:
        return np.concatenate(_dense(exact.unwrap(), self._sizes, self._forms))


def _require(mechanism: Mechanism, hidden: bool) -> None:
    """Second defence against noise made for another statistic than the one it is about to be added to."""
    if not hidden:
        raise Unproved(f"{type(mechanism).__name__} claims less than one person moves this statistic: not released.")


def _added(step: Measured, drawn: IntegerArray) -> IntegerArray:
    """A step's exact rows with their combinations of draws added; in 64 bits only where that cannot overflow."""
    noise = exact_product(step.signs, drawn)
    wide = object in (noise.dtype, step.values.dtype) or _largest(noise) + _largest(step.values) >= 2**63
    kind = object if wide else np.int64
    return np.asarray(step.values.astype(kind) + noise.astype(kind))


def exact_product(factors: npt.NDArray[np.int64], values: IntegerArray) -> IntegerArray:
    """A matrix product of integers; in 64 bits only where that cannot overflow."""
    reach = int(np.abs(factors).sum(axis=1).max(initial=0)) * _largest(values)
    kind = np.int64 if reach < 2**63 and values.dtype != object else object
    return np.asarray(factors.astype(kind) @ values.astype(kind, copy=False))


def exact_sum(one: IntegerArray, other: IntegerArray) -> IntegerArray:
    """The sum of two arrays of integers; in 64 bits only where that cannot overflow."""
    return np.asarray(exact_product(np.ones((1, 2), dtype=np.int64), np.stack([one, other]))[0])


def _largest(values: IntegerArray) -> int:
    return max(abs(int(values.min())), abs(int(values.max()))) if values.size else 0


def _among(table: pa.Table, survivors: pa.Table, keys: Sequence[int]) -> pa.Table:
    """The rows of surviving keys: the columns of unknown keys give way to one, k0, the place of the survivor."""
    nearest, kept = _places(table, survivors, keys)
    public = [name for name in table.column_names if name.startswith("k") and int(name[1:]) not in keys]
    columns = {"k0": arrow.array(nearest)} | {f"k{index + 1}": table.column(name) for index, name in enumerate(public)}
    columns |= {name: table.column(name) for name in table.column_names if name.startswith("s")}
    return pa.table(columns).filter(arrow.array(kept))


def _places(table: pa.Table, survivors: pa.Table, keys: Sequence[int]) -> tuple[IntegerArray, npt.NDArray[np.bool_]]:
    """The place of each row's key among the survivors, and whether it is among them at all."""
    place = np.zeros(table.num_rows, dtype=np.int64)
    wanted, kept = np.zeros(survivors.num_rows, dtype=np.int64), np.ones(table.num_rows, dtype=bool)
    own = _wide(table.select([f"k{key}" for key in keys]))
    for column, left in zip(own.columns, _wide(survivors).columns, strict=True):
        values = left.unique()
        found = pc.index_in(column, value_set=values, skip_nulls=False)
        kept &= arrow.numbers(found.is_valid())
        place = place * len(values) + arrow.numbers(found).astype(np.int64)
        wanted = wanted * len(values) + arrow.numbers(pc.index_in(left, value_set=values, skip_nulls=False))
    order = np.argsort(wanted)
    nearest = np.searchsorted(wanted, place, sorter=order)
    nearest = order[np.minimum(nearest, len(order) - 1)] if len(order) else nearest
    kept &= (wanted[nearest] == place) if len(order) else False
    return nearest, kept


def _wide(table: pa.Table) -> pa.Table:
    """The same with 64-bit offsets into texts. Privacy: 32 bits end at 2 GiB of keys, and so at one person's (S21)."""
    fields = [each.with_type(pa.large_string()) if pa.types.is_string(each.type) else each for each in table.schema]
    return table.cast(pa.schema(fields))


def _grouped(table: pa.Table, cells: IntegerArray, size: int) -> IntegerArray:
    """Counts of groups of cells, exact."""
    counts = np.zeros(size, dtype=np.int64)
    np.add.at(counts, cells[_integers(table.column("k0"))], _integers(table.column("s0")))
    return counts


def _apart(exact: Iterable[Exact], cells: Iterable[IntegerArray], models: Sequence[IntegerArray]) -> IntegerArray:
    """The l1 distance of each table of counts to its model. Counts are read one after another, and may be large."""
    pairs = zip(exact, cells, models, strict=True)
    return _narrow(np.array([_distance(_grouped(e.unwrap(), c, len(m)), m) for e, c, m in pairs], dtype=object))


def _narrow(values: IntegerArray) -> IntegerArray:
    """Python's integers as 64-bit ones, where all of them fit with room to spare."""
    return values.astype(np.int64) if all(abs(value) < 2**62 for value in values) else values


def _distance(counts: IntegerArray, model: IntegerArray) -> int:
    # Privacy: a model may come from a file that somebody wrote by hand. Were its sum to pass 64 bits and start again at
    # the other end, one person would move it by 2^64 and not by 1.
    if 2 * max(_largest(counts), _largest(model)) * len(model) >= 2**62:
        counts, model = counts.astype(object), model.astype(object)
    return int(np.abs(counts - model).sum())


def _dense(table: pa.Table, sizes: Sequence[int], forms: Sequence[Sequence[int]]) -> list[IntegerArray]:
    """The forms' values on the whole grid of keys, exact."""
    cells = int(np.prod(sizes, dtype=np.int64)) if sizes else 1
    position = np.zeros(table.num_rows, dtype=np.int64)
    for index, size in enumerate(sizes):
        position = position * size + _integers(table.column(f"k{index}")).astype(np.int64)
    used = {index for form in forms for index, factor in enumerate(form) if factor}
    sums = {index: _integers(table.column(f"s{index}")) for index in used}
    result = []
    for form in forms:
        values = np.zeros(cells, dtype=np.int64)
        total = _combination(form, sums)
        if total.dtype == object:
            values = values.astype(object)
        np.add.at(values, position, total)  # a second wall: a key that stood twice would leave one of its rows out
        result.append(values)
    return result


def _texts(column: pa.ChunkedArray) -> Texts:
    """A column of keys as text: within one type, what differs is written differently."""
    texts = column.cast(pa.large_string()).combine_chunks()
    _, places, content = texts.buffers()
    return Texts(
        content=np.frombuffer(content or b"", dtype=np.uint8),
        places=np.frombuffer(places or bytes(8), dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1],
        missing=arrow.numbers(texts.is_null()),
    )


def _integers(column: pa.ChunkedArray) -> IntegerArray:
    """A column of exact integers; NULL, the sum of no rows, is 0."""
    try:
        return arrow.numbers(column.cast(pa.int64()))
    except pa.ArrowInvalid:
        return np.array([0 if value is None else int(value) for value in column.to_pylist()], dtype=object)


def _combination(form: Sequence[int], sums: Mapping[int, IntegerArray]) -> IntegerArray:
    """An integer combination of sums; in 64 bits only where that cannot overflow."""
    used = [(factor, sums[index]) for index, factor in enumerate(form) if factor]
    # Privacy: a factor that does not fit counts even where all sums are zero, or only the data of nobody would fail.
    bound = sum(abs(factor) * max(1, _largest(values)) for factor, values in used)
    total: Any = 0
    for factor, values in used:
        total = total + (values if bound < 2**62 and values.dtype != object else values.astype(object)) * factor
    return np.asarray(total)


# --- answers --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A noisy table, how wrong each number may be, and what it cost.

    `margins` has the table's shape: the half-width of a 95 % interval, NULL for keys. `selected` marks rows that
    survived a threshold, HAVING or LIMIT: coverage holds before selection.
    """

    table: pa.Table
    margins: pa.Table
    selected: tuple[bool, ...]
    cost: Budget
    left: Budget
    certificate: dict[str, Any]
    id: str

    def as_json(self) -> dict[str, Any]:
        rows = [list(row) for row in zip(*(column.to_pylist() for column in self.table.columns), strict=True)]
        margins = [list(row) for row in zip(*(column.to_pylist() for column in self.margins.columns), strict=True)]
        return {
            "columns": self.table.column_names,
            "rows": [[plain(value) for value in row] for row in rows],
            "margins": margins,
            "selected": list(self.selected),
            "cost": self.cost.as_json(),
            "left": self.left.as_json(),
            "answer_id": self.id,
        }

    def __str__(self) -> str:
        from discreet.show import answer_text

        return answer_text(self)

    def _repr_html_(self) -> str:
        from discreet.show import answer_html

        return answer_html(self)


def plain(value: Any) -> Any:
    """A value as JSON holds it without loss: large integers and decimals as strings, dates by ISO, bytes in hex.

    Lists and structs are those of plain values; an interval is its text.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= 2**53 else str(value)
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, pa.MonthDayNano):  # also a tuple, so before these
        return _interval(value)
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _interval(value: pa.MonthDayNano) -> str:
    """As DuckDB writes it: 1 year 3 months -2 days 00:00:01.5. The parts do not add up, so each has its own sign."""
    years, months = divmod(abs(value.months), 12)
    sign = -1 if value.months < 0 else 1
    parts = ((sign * years, "year"), (sign * months, "month"), (value.days, "day"))
    words = [f"{count} {name}{'' if abs(count) == 1 else 's'}" for count, name in parts if count]
    if value.nanoseconds or not words:
        seconds, nanoseconds = divmod(abs(value.nanoseconds), 10**9)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        part = f".{nanoseconds:09}".rstrip("0").rstrip(".")
        words.append(("-" if value.nanoseconds < 0 else "") + clock + part)
    return " ".join(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """The part of an answer that is stored: what everybody who asks again gets, byte by byte."""

    table: pa.Table
    margins: pa.Table
    selected: bool
    certificate: dict[str, Any] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        parts = [
            _ipc(self.table),
            _ipc(self.margins),
            json.dumps([self.selected, self.certificate], sort_keys=True).encode(),
        ]
        return b"".join(len(part).to_bytes(8, "little") + part for part in parts)

    @classmethod
    def from_bytes(cls, content: bytes) -> Sheet:
        parts, stream = [], io.BytesIO(content)
        while head := stream.read(8):
            parts.append(stream.read(int.from_bytes(head, "little")))
        selected, certificate = json.loads(parts[2])
        return cls(table=_read(parts[0]), margins=_read(parts[1]), selected=selected, certificate=certificate)


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _read(content: bytes) -> pa.Table:
    return pa.ipc.open_stream(content).read_all()


def rows_used(mechanisms: Sequence[Mechanism]) -> list[dict[str, str]]:
    """Mechanisms as the ledger stores them."""
    return [to_row(mechanism) for mechanism in mechanisms]
