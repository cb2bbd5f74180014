"""Census reconstruction (Garfinkel, Abowd, Martindale 2018): from published statistics back to the
people.

Use it on any small table of counts, means, medians, quantiles and suppressed cells: it says how
many sets of people ("worlds") would have given the same tables, who is in all of them, and how
certain each possible record is. On noisy tables it comes out infeasible, or vague if the noise is
allowed for by margins, and says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import islice
from math import ceil, floor, lcm, prod
from operator import and_
from pathlib import Path
from time import monotonic
from typing import Any, Literal

from discreet.attacks.experiment.finding import Finding
from discreet.attacks.inputs.published import Count, Mean, Statistic, Sum, Tables, read
from discreet.attacks.solve.cells import Frame, RecordCell, cells
from discreet.attacks.solve.worlds import Solution, lacking, sample, search, solver

Verdict = Literal["exact", "partial", "vague", "infeasible", "undecided"]
Record = dict[str, Any]

SHOWN = 1000
SAMPLES = 25  # worlds looked at where there are too many to list
_SENTENCES: dict[Verdict, str] = {
    "exact": "Exactly one set of people fits: everybody is reconstructed.",
    "partial": "Several sets of people fit, and some people are in all of them.",
    "vague": "Many sets of people fit, and nobody is in all of them: these tables do not give anybody away.",
    "infeasible": "No set of people fits: the tables contradict each other. Noise was added, or a number is misread.",
    "undecided": "No set of people was found in the time given; allow more seconds.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconstruction:
    """`worlds` fit (at least, if `capped`); `common` records are in all of them, also when capped.

    When capped, certainty and success are estimates, from `sampled` worlds that lie far apart; else
    that is None.
    """

    finding: Finding
    worlds: int
    capped: bool
    sampled: int | None
    common: tuple[Record, ...]
    certainty: tuple[tuple[Record, float], ...]
    verdict: Verdict
    seconds: float

    @property
    def sentence(self) -> str:
        return _SENTENCES[self.verdict]

    def as_json(self) -> dict[str, object]:
        return {
            **self.finding.as_json(),
            "worlds": self.worlds if self.worlds <= 2**53 else str(self.worlds),
            "capped": self.capped,
            "sampled": self.sampled,
            "common": list(self.common),
            "certainty": [
                {"record": record, "certainty": share} for record, share in self.certainty
            ],
            "verdict": self.verdict,
            "sentence": self.sentence,
            "seconds": self.seconds,
        }


def census(
    statistics: Tables | Mapping[str, Any] | str | Path, *, cap: int = 5000, seconds: float = 60.0
) -> Reconstruction:
    """Reconstruct the worlds that fit; stop a part after `cap` solutions (each one world or many),
    or in time.
    """
    tables = _tables(statistics)
    solver()  # loaded before the clock starts
    start = monotonic()
    parts = [_reconstruct(part, cap=cap, until=start + seconds) for part in components(tables)]
    worlds = prod(part.worlds for part in parts)
    capped = any(part.capped for part in parts)
    people = sum(part.people for part in parts) if worlds else _total(tables)
    likely = sorted(
        (entry for part in parts for entry in part.likely), key=lambda entry: -entry.share
    )
    common = tuple(record for part in parts for record in part.common) if worlds else ()
    success = min(1.0, sum(part.right for part in parts) / people) if worlds and people else 0.0
    return Reconstruction(
        finding=Finding(
            attack="census",
            success=success,
            chance=_chance(tables, people),
            interval=(len(common) / people, 1.0) if worlds and people else (0.0, 0.0),
            n=people,
        ),
        worlds=worlds,
        capped=capped,
        sampled=min((part.sampled for part in parts if part.capped), default=None),
        common=common,
        certainty=tuple(_records(likely)) if worlds else (),
        verdict=_verdict(worlds, capped, len(common)),
        seconds=monotonic() - start,
    )


def _tables(statistics: Tables | Mapping[str, Any] | str | Path) -> Tables:
    if isinstance(statistics, Tables):
        return statistics
    if isinstance(statistics, Path):
        statistics = statistics.read_text(encoding="utf-8")
    return read(statistics)


def _verdict(worlds: int, capped: bool, common: int) -> Verdict:
    if worlds == 0:
        return "undecided" if capped else "infeasible"
    if worlds == 1 and not capped:
        return "exact"
    return "partial" if common else "vague"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Likely:
    """The share of worlds with at least `copies` of a record; the same for each of its twins."""

    frame: Frame
    cell: RecordCell
    position: int
    copies: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    worlds: int
    capped: bool
    sampled: int  # solutions that shares are taken over
    people: int
    right: float  # of the people in the best guess, on average over the worlds
    likely: tuple[_Likely, ...]
    common: tuple[Record, ...]


def _reconstruct(tables: Tables, *, cap: int, until: float) -> _Part:
    """Weigh every solution by its worlds; beyond the cap, take what a few solutions far apart have
    in common.
    """
    frame = Frame.of(tables)
    found = search(tables, cap=cap, seconds=(until - monotonic()) / 4)
    solutions = found.solutions
    if not found.complete:
        solutions = sample(tables, times=SAMPLES, seconds=(until - monotonic()) / 2) or solutions
    if not solutions:
        return _Part(
            worlds=0,
            capped=not found.complete,
            sampled=0,
            people=0,
            right=0.0,
            likely=(),
            common=(),
        )
    seen = list(dict.fromkeys((*found.solutions, *solutions)))
    common = reduce(and_, (solution.kept(frame) for solution in seen))
    worlds = [solution.worlds for solution in solutions]
    weights = worlds
    if not found.complete:
        common = _prove(tables, frame, common, until)
        weights = [lcm(*worlds)] * len(worlds)  # each counts once, whatever it stands for
    sizes = [
        sum(filled.n for filled in solution.filled) * w
        for solution, w in zip(solutions, weights, strict=True)
    ]
    people = round(Fraction(sum(sizes), sum(weights)))
    likely = _likely(frame, solutions, weights)
    halves = [(likely, likely)]
    # a guess made from some of the sample is judged by the others
    if not found.complete and len(solutions) > 1:
        odd, even = (_likely(frame, solutions[k::2], weights[k::2]) for k in (0, 1))
        halves = [(odd, even), (even, odd)]
    return _Part(
        worlds=sum(solution.worlds for solution in seen),
        capped=not found.complete,
        sampled=len(solutions),
        people=people,
        right=sum(_best_guess(guess, judge, people) for guess, judge in halves) / len(halves),
        likely=likely,
        common=tuple(dict(record) for record in common.elements()),
    )


def _prove(tables: Tables, frame: Frame, shared: Counter[Any], until: float) -> Counter[Any]:
    """Ask the solver for worlds that lack one of the shared records, until it proves that there are
    none.
    """
    while shared:
        found = lacking(tables, shared, seconds=until - monotonic())
        if not found.solutions:
            return shared if found.complete else Counter()
        shared &= found.solutions[0].kept(frame)
    return shared


def _likely(
    frame: Frame, solutions: Sequence[Solution], weights: Sequence[int]
) -> tuple[_Likely, ...]:
    """Return the share of worlds that hold each record.

    Each weight is a multiple of its solution's worlds, so all shares are sums of whole numbers.
    """
    hits: dict[tuple[RecordCell, int, int], int] = {}
    for solution, weight in zip(solutions, weights, strict=True):
        for filled in solution.filled:
            others = weight // filled.ways()
            for position in filled.positions():
                for copies in range(1, filled.n + 1):
                    ways = filled.ways(position, copies)
                    if not ways:
                        break
                    key = filled.cell, position, copies
                    hits[key] = hits.get(key, 0) + others * ways
    total = sum(weights)
    return tuple(
        _Likely(
            frame=frame,
            cell=cell,
            position=position,
            copies=copies,
            share=float(Fraction(count, total)),
        )
        for (cell, position, copies), count in hits.items()
    )


def _best_guess(guess: Sequence[_Likely], judge: Sequence[_Likely], people: int) -> float:
    """Return how many people a guess of the likeliest records gets right, on average over the
    worlds of `judge`.
    """
    shares = {(entry.cell, entry.position, entry.copies): entry.share for entry in judge}
    right, left = 0.0, people
    for entry in sorted(guess, key=lambda entry: -entry.share):
        taken = min(left, entry.cell.twins)
        right += taken * shares.get((entry.cell, entry.position, entry.copies), 0.0)
        left -= taken
        if not left:
            break
    return right


def _records(likely: list[_Likely]) -> Iterable[tuple[Record, float]]:
    rows = (
        (r, e.share) for e in likely if e.copies == 1 for r in e.frame.records(e.cell, e.position)
    )
    return islice(rows, SHOWN)


def _total(tables: Tables) -> int:
    return max(
        (s.high for s in tables.statistics if isinstance(s, Count) and not s.group), default=0
    )


def _chance(tables: Tables, people: int) -> float:
    """Return the chance that `people` records, drawn evenly from the domain, include a given
    person's.
    """
    everyone = sum(
        cell.twins * (cell.high - cell.low + 1)
        for cell in cells(Frame.of(replace(tables, part=False)))
    )
    return 1 - (1 - 1 / everyone) ** people if everyone else 0.0


def components(tables: Tables) -> list[Tables]:
    """Split the statistics into parts that no statistic ties together; the worlds of parts
    multiply.

    A total that follows from the totals of its parts ties nothing: such counts and sums are left
    out. So a file of many blocks with the totals of their tract falls into blocks.
    """
    frame = Frame.of(tables)
    at = [cell.groups for cell in cells(frame)]
    kept = [
        s
        for s in tables.statistics
        if not isinstance(s, Count | Sum | Mean) or _exact(s, tables) is None
    ]
    for kind in (Count, Sum | Mean):
        exact = [s for s in tables.statistics if isinstance(s, kind) and s not in kept]
        kept += _independent(frame, at, exact, tables)
    parent = list(range(len(frame.groups)))

    def root(g: int) -> int:
        while parent[g] != g:
            g = parent[g]
        return g

    active = {frame.group(s) for s in kept}
    for groups in at:
        first, *rest = sorted(groups & active) or [-1]
        for g in rest:
            parent[root(g)] = root(first)
    if any(not groups & active for groups in at):
        return [tables]  # the solver will say that nothing bounds their number
    parts: dict[int, list[Statistic]] = {}
    for s in kept:
        parts.setdefault(root(frame.group(s)), []).append(s)
    if len(parts) < 2:
        return [tables]
    return [replace(tables, statistics=tuple(part), part=True) for part in parts.values()]


def _exact(statistic: Count | Sum | Mean, tables: Tables) -> int | None:
    """Return the whole number that a count or a sum must be, or None if more than one is
    possible.
    """
    if isinstance(statistic, Count):
        return statistic.low if statistic.low == statistic.high else None
    low, high = statistic.low, statistic.high
    if isinstance(statistic, Mean):
        counts = [
            s.low
            for s in tables.statistics
            if isinstance(s, Count) and s.group == statistic.group and s.low == s.high
        ]
        if not counts or counts[0] < 1:
            return None
        low = low * counts[0]
        high = high * counts[0]
    return ceil(low) if ceil(low) == floor(high) else None


def _independent(
    frame: Frame, at: list[frozenset[int]], statistics: list[Any], tables: Tables
) -> list[Statistic]:
    """Drop statistics that follow from smaller ones, by exact elimination; keep contradictions for
    the solver.
    """
    basis: list[tuple[int, dict[int, Fraction]]] = []
    kept: list[Statistic] = []
    constant = len(at)
    for s in sorted(statistics, key=lambda s: sum(frame.group(s) in groups for groups in at)):
        row = {i: Fraction(1) for i, groups in enumerate(at) if frame.group(s) in groups}
        row[constant] = Fraction(_exact(s, tables) or 0)
        for pivot, known in basis:
            if row.get(pivot):
                factor = row[pivot]
                row = {
                    i: v
                    for i in row.keys() | known.keys()
                    if (v := row.get(i, 0) - factor * known.get(i, 0))
                }
        left = [i for i in row if i != constant and row[i]]
        if left:
            scale = row[left[0]]
            basis.append((left[0], {i: v / scale for i, v in row.items()}))
        if left or row.get(constant):
            kept.append(s)
    return kept
