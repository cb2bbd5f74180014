"""A real Spark, asked as a curator asks: tables of its catalog, the longest rows, releases,
publications and descriptions; questions that are cut off.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from conformance import opened, rows_of, store_on
from small_sources import policy_of
from test_every_engine import ODD, odd_rows, slow_query
from test_real_spark import local as local
from test_spark import ONE_KEY, PEOPLE, TABLES, THRESHOLD, allowed, same_rows

from discreet.algebra import Aggregate, Column, Persons, Scan, Sum
from discreet.binding import create_ledger
from discreet.curator import Curator
from discreet.engines.limits.overrun import Overrun
from discreet.engines.spark.session import connect
from discreet.errors import UsageError
from discreet.examples import country, town
from discreet.policy.engine import EngineChoice
from discreet.policy.policy import Policy
from discreet.vault.exact import Exact

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
WIDE = 60  # texts of a row, each of the most letters that a policy may allow


def test_tables_of_its_catalog(local: EngineChoice, tmp_path: Path) -> None:
    session = connect(local.at)
    session.sql(f"CREATE DATABASE town LOCATION '{(tmp_path / 'warehouse').as_uri()}'").toArrow()
    for name, table in TABLES.items():
        session.createDataFrame(table).write.format("parquet").saveAsTable(f"town.{name}")
    session.sql("CREATE DATABASE seen").toArrow()
    session.sql("CREATE VIEW seen.people AS SELECT * FROM town.people").toArrow()
    policy = replace(policy_of(PEOPLE, tmp_path), engine=local)
    for place in ("town", "spark_catalog.town"):
        with (
            opened(policy, EngineChoice(), tmp_path / f"duckdb {place}", TABLES) as truth,
            opened(policy, local, tmp_path / place, f"catalog:{place}") as spark,  # type: ignore[arg-type]
        ):
            same_rows(policy, truth, spark)
            assert spark.public_table("towns").equals(truth.public_table("towns"))
    store = store_on(policy, local, tmp_path / "none")
    with pytest.raises(UsageError, match=r"seen\.people is a view"):
        store.build(1, "catalog:seen")
    for format in ("delta", "iceberg"):  # this Spark has neither package
        with pytest.raises(UsageError, match=f"cannot read {format}: start it with --packages"):
            store.build(1, f"{format}:{tmp_path}")
    session.stop()


def test_the_longest_row_that_one_person_can_have(local: EngineChoice, tmp_path: Path) -> None:
    """Two and a half megabytes of keys: read, and held against a threshold, as any other row."""
    columns = "".join(f"      k{place}: {{text: true, letters: 10000}}\n" for place in range(WIDE))
    policy = policy_of(f"  people:\n    owner: person\n    columns:\n{columns}", tmp_path)
    texts = ["\U0001f600" * 10_000] * 3 + ["a"] * 5
    tables = {
        "people": pa.table({"person": range(8), **{f"k{place}": texts for place in range(WIDE)}})
    }
    keys = tuple(Column("t", f"k{place}") for place in range(WIDE))
    sums, people = (Aggregate(Scan("people", "t"), keys, (each,)) for each in (Sum(), Persons()))
    with (
        opened(policy, EngineChoice(), tmp_path / "duckdb", tables) as truth,
        opened(policy, local, tmp_path / "spark", tables) as spark,
    ):
        assert rows_of(spark, sums) == rows_of(truth, sums)
        numbers = [
            allowed(bytes(32)).threshold(THRESHOLD, each, moved=ONE_KEY, keys=WIDE)[1].tolist()
            for each in (
                Exact(truth.fetch(people, 60).unwrap()),
                spark.fetch_parts(people, 300, 100_000),
            )
        ]
        assert numbers[0] == numbers[1]


def test_what_takes_too_long_and_a_session_that_is_gone(
    local: EngineChoice, tmp_path: Path
) -> None:
    policy = policy_of(ODD, tmp_path)
    with opened(policy, local, tmp_path / "spark", {"visits": odd_rows()}) as spark:
        query = Aggregate(Scan("visits", "v"), (), (Sum(),))
        expected = rows_of(spark, query)
        with pytest.raises(Overrun):
            spark.fetch(slow_query(6), 2)
        assert rows_of(spark, query) == expected
        spark._session.stop()  # type: ignore[attr-defined]
        assert rows_of(spark, query) == expected


def test_releases_publications_and_descriptions(local: EngineChoice, tmp_path: Path) -> None:
    def curator_of(path: Path) -> Curator:
        policy = replace(Policy.read(path), engine=local)
        create_ledger(policy)
        return Curator(policy)

    lived = curator_of(town.build(tmp_path / "town", people=50))
    release = lived.release("visits_by_day")
    release.start()
    assert release.run(date(2024, 1, 8)) is not None
    described = lived.describe("people", epsilon="0.5", columns=["sex", "smoker"])
    assert lived.generate(described.to_bytes(), rows=9).num_rows == 9
    counted = curator_of(country.build(tmp_path / "country", people=300))
    made = counted.publication("census_2030").run()
    assert counted.publication("census_2030").show().to_bytes() == made.to_bytes()
