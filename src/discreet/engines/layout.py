"""The layout of a snapshot, for the modules that write it, check it, ask it and take it apart.

A snapshot is one DuckDB file. Private tables stand under their own names in `main`: the hidden
column OWNER first, then the columns that the policy declares, in its order, each in one of the
types of its domain; every row has an owner, and nobody has more than max_rows rows. Public tables
stand in a schema of their own, as they are. In the store's folder:

1.duckdb, 2.duckdb, ...   the snapshots; a file under its number is whole and never changes
1.json, 2.json, ...       when each was made, for which policy, and what was found on the way: for
                          the curator alone
order.key                 drawn once; decides, with a row's content, which rows of a person are kept
                          (S4)
lock, .building*          a snapshot in the making; what a crash leaves behind is cleared by the
                          next
.live-*                   a live source, prepared for one step of a release; gone when it is done
"""

from __future__ import annotations

from pathlib import Path

from discreet.algebra import OWNER as OWNER
from discreet.engines.quoting import name
from discreet.policy.domain import (
    Booleans,
    Categories,
    Dates,
    Decimals,
    Domain,
    Identifier,
    Integers,
    Texts,
    Timestamps,
)
from discreet.policy.policy import Table

PUBLIC = "public_tables"  # the schema of the public ones
SCHEMAS = ("main", PUBLIC)
# of making snapshots: 2 since rows are a fair sample, texts are bounded and the finished file is
# checked
RULES = 2
KEY = "order.key"
LOCK = "lock"
BUILDING = ".building"
LIVE = ".live-"
_SUFFIX = ".duckdb"
_SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_CODES = ("UTINYINT", "USMALLINT", "UINTEGER")


def private(table: str) -> str:
    """Return the place of a private table in its snapshot."""
    return f"main.{name(table)}"


def public(table: str) -> str:
    """Return the place of a public table in its snapshot."""
    return f"{PUBLIC}.{name(table)}"


def snapshot_columns(table: Table) -> list[str]:
    """Return a private table's columns, in their order."""
    return [OWNER, *table.columns]


def types_of(domain: Domain) -> tuple[str, ...]:
    """Return the types that a domain may be stored in."""
    match domain:
        case Integers() | Decimals():  # in steps
            return _SIGNED
        case Categories():  # by place in the policy's list
            return _CODES
        case Booleans():
            return ("BOOLEAN",)
        case Dates():
            return ("DATE",)
        case Timestamps():
            return ("TIMESTAMP",)
        case Texts():
            return ("VARCHAR",)
        case Identifier():
            return ("BIGINT", "HUGEINT", "UUID", "VARCHAR")


def snapshot_file(store: Path, number: int) -> Path:
    return store / f"{number}{_SUFFIX}"


def notes_file(store: Path, number: int) -> Path:
    return store / f"{number}.json"


def numbers_in(store: Path) -> list[int]:
    """Return the numbers of a store's snapshots, ascending; reads no notes, which may be
    damaged.
    """
    return sorted(int(file.stem) for file in store.glob(f"*{_SUFFIX}") if file.stem.isdecimal())


def building_file(store: Path, suffix: str = _SUFFIX) -> Path:
    """Return the path of a file of the snapshot in the making."""
    return store / f"{BUILDING}{suffix}"
