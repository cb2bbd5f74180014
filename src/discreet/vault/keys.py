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
    """Return the rows of surviving keys; a first column, the survivor's place, replaces `keys`.

    The table's columns are the unknown `keys` and `public` public keys, in any order, and then its
    numbers.
    """
    places, kept = places_among(table, survivors, keys)
    width = len(keys) + public
    others = [table.column(key_column(index)) for index in range(width) if index not in keys]
    columns = {key_column(0): arrow.array(places)}
    columns |= {key_column(index): column for index, column in enumerate(others, 1)}
    columns |= {name: table.column(name) for name in table.column_names[width:]}
    return pa.table(columns).filter(arrow.array(kept))


def places_among(
    table: pa.Table, survivors: pa.Table, keys: Sequence[int]
) -> tuple[IntegerArray, npt.NDArray[np.bool_]]:
    """Return the place of each row's key among the survivors, and whether the key survived."""
    import pyarrow.compute as pc

    place = np.zeros(table.num_rows, dtype=np.int64)
    wanted = np.zeros(survivors.num_rows, dtype=np.int64)
    kept = np.ones(table.num_rows, dtype=bool)
    own = wide_offsets(table.select([key_column(key) for key in keys]))
    for column, survivor in zip(own.columns, wide_offsets(survivors).columns, strict=True):
        values = survivor.unique()
        codes = pc.index_in(column, value_set=values, skip_nulls=False)
        wanted_codes = pc.index_in(survivor, value_set=values, skip_nulls=False)
        kept &= arrow.numbers(codes.is_valid())
        place = place * len(values) + arrow.numbers(codes).astype(np.int64)
        wanted = wanted * len(values) + arrow.numbers(wanted_codes)
    order = np.argsort(wanted)
    nearest = np.searchsorted(wanted, place, sorter=order)
    nearest = order[np.minimum(nearest, len(order) - 1)] if len(order) else nearest
    kept &= (wanted[nearest] == place) if len(order) else False
    return nearest, kept


def wide_offsets(table: pa.Table) -> pa.Table:
    """Return the table with 64-bit offsets into its texts.

    Privacy: 32 bits end at 2 GiB of keys (S21).
    """
    fields = []
    for field in table.schema:
        is_text = pa.types.is_string(field.type)
        fields.append(field.with_type(pa.large_string()) if is_text else field)
    return table.cast(pa.schema(fields))


def key_texts(column: pa.ChunkedArray) -> Texts:
    """Return a column of keys as text; different values of one type have different texts."""
    texts = column.cast(pa.large_string()).combine_chunks()
    _, places, content = texts.buffers()
    return Texts(
        content=np.frombuffer(content or b"", dtype=np.uint8),
        places=np.frombuffer(places or bytes(8), dtype=np.int64)[
            texts.offset : texts.offset + len(texts) + 1
        ],
        missing=arrow.numbers(texts.is_null()),
    )
