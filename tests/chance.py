"""Chance that falls the same way each time, so that a test that passed here passes everywhere.

Nine thousand tests draw noise. If one of them failed by chance once in ten thousand runs, nobody
would notice it here and it would stop somebody else's work. So a test gets its random bits from its
own name: every run of the same code draws the same numbers. `--real-chance` gives the operating
system's bits instead; `make slow` uses it.

A child process draws real bits: two children with the same bits would choose the same names and
keys.
"""

from __future__ import annotations

import hashlib
import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

SYSTEM = os.urandom
_default_rng = np.random.default_rng


class Bits:
    """Stands in for `os.urandom`: bytes that follow from a name."""

    def __init__(self, name: str) -> None:
        self._name = hashlib.blake2b(name.encode()).digest()
        self._calls = 0
        self._lock = threading.Lock()

    def __call__(self, size: int) -> bytes:
        with self._lock:
            self._calls += 1
            call = self._calls
        return hashlib.shake_256(self._name + call.to_bytes(8, "little")).digest(size)


def _generator(seed: Any = None) -> np.random.Generator:
    """Stands in for `numpy.random.default_rng`: without a seed it takes one from `os.urandom`."""
    return _default_rng(int.from_bytes(os.urandom(16), "little") if seed is None else seed)


@contextmanager
def of(name: str) -> Iterator[None]:
    """Takes all random bits from this name while it lasts."""
    before, state = os.urandom, random.getstate()
    os.urandom = Bits(name)
    np.random.default_rng = _generator
    random.seed(name)
    try:
        yield
    finally:
        os.urandom = before
        random.setstate(state)
        if before is SYSTEM:
            np.random.default_rng = _default_rng


def _in_child() -> None:
    os.urandom = SYSTEM


os.register_at_fork(after_in_child=_in_child)
