"""Everybody but you: two harmless questions whose answers differ by one person."""

from __future__ import annotations

from discreet.attacks.difference import Differences
from discreet.attacks.difference import difference as attack
from discreet.attacks.experiment.dice import Dice
from discreet.attacks.experiment.finding import Rate
from discreet.attacks.lessons.lesson import (
    EPSILONS,
    Exhibit,
    Lesson,
    LessonStep,
    bits_guessed,
    noisy,
    points,
)
from discreet.examples import town

GOVERNOR = "zip = '{zip}' AND sex = '{sex}' AND born = DATE '{born}'".format(**town.GOVERNOR)
BORN = f"DATE '{town.GOVERNOR['born']}'"
LOG = (
    "SELECT COUNT(*) FROM people WHERE diagnosis = 'cancer' AND age >= 65",
    "SELECT sex, COUNT(*) FROM people WHERE smoker GROUP BY sex",
    "SELECT COUNT(*) FROM people WHERE diagnosis = 'cancer'",
    "SELECT AVG(income) FROM people WHERE age BETWEEN 30 AND 39",
    f"SELECT COUNT(*) FROM people WHERE diagnosis = 'cancer' AND NOT ({GOVERNOR})",
    "SELECT SUM(income) FROM people WHERE zip = '02138'",
    "SELECT SUM(income) FROM people WHERE zip = '02138' AND sex = 'F'",
    f"SELECT SUM(income) FROM people WHERE zip = '02138' AND sex = 'M' AND born < {BORN}",
    f"SELECT SUM(income) FROM people WHERE zip = '02138' AND sex = 'M' AND born > {BORN}",
    "SELECT SUM(income) FROM people WHERE zip = '02138' AND sex = 'X'",
)
RELEASE = "A clinic answers questions, exactly, but only about many people at once. Ten were asked:"
ATTACK = """
    Each question is a set of rows. If sets add and subtract to one person, so do the answers. All such
    combinations are found exactly, by linear algebra modulo a prime."""
RESULT = """
    {secrets} secrets of one person (row {row}; the governor) follow from the answers, though no question was
    about one person:"""
NOISE = """
    Each of the two answers of a pair gets noise at ε/2, so the pair costs ε. Half of the targets have the secret.
    The difference of two noisy answers is noisier than either."""


def lesson(*, people: int = 10_000, trials: int = 20_000) -> Lesson:
    found = attack(
        LOG, town.tables(people)["people"], name="people", secrets=["diagnosis", "income"]
    )
    truth = Dice().order(trials) % 2
    rates = []
    for epsilon in EPSILONS:
        # the crowd around the target is known and cancels
        everybody = noisy(truth, epsilon=epsilon / 2, l1=1)
        all_but_one = noisy(0 * truth, epsilon=epsilon / 2, l1=1)
        rates.append((epsilon, bits_guessed(everybody - all_but_one >= 1, truth == 1)))
    questions = Exhibit(
        columns=("", "question"), rows=tuple((str(i), sql) for i, sql in enumerate(LOG, start=1))
    )
    result = RESULT.format(secrets=len(found.exposed), row=found.exposed[0].row)
    return Lesson(
        attack="difference",
        title="Everybody but you",
        steps=(
            LessonStep(heading="The release", text=RELEASE, table=questions),
            LessonStep(heading="The attack", text=ATTACK),
            LessonStep(heading="The result", text=result, table=_chains(found)),
            LessonStep(heading="The same with noise", text=NOISE),
        ),
        measure="targets of whom the attacker knows rightly whether they have cancer",
        exact=Rate(hits=trials, n=trials).finding("difference", chance=0.5),
        points=points("difference", rates, chance=0.5),
        bounded=True,
        moral="A minimum group size stops nobody: the danger is in what answers say together. Noise and a budget do.",
    )


def _chains(found: Differences) -> Exhibit:
    rows = []
    for exposed in found.exposed:
        signs = [
            f"{'+' if weight > 0 else '−'} answer {number}" for number, weight in exposed.chain
        ]
        rows.append((exposed.quantity, " ".join(signs)))
    return Exhibit(columns=("secret", "follows as"), rows=tuple(rows))
