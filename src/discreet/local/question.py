"""A survey as both sides hold it: questions with their protocols, and the reports that may answer
them.

Its compiled form is JSON: what was declared, and every number that an encoder in another language
needs. A respondent's program reads that with the standard library alone; `survey` reads the YAML
that people write.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from discreet.budget import amount
from discreet.errors import NO_TEXT, UsageError
from discreet.local import answers
from discreet.local.choice import best, best_memoized
from discreet.local.protocols.protocol import PROTOCOLS, Protocol, hex_digits, to_wire

FORMAT = 1
"""Of the compiled survey and of reports; part of the fingerprint."""

_LISTED = (
    "kary",
    "symmetric_unary",
    "optimized_unary",
    "local_hashing",
    "subset_selection",
    "hadamard",
)
_TWO = ("warner", "truthful", "two_coins")
MEMOIZED = ("memoized", "memoized_unary")
_REPEATED = (*MEMOIZED, "few_changes")
KINDS: Mapping[str, tuple[str, ...]] = {
    "values": (*_LISTED, *_TWO, *_REPEATED),
    "number": ("hybrid", "duchi", "piecewise", "square_wave"),
    "text": ("heavy_hitters",),
}
"""The protocols for each kind of answer; for numbers and text the first is the default."""

MOST = Fraction(100)
"""An ε beyond this is a slip of the keyboard, not a choice."""

_BY_NAME = {protocol.name: protocol for protocol in PROTOCOLS}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_NUMBERED = re.compile(r"[1-9][0-9]{0,3}")
_ROUND = re.compile(r"[0-9A-Za-z.-]{1,24}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyQuestion:
    """One question of a survey, and the protocol that answers it. `declared` is JSON, with
    rationals as text.
    """

    name: str
    ask: str
    declared: Mapping[str, Any]
    protocol: Any

    def __post_init__(self) -> None:
        check_name(self.name, "A question")
        _text(self.ask, f"{self.name}.ask")

    @property
    def repeats(self) -> bool:
        """True if it is asked again and again, so that its reports carry the name of a round."""
        return self.protocol.name in _REPEATED

    @property
    def numbered(self) -> bool:
        """True if its rounds are 1, 2, 3 and so on, and an estimate needs earlier reports."""
        return bool(self.protocol.name == "few_changes")

    @property
    def kind(self) -> str:
        return next(kind for kind in KINDS if kind in self.declared)

    def key(self, round: str = "") -> str:
        return f"{self.name}@{round}" if self.repeats else self.name

    def checked_round(self, text: str) -> str:
        """Return a round's name, "" if it has none; rounds of `few_changes` are 1, 2, 3 and so
        on.
        """
        if not self.repeats:
            return ""
        if not self.numbered:
            return checked_round(text)
        if not _NUMBERED.fullmatch(text) or int(text) > self.protocol.rounds:
            raise UsageError(
                f"{self.name} has rounds 1 to {self.protocol.rounds}: say which one this is, not {text!r}."
            )
        return text

    def answer(self, text: str) -> Any:
        """Read what a person wrote as a value of the domain."""
        if self.kind == "text":
            if self.protocol.items == 1:
                return text
            return [part.strip() for part in text.split(",") if part.strip()]
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
    questions: tuple[SurveyQuestion, ...]
    fingerprint: str = field(init=False)
    """Of everything that is asked and of every threshold; a report names the survey that it answers
    by this.
    """

    def __post_init__(self) -> None:
        check_name(self.name, "survey")
        amount(self.epsilon, name="epsilon", most=MOST)
        if not self.questions:
            raise UsageError("The survey asks nothing.")
        if len({question.name for question in self.questions}) < len(self.questions):
            raise UsageError("Two questions of the survey have one name.")
        if self.cost > self.epsilon:
            raise UsageError("The questions cost more than the survey's epsilon.")
        canonical = json.dumps(self.as_json(), sort_keys=True, separators=(",", ":"))
        object.__setattr__(self, "fingerprint", hashlib.sha256(canonical.encode()).hexdigest()[:32])

    @property
    def cost(self) -> Fraction:
        return sum((question.protocol.epsilon for question in self.questions), Fraction(0))

    def question(self, name: str) -> SurveyQuestion:
        for question in self.questions:
            if question.name == name:
                return question
        raise UsageError(
            f"This survey does not ask {name!r}. It asks {', '.join(q.name for q in self.questions)}."
        )

    def as_json(self) -> dict[str, Any]:
        questions = [question.as_json() for question in self.questions]
        return {
            "format": FORMAT,
            "survey": self.name,
            "epsilon": str(self.epsilon),
            "questions": questions,
        }


def from_json(compiled: Any) -> Survey:
    """Read a survey from its compiled form; build it anew, and require that it comes out as
    compiled.
    """
    try:
        epsilon = amount(compiled["epsilon"], name="epsilon", most=MOST)
        questions = tuple(_question(dict(each)) for each in compiled["questions"])
        survey = Survey(name=compiled["survey"], epsilon=epsilon, questions=questions)
    except UsageError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UsageError(f"This is not a compiled survey: {error} is missing or wrong.") from None
    if survey.as_json() != compiled:
        raise UsageError(
            "This survey was compiled by another version of discreet, or changed after."
        )
    return survey


def _question(compiled: dict[str, Any]) -> SurveyQuestion:
    name = check_name(compiled.pop("name"), "A question")
    ask = compiled.pop("ask")
    for derived in ("cost", "digits", "parameters"):
        compiled.pop(derived)
    try:
        protocol = build(compiled)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None
    return SurveyQuestion(name=name, ask=ask, declared=compiled, protocol=protocol)


def build(declared: Mapping[str, Any]) -> Protocol:
    """Return the protocol that a question declares: the one place where words become a protocol."""
    rest = dict(declared)
    kind = _BY_NAME[rest.pop("protocol")]
    answered = next((each for each in KINDS if each in rest), "text")
    if kind.name not in KINDS[answered]:
        raise UsageError(f"{kind.name} is not for {answered}. Use {' or '.join(KINDS[answered])}.")
    fields: dict[str, Any] = {}
    if answered == "values":
        fields["domain"] = _values(rest.pop("values"))
    elif answered == "number":
        fields["domain"] = _grid(rest.pop("number"), rest.pop("step"))
    else:
        fields |= {
            "length": _whole(rest.pop("text"), "text"),
            "items": _whole(rest.pop("items", 1), "items"),
        }
        fields["alphabet"] = _text(rest.pop("alphabet"), "alphabet") if "alphabet" in rest else None
    if kind.name in _REPEATED:
        repeats = dict(rest.pop("repeats"))
        fields["changes"] = _whole(repeats.pop("changes"), "repeats.changes")
        if kind.name in MEMOIZED:
            fields["permanent"] = amount(rest.pop("epsilon"), name="epsilon", most=MOST)
            fields["instant"] = amount(repeats.pop("instant"), name="repeats.instant", most=MOST)
            fields["rounds"] = (
                _whole(repeats.pop("rounds"), "repeats.rounds") if "rounds" in repeats else None
            )
        else:
            fields["epsilon"] = amount(rest.pop("epsilon"), name="epsilon", most=MOST)
            fields["rounds"] = _whole(repeats.pop("rounds"), "repeats.rounds")
        rest |= repeats
    elif kind.name == "truthful":
        fields["truth"] = amount(rest.pop("truth"), name="truth", most=MOST)
    elif kind.name != "two_coins":
        fields["epsilon"] = amount(rest.pop("epsilon"), name="epsilon", most=MOST)
    if rest:
        raise UsageError(f"{', '.join(map(repr, rest))} is not used by {kind.name}. Remove it.")
    return kind(**fields)


def _values(values: Any) -> tuple[str | int, ...]:
    if not isinstance(values, list):
        raise UsageError("values must be a list.")
    for value in values:
        if type(value) is not int:
            _text(value, "A value")
    if len(set(map(str, values))) < len(values):
        raise UsageError("A value stands twice in values.")
    return tuple(values)


def _grid(ends: Any, step: Any) -> Any:
    from discreet.policy.domain import Decimals

    if not isinstance(ends, list) or len(ends) != 2:
        raise UsageError("number must be a range of two numbers.")
    low, high = (_number(end) for end in ends)
    try:
        return Decimals(lo=low, hi=high, step=amount(step, name="step"))
    except UsageError:
        raise
    except ValueError as error:
        raise UsageError(f"The number's range cannot be used: {error}.") from None


def _number(end: Any) -> Fraction:
    size = amount(_text(end, "number").removeprefix("-"), name="number", zero=True)
    return -size if end.startswith("-") else size


def _whole(value: Any, what: str) -> int:
    if type(value) is not int or not 1 <= value < 2**31:
        raise UsageError(f"{what} must be a whole number, 1 or more.")
    return value


def _text(text: Any, what: str) -> str:
    """Return text that can be shown to the respondent in a terminal."""
    if not isinstance(text, str) or not text.strip():
        raise UsageError(f"{what} must be text.")
    if NO_TEXT.search(text):
        raise UsageError(
            f"{what} holds a control character, which a terminal would obey. Remove it."
        )
    return text


def check_name(name: Any, what: str) -> str:
    """Check the name of a survey or a question: it stands in keys, beside @, and in files."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(f"{what} is named by letters, digits, - and _, not {name!r}.")
    return name


def choose_protocol(declared: Mapping[str, Any]) -> str:
    """Return the protocol's name, where the survey says `best` or nothing."""
    if "values" in declared:
        size = len(declared["values"])
        repeats = declared.get("repeats")
        if repeats is None:
            return str(best(size, declared["epsilon"]).protocol.name)
        if "instant" not in repeats:
            return "few_changes"
        changes = repeats["changes"]
        rounds = repeats.get("rounds")
        first = declared["epsilon"]
        again = repeats["instant"]
        return best_memoized(
            size, permanent=first, instant=again, changes=changes, rounds=rounds, most=MOST
        )
    return KINDS["number" if "number" in declared else "text"][0]


def submission(survey: Survey, respondent: str, reports: Mapping[str, int]) -> bytes:
    """Write one line, what leaves the device: keys in this order and no spaces, as JavaScript's
    JSON does.
    """
    sent = {}
    for key, report in reports.items():
        question = survey.question(key.partition("@")[0])
        sent[key] = to_wire(report, question.protocol.size)
    line = {"survey": survey.fingerprint, "respondent": respondent, "answers": sent}
    return json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def checked_round(text: str) -> str:
    if not _ROUND.fullmatch(text):
        raise UsageError(
            f"A round is named by up to 24 letters, digits, dots and dashes, not {text!r}."
        )
    return text
