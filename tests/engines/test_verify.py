"""A finished snapshot that is not what its policy says gets no number (S23)."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from small_sources import policy_of

from discreet.engines.duckdb.preparing import prepare as prepare_module
from discreet.engines.duckdb.preparing.prepare import prepare
from discreet.engines.duckdb.preparing.verify import verify
from discreet.errors import UsageError

TABLES = """\
  people:
    owner: id
    max_rows: 2
    columns:
      a: {integer: [-5, 9]}
      b: {decimal: [0, 1], step: 0.25}
      c: {values: [x, y]}
      d: {date: [2024-01-01, 2024-12-31]}
      e: {timestamp: [2024-01-01, 2025-01-01], step: 1min}
      f: {text: true, letters: 3}
      g: {boolean: true}
      h: identifier
"""
TYPES = "SMALLINT, TINYINT, UTINYINT, DATE, TIMESTAMP, VARCHAR, BOOLEAN, VARCHAR"
FINE = "1, 9, 4, 1, '2024-12-31', '2024-06-01 10:01', 'éée', true, 'k'"
EMPTY = "2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL"
WRONG = {
    "NULL, 9, 4, 1, '2024-12-31', '2024-06-01', 'abc', true, 'k'": "a row has no owner",
    "3, 10, 4, 1, '2024-12-31', '2024-06-01', 'abc', true, 'k'": "a has values outside its domain",
    "3, -6, 4, 1, '2024-12-31', '2024-06-01', 'abc', true, 'k'": "a has values outside its domain",
    "3, 0, 5, 1, '2024-12-31', '2024-06-01', 'abc', true, 'k'": "b has values outside its domain",
    "3, 0, 0, 2, '2024-12-31', '2024-06-01', 'abc', true, 'k'": "c has values outside its domain",
    "3, 0, 0, 1, '2025-01-01', '2024-06-01', 'abc', true, 'k'": "d has values outside its domain",
    "3, 0, 0, 1, 'infinity', '2024-06-01', 'abc', true, 'k'": "d has values outside its domain",
    "3, 0, 0, 1, '2024-12-31', '2025-01-01 00:01', 'abc', true, 'k'": "e has values outside its domain",
    "3, 0, 0, 1, '2024-12-31', '2024-06-01 10:00:01', 'abc', true, 'k'": "e has values outside its domain",
    "3, 0, 0, 1, '2024-12-31', '2024-06-01', 'abcd', true, 'k'": "f has more than 3 letters",
    "3, 0, 0, 1, '2024-12-31', '2024-06-01', 'abc', true, repeat('k', 1001)": "h has more than 1000 letters",
    f"{FINE}), ({FINE}), ({FINE}": "somebody has more than max_rows = 2 rows",
}


def file_of(path: Path, *rows: str, types: str = TYPES, owner: str = "BIGINT") -> Path:
    columns = ", ".join(
        f"{name} {kind}" for name, kind in zip("abcdefgh", types.split(", "), strict=True)
    )
    with duckdb.connect(str(path)) as connection:
        connection.execute(f'CREATE TABLE people("#owner" {owner}, {columns})')
        for row in rows:
            connection.execute(f"INSERT INTO people VALUES ({row})")
    return path


def test_what_is_right_passes(tmp_path: Path) -> None:
    verify(file_of(tmp_path / "1.duckdb", FINE, FINE, EMPTY), policy_of(TABLES, tmp_path))


@pytest.mark.parametrize(("row", "reason"), WRONG.items())
def test_what_is_wrong_is_found(tmp_path: Path, row: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        verify(file_of(tmp_path / "1.duckdb", FINE, EMPTY, row), policy_of(TABLES, tmp_path))


@pytest.mark.parametrize(
    ("old", "new"), [("SMALLINT", "DOUBLE"), ("UTINYINT", "TINYINT"), ("DATE", "TIMESTAMP")]
)
def test_types_that_are_wrong(tmp_path: Path, old: str, new: str) -> None:
    types = TYPES.replace(old, new, 1) if old != "UTINYINT" else TYPES.replace(old, new)
    with pytest.raises(UsageError, match="has the type"):
        verify(file_of(tmp_path / "1.duckdb", EMPTY, types=types), policy_of(TABLES, tmp_path))


def test_a_snapshot_that_is_wrong_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were rows no longer cut, the person with three of them would be found at the end."""
    tables = "  people: {owner: id, max_rows: 2}\n"
    policy = policy_of(tables, tmp_path)
    everything = 'SELECT "#owner" FROM "#read" WHERE "#owner" IS NOT NULL'
    monkeypatch.setattr(prepare_module._Work, "_kept", lambda work, table: everything)
    with pytest.raises(UsageError, match="somebody has more than max_rows = 2 rows") as told:
        prepare(policy, {"people": pa.table({"id": [71, 71, 71]})}, policy.store, 1)
    assert "71" not in str(told.value)
    assert not list(policy.store.glob("*.duckdb"))
    prepare(policy, {"people": pa.table({"id": [71, 71]})}, policy.store, 1)
