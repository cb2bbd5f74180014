"""The coins that a respondent is shown are those that were tossed: from what is shown follows what
is sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from vectors import ANSWERS, survey

from discreet.local.question import SurveyQuestion
from discreet.local.respondent.device import Device, Submission
from discreet.local.respondent.terminal import coins
from discreet.noise import bits

QUESTIONS = survey().questions


class Shown:
    """Stands in for the draws of `noise.bits`, and takes each outcome from the lines that were
    shown.
    """

    def __init__(self, lines: list[str]) -> None:
        self.outcomes = [outcome for line in lines for outcome in read(line.partition(": ")[2])]

    def coin(self, source: object, threshold: int) -> bool:
        return bool(self.outcomes.pop(0)) if 0 < threshold < bits.WORD else bool(threshold)

    def below(self, source: object, n: int) -> int:
        return self.outcomes.pop(0) if n > 1 else 0

    def bernoulli(self, source: object, p: Fraction) -> bool:
        return bool(self.outcomes.pop(0))


def read(shown: str) -> Iterator[int]:
    if re.fullmatch("[HT]+", shown):
        yield from (int(letter == "H") for letter in shown)
    elif shown.startswith(("heads", "tails")):
        yield int(shown.startswith("heads"))
    else:
        yield int(shown.split(" ")[0], 0)


def answers(question: SurveyQuestion) -> list[Any]:
    return ANSWERS.get(question.name) or list(question.protocol.domain)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_what_is_sent_follows_from_the_coins_that_are_shown(
    question: SurveyQuestion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, answer in enumerate(answers(question) * 4):
        sent = Device(tmp_path / f"{number}.json").answer(survey(), question, answer, round="1")
        lines = list(coins(question, sent))
        assert lines
        with monkeypatch.context() as patched:
            shown = Shown(lines)
            for name in ("coin", "below", "bernoulli"):
                patched.setattr(bits, name, getattr(shown, name))
            assert question.protocol.respond(answer) == sent.report
            assert shown.outcomes == []


def test_whoever_tells_the_truth_sends_it(tmp_path: Path) -> None:
    """Truthful draws a number below 10; the word that it was drawn from was compared with 0.7 of
    all words instead.
    """
    question = survey().question("truthful")
    for number in range(40):
        sent: Submission = Device(tmp_path / f"{number}.json").answer(survey(), question, "yes")
        (line,) = coins(question, sent)
        assert (
            line
            == f"tell the truth: {'heads' if sent.report else 'tails'} (of a coin with 70.0% heads)"
        )
