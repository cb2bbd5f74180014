"""Small ledgers, open and closed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from small_ledger import ask, noisy, some_terms

from discreet.ledger import Ledger

MEMORY = Path("/dev/shm")  # fsync costs nothing here, and kill -9 loses nothing that it would not lose on a disk


@pytest.fixture
def path() -> Iterator[Path]:
    with TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as folder:
        yield Path(folder).resolve() / "hospital.ledger"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with Ledger.create(path, some_terms()) as made:
        yield made


@pytest.fixture
def filled(path: Path) -> Callable[[int], Path]:
    """A closed ledger of n charges, two thirds of them answered."""

    def fill(n: int) -> Path:
        with Ledger.create(path, some_terms(limit="1000")) as made:
            for i in range(n):
                reservation = ask(made, f"q{i}", analyst="bob")
                if i % 3:
                    made.post(reservation, noisy(reservation) * 4, meta={"margins": [i]})
        return path

    return fill
