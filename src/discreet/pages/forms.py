"""HTML forms for pages without scripts: one question, its choices, and buttons."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

OTHER = "#other"  # the value of the choice "something else", which has a field for text


def form(content: Iterable[str]) -> str:
    """Write a form that is sent to the page's own address."""
    return f'<form method="post">{"".join(content)}</form>'


def hidden(name: str, value: str) -> str:
    """Write a field that the browser sends and does not show."""
    return f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'


def choice(answer: str, shown: str, note: str, *, chosen: bool) -> str:
    """Write one answer to choose, with a note below it."""
    checked = " checked" if chosen else ""
    return (
        f'<label class="choice"><input type="radio" name="choice" value="{escape(answer)}"{checked}>'
        f"<span><code>{escape(shown)}</code><small>{escape(note)}</small></span></label>"
    )


def other(written: str, example: str, *, chosen: bool) -> str:
    """Write the choice "something else", with a field for the text."""
    checked = " checked" if chosen else ""
    return (
        f'<div class="choice"><input type="radio" name="choice" value="{OTHER}" id="other"{checked}>'
        f'<span><label for="other">something else</label><input name="other" value="{escape(written)}" '
        f'placeholder="{escape(example)}" aria-label="something else" autocomplete="off" '
        'autocapitalize="off" spellcheck="false"></span></div>'
    )


def buttons(texts: Iterable[tuple[str, str]]) -> str:
    """Write a button for each pair of name and text; Enter presses the first."""
    written = [
        f'<button name="do" value="{escape(name)}">{escape(text)}</button>' for name, text in texts
    ]
    return f'<div class="buttons">{"".join(written)}</div>'
