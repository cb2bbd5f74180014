"""S21: keys that are not public are read part by part, in whatever number and length; 32-bit
offsets decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.accounting import accountant
from discreet.algebra import Aggregate, Column, Scan, Sum
from discreet.asking.measure import _add_conditions, _conditions_on_survivors
from discreet.binding import create_ledger
from discreet.budget import Charge, Loss
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.spelling import Spelling
from discreet.mechanisms.currency import currency
from discreet.mechanisms.discrete_laplace import DiscreteLaplace
from discreet.mechanisms.shapes import Keys, Movement
from discreet.policy.policy import Policy
from discreet.sql.plan.block import PASSES
from discreet.vault.allowance import Allowance
from discreet.vault.exact import Exact

MECHANISM = currency("sum").people(
    amount=Fraction(1), max_groups=1, neighbors="add_remove", delta=Fraction(1, 1000)
)
ONE_KEY = Keys(most=1, neighbors="add_remove")
SUM = DiscreteLaplace(scale=Fraction(3), l1=Fraction(3))


def allowed(key: bytes, memory: int | None = None) -> Allowance:
    paid = Charge(amount=Fraction(10), delta=Fraction(1, 10))
    by_sum = accountant("sum", delta=Fraction(1, 10), keys=Fraction(1))
    return Allowance(key=key, accountant=by_sum, paid=paid, memory=memory)


def summed(allowance: Allowance, exact: Exact, survivors: pa.Table) -> list[int]:
    moved = Movement(l1=3, l2_squared=9)
    (numbers,) = allowance.measure(
        SUM, exact, moved=moved, sizes=[], forms=[(1,)], survivors=survivors, keys=[0]
    )
    return numbers.tolist()


def people(count: int) -> pa.Table:
    names = [None if index == 5 else f"key {index % 7} {index}" for index in range(count)]
    return pa.table({"k0": pa.array(names, pa.string()), "s0": pa.array(np.arange(count) % 40)})


def parts(table: pa.Table, rows: int) -> Exact:
    return Exact(table.slice(begin, rows) for begin in range(0, max(1, table.num_rows), rows))


@pytest.mark.parametrize("rows", [1, 7, 64, 1000])
def test_parts_give_what_the_whole_gives(rows: int) -> None:
    """The noise of a key is its own: how many were read at a time changes nothing."""
    key, table = bytes(32), people(200)
    whole, numbers = allowed(key).threshold(MECHANISM, Exact(table), moved=ONE_KEY, keys=1)
    found, same = allowed(key).threshold(MECHANISM, parts(table, rows), moved=ONE_KEY, keys=1)
    assert 10 < found.num_rows < 200
    assert found.to_pylist() == whole.to_pylist()
    assert same.tolist() == numbers.tolist()
    sums = table
    results = []
    for exact in (Exact(sums), parts(sums, rows)):
        allowance = allowed(key)
        kept = allowance.keep(exact, whole, keys=[0])
        assert kept.unwrap().num_rows == whole.num_rows
        results.append(summed(allowance, kept, whole))
    direct = summed(allowed(key), Exact(sums), whole)
    assert results == [direct, direct]


def test_nobody_and_no_key() -> None:
    found, numbers = allowed(bytes(32)).threshold(
        MECHANISM, Exact(people(0)), moved=ONE_KEY, keys=1
    )
    assert found.num_rows == len(numbers) == 0


class Everybody:
    """A threshold that all keys pass, without a draw for any."""

    def loss(self) -> Loss:
        return SUM.loss()

    def hides(self, _moved: Keys) -> bool:
        return True

    def release(self, values: Any, _stream: object, _items: object) -> tuple[Any, Any]:
        return np.arange(len(values)), values


def test_texts_have_wide_offsets() -> None:
    found, _ = allowed(bytes(32)).threshold(MECHANISM, Exact(people(200)), moved=ONE_KEY, keys=1)
    assert found.schema.types == [pa.large_string()]


@pytest.mark.slow
def test_more_than_two_gigabytes_of_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Taken from a column of 32-bit offsets, these would fail at 2 GiB: one key more or less would
    tell.
    """
    monkeypatch.setattr("discreet.vault.unknown.text_items", lambda *_: None)
    letters = "x" * 10_000_000

    def many() -> Iterator[pa.Table]:
        for index in range(22):
            names = pa.array([f"{index:02}{place}{letters}" for place in range(10)])
            yield pa.table({"k0": names, "s0": pa.array([1] * 10)})

    found, _ = allowed(bytes(32)).threshold(Everybody(), Exact(many()), moved=ONE_KEY, keys=1)
    assert found.num_rows == 220
    assert found.nbytes > 2**31


def test_what_is_held_has_a_limit() -> None:
    table = people(200)
    found, _ = allowed(bytes(32), memory=100_000).threshold(
        MECHANISM, parts(table, 10), moved=ONE_KEY, keys=1
    )
    with pytest.raises(MemoryError) as refused:
        allowed(bytes(32), memory=500).threshold(MECHANISM, parts(table, 10), moved=ONE_KEY, keys=1)
    assert not refused.value.args
    with pytest.raises(MemoryError):
        allowed(bytes(32), memory=500).keep(parts(table, 10), found, keys=[0])


POLICY = """\
unit: person
tables:
  visits:
    owner: person_id
    max_rows: 3
    columns:
      person_id: {identifier: true}
      word: {text: true, nullable: true}
      cost: {integer: [0, 10]}
budget: {epsilon: 1000, delta: 1e-3}
limits: {epsilon: 100}
"""


def test_people_are_counted_in_passes_over_the_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every key is in one pass, NULL too, and everybody is counted once for it."""
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY, encoding="utf-8")
    create_ledger(Policy.read(path))
    persons = [person for person in range(300) for _ in range(3)]
    words = [
        None if place % 7 == 0 else f"w{place % 11}" if place % 5 else "same"
        for place in range(900)
    ]
    table = pa.table(
        {"person_id": persons, "word": words, "cost": [place % 11 for place in range(900)]}
    )
    curator = discreet.open(path, tables={"visits": table})
    truth: dict[str | None, set[int]] = {}
    for person, word in zip(persons, words, strict=True):
        truth.setdefault(word, set()).add(person)
    asked = list[str]()
    fetch_parts = DuckDB.fetch_parts
    monkeypatch.setattr(
        DuckDB,
        "fetch_parts",
        lambda self, sql, *rest: asked.append(sql) or fetch_parts(self, sql, *rest),
    )
    for extra in ("", ", SUM(cost) AS c"):
        asked.clear()
        sql = f"SELECT word, COUNT(DISTINCT person_id) AS n{extra} FROM visits GROUP BY word"
        found = curator.ask(sql, analyst="curator", epsilon=100).table.to_pydict()
        assert len(asked) == (PASSES + 1 if extra else PASSES)  # those that survive are named
        assert dict(zip(found["word"], found["n"], strict=True)) == pytest.approx(
            {word: len(people) for word, people in truth.items()}, abs=4
        )
    joined = "SELECT v.word, COUNT(DISTINCT v.person_id) AS n FROM visits v JOIN visits w USING (person_id) GROUP BY 1"
    asked.clear()
    curator.ask(joined, analyst="curator", epsilon=100)
    assert len(asked) == 1  # what must be joined first is joined once


SUMS = Aggregate(Scan("t", "t1"), (Column("t1", "word"), Column("t1", "place")), (Sum(),))
ROWS = pa.table(
    {
        "#owner": [1, 1, 2, 2, 3, 3, 4, 4, 5],
        "word": ["a", "b", "a", None, "it's", "b", "", "z", None],
        "place": [1, 2, 2, 2, 1, None, 3, 3, 1],
    }
)


@pytest.mark.parametrize(
    "left",
    [
        {"k0": ["a", "it's"], "k1": [1, 1]},
        {"k0": ["a", None], "k1": [2, 2]},
        {"k0": ["b", "z"], "k1": [None, 3]},
        {"k0": [None], "k1": [None]},
        {"k0": [], "k1": []},
    ],
    ids=str,
)
def test_surviving_keys_are_named_to_the_engine(left: dict[str, list[Any]]) -> None:
    """Every row of theirs comes, and of others at most those that share a part of a key."""
    survivors = pa.table(
        {"k0": pa.array(left["k0"], pa.large_string()), "k1": pa.array(left["k1"], pa.int64())}
    )
    block = SimpleNamespace(places=SUMS.keys, unknown=(0, 1))
    named = _conditions_on_survivors(block, survivors)  # type: ignore[arg-type]
    assert named is not None
    with duckdb.connect() as connection:
        connection.register("t", ROWS)
        whole, found = (
            connection.sql(Spelling().numbers(query)).fetchall()
            for query in (SUMS, _add_conditions(named, SUMS))
        )
    keys = set(zip(*left.values(), strict=True))
    wanted = {row for row in whole if row[:2] in keys}
    assert wanted <= set(found) <= set(whole)
    assert all(row[0] in left["k0"] and row[1] in left["k1"] for row in found)


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([1.5, 2.5]),
        pa.array([f"key {place}" for place in range(4_001)], pa.large_string()),
        pa.array(["x" * 60_001], pa.large_string()),
        pa.array(["a\x00b"], pa.large_string()),
    ],
    ids=["floats", "too many", "too long", "with NUL"],
)
def test_surviving_keys_that_are_not_named(keys: pa.Array) -> None:
    block = SimpleNamespace(places=SUMS.keys, unknown=(0,))
    assert _conditions_on_survivors(block, pa.table({"k0": keys})) is None  # type: ignore[arg-type]
