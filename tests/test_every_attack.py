"""Every attack: it succeeds on the exact release, it fails against noise at a stated ε, and it says
so in one shape.

ε = 1/10 throughout. Where one person's bit is at stake no attack may beat the ceiling of S20 at any
ε of its lesson. Rates are compared with Hoeffding's bound, so that a true claim fails once in 1e9
runs.
"""

from __future__ import annotations

import math
from fractions import Fraction
from io import StringIO

import pytest
from rich.console import Console

from discreet.attacks import ATTACKS
from discreet.attacks.experiment.finding import ceiling
from discreet.attacks.lessons import LESSONS
from discreet.attacks.lessons.page import html
from discreet.attacks.lessons.plot import CEILING
from discreet.attacks.lessons.terminal import show

STATED = Fraction(1, 10)
QUICK = {
    "link": {"people": 3000, "trials": 2000},
    "scoreboard": {"users": 800, "films": 500, "targets": 60, "trials": 2000},
    "difference": {"people": 2000, "trials": 2000},
    "reconstruct": {"people": 60, "repeats": 10},
    "census": {"repeats": 3},
    "membership": {"attributes": 600, "repeats": 5},
    "single-out": {"people": 1000, "trials": 150},
    "linkability": {"people": 1000, "trials": 200},
    "inference": {
        "people": 1000,
        "trials": 1000,
    },  # all: who guesses "not ill" is right about 56 of a hundred
}


def sure(n: int) -> float:
    """A rate over n trials exceeds its expectation by more than this once in 1e9."""
    return math.sqrt(math.log(1e9) / (2 * n))


@pytest.fixture(scope="module", params=list(LESSONS))
def lesson(request):
    return LESSONS[request.param](**QUICK[request.param])


def test_every_attack_has_a_lesson_and_a_case() -> None:
    names = {attack.__name__.replace("_", "-") for attack in ATTACKS}
    assert names == set(LESSONS) == set(QUICK)


def test_it_succeeds_without_noise(lesson) -> None:
    """Far above chance, so far that no luck explains it."""
    exact = lesson.exact
    assert exact.interval[0] > exact.chance
    if lesson.bounded:
        assert exact.success > ceiling(float(STATED)) + 0.2
    else:
        assert exact.success > exact.chance + 0.1


def test_it_fails_with_noise(lesson) -> None:
    noisy = next(point.finding for point in lesson.points if point.epsilon == STATED)
    if lesson.bounded:
        assert noisy.success <= ceiling(float(STATED)) + sure(noisy.n)
    else:
        assert noisy.success <= 0.6 * lesson.exact.success


def test_no_attack_beats_the_ceiling(lesson) -> None:
    for point in lesson.points if lesson.bounded else ():
        assert point.finding.success <= ceiling(float(point.epsilon)) + sure(point.finding.n)


def test_it_reports_in_one_shape(lesson) -> None:
    found = lesson.as_json()
    assert {"attack", "success", "chance", "interval", "n"} <= found.keys()
    low, high = found["interval"]
    assert 0 <= low <= found["success"] <= high <= 1
    assert 0 <= found["chance"] <= 1
    assert found["n"] > 0
    assert [point["epsilon"] for point in found["with_noise"]] == sorted(
        p["epsilon"] for p in found["with_noise"]
    )


def test_the_story_is_told_on_a_terminal_and_on_a_page(lesson) -> None:
    console = Console(width=80, record=True, file=StringIO())
    show(lesson, console)
    told = console.export_text()
    assert lesson.title in told
    assert "●" in told
    assert max(map(len, told.splitlines())) <= 100
    page = html(lesson)
    assert page.count("<title>ε = ") == len(lesson.points)
    assert "<script" not in page
    assert "http:" not in page
    assert "https:" not in page
    assert (CEILING in page) == lesson.bounded
    assert all(step.heading in page for step in lesson.steps)
