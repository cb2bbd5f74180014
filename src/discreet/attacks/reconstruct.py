"""Reconstruction (Dinur, Nissim 2003): one secret bit of each of n people, from noisy counts over
subsets of them.

Exhaustive search when n is small, and it shows the law: if every answer is wrong by at most E, all
candidates that fit are within 4E of the truth, and E < n/401 gives away 99 % of the bits. Least
squares for up to some thousands of people; it is faster than the linear program and guesses more
bits, except under noise with long tails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from discreet.attacks.experiment.dice import Dice
from discreet.attacks.experiment.finding import Finding, Rate
from discreet.attacks.inputs import source
from discreet.errors import UsageError

Method = Literal["exhaustive", "lp", "least-squares"]
Floats = NDArray[np.float64]
Bits = NDArray[np.int8]
Counting = Callable[[NDArray[np.bool_]], float]
"""Answers how many of a subset (a mask over people) have the secret; `lambda mask:
curator.ask(...)` is one.
"""

METHODS: tuple[Method, ...] = ("exhaustive", "lp", "least-squares")
MOST_EXHAUSTIVE = 22
MOST_SOLVED = 300  # people; larger linear programs are solved step by step
SPLIT_STEPS = 300


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reconstructed:
    """`bits` as guessed. Success was `measured` against the truth, or else estimated by attacking
    invented bits.
    """

    finding: Finding
    bits: Bits
    method: Method
    residual: float
    measured: bool

    def as_json(self) -> dict[str, object]:
        return {
            **self.finding.as_json(),
            "bits": self.bits.tolist(),
            "method": self.method,
            "residual": self.residual,
            "measured": self.measured,
        }


def reconstruct(
    queries: ArrayLike,
    answers: ArrayLike,
    *,
    method: Method = "least-squares",
    truth: ArrayLike | None = None,
) -> Reconstructed:
    """Guess the bits behind answers = queries @ bits + noise."""
    q, a = _check(queries, answers, method)
    bits, residual = solve(q, a, method)
    if truth is not None:
        true = np.asarray(truth).astype(np.int8)
        if true.shape != bits.shape:
            raise UsageError(
                f"The truth has {true.size} bits and the queries are about {bits.size} people."
            )
        rate = Rate(hits=int((bits == true).sum()), n=bits.size)
        share = float(true.mean())
    else:
        rate, share = _estimate(q, a, method)
    return Reconstructed(
        finding=rate.finding("reconstruct", chance=max(share, 1 - share)),
        bits=bits,
        method=method,
        residual=residual,
        measured=truth is not None,
    )


def reconstruct_file(path: str | Path, *, method: Method = "least-squares") -> Reconstructed:
    """Read an .npz of `queries` (m x n of 0/1), `answers` (m) and perhaps the true `bits` (n);
    reconstruct.
    """
    try:
        with np.load(path) as arrays:
            found = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError):
        raise UsageError(f"{path} is not an .npz file of arrays.") from None
    if not {"queries", "answers"} <= found.keys():
        raise UsageError(f"{path} must hold the arrays queries (m x n of 0/1) and answers (m).")
    return reconstruct(
        found["queries"],
        found["answers"],
        method=method,
        truth=found.get("bits", found.get("truth")),
    )


def against(
    answering: Counting,
    n: int,
    *,
    questions: int,
    method: Method = "least-squares",
    truth: ArrayLike | None = None,
) -> Reconstructed:
    """Ask an answering function for random subsets of n people, then reconstruct."""
    masks = Dice().uniform(questions, n) < 0.5
    answers = np.array([answering(mask) for mask in masks], dtype=np.float64)
    return reconstruct(masks, answers, method=method, truth=truth)


def published(
    tables: pa.Table | str | Path, people: pa.Table | str | Path, *, count: str
) -> tuple[Floats, Floats]:
    """Return queries and answers from published tables: `count` people in each row have the secret.

    The other columns of `tables` say who is counted, by the same columns of `people`; NULL means
    everybody.
    """
    cells = tables if isinstance(tables, pa.Table) else source.table(tables)
    known = people if isinstance(people, pa.Table) else source.table(people)
    answers = source.column(cells, count, "The published table").to_numpy().astype(np.float64)
    queries = np.ones((cells.num_rows, known.num_rows))
    for name in cells.column_names:
        if name != count:
            have = np.array(
                [str(v) for v in source.column(known, name, "The table of people").to_pylist()]
            )
            for row, wanted in enumerate(cells.column(name).to_pylist()):
                if wanted is not None and wanted != "":
                    queries[row] *= have == str(wanted)
    return queries, answers


def solve(queries: Floats, answers: Floats, method: Method) -> tuple[Bits, float]:
    """Return the bits, and the root mean square by which they miss the answers."""
    guess = {"exhaustive": _exhaustive, "lp": _program, "least-squares": _least_squares}[method](
        queries, answers
    )
    bits = (guess > 0.5).astype(np.int8)
    return bits, float(np.sqrt(np.mean((queries @ bits - answers) ** 2)))


def _least_squares(queries: Floats, answers: Floats) -> Floats:
    """Fit a ridge regression around 1/2, as strong as the noise asks for: its variance over 1/4, a
    bit's.
    """
    from scipy.linalg import cho_factor, cho_solve

    n = queries.shape[1]
    gram = queries.T @ queries
    centered = answers - queries.sum(axis=1) / 2
    right = queries.T @ centered
    guess = np.zeros(n)
    ridge = 1.0
    for _ in range(2):
        factored = cho_factor(gram + ridge * np.eye(n))
        guess = cho_solve(factored, right)
        ridge = max(4 * _noise(queries @ guess - centered, n), 1e-6)
    return np.asarray(guess + 0.5)


def _noise(residuals: Floats, n: int) -> float:
    """Return the variance of the noise, from what n fitted numbers left over."""
    m = len(residuals)
    return float(np.sum(residuals**2)) / max(m - n, m / 10)


def _program(queries: Floats, answers: Floats) -> Floats:
    """Minimize sum |queries x - answers| over x in [0, 1]^n."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack

    m, n = queries.shape
    if n > MOST_SOLVED:
        return _split(queries, answers)
    equal = hstack([csr_array(queries), eye_array(m), -eye_array(m)])
    cost = np.concatenate([np.zeros(n), np.ones(2 * m)])
    bounds = [(0, 1)] * n + [(0, None)] * (2 * m)
    found = linprog(
        cost,
        A_eq=equal,
        b_eq=answers,
        bounds=bounds,
        method="highs-ipm",
        options={"presolve": False},
    )
    if found.x is None:
        raise UsageError("The linear program did not finish; use --method least-squares.")
    return np.asarray(found.x[:n])


def _split(queries: Floats, answers: Floats) -> Floats:
    """Solve the same program by alternating directions (ADMM): misses and bounds take turns, in
    cheap steps.

    With z for queries x - answers and w for x, z is drawn towards 0 and w into [0, 1] while x
    follows both. After some hundred steps the sum is within a few ten thousandths of the least, and
    rounding hides the rest.
    """
    from scipy.linalg import cho_factor, cho_solve

    n = queries.shape[1]
    asked = queries.astype(np.float32)  # zeros and ones: exact, in half the memory
    gram = (asked.T @ asked).astype(np.float64)
    tie = 0.1 * float(np.trace(gram)) / n  # how closely x follows w
    factored = cho_factor(gram + tie * np.eye(n))

    def follow(misses: Floats, bits: Floats) -> tuple[Floats, Floats]:
        x = cho_solve(factored, asked.T @ (answers + misses).astype(np.float32) + tie * bits)
        return x, asked @ x.astype(np.float32) - answers

    w = np.full(n, 0.5)
    _, z = follow(np.zeros(len(answers)), w)
    draw = 0.3 * float(np.sqrt(np.mean(z**2))) + 1e-9
    u = np.zeros(len(answers))
    v = np.zeros(n)
    for _ in range(SPLIT_STEPS):
        x, missed = follow(z - u, w - v)
        u += 1.6 * missed - 0.6 * z  # over-relaxed, as is usual
        z = np.sign(u) * np.maximum(np.abs(u) - draw, 0)
        u -= z
        v += 1.6 * x - 0.6 * w
        w = np.clip(v, 0, 1)
        v -= w
    return w


def _exhaustive(queries: Floats, answers: Floats) -> Floats:
    """Return the candidate whose worst answer is least wrong."""
    n = queries.shape[1]
    candidates = np.arange(1 << n, dtype=np.uint32)
    worst = np.zeros(1 << n, dtype=np.float32)
    for query, answer in zip(_codes(queries), answers, strict=True):
        np.maximum(worst, np.abs(_ones(candidates & query) - np.float32(answer)), out=worst)
    return np.asarray((int(worst.argmin()) >> np.arange(n)) & 1, dtype=np.float64)


def consistent(queries: ArrayLike, answers: ArrayLike, *, error: float) -> NDArray[np.int8]:
    """Return all candidates within `error` of every answer, as rows of bits: with all subsets,
    within 4 error.
    """
    q, a = _check(queries, answers, "exhaustive")
    left = np.arange(1 << q.shape[1], dtype=np.uint32)
    for query, answer in zip(_codes(q), a, strict=True):
        left = left[np.abs(_ones(left & query) - answer) <= error]
    return ((left[:, None] >> np.arange(q.shape[1], dtype=np.uint32)) & 1).astype(np.int8)


def _ones(words: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Count the bits that are set."""
    table = _ones_of_sixteen()
    return np.asarray(table[words & 0xFFFF] + table[words >> 16])


@cache
def _ones_of_sixteen() -> NDArray[np.uint8]:
    return np.array([n.bit_count() for n in range(1 << 16)], dtype=np.uint8)


def _codes(queries: Floats) -> NDArray[np.uint32]:
    places = np.arange(queries.shape[1], dtype=np.uint32)
    return np.asarray((queries.astype(np.uint32) << places).sum(axis=1, dtype=np.uint32))


def _estimate(queries: Floats, answers: Floats, method: Method) -> tuple[Rate, float]:
    """Estimate success without the truth: attack invented bits behind the same queries, with noise
    as large.

    Also return the share of ones, as far as the answers tell it: drawn towards 1/2 as their noise
    grows.
    """
    m, n = queries.shape
    dice = Dice()
    quick: Method = method if n <= 200 else "least-squares"
    noise = _noise(queries @ _least_squares(queries, answers) - answers, n) ** 0.5
    asked = max(float(queries.sum()), 1.0)
    trust = (1 / 12) / (1 / 12 + m * (noise / asked) ** 2)
    share = 0.5 + trust * (float(np.clip(answers.sum() / asked, 0, 1)) - 0.5)
    hits = 0
    times = 3 if n <= 1000 else 1
    for _ in range(times):
        invented = (dice.uniform(n) < share).astype(np.float64)
        found, _ = solve(queries, queries @ invented + noise * dice.normal(m), quick)
        hits += int((found == invented).sum())
    return Rate(hits=round(hits / times), n=n), share


def _check(queries: ArrayLike, answers: ArrayLike, method: str) -> tuple[Floats, Floats]:
    if method not in METHODS:
        raise UsageError(f'The method is one of {", ".join(METHODS)}, not "{method}".')
    q: Any = np.asarray(queries)
    a = np.asarray(answers, dtype=np.float64)
    if q.ndim != 2 or a.shape != (len(q),) or 0 in q.shape:
        raise UsageError(f"queries must be m x n and answers m; they are {q.shape} and {a.shape}.")
    if not np.isin(q, (0, 1)).all():
        raise UsageError("queries must hold zeros and ones: who is in which subset.")
    if not np.isfinite(a).all():
        raise UsageError("answers must be finite numbers.")
    if method == "exhaustive" and q.shape[1] > MOST_EXHAUSTIVE:
        raise UsageError(
            f"Exhaustive search takes at most {MOST_EXHAUSTIVE} people; use --method least-squares."
        )
    return q.astype(np.float64), a
