"""Read the counts of a publication, add the noise that was paid for, and arrange the result for
estimates.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from discreet.algebra import Aggregate
from discreet.census.counts import project
from discreet.census.grid import Flags, Integers
from discreet.census.plan import PublicationPlan
from discreet.census.solve.least_squares import Level
from discreet.vault.allowance import Allowance
from discreet.vault.exact import Exact

# by the places of a level and of a table; counts as places by cells
Noisy = dict[tuple[int, int], Integers]


def measure(
    plan: PublicationPlan, allowance: Allowance, fetch: Callable[[Aggregate], Exact]
) -> Noisy:
    """Return noisy counts of every table at every level. Rows are read once; exact counts pass
    through unseen.
    """
    exact = fetch(plan.counted)
    found: Noisy = {}
    for level, row in enumerate(plan.noises):
        for at, noise in enumerate(row):
            if noise is not None:
                maps, sizes = plan.maps(level, plan.grid.tables[at])
                counts = allowance.roll_up(noise, exact, moved=plan.moved, maps=maps, sizes=sizes)
                found[level, at] = counts.reshape(plan.places.sizes[level], -1)
    return found


def levels_of(plan: PublicationPlan, noisy: Noisy) -> list[Level]:
    """Return what was measured, level by level; cells that nobody can be in are zero, whatever was
    drawn.
    """
    starts = [*plan.places.starts, None]
    levels = []
    for level, places in enumerate(plan.places.sizes):
        counts, variances = {}, {}
        for at, noise in enumerate(plan.noises[level]):
            if noise is not None:
                table = plan.grid.tables[at]
                here = noisy[level, at]
                if plan.zeros is not None:
                    here = here * _open(plan, plan.zeros, at).astype(here.dtype)
                counts[table] = here.reshape(places, *plan.grid.shape(table))
                variances[table] = noise.deviation**2
        levels.append(
            Level(
                places=places,
                counts=counts,
                variances=variances,
                totals=plan.totals[level],
                starts=starts[level],
            )
        )
    return levels


def _open(plan: PublicationPlan, zeros: Flags, at: int) -> Flags:
    """Flag the cells of a table that somebody can be in."""
    table = plan.grid.tables[at]
    cells = project(np.arange(len(zeros)), plan.grid, table)
    return np.asarray(np.bincount(cells, weights=~zeros, minlength=plan.grid.cells(table)) > 0)
