"""A release as one web page without scripts: each series in its band, the budget beside what naive releases cost."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from discreet.budget import with_margin
from discreet.continual.chart import Line, lines_of, named
from discreet.continual.naive import naive_costs

if TYPE_CHECKING:
    from discreet.continual.series import Series

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 520, 170, 58, 22
_STYLE = """
:root { color-scheme: light dark; --ink: #22303a; --quiet: #66757f; --line: #1f6f9f; --band: #1f6f9f33; --rule: #c9d3d9;
  --naive: #b5482f; --paper: #fdfdfc; }
@media (prefers-color-scheme: dark) { :root { --ink: #dfe7ea; --quiet: #93a3ac; --line: #6fb7dd; --band: #6fb7dd33;
  --rule: #3a474f; --naive: #e58a70; --paper: #14191c; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 1120px; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; } p { margin: .4rem 0; }
code { font-size: .9em; } .quiet { color: var(--quiet); }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 520px), 1fr)); gap: 1rem 1.5rem;
  margin: 1.5rem 0; }
figure { margin: 0; } figcaption { font-weight: 600; } svg { width: 100%; height: auto; display: block; }
svg text { font: 11px system-ui, sans-serif; fill: var(--quiet); } .rule { stroke: var(--rule); }
.line { fill: none; stroke: var(--line); stroke-width: 1.5; } .band { fill: var(--band); }
.naive { fill: none; stroke: var(--naive); stroke-width: 1.5; } text.naive { fill: var(--naive); stroke: none; }
text.line { fill: var(--line); stroke: none; }
"""


def page(series: Series) -> str:
    """The whole page."""
    schedule, parts = series.schedule, []
    found = lines_of(series)
    kinds = list(dict.fromkeys(line[2] for line in found))
    groups = [[line for line in found if line[2] == kind] for kind in kinds] if len(found) > len(kinds) else [found]
    for group in groups:
        figures = "".join(_figure(line, named(line[2], schedule.period)) for line in group)
        parts.append(f'<div class="grid">{figures}</div>')
    horizon = "an unknown number of" if schedule.periods is None else f"{schedule.periods}"
    person = schedule.per_person
    counted = f"one in any {person.apart}" if person.periods is None else f"{person.periods} periods at most"
    facts = (
        f"{series.periods} of {horizon} periods of a {schedule.period} from {schedule.start}. "
        f"One person counts in {counted}. Noise: {series.design.strategy.name}. Bands hold with 95 %."
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(schedule.name)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{html.escape(schedule.name)}</h1><p><code>{html.escape(schedule.question)}</code></p>"
        f'<p class="quiet">{html.escape(facts)}</p>{"".join(parts)}{_budget(series)}</body></html>\n'
    )


def _figure(line: Line, kind: str) -> str:
    keys, statistic, _, periods, values, margins = line
    title = " · ".join([f"{statistic} {kind}", *("none" if key is None else str(key) for key in keys)])
    low = min(value - margin for value, margin in zip(values, margins, strict=True))
    high = max(value + margin for value, margin in zip(values, margins, strict=True))
    frame = _Frame(last=max(len(values) - 1, 1), low=min(low, 0.0), high=high)
    upper = [value + margin for value, margin in zip(values, margins, strict=True)]
    lower = [value - margin for value, margin in zip(values, margins, strict=True)]
    band = frame.path(upper) + "L" + frame.path(lower[::-1], backwards=True)[1:] + "Z"
    dots = f'<path class="line" d="{frame.path(values)}"/>'
    latest = f"{with_margin(values[-1], margins[-1])} on {periods[-1]}"
    marks = frame.axes([str(periods[0]), str(periods[-1])])
    return (
        f'<figure><figcaption>{html.escape(title)} <span class="quiet">{html.escape(latest)}</span></figcaption>'
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{html.escape(title)}">{marks}'
        f'<path class="band" d="{band}"/>{dots}</svg></figure>'
    )


def _budget(series: Series) -> str:
    """What was paid, which is flat, beside what the same numbers would have cost one by one."""
    periods = series.schedule.periods or max(series.periods, 1)
    costs, paid = naive_costs(series, periods), float(series.budget.epsilon)
    frame = _Frame(last=max(periods - 1, 1), low=0.0, high=max(costs[-1][1], paid) * 1.05)
    naive = "M" + "L".join(f"{frame.x(at - 1):.1f} {frame.y(cost):.1f}" for at, cost in costs)
    flat = f"M{frame.x(0):.1f} {frame.y(paid):.1f}H{frame.x(periods - 1):.1f}"
    first, last = series.schedule.begins(0).date(), series.schedule.begins(periods - 1).date()
    words = (
        f"The whole horizon costs {series.budget}, charged before the first period. The same numbers, each asked "
        f"anew in its period and as precise, would cost ε = {costs[-1][1]:,.3g} by the end."
    )
    return (
        f'<h2>The budget</h2><p>{html.escape(words)}</p><div class="grid"><figure>'
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="budget">'
        f'{frame.axes([str(first), str(last)])}<path class="naive" d="{naive}"/>'
        f'<path class="line" d="{flat}"/><text class="naive" x="{_LEFT + 40}" y="26">asked one by one</text>'
        f'<text class="line" x="{_WIDTH - 8}" y="{frame.y(paid) - 6:.1f}" text-anchor="end">'
        f"this release, ε = {paid:.3g}</text></svg></figure></div>"
    )


def _ticks(low: float, high: float) -> list[float]:
    """Two to five round numbers within a range."""
    rough = (high - low) / 4
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    return [step * at for at in range(math.ceil(low / step), math.floor(high / step) + 1)]


class _Frame:
    """A plot's axes: positions 0 to `last` across, `low` to `high` up."""

    def __init__(self, *, last: int, low: float, high: float) -> None:
        self._last, self._low, self._high = last, low, high if high > low else low + 1.0

    def x(self, at: float) -> float:
        return _LEFT + at / self._last * (_WIDTH - _LEFT - 8)

    def y(self, value: float) -> float:
        return 8 + (self._high - value) / (self._high - self._low) * (_HEIGHT - 8 - _BOTTOM)

    def path(self, values: Sequence[float], *, backwards: bool = False) -> str:
        places: Any = range(len(values))
        at = reversed(places) if backwards else places
        return "M" + "L".join(
            f"{self.x(place):.1f} {self.y(value):.1f}" for place, value in zip(at, values, strict=True)
        )

    def axes(self, ends: Sequence[str]) -> str:
        marks = []
        for value in _ticks(self._low, self._high):
            y = self.y(value)
            marks.append(f'<path class="rule" d="M{_LEFT} {y:.1f}H{_WIDTH - 8}"/>')
            marks.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,g}</text>')
        marks.append(f'<text x="{_LEFT}" y="{_HEIGHT - 6}">{html.escape(ends[0])}</text>')
        marks.append(f'<text x="{_WIDTH - 8}" y="{_HEIGHT - 6}" text-anchor="end">{html.escape(ends[-1])}</text>')
        return "".join(marks)
