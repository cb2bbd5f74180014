"""The parts of a page as HTML. Texts are escaped here; what is called `parts` or `content` is HTML
already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from discreet.pages.style import fragment_style, page_style

# also 51 % to 53 %, 12 ± 3, 7 / 2, and nothing
_NUMBER = re.compile(r"([\d.,\u00b1−–+\-%/\se]|\bto\b)*")
_NOTHING_LOADS = "default-src 'none'; style-src 'unsafe-inline'"


def page(
    title: str, parts: Iterable[str], *, subtitle: str = "", banner: str = "", footer: str = ""
) -> str:
    """Write one whole HTML file that loads nothing and runs nothing."""
    above = f'<div class="banner">{escape(banner)}</div>' if banner else ""
    below = f"<footer>{escape(footer)}</footer>" if footer else ""
    note = f'<div class="soft">{escape(subtitle)}</div>' if subtitle else ""
    named = f"{banner}: {title}" if banner else title
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_NOTHING_LOADS}">'
        f'<title>{escape(named)}</title><style>{page_style()}</style></head><body class="discreet"><main>'
        f"{above}<header><h1>{escape(title)}</h1>{note}</header>\n{''.join(parts)}{below}</main></body></html>\n"
    )


def fragment(parts: Iterable[str]) -> str:
    """Write a piece of somebody else's page, such as a notebook."""
    return f'<style>{fragment_style()}</style><div class="discreet piece">{"".join(parts)}</div>'


def heading(text: str, note: str = "") -> str:
    return f"<h2>{escape(text)}</h2>" + (paragraph(note, kind="soft") if note else "")


def paragraph(text: str, *, kind: str = "") -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def code(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"


def warning(text: str) -> str:
    return f'<div class="warning">{escape(text)}</div>'


def verdict(text: str, *, good: bool) -> str:
    return paragraph(text, kind="good" if good else "bad")


def cards(facts: Iterable[tuple[str, str]]) -> str:
    """Write the few numbers that everybody should see first: (number, what it is)."""
    shown = "".join(
        f'<div class="card"><b>{escape(value)}</b>{escape(name)}</div>' for value, name in facts
    )
    return f'<div class="cards">{shown}</div>'


def card(title: str, content: Iterable[str]) -> str:
    return f'<div class="card"><h3>{escape(title)}</h3>{"".join(content)}</div>'


def grid(parts: Iterable[str], *, least: int = 24) -> str:
    """Place parts side by side, each at least so many letters wide."""
    return f'<div class="grid" style="--least: {least}em">{"".join(parts)}</div>'


def figure(title: str, content: str, *, note: str = "") -> str:
    aside = f"<span>{escape(note)}</span>" if note else ""
    caption = (
        f"<figcaption>{' '.join(filter(None, (escape(title), aside)))}</figcaption>"
        if title or note
        else ""
    )
    return f"<figure>{caption}{content}</figure>"


def table(names: Sequence[str], rows: Iterable[Sequence[str | Cell]]) -> str:
    """Write a table; a column of numbers stands to the right."""
    lines = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    right = [
        bool(lines) and all(line[place].is_number() for line in lines)
        for place in range(len(names))
    ]
    sides = [' class="n"' if each else "" for each in right]
    head = "".join(
        f"<th{side}>{escape(name)}</th>" for name, side in zip(names, sides, strict=True)
    )
    body = "".join(f"<tr>{_row(line, sides)}</tr>" for line in lines)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _row(line: Sequence[Cell], sides: Sequence[str]) -> str:
    return "".join(f"<td{side}>{cell.html()}</td>" for cell, side in zip(line, sides, strict=True))


class Cell:
    """A cell of a table: its text, perhaps with a kind (`good`, `bad`, `soft`), perhaps with HTML
    above it.
    """

    def __init__(self, text: str, *, kind: str = "", above: str = "") -> None:
        self.text = text
        self.kind = kind
        self.above = above

    def html(self) -> str:
        text = escape(self.text)
        return self.above + (f'<span class="{self.kind}">{text}</span>' if self.kind else text)

    def is_number(self) -> bool:
        return not self.above and _NUMBER.fullmatch(self.text) is not None


def holds(sound: bool) -> Cell:
    """Write the last cell of a row of an audit."""
    return Cell("holds" if sound else "BROKEN", kind="good" if sound else "bad")


def legend(names: Sequence[tuple[str, int, str]]) -> str:
    """Write what colors mean: (name, color, `fill` or `line` or `line dash` or `spot`)."""
    shown = "".join(
        f'<span><i class="c{color}"><svg viewBox="0 0 30 14" preserveAspectRatio="none" aria-hidden="true">'
        f"{_sample(kind)}</svg></i>{escape(name)}</span>"
        for name, color, kind in names
    )
    return f'<div class="legend">{shown}</div>'


def _sample(kind: str) -> str:
    if kind == "fill":
        return '<rect class="fill" width="30" height="14"/>'
    if kind == "spot":
        return f'<path class="{kind}" d="M15 7h.01"/>'
    return f'<path class="{kind}" d="M0 7H30"/>'
