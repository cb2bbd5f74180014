"""Drawings for the pages of an audit: plain SVG, readable without scripts and in print."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from html import escape

from discreet.audit.epsilon import Finding
from discreet.audit.question import Picture

_CLAIMED, _PROVED = "#90a4ae", "#1565c0"
_ONE, _OTHER = "#1565c0", "#ef6c00"


def bars(findings: Sequence[Finding]) -> str:
    """Claimed beside proved, one pair of bars each."""
    widest = max([each.claimed for each in findings] + [each.proved for each in findings] + [1e-9])
    parts = []
    for index, each in enumerate(findings):
        top = 44 * index
        pairs = ((each.claimed, _CLAIMED, "claimed"), (each.proved, _PROVED, "proved"))
        for place, (value, color, word) in enumerate(pairs):
            width, y = 380 * value / widest, top + 18 * place
            parts.append(f'<rect x="230" y="{y}" width="{width:.1f}" height="14" fill="{color}"/>')
            parts.append(f'<text x="{240 + width:.1f}" y="{y + 12}">{word} {value:.3g}</text>')
        parts.append(f'<text x="0" y="{top + 20}">{escape(_short(each.name))}</text>')
    return _svg("Claimed and proved epsilon", 760, 44 * len(findings), parts)


def outcomes(picture: Picture) -> str:
    """How often each outcome came on the one neighbor and on the other, from least to most telling."""
    highest = max([*picture.first, *picture.second, 1])
    step = 640 / max(1, len(picture.first))
    parts = []
    for counts, color, shift in ((picture.first, _ONE, 0.0), (picture.second, _OTHER, 0.45)):
        for place, count in enumerate(counts):
            height = 120 * count / highest
            x = 40 + step * (place + shift)
            parts.append(
                f'<rect x="{x:.1f}" y="{145 - height:.1f}" width="{0.42 * step:.1f}" height="{height:.1f}" '
                f'fill="{color}"/>'
            )
    parts.append('<line x1="40" y1="145" x2="680" y2="145" stroke="#777"/>')
    parts.append('<text x="40" y="163">looks like the second database</text>')
    parts.append('<text x="680" y="163" text-anchor="end">looks like the first</text>')
    parts.append(f'<rect x="470" y="0" width="10" height="10" fill="{_ONE}"/><text x="485" y="10">on the first</text>')
    parts.append(
        f'<rect x="580" y="0" width="10" height="10" fill="{_OTHER}"/><text x="595" y="10">on the second</text>'
    )
    return f"<h3>{escape(picture.name)}</h3>" + _svg(f"Outcomes of {_short(picture.name)}", 700, 170, parts)


def spending(charged: Sequence[float], *, limit: float, currency: str) -> str:
    """What was spent after each charge, as steps, under the line that it must not pass."""
    totals = [0.0, *itertools.accumulate(charged)]
    highest = max(limit, totals[-1]) or 1.0
    step = 600 / max(1, len(charged))
    x = [40 + step * place for place in range(len(totals))]
    y = [150 - 130 * total / highest for total in totals]
    line = f"M{x[0]:.1f} {y[0]:.1f}" + "".join(f"V{up:.1f}H{right:.1f}" for right, up in zip(x[1:], y[1:], strict=True))
    top = 150 - 130 * limit / highest
    parts = [
        f'<path d="{line}V150H40Z" fill="{_PROVED}" fill-opacity="0.25" stroke="{_PROVED}"/>',
        f'<line x1="40" y1="{top:.1f}" x2="640" y2="{top:.1f}" stroke="#b00020" stroke-dasharray="6 4"/>',
        f'<text x="645" y="{top + 4:.1f}">limit {limit:.4g}</text>',
        f'<text x="645" y="{min(y[-1], 146) + 4:.1f}">{totals[-1]:.4g}</text>' if totals[-1] < 0.9 * limit else "",
        '<line x1="40" y1="150" x2="640" y2="150" stroke="#777"/>',
        '<text x="40" y="168">first charge</text>',
        f'<text x="640" y="168" text-anchor="end">last of {len(charged)}</text>',
        f'<text x="0" y="{top + 4:.1f}">{escape(currency)}</text>',
    ]
    return _svg("What was spent", 760, 175, parts)


def _svg(label: str, width: int, height: int, parts: Sequence[str]) -> str:
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return f'<svg role="img" aria-label="{escape(label)}" {size}>{"".join(parts)}</svg>'


def _short(text: str) -> str:
    return text if len(text) <= 34 else text[:33] + "…"
