"""The engines that the battery holds against DuckDB. To add one: a line in ENGINES, and how a test
gets at it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from discreet.algebra import Aggregate, Column, Numbers, Scan, Sum
from discreet.engines.engine import Engine, Store
from discreet.engines.layout import KEY, OWNER
from discreet.engines.stores import store_of
from discreet.policy.engine import EngineChoice
from discreet.policy.policy import Policy

# An engine's name, and the fixture of conftest.py that gives an EngineChoice with nothing in it
# yet.
ENGINES: dict[str, str] = {
    "duckdb": "embedded",
    "postgres": "database",
    "spark": "cluster",
    "a real spark": "real_cluster",
}
SLOW = ("a real spark",)  # a driver and two executors: `make slow`
OTHERS = [
    pytest.param(name, marks=pytest.mark.slow if name in SLOW else ())
    for name in ENGINES
    if name != "duckdb"
]
_ORDER = "00112233445566aa\n"  # the key that decides which rows are kept: the same for all


def choice_of(name: str, request: pytest.FixtureRequest) -> EngineChoice:
    fresh: Callable[[], EngineChoice] = request.getfixturevalue(ENGINES[name])
    return fresh()


def store_on(policy: Policy, choice: EngineChoice, folder: Path) -> Store:
    """A store of the policy's snapshots on an engine, with the order's key of all others."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / KEY).write_text(_ORDER)
    return store_of(replace(policy, engine=choice, store=folder))


@contextmanager
def opened(
    policy: Policy, choice: EngineChoice, folder: Path, tables: dict[str, Any]
) -> Iterator[Engine]:
    """The engine on a snapshot of these tables."""
    store = store_on(policy, choice, folder)
    store.build(1, tables)
    engine = store.open(1)
    try:
        yield engine
    finally:
        engine.close()


def rows_of(engine: Engine, query: Numbers, seconds: float = 60) -> Counter[tuple[Any, ...]]:
    """What an engine reads, however often: whole numbers as Python has them, whatever they came
    in.
    """
    table = engine.fetch(query, seconds).unwrap()
    return Counter(tuple(map(_plain, row.values())) for row in table.to_pylist())


def _plain(value: Any) -> Any:
    return int(value) if not isinstance(value, str | bool) and hasattr(value, "__int__") else value


def all_rows(engine: Engine, policy: Policy, table: str) -> Counter[tuple[Any, ...]]:
    """Every row of a private table with its owner, and how many are alike."""
    columns = [OWNER, *policy.tables[table].columns]
    keys = tuple(Column("t", each) for each in columns)
    return rows_of(engine, Aggregate(Scan(table, "t"), keys, (Sum(),)))
