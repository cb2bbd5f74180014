"""What fails on one person's row fails for that row alone: the second wall, with the first one
switched off.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import discreet
from discreet.algebra import OWNER, Cast, Column, Exists, Fold, Over, Scan, call
from discreet.binding import create_ledger
from discreet.curator import Curator
from discreet.engines.spelling import Spelling
from discreet.policy.policy import Policy
from discreet.sql.values import numbers
from discreet.sql.values import value as values
from small_town import POLICY, town

# a factor of about 1 that no number of the engine holds
BIG = "* 1000000007" * 40 + " / 1000000009" * 40


@contextmanager
def opened(folder: Path, *, victim: bool) -> Iterator[Curator]:
    text = POLICY.replace("NEIGHBORS", "add_remove").replace("ACCOUNTANT", "sum")
    policy = Policy.parse(text, path=folder / "town.yaml")
    create_ledger(policy)
    yield Curator(policy, tables=town(victim=victim))


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT SUM(SQRT(age {BIG})) FROM people WHERE zip = '9'",
        f"SELECT COUNT(*) FROM people WHERE SQRT(age {BIG}) > 3 AND zip = '9'",
        f"SELECT SQRT(age {BIG}) > 3 AS old, COUNT(*) FROM people WHERE zip = '9' GROUP BY old",
        f"SELECT COUNT(*) FROM people p JOIN visits v ON p.person_id = v.person_id AND SQRT(age {BIG}) > 3 "
        "WHERE zip = '9'",
        f"SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM people p WHERE p.person_id = v.person_id "
        f"AND p.zip = '9' AND SQRT(p.age {BIG}) > 3)",
        f"SELECT AVG(x) FROM (SELECT person_id, MAX(SQRT(age {BIG})) AS x FROM people WHERE zip = '9' "
        "GROUP BY person_id) AS t",
        f"SELECT SUM(x) FROM (SELECT person_id, SUM(SQRT(age {BIG})) OVER (PARTITION BY person_id) AS x FROM people "
        "WHERE zip = '9') AS t",
        f"SELECT MEDIAN(SQRT(age {BIG})) FROM people WHERE zip = '9'",
        f"SELECT CORR(SQRT(age {BIG}), age) FROM people WHERE zip = '9'",
        f"SELECT COUNT(*) FROM people WHERE zip = '9' AND SQRT(age {BIG}) > 3 AND zip <> ' OVER (SELECT /*try*/(1)'",
    ],
)
def test_a_row_that_fails_does_not_stop_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    """Only she is 9: were her row an error, the status would tell that she is there."""
    with (
        opened(tmp_path, victim=True) as curator,
        pytest.raises(discreet.Rejected, match="too large"),
    ):
        curator.ask(sql, analyst="alice", epsilon=1)
    monkeypatch.setattr(numbers, "check_step", lambda step, node: None)
    monkeypatch.setattr(values, "MOST_STEP", 10**1000)
    for victim in (True, False):
        (tmp_path / str(victim)).mkdir()
        with opened(tmp_path / str(victim), victim=victim) as curator:
            assert curator.ask(sql, analyst="alice", epsilon=1).table.num_rows


def test_others_are_counted_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every row fails all of them are NULL; where only hers does, the others are what they
    were.
    """
    monkeypatch.setattr(numbers, "real_function", _fails_above(100))
    with opened(tmp_path, victim=True) as curator:
        found = curator.ask(
            "SELECT SUM(SQRT(age)) AS s, COUNT(SQRT(age)) AS n FROM people",
            analyst="alice",
            epsilon=100,
        )
    assert found.table.to_pylist()[0]["n"] == pytest.approx(59, abs=2)
    assert found.table.to_pylist()[0]["s"] == pytest.approx(
        sum(20 + i for i in range(60) if i != 7), abs=20
    )


def _fails_above(most: int) -> object:
    """A function that the engine cannot compute of large numbers: as if it did something else than
    we think.
    """

    def broken(value: values.Value, *rest: object, **options: object) -> values.Value:
        failing = Cast(Cast(value.expression + (127 - most), "TINYINT"), "BIGINT") - (127 - most)
        return values.Value(expression=failing, domain=value.domain)

    return broken


def test_only_what_looks_at_one_row_is_tried() -> None:
    age, person = Column("t", "age"), Column("t", OWNER)
    assert values.careful(age) == age
    looked = call("sqrt", age)
    assert Spelling(careful=True).expression(values.careful(looked)) == 'TRY(sqrt(t."age"))'
    assert Spelling().expression(values.careful(looked)) == 'sqrt(t."age")'
    for several in (Over(Fold("sum", (age,)), person), Exists(Scan("people", "u"), person, ())):
        assert values.careful(several) == several
        assert values.careful(call("NOT", several)) == call("NOT", several)
