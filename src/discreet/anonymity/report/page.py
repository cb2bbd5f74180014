"""The report as one HTML file that needs nothing else: no scripts, no fonts, no addresses."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping

from discreet.anonymity.failures import Example
from discreet.anonymity.publish import Anonymized
from discreet.anonymity.report import words

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --soft: #5b6b7a; --paper: #ffffff; --card: #f4f6f8; --line: #d9e0e6;
  --blue: #2f6f9f; --red: #b3432b; --l0: #2f6f9f; --l1: #6ba3c7; --l2: #a9cbe0; --l3: #e6c9a8; --l4: #d99b66;
  --l5: #b3432b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4eaf0; --soft: #9aa9b7; --paper: #14191f; --card: #1d242c;
  --line: #323c47; --blue: #6fb1de; --red: #e5866d; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.5rem 4rem; max-width: 60rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; }
h2 { font-size: 1.25rem; margin: 2.6rem 0 .5rem; }
h3 { font-size: 1rem; margin: 0 0 .4rem; }
p { margin: .4rem 0; }
.soft { color: var(--soft); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(7rem, 1fr)); gap: .8rem; margin: 1.4rem 0; }
.tile, .card { background: var(--card); border-radius: 10px; padding: .9rem 1.1rem; }
.tile b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums; white-space: nowrap; }
.warning { border-left: 4px solid var(--red); background: var(--card); border-radius: 0 10px 10px 0;
  padding: .7rem 1.1rem; margin: .8rem 0; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: 1rem; margin-top: .8rem; }
table { border-collapse: collapse; width: 100%; margin: .6rem 0; font-size: .95rem; }
th, td { text-align: left; padding: .35rem .7rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--soft); font-weight: 500; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
td.number { white-space: nowrap; }
.bar { display: flex; height: 14px; border-radius: 4px; overflow: hidden; background: var(--line); min-width: 6rem; }
.bar i { display: block; height: 100%; }
.legend span { display: inline-block; margin-right: 1rem; font-size: .85rem; color: var(--soft); }
.legend i { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .35em; }
.people { display: flex; flex-wrap: wrap; gap: 3px; margin: .5rem 0; }
.people i { width: 11px; height: 11px; border-radius: 50%; }
"""
_SHADES = ("var(--l0)", "var(--l1)", "var(--l2)", "var(--l3)", "var(--l4)", "var(--l5)")
_MOST_DOTS = 60


def page(made: Anonymized, *, title: str) -> str:
    """The whole report on an anonymized table."""
    sections = [_summary(made), _warnings(made), _cost(made), _classes(made), _failures(made), _instead(made)]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head><body>'
        f"<h1>{html.escape(title)}</h1>{''.join(sections)}</body></html>\n"
    )


def _summary(made: Anonymized) -> str:
    tiles = [("k", f"{made.k:,}"), ("rows", f"{made.rows:,}"), ("classes", f"{made.classes:,}")]
    tiles += [("l (distinct)", f"{made.l:,}")] if made.l is not None else []
    tiles += [("t", f"{made.t:.3f}")] if made.t is not None else []
    tiles += [("suppressed", f"{made.suppressed:,}"), ("information lost", f"{100 * made.loss.ncp:.1f} %")]
    cells = "".join(f'<div class="tile"><b>{value}</b>{html.escape(name)}</div>' for name, value in tiles)
    kind = "each class as far as it must be" if made.recoding == "local" else "the whole table to one level per column"
    return (
        f"<p>{html.escape(words.promise(made))} Asked for: {html.escape(str(made.guarantee))}, coarsening {kind}; "
        f'measured again on the finished table.</p><div class="tiles">{cells}</div>'
        f'<div class="warning">{html.escape(words.NOT_ENOUGH)}</div>'
    )


def _warnings(made: Anonymized) -> str:
    return "".join(f'<div class="warning">{html.escape(each)}</div>' for each in made.warnings)


def _cost(made: Anonymized) -> str:
    moved = made.report.utility.by_column if made.report else {}
    rows = []
    names: list[str] = []
    for column, levels in made.transformation.items():
        shares = {levels: 1.0} if isinstance(levels, str) else levels
        text = ", ".join(f"{name} {100 * part:.0f} %" for name, part in shares.items() if part >= 0.005)
        wrong = f"{100 * moved[column]:.1f} %" if column in moved else "–"
        rows.append(
            f'<tr><td>{html.escape(column)}</td><td class="number">{100 * made.loss.columns[column]:.1f} %</td>'
            f'<td class="number">{wrong}</td><td>{_bar(shares)}<span class="soft">{html.escape(text)}</span></td></tr>'
        )
        names += [name for name in shares if name not in names]
    return (
        "<h2>What it costs</h2><p>Lost: the share of a column's range that its published values stand for (normalized "
        "certainty penalty). Miscounted: the share of people who seem to have another value when a reader spreads each "
        "published value evenly over what it stands for.</p><table><tr><th>column</th><th class=number>lost</th>"
        f"<th class=number>miscounted</th><th>rows by level, from exact to *</th></tr>{''.join(rows)}</table>"
        f'<p class="soft">Other measures: lm {made.loss.lm:.3f}, precision {made.loss.precision:.3f}, '
        f"entropy {made.loss.entropy:.3f}, discernibility {made.loss.discernibility:.5f}, average class "
        f"{made.loss.average_class:.1f} rows.</p>"
    )


def _bar(shares: Mapping[str, float]) -> str:
    """The levels of a column, exact in the strongest blue and `*` in red."""
    parts = []
    for index, (name, part) in enumerate(shares.items(), start=0 if "exact" in shares else 1):
        shade = _SHADES[0] if name == "exact" else _SHADES[-1] if name == "*" else _SHADES[min(index, 4)]
        parts.append(f'<i style="width:{100 * part:.2f}%;background:{shade}" title="{html.escape(name)}"></i>')
    return f'<div class="bar">{"".join(parts)}</div>'


def _classes(made: Anonymized) -> str:
    if made.report is None:
        return ""
    before, after = made.report.before, made.report.after
    most = max(*before.values(), *after.values(), 1)
    marks = []
    for index, name in enumerate(before):
        top = 10 + index * 44
        for offset, (rows, shade) in enumerate(((before[name], "var(--l4)"), (after[name], "var(--l0)"))):
            width = 420 * rows / most
            y = top + offset * 16
            marks.append(
                f'<rect x="110" y="{y}" width="{width:.1f}" height="13" rx="2" style="fill:{shade}"/>'
                f'<text x="{118 + width:.1f}" y="{y + 11}" style="fill:var(--soft)">{rows:,}</text>'
            )
        marks.append(f'<text x="100" y="{top + 20}" text-anchor="end" style="fill:var(--ink)">{name}</text>')
    height = 20 + 44 * len(before)
    return (
        "<h2>Classes</h2><p>People by the size of their class: before, "
        f"{made.report.unique_before:,} were alone in it.</p>"
        '<p class="legend"><span><i style="background:var(--l4)"></i>before</span>'
        '<span><i style="background:var(--l0)"></i>published</span></p>'
        f'<svg viewBox="0 0 640 {height}" width="100%" style="max-width:40rem" font-size="12" '
        f'font-family="inherit" role="img" aria-label="people by class size">{"".join(marks)}</svg>'
    )


def _failures(made: Anonymized) -> str:
    failed = None if made.report is None else made.report.failures
    if failed is None:
        return ""
    first, second = words.homogeneity(failed), words.side_information(failed)
    cards = (
        f'<div class="card"><h3>1. Everybody in the class has the same {html.escape(failed.secret)}</h3>'
        f"{_paragraphs(first)}{_people(failed.agreeing)}</div>"
        f'<div class="card"><h3>2. The attacker knows somebody</h3>{_paragraphs(second)}{_people(failed.thinned)}</div>'
    )
    said = "<h2>What it does not give</h2><p>Two failures of k-anonymity, on this table.</p>"
    return f'{said}<div class="cards">{cards}</div>'


def _people(example: Example | None) -> str:
    """A dot for each member of the class, colored by the secret."""
    if example is None:
        return ""
    shades = [_SHADES[5 if index == 0 else (index - 1) % 3] for index in range(len(example.values))]
    dots: list[str] = []
    for shade, (_, count) in zip(shades, example.values, strict=True):
        dots += [f'<i style="background:{shade}"></i>'] * count
    more = f'<span class="soft">and {len(dots) - _MOST_DOTS:,} more</span>' if len(dots) > _MOST_DOTS else ""
    shown = dots[-_MOST_DOTS:] if len(dots) > _MOST_DOTS else dots
    names = "".join(
        f'<span><i style="background:{shade}"></i>{html.escape(value)}: {count:,}</span>'
        for shade, (value, count) in zip(shades[:4], example.values[:4], strict=True)
    )
    return f'<div class="people">{"".join(shown)}{more}</div><p class="legend">{names}</p>'


def _instead(made: Anonymized) -> str:
    if made.report is None or not made.report.utility.kinds:
        return ""
    kinds = made.report.utility.kinds
    epsilons = list(kinds[0].margins)
    head = "".join(f"<th class=number>with noise, ε = {epsilon}</th>" for epsilon in epsilons)
    rows = "".join(
        f"<tr><td>counts {html.escape(each.name)}<br>"
        f"<span class=soft>{each.tables} tables, {each.counts:,} counts</span></td>"
        f"<td class=number>{each.usual:,.0f}</td><td class=number>{each.worst:,.0f}</td>"
        + "".join(f"<td class=number>± {each.margins[epsilon]:,}</td>" for epsilon in epsilons)
        + "</tr>"
        for each in kinds
    )
    left_out = made.report.utility.left_out
    note = f" Left out, with too many values: {html.escape(', '.join(left_out))}." if left_out else ""
    return (
        "<h2>What differential privacy would give instead</h2><p>The same counts with discrete Laplace noise, ε shared "
        "by all tables of a row. Its promise holds whatever the attacker knows and whatever else is published, and its "
        "error is known beforehand: 19 of 20 noisy counts are within the margin.</p><table><tr><th>statistic</th>"
        "<th class=number>this table: 19 of 20 off by up to</th><th class=number>the worst by</th>"
        f'{head}</tr>{rows}</table><p class="soft">Margins are computed from the formula; nothing was drawn and '
        f"nothing was spent. Errors of this table are of counts that are not zero.{note}</p>"
    )


def _paragraphs(sentences: Iterable[str]) -> str:
    return "".join(f"<p>{html.escape(each)}</p>" for each in sentences)
