"""Rows that arrive by COPY: the longest that one person can have stops nothing."""

from __future__ import annotations

import pyarrow as pa

from discreet.engines.readers.copied import parse_blocks
from discreet.policy.domain import MOST_LETTERS


def test_a_row_of_the_longest_texts_is_read_as_any_other() -> None:
    schema = pa.schema([*((f"k{place}", pa.string()) for place in range(100)), ("n", pa.int64())])
    texts = ["\U0001f600" * MOST_LETTERS, '"' * MOST_LETTERS]
    long = [texts[place % 2] for place in range(100)]
    row = ",".join('"' + text.replace('"', '""') + '"' for text in long) + ",5\n"
    short = ",".join(['"a"'] * 100) + ",1\n"
    found = pa.Table.from_batches(
        parse_blocks([(short + row).encode(), short.encode()], schema), schema
    )
    assert found.column("n").to_pylist() == [1, 5, 1]
    assert [found.column(place)[1].as_py() for place in range(100)] == long
