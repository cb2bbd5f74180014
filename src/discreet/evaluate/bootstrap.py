"""Measure how steady a finding is: draw as many rows from the real ones, with replacement, and test
it again.

If a finding often turns then, it depends on who happened to be in the sample. No synthesizer can be
blamed for losing it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from discreet.attacks.experiment.dice import Dice
from discreet.evaluate.findings import Finding
from discreet.evaluate.judge import Judge, Verdict
from discreet.evaluate.statistics import Number

RESAMPLES = 200
STEADY = 2.0  # a finding is steady if it is at least so many standard errors from turning
Progress = Callable[[str, float], None] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Steadiness:
    """A finding on the real rows.

    `flips` counts the resampled tables with another verdict. `distance` is how far the finding is
    from turning, in bootstrap standard errors; it is negative if the finding does not hold, and
    None if it compares no numbers. `error` is the standard error of its number.
    """

    verdict: Verdict
    resamples: int
    flips: int
    distance: Number
    error: Number

    @property
    def steady(self) -> bool:
        """Return True if it holds and is far from turning, so that a synthesizer should keep it."""
        if not self.verdict.holds:
            return False
        if self.distance is None:
            return self.flips <= 0.05 * self.resamples
        return self.distance >= STEADY


def steadiness(
    findings: Sequence[Finding],
    table: pa.Table,
    *,
    judge: Judge,
    resamples: int = RESAMPLES,
    progress: Progress = None,
) -> tuple[Steadiness, ...]:
    """Judge the findings on the rows, and on `resamples` tables of as many rows drawn from them."""
    names = tuple(table.column_names)
    needed = {column for each in findings for column in each.assertion.columns(names)}
    rows = table.select([name for name in names if name in needed]) if needed else table
    real = [judge.judge(each, rows) for each in findings]
    dice = Dice()
    drawn: list[list[Verdict]] = []
    for number in range(resamples):
        again = rows.take(dice.below(rows.num_rows, rows.num_rows)) if rows.num_rows else rows
        drawn.append([judge.judge(each, again) for each in findings])
        if progress is not None:
            progress("the bootstrap", (number + 1) / resamples)
    return tuple(
        _steadiness(finding, verdict, [each[place] for each in drawn])
        for place, (finding, verdict) in enumerate(zip(findings, real, strict=True))
    )


def _steadiness(finding: Finding, real: Verdict, drawn: Sequence[Verdict]) -> Steadiness:
    errors = [_spread([each.gaps[place] for each in drawn]) for place in range(len(real.gaps))]
    far = [_ratio(gap, error) for gap, error in zip(real.gaps, errors, strict=True)]
    return Steadiness(
        verdict=real,
        resamples=len(drawn),
        flips=sum(each.holds != real.holds for each in drawn),
        distance=finding.assertion.logic.distance(far) if drawn else None,
        error=_spread([each.value for each in drawn]),
    )


def _spread(values: Sequence[Number]) -> Number:
    """Return the standard deviation of the values that are numbers; None if fewer than two are."""
    known = [each for each in values if each is not None and math.isfinite(each)]
    return float(np.std(known, ddof=1)) if len(known) > 1 else None


def _ratio(gap: Number, error: Number) -> Number:
    if gap is None or error is None:
        return None
    return gap / error if error > 0 else math.copysign(math.inf, gap)
