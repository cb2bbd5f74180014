"""Were you counted? A hundred people, a thousand attributes, and the totals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from discreet.attacks.experiment.dice import Dice
from discreet.attacks.experiment.finding import Rate
from discreet.attacks.lessons.lesson import EPSILONS, Lesson, LessonStep, noisy, points
from discreet.attacks.membership import trace

RELEASE = """
    A study of {people} patients publishes, for each of {attributes:,} genetic markers, how many of them carry it.
    Totals only. (Generated; in 2008 this made agencies take such totals off the web.)"""
ATTACK = """
    The attacker has somebody's markers, and knows how common each is in the population. Totals lean a little
    towards those who were counted; over a thousand markers the leaning adds up."""


def lesson(*, people: int = 100, attributes: int = 1000, repeats: int = 10) -> Lesson:
    exact = _trace(people, attributes, repeats, None).finding("membership", chance=0.5)
    rates = [(epsilon, _trace(people, attributes, repeats, epsilon)) for epsilon in EPSILONS]
    return Lesson(
        attack="membership",
        title="Were you counted?",
        steps=(
            LessonStep(
                heading="The release", text=RELEASE.format(people=people, attributes=attributes)
            ),
            LessonStep(heading="The attack", text=ATTACK),
            LessonStep(
                heading="The result",
                text=f"Half of the targets were in the study. In or out: {exact}.",
            ),
            LessonStep(
                heading="The same with noise",
                text=f"All {attributes:,} totals together cost ε; one patient may change every one of them.",
            ),
        ),
        measure="targets of whom the attacker knows rightly whether they were in the study",
        exact=exact,
        points=points("membership", rates, chance=0.5),
        bounded=True,
        moral="Averages are about people too. That somebody took part can be the secret.",
    )


def _trace(people: int, attributes: int, repeats: int, epsilon: Fraction | None) -> Rate:
    dice = Dice()
    hits = tried = 0
    for _ in range(repeats):
        common = 0.05 + 0.9 * dice.uniform(attributes)
        inside = (dice.uniform(people, attributes) < common).astype(np.int64)
        outside = (dice.uniform(people, attributes) < common).astype(np.int64)
        totals = inside.sum(axis=0)
        if epsilon is not None:
            totals = noisy(totals, epsilon=epsilon, l1=attributes)
        found = trace(totals, people, inside, outside, reference=common).finding
        hits = hits + round(found.success * found.n)
        tried = tried + found.n
    return Rate(hits=hits, n=tried)
