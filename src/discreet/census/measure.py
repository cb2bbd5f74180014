"""Read the counts of a publication, add the noise that was paid for, and arrange the noisy tables
for least squares.
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

# by the numbers of a level and of a table: noisy counts, with a row for each place
Noisy = dict[tuple[int, int], Integers]


def measure(
    plan: PublicationPlan, allowance: Allowance, fetch: Callable[[Aggregate], Exact]
) -> Noisy:
    """Return the noisy counts of every table at every level.

    Privacy: the rows are read once, and the exact counts stay sealed: only the allowance opens
    them.
    """
    exact = fetch(plan.counted)
    noisy: Noisy = {}
    for level, row in enumerate(plan.noises):
        for at, noise in enumerate(row):
            if noise is not None:
                maps, sizes = plan.maps(level, plan.grid.tables[at])
                counts = allowance.roll_up(noise, exact, moved=plan.moved, maps=maps, sizes=sizes)
                noisy[level, at] = counts.reshape(plan.places.sizes[level], -1)
    return noisy


def levels_of(plan: PublicationPlan, noisy: Noisy) -> list[Level]:
    """Return the noisy tables level by level. Cells in which nobody can be are set to zero."""
    starts = [*plan.places.starts, None]
    levels = []
    for level, places in enumerate(plan.places.sizes):
        counts = {}
        variances = {}
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
    """Return a flag for each cell of a table: True if somebody can be in it."""
    table = plan.grid.tables[at]
    cells = project(np.arange(len(zeros)), plan.grid, table)
    return np.asarray(np.bincount(cells, weights=~zeros, minlength=plan.grid.cells(table)) > 0)
