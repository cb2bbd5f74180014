"""Texts that no listed value is: told beside a quote, from the question and the policy alone."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from discreet.policy.policy import Policy
from discreet.sql.unlisted import unlisted
from sql import bounded, policies

POLICY = Policy.parse(
    """\
unit: person
budget: {epsilon: 1}
tables:
  people: {owner: id, columns: {ward: {values: [west, east]}, grade: {values: [1, 2]}, note: text}}
  visits: {owner: id, max_rows: 3, columns: {ward: {values: [north]}, note: {values: [a]}}}
  wards: {public: true}
""",
    path=Path("policy.yaml"),
)
PUBLIC = {"wards": pa.table({"ward": ["West"], "seat": ["x"]})}
WEST = "No listed value of ward is 'West'. Did you mean west?"
COUNT = "SELECT COUNT(*) FROM people "


@pytest.mark.parametrize(
    ("sql", "notes"),
    [
        (COUNT + "WHERE ward = 'West'", [WEST]),
        (COUNT + "WHERE 'West' = people.ward", [WEST]),
        (COUNT + "AS p WHERE p.ward <> 'West' OR ward = 'West'", [WEST]),
        (COUNT + "WHERE ward IN ('east', 'West', 'zzz')", [WEST, "No listed value of ward is 'zzz'."]),
        ("SELECT COUNT(*) FILTER (WHERE ward = 'West') FROM people", [WEST]),
        ("SELECT ward AS ward, COUNT(*) FROM people GROUP BY ward HAVING ward = 'West'", [WEST]),
        ("SELECT COUNT(*) FROM people JOIN visits USING (id) WHERE people.ward = 'West'", [WEST]),
        (COUNT + "WHERE ward = 'west'", []),
        (COUNT + "WHERE grade = 'zzz'", []),  # numbers, which texts are read as
        (COUNT + "WHERE note = 'zzz'", []),  # not listed
        (COUNT + "WHERE ward < 'West'", []),  # an order of texts
        (COUNT + "WHERE LOWER(ward) = 'West'", []),
        ("SELECT COUNT(*) FROM people JOIN visits USING (id) WHERE visits.ward = 'north'", []),
        ("SELECT COUNT(*) FROM people JOIN visits USING (id) WHERE visits.note = 'zzz'", []),
        ("SELECT COUNT(*) FROM people JOIN wards USING (ward) WHERE ward = 'West'", []),
        ("SELECT COUNT(*) FROM (SELECT UPPER(ward) AS ward FROM people) WHERE ward = 'West'", []),
        ("SELECT COUNT(*) FROM (SELECT UPPER(ward) FROM people) AS t(ward) WHERE ward = 'West'", []),
    ],
)  # fmt: skip
def test_texts_that_are_no_listed_value_are_told(sql: str, notes: list[str]) -> None:
    assert list(unlisted(sql, POLICY, PUBLIC, dialect="duckdb")) == notes


def test_at_most_three_are_told_and_each_once() -> None:
    texts = ", ".join(f"'{place // 2}'" for place in range(40))
    told = unlisted(f"{COUNT} WHERE ward IN ({texts})", POLICY, PUBLIC, dialect="duckdb")
    assert told == tuple(f"No listed value of ward is '{place}'." for place in range(3))


def test_it_stands_in_a_quote_and_in_an_explanation_and_changes_no_price(tmp_path: Path) -> None:
    tables = bounded.dirty(policies.policy("hospital"), people=10, dice=random.Random())
    curator = bounded.opened(tmp_path, "hospital", tables)
    told, plain = (
        curator.quote(
            f"SELECT COUNT(*) FROM people WHERE sex = '{sex}'", analyst="ann", epsilon="1"
        )
        for sex in "fF"
    )
    note = "No listed value of sex is 'f'. Did you mean F?"
    assert told.unlisted == (note,)
    assert told.as_json()["unlisted"] == [note]
    assert note in str(told).splitlines()
    assert (told.cost, told.margins) == (plain.cost, plain.margins)
    assert "unlisted" not in plain.as_json()
    sql = "SELECT COUNT(*) FROM people WHERE sex = 'f'"
    assert curator.explain(sql, analyst="ann", epsilon="1").endswith(f". {note}")
