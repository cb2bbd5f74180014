"""Measure how far exact statistics differ between neighbors, and compare that with the sensitivity
that a plan claims (S3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from discreet.algebra import Numbers
from discreet.sql.plan.block import PEOPLE, Block
from discreet.sql.plan.picks import Pick

Fetch = Callable[[str, Numbers], pa.Table]
"""Runs a query on a database: takes the database and the query."""
Cells = dict[tuple[Any, ...], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How far a statistic moved between two neighbors, as a part of the claimed sensitivity."""

    statistic: str
    pair: tuple[str, str]
    share: float  # in the norm in which this part is the largest
    norm: str
    least: float  # the part in the norm in which it is the smallest

    @property
    def within(self) -> bool:
        return self.share <= 1


def changes(block: Block, fetch: Fetch, pairs: Sequence[tuple[str, str]]) -> Iterator[Change]:
    """Yield the change of every statistic of a block on every pair of neighbors."""
    for pair in pairs:
        if block.own_statistics:
            tables = [rows_of(fetch(each, block.sums)) for each in pair]
            for statistic in block.own_statistics:
                factors = statistic.over(block.readings)
                moved = movement(*(forms(rows, len(block.keys), factors) for rows in tables))
                claim = statistic.sensitivity
                allowed = {
                    "l0": claim.l0,
                    "l1": claim.l1,
                    "l2 squared": claim.l2_squared,
                    "linf": claim.linf,
                }
                yield _change(statistic.name, pair, norms(moved), allowed)
        touched = block.touched * (2 if block.neighbors == "change_one" else 1)
        if block.threshold_test is not None:
            moved = movement(*(cells(fetch(each, block.people)) for each in pair))
            yield _change(PEOPLE, pair, norms(moved), {"l0": touched, "linf": 1})
        for pick in block.picks:
            moved = movement(*(cells(fetch(each, block.rows_in(pick))) for each in pair))
            yield _change(pick.name, pair, norms(moved), {"l1": rows_moved(block, pick)})


def rows_moved(block: Block, pick: Pick) -> int:
    """Return how many rows of a pick one person can add or remove. No rank score moves by more."""
    return pick.rows * (2 if block.neighbors == "change_one" else 1)


def _change(
    name: str, pair: tuple[str, str], found: dict[str, int], allowed: dict[str, int]
) -> Change:
    shares = {
        norm: found[norm] / most if most else float(found[norm] > 0) * 2
        for norm, most in allowed.items()
    }
    worst = max(shares, key=lambda norm: shares[norm])
    return Change(
        statistic=name, pair=pair, share=shares[worst], norm=worst, least=min(shares.values())
    )


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def forms(rows: Sequence[Sequence[Any]], width: int, factors: Sequence[Sequence[int]]) -> Cells:
    """Return a statistic's exact numbers by group and form. NULL counts as zero."""
    numbers: Cells = {}
    for row in rows:
        values = [int(value or 0) for value in row[width:]]
        for index, form in enumerate(factors):
            products = [factor * value for factor, value in zip(form, values, strict=True)]
            numbers[tuple(row[:width]), index] = sum(products)
    return numbers


def cells(table: pa.Table) -> Cells:
    """Return the counts of a table by key. Its last column has the counts."""
    return {row[:-1]: int(row[-1]) for row in rows_of(table)}


def movement(a: Cells, b: Cells) -> dict[tuple[Any, ...], tuple[int, int]]:
    """Return the numbers that differ, each before and after. A missing number is zero."""
    pairs = {key: (a.get(key, 0), b.get(key, 0)) for key in a.keys() | b.keys()}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def norms(moved: dict[tuple[Any, ...], tuple[int, int]]) -> dict[str, int]:
    far = [abs(before - after) for before, after in moved.values()]
    return {
        "l0": len(far),
        "l1": sum(far),
        "l2 squared": sum(each * each for each in far),
        "linf": max(far, default=0),
    }
