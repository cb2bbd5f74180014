"""Compute how far one person can move a vector of sums (S3): l0, l1, l2 and linf, for both
relations of neighbors.

A person has at most `rows` rows; every row falls into one of `groups` disjoint groups. The docstring
of each function gives the reason for its bound. What one person can add to the sums is a convex
combination of a few extreme vectors, and a norm is largest at one of them. l2 is kept squared, so
that it is an exact integer.
"""

from __future__ import annotations

from dataclasses import dataclass

from discreet.budget import Neighbors


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The most that one person can move a vector of exact sums, by each norm."""

    l0: int
    l1: int
    l2_squared: int
    linf: int


def of_parts(
    *, rows: int, width: int, parts: int, groups: int, neighbors: Neighbors
) -> Sensitivity:
    """Bound the sums of `parts` amounts that are not negative and together at most `width` in each
    row. A count has one part of width 1.

    The extreme person puts the whole width of all rows into one cell, so each norm of one person's
    vector is at most rows * width. Replacing a person moves all of it from one cell to another: l1
    doubles, l2 grows √2 times. If there is only one cell, it moves into or out of that cell.
    """
    total = rows * width
    cells = parts * groups
    if neighbors == "add_remove":
        return Sensitivity(l0=min(rows * parts, cells), l1=total, l2_squared=total**2, linf=total)
    if cells == 1:
        return Sensitivity(l0=1, l1=total, l2_squared=total**2, linf=total)
    return Sensitivity(
        l0=min(2 * rows * parts, cells), l1=2 * total, l2_squared=2 * total**2, linf=total
    )


def of_sum(*, rows: int, lo: int, hi: int, groups: int, neighbors: Neighbors) -> Sensitivity:
    """Bound a sum per group of values in [lo, hi]. A row may also be absent, which counts as 0.

    add_remove: rows * max(|lo|, |hi|), and not rows * (hi - lo), because a row may be absent.
    change_one: one cell moves at most from rows * min(lo, 0) to rows * max(hi, 0); two cells move
    by at most √2 times the largest in l2. The first is larger if the range has zero inside: with
    [-1, 1] one row can move one cell by 2.
    """
    largest = rows * max(abs(lo), abs(hi))
    span = rows * (max(hi, 0) - min(lo, 0))
    if neighbors == "add_remove":
        return Sensitivity(l0=min(rows, groups), l1=largest, l2_squared=largest**2, linf=largest)
    if groups == 1:
        return Sensitivity(l0=1, l1=span, l2_squared=span**2, linf=span)
    return Sensitivity(
        l0=min(2 * rows, groups), l1=2 * largest, l2_squared=max(2 * largest**2, span**2), linf=span
    )


def of_persons(*, touched: int, groups: int, neighbors: Neighbors) -> Sensitivity:
    """Bound the number of people per group: a person adds 1 to each of their groups, at most
    `touched` of them.
    """
    cells = min(touched if neighbors == "add_remove" else 2 * touched, groups)
    return Sensitivity(l0=cells, l1=cells, l2_squared=cells, linf=1)


def of_distinct(*, rows: int, values: int | None, groups: int, neighbors: Neighbors) -> Sensitivity:
    """Bound the number of distinct values per group: at most `values`, or unbounded for None.

    A person with a_j rows in group j raises the number of that group by at most min(a_j, values),
    and lowers none. So l1 is largest if every row brings a new value, and l2 is largest if the rows
    fill one group after another up to min(rows, values). change_one: the number of a group changes
    by at most the larger of what the two persons add to it. Summed over groups, these and their
    squares are at most the sums for both persons.
    """
    most = rows if values is None else min(rows, values)
    full, rest = divmod(rows, most) if most else (0, 0)
    both = 1 if neighbors == "add_remove" else 2
    squares = both * (full * most**2 + rest**2)
    return Sensitivity(
        l0=min(both * rows, groups),
        l1=min(both * rows, groups * most),
        l2_squared=min(squares, groups * most**2),
        linf=most,
    )
