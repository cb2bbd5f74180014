"""Surveys: what may be written, and what is said about mistakes, each with its place."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from small_survey import WEEKEND, weekend

from discreet.errors import PolicyError, UsageError
from discreet.local.question import from_json
from discreet.local.survey import from_text, read

HEAD = "survey: s\nepsilon: 10\nquestions:\n  "


def test_the_weekend() -> None:
    survey = weekend()
    assert [question.protocol.name for question in survey.questions] == ["two_coins", "kary", "hybrid"]
    assert survey.question("drank").protocol.domain == ("no", "yes")  # `no` is a word, not a boolean
    assert Fraction(19986, 10000) < survey.cost <= 2


def test_a_compiled_survey_is_the_survey() -> None:
    compiled = json.loads(json.dumps(weekend().as_json()))
    assert from_json(compiled) == weekend()
    assert from_json(compiled).fingerprint == weekend().fingerprint


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["questions"][1]["parameters"].update(keep="0xffffffffffffffff"),
        lambda c: c["questions"][1].update(cost="1/1000"),
        lambda c: c.update(format=2),
        lambda c: c.pop("questions"),
        lambda c: c["questions"][0].pop("protocol"),
        lambda c: c.update(epsilon="1"),
    ],
)
def test_a_compiled_survey_with_other_numbers_is_refused(change: object) -> None:
    """A threshold that was raised on the way would make an encoder tell the truth more often than it says."""
    compiled = json.loads(json.dumps(weekend().as_json()))
    change(compiled)  # type: ignore[operator]
    with pytest.raises(UsageError):
        from_json(compiled)


def test_any_change_is_another_version() -> None:
    texts = [
        WEEKEND,
        WEEKEND.replace("Which browser?", "Which Browser?"),
        WEEKEND.replace("0.5, epsilon", "0.25, epsilon"),
    ]
    assert len({from_text(text, file="w").fingerprint for text in texts}) == 3
    assert weekend().fingerprint == from_text("# a comment\n" + WEEKEND, file="w").fingerprint


MISTAKES = [
    ("", "1:1: The survey is empty."),
    ("survey: s\nepsilon: 1\n", "1:1: The survey needs questions."),
    (
        "survey: a b\nepsilon: 1\nquestions: {q: {ask: x, values: [a, b], epsilon: 1}}",
        "1:9: survey is named by letters",
    ),
    ("survey: s\nepsilon: -1\nquestions: {q: {ask: x, values: [a, b], epsilon: 1}}", "2:10: epsilon must be greater"),
    ("survey: s\nepsilon: nan\nquestions: {q: {ask: x, values: [a, b], epsilon: 1}}", "2:10: epsilon must be a finite"),
    ("survey: s\nepsilom: 1\nquestions: {}", "2:1: The survey has no key epsilom. Did you mean epsilon?"),
    (HEAD + "q: {values: [a, b], epsilon: 1}", "4:6: q needs ask"),
    (HEAD + "q: {ask: x, values: [a], epsilon: 1}", "4:23: q.values must be a list of two values"),
    (HEAD + "q: {ask: x, values: [a, b, a], epsilon: 1}", "4:30: q.values has a twice."),
    (HEAD + "q: {ask: x, values: [a, b]}", "4:6: q needs epsilon."),
    (HEAD + "q: {ask: x, values: [a, b], epsilon: 0}", "4:40: q.epsilon must be greater than zero"),
    (HEAD + "q: {ask: x, valeus: [a, b], epsilon: 1}", "4:15: q has no key valeus. Did you mean values?"),
    (HEAD + "q: {ask: x, values: [a, b], number: [0, 1], epsilon: 1}", "4:6: q must say one thing about what may be"),
    (HEAD + "q: {ask: x, values: [a, b], protocol: two_coin, epsilon: 1}", "4:41: q.protocol must be kary or"),
    (
        HEAD + "q: {ask: x, values: [a, b], protocol: two_coins, epsilon: 1}",
        "4:61: q.epsilon is not used: its coins say",
    ),
    (HEAD + "q: {ask: x, values: [a, b, c], protocol: two_coins}", "4:6: q: This protocol is for two values, not 3."),
    (
        HEAD + "q: {ask: x, values: [a, b], protocol: truthful, truth: 0.4}",
        "4:6: q: The truth is told with a probability",
    ),
    (HEAD + "q: {ask: x, values: [a, b], protocol: hybrid, epsilon: 1}", "4:41: q.protocol must be"),
    (HEAD + "q: {ask: x, number: [0, 24], epsilon: 1}", "4:23: q.number needs step"),
    (HEAD + "q: {ask: x, number: [0, 1], step: 0.3, epsilon: 1}", "4:6: q: The number's range cannot be used"),
    (HEAD + "q: {ask: x, number: [3, 1], step: 1, epsilon: 1}", "4:6: q: The number's range cannot be used"),
    (HEAD + "q: {ask: x, number: 7, step: 1, epsilon: 1}", "4:23: q.number must be a range of two numbers"),
    (HEAD + "q: {ask: x, number: [0, 1e9], step: 0.1, epsilon: 1}", "4:6: q: A grid of"),
    (HEAD + "q: {ask: x, values: [a, b], step: 1, epsilon: 1}", "4:37: q.step goes with number only."),
    (HEAD + "q: {ask: x, text: 0, epsilon: 1}", "4:21: q.text must be a whole number"),
    (HEAD + "q: {ask: x, text: 8, alphabet: aa, epsilon: 1}", "4:6: q: An alphabet is"),
    (HEAD + "q: {ask: x, values: [a, b], protocol: memoized, epsilon: 1}", "4:6: q needs repeats"),
    (HEAD + "q: {ask: x, values: [a, b], epsilon: 1, repeats: {instant: 1}}", "4:52: q.repeats needs changes."),
    (
        HEAD + "q: {ask: x, values: [a, b], epsilon: 1}\n  q: {ask: y, values: [a, b], epsilon: 1}",
        "5:3: q is given twice",
    ),
    (HEAD + "'q@1': {ask: x, values: [a, b], epsilon: 1}", "A question is named by letters"),
    (HEAD + "q: {ask: x, values: [a, b], epsilon: 11}", "2:10: The questions cost 11 (q) = 11, more than epsilon, 10."),
    (HEAD + "q: [", "This is not valid YAML"),
]


@pytest.mark.parametrize(("text", "expected"), MISTAKES)
def test_mistakes_are_shown_where_they_are(text: str, expected: str) -> None:
    with pytest.raises(PolicyError) as refused:
        from_text(text, file="s.yaml")
    assert f"s.yaml:{expected}" in str(refused.value) or expected in str(refused.value)
    assert str(refused.value).startswith("s.yaml:")


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(PolicyError) as refused:
        from_text("survey: s\nepsilon: x\nquestions:\n  a: {ask: 1}\n  b: {values: [1]}\n", file="s.yaml")
    assert len(refused.value.problems) == 5


def test_a_file_that_is_not_there(tmp_path: object) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read(f"{tmp_path}/none.yaml")
