"""The collector's side of `FewChanges`: frequencies in a round from the bits of all rounds so
far.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from discreet.local.collector.estimate import Estimate, Tally, norm_sub
from discreet.local.collector.transform import walsh_hadamard

if TYPE_CHECKING:
    from discreet.local.protocols.repeated.few_changes import FewChanges


def read_round(
    protocol: FewChanges, round: int, tallies: Mapping[int, Tally], *, confidence: float
) -> Estimate | None:
    """Return unbiased frequencies and their margins.

    For a respondent with row j the sign of value v is H[j, v]. A term is the mean, over those who
    speak in its part, of H[j, v] times their bit, over the gap. The terms add up to f_v - (1 - f_v)
    / (D - 1), because two values agree in D / 2 - 1 of the D - 1 rows. Each term has a variance of
    at most 1 / n times (weight / gap)^2; that respondents are in one part and no other makes the
    terms correlated so that their sum varies less.
    """
    d = protocol.rows + 1
    values = len(protocol.domain)
    mean = np.zeros(values)
    variance = 0.0
    widest = 0.0
    for part, spoken, weight, gap in protocol.terms(round):
        if spoken not in tallies:
            return None
        table = tallies[spoken].counts.reshape(protocol.rows, protocol.parts, 2)[:, part]
        n = int(table.sum())
        if not n:
            return None
        scale = weight / float(gap)
        signs = np.concatenate([[0], table[:, 0] - table[:, 1]])
        mean += scale * walsh_hadamard(signs)[:values] / n
        variance += scale**2 / n
        widest = max(widest, scale / n)
    share = (d - 1) / d
    estimates = mean * share + 1 / d
    # Half of the widest step between two estimates is added, because bits come in whole numbers.
    half = share * (NormalDist().inv_cdf(0.5 + confidence / 2) * variance**0.5 + widest)
    return Estimate(
        statistic="frequency",
        values=protocol.domain,
        estimates=estimates,
        margins=np.full(values, half),
        consistent=norm_sub(estimates),
        n=tallies[round].n if round in tallies else 0,
        epsilon=protocol.epsilon,
    )
