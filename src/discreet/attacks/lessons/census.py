"""Seven people: a page of statistics with everything small left out, and the people behind it."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.attacks.census import census as attack
from discreet.attacks.experiment.finding import Rate
from discreet.attacks.inputs.published import read
from discreet.attacks.lessons.lesson import EPSILONS, Exhibit, Lesson, LessonStep, noisy, points
from discreet.attacks.solve.cells import Frame
from discreet.attacks.solve.worlds import likeliest
from discreet.mechanisms import DiscreteLaplace

DOMAIN: dict[str, Any] = {
    "age": [1, 125],
    "sex": ["F", "M"],
    "race": ["B", "W"],
    "marital": ["S", "M"],
}
RULES = [{"if": {"marital": "M"}, "then": {"age": [15, 125]}}]
PEOPLE: list[dict[str, Any]] = [
    dict(zip(DOMAIN, person, strict=True))
    for person in (
        (8, "F", "B", "S"),
        (18, "M", "W", "S"),
        (24, "F", "W", "S"),
        (30, "M", "W", "M"),
        (36, "F", "B", "M"),
        (66, "F", "B", "M"),
        (84, "M", "B", "M"),
    )
]
GROUPS: dict[str, dict[str, Any]] = {
    "everybody": {},
    "female": {"sex": "F"},
    "male": {"sex": "M"},
    "black": {"race": "B"},
    "white": {"race": "W"},
    "married": {"marital": "M"},
    "black female": {"race": "B", "sex": "F"},
    "single adults": {"marital": "S", "age": [18, 125]},
    "black male": {"race": "B", "sex": "M"},
    "white male": {"race": "W", "sex": "M"},
    "white female": {"race": "W", "sex": "F"},
    "under 5": {"age": [1, 4]},
    "under 18": {"age": [1, 17]},
    "64 and over": {"age": [64, 125]},
}
THRESHOLD = 3
MOST = 40  # people that the attacker thinks possible


RELEASE = """
    A statistical office publishes this about a block of seven people. Cells of fewer than three are left out (D)."""
ATTACK = """
    Each of the seven could be any of {records} combinations of age, sex, race and marital status (nobody under 15
    is married). A constraint solver lists every set of seven people that would have given this page."""
NOISE = """
    The counts and the sums of ages of all fourteen groups get noise, and nothing need be left out; the whole page
    costs ε. Taken at its word, the noisy page contradicts itself; at ε = 1 the solver says: {word} Allowing for
    the noise it says: {margins} So the attacker takes the likeliest of all worlds, the one nearest to the page.
    The scale goes on to an ε at which there is no privacy left."""


def lesson(*, repeats: int = 10) -> Lesson:
    found = attack(published())
    word = attack(published(Fraction(1))).sentence
    margins = attack(published(Fraction(1), margins=True), cap=50, seconds=5).sentence
    people = sorted(found.common, key=lambda record: record["age"])
    records = sum(person["marital"] == "S" or person["age"] >= 15 for person in _everybody())
    rates = [
        (epsilon, _attack(epsilon, repeats)) for epsilon in (*EPSILONS, Fraction(64), Fraction(512))
    ]
    return Lesson(
        attack="census",
        title="Seven people",
        steps=(
            LessonStep(heading="The release", text=RELEASE, table=_page()),
            LessonStep(heading="The attack", text=ATTACK.format(records=records)),
            LessonStep(
                heading="The result",
                text=f"{found.sentence} It took {found.seconds:.2f} seconds:",
                table=Exhibit(
                    columns=tuple(DOMAIN), rows=tuple(tuple(map(str, r.values())) for r in people)
                ),
            ),
            LessonStep(
                heading="The same with noise", text=NOISE.format(word=word, margins=margins)
            ),
        ),
        measure="people reconstructed",
        exact=Rate(hits=len(found.common), n=len(PEOPLE)).finding(
            "census", chance=found.finding.chance
        ),
        points=points("census", rates, chance=found.finding.chance),
        bounded=False,
        moral="Leaving out small cells is not enough: the other cells say what was in them.",
    )


def published(epsilon: Fraction | None = None, *, margins: bool = False) -> dict[str, Any]:
    """Return the page as the census attack reads it: exact without small cells, or all of it with
    noise.
    """
    ages = [[p["age"] for p in PEOPLE if _inside(p, group)] for group in GROUPS.values()]
    rows = [_exact_row(a) for a in ages] if epsilon is None else _noisy_rows(ages, epsilon, margins)
    return {
        "domain": DOMAIN,
        "rules": RULES,
        "statistics": [
            {"group": group, **row} for group, row in zip(GROUPS.values(), rows, strict=True)
        ],
    }


def _exact_row(ages: list[int]) -> dict[str, Any]:
    if len(ages) < THRESHOLD:
        return {"suppressed": True}
    return {
        "count": len(ages),
        "mean": round(sum(ages) / len(ages), 1),
        "median": float(np.median(ages)),
    }


def _noisy_rows(ages: list[list[int]], epsilon: Fraction, margins: bool) -> list[dict[str, Any]]:
    """Spend half of epsilon on the counts and half on the sums of years; a person is in at most
    seven groups.
    """
    touched = max(
        sum(_inside(person, group) for group in GROUPS.values()) for person in _everybody()
    )
    oldest = DOMAIN["age"][1]
    counts = noisy([len(a) for a in ages], epsilon=epsilon / 2, l1=touched)
    sums = noisy([sum(a) for a in ages], epsilon=epsilon / 2, l1=touched * oldest)
    if not margins:
        return [{"count": c, "sum": s} for c, s in zip(counts.tolist(), sums.tolist(), strict=True)]
    half = DiscreteLaplace(scale=2 * touched / epsilon, l1=Fraction(touched)).margin(
        Fraction(99, 100)
    )
    return [{"count": [max(c - half, 0), min(max(c + half, 0), MOST)]} for c in counts.tolist()]


def _everybody() -> list[dict[str, Any]]:
    first, last = DOMAIN["age"]
    return [
        {"age": age, "sex": sex, "race": race, "marital": marital}
        for age in range(first, last + 1)
        for sex in DOMAIN["sex"]
        for race in DOMAIN["race"]
        for marital in DOMAIN["marital"]
    ]


def _attack(epsilon: Fraction, repeats: int) -> Rate:
    """Count the people of the seven who are in the likeliest world behind a noisy page."""
    truth = Counter(tuple(person.values()) for person in PEOPLE)
    hits = 0
    for _ in range(repeats):
        page = published(epsilon)
        bounds = [
            {"group": row["group"], "count": [0, MOST], "sum": [0, 125 * MOST]}
            for row in page["statistics"]
        ]
        tables = read({**page, "statistics": bounds})
        told = [
            (s, row["count"], 125)
            for s, row in zip(tables.statistics[::2], page["statistics"], strict=True)
        ]
        told += [
            (s, row["sum"], 1)
            for s, row in zip(tables.statistics[1::2], page["statistics"], strict=True)
        ]
        world = likeliest(tables, told, seconds=1)  # type: ignore[arg-type]
        guess = world.people(Frame.of(tables)) if world else []
        hits += sum((Counter(tuple(person.values()) for person in guess) & truth).values())
    return Rate(hits=hits, n=len(PEOPLE) * repeats)


def _page() -> Exhibit:
    rows = []
    for name, row in zip(GROUPS, published()["statistics"], strict=True):
        numbers = ("count", "median", "mean")
        rows.append((name, *(f"{row[key]:g}" if key in row else "D" for key in numbers)))
    return Exhibit(columns=("group", "count", "median age", "mean age"), rows=tuple(rows))


def _inside(person: dict[str, Any], group: dict[str, Any]) -> bool:
    return all(
        value[0] <= person[name] <= value[1] if isinstance(value, list) else person[name] == value
        for name, value in group.items()
    )
