"""The respondent's side in a terminal: what is asked, the coins, what is sent, and what it could mean."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import exp
from typing import Any

from discreet.budget import number
from discreet.local import answers
from discreet.local.device import Sent
from discreet.local.protocol import to_wire
from discreet.local.question import Question, Survey

_SHOWN = 6
"""Answers whose chances are shown."""


def greeting(survey: Survey, spent: Fraction, cap: Fraction) -> Iterator[str]:
    yield f"{survey.name}: {len(survey.questions)} questions. Your answers are randomized here, and stay here."
    yield (
        f"All together they can cost you ε = {number(survey.cost)}; you have spent {number(spent)} of the "
        f"{number(cap)} that this survey may ever have from you."
    )


def asked(question: Question) -> str:
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
    "keep again": "repeat it",
    "inside": "stay near the answer",
    "mix": "use the window",
}


def coins(question: Question, sent: Sent) -> Iterator[str]:
    """The coins that were tossed, one a line, and how many other draws there were."""
    protocol = question.protocol
    if len(protocol.draws) != len(sent.words):
        if sent.words:
            yield f"{len(sent.words)} coins were tossed: {protocol.draws[0]}"
        return
    others, tossed = 0, dict(zip(protocol.draws, sent.words, strict=True))
    for name, word in tossed.items():
        threshold = _threshold(protocol, name)
        if threshold is None:
            others += 1
        elif 0 < threshold < 1 << 64 and not _unused(protocol, name, tossed):
            fell = "heads" if word < threshold else "tails"
            share = "" if threshold == 1 << 63 else f" (of a coin with {float(Fraction(threshold, 1 << 64)):.1%} heads)"
            yield f"{_CAPTIONS.get(name, name)}: {fell}{share}"
    if others:
        yield f"and {others} draw{'s' * (others > 1)} in which everything is equally likely"


def _unused(protocol: Any, name: str, tossed: dict[str, int]) -> bool:
    """Whether a coin decided nothing: all coins are tossed, but Hybrid uses those of one of its parts."""
    if "mix" not in tossed or name == "mix":
        return False
    return (name == "inside") != bool(tossed["mix"] < protocol.mix)


def _threshold(protocol: Any, name: str) -> int | None:
    """Of the coin of this name, if it is one: on the protocol, or on a part of it."""
    if name.endswith("coin"):
        return 1 << 63
    if name == "truth":
        return int(protocol.truth * (1 << 64))
    parts = [protocol]
    for part in parts:
        if isinstance(getattr(part, name, None), int):
            return int(getattr(part, name))
        parts += [getattr(part, inner) for inner in ("piecewise", "duchi", "window", "first") if hasattr(part, inner)]
    return None


def meaning(question: Question, sent: Sent, answer: Any) -> Iterator[str]:
    """What a reader of the report can conclude: how likely each answer would have made it."""
    protocol = question.protocol
    yield f"sent: {to_wire(sent.report, protocol.size)}{_says(question, sent)}"
    if question.kind == "values":
        chances = [(value, float(protocol.mass(sent.report, value))) for value in _near(protocol.domain, answer)]
        largest = max(chance for _, chance in chances)
        listed = ", ".join(f"{value} {chance / largest:.0%}" for value, chance in chances)
        yield f"how well each answer explains it: {listed}"
    most = exp(float(protocol.epsilon))
    yield f"it makes no answer more than e^ε = {most:.3g} times likelier, against another, than it was before"


def _near(domain: Any, answer: Any) -> list[Any]:
    """The first few values, with the respondent's among them."""
    few = list(domain[:_SHOWN])
    return few if answer in few else [*few[:-1], answer]


def _says(question: Question, sent: Sent) -> str:
    protocol = question.protocol
    if hasattr(protocol, "reading"):
        read = answers.number(protocol.domain, protocol.reading(sent.report))
        return f", which counts as {float(read):.3g} in the mean"
    if question.kind != "values":
        return ""
    if protocol.size == len(protocol.domain):
        return f", which says {protocol.domain[sent.report]}"
    best = max(protocol.mass(sent.report, value) for value in protocol.domain)
    speaks = [value for value in protocol.domain if protocol.mass(sent.report, value) == best]
    shown = ", ".join(map(str, speaks[:_SHOWN])) + (", ..." if len(speaks) > _SHOWN else "")
    return f", which speaks for {len(speaks)} of {len(protocol.domain)} values: {shown}"
