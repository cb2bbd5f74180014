"""Made-up reports: how much they can do, and which of them show.

Whoever sends a report chosen at will, rather than drawn, cannot as a rule be told from an honest
respondent by that one report: that is what privacy means. What can be said is stated here: a bound
on the effect of any number of such reports on any estimate (`effect`), single reports that no
honest respondent sends (`implausible`), and whole collections that no honest respondents send
(`suspicions`). Each of the latter two is wrong once in 10^9 times.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import comb, exp, lgamma, log, log1p
from typing import Any

from discreet.local.protocols import odds
from discreet.local.protocols.odds import Support

FALSE_ALARM = 1e-9
_BINS = 256


def effect(protocol: Any, *, fakes: int, n: int) -> float:
    """Return the most by which `fakes` of n reports, made up with full knowledge, move an estimate.

    Compared with honest answers of these respondents, whatever they would have been.
    """
    if hasattr(protocol, "support"):
        support: Support = protocol.support
        return float(support.poisoned(fakes=fakes, n=n)) * getattr(protocol, "items", 1)
    if hasattr(protocol, "poisoned"):
        return float(protocol.poisoned(fakes=fakes, n=n))
    if hasattr(protocol, "reading"):
        readings = [
            protocol.reading(report)
            for report in _ends(protocol)
            if not implausible(protocol, report)
        ]
        top = protocol.domain.size - 1
        furthest = max(max(readings), top - min(readings))
        return float(Fraction(fakes, n) * furthest * protocol.domain.step)
    from discreet.local.collector.distribution import inverse

    read = inverse(protocol.window)
    return fakes / n * float(max((1 - read).max(), read.max()))


def _ends(protocol: Any) -> list[int]:
    """Return the reports with the lowest and highest readings of each piece."""
    inner = protocol.pieces
    return [*inner[:-1], *(stop - 1 for stop in inner[1:])]


def implausible(protocol: Any, report: int) -> bool:
    """Return True if an honest respondent sends a report like this less than once in 10^9 times.

    A unary report shows it by the number of its ones: a report with a one for every value would
    vote for all. A hybrid report shows it if its part is never used, a set if its size is wrong.
    All reports of the other protocols can be honest.
    """
    if hasattr(protocol, "sends"):
        return not protocol.sends(report)
    if not protocol.name.endswith("unary"):
        return False
    least, most = _ones(len(protocol.domain), protocol.support)
    return not least <= report.bit_count() <= most


@lru_cache(maxsize=64)
def _ones(d: int, support: Support) -> tuple[int, int]:
    """Return the numbers of ones between which all but 10^-9 of honest reports lie: one coin of p,
    d - 1 of q.
    """
    p = float(support.p)
    q = float(support.q)
    others = [_binomial(d - 1, k, q) for k in range(d)]
    chances = [
        (1 - p) * (others[k] if k < d else 0.0) + p * (others[k - 1] if k else 0.0)
        for k in range(d + 1)
    ]
    least = 0
    below = chances[0]
    while below < FALSE_ALARM / 2:
        least += 1
        below += chances[least]
    most = d
    above = chances[d]
    while above < FALSE_ALARM / 2:
        most -= 1
        above += chances[most]
    return least, most


def _binomial(n: int, k: int, p: float) -> float:
    return exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log1p(-p))


def suspicions(protocol: Any, reports: Any) -> list[str]:
    """Return sentences about a collection of reports that honest respondents would not send,
    whatever their answers are.
    """
    if not len(reports):
        return []
    found = [*_uneven(protocol, reports), *_same_sets(protocol, reports)]
    tally = protocol.tally(reports)
    if hasattr(protocol, "support") and not hasattr(protocol, "items"):
        found += _out_of_range(protocol, tally)
    elif hasattr(protocol, "window") or hasattr(protocol, "piecewise"):
        found += _too_full(protocol, tally)
    return found


def _uneven(protocol: Any, reports: Any) -> list[str]:
    """Test that the part of a report drawn without regard to the truth is uniform: in bins, by
    chi-squared.
    """
    import numpy as np
    from scipy.special import chdtrc

    if protocol.name == "heavy_hitters":
        what, choices = "levels", protocol.levels
        drawn = [int(report) % choices for report in reports]
    elif (
        protocol.name in ("local_hashing", "hadamard", "few_changes")
        or getattr(protocol, "modulus", 0) > 0
    ):
        answers = {"local_hashing": "g", "subset_selection": "modulus"}.get(protocol.name, "")
        each = getattr(protocol, answers, 2)  # reports for each function, row or step
        what = "functions"
        choices = protocol.size // each
        drawn = [int(report) // each for report in reports]
    else:
        return []
    bins = min(choices, _BINS, max(1, len(drawn) // 20))
    if bins < 2:
        return []
    edges = np.linspace(0, choices, bins + 1).astype(np.int64)
    seen = np.histogram(drawn, bins=edges)[0]
    expected = np.diff(edges) / choices * len(drawn)
    if chdtrc(bins - 1, ((seen - expected) ** 2 / expected).sum()) >= FALSE_ALARM:
        return []
    return [f"the {what} in these reports are not drawn uniformly, so some reports are made up"]


def _same_sets(protocol: Any, reports: Any) -> list[str]:
    """Test that no set of w values comes oftener than its largest mass explains."""
    from collections import Counter

    from scipy.special import bdtrc

    if getattr(protocol, "modulus", 1):  # progressions are looked at by `_uneven`
        return []
    most = float(odds.chance(protocol.keep) / comb(len(protocol.domain) - 1, protocol.w - 1))
    keys = (report if isinstance(report, int) else report.tobytes() for report in reports)
    (_, count), *_ = Counter(keys).most_common(1)
    if bdtrc(count - 1, len(reports), most) >= FALSE_ALARM / comb(len(protocol.domain), protocol.w):
        return []
    return ["one set was sent more often than any honest answers send it"]


def _out_of_range(protocol: Any, tally: Any) -> list[str]:
    """Test that no frequency is beyond 0 or 1 by more than chance, as honest answers keep it."""
    from discreet.local.collector.estimate import frequencies

    found = frequencies(protocol, tally, confidence=1 - FALSE_ALARM / len(tally.counts))
    over = found.estimates - found.margins > 1
    under = found.estimates + found.margins < 0
    if not (over | under).any():
        return []
    return [
        f"{int(over.sum() + under.sum())} values have more or fewer reports than any honest answers give"
    ]


def _too_full(protocol: Any, tally: Any) -> list[str]:
    """Test that no cell has more reports than its largest mass explains."""
    import numpy as np
    from scipy.special import bdtrc

    window = protocol.window if hasattr(protocol, "window") else protocol.piecewise.window
    counts = tally.counts[: window.cells]
    most = float(window.mass(0, 0))
    n = tally.n if hasattr(protocol, "window") else int(counts.sum())
    beyond = counts[counts > n * most]  # the others are not even above what is expected
    crowded = int(np.count_nonzero(bdtrc(beyond - 1, n, most) < FALSE_ALARM / len(counts)))
    if crowded:
        return [f"{crowded} numbers were sent more often than any honest answers send them"]
    return []
