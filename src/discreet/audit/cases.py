"""Every mechanism and local protocol on two neighboring inputs that it tells apart well, for audits
by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import mechanisms as every
from discreet.audit.epsilon import AuditFinding, Codes, check, finding
from discreet.budget import Loss
from discreet.errors import UsageError
from discreet.mechanisms.shapes import Additive, Selection, Threshold
from discreet.noise import Items, Stream

CHUNK = 1 << 18  # runs at a time: memory does not grow with their number

Run = Callable[[Any, Any, int], Codes]
"""Of (mechanism, input, how many): one integer for the outcome of each run."""
Progress = Callable[[str, float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCase:
    """Something with a claim, two neighboring inputs, and how it is run on one of them."""

    name: str
    subject: Any
    pair: tuple[Any, Any]
    run: Run
    loss: Loss

    @property
    def parameters(self) -> dict[str, str]:
        if type(self.subject) in every.MECHANISMS:
            return {
                key: value
                for key, value in every.to_row(self.subject).items()
                if key != "mechanism"
            }
        return {key: str(value) for key, value in self.subject.parameters().items()}

    def outcomes(self, runs: int, progress: Progress | None = None) -> tuple[Codes, Codes]:
        """Run so many times on each of the two neighbors."""
        found: tuple[list[Codes], list[Codes]] = ([], [])
        for start in range(0, runs, CHUNK):
            for side, here in enumerate(self.pair):
                found[side].append(self.run(self.subject, here, min(CHUNK, runs - start)))
            if progress is not None:
                progress(self.name, min(1.0, (start + CHUNK) / runs))
        return np.concatenate(found[0]), np.concatenate(found[1])


def audit_case(
    name: str, *, runs: int, confidence: float, progress: Progress | None = None
) -> AuditFinding:
    """Run something on two neighbors and hold what that proves beside its claim."""
    check(runs=runs, confidence=confidence)
    if name not in cases():
        raise UsageError(
            f"There is no audit of {name!r}. There are {', '.join(cases())}, and all of them: all."
        )
    case = cases()[name]
    return finding(
        name, case.parameters, case.outcomes(runs, progress), loss=case.loss, confidence=confidence
    )


@cache
def cases() -> Mapping[str, AuditCase]:
    """Return all cases by name: the mechanisms, then the protocols that respondents run."""
    return {case.name: case for case in (*_mechanisms(), *_protocols())}


# --- mechanisms -----------------------------------------------------------------------------------


def _encode(columns: NDArray[Any], low: int, high: int) -> Codes:
    """Encode a row of integers, each held within a range, as one integer."""
    code = np.zeros(len(columns), dtype=np.int64)
    for column in np.clip(columns, low, high).T.astype(np.int64):
        code = code * (high - low + 1) + column - low
    return code


def _add(mechanism: Additive, x: Any, runs: int) -> Codes:
    values = np.tile(np.array(x, dtype=np.int64), runs)
    noisy = mechanism.add_to(values, Stream.fresh(), Items.positions(len(values)))
    return _encode(np.asarray(noisy).reshape(runs, len(x)), -60, 60)


def _choose(mechanism: Selection, scores: Any, runs: int) -> Codes:
    table = np.tile(np.array(scores, dtype=np.int64), (runs, 1))
    chosen = mechanism.choose_each(table, Stream.fresh(), Items.positions(runs)).reshape(
        runs, mechanism.per_group
    )
    return _encode(chosen, 0, len(scores) - 1)


def _test(mechanism: Threshold, values: Any, runs: int) -> Codes:
    """Encode for each key 0 if it did not pass, else how far above the threshold; None is a key
    that is nowhere.
    """
    existing = [place for place, value in enumerate(values) if value is not None]
    codes = np.zeros((runs, len(values)), dtype=np.int64)
    if existing:
        exact = np.tile(np.array([values[place] for place in existing], dtype=np.int64), runs)
        kept, noisy = mechanism.release(exact, Stream.fresh(), Items.positions(len(exact)))
        here = np.zeros(len(exact), dtype=np.int64)
        here[kept] = np.clip(noisy - mechanism.threshold + 1, 1, 81)
        codes[:, existing] = here.reshape(runs, -1)
    return _encode(codes, 0, 81)


def _above(mechanism: Any, numbers: Any, runs: int) -> Codes:
    """Return the answers to the numbers in turn: 0 no, 1 yes, 2 not asked any more. The threshold
    is 0.
    """
    answers = np.full((runs, len(numbers)), 2)
    hits = np.zeros(runs, dtype=np.int64)
    stream = Stream.fresh()
    for index, number in enumerate(numbers):
        for so_far in range(mechanism.max_hits):
            rows = np.flatnonzero(hits == so_far)
            here = np.full(len(rows), number)
            answers[rows, index] = mechanism.above(
                here, stream, Items.codes(rows), threshold=0, index=index, hits=so_far
            )
        hits = (answers == 1).sum(axis=1)
    return _encode(answers, 0, 2)


def _respond(mechanism: Any, value: Any, runs: int) -> Codes:
    return np.asarray(
        mechanism.respond(np.full(runs, value), Stream.fresh(), Items.positions(runs)),
        dtype=np.int64,
    )


def _mechanisms() -> Iterator[AuditCase]:
    one = Fraction(1)
    two = Fraction(2)
    some = Fraction(1, 50)
    keys: dict[str, Any] = {"linf": 1, "max_groups": 2, "neighbors": "add_remove", "delta": some}
    grid: dict[str, Any] = {"max_rows": 1, "neighbors": "add_remove", "choice": "exponential"}
    more: dict[str, Any] = {"max_rows": 2, "choice": "permute_and_flip"}
    octiles = tuple(Fraction(place, 8) for place in range(1, 8))
    # the median lies in a wide gap; one row more at the bottom moves all of it
    far = (0, 39, 1, *[0] * 8, 40)
    subjects: tuple[tuple[Any, Any, Run], ...] = (
        (every.DiscreteLaplace(scale=one, l1=one), ((0,), (1,)), _add),
        (every.DiscreteGaussian(sigma=two, l2_squared=two), ((0, 0), (1, 1)), _add),
        (every.ExponentialMechanism(epsilon=one, linf=one), ((0, 8), (1, 7)), _choose),
        (every.PermuteAndFlip(epsilon=one, linf=one), ((0, 6), (1, 5)), _choose),
        (every.TopK(epsilon=two, linf=one, k=2), ((0, 0, 4, 4), (1, 1, 3, 3)), _choose),
        (every.LaplaceThreshold(scale=two, **keys), ((12, 12), (13, 13)), _test),
        (every.GaussianThreshold(sigma=two, **keys), ((8, 8), (9, 9)), _test),
        (every.TruncatedLaplaceThreshold(scale=two, **keys), ((12, 12), (13, 13)), _test),
        (
            every.Quantile(epsilon=one, q=Fraction(1, 2), cells=12, **grid),
            (far, (1, *far[1:])),
            _choose,
        ),
        (
            every.Quantiles(epsilon=two, quantiles=octiles, cells=4, slices=1, **grid | more),
            ((2, 2, 0, 0), (2, 0, 0, 0)),
            _choose,
        ),
        (
            every.FineQuantile(
                epsilon=one,
                q=Fraction(1, 2),
                cells=12,
                max_rows=1,
                neighbors="add_remove",
                reach=15,
            ),
            (far, (1, *far[1:])),
            _choose,
        ),
        (
            every.AboveThreshold.costing(epsilon=one, linf=1, max_hits=1),
            ((-2, 6, 6), (-1, 7, 5)),
            _above,
        ),
        (every.RandomizedResponse(epsilon=one, categories=2), (0, 1), _respond),
    )
    for mechanism, pair, run in subjects:
        yield AuditCase(
            name=type(mechanism).__name__,
            subject=mechanism,
            pair=pair,
            run=run,
            loss=mechanism.loss(),
        )


# --- local protocols: any two answers are neighbors -----------------------------------------------


def _encode_reports(protocol: Any, answer: Any, runs: int) -> Codes:
    reports = np.asarray(protocol.encode([answer] * runs))
    if reports.ndim == 1:
        return reports.astype(np.int64)
    return _hash(reports)


def _hash(words: NDArray[Any]) -> Codes:
    """Encode a report of several words as one integer; only equality of outcomes matters."""
    code = np.zeros(len(words), dtype=np.uint64)
    for column in words.T:
        code = code * np.uint64(0x9E3779B97F4A7C15) + column.astype(np.uint64)
    return code.view(np.int64)


def _protocols() -> Iterator[AuditCase]:
    from discreet.local.protocols.protocol import PROTOCOLS
    from discreet.policy.domain import Decimals

    grid = Decimals(lo=Fraction(0), hi=Fraction(3), step=Fraction(1, 2))
    yes_no = ("no", "yes")
    few = 4
    one = Fraction(1)
    made: dict[str, tuple[dict[str, Any], tuple[Any, Any]]] = {
        "Warner": ({"domain": yes_no, "epsilon": one}, yes_no),
        "Truthful": ({"domain": yes_no, "truth": Fraction(3, 4)}, yes_no),
        "TwoCoins": ({"domain": yes_no}, yes_no),
        "HeavyHitters": ({"length": 2, "alphabet": "abc", "epsilon": one}, ("a", "bc")),
    }
    made |= dict.fromkeys(
        (
            "KaryResponse",
            "SymmetricUnary",
            "OptimizedUnary",
            "LocalHashing",
            "SubsetSelection",
            "HadamardResponse",
        ),
        ({"domain": few, "epsilon": one}, (0, 1)),
    )
    made |= dict.fromkeys(
        ("Duchi", "Piecewise", "Hybrid", "SquareWave"),
        ({"domain": grid, "epsilon": one}, (Fraction(0), Fraction(3))),
    )
    lasting = {"domain": few, "permanent": Fraction(2), "instant": Fraction(3), "changes": 1}
    made |= dict.fromkeys(("MemoizedResponse", "MemoizedUnary"), (lasting, (0, 1)))
    made["FewChanges"] = ({"domain": few, "epsilon": one, "rounds": 1, "changes": 1}, (0, 1))
    for kind in PROTOCOLS:
        parameters, pair = made[kind.__name__]
        protocol: Any = kind(**parameters)
        # of a memoized answer: what one report tells
        epsilon = getattr(protocol, "one_report", protocol.epsilon)
        yield AuditCase(
            name=kind.__name__,
            subject=protocol,
            pair=pair,
            run=_encode_reports,
            loss=Loss(epsilon=epsilon, rho=None),
        )
