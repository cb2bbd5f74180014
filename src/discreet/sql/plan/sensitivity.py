"""Compute how far one person can move a vector of sums (S3): l0, l1, l2 and linf, for both
relations of neighbors.

A person has at most `rows` rows; every row falls into one of `groups` disjoint groups. Each
function argues its bound: the set of what one person can contribute is convex-hulled by its extreme
points, and a norm is largest on one of them. l2 is kept squared, so that it stays an exact integer.
"""

from __future__ import annotations

from dataclasses import dataclass

from discreet.budget import Neighbors


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The distance by which one person can move a vector of exact sums, by each norm."""

    l0: int
    l1: int
    l2_squared: int
    linf: int


def of_parts(
    *, rows: int, width: int, parts: int, groups: int, neighbors: Neighbors
) -> Sensitivity:
    """Bound sums of `parts` non-negative amounts that make at most `width` in each row; a count is
    the case 1, 1.

    Extreme contributions put all rows' whole width into one cell, so every norm of one person's
    vector is rows * width. Replacing a person moves all of it from one cell to another (l1 twice,
    l2 √2 times that), or, where there is one cell only, in or out of it.
    """
    total, cells = rows * width, parts * groups
    if neighbors == "add_remove":
        return Sensitivity(l0=min(rows * parts, cells), l1=total, l2_squared=total**2, linf=total)
    if cells == 1:
        return Sensitivity(l0=1, l1=total, l2_squared=total**2, linf=total)
    return Sensitivity(
        l0=min(2 * rows * parts, cells), l1=2 * total, l2_squared=2 * total**2, linf=total
    )


def of_sum(*, rows: int, lo: int, hi: int, groups: int, neighbors: Neighbors) -> Sensitivity:
    """Bound a sum per group of values in [lo, hi], where a row may also be absent, which counts as
    0.

    add_remove: rows * max(|lo|, |hi|), and not hi - lo, because the row may be absent.
    change_one: within one cell from rows * min(lo, 0) to rows * max(hi, 0); between two cells, √2
    times the largest in l2. A range on both sides of zero makes the first the larger one: in [-1,
    1] a person can move one cell by 2.
    """
    largest, span = rows * max(abs(lo), abs(hi)), rows * (max(hi, 0) - min(lo, 0))
    if neighbors == "add_remove":
        return Sensitivity(l0=min(rows, groups), l1=largest, l2_squared=largest**2, linf=largest)
    if groups == 1:
        return Sensitivity(l0=1, l1=span, l2_squared=span**2, linf=span)
    return Sensitivity(
        l0=min(2 * rows, groups), l1=2 * largest, l2_squared=max(2 * largest**2, span**2), linf=span
    )


def of_persons(*, touched: int, groups: int, neighbors: Neighbors) -> Sensitivity:
    """Bound distinct people per group: each person adds 1 to every group they are in, at most
    `touched`.
    """
    cells = min(touched if neighbors == "add_remove" else 2 * touched, groups)
    return Sensitivity(l0=cells, l1=cells, l2_squared=cells, linf=1)


def of_distinct(*, rows: int, values: int | None, groups: int, neighbors: Neighbors) -> Sensitivity:
    """Bound distinct values per group, of which there are at most `values`, where that is known.

    A person with a_j rows in group j raises that group's number by at most min(a_j, values), and
    lowers none. So l1 is largest when every row brings a new value; l2 when groups are filled one
    after another up to min(rows, values). change_one: between the two persons' numbers in a group
    lies at most the larger of what each adds to it. The sum of the larger ones, and of their
    squares, is at most that of both persons, and within each group one is the most.
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
