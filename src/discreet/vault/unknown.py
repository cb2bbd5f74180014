"""Test unknown keys and find their rows, a part of the keys at a time.

Both are functions of a table that may run where its rows are, on a cluster's workers, with the same
exact sampler.

Privacy: S8. The noise of a key is a function of the measurement's own stream and of the key itself:
not of its place, of the part it came in, of the worker or of the time. A task that is tried again,
or twice at once, redraws the same. The stream that travels is that one measurement's: it tells
nothing of the charge's key or of its other noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa

from discreet import arrow
from discreet.algebra import key_column, number_column
from discreet.mechanisms.shapes import Threshold
from discreet.noise import Stream, text_items
from discreet.vault.exact import IntegerArray
from discreet.vault.integers import integers
from discreet.vault.keys import key_texts, places_among, wide_offsets


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Passing:
    """The keys whose noisy number passes, and those numbers: all that leaves of a table of keys and
    exact numbers.
    """

    mechanism: Threshold
    stream: Stream
    keys: int

    @property
    def columns(self) -> tuple[str, ...]:
        return (*map(key_column, range(self.keys)), number_column(0))

    def __call__(self, table: pa.Table) -> pa.Table:
        named = wide_offsets(table.select([key_column(index) for index in range(self.keys)]))
        items = text_items([key_texts(column) for column in named.columns], self.stream)
        places, noisy = self.mechanism.release(
            integers(table.column(number_column(0))), self.stream, items
        )
        left = named.take(arrow.array(np.asarray(places), pa.int64()))
        return left.append_column(number_column(0), _column(np.asarray(noisy)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Surviving:
    """The rows of keys that have left; the columns numbered `keys` are those of the keys. Still
    exact.
    """

    survivors: pa.Table
    keys: Sequence[int]
    columns: tuple[str, ...] = ()  # all there are

    def __call__(self, table: pa.Table) -> pa.Table:
        _, among = places_among(table, self.survivors, self.keys)
        return wide_offsets(table.filter(arrow.array(among)))


def _column(numbers: IntegerArray) -> pa.Array:
    """Whole numbers in 64 bits, or in decimals where one does not fit."""
    if numbers.dtype != object:
        return arrow.array(numbers)
    return pa.array([Decimal(int(each)) for each in numbers], pa.decimal128(38, 0))
