"""Turn group keys of text into items, all at once. Use it for a hundred thousand keys; `Items.keys`
goes row by row.

The id of a key is its CBC-MAC under a key of the charge's own: state = AES(state ^ block). Each
text of a key gives a block of its length (and whether it is NULL), then its bytes in blocks of
sixteen with zeros at the end. A text says first how long it is, so no key's blocks begin those of
another key of as many texts; on such inputs CBC-MAC is a pseudorandom function [Petrank, Rackoff
2000], and no collision can be prepared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from discreet.errors import UsageError
from discreet.noise.stream import Items, Stream, Words, encrypt

# the first bytes of a word
_KEPT = np.array([(1 << 8 * count) - 1 for count in range(9)], dtype=np.uint64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """A column of n texts: all their bytes, the n + 1 places where they begin and end, and which of
    them are NULL.
    """

    content: NDArray[np.uint8]
    places: NDArray[np.int64]
    missing: NDArray[np.bool_]


def text_items(columns: Sequence[Texts], stream: Stream) -> Items:
    """Return items whose ids are group keys of one or more texts, all different."""
    key = hashlib.blake2b(key=stream._secret(), person=b"discreet.texts", digest_size=32).digest()
    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    state = np.zeros((len(columns[0].missing), 2), dtype=np.uint64)
    for column in columns:
        _absorb(state, column, cipher)
    first = np.sort(state[:, 0])
    if (first[1:] == first[:-1]).any() and len(np.unique(state, axis=0)) < len(state):
        raise UsageError(
            "A group key stands twice among the items; equal items would get equal noise."
        )
    return Items(state)


def _absorb(state: Words, column: Texts, cipher: Any) -> None:
    """Return the state of each key's CBC-MAC after its next text."""
    lengths = np.where(column.missing, 0, np.diff(column.places))
    state[:, 0] ^= lengths.astype(np.uint64)
    state[:, 1] ^= column.missing
    state[:] = encrypt(cipher, state)
    padded = np.concatenate([column.content, np.zeros(16, dtype=np.uint8)])
    # the word at every byte
    words: Words = np.ndarray(len(padded) - 7, dtype="<u8", buffer=padded, strides=(1,))
    left = np.flatnonzero(lengths)
    done = 0
    while len(left):
        # of all rows nothing is gathered
        rows: Any = left if len(left) < len(state) else slice(None)
        start = column.places[:-1][rows] + done
        rest = lengths[rows] - done
        state[rows, 0] ^= words[start] & _KEPT[np.minimum(rest, 8)]
        state[rows, 1] ^= words[start + 8] & _KEPT[np.clip(rest - 8, 0, 8)]
        state[rows] = encrypt(cipher, state[rows])
        left = left[rest > 16]
        done = done + 16
