"""Forms as HTML, for pages that run nothing: one question, its choices, and buttons."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

OTHER = "#other"  # the choice of what is written in the field beside it


def form(content: Iterable[str]) -> str:
    """Write a form that is sent to the page's own address."""
    return f'<form method="post">{"".join(content)}</form>'


def hidden(name: str, value: str) -> str:
    """Write a field that is sent and not seen."""
    return f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'


def choice(answer: str, shown: str, note: str, *, chosen: bool) -> str:
    """Write one answer that may be chosen, with what it costs."""
    checked = " checked" if chosen else ""
    return (
        f'<label class="choice"><input type="radio" name="choice" value="{escape(answer)}"{checked}>'
        f"<span><code>{escape(shown)}</code><small>{escape(note)}</small></span></label>"
    )


def other(written: str, example: str, *, chosen: bool) -> str:
    """Write the choice of something else, with a field for it."""
    checked = " checked" if chosen else ""
    return (
        f'<div class="choice"><input type="radio" name="choice" value="{OTHER}" id="other"{checked}>'
        f'<span><label for="other">something else</label><input name="other" value="{escape(written)}" '
        f'placeholder="{escape(example)}" aria-label="something else" autocomplete="off" '
        'autocapitalize="off" spellcheck="false"></span></div>'
    )


def buttons(named: Iterable[tuple[str, str]]) -> str:
    """Write buttons (name, text); Enter presses the first."""
    first, *rest = (
        f'<button name="do" value="{escape(name)}">{escape(text)}</button>' for name, text in named
    )
    return f'<div class="buttons">{first}{"".join(rest)}</div>'
