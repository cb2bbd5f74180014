"""Differencing: whose secret follows from the exact answers to a log of questions, alone or
combined?

For the curator a detector, for the auditor the attack. Two questions whose row sets differ by one
person give that person away; so does any combination of questions whose row sets add and subtract
to one person. They are found exactly: person i is exposed if and only if every solution of the
homogeneous equations is zero at i. Then there is what values may be: where all are 0 or 1, or in a
range, a sum at its end tells everybody in it (`ranges`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.attacks.experiment.finding import Finding, Rate
from discreet.attacks.inputs.questions import (
    Row,
    RowsByCondition,
    equations,
    means_over_secrets,
    read_log,
)
from discreet.attacks.solve.ranges import Sums, pin
from discreet.attacks.solve.unions import System

Answering = Callable[[str], Any]
"""Gives the answer to a question: a number, or an Arrow table. `lambda sql: curator.ask(sql,
...).table` is one.
"""

WITHIN = 0.01  # a sum is right if it is within this share of the column's range


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposed:
    """A person (by row number), what the answers tell about them, and the questions that tell it,
    with weights.
    """

    row: int
    secret: str
    quantity: str
    chain: tuple[tuple[int, Fraction], ...]
    value: float | None
    right: bool | None
    by: Literal["combination", "range"] = "combination"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tied:
    """A few people whose sum follows from the answers, so that whoever knows one of them knows
    another.
    """

    rows: tuple[int, ...]
    secret: str
    quantity: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """`unproved`: why somebody else may be exposed whom this attack did not find."""

    finding: Finding
    exposed: tuple[Exposed, ...]
    groups: tuple[Tied, ...]
    questions: int
    skipped: tuple[tuple[int, str], ...]
    unproved: tuple[str, ...]

    @property
    def safe(self) -> bool:
        """True if nobody is exposed and that is proved."""
        return self.verdict == "safe"

    @property
    def verdict(self) -> Literal["exposed", "not found", "safe"]:
        if self.exposed:
            return "exposed"
        return "not found" if self.unproved else "safe"

    def as_json(self, *, reveal: bool = False) -> dict[str, object]:
        people = [
            {
                "row": e.row,
                "secret": e.secret,
                "quantity": e.quantity,
                "by": e.by,
                "questions": [number for number, _ in e.chain],
                "weights": [str(weight) for _, weight in e.chain] if e.by == "combination" else [],
                **({"value": e.value} if reveal else {}),
            }
            for e in self.exposed
        ]
        return {
            **self.finding.as_json(),
            "safe": self.safe,
            "verdict": self.verdict,
            "unproved": list(self.unproved),
            "questions": self.questions,
            "exposed": people,
            "groups": [
                {"rows": list(g.rows), "secret": g.secret, "quantity": g.quantity}
                for g in self.groups
            ],
            "not_analyzed": [
                {"question": number, "reason": reason} for number, reason in self.skipped
            ],
        }


def difference(
    log: str | Sequence[str],
    table: pa.Table,
    *,
    name: str,
    secrets: Sequence[str] | None = None,
    answers: Answering | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    smallest: int = 2,
    seconds: float = 10.0,
) -> Differences:
    """Find the people whom a log of questions about `table`, called `name` in them, exposes.

    Each column of `secrets` (by default every column that the log mentions, in turn) is taken as
    unknown, and all others as known to the attacker. `ranges` gives the public range of a number;
    by default it goes from the least to the largest in the table. With `answers`, the attack works
    the secrets out from them, by combinations only, and compares them with the truth; without,
    answers are exact. It also lists groups of up to `smallest` people whose sum follows. It leaves
    unproved what takes more than `seconds` for one secret.
    """
    asked = read_log(log, name)
    data = RowsByCondition.of(asked, table)
    told = _Answers(answers)
    exposed: list[Exposed] = []
    groups: list[Tied] = []
    guessed: list[float] = []
    unproved = _not_analyzed(asked.skipped, answers)
    for secret in asked.columns if secrets is None else secrets:
        systems = list(equations(asked, data, secret).values())
        found: list[Exposed] = []
        chances: dict[str, float] = {}
        for quantity, values, rows in systems:
            fresh, small = _by_combination(secret, quantity, values, rows, told, smallest)
            found += fresh
            chances[quantity] = _guess(values)
            groups += [Tied(rows=rows_of, secret=secret, quantity=quantity) for rows_of in small]
        if answers is None:
            hidden = _unknowns(systems, ranges or {})
            more, proved = _by_range(secret, hidden, seconds)
            told_already = {(e.row, e.quantity) for e in found}
            more = [e for e in more if (e.row, e.quantity) not in told_already]
            found += more
            chances |= {each.quantity: _guess(each.sums.values) for each in hidden}
            unproved += [] if proved else [f"{secret}: not every possibility was tried"]
        unproved += [
            f"question {n}: a mean over people chosen by {secret}"
            for n in means_over_secrets(asked, secret)
        ]
        guessed += [chances[e.quantity] for e in found]
        exposed += found
    people = {e.row for e in exposed}
    hits = sum(bool(e.right) for e in exposed)
    rate = Rate(hits=hits, n=len(exposed)) if exposed else Rate(hits=0, n=table.num_rows)
    chance = float(np.mean(guessed)) if guessed else 0.0
    return Differences(
        finding=rate.finding("difference", chance=chance),
        exposed=tuple(sorted(exposed, key=lambda e: (e.row, e.secret))),
        groups=tuple(g for g in groups if not people.issuperset(g.rows)),
        questions=len(asked.questions) + len(asked.skipped),
        skipped=asked.skipped,
        unproved=tuple(unproved),
    )


def _not_analyzed(skipped: Sequence[tuple[int, str]], answers: Answering | None) -> list[str]:
    found = [f"question {number} {reason}" for number, reason in skipped]
    if answers is None:
        return found
    return [*found, "answers were asked for: only combinations of them were tried"]


def _by_combination(
    secret: str,
    quantity: str,
    values: NDArray[np.float64],
    rows: list[Row],
    told: _Answers,
    smallest: int,
) -> tuple[list[Exposed], list[tuple[int, ...]]]:
    """Find people who are alone in a combination of the sets."""
    exposed = []
    found, small = System.of(rows).exposed(smallest)
    for person, chain in found:
        value = None if chain is None else _value(chain, rows, values, told)
        right = value is not None and _right(value, values, person)
        weights = _weights(chain, rows)
        exposed.append(
            Exposed(
                row=person,
                secret=secret,
                quantity=quantity,
                chain=weights,
                value=value,
                right=right,
            )
        )
    return exposed, small


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Unknown:
    """Something of each person that the secret decides, and all answers that sum it."""

    quantity: str
    rows: list[Row]
    sums: Sums


def _unknowns(
    systems: Sequence[tuple[str, NDArray[np.float64], list[Row]]],
    ranges: Mapping[str, tuple[float, float]],
) -> list[_Unknown]:
    """Return every quantity that is summed, once: SUM(income) of the ill, with known incomes, is
    about who is ill.
    """
    found: dict[bytes, tuple[str, list[Row]]] = {}
    for quantity, _, rows in systems:
        for row in rows:
            _, _, conditions = quantity.partition(" where ")
            name = quantity if row.factor is None or not conditions else conditions
            found.setdefault(row.hidden.tobytes(), (name, []))[1].append(row)
    hidden = []
    for name, rows in found.values():
        plain = all(row.factor is None or (row.factor == 1).all() for row in rows)
        factors = np.array(
            [
                row.members if plain or row.factor is None else row.members * row.factor
                for row in rows
            ]
        )
        low, high = _ends(name, rows[0].hidden, ranges)
        hidden.append(
            _Unknown(
                quantity=name,
                rows=rows,
                sums=Sums(factors=factors, values=rows[0].hidden, low=low, high=high),
            )
        )
    return hidden


def _by_range(
    secret: str, hidden: Sequence[_Unknown], seconds: float
) -> tuple[list[Exposed], bool]:
    """Find people with one possible value left; then people who are alone once the first leave
    every sum.
    """
    if not hidden:
        return [], True
    found = pin([each.sums for each in hidden], seconds=seconds)
    exposed = []
    for each, flags in zip(hidden, found.people, strict=True):
        fixed = flags.copy()
        if fixed.any() and not each.sums.whole:
            rest = [replace(row, members=row.members & ~fixed) for row in each.rows]
            alone, _ = System.of([row for row in rest if row.members.any()] or rest).exposed(1)
            fixed[[person for person, _ in alone]] = True
        for person in np.flatnonzero(fixed).tolist():
            exposed.append(
                Exposed(
                    row=person,
                    secret=secret,
                    quantity=each.quantity,
                    chain=_telling(person, each),
                    value=float(each.sums.values[person]),
                    right=True,
                    by="range",
                )
            )
    return exposed, found.proved


def _telling(person: int, hidden: _Unknown) -> tuple[tuple[int, Fraction], ...]:
    """Return the one question that is enough, if there is one: everybody in it is at the same
    end.
    """
    sums = hidden.sums
    for row, factors in zip(hidden.rows, sums.factors, strict=True):
        if factors[person]:
            inside = sums.values[factors != 0]
            if (inside == sums.low).all() or (inside == sums.high).all():
                return ((row.question.number, Fraction(1)),)
    return ()


def _ends(
    quantity: str, values: NDArray[np.float64], ranges: Mapping[str, tuple[float, float]]
) -> tuple[float, float]:
    """Return the ends of each person's part of a sum: declared, or 0 and 1, or from the least to
    the largest.
    """
    column, _, conditions = quantity.partition(" where ")
    if column in ranges:
        low, high = ranges[column]
        return (min(low, 0.0), max(high, 0.0)) if conditions else (low, high)
    if np.isin(values, (0, 1)).all():
        return 0.0, 1.0
    return float(values.min()), float(values.max())


def _guess(values: NDArray[np.float64]) -> float:
    """Return the share of people for whom the best constant guess is right."""
    middle = np.median(values)
    return float((np.abs(values - middle) <= _tolerance(values)).mean())


def _tolerance(values: NDArray[np.float64]) -> float:
    return 0.5 if set(np.unique(values)) <= {0.0, 1.0} else WITHIN * float(np.ptp(values))


def _right(value: float, values: NDArray[np.float64], person: int) -> bool:
    return bool(abs(value - values[person]) <= _tolerance(values) + 1e-9 * abs(values[person]))


def _weights(
    chain: dict[int, Fraction] | None, rows: list[Row]
) -> tuple[tuple[int, Fraction], ...]:
    if chain is None:
        return ()
    return tuple(sorted((rows[i].question.number, w) for i, w in chain.items()))


def _value(
    chain: dict[int, Fraction], rows: list[Row], values: NDArray[np.float64], told: _Answers
) -> float:
    """Return the weighted sum of the answers."""
    total = 0.0
    for i, weight in chain.items():
        row = rows[i]
        number = told(row) if told.answering else float(values[row.members].sum())
        if told.answering and row.aggregate.mean:
            number *= float(row.members.sum())
        if told.answering and row.inverted:
            number = float(row.members.sum()) - number
        total += float(weight) * number
    return total


@dataclass(slots=True)
class _Answers:
    """Ask each question once, whatever needs it."""

    answering: Answering | None
    _told: dict[int, Any] | None = None

    def __call__(self, row: Row) -> float:
        self._told = self._told or {}
        number = row.question.number
        if number not in self._told:
            assert self.answering is not None
            self._told[number] = self.answering(row.question.sql)
        answer = self._told[number]
        if not isinstance(answer, pa.Table):
            return float(answer)
        for line in answer.to_pylist():
            shown = list(line.values())
            if all(shown[at] == value for at, value in row.cell):
                return float(shown[row.aggregate.column] or 0)
        return 0.0
