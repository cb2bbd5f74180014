"""Find the rows of surviving keys in tables of exact numbers by unknown key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet import arrow
from discreet.algebra import key_column
from discreet.noise import Texts
from discreet.vault.exact import IntegerArray


def rows_among(
    table: pa.Table, survivors: pa.Table, keys: Sequence[int], *, public: int
) -> pa.Table:
    """Return the rows of surviving keys: one first column, the survivor's place, replaces the
    unknown keys.

    The table has `keys` and so many public keys, in any order, and its numbers behind them.
    """
    nearest, kept = places_among(table, survivors, keys)
    among = range(len(keys) + public)
    others = [table.column(key_column(index)) for index in among if index not in keys]
    columns = {
        key_column(index): column for index, column in enumerate((arrow.array(nearest), *others))
    }
    columns |= {name: table.column(name) for name in table.column_names[len(among) :]}
    return pa.table(columns).filter(arrow.array(kept))


def places_among(
    table: pa.Table, survivors: pa.Table, keys: Sequence[int]
) -> tuple[IntegerArray, npt.NDArray[np.bool_]]:
    """Return the place of each row's key among the survivors, and whether it is among them at
    all.
    """
    import pyarrow.compute as pc

    place = np.zeros(table.num_rows, dtype=np.int64)
    wanted, kept = np.zeros(survivors.num_rows, dtype=np.int64), np.ones(table.num_rows, dtype=bool)
    own = wide_offsets(table.select([key_column(key) for key in keys]))
    for column, left in zip(own.columns, wide_offsets(survivors).columns, strict=True):
        values = left.unique()
        found = pc.index_in(column, value_set=values, skip_nulls=False)
        kept &= arrow.numbers(found.is_valid())
        place = place * len(values) + arrow.numbers(found).astype(np.int64)
        wanted = wanted * len(values) + arrow.numbers(
            pc.index_in(left, value_set=values, skip_nulls=False)
        )
    order = np.argsort(wanted)
    nearest = np.searchsorted(wanted, place, sorter=order)
    nearest = order[np.minimum(nearest, len(order) - 1)] if len(order) else nearest
    kept &= (wanted[nearest] == place) if len(order) else False
    return nearest, kept


def wide_offsets(table: pa.Table) -> pa.Table:
    """Return the same with 64-bit offsets into texts. Privacy: 32 bits end at 2 GiB of keys
    (S21).
    """
    fields = [
        each.with_type(pa.large_string()) if pa.types.is_string(each.type) else each
        for each in table.schema
    ]
    return table.cast(pa.schema(fields))


def key_texts(column: pa.ChunkedArray) -> Texts:
    """Return a column of keys as text: within one type, what differs is written differently."""
    texts = column.cast(pa.large_string()).combine_chunks()
    _, places, content = texts.buffers()
    return Texts(
        content=np.frombuffer(content or b"", dtype=np.uint8),
        places=np.frombuffer(places or bytes(8), dtype=np.int64)[
            texts.offset : texts.offset + len(texts) + 1
        ],
        missing=arrow.numbers(texts.is_null()),
    )
