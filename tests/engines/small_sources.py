"""Small policies, and prepared tables as lists of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discreet.engines.duckdb.engine import DuckDB
from discreet.policy.policy import Policy

Rows = list[tuple[Any, ...]]


def policy_of(tables: str, folder: Path) -> Policy:
    """A policy with the given tables (YAML, indented by two) that stands in a folder."""
    text = f"source: data\nunit: person\nbudget: {{epsilon: 1}}\nlimits: {{memory: 500MB}}\ntables:\n{tables}"
    return Policy.parse(text, path=folder / "policy.yaml")


def kept(engine: DuckDB, table: str) -> Rows:
    """A prepared table as a sorted list of rows, the hidden owner first."""
    found = engine.read(f'SELECT * FROM "{table}" ORDER BY ALL', 10)
    return [tuple(row.values()) for row in found.to_pylist()]
