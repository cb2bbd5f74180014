"""Write parity as lines, as JSON, and as a page with a heat map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from discreet.budget import with_margin
from discreet.evaluate.bootstrap import Steadiness
from discreet.evaluate.findings import Finding
from discreet.evaluate.paid import UNASKED, NoisyVerdict
from discreet.evaluate.parity import FindingCell, Parity
from discreet.pages import blocks
from discreet.pages.heat import Patch, shares
from discreet.synthetic.report.raw import BANNER

_LABEL = 44  # letters of a finding's sentence that are shown beside the map
_PAIRS = 3  # pairs of columns that are shown of those that no model measured
_NULL = "a division by zero, a mean of nobody or a fit that does not exist"


def as_json(found: Parity) -> dict[str, Any]:
    """Return all results as JSON."""
    return {
        **({"release": BANNER} if found.secret else {}),
        "study": found.study.title,
        "citation": found.study.citation,
        "table": found.study.table,
        "findings": [_finding_json(found, place) for place in range(len(found.study.findings))],
        "cells": [_cell_json(each) for each in found.cells],
        "parity": [
            {
                "synthesizer": synthesizer,
                "epsilon": float(Fraction(epsilon)),
                "parity": found.parity(synthesizer, epsilon),
                "steady": found.parity(synthesizer, epsilon, steady=True) if found.real else None,
            }
            for synthesizer, epsilon in found.sides
        ],
    }


def _finding_json(found: Parity, place: int) -> dict[str, Any]:
    finding = found.study.findings[place]
    told: dict[str, Any] = {
        "finding": finding.number,
        "says": finding.says,
        "kind": finding.kind,
        "cited": finding.cited or None,
        "holds": finding.assertion.text,
        "columns": list(finding.assertion.columns(found.columns)),
        "value": finding.value,
        "within": finding.within,
        "real": None,
        "paid": None,
    }
    if found.real:
        real = found.real[place]
        told["real"] = {
            "holds": real.verdict.holds,
            "value": _finite(real.verdict.value),
            "standard_error": _finite(real.error),
            "resamples": real.resamples,
            "flips": real.flips,
            "distance": _finite(real.distance),
            "steady": real.steady,
        }
    if found.paid:
        paid = found.paid[place]
        told["paid"] = {
            "verdict": paid.verdict,
            "value": paid.value,
            "margin": paid.margin,
            "why": paid.why or None,
        }
    return told


def _cell_json(cell: FindingCell) -> dict[str, Any]:
    return {
        "finding": cell.finding,
        "synthesizer": cell.synthesizer,
        "epsilon": float(Fraction(cell.epsilon)),
        "held": cell.held,
        "repeats": cell.repeats,
        "interval": list(cell.interval),
        "near": cell.near,
        "values": [_finite(each) for each in cell.values],
        "null": cell.null,
        "measured_together": cell.together,
        "measured_apart": [{"columns": [a, b], "repeats": times} for a, b, times in cell.apart],
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


# --- sentences of the terminal and of the page ----------------------------------------------------


def real_text(real: Steadiness) -> str:
    """Return a sentence: whether a finding holds on the real rows, and how steady it is."""
    told = "holds" if real.verdict.holds else "does not hold"
    if real.verdict.null:
        told += f", because it is NULL ({_NULL})"
    if real.distance is not None:
        far = "far" if math.isinf(real.distance) else f"{abs(real.distance):.1f}"
        told += f", {far} standard errors from turning"
    if real.resamples:
        told += f", turns in {real.flips} of {real.resamples}"
    return told


def noisy_text(paid: NoisyVerdict) -> str:
    """Return a sentence: whether a finding holds by noisy answers."""
    if paid.verdict == UNASKED:
        return f"{paid.verdict}: {paid.why}"
    if paid.value is None:
        return paid.verdict
    unknown = f"{paid.value:.6g} ± ?"
    number = unknown if paid.margin is None else with_margin(paid.value, paid.margin)
    return f"{paid.verdict} ({number})"


def why_text(cell: FindingCell) -> str:
    """Return a sentence that may explain why a finding failed: how often it was NULL, or which of
    its columns no model measured together.
    """
    if cell.null:
        return f"it was NULL on {cell.null} of {cell.repeats} tables ({_NULL})"
    if cell.together == cell.repeats:
        return "its columns were measured together every time"
    pairs = [f"{a} × {b}" for a, b, times in cell.apart if times == cell.repeats]
    if pairs:
        more = f" and {len(pairs) - _PAIRS} more" if len(pairs) > _PAIRS else ""
        return f"never measured together: {', '.join(pairs[:_PAIRS])}{more}"
    if cell.apart:
        a, b, times = cell.apart[0]
        return f"{a} × {b} not measured together in {times} of {cell.repeats}"
    return "measured in pairs, never all together"


def intervals_text(found: Parity) -> str:
    """Return the 95 % interval of each count that occurs."""
    seen = {(each.held, each.repeats): each.interval for each in found.cells}
    told = [
        f"{held} of {repeats}: {100 * low:.0f} to {100 * high:.0f} %"
        for (held, repeats), (low, high) in sorted(seen.items())
    ]
    return f"95 % intervals (Clopper and Pearson): {'; '.join(told)}."


def header(found: Parity) -> tuple[str, ...]:
    """Return the names of the columns of the table of counts."""
    sides = (f"{synthesizer}, ε = {epsilon}" for synthesizer, epsilon in found.sides)
    real = ("the real rows",) if found.real else ()
    paid = ("the private rows, by noisy answers",) if found.paid else ()
    return ("finding", *real, *paid, *sides)


def lines(found: Parity) -> list[tuple[str, ...]]:
    """Return the rows of the table of counts, and last the parity of each synthesizer."""
    told = []
    columns = [found.of(*side) for side in found.sides]
    for place, finding in enumerate(found.study.findings):
        real = (real_text(found.real[place]),) if found.real else ()
        paid = (noisy_text(found.paid[place]),) if found.paid else ()
        counts = (f"{cells[place].held} of {cells[place].repeats}" for cells in columns)
        told.append((f"{finding.number}. {finding.says}", *real, *paid, *counts))
    blank = ("",) * (bool(found.real) + bool(found.paid))
    told.append(
        (
            "parity: mean share of tables",
            *blank,
            *(_share(found.parity(*side)) for side in found.sides),
        )
    )
    if found.real:
        steady = (_share(found.parity(*side, steady=True)) for side in found.sides)
        told.append((f"parity over {_steady_count(found)} steady findings", *blank, *steady))
    return told


def _steady_count(found: Parity) -> int:
    return sum(each.steady for each in found.real)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def failures(found: Parity) -> list[tuple[str, str, str, str]]:
    """Return (finding, synthesizer, count, reason) for each finding that did not always hold."""
    return [
        (
            str(cell.finding),
            f"{cell.synthesizer}, ε = {cell.epsilon}",
            f"{cell.held} of {cell.repeats}",
            why_text(cell),
        )
        for cell in found.cells
        if cell.held < cell.repeats
    ]


# --- the page -------------------------------------------------------------------------------------


def page(found: Parity) -> str:
    """Write the page: the map, the findings, and why some of them failed."""
    best = max(
        ((found.parity(*side) or 0.0, side) for side in found.sides), default=(0.0, ("", ""))
    )
    cards = [
        (f"{len(found.study.findings)}", "findings"),
        (f"{best[0]:.2f}", f"best parity: {best[1][0]}, ε = {best[1][1]}"),
        (f"{found.cells[0].repeats if found.cells else 0}", "synthetic tables each"),
    ]
    if found.real:
        cards.insert(1, (f"{_steady_count(found)}", "of them steady on the real rows"))
    parts = [
        blocks.cards(cards),
        blocks.paragraph(found.study.citation, kind="soft"),
        blocks.figure(
            "Share of synthetic tables on which each finding holds",
            _map(found),
            note="a row for each finding, a column for each synthesizer and ε",
        ),
        blocks.heading("Findings", intervals_text(found)),
        blocks.table(header(found), lines(found)),
    ]
    reasons = failures(found)
    if reasons:
        parts += [
            blocks.heading(
                "Why findings fail",
                "A model can keep only what it measured. A finding whose columns were never measured together holds "
                "by luck, or because others carry it.",
            ),
            blocks.table(("finding", "synthesizer", "held", "what was measured"), reasons),
        ]
    parts += [
        blocks.heading("What was asserted"),
        blocks.table(("", "kind", "SQL", "reported"), _assertions(found)),
    ]
    return blocks.page(
        f"{found.study.title}: would it still be true?",
        parts,
        subtitle=f"Findings about {found.study.table}, on real and on synthetic rows",
        banner=BANNER if found.secret else "",
    )


def _map(found: Parity) -> str:
    sides = found.sides
    columns = [found.of(*side) for side in sides]
    patches = [
        [_patch(finding, cells[place]) for cells in columns]
        for place, finding in enumerate(found.study.findings)
    ]
    names = [f"{each.number}. {_cut(each.says)}" for each in found.study.findings]
    tops = [f"{synthesizer}, ε = {epsilon}" for synthesizer, epsilon in sides]
    return shares(names, tops, patches, label="share of synthetic tables on which findings hold")


def _patch(finding: Finding, cell: FindingCell) -> Patch:
    title = f"{finding.number}, {cell.synthesizer}, ε = {cell.epsilon}: held {cell.held} of {cell.repeats}"
    return Patch(share=cell.share, title=title)


def _cut(text: str) -> str:
    return text if len(text) <= _LABEL else f"{text[:_LABEL].rsplit(' ', 1)[0]} …"


def _assertions(found: Parity) -> Sequence[tuple[str, str, str, str]]:
    return [
        (
            str(each.number),
            each.kind,
            each.assertion.text,
            "" if each.value is None else f"{each.value:g}, near is within {each.within:g}",
        )
        for each in found.study.findings
    ]
