"""Private randomness: AES-256 with a key that belongs to one charge. Its words can be read in any
order.

The words of an item are a pseudorandom function of (key, purposes derived from it, round, item),
and of nothing else: not of the order of the items, of the chunks into which they are cut, or of the
process (S8). So a retry, a Spark executor and a resume after a crash draw the same noise. A stream
has no state except its key, so threads and forks share nothing.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from discreet.errors import UsageError
from discreet.noise import tape

Words = NDArray[np.uint64]

_BLOCK = 16
_WORD = np.dtype("<u8")


def encode(parts: Iterable[object]) -> bytes:
    """Encode parts injectively: a type, a length and the value of each. NULL, False, 0, '' and '0'
    all differ.
    """
    return b"".join([_tag(part) for part in parts])


_ENCODINGS: dict[type, tuple[bytes, Callable[[Any], bytes]]] = {
    type(None): (b"N", lambda _: b""),
    bool: (b"B", lambda part: b"\x01" if part else b"\x00"),
    int: (b"I", lambda part: part.to_bytes(part.bit_length() // 8 + 1, "little", signed=True)),
    str: (b"S", lambda part: part.encode("utf-8", "surrogatepass")),
    bytes: (b"Y", bytes),
    datetime: (b"T", lambda part: part.isoformat().encode()),
    date: (b"D", lambda part: part.isoformat().encode()),
    time: (b"C", lambda part: part.isoformat().encode()),
    timedelta: (b"E", lambda part: str(part // timedelta(microseconds=1)).encode()),
    Fraction: (b"Q", lambda part: str(part).encode()),
    Decimal: (
        b"M",
        lambda part: str(Fraction(part)).encode(),
    ),  # 1.0 and 1.00 are one value, so one key
}


def _tag(part: object) -> bytes:
    encoding = _ENCODINGS.get(type(part))
    if encoding is None:  # a scalar of numpy, or a subclass
        part = part.item() if isinstance(part, np.generic) else part
        encoding = next(
            (_ENCODINGS[kind] for kind in type(part).__mro__ if kind in _ENCODINGS), None
        )
    if encoding is None or (isinstance(part, Decimal) and not part.is_finite()):
        raise UsageError(
            f"A {type(part).__name__} cannot name a draw; use integers, text, bytes, dates or None."
        )
    tag, value = encoding
    encoded = value(part)
    return tag + len(encoded).to_bytes(8, "little") + encoded


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """The ids of n draws, 128 bits each. All are different, because equal ids would get equal
    noise.
    """

    ids: Words

    @classmethod
    def positions(cls, n: int, *, first: int = 0) -> Items:
        """Return n items whose ids are their positions, from `first` on."""
        return cls._numbered(np.arange(first, first + n, dtype=_WORD), tag=0)

    @classmethod
    def codes(cls, codes: NDArray[np.int64]) -> Items:
        """Return items whose ids are integers that are the same at every retry, such as cells of a
        public grid.
        """
        codes = np.ascontiguousarray(codes, dtype=np.int64)
        if codes.ndim != 1:
            raise UsageError(
                f"Codes are one column of integers, not an array of {codes.ndim} dimensions."
            )
        if not (codes[1:] > codes[:-1]).all() and len(np.unique(codes)) < len(codes):
            raise UsageError(
                "A code stands twice among the items; equal items would get equal noise."
            )
        return cls._numbered(codes.view(_WORD), tag=1)

    @classmethod
    def keys(cls, rows: Sequence[Sequence[object]], stream: Stream) -> Items:
        """Return items whose ids are group keys, hashed with the charge's stream, so that nobody
        can prepare a collision.
        """
        key = stream._secret()
        digests = [
            hashlib.blake2b(
                encode(row), key=key, person=b"discreet.keys", digest_size=_BLOCK
            ).digest()
            for row in rows
        ]
        if len(set(digests)) < len(digests):
            raise UsageError(
                "A group key stands twice among the items; equal items would get equal noise."
            )
        return cls(np.frombuffer(b"".join(digests), dtype=_WORD).reshape(-1, 2))

    @classmethod
    def _numbered(cls, numbers: Words, tag: int) -> Items:
        ids = np.empty((len(numbers), 2), dtype=_WORD)
        ids[:, 0] = numbers
        ids[:, 1] = tag
        return cls(ids)

    def __len__(self) -> int:
        return len(self.ids)

    def at(self, index: Any) -> Items:
        """Return some of the items: a slice or an array of distinct positions."""
        return Items(np.ascontiguousarray(self.ids[index]))


class Stream:
    """The randomness of one charge, or of one purpose within it. No public function takes a key
    from a person.
    """

    __slots__ = ("_bits", "_key", "_root", "path")

    def __init__(self, key: bytes) -> None:
        if not isinstance(key, bytes) or len(key) != 32:
            raise UsageError("A stream's key is 32 bytes.")
        self._key = key
        self._root = hashlib.blake2b(key, person=b"discreet.root", digest_size=16).digest()
        self.path: tape.Path = ()
        self._bits = _Bits()

    @classmethod
    def fresh(cls) -> Stream:
        return cls(os.urandom(32))

    def derive(self, purpose: str, *item: object) -> Stream:
        """Return an independent stream for one purpose (and item). The same purpose always gives
        the same stream.
        """
        child = object.__new__(Stream)
        child._key = hashlib.blake2b(
            encode((purpose, *item)), key=self._key, person=b"discreet.derive", digest_size=32
        ).digest()
        child._root = self._root
        child.path = (*self.path, (purpose, *item))
        child._bits = _Bits()
        return child

    def words(self, items: Items, round: int) -> Words:
        """Return two uniform 64-bit words for each item: the PRF of (key, round, item)."""
        return self.round(round)(items.ids)

    def round(self, number: int) -> Round:
        """Return the words of one round, for samplers that process their items in chunks."""
        return Round(self, number)

    def bits(self, k: int) -> int:
        """Return the next k bits as an integer, so that a stream can be a source for `noise.bits`.

        If the stream is derived again, it begins anew, so that retried work gets the same bits. A
        stream that has given bits can neither be pickled nor used after a fork: both copies would
        give the same bits.
        """
        return self._bits.take(k, self)

    def _secret(self) -> bytes:
        recording = tape.active()
        if recording is None:
            return self._key
        return recording.key(self._root, encode(part for step in self.path for part in step))

    def __repr__(self) -> str:
        return f"<Stream: {'/'.join(str(part) for step in self.path for part in step) or 'root'}>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._bits.begun:
            raise TypeError(
                "This stream has begun to give bits; derive one for the work that is sent away."
            )
        return _restore, (self._key, self._root, self.path)


def _restore(key: bytes, root: bytes, path: tape.Path) -> Stream:
    stream = Stream(key)
    stream._root = root
    stream.path = path
    return stream


class Round:
    """AES-256 with the key of one round: it turns ids into words. Only one thread uses it, within
    one call.
    """

    __slots__ = ("_cipher", "_number", "_path", "_root")

    def __init__(self, stream: Stream, number: int) -> None:
        key = hashlib.blake2b(
            number.to_bytes(8, "little"),
            key=stream._secret(),
            person=b"discreet.round",
            digest_size=32,
        ).digest()
        self._cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # ids are distinct
        self._root = stream._root
        self._path = stream.path
        self._number = number

    def __call__(self, ids: Words) -> Words:
        words = encrypt(self._cipher, ids)
        recording = tape.active()
        if recording is not None:
            return recording.words(self._root, self._path, self._number, ids, words)  # type: ignore[no-any-return]
        return words


def encrypt(cipher: Any, blocks: Words) -> Words:
    """Encrypt each block of two words under AES, by itself."""
    # `update_into` wants room for one block more
    words = np.empty((len(blocks) + 1, 2), dtype=_WORD)
    if len(blocks):
        cipher.update_into(np.ascontiguousarray(blocks).data.cast("B"), words.data.cast("B"))
    return words[:-1]


class _Bits:
    """The bits of a stream in order: a reservoir filled a kilobyte at a time."""

    __slots__ = ("_held", "_lock", "_next", "_pid", "_reservoir", "_round")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._round: Round | None = None
        self._next = self._held = self._reservoir = self._pid = 0

    @property
    def begun(self) -> bool:
        return self._round is not None

    def take(self, k: int, stream: Stream) -> int:
        with self._lock:
            if self._round is None:
                self._round = stream.derive("bits").round(0)
                self._pid = os.getpid()
            elif self._pid != os.getpid():
                raise RuntimeError(
                    "This stream gave bits before a fork; derive one for each process."
                )
            while self._held < k:
                ids = Items._numbered(
                    np.arange(self._next, self._next + 64, dtype=_WORD), tag=0
                ).ids
                self._next += 64
                self._reservoir |= (
                    int.from_bytes(self._round(ids).tobytes(), "little") << self._held
                )
                self._held += 64 * 128
            taken = self._reservoir & ((1 << k) - 1)
            self._reservoir >>= k
            self._held -= k
            return taken
