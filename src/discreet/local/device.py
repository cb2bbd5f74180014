"""The respondent's own memory: who they are to a survey, what they sent, and how much ε that has cost them.

Lifetime ε is counted and capped here, on the device, because nobody else is trusted to (S17). A report is written down
before it is handed out, and an answered question gives the same report again and costs nothing again. The standard
library only.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.budget import amount, number
from discreet.errors import BudgetExceeded, UsageError
from discreet.local.question import Question, Survey, checked_round
from discreet.noise import bits

try:
    import fcntl
except ImportError:  # not a Unix: two programs of one person at once are then not kept apart
    fcntl = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A report, and how it came about: by these draws, each with its name, or sent before if there are none."""

    key: str
    report: int
    draws: tuple[tuple[str, bits.Draw], ...]
    cost: Fraction


class Device:
    """One file of memory, for all surveys of one person. Nobody else needs to read it, and nobody else may."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._memory: dict[str, Any] = {}
        self._recall()

    def respondent(self, survey: Survey) -> str:
        """A random name for this survey alone, so that no two surveys can be joined by it."""
        return str(self._of(survey)["respondent"])

    def cap(self, survey: Survey) -> Fraction:
        """The least lifetime ε that a survey of this name has ever stated: it cannot raise it afterwards."""
        return Fraction(self._of(survey)["epsilon"])

    def spent(self, survey: Survey) -> Fraction:
        answered = self._of(survey)["answered"].values()
        return sum((Fraction(each["cost"]) for each in answered), Fraction(0))

    def sent_before(self, survey: Survey, question: Question, round: str = "") -> int | None:
        """The report that was sent to this question, if there is one."""
        known = self._of(survey)["answered"].get(_version(survey, question))
        report = None if known is None else known["reports"].get(question.key(round))
        return None if report is None else int(report, 16)

    def answer(self, survey: Survey, question: Question, answer: Any, *, round: str = "") -> Sent:
        """Draw a report, note it and its cost durably, and hand it out; or hand out again what was sent before."""
        with self._alone():
            self._recall()
            return self._answer(survey, question, answer, round)

    def _answer(self, survey: Survey, question: Question, answer: Any, round: str) -> Sent:
        key = question.key(checked_round(round) if question.repeats else "")
        before = self.sent_before(survey, question, round)
        if before is not None:
            return Sent(key=key, report=before, draws=(), cost=Fraction(0))
        answered, version = self._of(survey)["answered"], _version(survey, question)
        cost = Fraction(0) if version in answered else question.protocol.epsilon
        if self.spent(survey) + cost > self.cap(survey):
            spent, cap = number(self.spent(survey)), number(self.cap(survey))
            raise BudgetExceeded(
                f"Answering {question.name} costs ε = {number(cost)}; {survey.name} has had {spent} of the {cap} "
                "that it may have from you in a lifetime. Nothing is sent."
            )
        record = answered.get(version, {"cost": str(cost), "reports": {}, "remembered": {}})
        report, draws = _drawn(question, answer, record["remembered"])
        record["reports"][key] = f"{report:x}"
        answered[version] = record
        self._save()
        return Sent(key=key, report=report, draws=tuple(draws), cost=cost)

    def _of(self, survey: Survey) -> dict[str, Any]:
        fresh = {"respondent": f"{bits.SYSTEM.bits(128):032x}", "epsilon": str(survey.epsilon), "answered": {}}
        mine: dict[str, Any] = self._memory.setdefault(survey.name, fresh)
        mine["epsilon"] = str(min(Fraction(mine["epsilon"]), survey.epsilon))
        return mine

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Two programs that answered at once would both draw; the second waits, and finds the first's report."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self.path.with_name(self.path.name + ".lock"), "w") as lock:
                if fcntl is not None:
                    fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        except OSError:
            raise UsageError(f"{self.path} cannot be written, so your ε cannot be counted. Nothing is sent.") from None

    def _recall(self) -> None:
        try:
            self._memory = _checked(json.loads(self.path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            self._memory = {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            # Privacy: without its memory the device would forget what was spent, and answer again with new coins.
            raise UsageError(f"{self.path}, the memory of your answers, cannot be read. Nothing is sent.") from None

    def _save(self) -> None:
        """Whole, or not at all, and on the disk before this returns."""
        beside = self.path.with_name(self.path.name + ".new")
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(self._memory, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path)
        if hasattr(os, "O_DIRECTORY"):
            folder = os.open(self.path.parent, os.O_DIRECTORY)
            os.fsync(folder)
            os.close(folder)


def default_path() -> Path:
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "discreet" / "answered.json"


def _checked(memory: dict[str, Any]) -> dict[str, Any]:
    """What `_save` wrote, or an error of any kind."""
    for mine in memory.values():
        amount(mine["epsilon"], name="epsilon")
        _hexadecimal(mine["respondent"])
        for record in mine["answered"].values():
            amount(record["cost"], name="cost")
            for drawn in (*record["reports"].values(), *record["remembered"].values()):
                _hexadecimal(drawn)
    return memory


def _hexadecimal(text: str) -> None:
    if not re.fullmatch("[0-9a-f]+", text):
        raise ValueError(text)


def _version(survey: Survey, question: Question) -> str:
    """A question as it was asked. If a later version of the survey asks it otherwise, it is another question."""
    return f"{question.name} {survey.fingerprint}"


Draws = list[tuple[str, bits.Draw]]


def _drawn(question: Question, answer: Any, remembered: dict[str, str]) -> tuple[int, Draws]:
    """A report and its draws; for a repeated question, from the permanent answer that belongs to this value."""
    protocol, source = question.protocol, bits.Watched()
    if not question.repeats:
        report = int(protocol.respond(answer, source))
        return report, _named(protocol.draws, source.made)
    draws: Draws = []
    value = str(protocol.domain.index(answer))
    if value not in remembered:
        if len(remembered) == protocol.changes:
            raise BudgetExceeded(
                f"{question.name} allows {protocol.changes} different values in a lifetime, and this is one more. "
                "Nothing is sent."
            )
        remembered[value] = f"{protocol.remember(answer, source):x}"
        draws = _named(protocol.remember_draws, source.made)
    source = bits.Watched()
    report = int(protocol.report(int(remembered[value], 16), source))
    return report, draws + _named(protocol.report_draws, source.made)


def _named(names: tuple[str, ...], made: list[bits.Draw]) -> Draws:
    """Every draw with its name. The last name is that of all further draws: of a coin for each value, say."""
    return [(names[min(place, len(names) - 1)], draw) for place, draw in enumerate(made)]
