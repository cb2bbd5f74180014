"""What real clients sent to a real Postgres: answered, refused because rows are asked for, or
refused otherwise.

`bi.tsv` has the client and the statement, on the demo's town; `clients.tsv` has more that are
written in the way of these clients. Rows are never answered, and a refusal costs nothing.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import discreet
from discreet.binding import create_ledger
from discreet.curator import Curator
from discreet.errors import Rejected
from discreet.examples import town
from discreet.policy.policy import Policy

HERE = Path(__file__).parent


def statements(file: str) -> list[str]:
    return [line.split("\t")[1] for line in (HERE / file).read_text("utf-8").splitlines()]


ROWS = ("rows never leave", "on private rows", "which values exist")


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    path = town.build(tmp_path_factory.mktemp("town"), people=50)
    create_ledger(Policy.read(path))
    return discreet.open(path)


def verdict(curator: Curator, sql: str) -> str:
    try:
        curator.quote(sql, analyst="alice", epsilon="0.5", dialect="postgres")
    except Rejected as error:
        return "rows" if any(words in error.reason for words in ROWS) else "refused"
    return "answered"


@pytest.mark.parametrize(
    ("file", "known"),
    [
        ("bi.tsv", {"answered": 137, "rows": 8, "refused": 4}),
        ("clients.tsv", {"answered": 1052, "rows": 15, "refused": 62}),
    ],
)
def test_what_clients_send_is_answered(curator: Curator, file: str, known: dict[str, int]) -> None:
    counts = Counter(verdict(curator, sql) for sql in statements(file))
    assert counts == known
