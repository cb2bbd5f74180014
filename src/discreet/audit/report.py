"""What an audit found, as one HTML page for a privacy officer: verdict first, then every number it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from discreet.audit.epsilon import Finding
from discreet.audit.ledger import LedgerAudit
from discreet.budget import number

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #ddd}"
    ".bad{color:#b00020;font-weight:600}.good{color:#1b5e20;font-weight:600}"
    "svg text{font:12px system-ui,sans-serif}td.number{text-align:right;font-variant-numeric:tabular-nums}"
)


def mechanisms_page(findings: Sequence[Finding]) -> str:
    sound = all(each.sound for each in findings)
    verdict = "No run contradicts a claim." if sound else "Runs contradict a claim: do not release with this version."
    rows = "".join(
        f"<tr><td>{escape(each.mechanism)}</td><td>{escape(_listed(each.parameters))}</td>"
        f'<td class="number">{each.claimed:.4g}</td><td class="number">{each.delta:.2g}</td>'
        f'<td class="number">{each.proved:.4g}</td><td class="number">{each.runs:,}</td>{_mark(each.sound)}</tr>'
        for each in findings
    )
    head = "".join(
        f"<th>{name}</th>" for name in ("Mechanism", "Parameters", "Claimed ε", "at δ", "Proved ε", "Runs", "")
    )
    note = (
        "<p>Each mechanism ran on two neighboring inputs. The proved ε is what the runs alone show, at the stated "
        "confidence: a true claim is exceeded with a probability below one minus it. A proved ε far below the claim "
        "says that the event or the number of runs did not show more, and not that the claim is loose.</p>"
    )
    return _page("Audit of mechanisms", verdict, sound, f"{note}{_bars(findings)}<table><tr>{head}</tr>{rows}</table>")


def ledger_page(audit: LedgerAudit, *, currency: str) -> str:
    verdict = (
        "Every charge covers its noise, the sums add up, and the budget holds."
        if audit.sound
        else "The ledger does not add up: stop answering, and restore it from a backup."
    )
    rows = "".join(
        f'<tr><td class="number">{each.id}</td><td>{escape(each.when)}</td><td>{escape(each.analyst)}</td>'
        f'<td>{escape(each.text)}</td><td class="number">{number(each.charged.amount)}</td>'
        f'<td class="number">{"open" if each.due is None else number(each.due.amount)}</td>{_mark(each.covered)}</tr>'
        for each in audit.charges
    )
    names = ("Charge", "When", "Analyst", "Question", f"Charged {currency}", "Recomputed", "")
    head = "".join(f"<th>{name}</th>" for name in names)
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
    return _page("Audit of a ledger", verdict, audit.sound, f"{total}<table><tr>{head}</tr>{rows}</table>")


def _listed(parameters: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in parameters.items())


def _mark(sound: bool) -> str:
    return f'<td class="{"good" if sound else "bad"}">{"holds" if sound else "BROKEN"}</td>'


def _bars(findings: Sequence[Finding]) -> str:
    """Claimed beside proved, one pair of bars a mechanism."""
    widest = max([each.claimed for each in findings] + [each.proved for each in findings] + [1e-9])
    parts = []
    for index, each in enumerate(findings):
        top = 44 * index
        for place, (value, color, word) in enumerate(
            ((each.claimed, "#90a4ae", "claimed"), (each.proved, "#1565c0", "proved"))
        ):
            width = 420 * value / widest
            parts.append(f'<rect x="180" y="{top + 18 * place}" width="{width:.1f}" height="14" fill="{color}"/>')
            parts.append(f'<text x="{190 + width:.1f}" y="{top + 18 * place + 12}">{word} {value:.3g}</text>')
        parts.append(f'<text x="0" y="{top + 20}">{escape(each.mechanism)}</text>')
    label = "Claimed and proved epsilon of each mechanism"
    return f'<svg role="img" aria-label="{label}" width="720" height="{44 * len(findings)}">{"".join(parts)}</svg>'


def _page(title: str, verdict: str, sound: bool, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f'<h1>{title}</h1><p class="{"good" if sound else "bad"}">{verdict}</p>{body}</html>\n'
    )
