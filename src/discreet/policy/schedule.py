"""Read `releases` of a policy: a question that is answered again every period, for one ε in all
(S15).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Literal, cast

from discreet.budget import number
from discreet.policy.declaration import check_names
from discreet.policy.document import List, Map, Node, Reader, Scalar

Period = Literal["hour", "day", "week", "month"]
Publish = Literal["daily", "cumulative"] | int
PERIODS: tuple[Period, ...] = ("hour", "day", "week", "month")
MOST_PERIODS = 1_000_000
UNKNOWN = "unknown"

_KEYS = ("question", "time", "period", "from", "periods", "publish", "per_person", "epsilon")


@dataclass(frozen=True, slots=True, kw_only=True)
class PerPerson:
    """A person counts in at most `periods` periods, any two of them at least `apart` apart, by
    `rows` rows in each.
    """

    periods: int | None  # None: as many as fit
    apart: int
    rows: int

    def most(self, horizon: int) -> int:
        """Return in how many of so many periods one person can count."""
        fit = -(-horizon // self.apart)
        return fit if self.periods is None else min(self.periods, fit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One release. `periods` None: the horizon is not known, and the release goes on until it is
    taken out.
    """

    name: str
    question: str
    time: str
    period: Period
    start: date
    periods: int | None
    publish: tuple[Publish, ...]
    per_person: PerPerson
    epsilon: Fraction

    def begins(self, index: int) -> datetime:
        """Return the moment at which a period begins, which is when the one before it ends."""
        midnight = datetime(self.start.year, self.start.month, self.start.day)
        match self.period:
            case "hour":
                return midnight + timedelta(hours=index)
            case "day":
                return midnight + timedelta(days=index)
            case "week":
                return midnight + timedelta(weeks=index)
            case "month":
                months = self.start.month - 1 + index
                return midnight.replace(year=self.start.year + months // 12, month=months % 12 + 1)

    def due(self, as_of: datetime) -> int:
        """Count the periods that have ended by a moment, the horizon's at most."""
        low = 0
        high = self.periods or MOST_PERIODS
        while low < high:  # the first period that has not ended
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.begins(middle + 1) <= as_of else (low, middle)
        return low

    def meaning(self) -> dict[str, object]:
        """Return all that a stream depends on: a changed schedule is another stream, started and
        paid anew.
        """
        person = self.per_person
        return {
            "name": self.name,
            "question": self.question,
            "time": self.time,
            "period": self.period,
            "from": self.start.isoformat(),
            "periods": self.periods,
            "publish": list(self.publish),
            "per_person": [person.periods, person.apart, person.rows],
            "epsilon": str(self.epsilon),
        }


def schedules(
    reader: Reader, node: Node | None, *, unit: str, most: Fraction | None
) -> dict[str, Schedule]:
    """Read everything under `releases`; what cannot be read is a problem with its place."""
    entries = reader.fields(node, "releases", ("releases",), None)
    check_names(reader, node, "release", ())
    read = {
        name: _schedule(reader, name, value, unit=unit, most=most)
        for name, value in entries.items()
    }
    return {name: schedule for name, schedule in read.items() if schedule is not None}


def _schedule(
    reader: Reader, name: str, node: Node, *, unit: str, most: Fraction | None
) -> Schedule | None:
    what = f"releases.{name}"
    if not isinstance(node, Map):
        reader.wrong(node, what, "a mapping")
        return None
    before = len(reader.problems)
    fields = reader.fields(node, what, ("releases", name), _KEYS)
    needed = [key for key in _KEYS if key != "per_person" and key not in fields]
    if needed:
        reader.problem(node, f"{what} needs {', '.join(needed)}.")
    question = reader.string(
        fields.get("question"), f"{what}.question", "one SELECT with counts or sums"
    )
    time = reader.string(fields.get("time"), f"{what}.time", "the column that dates a row")
    period = reader.word(fields.get("period"), f"{what}.period", PERIODS)
    start = _date(reader, fields.get("from"), f"{what}.from")
    if period == "month" and start is not None and start.day != 1:
        reader.problem(
            fields["from"], f"{what}.from must be the first of a month, as periods are months."
        )
    periods = _periods(reader, fields.get("periods"), f"{what}.periods")
    publish = _publish(reader, fields.get("publish"), f"{what}.publish", periods)
    per_person = _per_person(reader, fields.get("per_person"), node, name, unit)
    if per_person and per_person.periods is None and "periods" in fields and periods is None:
        reader.problem(
            fields["per_person"],
            f"{what}: with periods unknown a person must count in a number of periods, or the cost has no end. "
            "Write per_person: {periods: 10}.",
        )
    epsilon = reader.amount(fields.get("epsilon"), f"{what}.epsilon")
    if epsilon is not None and most is not None and epsilon > most:
        reader.problem(
            fields["epsilon"], f"{what}.epsilon must be at most the budget's, {number(most)}."
        )
    if len(reader.problems) > before or None in (
        question,
        time,
        period,
        start,
        publish,
        per_person,
        epsilon,
    ):
        return None
    return Schedule(
        name=name,
        question=cast(str, question),
        time=cast(str, time),
        period=cast(Period, period),
        start=cast(date, start),
        periods=periods,
        publish=cast("tuple[Publish, ...]", publish),
        per_person=cast(PerPerson, per_person),
        epsilon=cast(Fraction, epsilon),
    )


def _date(reader: Reader, node: Node | None, what: str) -> date | None:
    if node is None:
        return None
    try:
        return date.fromisoformat(node.text if isinstance(node, Scalar) else "")
    except ValueError:
        reader.wrong(node, what, "a date such as 2025-01-01")
        return None


def _periods(reader: Reader, node: Node | None, what: str) -> int | None:
    if isinstance(node, Scalar) and node.text == UNKNOWN:
        return None
    periods = reader.whole(node, what)
    if node is not None and periods is not None and periods > MOST_PERIODS:
        reader.problem(node, f"{what} must be at most {MOST_PERIODS}, or `{UNKNOWN}`.")
    return periods


def _publish(
    reader: Reader, node: Node | None, what: str, periods: int | None
) -> tuple[Publish, ...] | None:
    expected = "a list of daily, cumulative and whole numbers of periods, such as [daily, cumulative, 7, 30]"
    if node is None:
        return None
    found: list[Publish] = []
    for item in node.items if isinstance(node, List) else (node,):
        value = item.value if isinstance(item, Scalar) else None
        window = isinstance(value, int) and not isinstance(value, bool) and value >= 2
        if value in ("daily", "cumulative") or window:
            found.append(cast(Publish, value))
            if isinstance(value, int) and periods is not None and value > periods:
                reader.problem(
                    item,
                    f"{what}: a window of {value} is longer than the {periods} periods there are.",
                )
        else:
            reader.wrong(item, what, expected)
    if not found or len(set(found)) < len(found):
        reader.problem(node, f"{what} must be {expected}, each once.")
    return tuple(found)


def _per_person(
    reader: Reader, node: Node | None, whole: Node, name: str, unit: str
) -> PerPerson | None:
    """Read how much a person may count; if the unit is the event, an owner is one event."""
    what = f"releases.{name}.per_person"
    if node is None:
        if unit == "event":
            return PerPerson(periods=1, apart=1, rows=1)
        reader.problem(
            whole,
            f"releases.{name} needs per_person: in how many periods one {unit or 'person'} may count. Write "
            "per_person: {periods: 10}, or {every: 7} for one period in any seven.",
        )
        return None
    fields: Mapping[str, Node] = reader.fields(
        node, what, ("releases", name, "per_person"), ("periods", "every", "rows")
    )
    if isinstance(node, Map) and ("periods" in fields) == ("every" in fields):
        reader.problem(
            node, f"{what} needs either periods, how many in all, or every, how far apart."
        )
        return None
    periods = reader.whole(fields.get("periods"), f"{what}.periods")
    apart = reader.whole(fields.get("every"), f"{what}.every")
    rows = reader.whole(fields.get("rows"), f"{what}.rows") or 1
    if periods is None and apart is None:
        return None
    return PerPerson(periods=periods, apart=apart or 1, rows=rows)
