"""The SQL that reads, of a fine grid, only the cells near a wanted rank, with the ranks that they cover.

Wide cells are counted first; then the rows of those near the wanted rank by narrower cells, and so on. All of it is one
statement that depends on the question alone: where the wanted rank lies is found by the engine and not told.
"""

from __future__ import annotations

from collections.abc import Sequence

from discreet.mechanisms.fine_quantile import FARTHEST, FineQuantile
from discreet.sql import work

COARSE = 1 << 16  # wide cells of all groups together, and narrower ones of one wide cell
FEWEST = 1 << 8  # wide cells of a group, where there are many groups or no telling how many


def nearest(
    rows: str, *, keys: Sequence[str], nullable: Sequence[str], choices: Sequence[FineQuantile], groups: int, read: int
) -> str:
    """Cells of each group that hold rows within the reach of a choice: keys, then k<n> (the cell), s0 (its rows), s1
    (those in cells before it) and s2 (those of the group).

    `rows` is a SELECT of the keys and of p, the cell of each row; a key that may be NULL, as a key, is `nullable`. A
    person has at most `read` rows of it.
    """
    widths, select = _widths(choices[0].cells, groups), work.select(read)
    near = " OR ".join(_within(each) for each in choices)
    listed = "".join(f"{key}, " for key in keys)
    steps = [f"r AS NOT MATERIALIZED ({rows})"]  # read again: faster than to store it
    for index, width in enumerate(widths):
        cell = "p" if width == 1 else f"p // {width}"
        if index == 0:
            counted = f"{select} {listed}{cell} AS b, 0 AS a, 0 AS base, count(*) AS n FROM r GROUP BY ALL"
            total = f"sum(n) OVER ({_partition(keys)})"
        else:
            same = [
                f"r.{key} IS NOT DISTINCT FROM w.{key}" if key in nullable else f"r.{key} = w.{key}" for key in keys
            ]
            joined = " AND ".join([*same, f"r.p // {widths[index - 1]} = w.b"])
            own = "".join(f"r.{key} AS {key}, " for key in keys)
            counted = (
                f"{select} {own}r.{cell} AS b, w.b AS a, w.before AS base, w.total AS total, count(*) AS n "
                f"FROM r JOIN w{index - 1} AS w ON {joined} GROUP BY ALL"
            )
            total = "total"
        before = f"base + sum(n) OVER ({_partition([*keys, 'a'])} ORDER BY b) - n"
        ranked = f"{select} {listed}b, n, {before} AS before, {total} AS total FROM ({counted})"
        steps.append(f"w{index} AS ({select} * FROM ({ranked}) WHERE {near})")
    columns = f"{listed}b AS k{len(keys)}, n AS s0, CAST(before AS BIGINT) AS s1, CAST(total AS BIGINT) AS s2"
    return f"WITH {', '.join(steps)} {select} {columns} FROM w{len(widths) - 1}"


def steps(cells: int, groups: int) -> int:
    """How often the rows are read."""
    return len(_widths(cells, groups))


def _widths(cells: int, groups: int) -> list[int]:
    """Of the cells that are counted at each step, in cells of the finest grid; the last is 1."""
    widths = [-(-cells // max(FEWEST, COARSE // groups))]
    while widths[-1] > 1:
        widths.append(-(-widths[-1] // COARSE))
    return widths


def _within(choice: FineQuantile) -> str:
    """Whether a cell is within the reach; in units of rank / q's denominator, which 128 bits hold."""
    times = choice.q.denominator
    if choice.reach >= FARTHEST:
        return "TRUE"
    wanted = f"({choice.q.numerator} * total + ({choice.shift * times}))"
    reach = choice.reach * times
    return f"({times} * before - {wanted} < {reach} AND {wanted} - {times} * (before + n) < {reach})"


def _partition(keys: Sequence[str]) -> str:
    return f"PARTITION BY {', '.join(keys)}" if keys else ""
