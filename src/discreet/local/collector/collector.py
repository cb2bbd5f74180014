"""The collector's side: reports in, each counted once, on the disk before it is acknowledged; sums
and estimates out.

The store is one SQLite file to which rows are only added. Its key is (respondent, question, round),
so a report that is sent again is the same row, and rows lie in the order of random names: when a
report came, and in whose company, is not kept. One report for each question is also the check of a
respondent's lifetime ε, for the questions fit it together. Partial sums of many collectors add up
to the sums of all reports (send each respondent to one collector).
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import EngineFailure, UsageError
from discreet.local.collector.poisoning import effect, implausible, suspicions
from discreet.local.protocols.protocol import from_wire
from discreet.local.question import Survey, SurveyQuestion

if TYPE_CHECKING:
    from discreet.local.collector.estimate import Estimate

_SCHEMA = """
CREATE TABLE about (survey TEXT NOT NULL);
CREATE TABLE reports (
  respondent BLOB NOT NULL, question INTEGER NOT NULL, round TEXT NOT NULL, report NOT NULL,
  PRIMARY KEY (respondent, question, round)
) WITHOUT ROWID;
CREATE TABLE refused (reason TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
CREATE TRIGGER reports_stay BEFORE DELETE ON reports BEGIN SELECT RAISE(ABORT, 'reports are only added'); END;
CREATE TRIGGER reports_hold BEFORE UPDATE ON reports BEGIN SELECT RAISE(ABORT, 'reports are only added'); END;
"""
MOST_ROUNDS = 4000
"""Of a question: that a respondent may answer, and that are estimated. It is ten years of days."""

_ADD = "INSERT INTO reports VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
_FIND = "SELECT report FROM reports WHERE respondent = ? AND question = ? AND round = ?"
_ANSWERED = "SELECT count(*) FROM reports WHERE respondent = ? AND question = ?"
_REPORTS = "SELECT count(*) FROM reports WHERE question = ?"
_ROUNDS = "SELECT round, count(*) AS n FROM reports WHERE question = ? GROUP BY round ORDER BY n DESC, round LIMIT ?"
_COUNT = "INSERT INTO refused VALUES (?, ?) ON CONFLICT (reason) DO UPDATE SET n = n + excluded.n"

MALFORMED, OTHER_VERSION, UNKNOWN, INVALID, SECOND, IMPLAUSIBLE, TOO_MANY = REASONS = (
    "malformed",  # not a submission
    "other_version",  # of another survey, or another version of this one
    "unknown_question",
    "invalid_report",  # not a report to that question
    "second_report",  # this respondent has sent another one to that question
    "implausible",  # no honest respondent sends such a report, but once in 10^9
    "too_many_rounds",  # this respondent has answered MOST_ROUNDS rounds of that question
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The result of a batch: reports that are now on the disk, that were there already, and refused
    ones by reason.
    """

    accepted: int
    repeated: int
    refused: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {"accepted": self.accepted, "repeated": self.repeated, "refused": dict(self.refused)}


Row = tuple[bytes, int, str, int | bytes]
"""One report as the store holds it: respondent, place of the question, round, report."""


class Desk:
    """Check what comes in: which reports are in a line, and which of them are refused."""

    def __init__(self, survey: Survey) -> None:
        self._fingerprint = survey.fingerprint
        self._asked = {
            question.name: (place, question, question.protocol.size)
            for place, question in enumerate(survey.questions)
        }

    def rows(self, lines: Iterable[bytes]) -> tuple[list[Row], Counter[str]]:
        rows: list[Row] = []
        refused: Counter[str] = Counter()
        for line in lines:
            try:
                respondent, answers = self._opened(line)
            except _Refusal as refusal:
                refused[refusal.args[0]] += 1
                continue
            for key, wire in answers.items():
                try:
                    rows.append((respondent, *self._row(key, wire)))
                except _Refusal as refusal:
                    refused[refusal.args[0]] += 1
        return rows, refused

    def _opened(self, line: bytes) -> tuple[bytes, dict[str, Any]]:
        try:
            sent = json.loads(line)
            respondent = bytes.fromhex(sent["respondent"])
            answers = sent["answers"]
            right = sent["survey"] == self._fingerprint
        except (ValueError, KeyError, TypeError, RecursionError):
            raise _Refusal(MALFORMED) from None
        if not right:
            raise _Refusal(OTHER_VERSION)
        if len(sent) != 3 or len(respondent) != 16 or not isinstance(answers, dict):
            raise _Refusal(MALFORMED)
        return respondent, answers

    def _row(self, key: str, wire: object) -> tuple[int, str, int | bytes]:
        name, _, round = key.partition("@")
        if name not in self._asked:
            raise _Refusal(UNKNOWN)
        place, question, size = self._asked[name]
        try:
            question.checked_round(round)
            report = from_wire(wire, size)
        except UsageError:
            raise _Refusal(INVALID) from None
        if key != question.key(round):
            raise _Refusal(INVALID)
        if implausible(question.protocol, report):
            raise _Refusal(IMPLAUSIBLE)
        # SQLite's integers have 63 bits and a sign; wider reports are bytes.
        return (
            place,
            round,
            report
            if size <= 1 << 63
            else report.to_bytes(-(-(size - 1).bit_length() // 8), "little"),
        )


class _Refusal(Exception):
    """One report that is dropped; its argument is one of REASONS."""


class ReportStore:
    """Reports to one survey, in one file."""

    def __init__(self, path: str | Path, survey: Survey) -> None:
        self.survey = survey
        self.desk = Desk(survey)
        try:
            self._db = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=30
            )
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")  # a commit returns when it is on the disk
            self._open()
        except sqlite3.Error:
            raise UsageError(f"{path} is not a store of reports, or cannot be opened.") from None

    def _open(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            if not self._db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'about'").fetchone():
                for statement in _SCHEMA.split(";\n"):
                    self._db.execute(statement)
                self._db.execute("INSERT INTO about VALUES (?)", [self.survey.fingerprint])
            held = self._db.execute("SELECT survey FROM about").fetchone()
            if held is None or held[0] != self.survey.fingerprint:
                raise UsageError(
                    "This store holds reports to another version of the survey; give this one its own."
                )
        finally:
            self._db.execute("COMMIT")

    def close(self) -> None:
        self._db.close()

    def accept(self, lines: Iterable[bytes]) -> Receipt:
        """Add what is new and right, count what is wrong, in one transaction: durable when this
        returns.
        """
        return self.add([self.desk.rows(lines)])[0]

    def add(self, batches: Iterable[tuple[list[Row], Counter[str]]]) -> list[Receipt]:
        """Add several batches in one transaction, with a receipt for each."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            receipts = [self._add(rows, refused) for rows, refused in batches]
            self._db.execute("COMMIT")
        except sqlite3.Error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise EngineFailure() from None
        return receipts

    def _add(self, rows: list[Row], refused: Counter[str]) -> Receipt:
        outcomes: Counter[str] = Counter()
        answered: dict[tuple[bytes, int], int] = {}
        for row in rows:
            outcomes[self._outcome(row, answered)] += 1
        refused = refused + Counter({reason: outcomes[reason] for reason in (SECOND, TOO_MANY)})
        self._db.executemany(_COUNT, refused.items())
        return Receipt(
            accepted=outcomes["accepted"], repeated=outcomes["repeated"], refused=dict(refused)
        )

    def _outcome(self, row: Row, answered: dict[tuple[bytes, int], int]) -> str:
        """Add a row and say what became of it; `answered` counts the rounds of a respondent in this
        batch.
        """
        who = row[:2]
        if row[2] and who not in answered:
            answered[who] = self._db.execute(_ANSWERED, who).fetchone()[0]
        if (
            answered.get(who, 0) >= MOST_ROUNDS
            and self._db.execute(_FIND, row[:3]).fetchone() is None
        ):
            return TOO_MANY
        if self._db.execute(_ADD, row).rowcount == 1:
            answered[who] = answered.get(who, 0) + 1
            return "accepted"
        return "repeated" if self._db.execute(_FIND, row[:3]).fetchone()[0] == row[3] else SECOND

    def refused(self) -> dict[str, int]:
        return dict(self._db.execute("SELECT reason, n FROM refused ORDER BY reason"))

    def counts(self) -> dict[str, int]:
        """Count the reports of each question, and of each round of a question that is repeated."""
        return {
            question.key(round): n
            for question in self.survey.questions
            for round, n in self._rounds(question)
        }

    def _rounds(self, question: SurveyQuestion) -> list[tuple[str, int]]:
        """Return the rounds of a question with their numbers of reports; where too many, the
        fullest.

        Anybody can name a round that nobody else answers, so the rest is left out and not refused.
        """
        place = self.survey.questions.index(question)
        if not question.repeats:
            return [("", *self._db.execute(_REPORTS, [place]).fetchone())]
        return sorted(self._db.execute(_ROUNDS, (place, MOST_ROUNDS)))

    def _rounds_in_all(self, question: SurveyQuestion) -> int:
        place = self.survey.questions.index(question)
        held = self._db.execute(
            "SELECT count(DISTINCT round) FROM reports WHERE question = ?", [place]
        )
        return int(held.fetchone()[0])

    def reports(self, question: SurveyQuestion) -> Iterator[tuple[str, list[int]]]:
        """Yield reports by round, in the order of random names."""
        place = self.survey.questions.index(question)
        rounds = dict(self._rounds(question))
        if not question.repeats:
            held = self._db.execute("SELECT report FROM reports WHERE question = ?", [place])
            yield "", [_report(report) for (report,) in held]
            return
        held = self._db.execute(
            "SELECT round, report FROM reports WHERE question = ? ORDER BY round, respondent",
            [place],
        )
        for round, rows in groupby(held, key=itemgetter(0)):
            if round in rounds:
                yield round, [_report(report) for _, report in rows]

    def sums(self) -> Sums:
        return self.examined(suspect=False)[0]

    def examined(self, *, suspect: bool = True) -> tuple[Sums, dict[str, list[str]]]:
        """Return the sums, and for each question what its reports show of made-up ones."""
        tallies, told = {}, {}
        for question in self.survey.questions:
            more = (
                self._rounds_in_all(question) - MOST_ROUNDS if suspect and question.repeats else 0
            )
            for round, reports in self.reports(question):
                tallies[question.key(round)] = question.protocol.tally(reports)
                told[question.key(round)] = (
                    suspicions(question.protocol, reports) if suspect else []
                )
            if more > 0:
                told[question.key(round)].append(
                    f"{more} more rounds of {question.name} have fewer reports and are left out"
                )
        found = Sums(survey=self.survey, tallies=tallies, refused=Counter(self.refused()))
        return found, {key: sentences for key, sentences in told.items() if sentences}


def _report(held: int | bytes) -> int:
    return held if isinstance(held, int) else int.from_bytes(held, "little")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sums:
    """The counts of one collector, or of several: adding them is associative and commutative."""

    survey: Survey
    tallies: Mapping[str, Any]
    refused: Counter[str]

    def __add__(self, other: Sums) -> Sums:
        if self.survey.fingerprint != other.survey.fingerprint:
            raise UsageError("These sums are of two surveys, or of two versions of one.")
        tallies = dict(self.tallies)
        for key, tally in other.tallies.items():
            tallies[key] = tallies[key] + tally if key in tallies else tally
        return Sums(survey=self.survey, tallies=tallies, refused=self.refused + other.refused)

    def estimates(self) -> dict[str, Estimate | None]:
        """Estimate each question (and round), in the survey's order; None where there are no
        reports.
        """
        order = {question.name: place for place, question in enumerate(self.survey.questions)}

        def place(key: str) -> tuple[int, int, str]:
            name, _, round = key.partition("@")
            return order[name], int(round) if question_of(self.survey, key).numbered else 0, round

        return {key: self._estimate(key) for key in sorted(self.tallies, key=place)}

    def as_estimate_json(self) -> dict[str, Any]:
        """Return by question values, estimates, margins, n, ε, and the harm of made-up reports."""
        return {key: self._estimate_json(key, found) for key, found in self.estimates().items()}

    def _estimate_json(self, key: str, found: Estimate | None) -> dict[str, Any]:
        question = question_of(self.survey, key)
        protocol = question.protocol
        told = {
            "ask": question.ask,
            "protocol": protocol.name,
            "poisoned_by_1_percent": effect(protocol, fakes=1, n=100),
        }
        if found is not None:
            return {**found.as_json(), **told}
        values = list(protocol.domain) if "values" in question.declared else []
        blank = [None] * len(values)
        return {
            "values": values,
            "estimates": blank,
            "margins": blank,
            "n": 0,
            "epsilon": float(protocol.epsilon),
            **told,
        }

    def _estimate(self, key: str) -> Estimate | None:
        tally = self.tallies[key]
        question = question_of(self.survey, key)
        if not tally.n:
            return None
        if not question.numbered:
            found: Estimate = question.protocol.read(tally)
            return found
        mine = {
            other: held
            for other, held in self.tallies.items()
            if question_of(self.survey, other) is question
        }
        rounds = {int(other.partition("@")[2]): held for other, held in mine.items()}
        read: Estimate | None = question.protocol.read_round(int(key.partition("@")[2]), rounds)
        return read

    def as_json(self) -> dict[str, Any]:
        tallies = {key: tally.as_json() for key, tally in sorted(self.tallies.items())}
        return {
            "survey": self.survey.fingerprint,
            "tallies": tallies,
            "refused": dict(sorted(self.refused.items())),
        }


def question_of(survey: Survey, key: str) -> SurveyQuestion:
    """Return the question of a key, which may name a round."""
    return survey.question(key.partition("@")[0])


def sums_from_json(survey: Survey, parts: Any) -> Sums:
    """Read sums that another collector wrote."""
    try:
        if parts["survey"] != survey.fingerprint:
            raise UsageError("These sums are of another survey, or of another version of this one.")
        tallies = {
            key: _tally_from_json(survey, key, tally) for key, tally in parts["tallies"].items()
        }
        refused = {reason: int(parts["refused"].get(reason, 0)) for reason in REASONS}
        if not set(parts["refused"]) <= set(REASONS) or min(refused.values()) < 0:
            raise UsageError("This is not a file of sums.")
        return Sums(survey=survey, tallies=tallies, refused=+Counter(refused))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError("This is not a file of sums.") from None


def _tally_from_json(survey: Survey, key: str, tally: Any) -> Any:
    """Read a tally; check the round in its key, because the key is printed with the estimate."""
    question = question_of(survey, key)
    if key != question.key(question.checked_round(key.partition("@")[2])):
        raise UsageError("This is not a file of sums.")
    return question.protocol.tally([]).of_json(tally)
