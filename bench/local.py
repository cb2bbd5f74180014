"""Local protocols beside pure-ldp and multi-freq-ldpy, in one run: a million respondents, 1,000
values, epsilon 1.

    python bench/local.py [--full] [--peers none] [--only WORD]

Client and server together, each respondent drawing coins of their own, in seconds of processor
time, so that what else the machine does is not counted. Peers run in environments of their own
under .venvs, made at the first run and pinned so that they import. A peer that needs minutes is
given fewer respondents, and its time is scaled up (marked ~); --full gives it all of them. Errors
are n times the mean squared error; `formula` is what theory says, ours the mean of a few runs with
as many respondents as the peer had. pure-ldp gives plain estimates, which are compared with ours;
multi-freq-ldpy cuts negative ones and rescales, which is compared with our consistent ones. Exits
with 1 if a target is missed; the rows go to bench/results/local.json too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import string
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from discreet import local
from discreet.local.question import submission
from discreet.local.survey import from_text
from discreet.noise import bits
from discreet.policy.domain import Integers

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "bench" / "results"
N, D, EPSILON = 1_000_000, 1000, 1
MOST_SECONDS, TIMES = 2.0, 10.0
LEAST_RATE = 10_000  # reports a second that the collector takes
SURVEY = (
    "survey: bench\nepsilon: 2\nquestions:\n  q: {ask: Yes or no?, values: [no, yes], epsilon: 1}\n"
)
RUNS = 3  # of ours, for the error
# a peer's error is one draw of it: 1,000 values, so within 20 % in all but 10^-9 of runs
NOISE = 1.2

_DECLARED = ["numpy==1.26.4", "xxhash==3.8.2"]  # the last that both peers run with
_UNDECLARED = [
    "bitarray",
    "bitstring",
    "matplotlib",
    "pandas",
    "scikit-learn",
    "scipy",
    "seaborn",
    "statsmodels",
]
PINS = {
    "pure-ldp": ["pure-ldp==1.2.0", *_DECLARED, *_UNDECLARED],
    "multi-freq-ldpy": ["multi-freq-ldpy==0.2.5", *_DECLARED, "numba"],
}
# Which respondents a peer gets unless --full is said: all, or few enough for some seconds.
PEERS = {
    "kary": {"pure-ldp": N, "multi-freq-ldpy": N},
    "symmetric_unary": {"pure-ldp": 50_000, "multi-freq-ldpy": 50_000},
    "optimized_unary": {"pure-ldp": 50_000, "multi-freq-ldpy": 50_000},
    "local_hashing": {"pure-ldp": 5_000, "multi-freq-ldpy": 5_000, "pure-ldp (fast)": N},
    "subset_selection": {"multi-freq-ldpy": 50_000},
    "hadamard": {"pure-ldp": N},
}


def protocols() -> dict[str, Any]:
    kinds = (
        local.KaryResponse,
        local.SymmetricUnary,
        local.OptimizedUnary,
        local.LocalHashing,
        local.SubsetSelection,
    )
    found = {
        kind.name: kind(domain=D, epsilon=EPSILON) for kind in (*kinds, local.HadamardResponse)
    }
    grid = Integers(lo=0, hi=D - 1)
    numbers = (local.Duchi, local.Piecewise, local.Hybrid, local.SquareWave)
    memoized = (local.MemoizedResponse, local.MemoizedUnary)
    found |= {kind.name: kind(domain=grid, epsilon=EPSILON) for kind in numbers}
    return found | {
        kind.name: kind(domain=D, permanent=EPSILON, instant=2, changes=1) for kind in memoized
    }


def ours(protocol: Any, values: np.ndarray) -> dict[str, Any]:
    """Seconds of the quickest run, and the mean of the errors of all."""
    truth = np.bincount(values, minlength=D) / len(values)
    seconds, plain, consistent = [], [], []
    for _ in range(RUNS):
        started = time.process_time()
        reports = protocol.encode(values)
        between = time.process_time()
        found = protocol.estimate(reports)
        seconds.append((time.process_time() - started, between - started))
        if found.statistic == "mean":
            plain.append((found.estimates[0] - values.mean()) ** 2)
        else:
            plain.append(((found.estimates - truth) ** 2).mean())
            consistent.append(((found.consistent - truth) ** 2).mean())
    total, client = min(seconds)
    row = {"seconds": total, "client": client, "n_mse": len(values) * float(np.mean(plain))}
    return row | (
        {"n_mse_consistent": len(values) * float(np.mean(consistent))} if consistent else {}
    )


def environment(peer: str) -> Path:
    """The peer's Python, with the peer in it."""
    folder = ROOT / ".venvs" / peer
    python = folder / "bin" / "python"
    if not (folder / ".installed").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run(
            [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *PINS[peer]],
            check=True,
        )
        (folder / ".installed").touch()
    return python


def theirs(peer: str, name: str, values: np.ndarray, folder: Path) -> dict[str, Any]:
    source, target = folder / "values.npy", folder / "estimates.npy"
    np.save(source, values)
    package, fast = peer.removesuffix(" (fast)"), peer.endswith("(fast)")
    command = [
        environment(package),
        ROOT / "bench" / "local_peers" / "run.py",
        package,
        ("fast_" if fast else "") + name,
    ]
    done = subprocess.run(
        [*map(str, command), str(source), str(target)], capture_output=True, text=True
    )
    if done.returncode:
        return {"peer": peer, "failed": done.stderr.strip().splitlines()[-1]}
    truth = np.bincount(values, minlength=D) / len(values)
    error = len(values) * float(((np.load(target) - truth) ** 2).mean())
    scale = N / len(values)
    return {
        "peer": peer,
        "seconds": float(done.stdout.split()[-1]) * scale,
        "scaled": scale > 1,
        "n_mse": error,
        "n": len(values),
    }


def compared(name: str, own: dict[str, Any], peers: list[dict[str, Any]]) -> list[str]:
    """What misses a target, in words."""
    missed = (
        [f"{name}: {own['seconds']:.2f} s is over {MOST_SECONDS} s"]
        if own["seconds"] > MOST_SECONDS
        else []
    )
    times = [peer["seconds"] for peer in peers if "seconds" in peer]
    if times and 1 < min(times) < TIMES * own["seconds"]:
        missed.append(
            f"{name}: the fastest peer is only {min(times) / own['seconds']:.1f} times slower"
        )
    for peer in peers:
        if "failed" in peer:
            missed.append(f"{name}: {peer['peer']} did not run")
        elif peer["ours"] > NOISE * peer["n_mse"]:
            missed.append(
                f"{name}: error {peer['ours']:.3g} is over that of {peer['peer']}, {peer['n_mse']:.3g}"
            )
    return missed


def heavy_hitters(n: int) -> dict[str, Any]:
    """A million strings by Zipf's law over 50,000 words: which of those that should be found
    are.
    """
    random = np.random.default_rng()
    letters = np.array(list(string.ascii_lowercase))
    words = ["".join(letters[random.integers(0, 26, random.integers(3, 9))]) for _ in range(50_000)]
    weights = 1 / np.arange(1, len(words) + 1) ** 1.1
    drawn = random.choice(len(words), n, p=weights / weights.sum())
    shares = np.bincount(drawn, minlength=len(words)) / n
    strings = [words[i] for i in drawn]
    row: dict[str, Any] = {}
    for epsilon in (1, 2, 4):
        protocol = local.HeavyHitters(
            length=8, alphabet=string.ascii_lowercase, epsilon=Fraction(epsilon)
        )
        started = time.process_time()
        found = protocol.estimate(protocol.encode(strings))
        seconds = time.process_time() - started
        least = protocol.finds(n=n)
        should = {words[i] for i in np.flatnonzero(shares >= least)}
        row[f"epsilon {epsilon}"] = {
            "seconds": seconds, "finds_from": least, "should": len(should), "found": len(found.values),
            "missed": len(should - set(found.values)), "false": len(set(found.values) - set(words)),
        }  # fmt: skip
    return row


def collector() -> dict[str, float]:
    """Reports a second over HTTP on loopback, each acknowledged after it is on the disk; by reports
    in a request.
    """
    rates = {}
    survey = from_text(SURVEY, file="bench")
    for size, requests, connections in ((1, 10_000, 64), (10, 3_000, 32), (100, 600, 16)):
        bodies = [b"".join(_line(survey) for _ in range(size)) for _ in range(requests)]
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "bench.yaml").write_text(SURVEY)
            collect = "['collect', 'serve', 'bench.yaml', '--port', '0']"
            command = f"import sys; from discreet.cli import main; main({collect})"
            serving = subprocess.Popen(
                [sys.executable, "-c", command], cwd=folder, stdout=subprocess.PIPE, text=True
            )
            try:
                assert serving.stdout is not None
                address = urlsplit(
                    serving.stdout.readline().split(" is open at ")[1].split("/ ")[0]
                )
                started = time.perf_counter()
                accepted = asyncio.run(_sent(address, bodies, connections))
                rates[f"{size} in a request"] = accepted / (time.perf_counter() - started)
                assert accepted == size * requests
            finally:
                serving.terminate()
                serving.wait()
    return rates


def _line(survey: Any) -> bytes:
    return submission(survey, f"{bits.SYSTEM.bits(128):032x}", {"q": bits.below(bits.SYSTEM, 2)})


async def _sent(address: Any, bodies: list[bytes], connections: int) -> int:
    async def one(mine: list[bytes]) -> int:
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        accepted = 0
        for body in mine:
            writer.write(
                b"POST /reports HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
                + body
            )
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0])
            accepted += json.loads(await reader.readexactly(length))["accepted"]
        writer.close()
        return accepted

    return sum(await asyncio.gather(*(one(bodies[k::connections]) for k in range(connections))))


def shown(name: str, own: dict[str, Any], protocol: Any, peers: list[dict[str, Any]]) -> None:
    formula = f"{float(protocol.variance(n=1)):.4g}" if hasattr(protocol, "support") else ""
    both = (
        f"{own['n_mse']:.4g} / {own['n_mse_consistent']:.3g}"
        if "n_mse_consistent" in own
        else f"{own['n_mse']:.4g}"
    )
    print(
        f"{name:<17}{own['seconds']:7.3f} s (client {own['client']:.3f})   n MSE {both:<16} formula {formula}"
    )
    for peer in peers:
        if "failed" in peer:
            print(f"    {peer['peer']:<18} failed: {peer['failed']}")
        else:
            about = "~" if peer["scaled"] else " "
            ratio = peer["seconds"] / own["seconds"]
            print(
                f"    {peer['peer']:<18}{about}{peer['seconds']:8.2f} s = {ratio:7.0f} x   "
                f"n MSE {peer['n_mse']:.4g}, ours with as many {peer['ours']:.4g}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help="a million respondents for every peer: half an hour or more",
    )
    parser.add_argument("--peers", choices=["all", "none"], default="all")
    parser.add_argument("--only", default="", help="protocols with this in their name")
    options = parser.parse_args()
    values = np.minimum(np.random.default_rng().zipf(1.5, N), D) - 1
    rows, missed = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for name, protocol in protocols().items():
            if options.only not in name:
                continue
            own = ours(protocol, values)
            beside = PEERS.get(name, {}) if options.peers == "all" else {}
            given = {peer: N if options.full else few for peer, few in beside.items()}
            peers = []
            for peer, few in given.items():
                alike = own if few == N else ours(protocol, values[:few])
                error = alike["n_mse_consistent" if peer.startswith("multi") else "n_mse"]
                peers.append(theirs(peer, name, values[:few], Path(folder)) | {"ours": error})
            shown(name, own, protocol, peers)
            missed += compared(name, own, peers)
            rows[name] = {"ours": own, "peers": peers}
    if options.only in "heavy_hitters":
        rows["heavy_hitters"] = heavy_hitters(N)
        for epsilon, row in rows["heavy_hitters"].items():
            print(f"heavy_hitters, {epsilon}: {row}")
    if options.only in "collector":
        rows["collector"] = collector()
        for size, rate in rows["collector"].items():
            print(f"collector, {size}: {rate:,.0f} reports a second")
        if max(rows["collector"].values()) < LEAST_RATE:
            missed.append(f"collector: fewer than {LEAST_RATE} reports a second")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "local.json").write_text(json.dumps(rows, indent=1))
    print("\n".join(missed) if missed else "all targets met")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
