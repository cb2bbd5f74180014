"""Python calls with values of a wrong type: a sentence, before anything is charged, and never a
traceback.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.binding import create_ledger
from discreet.curator import Curator
from discreet.errors import UsageError
from discreet.policy.policy import Policy
from discreet.synthetic.columns.axis import Intervals
from discreet.synthetic.description import Description

POLICY = """
unit: person
neighbors: add_remove
tables:
  people:
    owner: person_id
    columns:
      person_id: {identifier: true}
      sex: {values: [F, M]}
      smoker: {boolean: true}
      age: {integer: [0, 99]}
      day: {date: [2024-01-01, 2024-12-31]}
budget: {epsilon: 100, delta: 1e-6}
limits: {epsilon: 10}
analysts: {}
releases:
  daily:
    question: SELECT COUNT(*) AS n FROM people
    time: day
    period: day
    from: 2024-01-01
    periods: 10
    publish: [daily]
    per_person: {periods: 1}
    epsilon: 1
"""


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    path: Path = tmp_path_factory.mktemp("types") / "policy.yaml"
    path.write_text(POLICY, encoding="utf-8")
    create_ledger(Policy.read(path))
    people = pa.table(
        {
            "person_id": list(range(200)),
            "sex": ["F", "M"] * 100,
            "smoker": [True, False] * 100,
            "age": [each % 90 for each in range(200)],
            "day": [date(2024, 1, 1)] * 200,
        }
    )
    return discreet.open(path, tables={"people": people})


@pytest.fixture(scope="module")
def described(curator: Curator) -> Description:
    return curator.describe("people", epsilon=1, columns=["sex", "smoker"])


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"table": []}, "A table is named by a text, not list"),
        ({"table": {"a": 1}}, "A table is named by a text, not dict"),
        ({"synthesizer": []}, "no synthesizer"),
        ({"columns": 1}, "columns must be a list of texts, not int"),
        ({"columns": np.array(1)}, "columns must be a list of texts, not ndarray"),
        ({"columns": [[]]}, "columns must be a list of texts, not of list"),
        ({"intervals": 5}, "intervals must be Intervals, not int"),
        ({"workload": 1}, "workload must be a list of texts, not int"),
        ({"workload": [1]}, "workload must be a list of texts, not of int"),
        ({"workload": b"SELECT 1"}, "workload must be a list of texts, not of int"),
    ],
    ids=str,
)
def test_describe(curator: Curator, named: dict[str, Any], said: str) -> None:
    before = curator._ledger.spent()
    with pytest.raises(UsageError, match=said):
        curator.describe(**{"table": "people", "epsilon": 1, **named})
    assert curator._ledger.spent() == before


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"quantiles": None}, "quantiles must be a list of texts, not NoneType"),
        ({"quantiles": 5}, "quantiles must be a list of texts, not int"),
        ({"quantiles": [{}]}, "quantiles must be a list of texts, not of dict"),
        ({"bins": 1}, "bins must be a whole number from 2 to 1000, not 1"),
        ({"bins": True}, "bins must be a whole number"),
        ({"bins": "9"}, "bins must be a whole number"),
    ],
    ids=str,
)
def test_intervals(named: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Intervals(**named)


@pytest.mark.parametrize(
    "kind", [list, tuple, iter, np.array, dict.fromkeys], ids=lambda kind: kind.__name__
)
def test_describe_takes_names_in_any_kind_of_list(
    curator: Curator, described: Description, kind: Any
) -> None:
    before = curator._ledger.spent()
    again = curator.describe(
        "people",
        epsilon=1,
        columns=kind(["sex", "smoker"]),
        intervals=Intervals(quantiles=kind([])),
    )
    assert again.to_bytes() == described.to_bytes()
    assert curator._ledger.spent() == before


@pytest.mark.parametrize("what", ["x", None, 1, []], ids=repr)
def test_compare_something_else(curator: Curator, what: Any) -> None:
    with pytest.raises(UsageError, match="Pass a description, from describe or"):
        curator.compare(what, epsilon=1)


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"workload": 1}, "workload must be a list of texts, not int"),
        ({"workload": [None]}, "workload must be a list of texts, not of NoneType"),
        ({"target": 1}, "target is a text such as income=high, not int"),
        ({"target": b"sex=F"}, "target is a text such as income=high, not bytes"),
        ({"target": []}, "target is a text such as income=high, not list"),
    ],
    ids=str,
)
def test_compare(
    curator: Curator, described: Description, named: dict[str, Any], said: str
) -> None:
    before = curator._ledger.spent()
    with pytest.raises(UsageError, match=said):
        curator.compare(described, epsilon=1, **named)
    assert curator._ledger.spent() == before


@pytest.mark.parametrize("given", [1, ["sex"], np.array([1, 2])], ids=repr)
def test_given_what_is_no_mapping(described: Description, given: Any) -> None:
    with pytest.raises(UsageError, match=r'as in \{"sex": "F"\}, and is not (int|list|ndarray)\.'):
        described.batches(rows=3, given=given)


@pytest.mark.parametrize("value", [None, 1, True, b"F", []], ids=repr)
def test_given_what_is_no_text(described: Description, value: Any) -> None:
    for column in ("sex", "smoker"):
        with pytest.raises(
            UsageError, match=f"A value of {column} is given as a text, not {type(value).__name__}"
        ):
            described.generate(rows=3, given={column: value})


def test_moments_of_a_release(curator: Curator) -> None:
    release = curator.release("daily")
    release.start()
    for as_of in ("2024-01-05", 20240105, True, [], np.datetime64("2024-01-05")):
        with pytest.raises(
            UsageError, match=f"as_of must be a date or a datetime, not {type(as_of).__name__}"
        ):
            release.run(as_of)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="as_of has a time zone"):
        release.run(datetime(2024, 1, 5, tzinfo=UTC))
    assert release.show().periods == 0
    assert release.run(date(2024, 1, 3)).periods == 2
    assert release.run(datetime(2024, 1, 4, 12)).periods == 3


@pytest.mark.parametrize("name", [None, [], 1])
def test_names_of_releases(curator: Curator, name: object) -> None:
    with pytest.raises(UsageError, match="named by a text"):
        curator.release(name)  # type: ignore[arg-type]
