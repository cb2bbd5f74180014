"""The respondent's side in a terminal: what is asked, the coins, what is sent, and what it could
mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import groupby
from math import exp
from operator import itemgetter
from typing import Any

from discreet.budget import number
from discreet.local import answers
from discreet.local.protocols.protocol import to_wire
from discreet.local.question import Survey, SurveyQuestion
from discreet.local.respondent.device import Device, Submission
from discreet.noise.bits import Draw

_SHOWN = 6
"""Answers whose chances are shown."""

_MOST_SHOWN = 1 << 53
"""Equally likely numbers beyond which one of them is shown in hexadecimal digits."""


def greeting(survey: Survey, device: Device) -> Iterator[str]:
    yield f"{survey.name}: {len(survey.questions)} questions. Your answers are randomized here, and stay here."
    spent = number(device.spent(survey))
    cap = number(device.cap(survey))
    yield (
        f"All together they can cost you ε = {number(survey.cost)}; you have spent {spent} of the {cap} that this "
        "survey may ever have from you."
    )
    given = number(device.given)
    limit = number(device.limit)
    yield f"All surveys together have had ε = {given} of the {limit} that you allow; --limit sets another."
    for question in survey.questions:
        if question.repeats:
            yield over_time(question)


def over_time(question: SurveyQuestion) -> str:
    """Say what is promised to a respondent about a question that is asked again and again, before
    they answer.
    """
    protocol, total = question.protocol, number(question.protocol.epsilon)
    if question.numbered:
        counted = (
            f"up to {_times(protocol.changes)} of your answer count"
            if protocol.tree
            else "every change counts"
        )
        return (
            f"{question.name} is asked in {protocol.rounds} rounds. All your reports together cost ε = {total}, "
            f"whether and whenever your answer changes; {counted}."
        )
    if protocol.changes == 1:
        return (
            f"{question.name} is asked again and again. All your reports together cost ε = {total}, because all are "
            "drawn from your first answer; later ones do not count."
        )
    return (
        f"{question.name} is asked in up to {protocol.rounds} rounds. All your reports together cost ε = "
        f"{number(protocol.permanent)} if your answer never changes, and up to {total} if it does, because the reports "
        f"show when; up to {protocol.changes} different answers count."
    )


def _times(changes: int) -> str:
    return f"{changes} change" + "s" * (changes > 1)


def ask(question: SurveyQuestion) -> str:
    protocol = question.protocol
    if question.kind == "values":
        allowed = ", ".join(map(str, protocol.domain))
    elif question.kind == "number":
        low, high = question.declared["number"]
        allowed = f"{low} to {high} in steps of {number(Fraction(question.declared['step']))}"
    else:
        few = "" if protocol.items == 1 else f", up to {protocol.items} of them with commas between"
        allowed = f"up to {protocol.length} symbols{few}"
    return f"{question.ask} [{allowed}]"


_CAPTIONS = {
    "keep": "tell the truth",
    "truth": "tell the truth",
    "keep for good": "remember the truth",
    "inside": "stay near the answer",
    "mix": "use the window",
}


def coins(question: SurveyQuestion, sent: Submission) -> Iterator[str]:
    """Yield every draw in order, as it fell; leave out those that can fall in one way only."""
    named = [(name, draw) for name, draw in sent.draws if not _certain(draw)]
    for name, group in groupby(named, key=itemgetter(0)):
        caption = _CAPTIONS.get(name, name)
        fell = [draw for _, draw in group]
        if len(fell) > 1 and all(draw.heads is not None for draw in fell):
            yield f"{caption}: {''.join('TH'[draw.outcome] for draw in fell)}"
            continue
        for draw in fell:
            yield f"{caption}: {_outcome(question.protocol, name, draw)}"


def _certain(draw: Draw) -> bool:
    return draw.n == 1 or draw.heads in (0, 1)


def _outcome(protocol: Any, name: str, draw: Draw) -> str:
    heads = draw.heads
    fell = bool(draw.outcome)
    if name == "truth":  # a number below the denominator, and heads if it is below the numerator
        heads = protocol.truth
        fell = draw.outcome < protocol.truth.numerator
    if heads is not None:
        share = "" if heads == Fraction(1, 2) else f" (of a coin with {float(heads):.1%} heads)"
        return ("heads" if fell else "tails") + share
    if draw.n > _MOST_SHOWN:
        return f"{draw.outcome:#x} (all of {(draw.n - 1).bit_length()} bits are equally likely)"
    return f"{draw.outcome} (0 to {draw.n - 1} are equally likely)"


def meaning(question: SurveyQuestion, sent: Submission, answer: Any) -> Iterator[str]:
    """Say what a reader of the report can conclude: how likely each answer would have made it."""
    protocol = question.protocol
    yield f"sent: {to_wire(sent.report, protocol.size)}{_says(question, sent)}"
    if question.kind == "values" and not question.numbered:
        chances = [
            (value, float(protocol.mass(sent.report, value)))
            for value in _near(protocol.domain, answer)
        ]
        largest = max(chance for _, chance in chances)
        listed = ", ".join(f"{value} {chance / largest:.0%}" for value, chance in chances)
        yield f"how well each answer explains it: {listed}"
    most = exp(float(protocol.epsilon))
    if question.repeats:
        yield f"all reports together make no history of answers more than e^ε = {most:.3g} times likelier than another"
    else:
        yield f"it makes no answer more than e^ε = {most:.3g} times likelier, against another, than it was before"


def _near(domain: Any, answer: Any) -> list[Any]:
    """Return the first few values, with the respondent's among them."""
    few = list(domain[:_SHOWN])
    return few if answer in few else [*few[:-1], answer]


def _says(question: SurveyQuestion, sent: Submission) -> str:
    protocol = question.protocol
    if hasattr(protocol, "reading"):
        read = answers.number(protocol.domain, protocol.reading(sent.report))
        return f", which counts as {float(read):.3g} in the mean"
    if question.kind != "values" or question.numbered:
        return ""
    if protocol.size == len(protocol.domain):
        return f", which says {protocol.domain[sent.report]}"
    best = max(protocol.mass(sent.report, value) for value in protocol.domain)
    speaks = [value for value in protocol.domain if protocol.mass(sent.report, value) == best]
    shown = ", ".join(map(str, speaks[:_SHOWN])) + (", ..." if len(speaks) > _SHOWN else "")
    return f", which speaks for {len(speaks)} of {len(protocol.domain)} values: {shown}"
