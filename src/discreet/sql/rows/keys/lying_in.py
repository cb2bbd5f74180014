"""Combinations of columns that a declared hierarchy allows: a county lies in one state, so it makes
one pair with it.

Everything is read from the policy and its public tables. Values are codes as a snapshot stores
them: the place in the list of a column's values, or the whole number itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from discreet.policy.domain import Categories, Domain, Integers
from discreet.policy.policy import Policy, Table

MOST_COMBINATIONS = 20_000  # that are listed, those with a NULL included


@dataclass(frozen=True, slots=True, kw_only=True)
class Combinations:
    """The rows that some columns of a table can hold together, as codes; any of them may also be
    NULL.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[int | None, ...], ...]

    @property
    def sql(self) -> str:
        """Return a SELECT of them, one column each."""
        listed = (_list([row[place] for row in self.rows]) for place in range(len(self.columns)))
        return f"SELECT {', '.join(listed)}"


def combinations(
    policy: Policy, public: Mapping[str, pa.Table], table: Table, wanted: Collection[str]
) -> Combinations | None:
    """Return what the first hierarchy with two wanted columns, listed in a public table, allows."""
    for hierarchy in policy.hierarchies.values():
        levels = tuple(level for level in hierarchy.levels if level in wanted)
        domains = [_domain(table, level) for level in levels]
        homes = hierarchy.homes({name: each.column_names for name, each in public.items()})
        if len(levels) < 2 or None in domains or len(homes) != 1:
            continue
        listed = public[homes[0]].select(list(levels)).group_by(list(levels)).aggregate([])
        if listed.num_rows << len(levels) > MOST_COMBINATIONS:
            continue
        codes = [
            _codes(listed.column(level).to_pylist(), domain)
            for level, domain in zip(levels, domains, strict=True)
        ]
        rows = {row for row in zip(*codes, strict=True) if None not in row}
        if rows:
            return Combinations(columns=levels, rows=tuple(sorted(_with_nulls(rows), key=repr)))
    return None


def _domain(table: Table, level: str) -> Categories | Integers | None:
    found: Domain | None = table.columns[level].domain if level in table.columns else None
    return found if isinstance(found, Categories | Integers) else None


def _codes(values: list[Any], domain: Categories | Integers | None) -> list[int | None]:
    """Values of a public table as a snapshot of the private one would store them; NULL for what is
    not declared.
    """
    if isinstance(domain, Categories):
        places = {str(value): place for place, value in enumerate(domain.values)}
        return [None if value is None else places.get(str(value)) for value in values]
    assert domain is not None
    whole = [
        value if isinstance(value, int) and not isinstance(value, bool) else None
        for value in values
    ]
    return [
        value if value is not None and domain.first <= value <= domain.last else None
        for value in whole
    ]


def _with_nulls(rows: set[tuple[int | None, ...]]) -> set[tuple[int | None, ...]]:
    """Return the same, and each with NULL in some of its places: a value that was not declared is
    stored as NULL.
    """
    width = len(next(iter(rows)))
    masks = list(itertools.product((False, True), repeat=width))
    return {
        tuple(None if gone else value for gone, value in zip(mask, row, strict=True))
        for row in rows
        for mask in masks
    }


def _list(codes: list[int | None]) -> str:
    written = ", ".join("NULL" if code is None else str(code) for code in codes)
    return f"unnest(CAST([{written}] AS BIGINT[]))"
