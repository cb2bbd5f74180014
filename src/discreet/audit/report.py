"""What an audit found, as one HTML page for a privacy officer: verdict first, then every number it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from discreet.audit import charts
from discreet.audit.epsilon import Finding
from discreet.audit.ledger import LedgerAudit
from discreet.audit.question import QuestionAudit
from discreet.budget import number

NOT_FOR_RELEASE = "NOT FOR RELEASE: this was computed on the data itself and tells about single people."

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #ddd}"
    ".bad{color:#b00020;font-weight:600}.good{color:#1b5e20;font-weight:600}pre{white-space:pre-wrap}"
    ".warning{border:2px solid #b00020;padding:.5rem 1rem;color:#b00020;font-weight:600}"
    "svg text{font:12px system-ui,sans-serif}td.number{text-align:right;font-variant-numeric:tabular-nums}"
)
_PROVED = (
    "<p>Each was run on two neighboring inputs. The proved ε is what the runs alone show, at the stated confidence: a "
    "true claim is exceeded with a probability below one minus it. A proved ε far below the claim says that the event "
    "or the number of runs did not show more, and not that the claim is loose. Where a claim is a ρ, both columns are "
    "told at δ = 0.01, where runs can see it.</p>"
)


def mechanisms_page(findings: Sequence[Finding]) -> str:
    sound = all(each.sound for each in findings)
    verdict = "No run contradicts a claim." if sound else "Runs contradict a claim: do not release with this version."
    return _page("Audit of mechanisms", verdict, sound, f"{_PROVED}{charts.bars(findings)}{_findings(findings)}")


def question_page(audit: QuestionAudit) -> str:
    verdict = (
        "Nothing that was tried contradicts the promise for this question."
        if audit.sound
        else "Something contradicts the promise for this question: do not answer it with this version."
    )
    cost = f"ε = {number(audit.cost.epsilon)}, δ = {number(audit.cost.delta)}"
    parts = [
        f'<p class="warning">{NOT_FOR_RELEASE} Nothing was charged, because nothing of it may leave.</p>',
        f"<h2>The question</h2><pre>{escape(audit.sql)}</pre>",
        f"<p>On snapshot {audit.snapshot}, at {cost}; neighbors: {escape(audit.neighbors)}.</p>",
        "<h2>What was tried</h2>",
        f"<ul>{''.join(f'<li>{escape(first)} / {escape(second)}</li>' for first, second in audit.tried)}</ul>",
        "<h2>How far one person moves it</h2>",
        "<p>The exact statistics on the data and on neighbors of it, as a part of what the plan says one person can "
        "do. Above 1 the noise would be too small.</p>",
        _table(("Statistic", "Neighbor", "Moved, of what is claimed", "In", ""), _changed(audit)),
        "<h2>The same draws on neighbors</h2>",
        "<p>Under the same random words, as long as what has left is the same, the next noise must have the same scale "
        "and go to the same places.</p>",
        _table(("Neighbor", "Draws", "Differences", ""), _replayed(audit)),
        "<h2>What cannot happen on a neighbor</h2>",
        "<p>Outcomes that one neighbor can have and the other cannot are allowed with probability δ.</p>",
        _table(("Statistic", "Seen", "Runs", "Probability at least", "δ", ""), _supported(audit))
        if audit.support
        else "<p>None was seen.</p>",
        f"<h2>What runs prove</h2><p>On {escape(' and '.join(audit.pair))}, the neighbors that differ most.</p>",
        _PROVED,
        charts.bars(audit.findings),
        _findings(audit.findings),
        "<h2>What came out</h2>",
        *(charts.outcomes(each) for each in audit.pictures),
    ]
    return _page("Audit of a question", verdict, audit.sound, "".join(parts))


def _changed(audit: QuestionAudit) -> list[str]:
    worst: dict[str, list[str]] = {}
    for each in sorted(audit.changes, key=lambda change: -change.share):
        row = (
            f"<td>{escape(each.statistic)}</td><td>{escape(' / '.join(each.pair))}</td>"
            f'<td class="number">{each.share:.4g}</td><td>{escape(each.norm)}</td>{_mark(each.within)}'
        )
        worst.setdefault(each.statistic, []).append(row)
    return [row for rows in worst.values() for row in rows[:3]]


def _replayed(audit: QuestionAudit) -> list[str]:
    return [
        f'<td>{escape(" / ".join(each.pair))}</td><td class="number">{each.draws}</td>'
        f"<td>{escape('; '.join(each.differences) or 'none')}</td>{_mark(not each.differences)}"
        for each in audit.replayed
    ]


def _supported(audit: QuestionAudit) -> list[str]:
    return [
        f'<td>{escape(each.statistic)}</td><td class="number">{each.seen:,}</td><td class="number">{each.runs:,}</td>'
        f'<td class="number">{each.least:.2g}</td><td class="number">{each.delta:.2g}</td>{_mark(each.sound)}'
        for each in audit.support
    ]


def _findings(findings: Sequence[Finding]) -> str:
    rows = [
        f"<td>{escape(each.name)}</td><td>{escape(_listed(each.parameters))}</td>"
        f'<td class="number">{each.claimed:.4g}</td><td class="number">{each.delta:.2g}</td>'
        f'<td class="number">{each.proved:.4g}</td><td class="number">{each.confidence:.10g}</td>'
        f'<td class="number">{each.bound.seen[0]:,} / {each.bound.seen[1]:,}</td>'
        f'<td class="number">{each.runs:,}</td>{_mark(each.sound)}'
        for each in findings
    ]
    names = ("What", "Noise", "Claimed ε", "at δ", "Proved ε", "Confidence", "Event seen", "Runs", "")
    return _table(names, rows)


def ledger_page(audit: LedgerAudit, *, currency: str) -> str:
    verdict = (
        "Every charge covers its noise, the sums add up, and the budget holds."
        if audit.sound
        else "The ledger does not add up: stop answering, and restore it from a backup."
    )
    rows = [
        f'<td class="number">{each.id}</td><td>{escape(each.when)}</td><td>{escape(each.analyst)}</td>'
        f'<td>{escape(each.text)}</td><td class="number">{number(each.charged.amount)}</td>'
        f'<td class="number">{"open" if each.due is None else number(each.due.amount)}</td>{_mark(each.covered)}'
        for each in audit.charges
    ]
    names = ("Charge", "When", "Analyst", "Question", f"Charged {currency}", "Recomputed", "")
    total = (
        f"<p>{audit.rows} rows, all of them on one chain under the ledger's key. Charges add up to {currency} = "
        f"{number(audit.added.amount)}; the ledger says {number(audit.spent.amount)} "
        f"of {number(audit.limit.amount)}.</p>"
    )
    if audit.batch is not None and audit.batch.epsilon is not None:
        total += (
            f"<p>Planned as one batch, the same noise would have cost ε = {number(audit.batch.epsilon)} at δ = "
            f"{number(audit.batch.delta)} by privacy-loss distribution. That is a comparison: for questions chosen one "
            "after another the ledger's own sum is what holds.</p>"
        )
    spent = [float(each.charged.amount) for each in audit.charges]
    steps = charts.spending(spent, limit=float(audit.limit.amount), currency=currency) if spent else ""
    return _page("Audit of a ledger", verdict, audit.sound, f"{total}{steps}{_table(names, rows)}")


def _listed(parameters: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" if name != "mechanism" else value for name, value in parameters.items())


def _mark(sound: bool) -> str:
    return f'<td class="{"good" if sound else "bad"}">{"holds" if sound else "BROKEN"}</td>'


def _table(names: Sequence[str], rows: Sequence[str]) -> str:
    head = "".join(f"<th>{name}</th>" for name in names)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def _page(title: str, verdict: str, sound: bool, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f'<h1>{title}</h1><p class="{"good" if sound else "bad"}">{verdict}</p>{body}</html>\n'
    )
