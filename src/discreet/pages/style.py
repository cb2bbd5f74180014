"""The one style sheet: type scale, palette, light and dark, paper and phone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True, kw_only=True)
class Palette:
    """The colors of one scheme. People who do not see red or green can tell the colors of `series`
    apart too.
    """

    ink: str
    soft: str
    paper: str
    card: str
    rule: str
    good: str
    bad: str
    series: tuple[str, ...]

    def css(self) -> str:
        names = ("ink", "soft", "paper", "card", "rule", "good", "bad")
        colors = [f"--{name}: {getattr(self, name)};" for name in names]
        return " ".join(
            colors + [f"--c{place}: {color};" for place, color in enumerate(self.series)]
        )


LIGHT = Palette(
    ink="#1c2530",
    soft="#55616e",
    paper="#fdfdfc",
    card="#f2f5f7",
    rule="#d5dce2",
    good="#0b6b4b",
    bad="#b3261e",
    series=("#0b69a8", "#c75a10", "#077d63", "#9c4a86", "#7a6a00"),
)
DARK = Palette(
    ink="#e6ebf0",
    soft="#a2afbb",
    paper="#14191e",
    card="#1e252c",
    rule="#39434d",
    good="#4cc79a",
    bad="#f2867b",
    series=("#66b3ec", "#f0965a", "#43c6a5", "#dd94c8", "#d3bf4b"),
)
# A notebook's background is not ours: it may be light or dark, whatever the system prefers.
MIDDLE = Palette(
    ink="currentColor",
    soft="color-mix(in srgb, currentColor 72%, transparent)",
    paper="transparent",
    card="color-mix(in srgb, currentColor 5%, transparent)",
    rule="color-mix(in srgb, currentColor 22%, transparent)",
    good="#15966c",
    bad="#d9483c",
    series=("#1d83c6", "#d1691e", "#159a79", "#b5649c", "#94831a"),
)


def page_style() -> str:
    """Return the style of a whole page: light, or dark if the reader's system prefers it; on paper
    always light.
    """
    dark = f"@media screen and (prefers-color-scheme: dark) {{ .discreet {{ {DARK.css()} }} }}"
    return f".discreet {{ {LIGHT.css()} }}\n{dark}\n{_sheet('kit.css')}{_sheet('page.css')}"


def fragment_style() -> str:
    """Return the style of a part of a page that is not ours."""
    return f".discreet {{ {MIDDLE.css()} }}\n{_sheet('kit.css')}"


@cache
def _sheet(name: str) -> str:
    text = (files("discreet.pages") / name).read_text(encoding="utf-8")
    return " ".join(re.sub(r"/\*.*?\*/", "", text).split())
