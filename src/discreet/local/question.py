"""A survey as both sides hold it: questions with their protocols, and the reports that may answer them.

Its compiled form is JSON: what was declared, and every number that an encoder in another language needs. A respondent's
program reads that with the standard library alone; `survey` reads the YAML that people write.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from discreet.errors import UsageError
from discreet.local import answers
from discreet.local.choice import best
from discreet.local.protocol import PROTOCOLS, Protocol, hex_digits, to_wire

FORMAT = 1
"""Of the compiled survey and of reports; part of the fingerprint."""

_LISTED = ("kary", "symmetric_unary", "optimized_unary", "local_hashing", "subset_selection", "hadamard")
_TWO = ("warner", "truthful", "two_coins")
_REPEATED = ("memoized", "memoized_unary")
KINDS: Mapping[str, tuple[str, ...]] = {
    "values": (*_LISTED, *_TWO, *_REPEATED),
    "number": ("hybrid", "duchi", "piecewise", "square_wave"),
    "text": ("heavy_hitters",),
}
"""The protocols for each kind of answer; for numbers and text the first is the default."""

_BY_NAME = {protocol.name: protocol for protocol in PROTOCOLS}
_ROUND = re.compile(r"[0-9A-Za-z.-]{1,24}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, and how it is answered. `declared` is JSON, with rationals as text."""

    name: str
    ask: str
    declared: Mapping[str, Any]
    protocol: Any

    @property
    def repeats(self) -> bool:
        """Whether it is asked again and again, so that its reports carry the name of a round."""
        return self.protocol.name in _REPEATED

    @property
    def kind(self) -> str:
        return next(kind for kind in KINDS if kind in self.declared)

    def key(self, round: str = "") -> str:
        return f"{self.name}@{round}" if self.repeats else self.name

    def answer(self, text: str) -> Any:
        """What a person wrote, as a value of the domain."""
        if self.kind == "text":
            return text if self.protocol.items == 1 else [part.strip() for part in text.split(",") if part.strip()]
        if self.kind == "number":
            answers.step(self.protocol.domain, text.strip())
            return text.strip()
        matching = [value for value in self.protocol.domain if str(value) == text.strip()]
        if not matching:
            answers.place(self.protocol.domain, text.strip())
        return matching[0]

    def as_json(self) -> dict[str, Any]:
        protocol = self.protocol
        return {
            "name": self.name,
            "ask": self.ask,
            **self.declared,
            "cost": str(protocol.epsilon),
            "digits": hex_digits(protocol.size),
            "parameters": protocol.parameters(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Questions, and the ε that a respondent spends on all of them in a lifetime, at most."""

    name: str
    epsilon: Fraction
    questions: tuple[Question, ...]
    fingerprint: str = field(init=False)
    """Of everything that is asked and of every threshold; a report names the survey that it answers by this."""

    def __post_init__(self) -> None:
        if self.cost > self.epsilon:
            raise UsageError("The questions cost more than the survey's epsilon.")
        canonical = json.dumps(self.as_json(), sort_keys=True, separators=(",", ":"))
        object.__setattr__(self, "fingerprint", hashlib.sha256(canonical.encode()).hexdigest()[:32])

    @property
    def cost(self) -> Fraction:
        return sum((question.protocol.epsilon for question in self.questions), Fraction(0))

    def question(self, name: str) -> Question:
        for question in self.questions:
            if question.name == name:
                return question
        raise UsageError(f"This survey does not ask {name!r}. It asks {', '.join(q.name for q in self.questions)}.")

    def as_json(self) -> dict[str, Any]:
        questions = [question.as_json() for question in self.questions]
        return {"format": FORMAT, "survey": self.name, "epsilon": str(self.epsilon), "questions": questions}


def from_json(compiled: Any) -> Survey:
    """A survey from its compiled form. It is built anew, and must come out as it was compiled."""
    try:
        questions = tuple(_question(dict(each)) for each in compiled["questions"])
        survey = Survey(name=str(compiled["survey"]), epsilon=Fraction(compiled["epsilon"]), questions=questions)
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"This is not a compiled survey: {error} is missing or wrong.") from None
    if survey.as_json() != compiled:
        raise UsageError("This survey was compiled by another version of discreet, or changed after.")
    return survey


def _question(compiled: dict[str, Any]) -> Question:
    name, ask = compiled.pop("name"), compiled.pop("ask")
    for derived in ("cost", "digits", "parameters"):
        compiled.pop(derived)
    return Question(name=name, ask=ask, declared=compiled, protocol=build(compiled))


def build(declared: Mapping[str, Any]) -> Protocol:
    """The protocol that a question declares: the one place where words become a protocol."""
    kind = _BY_NAME[declared["protocol"]]
    fields: dict[str, Any] = {}
    if "values" in declared:
        fields["domain"] = tuple(declared["values"])
    elif "number" in declared:
        fields["domain"] = _grid(declared)
    else:
        fields |= {"length": declared["text"], "items": declared.get("items", 1), "alphabet": declared.get("alphabet")}
    if "repeats" in declared:
        repeats = declared["repeats"]
        fields |= {"permanent": Fraction(declared["epsilon"]), "instant": Fraction(repeats["instant"])}
        fields["changes"] = repeats["changes"]
    elif "truth" in declared:
        fields["truth"] = Fraction(declared["truth"])
    elif "epsilon" in declared:
        fields["epsilon"] = Fraction(declared["epsilon"])
    return kind(**fields)


def _grid(declared: Mapping[str, Any]) -> Any:
    from discreet.domain import Decimals

    low, high = (Fraction(end) for end in declared["number"])
    try:
        return Decimals(lo=low, hi=high, step=Fraction(declared["step"]))
    except ValueError as error:
        raise UsageError(f"The number's range cannot be used: {error}.") from None


def chosen(declared: Mapping[str, Any]) -> str:
    """The protocol's name, where the survey says `best` or nothing."""
    if "values" in declared:
        return (
            "memoized"
            if "repeats" in declared
            else str(best(len(declared["values"]), declared["epsilon"]).protocol.name)
        )
    return KINDS["number" if "number" in declared else "text"][0]


def submission(survey: Survey, respondent: str, reports: Mapping[str, int]) -> bytes:
    """One line: what leaves the device. Keys in this order and no spaces, as JavaScript's JSON writes it."""
    sent = {}
    for key, report in reports.items():
        question = survey.question(key.partition("@")[0])
        sent[key] = to_wire(report, question.protocol.size)
    line = {"survey": survey.fingerprint, "respondent": respondent, "answers": sent}
    return json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def checked_round(text: str) -> str:
    if not _ROUND.fullmatch(text):
        raise UsageError(f"A round is named by up to 24 letters, digits, dots and dashes, not {text!r}.")
    return text
