"""Judge findings on a private table by noisy answers, which are paid for and free to publish.

Each finding's gaps are asked for as one question of an analyst. It holds where every gap that
matters is above 0 by more than its 95 % margin, does not hold where one is below by more, and
otherwise nobody can tell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.budget import amount
from discreet.curator import Curator
from discreet.errors import Rejected
from discreet.evaluate.bootstrap import Progress
from discreet.evaluate.findings import Finding, Study
from discreet.evaluate.statistics import Number
from discreet.vault.answer import Answer

HOLDS = "holds"
FAILS = "does not hold"
UNCLEAR = "cannot tell"
UNASKED = "cannot be asked"
_ONLY_PUBLIC = "Regression and Spearman's correlation are computed on public rows only."
_NO_GAP = "It compares no numbers, so noise has no margin to tell by."


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyVerdict:
    """The verdict of noisy answers on one finding: the noisy number with its margin, or why it was
    not asked.
    """

    verdict: str
    value: Number = None
    margin: Number = None
    why: str = ""


def ask_findings(
    study: Study, curator: Curator, *, epsilon: object, analyst: str, progress: Progress = None
) -> tuple[NoisyVerdict, ...]:
    """Ask what can be asked, each for an equal part of ε; what is refused costs nothing and says
    why.
    """
    whole = amount(epsilon, name="epsilon")
    least = whole / len(study.findings)
    refused = [_refusal(each, curator, epsilon=least, analyst=analyst) for each in study.findings]
    asked = refused.count("")
    found: list[NoisyVerdict] = []
    for finding, why in zip(study.findings, refused, strict=True):
        if why:
            found.append(NoisyVerdict(verdict=UNASKED, why=why))
            continue
        assert finding.assertion.paid is not None
        answer = curator.ask(finding.assertion.paid, analyst=analyst, epsilon=whole / asked)
        found.append(verdict_of(finding, answer))
        if progress is not None:
            progress("the private table", len(found) / len(study.findings))
    return tuple(found)


def _refusal(finding: Finding, curator: Curator, *, epsilon: Fraction, analyst: str) -> str:
    """Return the reason why a finding cannot be asked; empty if it can. Free."""
    sql = finding.assertion.paid
    if sql is None:
        return _ONLY_PUBLIC if finding.assertion.statistics else _NO_GAP
    try:
        curator.quote(sql, analyst=analyst, epsilon=epsilon)
    except Rejected as error:
        return f"{error.reason} {error.hint}".strip()
    return ""


def verdict_of(finding: Finding, answer: Answer) -> NoisyVerdict:
    """Return what an answer with margins tells of a finding."""
    names = answer.table.column_names
    if answer.table.num_rows != 1:
        return NoisyVerdict(verdict=UNCLEAR)
    values = dict(
        zip(names, (_require_known(each[0].as_py()) for each in answer.table.columns), strict=True)
    )
    margins = dict(
        zip(
            names, (_require_known(each[0].as_py()) for each in answer.margins.columns), strict=True
        )
    )
    gaps = [f"gap{index}" for index in range(finding.assertion.gaps)]
    lows = _move(values, margins, gaps, -1)
    highs = _move(values, margins, gaps, 1)
    low, high = finding.assertion.logic.ends(lows, highs)
    if low is not None and low > 0:
        verdict = HOLDS
    elif high is not None and high < 0:
        verdict = FAILS
    else:
        verdict = UNCLEAR
    return NoisyVerdict(verdict=verdict, value=values.get("value"), margin=margins.get("value"))


def _move(
    values: dict[str, Number], margins: dict[str, Number], names: Sequence[str], sign: int
) -> list[Number]:
    """Return the ends of intervals; None where a value or its margin is unknown."""
    ends: list[Number] = []
    for name in names:
        value = values.get(name)
        margin = margins.get(name)
        ends.append(None if value is None or margin is None else value + sign * margin)
    return ends


def _require_known(value: object) -> Number:
    try:
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return found if math.isfinite(found) else None
