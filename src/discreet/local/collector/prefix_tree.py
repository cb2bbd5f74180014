"""The server's side of heavy hitters: the walk down the prefix tree.

A report (a, y) over the field of g = 2^s elements says y = <a, v>, and that is the same as g - 1
signed votes of the Hadamard kind: [y = <a, v>] = (1 + sum over c != 0 of (-1)^trace(c (y - <a,
v>))) / g. The trace of c <a, v> is the parity of v & mask, for a mask that depends on c and a only
(`field.mask`). So the support of all 2^16 extensions of a prefix is one Walsh-Hadamard transform of
votes, counted by the mask of the 16 bits of a after the prefix.
"""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from discreet.errors import UsageError
from discreet.local.collector.estimate import Estimate, ReportRows, Words, whole_reports
from discreet.local.collector.many import Draws
from discreet.local.collector.transform import along_first, walsh_hadamard
from discreet.local.protocols import field as finite
from discreet.local.protocols.heavy_hitters import BREADTH, FALSELY, STRIDE

if TYPE_CHECKING:
    from discreet.local.protocols.heavy_hitters import HeavyHitters

_ONE = np.uint64(1)


def width(protocol: HeavyHitters) -> int:
    return -(-protocol.code_bits // 64)


def rows(protocol: HeavyHitters, reports: Any) -> ReportRows:
    """Return rows, from rows as `encode` makes them or from integers as `respond` does."""
    wide = width(protocol)
    spare = protocol.g * protocol.levels
    if not isinstance(reports, np.ndarray):
        found = np.empty((len(reports), wide + 1), dtype=np.uint64)
        for i, report in enumerate(reports):
            rest, level = divmod(int(report), protocol.levels)
            function, sent = divmod(rest, protocol.g)
            found[i, :wide] = np.frombuffer(function.to_bytes(8 * wide, "little"), dtype="<u8")
            found[i, wide] = sent * protocol.levels + level
        reports = found
    if reports.dtype != np.uint64 or reports.ndim != 2 or reports.shape[1] != wide + 1:
        raise UsageError(f"Reports to this question are rows of {wide + 1} words.")
    if len(reports) and int(reports[:, -1].max()) >= spare:
        raise UsageError("A report to this question names a level or a hash that does not exist.")
    return ReportRows(words=reports)


def encode(protocol: HeavyHitters, values: Any) -> Words:
    wide = width(protocol)
    n = len(values)
    draws = Draws(n)
    level = draws.below(protocol.levels)
    item = draws.below(protocol.items)
    functions = draws.words(wide)
    if spare := -protocol.code_bits % 64:
        functions[:, -1] &= np.uint64((1 << (64 - spare)) - 1)
    kept = draws.coin(protocol.keep)
    other = draws.below(protocol.g - 1)
    code = _choose(protocol, values, item)
    for word in range(wide):  # keep the prefix of the level
        held = np.clip(STRIDE * (level + 1) - 64 * word, 0, 64)
        code[:, word] &= np.where(
            held == 64, np.uint64(2**64 - 1), (_ONE << (held % 64).astype(np.uint64)) - _ONE
        )
    true = dots(trace_masks(functions, protocol.g), code, protocol.g)
    sent = np.where(kept, true, other + (other >= true))
    return np.column_stack([functions, (sent * protocol.levels + level).astype(np.uint64)])


def _choose(protocol: HeavyHitters, values: Any, item: NDArray[np.int64]) -> Words:
    """Return the code of the item that each respondent speaks about."""
    wide = 8 * width(protocol)
    answers = [value if isinstance(value, str) else frozenset(value) for value in values]
    codes = {
        answer: [code.to_bytes(wide, "little") for code in protocol.codes(answer)]
        for answer in set(answers)
    }
    if protocol.items > 1:
        spoken = [*map(codes.__getitem__, answers)]
        parts = [
            one[place] if place < len(one) else bytes(wide)
            for one, place in zip(spoken, item.tolist(), strict=True)
        ]
    else:
        first = {answer: (known or [bytes(wide)])[0] for answer, known in codes.items()}
        parts = [*map(first.__getitem__, answers)]
    return np.frombuffer(b"".join(parts), dtype="<u8").reshape(len(parts), -1).copy()


@lru_cache(maxsize=64)
def _byte_masks(c: int, g: int) -> NDArray[np.uint8]:
    """Return, for every byte of elements a, the byte of their masks of c a."""
    digits = [finite.mask(finite.times(c, a, g), g) for a in range(g)]
    places = range(0, 8, _element(g))
    return np.array(
        [sum(digits[byte >> k & g - 1] << k for k in places) for byte in range(256)], dtype=np.uint8
    )


@lru_cache(maxsize=8)
def _from_traces(g: int) -> NDArray[np.int64]:
    """Return, for every number, the element y whose traces of 2^k y are the bits of the number."""
    elements = sorted(range(g), key=lambda y: finite.mask(y, g))
    return np.array(elements, dtype=np.int64)


def trace_masks(a: Words, g: int) -> list[Words]:
    """Return the masks of a, 2 a, 4 a, ..: their parities with v are the traces that tell <a,
    v>.
    """
    if g == 2:
        return [a]
    return [
        _byte_masks(1 << bit, g)[a.view(np.uint8)].view(np.uint64) for bit in range(_element(g))
    ]


def dots(masks: list[Words], v: Words, g: int) -> NDArray[np.int64]:
    """Return `field.dot` of rows of elements; the first rows are given by their masks."""
    traces = np.zeros(len(masks[0]), dtype=np.int64)
    for bit, mask in enumerate(masks):
        folded = mask[:, 0] & v[..., 0]
        for column in range(1, mask.shape[1]):
            folded ^= mask[:, column] & v[..., column]
        traces |= (np.bitwise_count(folded) & 1).astype(np.int64) << bit
    return traces if g == 2 else _from_traces(g)[traces]


def _element(g: int) -> int:
    """Return the bits of an element."""
    return g.bit_length() - 1


def walk(protocol: HeavyHitters, tally: ReportRows, *, confidence: float) -> Estimate:
    """Find, level by level, the prefixes that stand out from those that nobody has; the last level
    gives strings.

    A prefix stands out if so many supporting reports would come for any of the candidates, had
    nobody one of them, with probability FALSELY at most.
    """
    if not tally.n:
        raise UsageError("There are no reports to estimate from.")
    sent, level = np.divmod(tally.words[:, -1].astype(np.int64), protocol.levels)
    p = float(protocol.support.p)
    q = float(protocol.support.q)
    found: list[tuple[int, int]] = [(0, 0)]
    speaking = 0
    for depth in range(protocol.levels):
        at = level == depth
        speaking = int(at.sum())
        parents = [code for code, _ in found]
        supports = _extensions(protocol, parents, tally.words[at, :-1], sent[at], depth)
        least = _least(speaking, q, FALSELY / max(supports.size, 1))
        found = _standing_out(protocol, parents, supports, least, depth)
    strings = [(protocol.text(code, protocol.code_bits), support) for code, support in found]
    named = [(string, support) for string, support in strings if string]
    supported = np.array([support for _, support in named], dtype=np.float64)
    shares = (supported / max(speaking, 1) - q) / (p - q) * protocol.items
    return Estimate(
        statistic="frequency",
        values=tuple(string for string, _ in named),
        estimates=shares,
        margins=_margins(protocol, shares, tally.n, speaking, confidence),
        consistent=np.clip(shares, 0, 1),
        n=tally.n,
        epsilon=protocol.epsilon,
    )


def _extensions(
    protocol: HeavyHitters,
    parents: list[int],
    functions: Words,
    sent: NDArray[np.int64],
    depth: int,
) -> NDArray[np.int64]:
    """Count the support of every extension (column) of every parent (row) at one level."""
    g = protocol.g
    start = STRIDE * depth
    extensions = 1 << min(STRIDE, protocol.code_bits - start)
    word, shift = divmod(start, 64)
    after = (functions[:, word] >> np.uint64(shift)).astype(np.int64) & (extensions - 1)
    before = trace_masks(np.ascontiguousarray(functions[:, : word + 1]), g)
    places = [(finite.mask(c, g), _mask(np.arange(extensions), c, g)) for c in range(1, g)]
    supports = np.empty((len(parents), extensions), dtype=np.int64)
    for row, parent in enumerate(parents):
        code = np.array(
            [parent >> (64 * k) & (2**64 - 1) for k in range(word + 1)], dtype=np.uint64
        )
        # what the extension must account for
        left = sent ^ dots(before, code, g) if parent else sent
        table = np.bincount(left * extensions + after, minlength=extensions * g).reshape(g, -1)
        # the sum over y of (-1)^trace(c y) stands in the row of the mask of c
        signed = along_first(table)
        votes = np.zeros(extensions, dtype=np.int64)
        for mask, place in places:
            votes[place] += signed[mask]
        supports[row] = (len(sent) + walsh_hadamard(votes)) // g
    return supports


def _mask(a: NDArray[np.int64], c: int, g: int) -> NDArray[np.int64]:
    table = _byte_masks(c, g).astype(np.int64)
    both: NDArray[np.int64] = table[a & 255] | table[a >> 8] << 8
    return both


def _least(n: int, q: float, chance: float) -> int:
    """Return the least number that a binomial variable reaches with at most this probability; n + 1
    if none.
    """
    return bisect_left(
        range(n + 2), -chance, key=lambda k: -1.0 if k == 0 else -float(bdtrc(k - 1, n, q))
    )


def _standing_out(
    protocol: HeavyHitters, parents: list[int], supports: NDArray[np.int64], least: int, depth: int
) -> list[tuple[int, int]]:
    """Return the BREADTH most supported extensions with at least this support that could begin a
    string.
    """
    start = STRIDE * depth
    flat = supports.reshape(-1)
    passing = np.flatnonzero(flat >= least)
    passing = passing[np.argsort(-flat[passing], kind="stable")]
    found = []
    for place in passing.tolist():
        row, extension = divmod(place, supports.shape[1])
        code = parents[row] | extension << start
        if protocol.text(code, min(start + STRIDE, protocol.code_bits)) is not None:
            found.append((code, int(flat[place])))
        if len(found) == BREADTH:
            break
    return found


def _margins(
    protocol: HeavyHitters, shares: NDArray[np.float64], n: int, speaking: int, confidence: float
) -> NDArray[np.float64]:
    """Return margins for the coins at the last level, and because its speakers are a random part of
    all.

    The variance is the largest within the interval itself; `whole_reports` adds a part of a report.
    Both hold before strings are selected: one at the edge of being found is found when chance adds
    to it.
    """
    each = shares / protocol.items
    spoke = max(speaking, 1)
    zero, one = (
        float(protocol.support.variance(n=spoke, frequency=Fraction(end))) for end in (0, 1)
    )
    part = 1.0 if protocol.items > 1 else 1 - speaking / n
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    report = 1 / (spoke * float(protocol.support.p - protocol.support.q))
    # of the parabola
    top = 0.5 + (one - zero) * spoke / (2 * part) if part else (0.5 + np.copysign(0.5, one - zero))
    half = np.zeros(len(each))
    for _ in range(6):
        worst = np.clip(np.clip(top, each - half, each + half), 0, 1)
        variance = zero + (one - zero) * worst + worst * (1 - worst) * part / spoke
        half = z * np.sqrt(variance) + whole_reports(variance / report**2) * report
    return protocol.items * half
