"""Too many answers: four questions a person, each about half of them, give nearly everybody
away.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.attacks.experiment.dice import Dice
from discreet.attacks.experiment.finding import Rate, percent
from discreet.attacks.lessons.lesson import EPSILONS, Exhibit, Lesson, LessonStep, noisy, points
from discreet.attacks.reconstruct import solve

RELEASE = """
    {people} people each have one secret bit. The curator answers "how many of these have it?" for any group, with
    a little noise, as often as one likes."""
ATTACK = """
    Ask about {questions} random groups, solve for the bits by least squares, round. Dinur and Nissim showed in
    2003 that noise well below √n cannot stop this."""
NOISE = """
    All {questions} answers together cost ε, so each gets {questions} times the noise of a single one. The budget
    is what stops the attack: whoever asks more gets less of each."""


def lesson(*, people: int = 100, repeats: int = 20) -> Lesson:
    questions = 4 * people
    dice = Dice()

    def attacked(answer: Callable[[NDArray[Any]], NDArray[Any]]) -> Rate:
        return _attack(people, questions, repeats, dice, answer)

    def spread(size: float) -> Callable[[NDArray[Any]], NDArray[Any]]:
        return lambda exact: exact + size * (2 * dice.uniform(questions) - 1)

    root = float(np.sqrt(people))
    sizes = [(share, attacked(spread(share * root))) for share in (0.1, 0.25, 0.5, 1, 2)]
    rows = tuple(
        (f"± {share * root:g} (that is {share:g} √n)", percent(rate.value)) for share, rate in sizes
    )

    def hide(epsilon: Fraction) -> Callable[[NDArray[Any]], NDArray[Any]]:
        return lambda exact: noisy(exact, epsilon=epsilon / questions, l1=1)

    rates = [(e, attacked(hide(e))) for e in EPSILONS]
    return Lesson(
        attack="reconstruct",
        title="Too many answers",
        steps=(
            LessonStep(heading="The release", text=RELEASE.format(people=people)),
            LessonStep(heading="The attack", text=ATTACK.format(questions=questions)),
            LessonStep(
                heading="The result",
                text="With evenly spread noise of various sizes:",
                table=Exhibit(columns=("noise", "bits right"), rows=rows),
            ),
            LessonStep(heading="The same with noise", text=NOISE.format(questions=questions)),
        ),
        measure="bits guessed rightly",
        exact=attacked(lambda exact: exact).finding("reconstruct", chance=0.5),
        points=points("reconstruct", rates, chance=0.5),
        bounded=True,
        moral="Too many answers that are too exact give everything away. Count what they cost, and stop in time.",
    )


def _attack(
    people: int,
    questions: int,
    repeats: int,
    dice: Dice,
    answer: Callable[[NDArray[Any]], NDArray[Any]],
) -> Rate:
    hits = 0
    for _ in range(repeats):
        bits = (dice.uniform(people) < 0.5).astype(np.int64)
        queries = (dice.uniform(questions, people) < 0.5).astype(np.float64)
        told = answer((queries @ bits).astype(np.int64)).astype(np.float64)
        hits += int((solve(queries, told, "least-squares")[0] == bits).sum())
    return Rate(hits=hits, n=people * repeats)
