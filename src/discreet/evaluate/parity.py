"""Measure epistemic parity: which findings of a study hold on synthetic tables, by synthesizer and
ε, and why others fail.

Rosenblatt, Herman, Holovenko et al. (2023), "Epistemic Parity: Reproducibility as an Evaluation
Metric for Differential Privacy", proposed the measure. The kinds of findings, and the bootstrap of
the real rows, are theirs too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import pyarrow as pa

from discreet.census.workers import Workers
from discreet.errors import UsageError
from discreet.evaluate.bootstrap import RESAMPLES, Progress, Steadiness, steadiness
from discreet.evaluate.findings import Finding, Study
from discreet.evaluate.judge import Judge, Verdict
from discreet.evaluate.paid import NoisyVerdict
from discreet.evaluate.public import describe_public
from discreet.evaluate.statistics import Number
from discreet.synthetic.description import Description
from discreet.synthetic.synthesizers.family import FOR_WORKLOADS

CONFIDENCE = 0.95

Together = frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """The result of one synthetic table: the verdict of each finding, and the sets of columns that
    its model measured together.
    """

    verdicts: tuple[Verdict, ...]
    measured: tuple[Together, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingCell:
    """The results of one finding for one synthesizer at one ε, counted over synthetic tables."""

    finding: int
    synthesizer: str
    epsilon: str
    repeats: int  # all synthetic tables
    held: int  # those on which it held
    near: int | None  # those on which its number was near the authors'
    values: tuple[Number, ...]
    together: int  # those whose model measured all of its columns in one marginal
    null: int  # those on which the assertion was NULL, so that it did not hold
    # pairs of its columns that a model did not measure together, and for how many tables
    apart: tuple[tuple[str, str, int], ...]

    @property
    def share(self) -> float:
        return self.held / self.repeats

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the share, by Clopper and Pearson."""
        return clopper_pearson(self.held, self.repeats)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parity:
    """The result of a study.

    `real` has the verdicts of the real rows, `paid` those of noisy answers about private rows; both
    may be empty. These, and the cells of one synthesizer at one ε, are in the order of the
    findings.
    """

    study: Study
    columns: tuple[str, ...]
    cells: tuple[FindingCell, ...]
    real: tuple[Steadiness, ...] = ()
    paid: tuple[NoisyVerdict, ...] = ()
    secret: bool = False  # True if `real` is about private rows: NOT FOR RELEASE

    @property
    def sides(self) -> tuple[tuple[str, str], ...]:
        """Return the pairs of synthesizer and ε, in the order in which they were tried."""
        return tuple(dict.fromkeys((each.synthesizer, each.epsilon) for each in self.cells))

    def of(self, synthesizer: str, epsilon: str) -> tuple[FindingCell, ...]:
        """Return the cells of one synthesizer at one ε, in the order of findings."""
        side = (synthesizer, epsilon)
        return tuple(cell for cell in self.cells if (cell.synthesizer, cell.epsilon) == side)

    def parity(self, synthesizer: str, epsilon: str, *, steady: bool = False) -> Number:
        """Return the share of synthetic tables on which a finding held, as the mean over all
        findings, or over the steady ones.
        """
        cells = self.of(synthesizer, epsilon)
        kept = [each.steady for each in self.real] if steady else [True] * len(cells)
        chosen = [cell.share for cell, keep in zip(cells, kept, strict=True) if keep]
        return sum(chosen) / len(chosen) if chosen else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """The plan of an experiment."""

    synthesizers: Sequence[str]
    epsilons: Sequence[str]
    repeats: int
    informed: bool = False  # whether the synthesizers are told which columns the findings need


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run of an experiment: describe a public table, and try the findings on rows drawn from
    it.
    """

    study: Study
    table: pa.Table
    synthesizer: str
    epsilon: str
    informed: bool  # whether the synthesizer is told which columns the findings need


def public_parity(
    study: Study,
    table: pa.Table,
    planned: Trials,
    *,
    resamples: int = RESAMPLES,
    jobs: int = 1,
    progress: Progress = None,
) -> Parity:
    """Describe a public table anew for every synthesizer, ε and repeat, and try the findings on
    each.
    """
    real = steadiness(
        study.findings, table, judge=_process_judge(), resamples=resamples, progress=progress
    )
    trials = [
        Trial(
            study=study, table=table, synthesizer=name, epsilon=epsilon, informed=planned.informed
        )
        for epsilon in planned.epsilons
        for name in planned.synthesizers
        for _ in range(planned.repeats)
    ]
    done: dict[tuple[str, str], list[Repeat]] = {}
    with Workers(jobs) as workers:
        for number, (trial, repeat) in enumerate(
            zip(trials, workers.map(attempt, trials), strict=True), start=1
        ):
            done.setdefault((trial.synthesizer, trial.epsilon), []).append(repeat)
            if progress is not None:
                progress("synthetic tables", number / len(trials))
    names = tuple(table.column_names)
    cells = [cell for side, found in done.items() for cell in cells_of(study, names, side, found)]
    return Parity(study=study, columns=names, real=real, cells=tuple(cells))


def private_parity(
    study: Study,
    description: Description,
    *,
    repeats: int,
    raw: pa.Table | None = None,
    paid: tuple[NoisyVerdict, ...] = (),
    resamples: int = RESAMPLES,
    progress: Progress = None,
) -> Parity:
    """Try the findings on tables drawn from one description. If `raw`, the private rows, are given,
    try them there too: for the curator alone.
    """
    judge = Judge()
    require_same_table(study, description)
    real: tuple[Steadiness, ...] = ()
    if raw is not None:
        real = steadiness(study.findings, raw, judge=judge, resamples=resamples, progress=progress)
    drawn = []
    for number in range(repeats):
        drawn.append(repeat_of(study, description, judge))
        if progress is not None:
            progress("synthetic tables", (number + 1) / repeats)
    names = tuple(axis.name for axis in description.axes)
    side = (description.synthesizer, f"{description.cost['epsilon']:.6g}")
    cells = cells_of(study, names, side, drawn)
    return Parity(
        study=study, columns=names, cells=cells, real=real, paid=paid, secret=raw is not None
    )


def require_same_table(study: Study, description: Description) -> None:
    """Refuse findings about another table than the described one."""
    if study.table.lower() != description.table.lower():
        raise UsageError(
            f"The findings are about {study.table}, and the description is of {description.table}."
        )


def attempt(trial: Trial) -> Repeat:
    """Describe the table once, generate rows, and judge the findings. Another process may do it."""
    names = tuple(trial.table.column_names)
    workload = None
    if trial.informed and trial.synthesizer in FOR_WORKLOADS:
        workload = trial.study.workload(names)
    description = describe_public(
        trial.table,
        name=trial.study.table,
        epsilon=trial.epsilon,
        synthesizer=trial.synthesizer,
        workload=workload,
    )
    return repeat_of(trial.study, description, _process_judge())


@cache
def _process_judge() -> Judge:
    """Return the judge of this process. It is kept, because planning an assertion takes longer than
    running it.
    """
    return Judge()


def repeat_of(study: Study, description: Description, judge: Judge) -> Repeat:
    """Draw as many rows as the description expects, and judge the findings on them."""
    rows = description.generate(rows=max(1, description.rows))
    names = [axis.name for axis in description.axes]
    sets = [
        *(each.columns for each in description.measured),
        *(pair for each in description.related for pair in each.columns),
    ]
    measured = {frozenset(names[column] for column in each) for each in sets}
    return Repeat(
        verdicts=tuple(judge.judge(each, rows) for each in study.findings),
        measured=tuple(measured),
    )


def cells_of(
    study: Study, columns: tuple[str, ...], side: tuple[str, str], repeats: Sequence[Repeat]
) -> tuple[FindingCell, ...]:
    """Return the cells of one synthesizer at one ε: the results of each finding over all
    repeats.
    """
    return tuple(
        _cell(
            finding,
            finding.assertion.columns(columns),
            side,
            [each.verdicts[place] for each in repeats],
            repeats,
        )
        for place, finding in enumerate(study.findings)
    )


def _cell(
    finding: Finding,
    needs: tuple[str, ...],
    side: tuple[str, str],
    verdicts: Sequence[Verdict],
    repeats: Sequence[Repeat],
) -> FindingCell:
    near = [finding.near(each.value) for each in verdicts]
    apart = Counter[tuple[str, str]]()
    for each in repeats:
        apart.update(pair for pair in combinations(needs, 2) if not _together(pair, each.measured))
    return FindingCell(
        finding=finding.number,
        synthesizer=side[0],
        epsilon=side[1],
        repeats=len(verdicts),
        held=sum(each.holds for each in verdicts),
        near=None if finding.value is None else sum(each is True for each in near),
        values=tuple(each.value for each in verdicts),
        null=sum(each.null for each in verdicts),
        together=sum(_together(needs, each.measured) for each in repeats),
        apart=tuple((a, b, times) for (a, b), times in apart.most_common()),
    )


def _together(columns: Iterable[str], measured: Iterable[Together]) -> bool:
    wanted = frozenset(columns)
    return any(wanted <= each for each in measured)


def clopper_pearson(hits: int, n: int) -> tuple[float, float]:
    """Return the exact 95 % interval of a probability, if `hits` of `n` trials succeeded."""
    from scipy.special import betaincinv

    tail = (1 - CONFIDENCE) / 2
    low = 0.0 if hits == 0 else float(betaincinv(hits, n - hits + 1, tail))
    high = 1.0 if hits == n else float(betaincinv(hits + 1, n - hits, 1 - tail))
    return low, high
