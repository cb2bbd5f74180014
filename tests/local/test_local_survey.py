"""Surveys: what may be written, and what is said about mistakes, each with its place."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from small_survey import WEEKEND, weekend

from discreet.errors import PolicyError, UsageError
from discreet.local.protocols.protocol import hex_digits
from discreet.local.question import build, from_json
from discreet.local.survey import from_text, read

HEAD = "survey: s\nepsilon: 10\nquestions:\n  "


def test_the_weekend() -> None:
    survey = weekend()
    assert [question.protocol.name for question in survey.questions] == [
        "two_coins",
        "kary",
        "hybrid",
    ]
    # `no` is a word, not a boolean
    assert survey.question("drank").protocol.domain == ("no", "yes")
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
    """A threshold that was raised on the way would make an encoder tell the truth more often than
    it says.
    """
    compiled = json.loads(json.dumps(weekend().as_json()))
    change(compiled)  # type: ignore[operator]
    with pytest.raises(UsageError):
        from_json(compiled)


ONE = {"protocol": "kary", "values": ["a", "b"], "epsilon": "1"}
NUMBER = {"protocol": "duchi", "number": ["0", "4"], "step": "1", "epsilon": "1"}
TEXT = {"protocol": "heavy_hitters", "text": 4, "epsilon": "1"}
REPEATED = {
    "protocol": "memoized",
    "values": ["a", "b"],
    "epsilon": "1",
    "repeats": {"instant": "1", "changes": 1},
}
FEW = {
    "protocol": "few_changes",
    "values": ["a", "b"],
    "epsilon": "1",
    "repeats": {"rounds": 12, "changes": 2},
}


def compiled_by_hand(
    *, survey: object = "s", name: object = "q", ask: object = "?", **declared: Any
) -> Any:
    """What a collector might hand out that did not come from `collect compile`, its derived numbers
    included.
    """
    try:
        protocol = build(declared)
        derived = {
            "cost": str(protocol.epsilon),
            "digits": hex_digits(protocol.size),
            "parameters": protocol.parameters(),
        }
    except (UsageError, KeyError, TypeError, AttributeError):
        derived = {"cost": "1", "digits": 0, "parameters": {}}
    asked = {"name": name, "ask": ask, **declared, **derived}
    return {"format": 1, "survey": survey, "epsilon": "100", "questions": [asked]}


HUGE = "1e400000000"  # to read it as a fraction would take days
HOSTILE = [
    (dict(ONE, ask="\x1b[31m?"), "q.ask holds a control character"),
    (dict(ONE, ask="\u202e?"), "q.ask holds a control character"),
    (dict(ONE, ask="\ud800"), "q.ask holds a control character"),
    (dict(ONE, ask=" "), "q.ask must be text"),
    (dict(ONE, ask=["?"]), "q.ask must be text"),
    (
        dict(ONE, survey="s\x1b[2J"),
        r"survey is named by letters, digits, - and _, not 's\\x1b\[2J'",
    ),
    (dict(ONE, survey=7), "survey is named by letters"),
    (dict(ONE, name="q@x"), "A question is named by letters"),
    (dict(ONE, name="</script>"), "A question is named by letters"),
    (dict(ONE, epsilon="1000000"), "at most 100"),
    (dict(ONE, epsilon=HUGE), "q: epsilon must be a finite number"),
    (dict(ONE, epsilon="xyz"), "q: epsilon must be a finite number"),
    (dict(ONE, epsilon="1/0"), "q: epsilon must be a finite number"),
    (dict(ONE, values=["\x1b[32myes", "no"]), "q: A value holds a control character"),
    (dict(ONE, values=["1", 1]), "q: A value stands twice"),
    (dict(ONE, values=["a", None]), "q: A value must be text"),
    (dict(ONE, values=["a", True]), "q: A value must be text"),
    (dict(ONE, values=[["a"], ["b"]]), "q: A value must be text"),
    (dict(ONE, values="ab"), "q: values must be a list"),
    (dict(ONE, values=["a"]), "q: A domain has 2 to"),
    (dict(ONE, protocol="none"), "'none' is missing or wrong"),
    (dict(ONE, protocol=["kary"]), "is missing or wrong"),
    (dict(ONE, protocol="hybrid"), "q: hybrid is not for values. Use kary or"),
    (dict(ONE, protocol="two_coins"), "q: 'epsilon' is not used by two_coins"),
    (dict(ONE, truth="3/4"), "q: 'truth' is not used by kary"),
    (dict(ONE, protocol="memoized"), "'repeats' is missing or wrong"),
    (dict(ONE, protocol="truthful"), "'truth' is missing or wrong"),
    (dict(ONE, protocol="heavy_hitters"), "q: heavy_hitters is not for values"),
    (dict(ONE, number=["0", "1"]), "q: 'number' is not used by kary"),
    (dict(ONE, **{"\x1b": "\x1b"}), r"q: '\\x1b' is not used by kary"),
    (dict(NUMBER, number=["0", "1e40000000"]), "q: number must be a finite number"),
    (dict(NUMBER, number=["0", "4\r"]), "q: number holds a control character"),
    (dict(NUMBER, number=["--1", "4"]), "q: number must be zero or more"),
    (dict(NUMBER, number=["0", "4", "5"]), "q: number must be a range"),
    (dict(NUMBER, number="04"), "q: number must be a range"),
    (dict(NUMBER, number=["4", "0"]), "q: The number's range cannot be used"),
    (dict(NUMBER, step=HUGE), "q: step must be a finite number"),
    (dict(NUMBER, step="0"), "q: step must be greater than zero"),
    (dict(TEXT, text=4.5), "q: text must be a whole number"),
    (dict(TEXT, items=True), "q: items must be a whole number"),
    (dict(TEXT, alphabet=["a", "b"]), "q: alphabet must be text"),
    (dict(TEXT, alphabet="a\x07"), "q: alphabet holds a control character"),
    (
        dict(REPEATED, repeats={"instant": "1", "changes": 2}),
        "q: Answers that change tell more in every round",
    ),
    (
        dict(REPEATED, repeats={"instant": "1", "changes": 1, "rounds": "3"}),
        "q: repeats.rounds must be a whole number",
    ),
    (
        dict(FEW, repeats={"rounds": 12, "changes": 2, "instant": "1"}),
        "q: 'instant' is not used by few_changes",
    ),
    (
        dict(FEW, repeats={"rounds": 5000, "changes": 2}),
        "q: rounds must be a whole number from 1 to 4000",
    ),
    (
        dict(FEW, repeats={"rounds": 12, "changes": 40}),
        "q: changes must be a whole number from 1 to 32",
    ),
    (dict(FEW, repeats={"changes": 2}), "'rounds' is missing or wrong"),
    (
        dict(REPEATED, repeats={"instant": HUGE, "changes": 2}),
        "q: repeats.instant must be a finite number",
    ),
    (
        dict(REPEATED, repeats={"instant": "1", "changes": "2"}),
        "q: repeats.changes must be a whole number",
    ),
    (
        dict(REPEATED, repeats={"instant": "1", "changes": 1, "x": 1}),
        "q: 'x' is not used by memoized",
    ),
    (dict(REPEATED, repeats=[]), "is missing or wrong"),
]


@pytest.mark.parametrize(("parts", "expected"), HOSTILE)
def test_a_compiled_survey_is_checked_as_the_yaml_is(parts: dict[str, Any], expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        from_json(compiled_by_hand(**parts))


@pytest.mark.parametrize(
    "parts", [ONE, NUMBER, TEXT, REPEATED, FEW, dict(NUMBER, number=["-3/2", "5/2"], step="1/2")]
)
def test_a_compiled_survey_without_mistakes_is_read(parts: dict[str, Any]) -> None:
    assert from_json(compiled_by_hand(**parts)).question("q").protocol.name == parts["protocol"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda c: c.update(epsilon=HUGE), "epsilon must be a finite number"),
        (lambda c: c.update(epsilon="1000000"), "epsilon must be at most 100"),
        (lambda c: c.update(questions=[]), "The survey asks nothing"),
        (lambda c: c.update(questions={"q": 1}), "is missing or wrong"),
        (
            lambda c: c.update(questions=c["questions"] * 2),
            "Two questions of the survey have one name",
        ),
    ],
)
def test_a_compiled_survey_is_checked_as_a_whole(change: object, expected: str) -> None:
    compiled = compiled_by_hand(**ONE)
    change(compiled)  # type: ignore[operator]
    with pytest.raises(UsageError, match=expected):
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
    (
        "survey: s\nepsilon: -1\nquestions: {q: {ask: x, values: [a, b], epsilon: 1}}",
        "2:10: epsilon must be greater",
    ),
    (
        "survey: s\nepsilon: nan\nquestions: {q: {ask: x, values: [a, b], epsilon: 1}}",
        "2:10: epsilon must be a finite",
    ),
    (
        "survey: s\nepsilom: 1\nquestions: {}",
        "2:1: The survey has no key epsilom. Did you mean epsilon?",
    ),
    (HEAD + "q: {values: [a, b], epsilon: 1}", "4:6: q needs ask"),
    (HEAD + "q: {ask: x, values: [a], epsilon: 1}", "4:23: q.values must be a list of two values"),
    (HEAD + "q: {ask: x, values: [a, b, a], epsilon: 1}", "4:30: q.values has a twice."),
    (HEAD + "q: {ask: x, values: [a, b]}", "4:6: q needs epsilon."),
    (HEAD + "q: {ask: x, values: [a, b], epsilon: 0}", "4:40: q.epsilon must be greater than zero"),
    (
        HEAD + "q: {ask: x, valeus: [a, b], epsilon: 1}",
        "4:15: q has no key valeus. Did you mean values?",
    ),
    (
        HEAD + "q: {ask: x, values: [a, b], number: [0, 1], epsilon: 1}",
        "4:6: q must say one thing about what may be",
    ),
    (
        HEAD + "q: {ask: x, values: [a, b], protocol: two_coin, epsilon: 1}",
        "4:41: q.protocol must be kary or",
    ),
    (
        HEAD + "q: {ask: x, values: [a, b], protocol: two_coins, epsilon: 1}",
        "4:61: q.epsilon is not used: its coins say",
    ),
    (
        HEAD + "q: {ask: x, values: [a, b, c], protocol: two_coins}",
        "4:6: q: This protocol is for two values, not 3.",
    ),
    (
        HEAD + "q: {ask: x, values: [a, b], protocol: truthful, truth: 0.4}",
        "4:6: q: The truth is told with a probability",
    ),
    (
        HEAD + "q: {ask: x, values: [a, b], protocol: hybrid, epsilon: 1}",
        "4:41: q.protocol must be",
    ),
    (HEAD + "q: {ask: x, number: [0, 24], epsilon: 1}", "4:23: q.number needs step"),
    (
        HEAD + "q: {ask: x, number: [0, 1], step: 0.3, epsilon: 1}",
        "4:6: q: The number's range cannot be used",
    ),
    (
        HEAD + "q: {ask: x, number: [3, 1], step: 1, epsilon: 1}",
        "4:6: q: The number's range cannot be used",
    ),
    (
        HEAD + "q: {ask: x, number: 7, step: 1, epsilon: 1}",
        "4:23: q.number must be a range of two numbers",
    ),
    (HEAD + "q: {ask: x, number: [0, 1e9], step: 0.1, epsilon: 1}", "4:6: q: A grid of"),
    (
        HEAD + "q: {ask: x, values: [a, b], step: 1, epsilon: 1}",
        "4:37: q.step goes with number only.",
    ),
    (HEAD + "q: {ask: x, text: 0, epsilon: 1}", "4:21: q.text must be a whole number"),
    (HEAD + "q: {ask: x, text: 8, alphabet: aa, epsilon: 1}", "4:6: q: An alphabet is"),
    (HEAD + "q: {ask: x, values: [a, b], protocol: memoized, epsilon: 1}", "4:6: q needs repeats"),
    (
        HEAD + "q: {ask: x, values: [a, b], epsilon: 1, repeats: {instant: 1}}",
        "4:52: q.repeats needs changes.",
    ),
    (
        HEAD + "q: {ask: x, values: [a, b], epsilon: 1, repeats: {changes: 1}}",
        "4:52: q.repeats needs rounds.",
    ),
    (
        HEAD + "q: {ask: x, values: [a, b], protocol: few_changes, epsilon: 1}",
        "4:6: q needs repeats: {rounds: 12, changes: 2}.",
    ),
    (
        HEAD + "q: {ask: x, values: [a, b], epsilon: 1, repeats: {instant: 1, changes: 2}}",
        "4:6: q: Answers that change tell more in every round",
    ),
    (
        HEAD
        + "q: {ask: x, values: [a, b], protocol: kary, epsilon: 1, repeats: {rounds: 3, changes: 2}}",
        "q.repeats goes with protocol: few_changes, memoized or memoized_unary.",
    ),
    (
        HEAD + "q: {ask: x, values: [a, b], epsilon: 1}\n  q: {ask: y, values: [a, b], epsilon: 1}",
        "5:3: q is given twice",
    ),
    (HEAD + "'q@1': {ask: x, values: [a, b], epsilon: 1}", "A question is named by letters"),
    (
        HEAD + "q: {ask: x, values: [a, b], epsilon: 11}",
        "2:10: The questions cost 11 (q) = 11, more than epsilon, 10.",
    ),
    (HEAD + "q: [", "This is not valid YAML"),
]


def test_a_survey_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be read: No such file or directory\.$"):
        read(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"survey: caf\xe9")
    with pytest.raises(UsageError, match=r"is not text in UTF-8\.$"):
        read(tmp_path / "latin.yaml")


@pytest.mark.parametrize(("text", "expected"), MISTAKES)
def test_mistakes_are_shown_where_they_are(text: str, expected: str) -> None:
    with pytest.raises(PolicyError) as refused:
        from_text(text, file="s.yaml")
    assert f"s.yaml:{expected}" in str(refused.value) or expected in str(refused.value)
    assert str(refused.value).startswith("s.yaml:")


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(PolicyError) as refused:
        from_text(
            "survey: s\nepsilon: x\nquestions:\n  a: {ask: 1}\n  b: {values: [1]}\n", file="s.yaml"
        )
    assert len(refused.value.problems) == 5


def test_a_file_that_is_not_there(tmp_path: object) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read(f"{tmp_path}/none.yaml")
