"""A lesson as one HTML file: no script, no font and no picture from elsewhere."""

from __future__ import annotations

from discreet.attacks.experiment.finding import ceiling, percent
from discreet.attacks.lessons.lesson import Exhibit, Lesson
from discreet.attacks.lessons.plot import CEILING, Scale
from discreet.pages import axis, blocks
from discreet.pages.plot import Curve, plot

_STEPS = 80


def html(lesson: Lesson) -> str:
    """Write the story step by step, then success against ε as a chart and as numbers, then the
    moral.
    """
    steps: list[str] = []
    for number, step in enumerate(lesson.steps, start=1):
        steps += [
            blocks.heading(f"{number}. {step.heading}"),
            blocks.paragraph(" ".join(step.text.split())),
        ]
        steps += [_table(step.table)] if step.table else []
    measure = f"{lesson.measure[0].upper()}{lesson.measure[1:]}"
    parts = [
        *steps,
        blocks.figure(
            "Success of the attack against ε",
            _chart(lesson),
            note=f"{measure}, with 95 % intervals",
        ),
        _table(lesson.numbers()),
        blocks.paragraph(lesson.moral, kind="moral"),
    ]
    command = (
        f"discreet attack {lesson.attack} --demo. All its numbers were measured as it was made."
    )
    return blocks.page(
        lesson.title,
        parts,
        subtitle=f"An attack, and what stops it: {lesson.attack}",
        footer=command,
    )


def _chart(lesson: Lesson) -> str:
    scale = Scale.of(lesson)
    epsilons = [float(point.epsilon) for point in lesson.points]
    ends = [scale.low, scale.high]
    ticks = tuple((share, percent(share)) for share in scale.ticks)
    up = axis.Axis(low=scale.bottom, high=1.0, ticks=ticks, title="attacks that succeed")
    exact, chance = lesson.exact.success, lesson.exact.chance
    curves = [
        Curve(across=ends, up=[exact] * 2, name=f"without noise: {percent(exact)}", color=1),
        Curve(
            across=ends, up=[chance] * 2, name=f"by chance: {percent(chance)}", color=9, kind="dash"
        ),
    ]
    if lesson.bounded:
        places = [
            scale.low * (scale.high / scale.low) ** (step / _STEPS) for step in range(_STEPS + 1)
        ]
        best = [ceiling(epsilon) for epsilon in places]
        curves.append(Curve(across=places, up=best, name=CEILING, color=4, kind="dash"))
    curves.append(
        Curve(
            across=epsilons,
            up=[point.finding.success for point in lesson.points],
            lows=[point.finding.interval[0] for point in lesson.points],
            highs=[point.finding.interval[1] for point in lesson.points],
            titles=[
                f"ε = {epsilon:g}: {point.finding}"
                for epsilon, point in zip(epsilons, lesson.points, strict=True)
            ],
            name="with noise",
            kind="spot",
        )
    )
    across = axis.logarithmic(epsilons, title="ε: the smaller, the more noise")
    return plot(
        curves, across=across, up=up, label=f"Success of the attack against ε: {lesson.measure}"
    )


def _table(table: Exhibit) -> str:
    return blocks.table(table.columns, table.rows)
