"""A schema that is not what its policy says is never committed (S23)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from conformance import store_on
from small_sources import policy_of
from test_verify import TABLES

from discreet.engines.postgres.schema import InSchema
from discreet.errors import UsageError
from discreet.policy.engine import EngineChoice

pytest.importorskip("psycopg")
# what happens to the table before it is looked at; what is said of it
WRONG = {
    'UPDATE {} SET "#owner" = NULL': "a row has no owner",
    "UPDATE {} SET a = 10": "a has values outside its domain",
    "UPDATE {} SET b = -1": "b has values outside its domain",
    "UPDATE {} SET c = 2": "c has values outside its domain",
    "UPDATE {} SET c = -1": "c has values outside its domain",
    "UPDATE {} SET d = 'infinity'": "d has values outside its domain",
    "UPDATE {} SET e = '-infinity'": "e has values outside its domain",
    "UPDATE {} SET e = '2024-06-01 10:00:01'": "e has values outside its domain",
    "UPDATE {} SET f = 'abcd'": "f has more than 3 letters",
    "UPDATE {} SET h = repeat('k', 1001)": "h has more than 1000 letters",
    "INSERT INTO {0} SELECT p.* FROM {0} AS p, generate_series(1, 2)": "more than max_rows = 2 rows",
}


@pytest.mark.parametrize(("change", "reason"), WRONG.items())
def test_what_is_wrong_is_found(
    database: Callable[[], EngineChoice],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
    reason: str,
) -> None:
    store = store_on(policy_of(TABLES, tmp_path), database(), tmp_path / "store")
    verify = InSchema.verify

    def changed(target: InSchema) -> None:
        target.connection.execute(change.format("discreet_1.people").encode())
        verify(target)

    columns = {name: pa.nulls(1, pa.string()) for name in "abcdefgh"}
    rows = {"people": pa.table({"id": ["ann-17"], **columns})}
    with monkeypatch.context() as patch:
        patch.setattr(InSchema, "verify", changed)
        with pytest.raises(UsageError, match=reason) as told:
            store.build(1, rows)
    assert "ann-17" not in str(told.value)
    assert store.numbers() == []
    assert store.build(1, rows).tables[0].kept == 1
