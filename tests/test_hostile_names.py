"""Columns that are called as the engine's SQL calls its own: the answers are those of columns with
other names.

GROUP BY k0 means a column of the rows where there is one, and not the key that the SELECT list
calls so.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import discreet
from discreet.binding import create_ledger
from discreet.curator import Curator
from discreet.policy.policy import Policy

POLICY = """
unit: person
tables:
  people:
    owner: who
    max_rows: 3
    columns:
      NUMBER: {integer: [0, 99]}
      TEXT: text
      DAY: {date: [2024-01-01, 2024-01-31]}
      CHOICE: {values: [a, b]}
  listed: {public: true}
budget: {epsilon: 10000000, delta: 1e-6}
limits: {epsilon: 1000000}
analysts: {alice: {epsilon: 10000000}}
"""
PLAIN = ("number", "text", "day", "choice")
HOSTILE = (
    ("k0", "u0", "s0", "c0"),
    ("k1", "s0", "k0", "u1"),
    ("t0", "t1", "t2", "t3"),
    ("g0", "p0", "w0", "n"),
    ("s1", "K0", "U0", "count_all"),
    ("owner", "content", "times", "latest"),
    ("period", "copies", "cells", "COUNT(*)"),
)
QUESTIONS = (
    "SELECT NUMBER // 10 AS x, COUNT(*) AS n FROM people GROUP BY x ORDER BY x",
    "SELECT NUMBER % 2 AS x, CHOICE, COUNT(*) AS n, SUM(NUMBER), AVG(NUMBER) FROM people GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT NUMBER // 50 AS x, MODE(CHOICE) FROM people GROUP BY x ORDER BY x",
    "SELECT LOWER(TEXT) AS x, COUNT(*) AS n, COUNT(DISTINCT who) AS m FROM people GROUP BY x ORDER BY x",
    "SELECT LEFT(TEXT, 1) AS x, NUMBER // 50 AS y, SUM(NUMBER) AS n FROM people GROUP BY x, y ORDER BY x, y",
    "SELECT WEEK(DAY) AS x, COUNT(DISTINCT TEXT) AS n FROM people GROUP BY x ORDER BY x",
    "SELECT x, COUNT(*) AS n FROM (SELECT who, MAX(NUMBER) // 10 AS x FROM people GROUP BY who) AS t "
    "GROUP BY x ORDER BY x",
    "SELECT x, COUNT(*) AS n FROM (SELECT who, CHOICE AS x, ROW_NUMBER() OVER (PARTITION BY who ORDER BY NUMBER, DAY) "
    "AS r FROM people) AS t WHERE r = 1 GROUP BY x ORDER BY x",
    "SELECT listed.CHOICE, people.CHOICE AS other, COUNT(*) AS n FROM people JOIN listed "
    "ON people.NUMBER = listed.NUMBER GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT v.NUMBER // 10 AS x, COUNT(*) AS n FROM people JOIN (VALUES (1), (2), (5), (9)) AS v(NUMBER) "
    "ON v.NUMBER = CASE WHEN people.NUMBER > 50 THEN 2 ELSE 5 END GROUP BY x ORDER BY x",
    "SELECT CHOICE, NUMBER // 50 AS x, COUNT(*) AS total FROM people GROUP BY CUBE (CHOICE, NUMBER // 50) ORDER BY ALL",
)


def named(text: str, names: tuple[str, ...]) -> str:
    for kind, name in zip(("NUMBER", "TEXT", "DAY", "CHOICE"), names, strict=True):
        text = re.sub(rf"\b{kind}\b", f'"{name}"', text)
    return text


def opened(names: tuple[str, ...], path: Path) -> Curator:
    path.write_text(named(POLICY, names), encoding="utf-8")
    create_ledger(Policy.read(path))
    people = range(60)
    days = pa.array([19723 + i * 7 % 31 for i in people], pa.int32()).cast(pa.date32())
    columns = [
        [i * 37 % 100 for i in people],
        [("xX", "Xx", "y")[i % 3] for i in people],
        days,
        ["aab"[i % 3] for i in people],
    ]
    rows = pa.table([[i // 2 for i in people], *columns], ["who", *names])
    listed = pa.table(
        [list(range(0, 100, 3)), ["ab"[i % 2] for i in range(34)]], [names[0], names[3]]
    )
    return discreet.open(path, tables={"people": rows, "listed": listed})


def answers(names: tuple[str, ...], folder: Path) -> list[list[tuple[Any, ...]]]:
    curator = opened(names, folder / "policy.yaml")
    asked = (curator.ask(named(sql, names), analyst="alice", epsilon=100_000) for sql in QUESTIONS)
    return [
        list(zip(*(column.to_pylist() for column in each.table.columns), strict=True))
        for each in asked
    ]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> list[list[tuple[Any, ...]]]:
    return answers(PLAIN, tmp_path_factory.mktemp("plain"))


@pytest.mark.parametrize("names", HOSTILE, ids=" ".join)
def test_names_change_nothing(names: tuple[str, ...], plain: list[Any], tmp_path: Path) -> None:
    for sql, ours, theirs in zip(QUESTIONS, answers(names, tmp_path), plain, strict=True):
        assert ours == theirs, sql
    assert plain[0] == [
        (tens, sum(i * 37 % 100 // 10 == tens for i in range(60))) for tens in range(10)
    ]
