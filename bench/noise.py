"""How fast the exact samplers are beside OpenDP's, and whether a draw's time tells its size.

    python bench/noise.py

OpenDP is installed into a venv of its own under .venvs/ at the first run. Both are measured in turn
in one run, so read the ratios; the seconds are this machine's of today. Exits with 1 if a target is
missed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import numpy as np
from scipy.stats import spearmanr

from discreet.mechanisms import DiscreteGaussian, DiscreteLaplace
from discreet.noise import Items, Stream, discrete_gaussian, discrete_laplace, noisy_max
from discreet.noise.choose import Kind

OPENDP = Path(__file__).parent.parent / ".venvs" / "opendp"
SCALES = [1, 10, 1000, 10**4, 10**9]
DRAWS = 2_000_000
THEIR_DRAWS = 20_000
SINGLE = 100_000
THEIR_SINGLE = 20_000
AIM = {"laplace": 20.0, "gaussian": 10.0}  # million draws a second
CORRELATION = 0.02

Sampler = Callable[[Stream, Items, Fraction], Any]
SAMPLERS: dict[str, Sampler] = {"laplace": discrete_laplace, "gaussian": discrete_gaussian}

THEIRS = """
import json, sys, time
import opendp.prelude as dp
dp.enable_features("contrib")
kind, scale, draws, single = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
integers = dp.vector_domain(dp.atom_domain(T="i64"))
if kind == "laplace":
    sampler = dp.m.make_laplace(integers, dp.l1_distance(T="i64"), scale)
else:
    sampler = dp.m.make_gaussian(integers, dp.l2_distance(T=float), scale)
zeros, best = [0] * draws, 1e9
for _ in range(3):
    start = time.process_time()
    sampler(zeros)
    best = min(best, time.process_time() - start)
seconds, sizes = [], []
for _ in range(single):
    start = time.perf_counter_ns()
    [size] = sampler([0])
    seconds.append(time.perf_counter_ns() - start)
    sizes.append(abs(size))
print(json.dumps({"rate": draws / best, "seconds": seconds, "sizes": sizes}))
"""


def opendp_python() -> Path:
    python = OPENDP / "bin" / "python"
    if not python.exists():
        print(f"Installing OpenDP into {OPENDP} ...", file=sys.stderr)
        venv.create(OPENDP, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "opendp"], check=True)
    return python


def theirs(python: Path, kind: str, scale: int, single: int = 0) -> Any:
    arguments = [str(python), "-c", THEIRS, kind, str(scale), str(THEIR_DRAWS), str(single)]
    measured = subprocess.run(arguments, check=True, capture_output=True, text=True)
    return json.loads(measured.stdout)


def rate(sampler: Sampler, scale: int) -> float:
    stream, items, best = Stream.fresh(), Items.positions(DRAWS), 1e9
    for part in range(5):
        start = time.process_time()
        sampler(stream.derive("part", part), items, Fraction(scale))
        best = min(best, time.process_time() - start)
    return DRAWS / best


def table_milliseconds(kind: str, scale: int) -> float:
    """The first draw at a scale makes its table."""
    start = time.process_time()
    SAMPLERS[kind](
        Stream.fresh(), Items.positions(1), scale + Fraction(1, 1000 + time.time_ns() % 1000)
    )
    return (time.process_time() - start) * 1e3


def correlation(sampler: Sampler, scale: int) -> float:
    """Spearman's, of one draw's time with its size; every draw is a call of its own."""
    stream, seconds, sizes = Stream.fresh(), [], []
    items = [Items.codes(np.array([i])) for i in range(SINGLE)]
    sampler(stream.derive("warm"), items[0], Fraction(scale))
    for item in items:
        start = time.perf_counter_ns()
        [drawn] = sampler(stream, item, Fraction(scale))
        seconds.append(time.perf_counter_ns() - start)
        sizes.append(abs(int(drawn)))
    return float(spearmanr(seconds, sizes).statistic)


def verdict(good: bool, missed: list[str], name: str) -> str:
    if not good:
        missed.append(name)
    return "ok" if good else "MISSED"


def compare_rates(python: Path, missed: list[str]) -> None:
    print(
        f"{'':9}{'scale':>12}{'M draws/s':>12}{'OpenDP':>12}{'ratio':>8}{'wanted':>8}{'table ms':>10}"
    )
    for kind, sampler in SAMPLERS.items():
        for scale in SCALES:
            ours, other = rate(sampler, scale), theirs(python, kind, scale)["rate"]
            wanted = 100 if scale <= 10**4 else 20
            good = ours / other >= wanted and ours / 1e6 >= AIM[kind]
            print(
                f"{kind:9}{scale:12,}{ours / 1e6:12.1f}{other / 1e6:12.3f}{ours / other:8.0f}{wanted:8}"
                f"{table_milliseconds(kind, scale):10.2f}  {verdict(good, missed, f'{kind} {scale}')}"
            )


def compare_times(python: Path, missed: list[str]) -> None:
    print(
        f"\nRank correlation of one draw's time with |noise|, {SINGLE:,} draws (OpenDP: {THEIR_SINGLE:,})"
    )
    for kind, sampler in SAMPLERS.items():
        for scale in (10, 1000):
            ours = correlation(sampler, scale)
            measured = theirs(python, kind, scale, THEIR_SINGLE)
            other = float(spearmanr(measured["seconds"], measured["sizes"]).statistic)
            word = verdict(abs(ours) < CORRELATION, missed, f"timing of {kind} {scale}")
            print(f"{kind:9}{scale:12,}{ours:12.4f}{other:12.4f}  under {CORRELATION}: {word}")


def other_times() -> None:
    print("\nOther")
    scores = np.arange(10**6) % 1000
    for kind in get_args(Kind):
        start = time.process_time()
        noisy_max(Stream.fresh(), scores, unit=Fraction(1, 10), kind=kind)
        print(
            f"one of a million candidates, {kind} noise: {(time.process_time() - start) * 1e3:.0f} ms"
        )
    for scale in (Fraction(10), Fraction(10**9)):
        start = time.process_time()
        DiscreteLaplace(scale=scale, l1=Fraction(1)).margin(0.95)
        middle = time.process_time()
        DiscreteGaussian(sigma=scale, l2_squared=Fraction(1)).margin(0.95)
        end = time.process_time()
        laplace, gaussian = (middle - start) * 1e3, (end - middle) * 1e3
        print(
            f"margin at scale {int(scale):,}: Laplace {laplace:.1f} ms, Gaussian {gaussian:.1f} ms"
        )


def main() -> int:
    missed: list[str] = []
    python = opendp_python()
    compare_rates(python, missed)
    compare_times(python, missed)
    other_times()
    print(f"\n{'All targets met.' if not missed else 'Missed: ' + ', '.join(missed)}")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
