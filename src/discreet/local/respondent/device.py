"""The respondent's own memory: who they are to a survey, what they sent, and how much ε that has
cost them.

Lifetime ε is counted and capped here, on the device, because nobody else is trusted to (S17): all
surveys together, up to a limit that the respondent sets, since whoever asks can rename a survey or
word a question anew. A report is written down before it is handed out, and an answered question
gives the same report again and costs nothing again. Whether an answer is refused depends on what
was asked and answered before, never on a value. The standard library only.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.budget import amount, number
from discreet.errors import BudgetExceeded, UsageError
from discreet.local.question import Survey, SurveyQuestion, check_name
from discreet.local.respondent.again import draw_report
from discreet.noise import bits

try:
    import fcntl
except ImportError:  # not a Unix: two programs of one person at once are then not kept apart
    fcntl = None  # type: ignore[assignment]

FORMAT = 2
LIMIT = "10"
"""What all surveys together may cost, until the respondent says otherwise: about five surveys of ε
= 2.
"""

MOST_LIMIT = Fraction(10_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A report, and how it came about: by these draws, each with its name, or sent before if there
    are none.
    """

    key: str
    report: int
    draws: tuple[tuple[str, bits.Draw], ...]
    cost: Fraction
    held: bool = False
    """Whether the answer had changed as often as it may, so that the one before it counts."""
    earlier: Mapping[str, int] = field(default_factory=dict)
    """Reports of rounds that were left out before this one, to be sent with it."""


class Device:
    """One file of memory, for all surveys of one person. Nobody else needs to read it, and nobody
    else may.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._memory: dict[str, Any] = _empty()
        self._recall()

    def respondent(self, survey: Survey) -> str:
        """Return a random name for this survey as it stands; another version gets another, so none
        can be joined.
        """
        return str(self._of(survey)["respondent"])

    def cap(self, survey: Survey) -> Fraction:
        """Return the least lifetime ε that a survey of this name has ever stated: it cannot raise
        it afterwards.
        """
        return min(
            Fraction(self._memory["caps"].get(survey.name, str(survey.epsilon))), survey.epsilon
        )

    def spent(self, survey: Survey) -> Fraction:
        """Return the cost of all surveys of this name."""
        return _cost(
            mine for mine in self._memory["surveys"].values() if mine["name"] == survey.name
        )

    @property
    def limit(self) -> Fraction:
        """The most that all surveys together may cost."""
        return Fraction(self._memory["limit"])

    @property
    def given(self) -> Fraction:
        """The cost of all surveys so far."""
        return _cost(self._memory["surveys"].values())

    def set_limit(self, limit: object) -> None:
        """Set the respondent's own limit: no survey can call this."""
        chosen = amount(limit, name="limit", most=MOST_LIMIT)
        with self._alone():
            self._recall()
            self._memory["limit"] = str(chosen)
            self._save()

    def sent_before(self, survey: Survey, question: SurveyQuestion, round: str = "") -> int | None:
        """Return the report that was sent to this question, if there is one."""
        known = self._of(survey)["answered"].get(question.name)
        report = None if known is None else known["reports"].get(question.key(round))
        return None if report is None else int(report, 16)

    def answer(
        self, survey: Survey, question: SurveyQuestion, answer: Any, *, round: str = ""
    ) -> Submission:
        """Draw a report, note it and its cost durably, and return it; or return what was sent
        before.
        """
        with self._alone():
            self._recall()
            return self._answer(survey, question, answer, round)

    def _answer(
        self, survey: Survey, question: SurveyQuestion, answer: Any, round: str
    ) -> Submission:
        key = question.key(question.checked_round(round))
        before = self.sent_before(survey, question, round)
        if before is not None:
            return Submission(key=key, report=before, draws=(), cost=Fraction(0))
        answered = self._of(survey)["answered"]
        cost = Fraction(0) if question.name in answered else question.protocol.epsilon
        self._require_within(survey, question, cost)
        record = answered.get(question.name, {"cost": str(cost), "reports": {}, "remembered": {}})
        _require_rounds(question, record)
        drawn = draw_report(question, answer, record["remembered"], round)
        for name, report in {**drawn.earlier, key: drawn.report}.items():
            record["reports"].setdefault(name, f"{report:x}")
        answered[question.name] = record
        self._memory["caps"][survey.name] = str(self.cap(survey))
        self._save()
        return Submission(
            key=key,
            report=drawn.report,
            draws=drawn.draws,
            cost=cost,
            held=drawn.held,
            earlier=drawn.earlier,
        )

    def _require_within(self, survey: Survey, question: SurveyQuestion, cost: Fraction) -> None:
        """Refuse a cost beyond the survey's limit, or the respondent's for everything."""
        if self.spent(survey) + cost > self.cap(survey):
            spent = number(self.spent(survey))
            cap = number(self.cap(survey))
            raise BudgetExceeded(
                f"Answering {question.name} costs ε = {number(cost)}; {survey.name} has had {spent} of the {cap} "
                "that it may have from you in a lifetime. Nothing is sent."
            )
        if self.given + cost > self.limit:
            raise BudgetExceeded(
                f"Answering {question.name} costs ε = {number(cost)}; all surveys together have had "
                f"{number(self.given)} of the {number(self.limit)} that you allow in a lifetime. Nothing is sent. "
                "To allow more, say --limit with a larger number."
            )

    def _of(self, survey: Survey) -> dict[str, Any]:
        fresh = {"name": survey.name, "respondent": f"{bits.SYSTEM.bits(128):032x}", "answered": {}}
        mine: dict[str, Any] = self._memory["surveys"].setdefault(survey.fingerprint, fresh)
        return mine

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let one program answer at a time: a second one waits, and finds the first's report."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self.path.with_name(self.path.name + ".lock"), "w") as lock:
                if fcntl is not None:
                    fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        except OSError:
            raise UsageError(
                f"{self.path} cannot be written, so your ε cannot be counted. Nothing is sent."
            ) from None

    def _recall(self) -> None:
        try:
            self._memory = _check(_current(json.loads(self.path.read_text(encoding="utf-8"))))
        except FileNotFoundError:
            self._memory = _empty()
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            # Privacy: without its memory the device would forget what was spent, and answer again
            # with new coins.
            raise UsageError(
                f"{self.path}, the memory of your answers, cannot be read. Nothing is sent."
            ) from None

    def _save(self) -> None:
        """Write the memory whole or not at all, and on the disk before this returns."""
        beside = self.path.with_name(self.path.name + ".new")
        with open(
            os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
        ) as file:
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


def _empty() -> dict[str, Any]:
    return {"format": FORMAT, "limit": LIMIT, "caps": {}, "surveys": {}}


def _current(memory: dict[str, Any]) -> dict[str, Any]:
    """Return a memory of today's shape; the first shape had one respondent for all versions of a
    survey.
    """
    if memory.get("format") == FORMAT:
        return memory
    found = _empty()
    for name, mine in memory.items():
        found["caps"][name] = mine["epsilon"]
        for version, record in mine["answered"].items():
            question, fingerprint = version.split(" ")
            fresh = {"name": name, "respondent": mine["respondent"], "answered": {}}
            found["surveys"].setdefault(fingerprint, fresh)["answered"][question] = record
    # Privacy: what was spent before there was a limit must not stop the respondent for good, nor be
    # forgotten.
    found["limit"] = str(max(Fraction(LIMIT), _cost(found["surveys"].values())))
    return found


def _check(memory: dict[str, Any]) -> dict[str, Any]:
    """Read what `_save` wrote, or raise an error of any kind."""
    amount(memory["limit"], name="limit")
    for cap in memory["caps"].values():
        amount(cap, name="epsilon")
    for mine in memory["surveys"].values():
        _hexadecimal(mine["respondent"])
        check_name(mine["name"], "survey")
        for record in mine["answered"].values():
            amount(record["cost"], name="cost")
            for drawn in (*record["reports"].values(), *record["remembered"].values()):
                _hexadecimal(drawn)
    return memory


def _cost(surveys: Iterable[dict[str, Any]]) -> Fraction:
    return sum(
        (Fraction(each["cost"]) for mine in surveys for each in mine["answered"].values()),
        Fraction(0),
    )


def _hexadecimal(text: str) -> None:
    if not re.fullmatch("[0-9a-f]+", text):
        raise ValueError(text)


def _require_rounds(question: SurveyQuestion, record: dict[str, Any]) -> None:
    """Refuse a round beyond those that ε is counted for, with or without a change."""
    rounds = question.protocol.rounds if question.repeats else None
    if rounds is not None and len(record["reports"]) >= rounds:
        raise BudgetExceeded(
            f"You have answered {question.name} in all of its {rounds} rounds. Nothing is sent."
        )
