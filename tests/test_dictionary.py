"""What everybody may know of the tables: the same from the shell, the language and the Postgres
door, and free.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import discreet
from discreet.cli import run
from discreet.errors import Rejected, UsageError
from discreet.policy.dictionary import dictionary, type_of_arrow
from discreet.policy.policy import Policy
from discreet.server.catalog.tables import contents

POLICY = """\
source: .
unit: person
neighbors: add_remove
tables:
  people:
    owner: person_id
    columns:
      person_id: {identifier: true}
      age: {integer: [0, 120]}
      income: {decimal: [0, 200000], step: 0.01, nullable: true}
      state: {values: [AK, AL, AR, AZ, CA, CO, CT, DE, FL, GA]}
      wards: {values: [1, 2, 3]}
      smoker: {boolean: true}
      born: {date: [1900-01-01, 2024-12-31]}
      seen: {timestamp: [2024-01-01, 2025-01-01], step: 1s}
      zip: text
  visits:
    owner: patient
    max_rows: 10
    columns:
      visit_id: {identifier: true}
      day: {date: [2024-01-01, 2024-12-31]}
  labs:
    owner: {through: visits, on: visit_id}
    max_rows: 50
    columns:
      visit_id: {identifier: true}
      value: {integer: [0, 9]}
  states: {public: true}
budget: {epsilon: 1}
analysts:
  bob: {epsilon: 1}
"""
TABLES = {
    "people": pa.table(
        {"person_id": [1], "age": [40], "income": [1.0], "state": ["AK"], "wards": [1]}
    ),
    "visits": pa.table({"patient": [1], "visit_id": [7], "day": ["2024-01-01"]}),
    "labs": pa.table({"visit_id": [7], "value": [3]}),
    "states": pa.table({"state": ["AK"], "region": ["west"], "people": pa.array([7], pa.int32())}),
}
MISSING = {
    "smoker": pa.array([True]),
    "born": pa.array(["1990-01-01"]),
    "seen": pa.array(["2024-01-01 00:00:00"]),
    "zip": pa.array(["12345"]),
}
DESCRIBED = (
    "DESCRIBE people",
    "desc public.people",
    "SHOW COLUMNS FROM people",
    "SHOW FIELDS IN PEOPLE;",
    "SHOW people",
)
KINDS = (
    (pa.bool_(), "boolean"),
    (pa.uint8(), "smallint"),
    (pa.uint64(), "numeric"),
    (pa.float32(), "real"),
    (pa.decimal128(9, 2), "numeric"),
    (pa.list_(pa.int64()), "bigint[]"),
    (pa.time64("us"), "text"),
)


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> str:
    import pyarrow.parquet

    folder = tmp_path_factory.mktemp("town")
    people = TABLES["people"]
    for name, values in MISSING.items():
        people = people.append_column(name, values)
    for name, table in (TABLES | {"people": people}).items():
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet")
    (folder / "town.yaml").write_text(POLICY)
    assert run(["ledger", str(folder / "town.yaml"), "--create"]) == 0
    return str(folder / "town.yaml")


@pytest.fixture(scope="module")
def curator(policy: str) -> discreet.Curator:
    return discreet.open(policy)


def rows(curator: discreet.Curator, sql: str, **arguments: Any) -> list[tuple[Any, ...]]:
    answer = curator.ask(sql, analyst="bob", **arguments)
    assert answer.cost.epsilon == 0
    return list(zip(*(column.to_pylist() for column in answer.table.columns), strict=True))


def test_says_what_a_column_may_contain(curator: discreet.Curator) -> None:
    people, visits, labs, states = curator.tables()
    said = {column.name: (column.type, column.contains, column.groups) for column in people.columns}
    assert said == {
        "person_id": ("text", "an identifier: for joins, never shown", "never"),
        "age": ("bigint", "whole numbers from 0 to 120", "public"),
        "income": ("numeric", "numbers from 0 to 200000 in steps of 0.01, or NULL", "public"),
        "state": ("text", "one of AK, AL, AR, AZ, CA, CO, CT, DE and 2 more", "public"),
        "wards": ("bigint", "one of 1, 2, 3", "public"),
        "smoker": ("boolean", "true or false", "public"),
        "born": ("date", "from 1900-01-01 to 2024-12-31", "public"),
        "seen": (
            "timestamp without time zone",
            "from 2024-01-01 00:00:00 to 2025-01-01 00:00:00",
            "public",
        ),
        "zip": (
            "text",
            "text; as a group it is shown only where enough people share it",
            "unknown",
        ),
    }
    assert people.primary_key == "person_id"
    assert visits.primary_key is None
    assert [column.name for column in visits.columns if column.owner] == ["patient"]
    assert (
        labs.comment
        == "private: at most 50 rows of each person, through visit_id of visits, answered with noise"
    )
    assert [column.type for column in states.columns] == ["text", "text", "integer"]


def test_every_way_to_ask_tells_the_same(
    curator: discreet.Curator, policy: str, capsys: Any
) -> None:
    told = [
        (table.name, column.name, column.type)
        for table in curator.tables()
        for column in table.columns
    ]
    sql = "SELECT table_name, column_name, data_type FROM information_schema.columns"
    assert rows(curator, sql) == told
    assert rows(curator, sql.replace("info", "town.info"), dialect="postgres") == told
    described = contents.describe(curator.policy, curator.public_columns())
    assert [(table.name, name) for table in described for name in table.columns] == [
        row[:2] for row in told
    ]
    assert run(["tables", policy, "--format", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [
        (each["name"], column["name"], column["type"])
        for each in printed["tables"]
        for column in each["columns"]
    ] == told
    assert printed["tables"][0]["columns"][1]["range"] == ["0", "120"]
    assert run(["tables", policy]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for row in told for name in row)


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize("sql", DESCRIBED)
def test_a_table_is_described(curator: discreet.Curator, sql: str, dialect: str) -> None:
    found = rows(curator, sql, dialect=dialect)
    assert found[0] == ("person_id", "text", "NO", "owner", "an identifier: for joins, never shown")
    assert [row[0] for row in found] == [column.name for column in curator.tables()[0].columns]


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_tables_are_shown(curator: discreet.Curator, dialect: str) -> None:
    expected = [(table.name, table.comment) for table in curator.tables()]
    assert rows(curator, "SHOW TABLES", dialect=dialect) == expected
    assert rows(curator, "SHOW ALL TABLES", dialect=dialect, epsilon=1) == expected


def test_is_a_table_like_any_public_one(curator: discreet.Curator) -> None:
    sql = (
        "SELECT t.table_name, COUNT(*) AS n FROM information_schema.tables t JOIN information_schema.columns c"
        " ON t.table_name = c.table_name WHERE t.table_schema = 'public' GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 2"
    )
    answer = curator.ask(sql, analyst="bob")
    assert answer.table.to_pylist() == [
        {"table_name": "people", "n": 9},
        {"table_name": "states", "n": 3},
    ]
    assert "without_margin" not in answer.certificate


@pytest.mark.parametrize(
    "sql",
    [
        "DESCRIBE nobody",
        "DESCRIBE SELECT 1",
        "SHOW server_version",
        "SHOW TABLES FROM people",
        "SELECT * FROM information_schema.views",
        "SELECT * FROM other.information_schema.tables",
    ],
)
def test_what_is_not_there_is_refused(curator: discreet.Curator, sql: str) -> None:
    with pytest.raises(Rejected):
        curator.ask(sql, analyst="bob")


def test_private_rows_still_need_an_amount(curator: discreet.Curator) -> None:
    with pytest.raises(UsageError, match="Say what the answer may cost"):
        curator.ask("SELECT COUNT(*) FROM people", analyst="bob")


def test_owners_that_no_column_names(tmp_path: Path) -> None:
    words = []
    for owner in ("[hospital, number]", "row"):
        table = f"  cases: {{owner: {owner}, columns: {{kind: {{values: [a, b]}}}}}}\n"
        text = POLICY.split("tables:\n")[0] + "tables:\n" + table + "budget: {epsilon: 1}\n"
        (tmp_path / "town.yaml").write_text(text)
        (found,) = dictionary(Policy.read(tmp_path / "town.yaml"), {})
        assert (found.columns[0].name, found.columns[0].key) == ("owner", "owner")
        words.append(found.columns[0].contains)
    assert words == [
        "the person, whom hospital and number name together: for joins, never shown",
        "the person: every row is another's",
    ]


def test_depends_on_the_policy_alone(tmp_path: Path) -> None:
    (tmp_path / "town.yaml").write_text(POLICY)
    declared = Policy.read(tmp_path / "town.yaml")  # whose source has no file
    assert [
        each.name for each in dictionary(declared, {"states": pa.schema([("state", pa.string())])})
    ][-1] == "states"


@pytest.mark.parametrize(("kind", "words"), KINDS)
def test_types_of_public_columns(kind: pa.DataType, words: str) -> None:
    assert type_of_arrow(kind) == words
