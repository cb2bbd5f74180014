"""Small tables, and answers by definition."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from discreet.anonymity.guarantee import Guarantee
from discreet.anonymity.recoding.lattice import RowGroups
from discreet.anonymity.source import Groups, encode

PATIENTS = """
asian 2000-09-27 female divorced hypertension
asian 2000-09-30 female divorced obesity
asian 2000-04-18 male married chest-pain
asian 2000-04-15 male married obesity
black 1999-03-13 male married hypertension
black 1999-03-18 male married shortness-of-breath
black 2000-09-13 female married shortness-of-breath
black 2000-09-07 female married obesity
white 2001-05-14 male single chest-pain
white 2001-04-08 male single obesity
white 2001-09-15 female married shortness-of-breath
"""


def patients() -> pa.Table:
    """The lectures' eleven patients."""
    rows = [line.split() for line in PATIENTS.strip().splitlines()]
    return pa.table(
        {
            "race": [row[0] for row in rows],
            "born": [datetime.date.fromisoformat(row[1]) for row in rows],
            "sex": [row[2] for row in rows],
            "marital status": [row[3] for row in rows],
            "health issue": [row[4] for row in rows],
        }
    )


@st.composite
def people(draw: st.DrawFn, *, least: int = 4, most: int = 14) -> pa.Table:
    """A handful of people: ages, codes, categories with nulls, and a secret."""
    rows = draw(st.integers(least, most))

    def column(values: st.SearchStrategy[object]) -> list[object]:
        return draw(st.lists(values, min_size=rows, max_size=rows))

    return pa.table(
        {
            "age": pa.array(column(st.integers(18, 45)), pa.int64()),
            "zip": pa.array(
                column(st.sampled_from(["02138", "02139", "02141", "10001"])), pa.string()
            ),
            "job": pa.array(
                column(st.sampled_from(["self-a", "self-b", "nurse", None])), pa.string()
            ),
            "ill": pa.array(column(st.sampled_from(["flu", "cold", "none"])), pa.string()),
        }
    )


def groups_of(table: pa.Table, columns: Sequence[str]) -> Groups:
    """What `Source.groups` finds, without an engine."""
    encoded = [encode(table.column(name)) for name in columns]
    found, counts = np.unique(np.stack([codes for _, codes in encoded]), axis=1, return_counts=True)
    return Groups(
        columns=tuple(columns),
        values=tuple(v for v, _ in encoded),
        codes=tuple(found),
        counts=counts,
    )


def optimum(table: RowGroups, guarantee: Guarantee) -> float:
    """The least average cost of any partition into classes with the guarantee, each at its tightest
    levels.

    By all subsets of the rows; equal rows may part.
    """
    rows = np.repeat(np.arange(len(table)), table.counts)
    n = len(rows)
    price = {}
    for mask in range(1, 2**n):
        members = rows[[i for i in range(n) if mask >> i & 1]]
        part = table.select(members)
        one = replace(part, counts=np.ones(len(part), dtype=np.int64))
        if one.good(guarantee, np.zeros(len(one), dtype=np.int64), 1)[0]:
            price[mask] = float(one.cost(tightest(one)).sum())
    best = {0: 0.0}
    for mask in range(1, 2**n):
        lowest = mask & -mask
        part = mask
        least = np.inf
        while part:
            if part & lowest and part in price and mask ^ part in best:
                least = min(least, price[part] + best[mask ^ part])
            part = (part - 1) & mask
        if np.isfinite(least):
            best[mask] = least
    return best[2**n - 1] / n


def tightest(part: RowGroups) -> list[int]:
    """The lowest levels on which all rows look alike."""
    found = []
    for codes, nodes in zip(part.codes, part.nodes, strict=True):
        found.append(
            next(level for level, each in enumerate(nodes) if len(set(each[codes].tolist())) == 1)
        )
    return found


def every_vector(heights: Sequence[int]) -> Iterable[tuple[int, ...]]:
    return product(*(range(height + 1) for height in heights))
