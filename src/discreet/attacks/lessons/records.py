"""The lessons of three attacks on rows that look safe: a copy without names, and synthetic rows
from noisy totals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from discreet.attacks.experiment.dice import Dice
from discreet.attacks.experiment.finding import percent
from discreet.attacks.experiment.trials import RiskFinding
from discreet.attacks.inference import inference
from discreet.attacks.lessons.lesson import EPSILONS, Exhibit, Lesson, LessonStep, Point, noisy
from discreet.attacks.linkability import linkability
from discreet.attacks.single_out import single_out
from discreet.examples import town

Attack = Callable[[pa.Table, pa.Table, pa.Table], RiskFinding]

COLUMNS = ("age", "sex", "zip", "income", "diagnosis", "smoker", "state")
HALVES = (("age", "zip", "sex", "state"), ("income", "diagnosis", "smoker"))
# income in thousands; the other columns' values are public
DOMAINS = {"age": range(121), "income": range(201)}
RESULT = """
    On the copy without names: {finding}. On as many people who are not in it: {control}. The risk of being in it:
    {risk}."""
NOISE = """
    Instead of the copy, rows are drawn from totals of each column, with noise; all totals together cost ε. What
    is left is what the control shows too:"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    attack: str
    title: str
    text: str
    measure: str
    moral: str


SINGLE_OUT = Story(
    attack="single-out",
    title="One of a kind",
    text="""
    Take a row of the release, and from four of its columns make a sentence that is true of no other row: over 93,
    of this ZIP code, a smoker, in Ohio. Is it true of exactly one person?""",
    measure="sentences made from the release that are true of exactly one person",
    moral="A rare combination points at somebody, name or no name. Synthetic rows from noisy totals point at nobody.",
)
LINKABILITY = Story(
    attack="linkability",
    title="Two halves of a person",
    text="""
    One list holds age, ZIP code, sex and state, another income, diagnosis and smoking, and nothing connects them.
    Look up the nearest row of the release by each half: is it the same row?""",
    measure="people whose two halves led to the same row",
    moral="A release of rows is glue between other people's lists.",
)
INFERENCE = Story(
    attack="inference",
    title="The missing column",
    text="""
    Everything about somebody is known but the diagnosis. The nearest row of the release has one: guess that. What
    this tells about people who are not in the data at all is science, not a leak; they are the control.""",
    measure="people whose diagnosis was guessed",
    moral="What can be learnt about you whether you take part or not is not a leak. The rest is, and noise bounds it.",
)


def single_out_lesson(*, people: int = 4000, trials: int = 400) -> Lesson:
    return _lesson(
        SINGLE_OUT, lambda r, o, c: single_out(r, o, c, columns=4, trials=trials), people
    )


def linkability_lesson(*, people: int = 4000, trials: int = 500) -> Lesson:
    return _lesson(
        LINKABILITY, lambda r, o, c: linkability(r, o, c, halves=HALVES, trials=trials), people
    )


def inference_lesson(*, people: int = 4000, trials: int = 1000) -> Lesson:
    return _lesson(
        INFERENCE, lambda r, o, c: inference(r, o, c, secret="diagnosis", trials=trials), people
    )


def _lesson(story: Story, attack: Attack, people: int) -> Lesson:
    original, control = _residents(people)
    exact = attack(original, original, control)
    private = [
        (epsilon, attack(synthetic(original, epsilon=epsilon), original, control))
        for epsilon in EPSILONS
    ]
    release = f"{people:,} people of the (generated) town: {', '.join(COLUMNS)}. The names were taken out."
    result = RESULT.format(finding=exact.finding, control=_control(exact), risk=_risk(exact))
    rows = tuple(
        (f"{float(e):g}", percent(r.finding.success), _control(r), _risk(r)) for e, r in private
    )
    return Lesson(
        attack=story.attack,
        title=story.title,
        steps=(
            LessonStep(heading="The release", text=release),
            LessonStep(heading="The attack", text=story.text),
            LessonStep(heading="The result", text=result),
            LessonStep(
                heading="The same with noise",
                text=NOISE,
                table=Exhibit(columns=("ε", "success", "control", "risk"), rows=rows),
            ),
        ),
        measure=story.measure,
        exact=exact.finding,
        points=tuple(Point(epsilon=epsilon, finding=found.finding) for epsilon, found in private),
        bounded=False,
        moral=story.moral,
    )


def _control(found: RiskFinding) -> str:
    return percent(found.control.value) if found.control else ""


def _risk(found: RiskFinding) -> str:
    if found.risk is None:
        return ""
    low, high = found.risk.interval
    return f"{percent(found.risk.value)} ({percent(low)} to {percent(high)})"


def _residents(people: int) -> tuple[pa.Table, pa.Table]:
    """Return the rows of people in the data, and of as many others."""
    residents = town.tables(2 * people)["people"].select(COLUMNS)
    thousands = np.minimum(residents.column("income").to_numpy() / 1000, 200).astype(np.int64)
    residents = residents.set_column(COLUMNS.index("income"), "income", pa.array(thousands))
    order = Dice().order(2 * people)
    return residents.take(order[:people]), residents.take(order[people:])


def synthetic(table: pa.Table, *, epsilon: Fraction) -> pa.Table:
    """Return the simplest synthetic rows: each column is drawn from its own noisy totals."""
    dice = Dice()
    columns = {}
    for name in table.column_names:
        rows = table.column(name).to_pylist()
        values = list(DOMAINS[name]) if name in DOMAINS else sorted(set(rows), key=str)
        position = {value: i for i, value in enumerate(values)}
        counts = np.bincount([position[row] for row in rows], minlength=len(values))
        released = noisy(counts, epsilon=epsilon / table.num_columns, l1=1)
        told = np.maximum(released, 0).astype(np.float64)
        ends = np.cumsum(told if told.sum() else np.ones(len(values)))
        drawn = np.searchsorted(ends / ends[-1], dice.uniform(table.num_rows), side="right")
        columns[name] = pa.array([values[i] for i in drawn], type=table.schema.field(name).type)
    return pa.table(columns)
