"""Streams: error against theory, ratios to naive releases and to a binary tree, speed and memory, a
year of the town.

python bench/continual.py            minutes; 10^5 of the 10^6 steps, and one month of the town
python bench/continual.py --full     all steps and the whole year
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from datetime import date, timedelta
from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import discreet
from discreet.accounting import accountant
from discreet.accounting.calibrate import gaussian_sigma
from discreet.binding import create_ledger
from discreet.budget import Charge
from discreet.continual.strategies import choose, dense
from discreet.continual.strategies.buffered import Buffered
from discreet.continual.strategies.doubling import Doubling
from discreet.continual.strategies.independent import Independent
from discreet.continual.strategies.strategy import Strategy
from discreet.continual.strategies.tree import BinaryTree, SubtractionTree
from discreet.examples import town
from discreet.mechanisms.discrete_gaussian import DiscreteGaussian
from discreet.mechanisms.shapes import Movement
from discreet.policy.policy import Policy
from discreet.vault.allowance import Allowance
from discreet.vault.exact import Exact

RESULTS = Path(__file__).parent / "results" / "continual.json"
PUBLISH: tuple[Any, ...] = ("daily", "cumulative", 7, 30)


def errors(strategy: Strategy, publish: Any, *, times: int = 1) -> tuple[float, float]:
    """(max, rms) over periods, for l2 sensitivity 1 a period, in units of the noise for l2
    sensitivity 1.
    """
    scale = sqrt(strategy.l2_squared(times=times, apart=1, cells=1, signed=False))
    deviations = strategy.deviations(publish) * scale
    return float(deviations.max()), float(np.sqrt(np.square(deviations).mean()))


def normalised_rms(periods: int) -> tuple[float, float]:
    """Of the column-normalised root of any length, column by column: no matrix is held."""
    series = dense.root_series(periods)
    inverse = series / (1 - 2 * np.arange(periods))  # the series of √(1 - x)
    lengths = np.sqrt(np.cumsum(np.square(series)))[::-1]
    total = np.zeros(periods)
    for period in range(periods):
        total[period:] += np.square(np.cumsum(lengths[period:] * inverse[: periods - period]))
    return float(np.sqrt(total.max())), float(np.sqrt(total.mean()))


def theory() -> dict[str, Any]:
    """Cumulative counts: each strategy beside its closed form."""
    found: dict[str, Any] = {}
    closed = {
        ("independent", 365): (19.1, 13.5),
        ("independent", 10**4): (100.0, 70.7),
        ("independent", 10**6): (1000.0, 707.0),
        ("binary tree", 365): (6.57, 4.69),
        ("binary tree", 10**4): (10.1, 7.1),
        ("binary tree", 10**6): (14.4, 10.3),
        ("buffered", 365): (2.944, 2.782),
        ("buffered", 10**4): (4.00, 3.84),
        ("buffered", 10**6): (5.46, 5.30),
    }
    kinds: dict[str, Any] = {"independent": Independent, "binary tree": BinaryTree}
    for (name, periods), wanted in closed.items():
        strategy = Buffered.fitted(periods) if name == "buffered" else kinds[name](periods=periods)
        found[f"{name} {periods}"] = _beside(errors(strategy, "cumulative"), wanted)
    found["square root 365"] = _beside(errors(dense.square_root(365), "cumulative"), (2.944, 2.782))
    found["column-normalised 365"] = _beside(
        errors(dense.column_normalised(365), "cumulative"), (2.756, 2.668)
    )
    found["column-normalised 10000"] = {
        "max, rms": _round(normalised_rms(10**4)),
        "lower bound on rms": 3.634,
    }
    for periods, wanted in ((365, 10.4), (10**4, 19.2), (10**6, 33.8)):
        tree: Any = (
            choose.pure(periods, ("cumulative",))
            if periods < 10**6
            else SubtractionTree(periods=periods, arity=18, height=5)
        )
        rms = sqrt(2 * float(np.square(tree.deviations("cumulative")).mean())) * tree.l1(times=1)
        found[f"pure, {tree.name} {periods}"] = {"rms": round(rms, 2), "closed form": wanted}
    return found


def _beside(measured: tuple[float, float], wanted: tuple[float, float]) -> dict[str, Any]:
    off = max(abs(a / b - 1) for a, b in zip(measured, wanted, strict=True))
    return {"max, rms": _round(measured), "closed form": wanted, "off by at most": f"{off:.2%}"}


def _round(numbers: tuple[float, ...]) -> list[float]:
    return [round(each, 3) for each in numbers]


def workloads() -> dict[str, Any]:
    """A year of days: every strategy on every kind of sum, and the one that is chosen; then by days
    a person.
    """
    table = {
        strategy.name: [round(choose.rms(strategy, each), 2) for each in PUBLISH]
        for strategy in (
            Independent(periods=365),
            dense.column_normalised(365),
            dense.window_root(365, 7),
            dense.window_root(365, 30),
            BinaryTree(periods=365),
        )
    }
    for publish in (*((each,) for each in PUBLISH), PUBLISH):
        best = choose.gaussian(365, publish, 1, 1, signed=False)
        table[f"chosen for {', '.join(map(str, publish))}: {best.name}"] = [
            round(choose.rms(best, each), 2) for each in PUBLISH
        ]
    persons = {}
    for times in (1, 2, 7, 10, 30):
        root, best = (
            dense.column_normalised(365),
            choose.gaussian(365, ("cumulative",), times, 1, signed=False),
        )
        persons[times] = {
            "root costs": round(
                sqrt(
                    root.l2_squared(times=times, apart=1, cells=1, signed=False)
                    / root.l2_squared(times=1, apart=1, cells=1, signed=False)
                ),
                3,
            ),
            "root, rms of totals": round(choose.rms(root, "cumulative", times=times), 2),
            "chosen": best.name,
            "chosen, rms of totals": round(choose.rms(best, "cumulative", times=times), 2),
        }
    return {"columns": list(map(str, PUBLISH)), "rms": table, "days a person": persons}


def ratios() -> dict[str, Any]:
    """The same ε over a year: totals by a release, by a binary tree, by asking anew every day."""
    found = {}
    release = choose.rms(choose.gaussian(365, ("cumulative",), 1, 1, signed=False), "cumulative")
    plain_tree = sqrt(9 * np.mean([bin(n).count("1") for n in range(1, 366)]))
    found["event-level, Gaussian"] = {
        "release": round(release, 2),
        "binary tree": round(plain_tree, 2),
        "binary tree, best estimate": round(choose.rms(BinaryTree(periods=365), "cumulative"), 2),
        "daily counts, summed": round(choose.rms(Independent(periods=365), "cumulative"), 2),
        "totals asked anew every day": round(sqrt(365), 2),
    }
    tree: Any = choose.pure(365, ("cumulative",))
    found["event-level, pure"] = {
        "release": round(
            sqrt(2 * np.square(tree.deviations("cumulative")).mean()) * tree.l1(times=1), 1
        ),
        "binary tree": round(
            sqrt(2) * 9 * sqrt(np.mean([bin(n).count("1") for n in range(1, 366)])), 1
        ),
        "daily counts, summed": round(sqrt(2 * 183), 1),
        "totals asked anew every day": round(sqrt(2) * 365, 1),
    }
    unknown = Doubling.covering(365)
    found["unknown horizon, Gaussian"] = {
        "release": round(errors(unknown, "cumulative")[1], 2),
        "horizon known": round(release, 2),
    }
    return found


def speed(steps: int, keys: int = 100) -> dict[str, Any]:
    """A stream of 10^6 periods by buffers, through the door, estimates included; and its memory."""
    strategy, rho = Buffered.fitted(10**6), Fraction(1, 100)
    l2_squared = strategy.l2_squared(times=1, apart=1, cells=1, signed=False)
    mechanism = DiscreteGaussian(
        sigma=gaussian_sigma(l2_squared=l2_squared, rho=rho), l2_squared=l2_squared
    )
    zcdp = accountant("zcdp", delta=Fraction(1, 10**9), keys=Fraction(1, 2))
    allowance = Allowance(key=bytes(32), accountant=zcdp, paid=Charge(amount=rho))
    moved = Movement(l1=None, l2_squared=l2_squared)
    stream = allowance.steps(mechanism, strategy.encoder(), moved=moved, sizes=[keys], forms=[(1,)])
    decoder, at_once = strategy.decoder(), 100
    exact = [
        Exact(pa.table({"k0": list(range(keys)), "s0": [step % 7] * keys}))
        for step in range(at_once)
    ]
    began, cpu, memory, errors_found = time.perf_counter(), time.process_time(), 0, 0.0
    truth = np.cumsum([step % 7 for step in range(at_once)])
    for batch in range(steps // at_once):
        for noisy in stream.release(*exact):
            _, totals = decoder.add(noisy)
        wanted = truth[-1] * (batch + 1)
        errors_found += float(np.square(totals - wanted).mean())
        if batch == 20:
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    deviations = strategy.deviations("cumulative")[at_once - 1 : steps : at_once] * float(
        mechanism.sigma
    )
    return {
        "steps x keys": f"{steps} x {keys}",
        "values a second": round(steps * keys / (time.perf_counter() - began)),
        "values a second of one core": round(steps * keys / (time.process_time() - cpu)),
        "memory that came after step 2,000 (KB)": more,
        "error seen / error told": round(
            sqrt(errors_found / (steps // at_once) / np.square(deviations).mean()), 4
        ),
    }


def town_year(days: int) -> dict[str, Any]:
    """The town's visits day by day: some rows a week late, a week missed, the process started anew
    at half-time.
    """
    tables = town.tables(10_000)
    visits = tables["visits"]
    first, began, cpu = date(2024, 1, 1), time.perf_counter(), time.process_time()
    late = pc.equal(pc.bit_wise_and(visits.column("visit_id").cast(pa.int64()), 31), 0)
    known = pc.if_else(late, 7, 0)  # one visit in 32 is entered a week later
    arrived = pc.add(
        pc.days_between(pa.scalar(first), visits.column("day").cast(pa.date32())), known
    )
    with tempfile.TemporaryDirectory() as folder:
        policy = town.build(folder, people=100)
        create_ledger(Policy.read(policy))
        live = dict(tables)
        release = discreet.open(policy, tables=live).release("visits_by_day")
        release.start()
        for day in range(days):
            if 100 <= day < 107 or (days < 100 and 10 <= day < 17):
                continue  # nobody ran it that week
            if day == days // 2:
                release = discreet.open(policy, tables=live).release("visits_by_day")
            live["visits"] = visits.filter(pc.less_equal(arrived, day))
            series = release.run(first + timedelta(day + 1))
        seconds, of_one_core = time.perf_counter() - began, time.process_time() - cpu
        totals = [row for row in series.table.to_pylist() if row["publish"] == "cumulative"]
    return {
        "days": series.periods,
        "seconds": round(seconds, 1),
        "seconds of one core": round(of_one_core, 1),
        "rows a week late": int(pc.sum(late).as_py()),
        "total at the end": f"{totals[-1]['value']:.0f} ± {totals[-1]['margin']:.0f} of {visits.num_rows} visits",
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true")
    full = parser.parse_args().full
    parts = {
        "error against theory": theory,
        "a year": workloads,
        "ratios": ratios,
        "speed": lambda: speed(10**6 if full else 10**5),
        "the town": lambda: town_year(366 if full else 31),
    }
    found = {}
    for title, part in parts.items():
        found[title] = part()
        print(f"== {title}\n{json.dumps(found[title], indent=1, ensure_ascii=False)}", flush=True)
    if full:
        RESULTS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
