"""Tables that Spark reads by itself: of its catalog, Delta, Iceberg; on Sail, which reads them all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conformance import opened, store_on
from small_sources import policy_of
from spark_servers import sail
from test_spark import PEOPLE, TABLES, on_sail, same_rows

from discreet.engines.advice import check
from discreet.engines.spark.session import connect
from discreet.errors import PolicyError, UsageError
from discreet.policy.engine import EngineChoice

# Of types that a Spark table has, and Python's tables have not; the values are those of TABLES.
_TYPES = "CAST(age AS DECIMAL(10, 2)) AS age"


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    made = connect(sail())
    yield made
    made.stop()


def saved(session: Any, folder: Path, format: str) -> None:
    """The tables of test_spark.py in this format, in two commits; with columns that nobody reads."""
    for name, table in TABLES.items():
        frame = session.createDataFrame(table)
        if name == "people":
            frame = frame.selectExpr("person", _TYPES, "word", "visit", "array(1, 2) AS more")
        half = frame.limit(0)
        for each in (frame, half):
            each.write.format(format).mode("append").save(f"{folder}/{name}")


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_tables_of_a_format_give_the_same_rows(format: str, session: Any, tmp_path: Path) -> None:
    """As the same tables do that are passed from Python; public ones, too."""
    saved(session, tmp_path / "lake", format)
    policy = replace(policy_of(PEOPLE, tmp_path), engine=on_sail())
    with (
        opened(policy, EngineChoice(), tmp_path / "duckdb", TABLES) as truth,
        opened(policy, on_sail(), tmp_path / "spark", f"{format}:{tmp_path / 'lake'}") as spark,  # type: ignore[arg-type]
    ):
        same_rows(policy, truth, spark)
        assert spark.public_table("towns").to_pylist() == truth.public_table("towns").to_pylist()
    found = check(policy, f"{format}:{tmp_path / 'lake'}")
    assert found.problems == ()
    wrong = replace(policy_of(PEOPLE.replace("age:", "more:"), tmp_path), engine=on_sail())
    with pytest.raises(PolicyError, match=r"people.more: the source has no such column"):
        store_on(wrong, on_sail(), tmp_path / "wrong").build(1, f"{format}:{tmp_path / 'lake'}")


def test_what_is_not_there(tmp_path: Path) -> None:
    policy = replace(policy_of(PEOPLE, tmp_path), engine=on_sail())
    for source in (f"delta:{tmp_path}", f"iceberg:{tmp_path}", "catalog:nowhere.at_all"):
        assert "The source has no table people. It has none." in str(check(policy, source).problems)


def test_without_spark(tmp_path: Path) -> None:
    policy = policy_of(PEOPLE, tmp_path)
    for source in ("delta:/lake", "catalog:town"):
        with pytest.raises(UsageError, match=r"is read by Spark: add `engine: \{name: spark"):
            check(policy, source)
        with pytest.raises(UsageError, match="is read by Spark"):
            store_on(policy, EngineChoice(), tmp_path / "store").build(1, source)
