"""Census reconstruction (Garfinkel, Abowd, Martindale 2018): from published statistics back to the people.

Use it on any small table of counts, means, medians, quantiles and suppressed cells: it says how many sets of people
("worlds") would have given the same tables, who is in all of them, and how certain each possible record is. On noisy
tables it comes out infeasible, or vague if the noise is allowed for by margins, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from math import ceil, floor, prod
from pathlib import Path
from time import monotonic
from typing import Any, Literal

from discreet.attacks.cells import Cell, Frame, cells
from discreet.attacks.finding import Finding
from discreet.attacks.published import Count, Mean, Statistic, Sum, Tables, read
from discreet.attacks.worlds import Search, search, solver, without

Verdict = Literal["exact", "partial", "vague", "infeasible", "undecided"]
Record = dict[str, Any]

SHOWN = 1000
_SENTENCES: dict[Verdict, str] = {
    "exact": "Exactly one set of people fits: everybody is reconstructed.",
    "partial": "Several sets of people fit, and some people are in all of them.",
    "vague": "Many sets of people fit, and nobody is in all of them: these tables do not give anybody away.",
    "infeasible": "No set of people fits: the tables contradict each other. Noise was added, or a number is misread.",
    "undecided": "No set of people was found in the time given; allow more seconds.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconstruction:
    """`worlds` fit (at least, if `capped`); `common` records are in all of them, also when capped."""

    finding: Finding
    worlds: int
    capped: bool
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
            "common": list(self.common),
            "certainty": [{"record": record, "certainty": share} for record, share in self.certainty],
            "verdict": self.verdict,
            "sentence": self.sentence,
            "seconds": self.seconds,
        }


def census(
    statistics: Tables | Mapping[str, Any] | str | Path, *, cap: int = 5000, seconds: float = 60.0
) -> Reconstruction:
    """All worlds that fit; stop after `cap` solutions of the program (each one world or many) in a part, or in time."""
    tables = _tables(statistics)
    solver()  # loaded before the clock starts
    start = monotonic()
    parts = [_reconstruct(part, cap=cap, until=start + seconds) for part in components(tables)]
    worlds = prod(part.worlds for part in parts)
    capped = any(part.capped for part in parts)
    people = sum(part.people for part in parts) if worlds else _published_total(tables)
    likely = sorted((entry for part in parts for entry in part.likely), key=lambda entry: -entry.share)
    common = tuple(record for part in parts for record in part.common) if worlds else ()
    success = min(1.0, _best_guess(likely, people) / people) if worlds and people else 0.0
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
    cell: Cell
    position: int
    copies: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    worlds: int
    capped: bool
    people: int
    likely: tuple[_Likely, ...]
    common: tuple[Record, ...]


def _reconstruct(tables: Tables, *, cap: int, until: float) -> _Part:
    found = search(tables, cap=cap, seconds=until - monotonic())
    frame = Frame.of(tables)
    weights = [solution.worlds for solution in found.solutions]
    likely = _likely(frame, found, weights)
    certain = [(e.copies, r) for e in likely if e.share == 1 for r in islice(frame.records(e.cell, e.position), SHOWN)]
    if not found.complete:
        certain = [(m, r) for m, r in certain if _certain(tables, r, copies=m, seconds=until - monotonic())]
    people = [sum(filled.n for filled in solution.filled) for solution in found.solutions]
    return _Part(
        worlds=sum(weights),
        capped=not found.complete,
        people=round(sum(n * w for n, w in zip(people, weights, strict=True)) / sum(weights)) if weights else 0,
        likely=likely,
        common=tuple(record for _, record in certain),
    )


def _certain(tables: Tables, record: Record, *, copies: int, seconds: float) -> bool:
    """Beyond the cap the solver is asked for a world without this record; only a proof that there is none counts."""
    found = without(tables, record, copies=copies, seconds=seconds)
    return found.complete and not found.solutions


def _likely(frame: Frame, found: Search, weights: list[int]) -> tuple[_Likely, ...]:
    hits: dict[tuple[int, int, int], int] = {}
    cell_of: dict[int, Cell] = {}
    for solution, weight in zip(found.solutions, weights, strict=True):
        for filled in solution.filled:
            cell, n, total = filled.cell, filled.n, filled.total
            others = weight // filled.ways()
            cell_of[id(cell)] = cell
            first, last = max(cell.low, total - (n - 1) * cell.high), min(cell.high, total - (n - 1) * cell.low)
            for position in range(first, last + 1):
                for copies in range(1, n + 1):
                    ways = filled.ways(position, copies)
                    if not ways:
                        break
                    key = id(cell), position, copies
                    hits[key] = hits.get(key, 0) + others * ways
    total_weight = sum(weights)
    return tuple(
        _Likely(
            frame=frame,
            cell=cell_of[key],
            position=position,
            copies=copies,
            share=1.0 if count == total_weight else min(float(Fraction(count, total_weight)), 1 - 2**-53),
        )
        for (key, position, copies), count in hits.items()
    )


def _best_guess(likely: list[_Likely], people: int) -> float:
    """How many people are right, on average over the worlds, in the guess made of the likeliest records."""
    right, left = 0.0, people
    for entry in likely:
        taken = min(left, entry.cell.twins)
        right += taken * entry.share
        left -= taken
        if not left:
            break
    return right


def _records(likely: list[_Likely]) -> Iterable[tuple[Record, float]]:
    rows = ((r, e.share) for e in likely if e.copies == 1 for r in e.frame.records(e.cell, e.position))
    return islice(rows, SHOWN)


def _published_total(tables: Tables) -> int:
    return max((s.high for s in tables.statistics if isinstance(s, Count) and not s.group), default=0)


def _chance(tables: Tables, people: int) -> float:
    """How likely one of as many records, drawn evenly from the domain, is a given person's."""
    everyone = sum(cell.twins * (cell.high - cell.low + 1) for cell in cells(Frame.of(replace(tables, part=False))))
    return 1 - (1 - 1 / everyone) ** people if everyone else 0.0


def components(tables: Tables) -> list[Tables]:
    """Parts that no statistic ties together; their worlds multiply.

    A total that follows from the totals of its parts ties nothing: such counts and sums are left out. So a file of
    many blocks with the totals of their tract falls into blocks.
    """
    frame = Frame.of(tables)
    at = [cell.groups for cell in cells(frame)]
    kept = [s for s in tables.statistics if not isinstance(s, Count | Sum | Mean) or _exact(s, tables) is None]
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
    """The whole number that a count or a sum must be, if there is only one."""
    if isinstance(statistic, Count):
        return statistic.low if statistic.low == statistic.high else None
    low, high = statistic.low, statistic.high
    if isinstance(statistic, Mean):
        counts = [
            s.low for s in tables.statistics if isinstance(s, Count) and s.group == statistic.group and s.low == s.high
        ]
        if not counts or counts[0] < 1:
            return None
        low, high = low * counts[0], high * counts[0]
    return ceil(low) if ceil(low) == floor(high) else None


def _independent(frame: Frame, at: list[frozenset[int]], statistics: list[Any], tables: Tables) -> list[Statistic]:
    """Those that do not follow from smaller ones, by exact elimination; a contradiction is kept, for the solver."""
    basis: list[tuple[int, dict[int, Fraction]]] = []
    kept: list[Statistic] = []
    constant = len(at)
    for s in sorted(statistics, key=lambda s: sum(frame.group(s) in groups for groups in at)):
        row = {i: Fraction(1) for i, groups in enumerate(at) if frame.group(s) in groups}
        row[constant] = Fraction(_exact(s, tables) or 0)
        for pivot, known in basis:
            if row.get(pivot):
                factor = row[pivot]
                row = {i: v for i in row.keys() | known.keys() if (v := row.get(i, 0) - factor * known.get(i, 0))}
        left = [i for i in row if i != constant and row[i]]
        if left:
            scale = row[left[0]]
            basis.append((left[0], {i: v / scale for i, v in row.items()}))
        if left or row.get(constant):
            kept.append(s)
    return kept
