"""Small ledgers, open and closed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from places import KINDS
from small_ledger import ask, noisy, some_terms

from discreet.ledger import Ledger
from discreet.ledger.place import Place
from real_postgres import Server, server

# fsync costs nothing here, and kill -9 loses nothing that it would not lose on a disk
MEMORY = Path("/dev/shm")


@pytest.fixture
def path() -> Iterator[Path]:
    with TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as folder:
        yield Path(folder).resolve() / "hospital.ledger"


@pytest.fixture(scope="session")
def running_postgres() -> Iterator[Server]:
    """Started when the first test asks for it; it syncs, as a ledger demands."""
    with server("-c max_connections=40") as made:
        yield made


@pytest.fixture(params=KINDS)
def new_place(request: Any) -> Callable[[Path], Place]:
    """Make room for a ledger: a test that asks for this runs once for each kind."""
    return lambda path: KINDS[request.param](
        path, lambda: request.getfixturevalue("running_postgres")
    )


@pytest.fixture
def place(new_place: Callable[[Path], Place], path: Path) -> Place:
    return new_place(path)


@pytest.fixture
def ledger(place: Place) -> Iterator[Ledger]:
    with Ledger.create(place, some_terms()) as made:
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
