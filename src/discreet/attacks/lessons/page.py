"""A lesson as one HTML file: no script, no font and no picture from elsewhere."""

from __future__ import annotations

from html import escape

from discreet.attacks.lessons.lesson import Lesson, Table
from discreet.attacks.lessons.plot import svg

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5c6675; --paper: #fbfaf7; --line: #d9d5cb;
  --point: #0b6bcb; --exact: #c0392b; --ceiling: #b7791f; --card: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7e9ee; --soft: #9aa4b2; --paper: #14171c; --line: #333a45;
  --point: #5aa9f8; --exact: #ff7b6b; --ceiling: #e0b04a; --card: #1b1f26; } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 17px/1.55 Georgia, "Times New Roman", serif; }
main { max-width: 46rem; margin: 0 auto; padding: 3rem 1.25rem 4rem; }
h1 { font-size: 2.1rem; line-height: 1.15; margin: 0 0 .25rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem; }
h2 span { color: var(--soft); font-weight: normal; margin-right: .5rem; }
.kind, caption, figcaption, footer { color: var(--soft); font-family: system-ui, sans-serif; font-size: .85rem; }
table { border-collapse: collapse; margin: .8rem 0; font: .85rem/1.4 system-ui, sans-serif; }
.wide { overflow-x: auto; }
th, td { text-align: right; padding: .25rem .75rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; } th:first-child, td:first-child, .question { text-align: left; padding-left: 0; }
.question { font-family: ui-monospace, monospace; font-size: .8rem; }
figure { margin: 2rem 0; padding: 1rem; background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
svg { width: 100%; height: auto; font-family: system-ui, sans-serif; font-size: 12px; }
.axis { stroke: var(--soft); } .grid { stroke: var(--line); stroke-width: .5; } .tick, .name { fill: var(--soft); }
.point { fill: var(--point); } .interval { stroke: var(--point); stroke-width: 2; opacity: .5; }
.ceiling { fill: none; stroke: var(--ceiling); stroke-width: 2; stroke-dasharray: 5 4; }
.exact { stroke: var(--exact); stroke-width: 1.5; } .exact-name { fill: var(--exact); }
.chance { stroke: var(--soft); stroke-width: 1.5; stroke-dasharray: 2 3; } .chance-name { fill: var(--soft); }
.key { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; }
.key b { font-weight: normal; } .p { color: var(--point); } .e { color: var(--exact); } .c { color: var(--ceiling); }
.moral { font-size: 1.25rem; line-height: 1.4; border-left: 4px solid var(--point); padding-left: 1rem; }
"""


def html(lesson: Lesson) -> str:
    steps = "".join(
        f"<section><h2><span>{number}</span>{escape(step.heading)}</h2><p>{escape(step.text)}</p>"
        f"{_table(step.table) if step.table else ''}</section>"
        for number, step in enumerate(lesson.steps, start=1)
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(lesson.title)}</title><style>{_STYLE}</style></head><body><main>"
        f'<p class="kind">An attack, and what stops it: {escape(lesson.attack)}</p><h1>{escape(lesson.title)}</h1>'
        f"{steps}<figure>{svg(lesson)}<figcaption>{_key(lesson)}</figcaption></figure>{_table(lesson.numbers())}"
        f'<p class="moral">{escape(lesson.moral)}</p>'
        f"<footer>discreet attack {escape(lesson.attack)} --demo. All its numbers were measured as it was made."
        "</footer></main></body></html>\n"
    )


def _key(lesson: Lesson) -> str:
    bounded = '<b class="c">╌╌ no attack can be above: e<sup>ε</sup>/(1+e<sup>ε</sup>)</b>' if lesson.bounded else ""
    return (
        f"<p>{escape(lesson.measure[0].upper() + lesson.measure[1:])}, with 95 % intervals.</p>"
        f'<div class="key"><b class="p">● with noise</b><b class="e">── without noise</b>{bounded}</div>'
    )


def _table(table: Table) -> str:
    questions = {i for i, name in enumerate(table.columns) if name == "question"}

    def cell(kind: str, i: int, text: str) -> str:
        return f"<{kind}{' class=question' if i in questions else ''}>{escape(text)}</{kind}>"

    head = "".join(cell("th", i, name) for i, name in enumerate(table.columns))
    body = "".join("<tr>" + "".join(cell("td", i, text) for i, text in enumerate(row)) + "</tr>" for row in table.rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
