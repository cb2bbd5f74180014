"""Draw a device's reports: afresh, from a permanent answer, or by a plan for all rounds. Standard
library only.

`remembered` is what the device keeps for a question, as hexadecimal digits. For a memoized one: the
permanent answer of each value by its place, and `now`, the place that counted last. For
`few_changes`: the `plan`, and the place that counted in each round by its number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.local import answers
from discreet.local.question import SurveyQuestion
from discreet.noise import bits

Named = tuple[tuple[str, bits.Draw], ...]
"""Draws, each with its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportDraw:
    """A report with its draws, and the reports of earlier rounds that were left out."""

    report: int
    draws: Named
    held: bool = False
    earlier: Mapping[str, int] = field(default_factory=dict)


def draw_report(
    question: SurveyQuestion, answer: Any, remembered: dict[str, str], round: str
) -> ReportDraw:
    """Draw a report, and write down in `remembered` what later ones need."""
    protocol = question.protocol
    source = bits.RecordingBits()
    if question.numbered:
        return _by_plan(question, answers.place(protocol.domain, answer), remembered, int(round))
    if question.repeats:
        return _memoize(protocol, answers.place(protocol.domain, answer), remembered)
    report = int(protocol.respond(answer, source))
    return ReportDraw(report=report, draws=_name_draws(protocol.draws, source))


def _memoize(protocol: Any, place: int, remembered: dict[str, str]) -> ReportDraw:
    """Draw from the permanent answer of this value, or of the last value if there were too many.

    Privacy: a device that refused instead would tell, by its silence, that the value is a new one.
    """
    held = f"{place}" not in remembered and len(remembered.keys() - {"now"}) == protocol.changes
    if held:
        # the first memories had no `now`
        now = remembered.get("now") or f"{int([*remembered][-1]):x}"
        place = int(now, 16)
    remembering = bits.RecordingBits()
    reporting = bits.RecordingBits()
    if f"{place}" not in remembered:
        remembered[f"{place}"] = f"{protocol.remember(protocol.domain[place], remembering):x}"
    remembered["now"] = f"{place:x}"
    report = int(protocol.report(int(remembered[f"{place}"], 16), reporting))
    draws = _name_draws(protocol.remember_draws, remembering) + _name_draws(
        protocol.report_draws, reporting
    )
    return ReportDraw(report=report, draws=draws, held=held)


def _by_plan(
    question: SurveyQuestion, place: int, remembered: dict[str, str], round: int
) -> ReportDraw:
    """Draw by the plan; a missed round counts as the one before it, or before the first answer as
    the first.
    """
    protocol = question.protocol
    planning = bits.RecordingBits()
    reporting = bits.RecordingBits()
    if "plan" not in remembered:
        remembered["plan"] = f"{protocol.plan(planning):x}"
    plan = int(remembered["plan"], 16)
    places = [int(remembered[f"{number}"], 16) for number in range(1, len(remembered))]
    earlier, held = {}, False
    for number in range(len(places) + 1, round + 1):
        left_out = places[-1] if places else place
        counted = protocol.held(places, place if number == round else left_out)
        held = number == round and counted != place
        places.append(counted)
        remembered[f"{number}"] = f"{counted:x}"
        reporting = bits.RecordingBits()
        earlier[question.key(f"{number}")] = int(protocol.report(plan, places, reporting))
    report = earlier.pop(question.key(f"{round}"))
    draws = _name_draws(protocol.plan_draws, planning) + _name_draws(
        protocol.report_draws, reporting
    )
    return ReportDraw(report=report, draws=draws, held=held, earlier=earlier)


def _name_draws(names: tuple[str, ...], source: bits.RecordingBits) -> Named:
    """Return every draw with its name; the last name serves all further draws, as of a coin for
    each value.
    """
    return tuple(
        (names[min(place, len(names) - 1)], draw) for place, draw in enumerate(source.made)
    )
