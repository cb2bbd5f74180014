"""The governor: a release without names, a voter list, and one man who is alone in his ZIP code on
his birthday.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.attacks.experiment.dice import Dice
from discreet.attacks.experiment.finding import percent
from discreet.attacks.lessons.lesson import (
    EPSILONS,
    Exhibit,
    Lesson,
    LessonStep,
    bits_guessed,
    noisy,
    points,
)
from discreet.attacks.link import Linkage
from discreet.attacks.link import link as attack
from discreet.examples import town

RELEASE = """
    A hospital publishes one row for each of {people:,} people: ZIP code, date of birth, sex and diagnosis. No
    names, no addresses. (The town is generated; Massachusetts did the same with real people in 1997.)"""
ATTACK = """
    The voter list has names, and the same three columns. Everybody knows when the governor was born: {day} of the
    town's people share that day, {men} of them are men, and only {alone} of these lives in his ZIP code. The row
    is his, and the diagnosis in it."""
RESULT = """
    Not only his. {named} of all rows belong to exactly one person on the voter list, and {right} of these links
    are right; a guess would be right in {chance} of cases. How many people are alone with which columns:"""
NOISE = """
    No rows leave any more; whoever asks gets counts with noise. The attacker, who knows the target's ZIP code,
    date of birth and sex, asks how many such people are ill. The exact answer is 0 or 1, and that is the secret.
    Half of the targets are ill. The answers below came from the discrete Laplace mechanism; no attack whatever
    does better than the ceiling, and this one reaches it."""


def lesson(*, people: int = 100_000, trials: int = 20_000) -> Lesson:
    residents = town.tables(people)["people"]
    release = residents.select(["person_id", "zip", "born", "sex", "diagnosis"])
    voters = residents.select(["person_id", "zip", "born", "sex"])
    found = attack(release, voters, on=["zip", "born", "sex"], truth="person_id")
    ill = ~np.asarray(release.column("diagnosis").is_null().to_numpy())
    secret = ill[_balance(np.array([link.release_row for link in found.links]), ill, trials)]
    rates = [
        (epsilon, bits_guessed(noisy(secret, epsilon=epsilon, l1=1) >= 1, secret))
        for epsilon in EPSILONS
    ]
    return Lesson(
        attack="link",
        title="The governor's record",
        steps=(
            LessonStep(heading="The release", text=RELEASE.format(people=people)),
            LessonStep(heading="The attack", text=ATTACK.format(**_funnel(residents))),
            LessonStep(heading="The result", text=_result(found), table=_unique(found)),
            LessonStep(heading="The same with noise", text=NOISE),
        ),
        measure="targets of whom the attacker knows rightly whether they are ill",
        exact=bits_guessed(secret, secret).finding("link", chance=0.5),
        points=points("link", rates, chance=0.5),
        bounded=True,
        moral="Taking out the names protects nobody. A count with noise protects everybody, and says by how much.",
    )


def _balance(rows: NDArray[Any], ill: NDArray[Any], trials: int) -> NDArray[Any]:
    """Pick re-identified people, as many ill as not."""
    dice = Dice()
    halves = [rows[ill[rows] == sick] for sick in (True, False)]
    return np.concatenate([half[dice.below(len(half), trials // 2)] for half in halves])


def _funnel(residents: pa.Table) -> dict[str, int]:
    born, sex, zip_code = (
        np.array(residents.column(name).to_pylist()) for name in ("born", "sex", "zip")
    )
    day = born == town.GOVERNOR["born"]
    men = day & (sex == town.GOVERNOR["sex"])
    alone = men & (zip_code == town.GOVERNOR["zip"])
    return {"day": int(day.sum()), "men": int(men.sum()), "alone": int(alone.sum())}


def _result(found: Linkage) -> str:
    named = len(found.links) / found.finding.n
    right = found.finding.success / named
    return RESULT.format(
        named=percent(named), right=percent(right), chance=percent(found.finding.chance)
    )


def _unique(found: Linkage) -> Exhibit:
    rows = [(" + ".join(u.columns), percent(u.release)) for u in found.uniqueness]
    return Exhibit(columns=("columns", "people who are unique"), rows=tuple(rows))
