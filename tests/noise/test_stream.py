"""Words are a function of (key, purposes, round, item): of nothing else, and of all of it."""

from __future__ import annotations

import itertools
import os
import pickle
import re
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet
from discreet.errors import UsageError
from discreet.noise import (
    Items,
    Stream,
    bernoulli,
    bernoulli_exp,
    discrete_gaussian,
    discrete_laplace,
    noisy_top,
    permutation,
    uniform,
)
from discreet.noise.stream import encode

DIFFERENT = [
    None, False, True, 0, 1, -1, 256, 2**80, -(2**80), "", "0", "1", "None", "a", "a\x00", "é", b"", b"0", b"a",
    date(2024, 1, 1), datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC), "2024-01-01", time(1), timedelta(1),
    Decimal("1.5"), Fraction(3, 2), Decimal(1), Fraction(1),
]  # fmt: skip
PARTS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.binary()
    | st.dates()
    | st.datetimes()
)

SAMPLERS: dict[str, Callable[[Stream, Items], Any]] = {
    "laplace 1": lambda stream, items: discrete_laplace(stream, items, Fraction(1)),
    "laplace 1000": lambda stream, items: discrete_laplace(stream, items, Fraction(1000)),
    "laplace 10^20": lambda stream, items: discrete_laplace(stream, items, Fraction(10**20)),
    "gaussian 10": lambda stream, items: discrete_gaussian(stream, items, Fraction(10)),
    "gaussian 1000": lambda stream, items: discrete_gaussian(stream, items, Fraction(1000)),
    "coin": lambda stream, items: bernoulli(stream, items, Fraction(1, 3)),
    "exp coin": lambda stream, items: bernoulli_exp(stream, items, Fraction(1)),
    "uniform": lambda stream, items: uniform(stream, items, 3 * 2**61),
    "uniform wide": lambda stream, items: uniform(stream, items, 10**30),
}


def test_encoding_tells_all_kinds_apart() -> None:
    singles = [encode([part]) for part in DIFFERENT]
    pairs = [encode(pair) for pair in itertools.product(DIFFERENT, repeat=2)]
    assert len({*singles, *pairs, encode([])}) == len(singles) + len(pairs) + 1


@given(st.lists(PARTS, max_size=4), st.lists(PARTS, max_size=4))
def test_encoding_is_injective(a: list[object], b: list[object]) -> None:
    same = len(a) == len(b) and all(
        type(x) is type(y) and x == y for x, y in zip(a, b, strict=True)
    )
    assert (encode(a) == encode(b)) == same


def test_encoding_knows_equal_values_of_one_type() -> None:
    assert encode([Decimal("1.0")]) == encode([Decimal("1.00")])
    assert encode([np.int64(7), np.str_("a"), np.bool_(True)]) == encode([7, "a", True])
    assert encode([np.datetime64("2024-01-01")]) == encode([date(2024, 1, 1)])


@pytest.mark.parametrize("part", [1.5, float("nan"), Decimal("NaN"), object(), [1], (1,)])
def test_encoding_refuses_what_has_no_canonical_form(part: object) -> None:
    with pytest.raises(UsageError, match="cannot name a draw"):
        encode([part])


def test_words_depend_on_key_purpose_item_round_and_nothing_else() -> None:
    stream = Stream.fresh()
    items = Items.keys([("a", None), ("a", 0), ("b", 0)], stream)
    words = [
        stream.words(items, 0),
        stream.words(items, 1),
        stream.derive("x").words(items, 0),
        stream.derive("x", 0).words(items, 0),
        stream.derive("x", "0").words(items, 0),
        stream.derive("x").derive("0").words(items, 0),
        Stream.fresh().words(items, 0),
        stream.words(Items.positions(3), 0),
        stream.words(Items.codes(np.arange(3)), 0),
        stream.derive("bits").words(items, 0),
    ]
    flat = np.concatenate([part.ravel() for part in words])
    assert len(np.unique(flat)) == len(flat)
    assert np.array_equal(stream.words(items, 0), words[0])
    assert np.array_equal(stream.derive("x", 0).words(items, 0), words[3])


@pytest.mark.parametrize("name", SAMPLERS)
def test_draws_do_not_depend_on_order_or_chunks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, stream, n = SAMPLERS[name], Stream.fresh(), 300
    items = Items.codes(np.arange(n) * 7 - 1000)
    whole = draw(stream, items)
    order = np.argsort(stream.derive("order").words(items, 0)[:, 0])
    assert np.array_equal(draw(stream, items.at(order)), whole[order])
    assert np.array_equal(
        np.concatenate([draw(stream, items.at(slice(i, i + 70))) for i in range(0, n, 70)]), whole
    )
    monkeypatch.setattr("discreet.noise.sample.CHUNK", 64)
    assert np.array_equal(draw(stream, items), whole)


def test_known_answers() -> None:
    """A charge begun by one version is resumed by the next with the same noise: these numbers never
    change.
    """
    stream = Stream(bytes(range(32))).derive("statistic", 0)
    keys, codes = Items.keys([("a", None), ("b", 1)], stream), Items.codes(np.array([-5, 0, 9]))
    assert discrete_laplace(stream, Items.positions(8), Fraction(3)).tolist() == [
        -3,
        -4,
        -1,
        5,
        2,
        1,
        2,
        12,
    ]
    assert discrete_laplace(stream, keys, Fraction(10**6, 7)).tolist() == [68539, 111868]
    assert discrete_gaussian(stream, codes, Fraction(10**9)).tolist() == [
        -557906448,
        -1015169183,
        850527066,
    ]
    assert discrete_laplace(stream, Items.positions(1), Fraction(10**25)).tolist() == [
        5243744729369687388180125
    ]
    assert uniform(stream, Items.positions(4), 1000).tolist() == [758, 768, 695, 316]
    assert np.flatnonzero(bernoulli_exp(stream, Items.positions(8), Fraction(1))).tolist() == [0, 3]
    assert permutation(stream, 6).tolist() == [5, 4, 3, 1, 2, 0]
    assert noisy_top(stream, [1, 2, 3, 4], k=2, unit=Fraction(1, 3), kind="gumbel") == [3, 2]
    assert stream.bits(64) == 0xADA2C835058412DE


def test_no_two_statistics_share_words() -> None:
    """One stream, the same items: other kinds of noise and other scales are other draws."""
    stream, items = Stream.fresh(), Items.positions(2000)
    scales = [Fraction(1000), Fraction(2000), Fraction(2001, 2)]
    drawn = [
        draw(stream, items, scale)
        for draw in (discrete_laplace, discrete_gaussian)
        for scale in scales
    ]
    signs = [np.sign(noise.astype(np.float64)) for noise in drawn]
    for a, b in itertools.combinations(signs, 2):
        # 6.1 sigma two-sided is 1e-9; shared words give about 1
        assert abs((a * b).mean()) < 6.2 / 2000**0.5
    assert abs((signs[0] * np.sign(discrete_laplace(stream, items, scales[0]))).mean()) > 0.9


def test_equal_items_are_refused() -> None:
    stream = Stream.fresh()
    with pytest.raises(UsageError, match="stands twice"):
        Items.codes(np.array([1, 5, 1]))
    with pytest.raises(UsageError, match="stands twice"):
        Items.keys([("a", 1), ("b", 1), ("a", 1)], stream)
    assert len(Items.codes(np.array([5, 1, -3]))) == 3
    assert len(Items.keys([(1,), (True,), ("1",), (None,)], stream)) == 4


def test_group_keys_are_hashed_under_the_key() -> None:
    a, b = Stream.fresh(), Stream.fresh()
    assert not np.array_equal(Items.keys([("x",)], a).ids, Items.keys([("x",)], b).ids)


def test_no_items_no_words() -> None:
    stream, none = Stream.fresh(), Items.positions(0)
    assert stream.words(none, 0).shape == (0, 2)
    assert all(len(draw(stream, none)) == 0 for draw in SAMPLERS.values())


def test_words_look_uniform() -> None:
    """Each of 128 bits is fair and each byte value as frequent as the others; false alarm 1e-9 in
    all.
    """
    words = Stream.fresh().words(Items.positions(1 << 16), 0)
    bits = np.unpackbits(words.view(np.uint8), axis=1).mean(axis=0)
    assert abs(bits - 0.5).max() < 7 / 2 / (1 << 16) ** 0.5
    counts = np.bincount(words.view(np.uint8).ravel(), minlength=256)
    assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 420  # chi-square of 255 degrees


def test_a_stream_survives_pickling_and_hides_its_key() -> None:
    stream = Stream(bytes(range(32))).derive("count", 3)
    again = pickle.loads(pickle.dumps(stream))
    assert np.array_equal(again.words(Items.positions(5), 2), stream.words(Items.positions(5), 2))
    assert again.path == stream.path == (("count", 3),)
    assert again.bits(100) == stream.bits(100)
    assert repr(stream) == "<Stream: count/3>"
    with pytest.raises(TypeError, match="begun to give bits"):
        pickle.dumps(stream)


@pytest.mark.parametrize("key", [b"", b"x" * 31, bytearray(32), "x" * 32])
def test_a_key_is_32_bytes(key: Any) -> None:
    with pytest.raises(UsageError, match="32 bytes"):
        Stream(key)


def test_bits_have_an_order_that_starts_anew_when_derived_again() -> None:
    stream = Stream.fresh()
    first = [stream.derive("coins").bits(k) for k in (1, 7, 64, 1000, 20000)]
    assert [stream.derive("coins").bits(k) for k in (1, 7, 64, 1000, 20000)] == first
    one = stream.derive("coins")
    joined, shift = 0, 0
    for k in (3, 64, 200, 9000):
        joined |= one.bits(k) << shift
        shift += k
    assert joined == stream.derive("coins").bits(shift)
    assert stream.bits(64) != stream.derive("coins").bits(64)


def test_threads_never_get_the_same_bits() -> None:
    stream, got = Stream.fresh(), list[int]()

    def take() -> None:
        got.extend([stream.bits(64) for _ in range(500)])

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(got)) == len(got) == 2000


def test_threads_draw_the_same_noise_as_one() -> None:
    stream, items, got = Stream.fresh(), Items.positions(40_000), dict[int, Any]()
    threads = [
        threading.Thread(
            target=lambda i=i: got.update(
                {i: discrete_laplace(stream, items, Fraction(1000 + i % 2))}
            )
        )
        for i in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(4):
        assert np.array_equal(got[i], discrete_laplace(stream, items, Fraction(1000 + i % 2)))


def test_a_fork_redraws_the_same_noise_and_cannot_share_bits() -> None:
    stream, items = Stream.fresh(), Items.positions(100)
    noise = discrete_laplace(stream, items, Fraction(5))
    stream.bits(64)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            same = np.array_equal(discrete_laplace(stream, items, Fraction(5)), noise)
            try:
                stream.bits(64)
                refused = False
            except RuntimeError:
                refused = True
            os.write(writer, b"ok" if same and refused else b"no")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 2) == b"ok"
    os.close(reader)
    os.close(writer)


def test_bits_of_another_process_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream.fresh()
    stream.bits(64)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(RuntimeError, match="before a fork"):
        stream.bits(64)


def test_nothing_in_the_package_draws_from_numpy_or_random() -> None:
    source = Path(discreet.__file__).parent
    offending = re.compile(
        r"(np|numpy)\.random|default_rng|^\s*(import|from) (random|secrets)\b", re.MULTILINE
    )
    assert [
        str(f) for f in (source / "noise").glob("*.py") if offending.search(f.read_text())
    ] == []
    assert [
        str(f) for f in (source / "mechanisms").glob("*.py") if offending.search(f.read_text())
    ] == []
