"""Publications of a generated country: errors beside three other ways, the census's own measures,
time and memory.

    python bench/census.py [--people 1000000] [--country NAME] [--only-time] [--jobs 2]

The redistricting histogram (8 x 2 x 2 x 63), six levels, the shares that the 2020 census gave its
levels, ρ = 2.56 and δ = 1e-10; the ten tables of a level get equal shares, as in its published
configuration. Errors are from one run:

    independent    every table as it was measured
    top-down       after the published description: level by level, each from its own measurements
                   and what its parent got; totals first, then all cells by non-negative least
                   squares; then rounded
    least squares  over all levels and tables, fractions and numbers below zero allowed
    ours           what a publication gives
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

import discreet
from discreet.accounting.zcdp import epsilon_of
from discreet.binding import create_ledger
from discreet.census.counts import Counts
from discreet.census.errors import make_whole
from discreet.census.grid import Floats, Grid, Integers
from discreet.census.measure import levels_of
from discreet.census.plan import PublicationPlan
from discreet.census.solve.least_squares import Alone, Level, by_table, down, from_below
from discreet.census.solve.top_down import Split
from discreet.census.solve.whole import at_the_top
from discreet.census.workers import Workers

SHARES = {"all": 104, "state": 1440, "county": 447, "tract": 687, "block_group": 1256, "block": 165}
TABLES = (
    "[[], [race], [hispanic], [adult], [living], [hispanic, race], [adult, race], [adult, hispanic], "
    "[adult, hispanic, race], [living, adult, hispanic, race]]"
)
SHOWN = ("total", "race", "living", "adult_hispanic_race", "living_adult_hispanic_race")
_ROUNDS = 100  # of ADMM; after 30 the totals of blocks are still a quarter too far off
RHO, DELTA = Fraction("2.56"), Fraction("1e-10")


def policy(folder: Path, people: int, name: str = "") -> Path:
    """The country with the publication of the 2020 redistricting data."""
    path = folder / "country.yaml"
    build = f"from discreet import country; country.build({str(folder)!r}, {people}, name={name!r})"
    # apart: its memory is not the publication's
    subprocess.run([sys.executable, "-c", build], check=True)
    epsilon = float(epsilon_of(rho=RHO, delta=DELTA))
    text = path.read_text(encoding="utf-8")
    begin, end = text.index("    tables: [[]"), text.index("    zeros:")
    split = ", ".join(f"{level}: {share}" for level, share in SHARES.items())
    tables = ", ".join(f"{name}: 1" for name in _names())
    text = (
        text[:begin]
        + f"    tables: {TABLES}\n    epsilon: {epsilon:.6f}\n"
        + f"    split: {{levels: {{{split}}}, tables: {{{tables}}}}}\n"
        + text[end:]
        .replace("budget: {epsilon: 8", "budget: {epsilon: 100")
        .replace("memory: 4GB", "memory: 12GB")
    )
    path.write_text(text, encoding="utf-8")
    return path


def _names() -> list[str]:
    return ["_".join(each.split(", ")) if each else "total" for each in TABLES[2:-2].split("], [")]


# --- the published description, plainly -----------------------------------------------------------


def described(levels: list[Level], plan: PublicationPlan) -> list[Counts]:
    """From the top down: every level by its own measurements, within its parents' numbers."""
    grid = plan.grid
    own = from_below(levels, grid, alone=True)
    found = [at_the_top(by_table(levels, grid, alone=True)[0], grid, None, plan.zeros)]
    for above, begins, estimate, level in zip(
        levels, plan.places.starts, own[1:], levels[1:], strict=False
    ):
        parents = found[-1].table(grid, grid.every, above.places).astype(np.float64)
        solved = np.empty((level.places, *grid.sizes))
        ends = np.append(begins[1:], level.places)
        first, most = 0, max(1, (1 << 22) // grid.cells(grid.every))
        while first < len(begins):
            last = max(first + 1, int(np.searchsorted(ends, begins[first] + most, side="right")))
            span = slice(int(begins[first]), int(ends[last - 1]))
            precisions = {part: float(each[0]) for part, each in estimate.precisions.items()}
            solved[span] = _solve(
                estimate.of(grid.every)[span],
                parents[first:last],
                begins[first:last] - begins[first],
                precisions,
                grid,
            )
            first = last
        flat = solved.reshape(level.places, -1)
        target = Alone(counts={grid.every: flat}, variances={grid.every: np.ones(level.places)})
        split = Split(
            grid=Grid(sizes=grid.sizes, tables=(grid.every,)), plain=True, workers=Workers()
        )
        found.append(split.next_level(found[-1], target, begins, None))
    return found


def _solve(
    wished: Floats,
    parents: Floats,
    begins: Integers,
    precisions: dict[tuple[int, ...], float],
    grid: Grid,
) -> Floats:
    """Non-negative least squares of children within their parents: totals first and kept, then all
    cells (ADMM).
    """
    children = np.diff(np.append(begins, len(wished)))
    totals = wished.reshape(len(wished), -1).sum(axis=1)
    wanted = parents.reshape(len(parents), -1).sum(axis=1)
    totals = _nearest(totals, np.repeat(np.arange(len(parents)), children), wanted)
    scaled = {
        part: precision * grid.cells(grid.every) / grid.cells(part)
        for part, precision in precisions.items()
    }
    step = float(np.median(list(scaled.values())))
    open_ = np.repeat(parents > 0, children, axis=0)
    wished, parents = wished.astype(np.float32), parents.astype(np.float32)
    x = z = np.where(open_, np.maximum(wished, 0), np.float32(0))
    u = np.zeros_like(x)
    weigh = {part: weight / (weight + step) for part, weight in scaled.items()}
    for _ in range(_ROUNDS):
        x = z - u + _weighed(wished - (z - u), weigh, grid)
        gap = (totals - x.reshape(len(x), -1).sum(axis=1)) / grid.cells(grid.every)
        x += gap.reshape(-1, *[1] * len(grid.sizes)).astype(np.float32)
        number = children.reshape(-1, *[1] * len(grid.sizes)).astype(np.float32)
        x -= np.repeat((np.add.reduceat(x, begins, axis=0) - parents) / number, children, axis=0)
        z = np.where(open_, np.maximum(x + u, np.float32(0)), np.float32(0))
        u += x - z
    return z


def _weighed(values: Floats, weights: dict[tuple[int, ...], float], grid: Grid) -> Floats:
    """The sum of a table's parts, each times its weight."""

    def along(here: Floats, axis: int, part: tuple[int, ...]) -> Floats:
        if axis == len(grid.sizes):
            return here * np.float32(weights[part])
        mean = here.mean(axis=axis + 1, keepdims=True)
        return along(mean, axis + 1, part) + along(here - mean, axis + 1, (*part, axis))

    return along(values, 0, ())


def _nearest(wished: Floats, group: Integers, wanted: Floats) -> Floats:
    """The nearest numbers, none below zero, that add up to `wanted` in each group."""
    low, high = np.full(len(wanted), -1e9), np.full(len(wanted), 1e9)
    for _ in range(80):
        middle = (low + high) / 2
        total = np.bincount(group, weights=np.maximum(wished - middle[group], 0))
        low, high = np.where(total > wanted, middle, low), np.where(total > wanted, high, middle)
    return np.maximum(wished - high[group], 0)


# --- the comparison -------------------------------------------------------------------------------


def exact_counts(folder: Path, plan: PublicationPlan) -> list[Counts]:
    """The truth, which a benchmark of a generated country may look at."""
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "data" / "people.parquet")
    names = {name: place for place, name in enumerate(plan.places.names[-1])}
    block = np.array([names[each] for each in table.column("block").to_pylist()])
    cell = np.zeros(len(block), dtype=np.int64)
    for axis in plan.axes:
        cell = cell * axis.size + axis.codes(table.column(axis.name))
    size = plan.grid.cells(plan.grid.every)
    keys, counts = np.unique(block * size + cell, return_counts=True)
    finest = Counts(place=keys // size, cell=keys % size, count=counts)
    return [
        Counts(place=plan.places.above(level)[finest.place], cell=finest.cell, count=finest.count)
        for level in range(len(plan.places.levels))
    ]


def compare(people: int, name: str, *, only_time: bool, jobs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = policy(Path(folder), people, name)
        create_ledger(discreet.Policy.read(path))
        began = time.monotonic()
        curator = discreet.open(path)
        print(f"{people:,} people: snapshot {time.monotonic() - began:.1f} s")
        began, used, built = time.monotonic(), time.process_time(), _of_children()
        run = curator.publication("census_2030")
        published = run.run(jobs=jobs)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        spent = float(run.plan.cost.amount)
        took = f"{time.monotonic() - began:.1f} s ({time.process_time() - used:.1f} s of CPU"
        took += f", {_of_children() - built:.1f} s in {jobs} workers)" if jobs > 1 else ")"
        print(f"published in {took}, {memory:.2f} GB at most; ρ = {spent:.4f}", flush=True)
        print(f"stored {len(published.to_bytes()) / 1e6:.1f} MB; places {run.plan.places.sizes}")
        if not only_time:
            report(run.plan, published.noisy, exact_counts(Path(folder), run.plan))


def _of_children() -> float:
    """Seconds of CPU of processes that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def report(
    plan: PublicationPlan, noisy: dict[tuple[int, int], Integers], truth: list[Counts]
) -> None:
    grid, sizes = plan.grid, plan.places.sizes
    levels = levels_of(plan, noisy)
    began = time.monotonic()
    ours = make_whole(plan, noisy)
    print(f"whole numbers alone: {time.monotonic() - began:.1f} s")
    began = time.monotonic()
    plain = described(levels, plan)
    print(f"the plain top-down: {time.monotonic() - began:.1f} s")
    estimates = down(from_below(levels, grid), levels, grid)
    ratios: list[list[float]] = [[] for _ in sizes]
    print(f"{'sum of errors a place':28}" + "".join(f"{level:>13}" for level in plan.places.levels))
    for at, table in enumerate(grid.tables):
        errors: dict[str, list[float]] = {
            name: [] for name in ("independent", "top-down", "least squares", "ours")
        }
        for level, places in enumerate(sizes):
            exact = truth[level].table(grid, table, places).reshape(places, -1)
            ways = {
                "independent": noisy[level, at],
                "top-down": plain[level].table(grid, table, places).reshape(places, -1),
                "least squares": estimates[level].of(table).reshape(places, -1),
                "ours": ours[level].table(grid, table, places).reshape(places, -1),
            }
            for name, counts in ways.items():
                errors[name].append(float(np.abs(counts - exact).sum(axis=1).mean()))
            ratios[level].append(errors["ours"][-1] / max(errors["top-down"][-1], 0.5))
        if plan.names[at] in SHOWN:
            print(plan.names[at])
            for name, found in errors.items():
                print(f"  {name:26}" + "".join(f"{each:13,.2f}" for each in found))
    means = [float(np.mean(each)) for each in ratios]
    print(
        f"{'ours / top-down, all tables':28}"
        + "".join(f"{each:13.2f}" for each in means)
        + f"  mean {np.mean(means):.2f}"
    )
    for name, found in (("ours", ours), ("top-down", plain)):
        measures(name, plan, found, truth)


def measures(name: str, plan: PublicationPlan, found: list[Counts], truth: list[Counts]) -> None:
    """The census's own: the largest group's share within 5 points, and how far places of 2,500
    people move.
    """
    race = next(
        table for table, each in zip(plan.grid.tables, plan.names, strict=True) if each == "race"
    )
    for level in range(3, len(plan.places.levels)):
        size = plan.places.sizes[level]
        exact, counted = (each[level].table(plan.grid, race, size) for each in (truth, found))
        total, now = exact.sum(axis=1), counted.sum(axis=1)
        large = total >= 500
        group = exact.argmax(axis=1)
        places = np.arange(size)
        apart = exact[places, group] / np.maximum(total, 1) - counted[places, group] / np.maximum(
            now, 1
        )
        moved = (now - total)[(total >= 2000) & (total <= 3000)]
        ends = np.quantile(moved, [0.05, 0.95]) if len(moved) else [np.nan, np.nan]
        near = 100 * (np.abs(apart[large]) <= 0.05).mean()
        print(
            f"{name}, {plan.places.levels[level]}: largest group within 5 points in {near:.1f} % of {large.sum():,} "
            f"places of 500 or more; {len(moved)} places of about 2,500 move by {ends[0]:+.0f} to {ends[1]:+.0f} (90 %)"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--country", default="", help="its name; another name is another country")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only-time", action="store_true", help="compare nothing")
    given = parser.parse_args()
    compare(given.people, given.country, only_time=given.only_time, jobs=given.jobs)
