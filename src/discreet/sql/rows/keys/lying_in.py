"""Find the combinations of columns that a declared hierarchy allows: a county lies in one state, so
each county has one pair with a state.

They are read from the policy and its public tables. Values are codes as in a snapshot: the place in
the list of a column's values, or the whole number itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from discreet.policy.domain import Categories, Integers
from discreet.policy.policy import Policy, Table

MOST_COMBINATIONS = 20_000  # the most that are listed, with those that have NULLs


@dataclass(frozen=True, slots=True, kw_only=True)
class Combinations:
    """The combinations of codes that some columns of a table can have, with NULLs."""

    columns: tuple[str, ...]
    rows: tuple[tuple[int | None, ...], ...]

    @property
    def sql(self) -> str:
        """Return a SELECT of the combinations, with a column for each."""
        lists = zip(*self.rows, strict=True)
        return f"SELECT {', '.join(map(_unnest, lists))}"


def combinations(
    policy: Policy, public: Mapping[str, pa.Table], table: Table, columns: Collection[str]
) -> Combinations | None:
    """Return the combinations that a hierarchy allows for some of these columns.

    It is the first hierarchy that has two of them and is listed in one public table; None if there
    is none.
    """
    public_columns = {name: each.column_names for name, each in public.items()}
    for hierarchy in policy.hierarchies.values():
        levels = tuple(level for level in hierarchy.levels if level in columns)
        domains = [_domain(table, level) for level in levels]
        homes = hierarchy.homes(public_columns)
        if len(levels) < 2 or None in domains or len(homes) != 1:
            continue
        distinct = public[homes[0]].select(list(levels)).group_by(list(levels)).aggregate([])
        if distinct.num_rows << len(levels) > MOST_COMBINATIONS:
            continue
        codes = []
        for level, domain in zip(levels, domains, strict=True):
            codes.append(_codes(distinct.column(level).to_pylist(), domain))
        rows = {row for row in zip(*codes, strict=True) if None not in row}
        if rows:
            return Combinations(columns=levels, rows=tuple(sorted(_with_nulls(rows), key=repr)))
    return None


def _domain(table: Table, level: str) -> Categories | Integers | None:
    """Return the domain of a level's column; None if the table has no such column of codes."""
    if level not in table.columns:
        return None
    domain = table.columns[level].domain
    return domain if isinstance(domain, Categories | Integers) else None


def _codes(values: list[Any], domain: Categories | Integers | None) -> list[int | None]:
    """Return values of a public table as the codes of a private column; None for values that are
    not declared.
    """
    if isinstance(domain, Categories):
        places = {str(value): place for place, value in enumerate(domain.values)}
        return [None if value is None else places.get(str(value)) for value in values]
    assert domain is not None
    return [_whole_number(value, domain) for value in values]


def _whole_number(value: Any, domain: Integers) -> int | None:
    """Return a value if it is a whole number of the domain; otherwise None."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if domain.first <= value <= domain.last else None


def _with_nulls(rows: set[tuple[int | None, ...]]) -> set[tuple[int | None, ...]]:
    """Return the rows with NULL in any of their places, because a snapshot stores values that are
    not declared as NULL.
    """
    result: set[tuple[int | None, ...]] = set()
    for row in rows:
        choices = [(value, None) for value in row]
        result.update(itertools.product(*choices))
    return result


def _unnest(codes: Iterable[int | None]) -> str:
    """Return the SQL of a column with these codes."""
    values = ", ".join("NULL" if code is None else str(code) for code in codes)
    return f"unnest(CAST([{values}] AS BIGINT[]))"
