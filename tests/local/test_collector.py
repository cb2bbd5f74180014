"""The store: each report once, wrong ones counted and dropped, sums that add up in any order."""

from __future__ import annotations

import itertools
import json
import sqlite3
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_survey import SURE, WEEKEND, line, person, weekend
from vectors import survey as every_protocol

from discreet.errors import UsageError
from discreet.local.collector import collector
from discreet.local.collector.chart import with_margin
from discreet.local.collector.collector import REASONS, ReportStore, sums_from_json
from discreet.local.question import submission
from discreet.local.survey import from_text

UNARY = """\
survey: apps
epsilon: 2
questions:
  apps: {ask: "Which app?", values: [%s], protocol: optimized_unary, epsilon: 1}
""" % ", ".join(f"a{i}" for i in range(200))  # noqa: UP031  (braces of YAML)


def test_a_report_is_counted_once(tmp_path: Path) -> None:
    store, sent = (
        ReportStore(tmp_path / "r", weekend()),
        line(weekend(), {"drank": "yes", "hours": "8"}),
    )
    assert store.accept([sent]).as_json() == {"accepted": 2, "repeated": 0, "refused": {}}
    assert store.accept([sent, sent]).as_json() == {"accepted": 0, "repeated": 4, "refused": {}}
    assert ReportStore(tmp_path / "r", weekend()).sums().tallies["drank"].n == 1


def test_a_second_report_of_a_respondent_is_refused(tmp_path: Path) -> None:
    store, survey, name = ReportStore(tmp_path / "r", weekend()), weekend(), person()
    assert store.accept([submission(survey, name, {"drank": 0})]).accepted == 1
    assert store.accept([submission(survey, name, {"drank": 1})]).refused == {"second_report": 1}
    assert store.sums().tallies["drank"].counts.tolist() == [1, 0]


def wrong_lines() -> dict[str, bytes]:
    survey = weekend()
    other = from_text(WEEKEND.replace("0.4", "0.3"), file="w")
    good = json.loads(submission(survey, person(), {"drank": 1}))

    def changed(**fields: Any) -> bytes:
        return json.dumps({**good, **fields}).encode()

    return {
        "not JSON": b"hello",
        "a number": b"7",
        "a list": b"[]",
        "deep": b"[" * 100_000,
        "no respondent": json.dumps({"survey": good["survey"], "answers": {}}).encode(),
        "a short name": changed(respondent="abcd"),
        "a name that is not hexadecimal": changed(respondent="z" * 32),
        "a name that is a number": changed(respondent=7),
        "one field more": changed(comment="me"),
        "answers in a list": changed(answers=[1]),
        "not UTF-8": b'{"survey": "\xff"}',
        "another version": line(other, {"drank": "no"}),
        "no version": changed(survey=None),
        "an unknown question": changed(answers={"age": 1}),
        "a report too large": changed(answers={"drank": 2}),
        "a negative report": changed(answers={"drank": -1}),
        "a report in words": changed(answers={"drank": "yes"}),
        "a report that is true": changed(answers={"drank": True}),
        "a fraction": changed(answers={"drank": 0.5}),
        "a round where there is none": changed(answers={"drank@1": 1}),
        "an enormous number": changed(answers={"drank": 10**400}),
    }


@pytest.mark.parametrize("sent", wrong_lines().values(), ids=wrong_lines().keys())
def test_what_is_wrong_is_counted_and_dropped(tmp_path: Path, sent: bytes) -> None:
    store = ReportStore(tmp_path / "r", weekend())
    receipt = store.accept([sent, line(weekend(), {"drank": "no"})])
    assert receipt.accepted == 1
    assert sum(receipt.refused.values()) == 1
    assert set(receipt.refused) <= set(REASONS)
    assert store.refused() == receipt.refused
    assert store.sums().tallies["drank"].n == 1


def test_a_report_that_votes_for_everything_is_refused(tmp_path: Path) -> None:
    survey = from_text(UNARY, file="a")
    store = ReportStore(tmp_path / "r", survey)
    everything = submission(survey, person(), {"apps": (1 << 200) - 1})
    nothing = submission(survey, person(), {"apps": 0})
    honest = [line(survey, {"apps": "a7"}) for _ in range(200)]
    assert store.accept([everything, nothing]).refused == {"implausible": 2}
    assert store.accept(honest).accepted == 200


REPEATED = """\
survey: daily
epsilon: 30
questions:
  mood: {ask: "Mood?", values: [low, high], epsilon: 1, repeats: {instant: 2, changes: 1}}
"""


def test_a_respondent_cannot_invent_rounds_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "MOST_ROUNDS", 10)
    survey, one = from_text(REPEATED, file="d"), person()
    store = ReportStore(tmp_path / "r", survey)
    assert store.accept([submission(survey, one, {"mood@a": 1, "mood@b": 1})]).accepted == 2
    many = submission(survey, one, {f"mood@{i}": 1 for i in range(40)})
    assert store.accept([many]).as_json() == {
        "accepted": 8,
        "repeated": 0,
        "refused": {"too_many_rounds": 32},
    }
    assert store.accept([many]).as_json() == {
        "accepted": 0,
        "repeated": 8,
        "refused": {"too_many_rounds": 32},
    }
    assert store.accept([submission(survey, one, {"mood@a": 0})]).refused == {"second_report": 1}
    assert store.accept([submission(survey, person(), {"mood@39": 1})]).accepted == 1


def test_invented_rounds_do_not_hide_those_that_people_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "MOST_ROUNDS", 10)
    survey = from_text(REPEATED, file="d")
    store = ReportStore(tmp_path / "r", survey)
    store.accept(
        [submission(survey, person(), {f"mood@{i}-{j}": 1 for j in range(5)}) for i in range(8)]
    )
    store.accept([submission(survey, person(), {"mood@real": 1}) for _ in range(3)])
    sums, told = store.examined()
    assert len(sums.tallies) == len(store.counts()) == 10
    assert sums.tallies["mood@real"].n == store.counts()["mood@real"] == 3
    assert ["31 more rounds of mood have fewer reports and are left out"] in told.values()


def test_many_rounds_are_read_in_one_pass(tmp_path: Path) -> None:
    """Each of 4,000 rounds took a pass over all reports: 40,000 made-up rounds held the estimate up
    for minutes.
    """
    survey = from_text(REPEATED, file="d")
    store = ReportStore(tmp_path / "r", survey)
    store.accept(
        [submission(survey, person(), {f"mood@{i}": i % 2 for i in range(50)}) for _ in range(4)]
    )
    asked: list[str] = []
    store._db.set_trace_callback(asked.append)
    sums = store.sums()
    assert {key: (tally.n, tally.counts.tolist()) for key, tally in sums.tallies.items()} == {
        f"mood@{i}": (4, [0, 4] if i % 2 else [4, 0]) for i in range(50)
    }
    assert len(asked) < 10


def test_a_number_that_no_answer_sends_is_refused(tmp_path: Path) -> None:
    """At ε = 0.4 the default for numbers uses Duchi's two reports only."""
    survey = weekend()
    store, hours = ReportStore(tmp_path / "r", survey), survey.question("hours").protocol
    none = [
        submission(survey, person(), {"hours": report}) for report in (0, hours.piecewise.size - 1)
    ]
    assert store.accept(none).refused == {"implausible": 2}
    assert store.accept([line(survey, {"hours": "8"}) for _ in range(50)]).accepted == 50


def test_a_store_belongs_to_one_version(tmp_path: Path) -> None:
    ReportStore(tmp_path / "r", weekend()).close()
    with pytest.raises(UsageError, match="another version"):
        ReportStore(tmp_path / "r", from_text(WEEKEND.replace("0.4", "0.3"), file="w"))
    (tmp_path / "text").write_text(
        "this is not a database, and long enough not to be taken for one" * 20
    )
    with pytest.raises(UsageError, match="not a store"):
        ReportStore(tmp_path / "text", weekend())


def test_rows_are_only_added_and_say_nothing_of_their_order(tmp_path: Path) -> None:
    store = ReportStore(tmp_path / "r", weekend())
    store.accept([line(weekend(), {"drank": "no"}) for _ in range(50)])
    for statement in ("DELETE FROM reports", "UPDATE reports SET report = 1"):
        with pytest.raises(sqlite3.IntegrityError, match="only added"):
            store._db.execute(statement)
    names = [name for (name,) in store._db.execute("SELECT respondent FROM reports")]
    assert names == sorted(names)
    with pytest.raises(sqlite3.OperationalError, match="no such column: rowid"):
        store._db.execute("SELECT rowid FROM reports")


# Shards
# ------------------------------------------------------------------------------------------------------------


def everybody(n: int) -> list[bytes]:
    """Submissions to every kind of question."""
    survey, lines = every_protocol(), []
    for i in range(n):
        answers: dict[str, Any] = {}
        for question in survey.questions:
            if question.kind == "values":
                answers[question.key("1")] = question.protocol.domain[
                    i % len(question.protocol.domain)
                ]
            elif question.kind == "number":
                answers[question.name] = "1"
            elif question.protocol.items > 1:
                answers[question.name] = ["one", "two"]
            else:
                answers[question.name] = "hello"
        reports = {
            key: survey.question(key.partition("@")[0]).protocol.respond(value)
            for key, value in answers.items()
        }
        lines.append(submission(survey, person(), reports))
    return lines


def same(one: Any, two: Any) -> bool:
    return json.dumps(one.as_json()) == json.dumps(two.as_json())


def test_partial_sums_of_many_collectors_merge_to_the_same_estimate(tmp_path: Path) -> None:
    """In any order and any grouping, and also through JSON."""
    survey, lines = every_protocol(), everybody(120)
    whole = ReportStore(tmp_path / "whole", survey)
    whole.accept(lines)
    shards = []
    for number in range(4):
        shard = ReportStore(tmp_path / f"shard{number}", survey)
        shard.accept(lines[number::4])
        shards.append(shard.sums())
    for order in itertools.permutations(shards):
        assert same(reduce(add, order), whole.sums())
    a, b, c, d = shards
    assert same((a + b) + (c + d), a + (b + (c + d)))
    written = [sums_from_json(survey, json.loads(json.dumps(shard.as_json()))) for shard in shards]
    assert json.dumps(reduce(add, written).as_estimate_json()) == json.dumps(
        whole.sums().as_estimate_json()
    )


def test_an_empty_shard_changes_nothing(tmp_path: Path) -> None:
    survey = every_protocol()
    whole, empty = ReportStore(tmp_path / "whole", survey), ReportStore(tmp_path / "empty", survey)
    whole.accept(everybody(10))
    assert same(whole.sums() + empty.sums(), whole.sums())


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"survey": "x", "tallies": {}, "refused": {}},
        {"tallies": {"drank": {"n": 1, "counts": [1]}}, "refused": {}},
        {"tallies": {"drank": {"n": 1, "counts": [1, "2"]}}, "refused": {}},
        {"tallies": {"age": {"n": 1, "counts": [1, 2]}}, "refused": {}},
        {"tallies": 7, "refused": {}},
    ],
)
def test_sums_that_are_not_of_this_survey_are_refused(wrong: dict[str, Any]) -> None:
    parts = {"survey": weekend().fingerprint, **wrong} if wrong else wrong
    with pytest.raises(UsageError):
        sums_from_json(weekend(), parts)


def test_estimates_are_right(tmp_path: Path) -> None:
    survey, store = weekend(), ReportStore(tmp_path / "r", weekend())
    browsers = ["firefox", "chrome", "chrome", "chrome", "other"]
    store.accept([line(survey, {"browser": browsers[i % 5], "drank": "yes"}) for i in range(3000)])
    question = survey.question("browser")
    found = question.protocol.read(store.sums().tallies["browser"], confidence=SURE)
    assert (abs(found.estimates - np.array([0.2, 0.6, 0, 0.2])) <= found.margins).all()
    shown = store.sums().as_estimate_json()
    assert shown["hours"]["n"] == 0
    assert {"values", "estimates", "margins", "n", "epsilon"} <= set(shown["browser"])
    assert shown["browser"]["consistent"] == pytest.approx(shown["browser"]["consistent"])
    assert sum(shown["browser"]["consistent"]) == pytest.approx(1)


@pytest.mark.parametrize("margin", [3e-5, 0.00449, 0.0451, 0.0999, 0.1, 0.73, 1.2, 12.0, 345.6])
@pytest.mark.parametrize("estimate", [0.0, -0.01234567, 0.123456789, 0.55555, 17.34567])
@pytest.mark.parametrize("percent", [False, True])
def test_a_margin_that_is_shown_holds_around_the_estimate_that_is_shown(
    estimate: float, margin: float, percent: bool
) -> None:
    shown, half = (
        float(part.strip(" %"))
        for part in with_margin(estimate, margin, percent=percent).split("±")
    )
    scale = 100 if percent else 1
    assert half >= margin * scale + abs(shown - estimate * scale) - 1e-9
    assert half <= margin * scale * 1.02
