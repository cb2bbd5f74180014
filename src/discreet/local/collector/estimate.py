"""The server's side of every protocol: counts that add up, estimates with margins, and a consistent
version of them.

A `Tally` is all that a collector keeps of its reports. Tallies of many collectors add, in any order
and grouping, to the tally of all reports: that is how collection is sharded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import UsageError
from discreet.local import answers
from discreet.local.protocols.odds import Support

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Words = NDArray[np.uint64]

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tally:
    """The number of reports, and of those that support each value (or fall in each cell)."""

    counts: Counts
    n: int

    def __add__(self, other: Tally) -> Tally:
        if len(self.counts) != len(other.counts):
            raise UsageError("These tallies are not of the same question.")
        return Tally(counts=self.counts + other.counts, n=self.n + other.n)

    def as_json(self) -> dict[str, Any]:
        return {"n": self.n, "counts": self.counts.tolist()}

    def of_json(self, parts: Any) -> Tally:
        """Read a tally of the same question from its JSON."""
        counts = parts["counts"]
        n = parts["n"]
        if len(counts) != len(self.counts) or not all(
            type(each) is int and 0 <= each < 2**62 for each in (n, *counts)
        ):
            raise UsageError("These sums are not of this question.")
        return Tally(counts=np.array(counts, dtype=np.int64), n=n)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReportRows:
    """Reports as rows of words: the function's, and hash * levels + level. They are merged by
    putting them together.
    """

    words: Words

    @property
    def n(self) -> int:
        return len(self.words)

    def __add__(self, other: ReportRows) -> ReportRows:
        return ReportRows(words=np.concatenate([self.words, other.words]))

    def as_json(self) -> dict[str, Any]:
        """Write rows sorted: an order that says nothing about who was first."""
        return {"n": self.n, "rows": sorted(row.tobytes().hex() for row in self.words)}

    def of_json(self, parts: Any) -> ReportRows:
        """Read rows of the same question from their JSON."""
        joined = bytes.fromhex("".join(parts["rows"]))
        return ReportRows(words=np.frombuffer(joined, dtype="<u8").reshape(-1, self.words.shape[1]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate:
    """An estimate of what the respondents answered, from their reports.

    `estimates` are unbiased, so a frequency may come out negative; `margins` are half-widths of 95
    % intervals around them. `consistent` is the nearest thing that could be true: frequencies of at
    least 0 that add up to 1, a mean within its range. Use the first to compute further, the second
    to show.
    """

    statistic: str
    values: Sequence[Any]
    estimates: Floats
    margins: Floats
    consistent: Floats
    n: int
    epsilon: Fraction

    def as_json(self) -> dict[str, Any]:
        return {
            "statistic": self.statistic,
            "values": list(self.values),
            "estimates": self.estimates.tolist(),
            "margins": self.margins.tolist(),
            "consistent": self.consistent.tolist(),
            "n": self.n,
            "epsilon": float(self.epsilon),
        }


def histogram(reports: Any, size: int) -> Tally:
    """Count how often each report below `size` was sent."""
    sent = np.asarray(reports, dtype=np.int64)
    if sent.ndim != 1 or (len(sent) and not 0 <= sent.min() <= sent.max() < size):
        raise UsageError(f"Reports to this question are numbers from 0 to {size - 1}.")
    return Tally(counts=np.bincount(sent, minlength=size).astype(np.int64), n=len(sent))


def frequencies(protocol: Any, tally: Tally, *, confidence: float = CONFIDENCE) -> Estimate:
    """Estimate the frequency of each value: (supporting reports / n - q) / (p - q)."""
    if not tally.n:
        raise UsageError("There are no reports to estimate from.")
    support: Support = protocol.support
    estimates = (tally.counts / tally.n - float(support.q)) / float(support.p - support.q)
    return Estimate(
        statistic="frequency",
        values=protocol.domain,
        estimates=estimates,
        margins=margins(support, estimates, n=tally.n, confidence=confidence),
        consistent=norm_sub(estimates),
        n=tally.n,
        epsilon=protocol.epsilon,
    )


def margins(support: Support, estimates: Floats, *, n: int, confidence: float) -> Floats:
    """Return half-widths h: the truth f lies in estimate ± h with at least this confidence,
    whatever f is.

    h = z * sd(f) where f is the end of the interval at which the deviation is larger (a score
    interval's longer arm), plus the part of a report that `whole_reports` adds.
    """
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    at_zero, at_one = (float(support.variance(n=n, frequency=Fraction(end))) for end in (0, 1))
    slope = at_one - at_zero
    half = np.full(len(estimates), z * max(at_zero, at_one) ** 0.5)
    for _ in range(4):
        end = np.clip(estimates + np.copysign(half, slope), 0, 1)
        variance = at_zero + slope * end
        half[:] = z * np.sqrt(variance)
    report = 1 / (n * float(support.p - support.q))
    return half + whole_reports(variance / report**2) * report


def whole_reports(variance: Floats) -> Floats:
    """Return what a normal margin lacks, since reports are whole: half a report, or one if their
    number varies little.

    Computed exactly for sums of two binomial variables of all sizes, this covers at least 95 %;
    half a report alone covers 93.8 % where one in twenty collections has a single flipped answer.
    """
    return np.where(variance < 3, 1.0, 0.5)


def norm_sub(estimates: Floats) -> Floats:
    """Return the nearest frequencies of at least 0 that add up to 1: subtract one number from all,
    cut at 0.

    That is the projection on the simplex, called Norm-Sub in [Wang et al. 2020, Locally
    differentially private frequency estimation with consistency].
    """
    falling = np.sort(estimates)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(falling) + 1)
    shift = float(excess[np.flatnonzero(falling > excess)[-1]])
    return np.maximum(estimates - shift, 0.0)


def rows(reports: Any, values: int) -> NDArray[np.uint64]:
    """Return unary reports as rows of words, from such rows or from integers of `values` bits."""
    width = -(-values // 64)
    if isinstance(reports, np.ndarray):
        words = reports
    else:
        joined = b"".join(int(report).to_bytes(8 * width, "little") for report in reports)
        words = np.frombuffer(joined or b"", dtype="<u8").reshape(-1, width)
    if words.dtype != np.uint64 or words.ndim != 2 or words.shape[1] != width:
        raise UsageError(f"Reports to this question are rows of {width} words.")
    if values % 64 and len(words) and int(words[:, -1].max()) >> values % 64:
        raise UsageError(f"Reports to this question have {values} bits.")
    return words


def column_sums(reports: Any, values: int) -> Tally:
    """Count the reports that have each bit set.

    Three rows are added bit by bit to two, a sum and a carry (a full adder on 64 columns at once),
    until two rows of each binary weight are left; only these are spread out into columns.
    """
    packed = rows(reports, values)
    counts = np.zeros(64 * packed.shape[1], dtype=np.int64)
    for start in range(0, len(packed), 4096):
        level = packed[start : start + 4096]
        weight = 0
        while len(level):
            level, carries = _add(level)
            spread = np.unpackbits(level.view(np.uint8), axis=1, bitorder="little")
            counts += spread.sum(axis=0, dtype=np.int64) << weight
            level = carries
            weight = weight + 1
    return Tally(counts=counts[:values], n=len(packed))


def _add(level: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return at most two rows of this weight, and the carries of the next."""
    carries = []
    while len(level) > 2:
        third = len(level) // 3
        a = level[:third]
        b = level[third : 2 * third]
        c = level[2 * third : 3 * third]
        either = a ^ b
        carries.append((a & b) | (either & c))
        level = np.concatenate([either ^ c, level[3 * third :]])
    return np.ascontiguousarray(level), np.concatenate(carries) if carries else level[:0]


def mean(protocol: Any, tally: Tally, *, confidence: float = CONFIDENCE) -> Estimate:
    """Estimate the mean answer by the mean reading of all reports. The margin holds whatever the
    answers were.

    It has room for the widest gap between two readings that follow each other, because reports come
    in whole numbers, or for all between the lowest and the highest, where fewer than one such
    report is expected.
    """
    if not tally.n:
        raise UsageError("There are no reports to estimate from.")
    low, high = (
        float(answers.number(protocol.domain, end)) for end in (0, protocol.domain.size - 1)
    )
    ends: list[Fraction] = []
    # the sum of the readings, exactly, and the widest gap between two
    total = Fraction(0)
    widest = Fraction(0)
    for start, stop in pairwise(protocol.pieces):
        counts = tally.counts[start:stop]
        first = protocol.reading(start)
        gap = protocol.reading(start + 1) - first
        total += int(counts.sum()) * first + int(counts @ np.arange(stop - start)) * gap
        widest = max(widest, gap)
        ends += [first, protocol.reading(stop - 1)]
    found = float(answers.number(protocol.domain, total / tally.n))
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    variance = protocol.variance(n=tally.n)
    across = (max(ends) - min(ends)) * protocol.domain.step / tally.n
    room = float(across if variance < across**2 else widest * protocol.domain.step / tally.n)
    return Estimate(
        statistic="mean",
        values=("mean",),
        estimates=np.array([found]),
        margins=np.array([z * float(variance) ** 0.5 + room]),
        consistent=np.array([min(max(found, low), high)]),
        n=tally.n,
        epsilon=protocol.epsilon,
    )
