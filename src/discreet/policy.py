"""What the curator declares: whom to protect, what is public, how much may be spent. Read from one YAML file.

A policy is a value; `Policy.read` makes it from a file, or raises one PolicyError with every mistake and its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.budget import AccountantName, Neighbors
from discreet.domain import Column


@dataclass(frozen=True, slots=True, kw_only=True)
class Through:
    """Rows belong to whoever owns the row of `table` with the same value of `on`."""

    table: str
    on: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table as declared. A private table has an owner; a public one has neither owner nor columns."""

    name: str
    public: bool
    owner: str | Through | None
    max_rows: int
    max_groups: int | None
    columns: Mapping[str, Column]


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetTerms:
    """The budget of all analysts together. `keys` is the share of delta that unknown keys may use (S6)."""

    epsilon: Fraction
    delta: Fraction
    accountant: AccountantName
    keys: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one question may take: ε, seconds, bytes of memory, group keys, bytes of text. A deadline hardens (S13)."""

    epsilon: Fraction
    seconds: Fraction
    memory: int
    keys: int
    statement: int
    deadline: Fraction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The part of the budget one analyst may spend."""

    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Everything the curator declared. `digest` is of its meaning: comments, order and paths do not change it."""

    path: Path
    source: Path | str | None  # a str is an address (postgresql://..., spark); None: tables come from Python
    ledger: Path | str
    store: Path
    unit: str
    neighbors: Neighbors
    tables: Mapping[str, Table]
    budget: BudgetTerms
    limits: Limits
    analysts: Mapping[str, Share]
    releases: Mapping[str, Any]
    digest: str
    places: Mapping[tuple[str, ...], tuple[int, int]] = field(repr=False, compare=False, default_factory=dict)

    @classmethod
    def read(cls, path: str | Path) -> Policy:
        """Read and validate a policy file; every mistake at once, each as file:line:column."""
        raise NotImplementedError
