"""A column on a public grid: all values that it may have, or if they are many, intervals of them.

Some grids are found at a price. A column of equal intervals is `Unsplit` until `split` has split
those that hold many rows. A column to cut at its quantiles is `Uncut` until `grids` has found them.
A text has no public grid: it is `Unlisted` until the threshold of `grids` has found the values to
list.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.algebra import Cast, Constant, Expression, call, case
from discreet.errors import UsageError
from discreet.policy.domain import (
    Booleans,
    Categories,
    Column,
    Dates,
    Decimals,
    Integers,
    Timestamps,
)
from discreet.sql.plan.keys import key_position
from discreet.sql.values.value import Value, widen
from discreet.synthetic.workload import list_texts

BINS = 100  # numbers, dates and times with more values than this are cut into this many intervals
MOST_VALUES = 10_000  # of a list of values
_FEW_CUTS = 4  # as many cuts may be in one cell of the grid for looking up cuts
_MOST_LOOKED_UP = 1 << 12  # the most cells of that grid
OTHER = "(other)"  # stands for all texts that too few people share

Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """The rule that cuts numbers, dates and times with many values: into `bins` equal intervals,
    which are split where many rows are.

    The columns named in `quantiles` are cut at their quantiles instead. Both cost something.
    Without `split` the intervals stay equal. Then a value that many people share is drawn no more
    often than its neighbors.
    """

    bins: int = BINS
    quantiles: Sequence[str] = ()
    split: bool = True

    def __post_init__(self) -> None:
        if (
            isinstance(self.bins, bool)
            or not isinstance(self.bins, int)
            or not 2 <= self.bins <= 1000
        ):
            raise UsageError(f"bins must be a whole number from 2 to 1000, not {self.bins!r}.")
        object.__setattr__(self, "quantiles", list_texts(self.quantiles, what="quantiles"))


USUAL = Intervals()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlisted:
    """A text column before its values are found."""

    column: Column

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def told(self) -> list[Any]:
        """Return the column's part of the identity of a commission."""
        return ["unlisted", self.name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncut:
    """A column of numbers, dates or times to cut at its quantiles, before these are found."""

    column: Column

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def told(self) -> list[Any]:
        """Return the column's part of the identity of a commission."""
        return ["uncut", self.name]

    def fine(self, most: int) -> Axis:
        """Return the column in many equal intervals."""
        size = self.column.domain.size
        assert size is not None
        return Axis(column=self.column, bins=min(size, most))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsplit:
    """A column of numbers, dates or times in equal intervals, before those with many rows are
    split.
    """

    column: Column
    bins: int

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def told(self) -> list[Any]:
        """Return the column's part of the identity of a commission."""
        return ["unsplit", self.name, self.bins]


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A column and its cells: `bins` intervals of its `domain.size` values, and if it is nullable,
    a cell for NULL.

    The intervals are equal, or they have `cuts`: the first value of each, and the end of the last.
    """

    column: Column
    bins: int
    cuts: tuple[int, ...] | None = None

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def told(self) -> list[Any]:
        """Return the column's part of the identity of a commission."""
        return ["cut", self.name, self.bins, self.cuts]

    @property
    def size(self) -> int:
        return self.bins + self.column.nullable

    @property
    def ordered(self) -> bool:
        return not isinstance(self.column.domain, Categories | Booleans)

    @property
    def values(self) -> int:
        size = self.column.domain.size
        assert size is not None
        return size

    @cached_property
    def starts(self) -> list[int]:
        """The first value of each interval, and the end of the last."""
        if self.cuts is not None:
            return list(self.cuts)
        return [-(-index * self.values // self.bins) for index in range(self.bins + 1)]

    def position(self, value: Value) -> Expression:
        """Return the cell of a stored value."""
        return self.cell(place_of(value))

    def cell(self, place: Expression) -> Expression:
        """Return the cell of a place in the domain."""
        if self.cuts is not None:
            place = between(place, self.cuts[1:-1], self.values)
        elif self.bins < self.values:
            place = widen(place, self.values * self.bins) * self.bins // self.values
        return call("coalesce", place, self.bins) if self.column.nullable else place

    def code(self, text: str) -> int:
        """Return the cell of a value as people write it; the text NULL means NULL."""
        if not isinstance(text, str):
            raise UsageError(
                f"A value of {self.name} is given as a text, not {type(text).__name__}."
            )
        if text.upper() == "NULL" and self.column.nullable:
            return self.bins
        try:
            place = self._place(text)
        except (ValueError, KeyError, ArithmeticError):
            place = -1
        if not 0 <= place < self.values:
            raise UsageError(f"{self.name} cannot be {text!r}: it is {self.described()}.")
        return bisect_right(self.starts, place) - 1

    def codes(self, values: pa.ChunkedArray) -> Codes:
        """Return the cells of a file's values, clamped to the range; -1 for a value without a
        cell.
        """
        places = self._clean(values)
        missing = np.isnan(places)
        inside = np.clip(np.where(missing, 0, places), 0, self.values - 1).astype(np.int64)
        cells = np.searchsorted(np.array(self.starts), inside, side="right") - 1
        return np.where(missing, self.bins if self.column.nullable else -1, cells)

    def places(self, values: pa.ChunkedArray) -> Codes:
        """Return the places in the domain of a file's values, clamped to the range; leave out
        values without a place.
        """
        places = self._clean(values)
        return np.clip(places[~np.isnan(places)], 0, self.values - 1).astype(np.int64)

    def _clean(self, values: pa.ChunkedArray) -> NDArray[np.float64]:
        """Return places in the domain; raise UsageError for values of another type."""
        try:
            return np.asarray(self._places(values.combine_chunks()), dtype=np.float64)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            raise UsageError(
                f"{self.name} is not what the description says: {self.described()}."
            ) from None

    def _places(self, values: pa.Array) -> NDArray[np.float64]:
        """Return places in the domain; NaN for NULL and for values that the list lacks."""
        domain = self.column.domain
        match domain:
            case Categories(values=labels):
                texts = pa.array([str(label) for label in labels])
                places = pc.index_in(values.cast(pa.string()), value_set=texts)
                if labels[-1] == OTHER:
                    other = places.fill_null(len(labels) - 1)
                    places = pc.if_else(values.is_valid(), other, places)
                return _as_floats(places)
            case Booleans():
                return _as_floats(values.cast(pa.bool_()))
            case Integers() | Decimals():
                return np.asarray(np.rint(_as_floats(values) / float(domain.step)) - domain.first)
            case Dates(lo=lo):
                days = values.cast(pa.date32()).cast(pa.int32())
                return np.asarray(_as_floats(days) - (lo - date(1970, 1, 1)).days)
            case Timestamps(lo=start):
                micros = values.cast(pa.timestamp("us")).cast(pa.int64())
                first = (start - datetime(1970, 1, 1)) // timedelta(microseconds=1)
                gap = _as_floats(micros, safe=False) - first
                return np.asarray(gap // domain.step_microseconds)
        raise AssertionError(domain)

    def _place(self, text: str) -> int:
        """Return the place in the domain of a value as people write it."""
        from fractions import Fraction

        domain = self.column.domain
        match domain:
            case Categories(values=values):
                return [str(value) for value in values].index(text)
            case Booleans():
                return {"false": 0, "true": 1}[text.lower()]
            case Integers() | Decimals():
                steps = Fraction(text) / domain.step
                return int(steps) - domain.first if steps.denominator == 1 else -1
            case Dates(lo=lo):
                return (date.fromisoformat(text) - lo).days
            case Timestamps(lo=start):
                gap = (datetime.fromisoformat(text) - start) // timedelta(microseconds=1)
                return gap // domain.step_microseconds
        raise ValueError

    def described(self) -> str:
        """Return the domain in words."""
        domain = self.column.domain
        match domain:
            case Categories(values=values):
                text = "one of " + ", ".join(map(str, values[:12]))
                if len(values) > 12:
                    text += ", ..."
            case Booleans():
                text = "true or false"
            case Integers() | Decimals() | Dates() | Timestamps():
                text = f"from {domain.lo} to {domain.hi}"
            case _:
                text = domain.yaml
        return text + (" or NULL" if self.column.nullable else "")

    def label(self, code: int) -> str:
        """Return a cell's name for people."""
        if code == self.bins:
            return "NULL"
        first = self.starts[code]
        last = self.starts[code + 1] - 1
        low, high = map(str, self.values_at(np.array([first, last])).to_pylist())
        return low if first == last else f"{low} to {high}"

    def decoded(self, codes: Codes, uniforms: NDArray[np.float64]) -> pa.Array:
        """Return a value of each cell; in an interval all values are equally likely."""
        starts = np.array(self.starts, dtype=np.int64)
        inside = np.minimum(codes, self.bins - 1)
        places = starts[inside]
        if self.bins < self.values:
            width = (starts[1:] - starts[:-1])[inside]
            places = places + np.minimum((uniforms * width).astype(np.int64), width - 1)
        missing = codes == self.bins if self.column.nullable else None
        return self.values_at(places, missing)

    def values_at(self, places: Codes, missing: NDArray[np.bool_] | None = None) -> pa.Array:
        """Return the values at places of the domain."""
        domain = self.column.domain
        mask = missing
        match domain:
            case Categories(values=values):
                return pa.array(list(values)).take(pa.array(places, mask=mask))
            case Booleans():
                return pa.array(places.astype(bool), mask=mask)
            case Integers() | Decimals():
                return _numbers(places, domain, mask)
            case Dates(lo=lo):
                days = (places + (lo - date(1970, 1, 1)).days).astype(np.int32)
                return pa.array(days, pa.int32(), mask=mask).cast(pa.date32())
            case Timestamps(lo=start):
                first = (start - datetime(1970, 1, 1)) // timedelta(microseconds=1)
                micros = places * domain.step_microseconds + first
                return pa.array(micros, pa.int64(), mask=mask).cast(pa.timestamp("us"))
        raise AssertionError(domain)


def _as_floats(values: pa.Array, *, safe: bool = True) -> NDArray[np.float64]:
    return np.asarray(values.cast(pa.float64(), safe=safe).to_numpy(zero_copy_only=False))


def place_of(value: Value) -> Expression:
    """Return the place of a stored value in its domain; NULL for a value outside."""
    return key_position(value.expression, value.domain, nullable=False)  # type: ignore[arg-type]


def between(place: Expression, cuts: tuple[int, ...], size: int) -> Expression:
    """Return how many of `cuts` are at or before a place in a domain of `size`; NULL outside.

    Look the place up in a grid of equal cells: the number of cuts before its cell, and the cuts
    inside. An engine does this a few times as fast as a binary search.
    """
    if not cuts:
        return case((place.is_known, 0))
    cells = 1 << 8
    while (most := _most_in_a_cell(cuts, size, cells)) > _FEW_CUTS and cells < _MOST_LOOKED_UP:
        cells *= 2
    cells = min(size, cells)
    firsts = [-(-index * size // cells) for index in range(cells)]
    before = [bisect_right(cuts, first) for first in firsts]
    cell = widen(place, size * cells) * cells // size
    number = look_up(before, cell)
    for further in range(most):
        nth = [cuts[rank + further] if rank + further < len(cuts) else size for rank in before]
        number = number + case((place >= look_up(nth, cell), 1), otherwise=0)
    return number


def _most_in_a_cell(cuts: tuple[int, ...], size: int, cells: int) -> int:
    """Return the largest number of `cuts` inside one of equal cells, apart from its first place."""
    cells = min(size, cells)
    inside = Counter[int]()
    for cut in cuts:
        cell = cut * cells // size
        first = -(-cell * size // cells)
        if cut != first:
            inside[cell] += 1
    return max(inside.values(), default=0)


def look_up(numbers: Sequence[int], place: Expression) -> Expression:
    """Return the number at a place of a list, from 0; NULL outside."""
    kind = "BIGINT[]" if max(map(abs, numbers)) < 2**62 else "HUGEINT[]"
    # One constant for the list: DuckDB would bind thousands of numbers one by one.
    return call("list_extract", Cast(Constant(str(list(numbers))), kind), place + 1)


def _numbers(
    places: Codes, domain: Integers | Decimals, mask: NDArray[np.bool_] | None
) -> pa.Array:
    """Return whole numbers as int64, decimals as decimals, and multiples of other steps as floats."""
    steps = places + domain.first
    step = domain.step
    if step.denominator == 1:
        return pa.array(steps * step.numerator, mask=mask)
    digits = next((d for d in range(1, 19) if (step * 10**d).denominator == 1), None)
    ends = (abs(domain.lo), abs(domain.hi))
    if digits is None or any(end * 10**digits >= 2**62 for end in ends):
        return pa.array(steps * float(step), mask=mask)
    words = np.empty((len(steps), 2), dtype="<i8")
    words[:, 0] = steps * int(step * 10**digits)
    words[:, 1] = words[:, 0] >> 63
    validity = None if mask is None else pa.array(~mask).buffers()[1]
    return pa.Array.from_buffers(
        pa.decimal128(38, digits), len(steps), [validity, pa.py_buffer(words)]
    )
