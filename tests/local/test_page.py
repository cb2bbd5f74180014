"""The respondent's page in Chromium: what it draws, what leaves it, and what the collector makes of
it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vectors
from small_survey import SURE, WEEKEND, serving, weekend

from discreet.local.collector.collector import ReportStore
from discreet.local.question import submission
from discreet.local.respondent.page import page, page_hash
from discreet.local.survey import from_text

# Remembers every random word that the page draws, in order.
WATCH = """
  window.drawn = [];
  const draw = crypto.getRandomValues.bind(crypto);
  crypto.getRandomValues = (array) => {
    draw(array);
    for (const word of new BigUint64Array(array.buffer)) window.drawn.push(word.toString(16));
    return array;
  };
"""
REPLAY = """
({survey, vectors}) => {
  const wrong = [];
  for (const vector of vectors) {
    const words = vector.words.map((word) => BigInt("0x" + word));
    const source = {bits(k) {
      let value = 0n;
      for (let i = 0; i < Math.ceil(k / 64); i++) value |= words.shift() << BigInt(64 * i);
      return value & ((1n << BigInt(k)) - 1n);
    }};
    const question = survey.questions.find((each) => each.name === vector.question);
    let report;
    if (Discreet.numbered(question)) {
      const plan = Discreet.planFor(question, source);
      const places = [];
      const reports = vector.history.map((answer) => {
        places.push(Discreet.counted(question, places, Discreet.place(question, answer)));
        return Number(Discreet.inRound(question, plan, places, source));
      });
      const same = Number(plan) === vector.plan && JSON.stringify(reports) === JSON.stringify(vector.reports);
      if (!same || words.length) wrong.push(vector);
      continue;
    }
    if (Discreet.repeats(question)) {
      const permanent = Discreet.remember(question, vector.answer, source);
      if (Number(permanent) !== vector.permanent) wrong.push(vector);
      report = Discreet.again(question, permanent, source);
    } else report = Discreet.respond(question, vector.answer, source);
    const wire = JSON.stringify(Discreet.wire(question, report));
    if (wire !== JSON.stringify(vector.report) || words.length) wrong.push(vector);
  }
  return {checked: vectors.length, wrong};
}
"""
THOUSAND = """
async (answers) => {
  const lines = answers.map((given) => {
    const respondent = Discreet.system.bits(128).toString(16).padStart(32, "0");
    const reports = {};
    for (const question of SURVEY.questions) {
      reports[question.name] = Discreet.wire(question, Discreet.respond(question, given[question.name]));
    }
    return Discreet.submission(SURVEY.fingerprint, respondent, reports);
  });
  const reply = await fetch(`${SURVEY.collector}/reports`, {method: "POST", body: lines.join("")});
  return await reply.json();
}
"""


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    path = tmp_path / "weekend.reports"
    with serving(weekend(), path) as address:
        yield address, path


@pytest.fixture
def opened(browser: Any, collector: tuple[str, Path]) -> Iterator[tuple[Any, list[Any]]]:
    """The page as the collector serves it, and the log of every request it makes."""
    context = browser.new_context()
    tab = context.new_page()
    log: list[Any] = []
    tab.on("request", lambda request: log.append(request))  # playwright needs a function in Python
    tab.add_init_script(WATCH)
    tab.goto(collector[0] + "/")
    yield tab, log
    context.close()


def answer(tab: Any) -> None:
    tab.check("input[name=drank][value=yes]")
    tab.check("input[name=browser][value=safari]")
    tab.fill("input[name=hours]", "7.5")
    tab.click("#randomize")


def test_only_randomized_bits_leave(
    opened: tuple[Any, list[Any]], collector: tuple[str, Path]
) -> None:
    tab, log = opened
    answer(tab)
    assert tab.inner_text("#status").startswith("Your answers stay here")
    # nothing has left yet
    assert [(each.method, each.url) for each in log] == [("GET", collector[0] + "/")]
    with tab.expect_response("**/reports") as reply:
        tab.click("#send")
    assert reply.value.json() == {"accepted": 3, "repeated": 0, "refused": {}}
    sent = [each for each in log if each.url != collector[0] + "/"]
    assert [(each.method, each.url) for each in sent] == [("POST", collector[0] + "/reports")]
    # What left is what the Python encoder makes of the same answers and the same words, to the
    # byte, and nothing else.
    survey = weekend()
    source = vectors.Words([int(word, 16) for word in tab.evaluate("window.drawn")])
    drawn = {
        "drank": survey.question("drank").protocol.respond("yes", source),
        "browser": survey.question("browser").protocol.respond("safari", source),
        "hours": survey.question("hours").protocol.respond("7.5", source),
    }
    respondent = f"{source.bits(128):032x}"
    assert source.left == []
    assert sent[0].post_data_buffer == submission(survey, respondent, drawn)
    names = {name.lower() for name in sent[0].all_headers()}
    assert not names & {"cookie", "referer", "authorization"}


def test_the_same_answer_is_drawn_once(opened: tuple[Any, list[Any]]) -> None:
    tab, _ = opened
    answer(tab)
    first = tab.inner_text("#bytes")
    with tab.expect_response("**/reports"):
        tab.click("#send")
    tab.reload()
    tab.check("input[name=drank][value=no]")  # even with another answer: new coins would cost twice
    tab.click("#randomize")
    assert (
        json.loads(tab.inner_text("#bytes"))["answers"]["drank"]
        == json.loads(first)["answers"]["drank"]
    )
    assert "sent before" in tab.inner_text("#drawn")
    with tab.expect_response("**/reports") as reply:
        tab.click("#send")
    assert reply.value.json() == {"accepted": 0, "repeated": 1, "refused": {}}


@pytest.mark.parametrize("wrong", ["7.3", "-1", "24.5"])
def test_an_answer_outside_the_domain_is_refused_before_a_coin(
    opened: tuple[Any, list[Any]], wrong: str
) -> None:
    tab, log = opened
    tab.fill("input[name=hours]", wrong)
    tab.click("#randomize")
    assert "not an answer" in tab.inner_text("#status")
    assert tab.is_disabled("#send")
    assert tab.evaluate("window.drawn.length") == 0
    assert len(log) == 1


def test_vectors_in_the_browser(opened: tuple[Any, list[Any]]) -> None:
    tab, _ = opened
    found = tab.evaluate(REPLAY, vectors.load())
    assert found == {"checked": len(vectors.load()["vectors"]), "wrong": []}


def test_a_saved_page_works_from_a_file(
    browser: Any, collector: tuple[str, Path], tmp_path: Path
) -> None:
    address, path = collector
    context = browser.new_context()
    tab = context.new_page()
    served = tab.goto(address + "/").body()
    assert page_hash(served) == page_hash(page(weekend(), collector=address))
    saved = tmp_path / "weekend.html"
    saved.write_bytes(served)
    tab.goto(saved.as_uri())
    answer(tab)
    with tab.expect_response("**/reports") as reply:
        tab.click("#send")
    assert reply.value.status == 200
    assert sum(ReportStore(path, weekend()).counts().values()) == 3
    context.close()


def test_the_page_may_talk_to_its_collector_alone(opened: tuple[Any, list[Any]]) -> None:
    tab, _ = opened
    blocked = tab.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', (error) => error.name)")
    assert blocked == "TypeError"
    assert "unsafe-inline" not in tab.content()


def test_a_thousand_respondents(opened: tuple[Any, list[Any]], collector: tuple[str, Path]) -> None:
    tab, _ = opened
    hours = ["6", "7.5", "8", "9"]
    answers = [
        {
            "drank": "yes" if i % 10 < 3 else "no",
            "browser": ["firefox", "chrome", "chrome", "other"][i % 4],
            "hours": hours[i % 4],
        }
        for i in range(1000)
    ]
    assert tab.evaluate(THOUSAND, answers) == {"accepted": 3000, "repeated": 0, "refused": {}}
    store = ReportStore(collector[1], weekend())
    for question in store.survey.questions:
        given = Counter(each[question.name] for each in answers)
        found = question.protocol.read(store.sums().tallies[question.name], confidence=SURE)
        assert found.n == 1000
        if found.statistic == "mean":
            truth = np.array([np.mean([float(each["hours"]) for each in answers])])
        else:
            truth = np.array([given[value] / 1000 for value in found.values])
        assert (abs(found.estimates - truth) <= found.margins).all()
    shown = tab.goto(collector[0] + "/estimate").text()
    assert shown.count("<figure>") == 2
    assert "mean; 1,000 reports" in shown


REWORDED = WEEKEND.replace("Which browser?", "Which browser do you use?")
ROUNDS = """\
survey: rounds
epsilon: 30
questions:
  mood: {ask: "Mood?", values: [low, high], epsilon: 1, repeats: {rounds: 12, changes: 2}}
  pain: {ask: "Pain?", values: [low, high], epsilon: 1, repeats: {instant: 2, changes: 1}}
  work: {ask: "Work?", values: [low, high], epsilon: 1, repeats: {instant: 2, changes: 2, rounds: 2}}
"""


def opened_from_file(browser: Any, folder: Path, *texts: str) -> Iterator[Any]:
    """Saved pages of several surveys, which share what the browser remembers, one after the
    other.
    """
    context = browser.new_context()
    tab = context.new_page()
    for number, text in enumerate(texts):
        saved = folder / f"{number}.html"
        saved.write_bytes(page(from_text(text, file="p"), collector="http://127.0.0.1:9"))
        tab.goto(saved.as_uri())
        yield tab
    context.close()


def test_two_surveys_of_one_name_have_two_names_for_a_person_and_one_limit(
    browser: Any, tmp_path: Path
) -> None:
    respondents = []
    for tab in opened_from_file(browser, tmp_path, WEEKEND, REWORDED):
        tab.check("input[name=browser][value=safari]")
        tab.click("#randomize")
        respondents.append(json.loads(tab.inner_text("#bytes"))["respondent"])
    assert len(set(respondents)) == 2
    texts = [WEEKEND.replace("weekend-2026", f"other-{number}") for number in range(3)]
    spent = []
    for tab in opened_from_file(browser, tmp_path, *texts):
        tab.fill("#limit", "1")
        tab.click("#set-limit")
        tab.check("input[name=browser][value=safari]")
        tab.click("#randomize")
        spent.append(tab.inner_text("#status"))
    assert [each.startswith("Your answers stay here") for each in spent] == [True, True, False]
    assert "more than you allow all surveys together" in spent[2]


def test_questions_that_are_asked_again_in_the_browser(browser: Any, tmp_path: Path) -> None:
    survey = from_text(ROUNDS, file="p")
    for tab in opened_from_file(browser, tmp_path, ROUNDS):
        assert (
            "All your reports together cost ε = 1, whether and whenever your answer changes"
            in tab.inner_text("form")
        )
        assert "cost ε = 1: all are drawn from your first answer" in tab.inner_text("form")
        assert "ε = 1 if your answer never changes, and up to 3.24 if it does" in tab.inner_text(
            "form"
        )
        tab.check("input[name=mood][value=low]")
        tab.click("#randomize")
        assert "Say which round this is, 1 to 12" in tab.inner_text("#status")
        tab.fill("input[name=round-mood]", "3")
        tab.check("input[name=pain][value=high]")
        tab.click("#randomize")
        sent = json.loads(tab.inner_text("#bytes"))["answers"]
        assert [key for key in sent if key.startswith("mood")] == ["mood@1", "mood@2", "mood@3"]
        assert len({sent[f"mood@{number}"] // 2 for number in (1, 2, 3)}) == 1
        assert len(sent) == 4
        store = ReportStore(tmp_path / "r", survey)
        assert store.accept([tab.inner_text("#bytes").encode()]).accepted == 4
        tab.fill("input[name=round-mood]", "2")
        tab.click("#randomize")
        assert json.loads(tab.inner_text("#bytes"))["answers"]["mood@2"] == sent["mood@2"]


def test_what_the_first_pages_remembered_is_not_forgotten(browser: Any, tmp_path: Path) -> None:
    survey = weekend()
    record = {"cost": "1", "reports": {"drank": "1"}, "remembered": {}}
    mine = {
        "epsilon": "2",
        "respondent": "ab" * 16,
        "answered": {f"drank {survey.fingerprint}": record},
    }
    for tab in opened_from_file(browser, tmp_path, WEEKEND):
        tab.evaluate(
            "(mine) => localStorage.setItem('discreet:weekend-2026', JSON.stringify(mine))", mine
        )
        tab.reload()
        assert "You have given this survey ε = 1 of the 2" in tab.inner_text("#spent")
        tab.check("input[name=drank][value=no]")
        tab.click("#randomize")
        sent = json.loads(tab.inner_text("#bytes"))
        assert (sent["respondent"], sent["answers"]) == ("ab" * 16, {"drank": 1})
