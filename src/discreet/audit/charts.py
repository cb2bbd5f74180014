"""Charts of an audit: claims beside proofs, outcomes on two neighbors, and what was spent."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from discreet.audit.epsilon import AuditFinding
from discreet.audit.question import Picture
from discreet.pages import axis, blocks
from discreet.pages.bars import Series, bars
from discreet.pages.plot import Curve, plot


def claims(findings: Sequence[AuditFinding]) -> str:
    """Draw claimed beside proved, one pair of bars each."""
    claimed = [each.claimed for each in findings]
    proved = [each.proved for each in findings]
    pairs = (("claimed", claimed, 0), ("proved by runs", proved, 1))
    series = [
        Series(values=values, texts=[f"{value:.3g}" for value in values], name=name, color=color)
        for name, values, color in pairs
    ]
    scale = axis.numbers(0.0, max([*claimed, *proved, 1e-9]), title="ε")
    chart = bars([each.name for each in findings], series, axis=scale, label="claimed and proved ε")
    return blocks.figure("Claimed and proved ε", chart)


def outcomes(picture: Picture) -> str:
    """Draw how often each outcome came on either neighbor, from least to most telling."""
    many = max(1, len(picture.first))
    across = axis.Axis(
        low=0.0,
        high=float(many),
        ticks=((0.0, "looks like the second database"), (float(many), "looks like the first")),
    )
    up = axis.numbers(0.0, max([*picture.first, *picture.second, 1]), title="runs")
    curves = [
        Curve(
            across=_steps(counts, double=False),
            up=_steps(counts, double=True),
            name=name,
            color=color,
        )
        for counts, name, color in (
            (picture.first, "on the first", 0),
            (picture.second, "on the second", 1),
        )
    ]
    return blocks.figure(
        picture.name, plot(curves, across=across, up=up, label=f"outcomes of {picture.name}")
    )


def _steps(counts: Sequence[int], *, double: bool) -> list[float]:
    """Outline columns: each count twice, at the two ends of its column."""
    if double:
        return [float(count) for count in counts for _ in range(2)]
    return [float(place + end) for place in range(len(counts)) for end in (0, 1)]


def spending(charges: Sequence[float], *, limit: float, currency: str) -> str:
    """Draw what was spent after each charge, as steps, under the line that it must not pass."""
    totals = [0.0, *itertools.accumulate(charges)]
    many = len(charges)
    places = [float(place + end) for place in range(many) for end in (0, 1)]
    heights = [total for total in totals[1:] for _ in range(2)]
    across = axis.Axis(
        low=0.0,
        high=float(many),
        ticks=((0.0, "first charge"), (float(many), f"last of {many:,}")),
        title="charges",
    )
    curves = [
        Curve(across=[0.0, *places], up=[0.0, *heights], name=f"spent: {totals[-1]:.4g}"),
        Curve(
            across=[0.0, float(many)],
            up=[limit, limit],
            name=f"limit: {limit:.4g}",
            color=1,
            kind="dash",
        ),
    ]
    up = axis.numbers(0.0, max(limit, totals[-1]) or 1.0, title=f"{currency} spent")
    return blocks.figure(
        "What was spent", plot(curves, across=across, up=up, label="what was spent")
    )
