"""The respondent's memory: a lifetime's ε is counted there, durably, and cannot be raised from outside."""

from __future__ import annotations

import json
import threading
from fractions import Fraction
from pathlib import Path

import pytest
from small_survey import WEEKEND, weekend

from discreet.errors import BudgetExceeded, UsageError
from discreet.local.device import Device
from discreet.local.survey import from_text

REPEATED = """\
survey: daily
epsilon: 2
questions:
  mood: {ask: "Mood?", values: [low, middle, high], epsilon: 1, repeats: {instant: 2, changes: 2}}
"""


def test_an_answer_is_drawn_once_and_costs_once(tmp_path: Path) -> None:
    survey, path = weekend(), tmp_path / "answered.json"
    question = survey.question("browser")
    first = Device(path).answer(survey, question, "safari")
    assert first.cost == Fraction(1, 2)
    assert first.draws
    for other in ("safari", "chrome"):
        again = Device(path).answer(survey, question, other)
        assert (again.report, again.cost, again.draws) == (first.report, 0, ())
    assert Device(path).spent(survey) == Fraction(1, 2)


def test_an_answer_outside_the_domain_costs_nothing(tmp_path: Path) -> None:
    survey, device = weekend(), Device(tmp_path / "answered.json")
    with pytest.raises(UsageError, match="answer one of firefox"):
        device.answer(survey, survey.question("browser"), "lynx")
    assert Device(tmp_path / "answered.json").spent(survey) == 0


def test_a_new_version_is_a_new_question_and_the_lifetime_goes_on(tmp_path: Path) -> None:
    """Changing a word of the survey must not buy a fresh lifetime."""
    path = tmp_path / "answered.json"
    versions = [from_text(WEEKEND.replace("Which browser?", f"Which browser? ({i})"), file="w") for i in range(5)]
    for survey in versions[:4]:
        Device(path).answer(survey, survey.question("browser"), "safari")
    assert Device(path).spent(versions[4]) == 2
    with pytest.raises(BudgetExceeded, match=r"in a lifetime\. Nothing is sent"):
        Device(path).answer(versions[4], versions[4].question("browser"), "safari")


def test_a_survey_cannot_raise_its_lifetime_afterwards(tmp_path: Path) -> None:
    path, before = tmp_path / "answered.json", weekend()
    Device(path).answer(before, before.question("drank"), "no")
    raised = from_text(WEEKEND.replace("epsilon: 2", "epsilon: 50"), file="w")
    assert Device(path).cap(raised) == 2
    Device(path).answer(raised, raised.question("browser"), "safari")
    with pytest.raises(BudgetExceeded):
        Device(path).answer(raised, raised.question("drank"), "no")


def test_a_lost_memory_sends_nothing(tmp_path: Path) -> None:
    path, survey = tmp_path / "answered.json", weekend()
    Device(path).answer(survey, survey.question("drank"), "no")
    path.write_text(path.read_text()[:-20])
    with pytest.raises(UsageError, match=r"cannot be read\. Nothing is sent"):
        Device(path)


def memory(**changes: object) -> str:
    record = {"cost": "1", "reports": {"drank": "1"}, "remembered": {}}
    mine = {"respondent": "0" * 32, "epsilon": "2", "answered": {"drank x": record | changes.pop("record", {})}}  # type: ignore[operator]
    return json.dumps({"weekend-2026": mine | changes})


def test_a_memory_of_the_right_shape_is_read(tmp_path: Path) -> None:
    (tmp_path / "answered.json").write_text(memory())
    assert Device(tmp_path / "answered.json").spent(weekend()) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        "[]",
        "null",
        "3",
        '"x"',
        "[" * 100_000,
        '{"weekend-2026": []}',
        '{"weekend-2026": {"respondent": 5}}',
        memory(respondent=5),
        memory(respondent="zz"),
        memory(epsilon="abc"),
        memory(epsilon="1/0"),
        memory(epsilon="1e400000000"),
        memory(answered=[]),
        memory(answered={"drank": 1}),
        memory(record={"cost": "-100"}),
        memory(record={"reports": {"drank": "-1"}}),
        memory(record={"remembered": {"0": None}}),
    ],
)
def test_a_memory_of_another_shape_sends_nothing(tmp_path: Path, wrong: str) -> None:
    """A negative cost would buy answers beyond the lifetime."""
    path = tmp_path / "answered.json"
    path.write_text(wrong)
    with pytest.raises(UsageError, match=r"the memory of your answers, cannot be read\. Nothing is sent"):
        Device(path)
    assert path.read_text() == wrong


def test_a_memory_that_cannot_be_written_sends_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    survey, device = weekend(), Device(tmp_path / "answered.json")
    device.path = tmp_path / "file" / "answered.json"
    with pytest.raises(UsageError, match="Nothing is sent"):
        device.answer(survey, survey.question("drank"), "no")


def test_names_differ_between_surveys_and_stay_within_one(tmp_path: Path) -> None:
    path, survey, other = tmp_path / "answered.json", weekend(), from_text(REPEATED, file="d")
    Device(path).answer(survey, survey.question("drank"), "no")
    Device(path).answer(other, other.question("mood"), "low", round="1")
    assert Device(path).respondent(survey) == Device(path).respondent(survey)
    assert Device(path).respondent(survey) != Device(path).respondent(other)
    assert path.stat().st_mode & 0o077 == 0


def test_programs_that_answer_at_once_draw_once(tmp_path: Path) -> None:
    survey, path = weekend(), tmp_path / "answered.json"
    reports: list[int] = []

    def answer() -> None:
        reports.append(Device(path).answer(survey, survey.question("hours"), "8").report)

    threads = [threading.Thread(target=answer) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reports) == 8
    assert len(set(reports)) == 1


def test_a_repeated_question_keeps_one_permanent_answer_for_each_value(tmp_path: Path) -> None:
    survey, path = from_text(REPEATED, file="d"), tmp_path / "answered.json"
    mood = survey.question("mood")
    for day in range(30):
        Device(path).answer(survey, mood, ("low", "high")[day % 2], round=f"day-{day}")
    remembered = next(iter(json.loads(path.read_text())["daily"]["answered"].values()))["remembered"]
    assert set(remembered) == {"0", "2"}
    assert Device(path).spent(survey) == 2  # changes * epsilon, from the first answer on
    with pytest.raises(BudgetExceeded, match="2 different values"):
        Device(path).answer(survey, mood, "middle", round="day-31")
    with pytest.raises(UsageError, match="A round is named"):
        Device(path).answer(survey, mood, "low", round="a b")
