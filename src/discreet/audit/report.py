"""Write an audit as one HTML page for a privacy officer: first the verdict, then all its
numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from discreet.audit import charts
from discreet.audit.epsilon import AuditFinding
from discreet.audit.ledger import LedgerAudit
from discreet.audit.question import QuestionAudit
from discreet.budget import number
from discreet.pages import blocks
from discreet.pages.blocks import Cell

NOT_FOR_RELEASE = (
    "NOT FOR RELEASE: this was computed on the data itself and tells about single people."
)

_PROVED = (
    "Each was run on two neighboring inputs. The proved ε is what the runs alone show, at the stated confidence: a "
    "true claim is exceeded with a probability below one minus it. A proved ε far below the claim says that the event "
    "or the number of runs did not show more, and not that the claim is loose. Where a claim is a ρ, both columns are "
    "told at δ = 0.01, where runs can see it."
)


def mechanisms_page(findings: Sequence[AuditFinding]) -> str:
    sound = all(each.sound for each in findings)
    verdict = (
        "No run contradicts a claim."
        if sound
        else "Runs contradict a claim: do not release with this version."
    )
    parts = [
        blocks.verdict(verdict, good=sound),
        blocks.paragraph(_PROVED),
        charts.claims(findings),
        _findings(findings),
    ]
    return blocks.page("Audit of mechanisms", parts)


def question_page(audit: QuestionAudit) -> str:
    verdict = (
        "Nothing that was tried contradicts the promise for this question."
        if audit.sound
        else "Something contradicts the promise for this question: do not answer it with this version."
    )
    cost = f"ε = {number(audit.cost.epsilon)}, δ = {number(audit.cost.delta)}"
    parts = [
        blocks.verdict(verdict, good=audit.sound),
        blocks.warning("Nothing was charged, because nothing of it may leave."),
        blocks.heading("The question"),
        blocks.code(audit.sql),
        blocks.paragraph(f"On snapshot {audit.snapshot}, at {cost}; neighbors: {audit.neighbors}."),
        blocks.heading("What was tried"),
        f"<ul>{''.join(f'<li>{escape(first)} / {escape(second)}</li>' for first, second in audit.tried)}</ul>",
        blocks.heading("How far one person moves it"),
        blocks.paragraph(
            "The exact statistics on the data and on neighbors of it, as a part of what the plan says one person can "
            "do. Above 1 the noise would be too small."
        ),
        blocks.table(
            ("statistic", "neighbor", "moved, of what is claimed", "in", ""), _changes(audit)
        ),
        blocks.heading("The same draws on neighbors"),
        blocks.paragraph(
            "Under the same random words, as long as what has left is the same, the next noise must have the same "
            "scale and go to the same places."
        ),
        blocks.table(("neighbor", "draws", "differences", ""), _replays(audit)),
        blocks.heading("What cannot happen on a neighbor"),
        blocks.paragraph(
            "Outcomes that one neighbor can have and the other cannot are allowed with probability δ."
        ),
        blocks.table(
            ("statistic", "seen", "runs", "probability at least", "δ", ""), _supports(audit)
        )
        if audit.support
        else blocks.paragraph("None was seen."),
        blocks.heading("What runs prove"),
        blocks.paragraph(f"On {' and '.join(audit.pair)}, the neighbors that differ most."),
        blocks.paragraph(_PROVED),
        charts.claims(audit.findings),
        _findings(audit.findings),
        blocks.heading("What came out"),
        *(charts.outcomes(each) for each in audit.pictures),
    ]
    return blocks.page("Audit of a question", parts, banner=NOT_FOR_RELEASE)


Row = list[str | Cell]


def _changes(audit: QuestionAudit) -> list[Row]:
    """Return rows for the three pairs of neighbors that move each statistic most."""
    worst: dict[str, list[Row]] = {}
    for each in sorted(audit.changes, key=lambda change: -change.share):
        row: Row = [
            each.statistic,
            " / ".join(each.pair),
            f"{each.share:.4g}",
            each.norm,
            blocks.holds(each.within),
        ]
        worst.setdefault(each.statistic, []).append(row)
    return [row for rows in worst.values() for row in rows[:3]]


def _replays(audit: QuestionAudit) -> list[Row]:
    return [
        [
            " / ".join(each.pair),
            str(each.draws),
            "; ".join(each.differences) or "none",
            blocks.holds(not each.differences),
        ]
        for each in audit.replayed
    ]


def _supports(audit: QuestionAudit) -> list[Row]:
    return [
        [
            each.statistic,
            f"{each.seen:,}",
            f"{each.runs:,}",
            f"{each.least:.2g}",
            f"{each.delta:.2g}",
            blocks.holds(each.sound),
        ]
        for each in audit.support
    ]


def _findings(findings: Sequence[AuditFinding]) -> str:
    names = (
        "what",
        "claimed ε",
        "at δ",
        "proved ε",
        "",
        "confidence",
        "event seen",
        "runs",
        "noise",
    )
    rows: list[Row] = [
        [
            each.name,
            f"{each.claimed:.4g}",
            f"{each.delta:.2g}",
            f"{each.proved:.4g}",
            blocks.holds(each.sound),
            f"{each.confidence:.10g}",
            f"{each.bound.seen[0]:,} / {each.bound.seen[1]:,}",
            f"{each.runs:,}",
            Cell(_list(each.parameters), kind="soft"),
        ]
        for each in findings
    ]
    return blocks.table(names, rows)


def ledger_page(audit: LedgerAudit, *, currency: str) -> str:
    verdict = (
        "Every charge covers its noise, the sums add up, and the budget holds."
        if audit.sound
        else "The ledger does not add up: stop answering, and restore it from a backup."
    )
    rows: list[Row] = [
        [
            str(each.id),
            each.when[:19].replace("T", " "),
            each.analyst,
            number(each.charged.amount),
            "open" if each.due is None else number(each.due.amount),
            blocks.holds(each.covered),
            each.text,
        ]
        for each in audit.charges
    ]
    names = ("charge", "when", "analyst", f"charged {currency}", "recomputed", "", "question")
    parts = [
        blocks.verdict(verdict, good=audit.sound),
        blocks.paragraph(
            f"{audit.rows} rows, all of them on one chain under the ledger's key. Charges add up to {currency} = "
            f"{number(audit.added.amount)}; the ledger says {number(audit.spent.amount)} "
            f"of {number(audit.limit.amount)}."
        ),
    ]
    if audit.batch is not None and audit.batch.epsilon is not None:
        parts.append(
            blocks.paragraph(
                f"Planned as one batch, the same noise would have cost ε = {number(audit.batch.epsilon)} at δ = "
                f"{number(audit.batch.delta)} by privacy-loss distribution. That is a comparison: for questions chosen "
                "one after another the ledger's own sum is what holds."
            )
        )
    spent = [float(each.charged.amount) for each in audit.charges]
    if spent:
        parts.append(charts.spending(spent, limit=float(audit.limit.amount), currency=currency))
    return blocks.page("Audit of a ledger", [*parts, blocks.table(names, rows)])


def _list(parameters: dict[str, str]) -> str:
    return ", ".join(
        f"{name} {value}" if name != "mechanism" else value for name, value in parameters.items()
    )
