"""The film club: numbers instead of names, and a few remarks over coffee."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa

from discreet.attacks.experiment.dice import Dice
from discreet.attacks.experiment.finding import Rate, percent
from discreet.attacks.experiment.knowledge import Knowledge, Outcome, experiment
from discreet.attacks.inputs.ratings import index
from discreet.attacks.lessons.lesson import (
    EPSILONS,
    Exhibit,
    Lesson,
    LessonStep,
    bits_guessed,
    noisy,
    points,
)

MOST_FILMS = 25  # of one person in the counts; the rest is dropped
KNOWN = (
    Knowledge(entries=2, days=3),
    Knowledge(entries=4, days=14),
    Knowledge(entries=8, wrong=2, days=14),
    Knowledge(entries=8, wrong=2),
    Knowledge(entries=8),
)
RELEASE = """
    A film club publishes {ratings:,} ratings by {users:,} members: a number for the member, the film, one to five
    stars, and the day. (Generated; Netflix did the same with half a million customers in 2006.)"""
ATTACK = """
    A colleague mentions eight films over coffee; you remember two of them wrongly, and the dates to within two
    weeks. The scoreboard adds up how well each member fits, films that few have seen weighing more, and names
    somebody only if the best stands out from the second."""
RESULT = """
    The colleague is named in {named} of {n} trials; a guess would be right in {chance}. The number lays open
    every film they ever rated. With other knowledge:"""
NOISE = """
    The club publishes how many members saw each film, with noise; 25 films of each member are counted, and the
    budget is for all of them. The attacker even knows everybody else's films, takes them off the totals, and asks
    of one film whether the colleague saw it. Half of the films asked about were seen."""


def film_club(users: int, films: int, dice: Dice) -> pa.Table:
    """Invent ratings as people leave them: few films that all have seen, many that few have, over
    some months.
    """
    number = np.clip(np.exp(3.4 + 0.8 * dice.normal(users)), 10, films / 4).astype(np.int64)
    user = np.repeat(np.arange(users), number)
    film = np.minimum((films * dice.uniform(len(user)) ** 2.2).astype(np.int64), films - 1)
    _, first = np.unique(user * films + film, return_index=True)
    user = user[first]
    film = film[first]
    taste = 3.2 + 0.7 * np.sin(film * 1.7) + 0.9 * dice.normal(len(user))
    joined = dice.below(600, users)[user]
    day = joined + np.floor(-300 * np.log1p(-dice.uniform(len(user)))).astype(np.int64)
    return pa.table(
        {
            "user": user,
            "item": film,
            "value": np.clip(np.round(taste), 1, 5).astype(np.int64),
            "day": day,
        }
    )


def lesson(
    *, users: int = 5000, films: int = 1000, targets: int = 200, trials: int = 20_000
) -> Lesson:
    where = index(film_club(users, films, Dice()))
    outcomes = [experiment(where, knowledge, targets=targets) for knowledge in KNOWN]
    named = outcomes[2].right
    result = RESULT.format(named=percent(named.value), n=named.n, chance=percent(1 / users))
    return Lesson(
        attack="scoreboard",
        title="The film club",
        steps=(
            LessonStep(
                heading="The release", text=RELEASE.format(ratings=len(where.user), users=users)
            ),
            LessonStep(heading="The attack", text=ATTACK),
            LessonStep(heading="The result", text=result, table=_table(outcomes)),
            LessonStep(heading="The same with noise", text=NOISE),
        ),
        measure="films of which the attacker knows rightly whether the colleague saw them",
        exact=Rate(hits=(named.n + named.hits) // 2, n=named.n).finding("scoreboard", chance=0.5),
        points=points("scoreboard", _ask(trials), chance=0.5),
        bounded=True,
        moral="A sparse record is a fingerprint, also when it is blurred. Noisy totals have no rows to recognize.",
    )


def _ask(trials: int) -> list[tuple[Fraction, Rate]]:
    """Ask about one film of each colleague: without all others, the noisy count is that person's
    bit plus noise.
    """
    truth = Dice().order(trials) % 2
    rates = []
    for epsilon in EPSILONS:
        left = noisy(truth, epsilon=epsilon / MOST_FILMS, l1=1)
        rates.append((epsilon, bits_guessed(left >= 1, truth == 1)))
    return rates


def _table(outcomes: list[Outcome]) -> Exhibit:
    columns = ("the attacker knows", "named rightly", "named wrongly", "named though absent")
    rows = [
        (str(o.knowledge), *(percent(r.value) for r in (o.right, o.wrong, o.wrong_if_absent)))
        for o in outcomes
    ]
    return Exhibit(columns=columns, rows=tuple(rows))
