"""Small ledgers, open and closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from small_ledger import ask, noisy, some_terms

from discreet.ledger import Ledger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "hospital.ledger"


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
