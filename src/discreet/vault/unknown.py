"""Test unknown keys against a threshold, and find the rows of those that pass, part by part.

Both are functions of a table. On a cluster they run on the workers, where the rows are, with the
same exact sampler.

Privacy: S8. The noise of a key is a function of the measurement's stream and of the key: not of the
key's place, its part, the worker or the time. A task that runs again, or twice at once, draws the
same noise. Only this measurement's stream goes to the workers: it says nothing about the charge's
key or the charge's other noise.
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
    """Returns the keys whose noisy number reaches the threshold, and these numbers.

    Nothing else leaves of a table of keys and exact numbers.
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
        passing = named.take(arrow.array(np.asarray(places), pa.int64()))
        return passing.append_column(number_column(0), _column(np.asarray(noisy)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Surviving:
    """Returns the exact rows of the surviving keys; the columns numbered `keys` hold the key."""

    survivors: pa.Table
    keys: Sequence[int]
    columns: tuple[str, ...] = ()  # empty: all columns

    def __call__(self, table: pa.Table) -> pa.Table:
        _, among = places_among(table, self.survivors, self.keys)
        return wide_offsets(table.filter(arrow.array(among)))


def _column(numbers: IntegerArray) -> pa.Array:
    """Return integers as an Arrow column of 64 bits, or of decimals if one does not fit."""
    if numbers.dtype != object:
        return arrow.array(numbers)
    return pa.array([Decimal(int(each)) for each in numbers], pa.decimal128(38, 0))
