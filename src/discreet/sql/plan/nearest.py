"""Which cells of a fine grid are read: those near a wanted rank, in a few steps from wide cells to
the finest.
"""

from __future__ import annotations

from collections.abc import Sequence

from discreet.algebra import Aggregate, Nearest, Rank
from discreet.mechanisms.fine_quantile import FARTHEST
from discreet.mechanisms.shapes import Nearby

COARSE = 1 << 16  # wide cells of all groups together, and narrower ones of one wide cell
FEWEST = 1 << 8  # wide cells of a group, where there are many groups or no telling how many


def nearest(counted: Aggregate, choices: Sequence[Nearby], *, groups: int) -> Nearest:
    """Return the cells of each group that hold rows within the reach of a choice."""
    return Nearest(counted, _widths(choices[0].cells, groups), tuple(map(_rank, choices)))


def _widths(cells: int, groups: int) -> tuple[int, ...]:
    """Return the widths of the cells counted at each step, in cells of the finest grid; the last is
    1.

    Each is a multiple of the next. Privacy: were they not, a narrow cell could lie in two wide
    ones, its rows would be read with both, and one person would count twice.
    """
    widest = -(-cells // max(FEWEST, COARSE // groups))
    steps = 0
    while COARSE ** (steps + 1) <= widest:
        steps += 1
    least = -(-widest // COARSE**steps)
    return tuple(dict.fromkeys([*(least * COARSE**step for step in range(steps, -1, -1)), 1]))


def _rank(choice: Nearby) -> Rank:
    reach = None if choice.reach >= FARTHEST else choice.reach
    return Rank(choice.q.numerator, choice.q.denominator, choice.shift, reach)
