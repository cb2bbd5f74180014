"""A map of all pairs of names: the stronger the color, the larger the value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, slots=True, kw_only=True)
class Square:
    """A pair: the places of two names, a value from 0 to `full`, and whether it is marked by a
    dot.
    """

    row: int
    column: int
    value: float
    marked: bool = False


def heat(names: Sequence[str], squares: Iterable[Square], *, full: float, label: str) -> str:
    """Draw every pair twice, as the map is the same on both sides of its diagonal."""
    many = len(names)
    parts = []
    for each in squares:
        title = f"<title>{escape(f'{names[each.row]} × {names[each.column]}: {each.value:.3f}')}</title>"
        for x, y in ((each.row, each.column), (each.column, each.row)):
            parts.append(
                f'<rect class="fill" fill-opacity="{_strength(each.value / full):.2f}" x="{10 * x + 0.3:.1f}" '
                f'y="{10 * y + 0.3:.1f}" width="9.4" height="9.4">{title}</rect>'
            )
            if each.marked:
                parts.append(
                    f'<circle class="fill c1" cx="{10 * x + 5}" cy="{10 * y + 5}" r="1.1"/>'
                )
    left = "".join(f"<span>{escape(name)}</span>" for name in names)
    return (
        f'<div class="heat c0" style="--many: {many}"><div></div><div class="top">{left}</div><div class="left">{left}'
        f'</div><div class="squares"><svg viewBox="0 0 {10 * many} {10 * many}" role="img" '
        f'aria-label="{escape(label)}">{"".join(parts)}</svg></div></div>{_scale(full)}'
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A place in a map of rows by columns: a share from 0 to 1, and the words that a pointer
    shows.
    """

    share: float
    title: str


def shares(
    rows: Sequence[str], columns: Sequence[str], patches: Sequence[Sequence[Patch]], *, label: str
) -> str:
    """Draw rows by columns; the fuller the color, the larger the share."""
    parts = [
        f'<rect class="fill" fill-opacity="{_share(patch.share):.2f}" x="{20 * x + 0.4:.1f}" y="{10 * y + 0.4:.1f}" '
        f'width="19.2" height="9.2"><title>{escape(patch.title)}</title></rect>'
        for y, line in enumerate(patches)
        for x, patch in enumerate(line)
    ]
    left, top = (
        "".join(f"<span>{escape(name)}</span>" for name in names) for names in (rows, columns)
    )
    return (
        f'<div class="heat c0" style="--many: {2 * len(columns)}; --tall: {len(rows)}"><div></div>'
        f'<div class="top">{top}</div><div class="left">{left}</div><div class="squares oblong">'
        f'<svg viewBox="0 0 {20 * len(columns)} {10 * len(rows)}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(label)}">{"".join(parts)}</svg></div></div>{_legend("none", "all", _share)}'
    )


def _share(share: float) -> float:
    return 0.05 + 0.95 * min(1.0, max(0.0, share))


def _strength(share: float) -> float:
    """Return from hardly visible to full; small values are spread apart."""
    return float(0.06 + 0.94 * min(1.0, max(0.0, share)) ** 0.6)


def _scale(full: float) -> str:
    return _legend("0", f"{full:g} or more", _strength)


def _legend(low: str, high: str, strength: Callable[[float], float]) -> str:
    steps = "".join(
        f'<rect class="fill" fill-opacity="{strength(step / 9):.2f}" x="{10 * step}" width="10" height="10"/>'
        for step in range(10)
    )
    return (
        f'<div class="legend c0" style="margin-top: .6em"><span>{low}</span><span style="width: 10em; height: 1em">'
        f'<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">{steps}</svg></span>'
        f"<span>{high}</span></div>"
    )
