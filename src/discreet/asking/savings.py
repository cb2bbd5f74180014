"""Suggest other ways of writing a question that have smaller margins, and say how much smaller.

An alternative is planned, proved and priced like a question, at the same ε. It is suggested only if
one margin is smaller by a tenth or more and none is wider. So an analyst who follows the advice
gets the stated margin. No data is read for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from discreet.asking.offer import Offer
from discreet.display.show import short_margin
from discreet.sql.alternatives import Alternative

ROWS = 1_000  # assumed for margins that depend on how many rows there are
_WORTH = 0.9  # of a margin: less of a gain is not worth a sentence


def savings(
    offered: Offer, others: Sequence[tuple[Alternative, Offer]], *, assuming: int | None
) -> tuple[str, ...]:
    """Return a sentence for each alternative that is better than the offer."""
    told = (_sentence(offered, each, other, assuming or ROWS) for each, other in others)
    return tuple(each for each in told if each is not None)


def _sentence(offered: Offer, way: Alternative, other: Offer, assuming: int) -> str | None:
    if other.cost.delta > offered.cost.delta:
        return None
    sizes = _known_margins(offered, assuming)
    now = _known_margins(other, assuming)
    gains: dict[int, tuple[float, float]] = {}
    for place, kept in enumerate(way.kept):
        before = sizes[kept]
        after = now[place]
        if before is None or after is None:
            if offered.plan.columns[kept].measured or before != after:
                return None  # who knows whether it is better
        elif after > before * (1 + 1e-9):
            return None
        elif after < before and after <= _WORTH * before:  # 0 cannot become smaller
            gains[kept] = before, after
    if way.about is not None:
        before, after = gains.get(way.about, (0, 0))
        much = f"± {short_margin(after)} instead of ± {short_margin(before)}" if before else None
        return None if much is None else f"{way.says}: {much}."
    if not gains:
        return None
    # the first of those that gain about as much
    best = min(gains, key=lambda place: round(gains[place][1] / gains[place][0], 1))
    before, after = gains[best]
    name = offered.plan.columns[best].name
    if name in offered.ranks():
        return f"{way.says}, {name} would be within {after:,.0f} ranks instead of {before:,.0f}."
    rows = "" if offered.margin(best, assuming=None) is not None else f" at {assuming:,} rows"
    much = f"± {short_margin(after)} instead of ± {short_margin(before)}{rows}"
    return f"{way.says}, {name} would be {much}."


def _known_margins(offered: Offer, assuming: int) -> list[float | None]:
    """Return the margin of each column, for a quantile in ranks; None if it is not known
    beforehand.
    """
    ranks = offered.ranks()
    return [
        float(ranks[column.name])
        if column.name in ranks
        else offered.margin(place, assuming=assuming)
        if column.tells_margin
        else None
        for place, column in enumerate(offered.plan.columns)
    ]
