"""Measure how much an attacker must know: the experiment behind the scoreboard's curves, on any
release of ratings.

Targets are drawn from the release itself; the attacker is told a few of their entries, blurred and
partly wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.attacks.experiment.dice import Dice
from discreet.attacks.experiment.finding import Finding, Rate
from discreet.attacks.inputs.ratings import Index
from discreet.attacks.scoreboard import ECCENTRICITY, Clues, attack
from discreet.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """`entries` are known, `wrong` of them about somebody else; days to within `days` (None: not at
    all).
    """

    entries: int
    wrong: int = 0
    days: int | None = None
    value_error: float = 0.0
    obscure: int = 0  # the attacker knows nothing about this many of the most popular items

    def __str__(self) -> str:
        days = "no dates" if self.days is None else f"{self.days}-day error"
        return f"{self.entries} known, {self.wrong} wrong, {days}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The share of right and of wrong names: with the target in the release, and without."""

    knowledge: Knowledge
    right: Rate
    wrong: Rate
    wrong_if_absent: Rate
    users: int

    @property
    def finding(self) -> Finding:
        return self.right.finding("scoreboard", chance=1 / self.users)


def experiment(
    where: Index,
    knowledge: Knowledge,
    *,
    targets: int = 200,
    released: float = 1.0,
    eccentricity: float = ECCENTRICITY,
) -> Outcome:
    """Attack some users of an index, of which only a share `released` of the entries was
    published.
    """
    dice = Dice()
    whole = where
    if released < 1:
        where = whole.thin(dice.uniform(len(whole.user)) < released)
    right = wrong = absent = tried = 0
    for user, known in _targets(whole, knowledge, targets, dice):
        found = attack(where, known, eccentricity=eccentricity)["user"]
        right += found == user
        wrong += found is not None and found != user
        absent += attack(where, known, eccentricity=eccentricity, absent=user)["user"] is not None
        tried += 1
    if not tried:
        raise UsageError(f"Nobody in the release has {knowledge.entries} entries or more.")
    return Outcome(
        knowledge=knowledge,
        right=Rate(hits=right, n=tried),
        wrong=Rate(hits=wrong, n=tried),
        wrong_if_absent=Rate(hits=absent, n=tried),
        users=len(whole.users),
    )


def curves(
    where: Index, *, most: int = 8, days: Iterable[int | None] = (3, 14, None), targets: int = 100
) -> list[Outcome]:
    """Measure success against the number of known entries, one curve for each precision of the
    dates.
    """
    return [
        experiment(where, Knowledge(entries=entries, days=precision), targets=targets)
        for precision in days
        for entries in range(1, most + 1)
    ]


def _targets(
    where: Index, knowledge: Knowledge, targets: int, dice: Dice
) -> Iterator[tuple[int, Clues]]:
    true = knowledge.entries - knowledge.wrong
    have = where.activity()
    able = np.flatnonzero(have >= knowledge.entries)
    chosen = able[dice.some(len(able), min(targets, len(able)))]
    entries, items = where.entries_of(chosen)
    support = np.diff(where.start)
    popular = set(np.argsort(-support)[: knowledge.obscure].tolist())
    owner = where.user[entries]
    for user in chosen:
        mine = np.flatnonzero(owner == user)
        told = np.array([i for i in mine if items[i] not in popular], dtype=np.int64)
        if len(told) < true:
            continue
        told = told[dice.some(len(told), true)]
        known = _blur(where, entries[told], items[told], knowledge, dice)
        yield (
            int(user),
            _with_mistakes(where, known, set(items[mine].tolist()), knowledge.wrong, dice),
        )


def _blur(
    where: Index,
    entries: NDArray[np.int64],
    items: NDArray[np.int64],
    knowledge: Knowledge,
    dice: Dice,
) -> Clues:
    n = len(entries)
    value = np.full(n, np.nan) if where.value is None else where.value[entries].astype(float)
    day = np.full(n, np.nan)
    if where.day is not None and knowledge.days is not None:
        day = where.first_day + where.day[entries].astype(float)
        day += dice.below(2 * knowledge.days + 1, n) - knowledge.days
    return Clues(
        item=items, value=value + (2 * dice.uniform(n) - 1) * knowledge.value_error, day=day
    )


def _with_mistakes(where: Index, known: Clues, mine: set[int], wrong: int, dice: Dice) -> Clues:
    """Add items that the target has nothing to do with, each with somebody's value and day of
    another item.
    """
    strange = [item for item in dice.order(len(where.items)).tolist() if item not in mine][:wrong]
    entries = dice.below(len(where.user), len(strange))
    value = np.full(len(strange), np.nan)
    day = np.full(len(strange), np.nan)
    if where.value is not None:
        value = where.value[entries].astype(float)
    if where.day is not None and not np.isnan(known.day).all():
        day = where.first_day + where.day[entries].astype(float)
    return Clues(
        item=np.concatenate([known.item, np.array(strange, dtype=np.int64)]),
        value=np.concatenate([known.value, value]),
        day=np.concatenate([known.day, day]),
    )
