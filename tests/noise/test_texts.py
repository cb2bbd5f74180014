"""Very many text keys at once: an id is a function of its key alone, and of all of it."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import UsageError
from discreet.noise import Items, Stream, recording, text_items
from discreet.vault.keys import key_texts

KEY = bytes(range(32))
Row = tuple[str | None, ...]
Rows = st.integers(1, 3).flatmap(
    lambda width: st.lists(
        st.tuples(*[st.none() | st.text(max_size=40)] * width), min_size=1, unique=True
    )
)


def ids(rows: list[Row], key: bytes = KEY) -> list[bytes]:
    columns = [
        pa.chunked_array([pa.array(column, pa.string())]) for column in zip(*rows, strict=True)
    ]
    return [
        each.tobytes()
        for each in text_items([key_texts(column) for column in columns], Stream(key)).ids
    ]


def by_hand(row: Row) -> bytes:
    """The CBC-MAC of one key, block by block."""
    key = hashlib.blake2b(key=KEY, person=b"discreet.texts", digest_size=32).digest()
    message = b""
    for text in row:
        content = b"" if text is None else text.encode()
        message += len(content).to_bytes(8, "little") + (text is None).to_bytes(8, "little")
        message += content + bytes(-len(content) % 16)
    return Cipher(algorithms.AES(key), modes.CBC(bytes(16))).encryptor().update(message)[-16:]


@given(Rows)
def test_it_is_cbc_mac(rows: list[Row]) -> None:
    assert ids(rows) == [by_hand(row) for row in rows]


def test_known_answer() -> None:
    """Never changes: a charge that is resumed by a later version must redraw the same noise
    (S8).
    """
    assert ids([("north", None, "")])[0].hex() == "5435d8fe1ec2d6b23bc30691dbdf62d5"


def test_what_differs_has_different_ids() -> None:
    single: list[Row] = [
        (None,),
        ("",),
        ("\0",),
        ("\0\0",),
        ("a" * 15,),
        ("a" * 16,),
        ("a" * 17,),
        ("a" * 16 + "\0",),
    ]
    assert len(set(ids(single))) == len(single)
    pairs: list[Row] = [
        ("a", "bc"),
        ("ab", "c"),
        ("abc", ""),
        ("", "abc"),
        ("abc", None),
        (None, "abc"),
    ]
    assert len(set(ids(pairs))) == len(pairs)
    assert ids([("x",)]) != ids([("x",)], key=bytes(32))


def test_not_of_other_keys_nor_of_how_the_column_is_cut() -> None:
    words = [f"word {number}" * (number % 5) + str(number) for number in range(1000)]
    whole = pa.array([None, *words], pa.string())
    parts = pa.chunked_array([whole[:10], whole[10:10], whole[10:]])
    sliced = pa.chunked_array([whole[500:]])
    expected = text_items([key_texts(pa.chunked_array([whole]))], Stream(KEY)).ids
    assert np.array_equal(text_items([key_texts(parts)], Stream(KEY)).ids, expected)
    assert np.array_equal(text_items([key_texts(sliced)], Stream(KEY)).ids, expected[500:])


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.int64(), pa.bool_(), pa.date32(), pa.decimal128(38, 0)]
)
def test_other_kinds_of_keys(kind: pa.DataType) -> None:
    column = pa.chunked_array([pa.array([0, 1, None], pa.int32()).cast(kind)])
    assert len({each.tobytes() for each in text_items([key_texts(column)], Stream(KEY)).ids}) == 3


def test_no_key_twice_and_none_at_all() -> None:
    with pytest.raises(UsageError, match="stands twice"):
        ids([("a", "b"), ("c", "d"), ("a", "b")])
    nothing = key_texts(pa.chunked_array([], pa.string()))
    assert len(text_items([nothing], Stream(KEY))) == 0


def test_a_replay_names_the_same_keys_alike() -> None:
    with recording() as tape:
        first = text_items([key_texts(pa.chunked_array([["a", "b"]]))], Stream.fresh())
    with recording(replay=tape):
        again = text_items([key_texts(pa.chunked_array([["b", "c"]]))], Stream.fresh())
    assert isinstance(first, Items)
    assert np.array_equal(first.ids[1], again.ids[0])
