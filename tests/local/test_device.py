"""The respondent's memory: a lifetime's ε is counted there, durably, and cannot be raised from
outside.
"""

from __future__ import annotations

import json
import threading
from fractions import Fraction
from pathlib import Path

import pytest
from small_survey import WEEKEND, weekend

from discreet.errors import BudgetExceeded, UsageError
from discreet.local.question import Survey
from discreet.local.respondent.device import Device
from discreet.local.respondent.terminal import greeting
from discreet.local.survey import from_text

REPEATED = """\
survey: daily
epsilon: 2
questions:
  mood: {ask: "Mood?", values: [low, middle, high], epsilon: 1, repeats: {instant: 2, changes: 1}}
"""
CHANGING = """\
survey: changing
epsilon: 9
questions:
  mood: {ask: "Mood?", values: [low, middle, high], epsilon: 1, repeats: {instant: 2, changes: 2, rounds: 6}}
"""
ROUNDS = """\
survey: rounds
epsilon: 1
questions:
  mood: {ask: "Mood?", values: [low, middle, high], epsilon: 1, repeats: {rounds: 12, changes: 2}}
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
    versions = [
        from_text(WEEKEND.replace("Which browser?", f"Which browser? ({i})"), file="w")
        for i in range(5)
    ]
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
    record = {"cost": "1", "reports": {"drank": "1"}, "remembered": {}} | changes.pop("record", {})  # type: ignore[operator]
    mine = {
        "name": "weekend-2026",
        "respondent": "0" * 32,
        "answered": {"drank": record},
    } | changes.pop("mine", {})  # type: ignore[operator]
    whole = {"format": 2, "limit": "10", "caps": {"weekend-2026": "2"}, "surveys": {"f" * 32: mine}}
    return json.dumps(whole | changes)


def test_a_memory_of_the_right_shape_is_read(tmp_path: Path) -> None:
    (tmp_path / "answered.json").write_text(memory())
    assert Device(tmp_path / "answered.json").spent(weekend()) == 1


def test_a_memory_of_the_first_shape_is_not_forgotten(tmp_path: Path) -> None:
    """By the name of the survey: respondent, ε, and records by question and version."""
    path, survey = tmp_path / "answered.json", weekend()
    record = {"cost": "1", "reports": {"drank": "1"}, "remembered": {}}
    other = {"respondent": "1" * 32, "epsilon": "50", "answered": {"q x": record | {"cost": "30"}}}
    mine = {
        "respondent": "0" * 32,
        "epsilon": "2",
        "answered": {f"drank {survey.fingerprint}": record},
    }
    path.write_text(json.dumps({"weekend-2026": mine, "other": other}))
    device = Device(path)
    assert device.answer(survey, survey.question("drank"), "no").report == 1  # sent before
    assert (device.spent(survey), device.given, device.limit) == (1, 31, 31)
    assert device.respondent(survey) == "0" * 32
    assert device.cap(from_text(WEEKEND.replace("epsilon: 2", "epsilon: 50"), file="w")) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        "[]",
        "null",
        "3",
        '"x"',
        "[" * 100_000,
        '{"format": 2}',
        '{"weekend-2026": []}',
        '{"weekend-2026": {"respondent": 5}}',
        memory(limit="-1"),
        memory(limit=None),
        memory(caps={"weekend-2026": "1/0"}),
        memory(caps=[]),
        memory(surveys=[]),
        memory(mine={"respondent": 5}),
        memory(mine={"respondent": "zz"}),
        memory(mine={"name": "\x1b[2J"}),
        memory(mine={"answered": []}),
        memory(mine={"answered": {"drank": 1}}),
        memory(record={"cost": "-100"}),
        memory(record={"cost": "1e400000000"}),
        memory(record={"reports": {"drank": "-1"}}),
        memory(record={"remembered": {"0": None}}),
    ],
)
def test_a_memory_of_another_shape_sends_nothing(tmp_path: Path, wrong: str) -> None:
    """A negative cost would buy answers beyond the lifetime."""
    path = tmp_path / "answered.json"
    path.write_text(wrong)
    with pytest.raises(
        UsageError, match=r"the memory of your answers, cannot be read\. Nothing is sent"
    ):
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
    same_name = from_text(WEEKEND.replace("Which browser?", "Which browser do you use?"), file="w")
    Device(path).answer(same_name, same_name.question("browser"), "safari")
    assert Device(path).respondent(survey) != Device(path).respondent(same_name)
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


def renamed(number: int) -> Survey:
    """The browser's question under another name, in other words, in another survey."""
    text = WEEKEND.replace("weekend-2026", f"other-{number}").replace("Which", f"{number}: which")
    return from_text(text.replace("  browser:", f"  q{number}:"), file="w")


def test_a_renamed_survey_gets_no_fresh_lifetime(tmp_path: Path) -> None:
    """Whoever renames or rewords draws on the same limit, which the person sets."""
    path = tmp_path / "answered.json"
    for number in range(20):
        survey = renamed(number)
        Device(path).answer(survey, survey.question(f"q{number}"), "safari")
    assert Device(path).given == 10
    survey = renamed(20)
    with pytest.raises(
        BudgetExceeded, match=r"of the 10 that you allow in a lifetime\. Nothing is sent"
    ):
        Device(path).answer(survey, survey.question("q20"), "safari")
    Device(path).set_limit("10.5")
    Device(path).answer(survey, survey.question("q20"), "safari")
    with pytest.raises(UsageError, match="limit must be"):
        Device(path).set_limit("-1")


def test_a_limit_below_what_was_given_stops_everything_that_costs(tmp_path: Path) -> None:
    path, survey = tmp_path / "answered.json", weekend()
    first = Device(path).answer(survey, survey.question("browser"), "safari")
    Device(path).set_limit("0.1")
    # costs nothing
    assert Device(path).answer(survey, survey.question("browser"), "other").report == first.report
    with pytest.raises(BudgetExceeded, match="you allow"):
        Device(path).answer(survey, survey.question("hours"), "8")


def test_an_answer_that_may_not_change_is_reported_from_the_first(tmp_path: Path) -> None:
    survey, path = from_text(REPEATED, file="d"), tmp_path / "answered.json"
    mood = survey.question("mood")
    held = []
    for day in range(30):
        held.append(
            Device(path).answer(survey, mood, ("low", "high")[day % 2], round=f"day-{day}").held
        )
    remembered = next(iter(json.loads(path.read_text())["surveys"].values()))["answered"]["mood"][
        "remembered"
    ]
    assert set(remembered) == {"0", "now"}
    assert held == [bool(day % 2) for day in range(30)]
    assert Device(path).spent(survey) == 1
    with pytest.raises(UsageError, match="A round is named"):
        Device(path).answer(survey, mood, "low", round="a b")


def test_one_different_answer_too_many_is_not_refused(tmp_path: Path) -> None:
    """Silence would tell that the answer is a new one. The report is drawn from the last one that
    counts.
    """
    survey, path = from_text(CHANGING, file="d"), tmp_path / "answered.json"
    mood = survey.question("mood")
    given = ["low", "high", "low", "middle", "high", "middle"]
    held = [
        Device(path).answer(survey, mood, answer, round=f"{day}").held
        for day, answer in enumerate(given)
    ]
    assert held == [False, False, False, True, False, True]
    for answer in ("low", "middle"):
        with pytest.raises(BudgetExceeded, match="in all of its 6 rounds"):
            Device(path).answer(survey, mood, answer, round="7")
    assert Device(path).answer(survey, mood, "low", round="3").draws == ()  # sent again


def test_whole_histories_are_answered_by_one_plan(tmp_path: Path) -> None:
    survey, path = from_text(ROUNDS, file="d"), tmp_path / "answered.json"
    mood = survey.question("mood")
    first = Device(path).answer(survey, mood, "low", round="3")
    assert list(first.earlier) == ["mood@1", "mood@2"]  # left out: as the first answer
    later = Device(path).answer(survey, mood, "high", round="5")
    assert list(later.earlier) == ["mood@4"]
    assert (first.cost, later.cost, Device(path).given) == (1, 0, 1)
    assert (
        len(
            {
                report // 2
                for sent in (first, later)
                for report in (sent.report, *sent.earlier.values())
            }
        )
        == 1
    )
    remembered = next(iter(json.loads(path.read_text())["surveys"].values()))["answered"]["mood"][
        "remembered"
    ]
    assert [remembered[f"{number}"] for number in range(1, 6)] == ["0", "0", "0", "0", "2"]
    again = Device(path).answer(survey, mood, "middle", round="4")
    assert (again.report, again.draws) == (later.earlier["mood@4"], ())
    for wrong in ("0", "13", "01", "", "day-1"):
        with pytest.raises(UsageError, match="has rounds 1 to 12"):
            Device(path).answer(survey, mood, "low", round=wrong)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            REPEATED,
            "All your reports together cost ε = 1, because all are drawn from your first answer",
        ),
        (
            CHANGING,
            "cost ε = 1 if your answer never changes, and up to 7.717 if it does, because the reports show when",
        ),
        (
            ROUNDS,
            "asked in 12 rounds. All your reports together cost ε = 1, whether and whenever your answer changes",
        ),
    ],
)
def test_a_respondent_is_told_what_a_lifetime_costs_before_answering(
    tmp_path: Path, text: str, sentence: str
) -> None:
    survey = from_text(text, file="d")
    told = list(greeting(survey, Device(tmp_path / "answered.json")))
    assert any(sentence in line for line in told), told
    assert any(
        "All surveys together have had ε = 0 of the 10 that you allow" in line for line in told
    )
