"""Scoreboard and Scoreboard-RH (Narayanan, Shmatikov 2008): whose sparse record is this, given a
few vague facts?

Use it on ratings, purchases or visits whose names were replaced by numbers. What the attacker knows
may be imprecise in value and day, and partly wrong. Nobody is named unless the best candidate
stands out.

    score(r) = sum over known items i of  w(i) (exp(-|value difference| / 1.5) + exp(-|days between|
    / 30)), w(i) = 1 / log |who has i|;  named if (best - second) / deviation of all scores >= 1.5
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.attacks.experiment.finding import Finding, Rate
from discreet.attacks.inputs import source
from discreet.attacks.inputs.ratings import Index, index, numbers
from discreet.errors import UsageError

Method = Literal["rh", "plain"]
Floats = NDArray[np.float64]

VALUE_SCALE = 1.5
DAY_SCALE = 30.0
ECCENTRICITY = 1.5
ALIKE = 0.5  # of the plain scoreboard: how similar every single item must be


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clues:
    """An attacker's knowledge of one target: items, and where known (else NaN) their values and
    days.
    """

    item: NDArray[np.int64]
    value: Floats
    day: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """`user` is a position in the release's users, or None if nobody stands out."""

    target: Any
    user: int | None
    score: float
    eccentricity: float
    entropy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    finding: Finding
    matches: tuple[Match, ...]
    users: pa.Array
    named: int
    right: int | None

    def as_json(self) -> dict[str, object]:
        rows = [
            {
                "target": match.target,
                "user": None if match.user is None else self.users[match.user].as_py(),
                "score": match.score,
                "eccentricity": match.eccentricity,
                "entropy": match.entropy,
            }
            for match in self.matches
        ]
        return {**self.finding.as_json(), "named": self.named, "right": self.right, "matches": rows}


def scoreboard(
    release: str | Path | pa.Table | Index,
    aux: str | Path | pa.Table,
    *,
    method: Method = "rh",
    eccentricity: float = ECCENTRICITY,
    truth: str | None = None,
) -> Matches:
    """Look for each target of `aux` (target, item[, value][, day]) in the release.

    `truth` names a column of `aux` that holds the target's user, for experiments: success is then
    how many were named rightly; without it, how many were named at all.
    """
    where = release if isinstance(release, Index) else index(release)
    known = aux if isinstance(aux, pa.Table) else source.table(aux)
    matches, right = [], 0
    for target, facts, true_user in _targets(where, known, truth):
        found = attack(where, facts, method=method, eccentricity=eccentricity)
        matches.append(Match(target=target, **found))
        right += found["user"] is not None and where.users[found["user"]].as_py() == true_user
    named = sum(match.user is not None for match in matches)
    rate = Rate(hits=named if truth is None else right, n=len(matches))
    return Matches(
        finding=rate.finding("scoreboard", chance=1 / len(where.users)),
        matches=tuple(matches),
        users=where.users,
        named=named,
        right=None if truth is None else right,
    )


def attack(
    where: Index,
    known: Clues,
    *,
    method: Method = "rh",
    eccentricity: float = ECCENTRICITY,
    absent: int | None = None,
) -> dict[str, Any]:
    """Attack one target. `absent` leaves one user out of the release: whoever is named then is
    wrong.
    """
    if method not in ("rh", "plain"):
        raise UsageError(f'The method is "rh" or "plain", not "{method}".')
    board = scores(where, known) if method == "rh" else _weakest(where, known)
    if absent is not None:
        board = np.delete(board, absent)
    ahead = _eccentricity(board)
    deviation = float(board.std())
    best = int(board.argmax())
    stands_out = ahead >= eccentricity if method == "rh" else int((board > ALIKE).sum()) == 1
    return {
        "user": best if stands_out and board[best] > 0 else None,
        "score": float(board[best]),
        "eccentricity": ahead,
        "entropy": _entropy(board, deviation),
    }


def scores(where: Index, known: Clues) -> Floats:
    """Return Scoreboard-RH's score of each user."""
    board = np.zeros(len(where.users))
    support = where.support(known.item)
    for k, item in enumerate(known.item):
        # an item of one person weighs as one of two; log 1 would be infinite
        weight = 1 / np.log(max(support[k], 2))
        board += weight * _similarity(where, int(item), known.value[k], known.day[k])
    return board


def chances(board: Floats) -> Floats:
    """Return how likely each user is, in proportion to exp(score / deviation): the entropic
    output.
    """
    deviation = board.std()
    if deviation == 0:
        return np.full(len(board), 1 / len(board))
    weights = np.exp((board - board.max()) / deviation)
    return np.asarray(weights / weights.sum())


def _similarity(where: Index, item: int, value: float, day: float) -> Floats:
    """Return how well each user's entry for an item fits; the best one where somebody has
    several.
    """
    at = slice(where.start[item], where.start[item + 1])
    fit = np.zeros(at.stop - at.start)
    parts = 0
    if where.value is not None and not np.isnan(value):
        fit += np.exp(-np.abs(where.value[at] - value) / VALUE_SCALE)
        parts += 1
    if where.day is not None and not np.isnan(day):
        fit += np.exp(-np.abs(where.day[at] - (day - where.first_day)) / DAY_SCALE)
        parts += 1
    similarity = np.zeros(len(where.users))
    np.maximum.at(similarity, where.user[at], np.nan_to_num(fit) if parts else 1.0)
    return similarity


def _weakest(where: Index, known: Clues) -> Floats:
    """Score users by the least similar of the known items: the plain scoreboard."""
    board = np.ones(len(where.users))
    for item, value, day in zip(known.item, known.value, known.day, strict=True):
        parts = (where.value is not None and not np.isnan(value)) + (
            where.day is not None and not np.isnan(day)
        )
        board = np.minimum(board, _similarity(where, int(item), value, day) / max(parts, 1))
    return board


def _eccentricity(board: Floats) -> float:
    deviation = board.std()
    if len(board) < 2 or deviation == 0:
        return 0.0
    second, best = np.partition(board, -2)[-2:]
    return float((best - second) / deviation)


def _entropy(board: Floats, deviation: float) -> float:
    """Return the entropy in bits: 0 when one user is certain, log2 of their number when nothing is
    known.
    """
    likely = chances(board) if deviation > 0 else np.full(len(board), 1 / len(board))
    positive = likely[likely > 0]
    return float(-(positive * np.log2(positive)).sum())


def _targets(where: Index, aux: pa.Table, truth: str | None) -> Iterator[tuple[Any, Clues, Any]]:
    items = source.column(aux, "item", "The attacker's file")
    target = (
        source.column(aux, "target", "The attacker's file").combine_chunks().dictionary_encode()
    )
    code = pc.index_in(items.cast(where.items.type), value_set=where.items).to_numpy()
    facts = {name: np.full(len(aux), np.nan) for name in ("value", "day")}
    for name in facts.keys() & set(aux.column_names):
        facts[name] = numbers(aux.column(name).combine_chunks(), name)
    users = (
        source.column(aux, truth, "The attacker's file").to_pylist() if truth else [None] * len(aux)
    )
    who = np.asarray(target.indices.to_numpy(zero_copy_only=False))
    order = np.argsort(who, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(who[order])) + 1):
        # items that the release has never heard of tell nothing
        known = rows[~np.isnan(code[rows].astype(float))]
        facts_of = Clues(
            item=code[known].astype(np.int64), value=facts["value"][known], day=facts["day"][known]
        )
        yield target.dictionary[int(who[rows[0]])].as_py(), facts_of, users[rows[0]]
