"""`releases:` in a policy: what it means, and one sentence with its place for everything that is
wrong with it.
"""

from __future__ import annotations

from datetime import date, datetime

import pytest

from discreet.errors import PolicyError
from discreet.policy.policy import Policy

POLICY = """\
unit: UNIT
tables:
  visits:
    owner: person_id
    columns: {day: {date: [2024-01-01, 2024-12-31]}}
budget: {epsilon: 4}
releases:
  daily:
    question: SELECT COUNT(*) AS n FROM visits
    time: day
    period: day
    from: 2024-01-01
    periods: 366
    publish: [daily, cumulative, 7]
    per_person: {periods: 10}
    epsilon: 1
"""


def read(*changes: tuple[str, str], unit: str = "person") -> Policy:
    text = POLICY.replace("UNIT", unit)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return Policy.parse(text, path="p.yaml")


WRONG = [
    (
        ("epsilon: 1\n", "epsilon: 9\n"),
        "p.yaml:16:14: releases.daily.epsilon must be at most the budget's, 4.",
    ),
    (
        ("period: day", "period: fortnight"),
        "p.yaml:11:13: releases.daily.period must be hour or day or week or month",
    ),
    (
        ("from: 2024-01-01", "from: soon"),
        "p.yaml:12:11: releases.daily.from must be a date such as 2025-01-01, not soon.",
    ),
    (
        ("periods: 366", "periods: 0"),
        "p.yaml:13:14: releases.daily.periods must be a whole number, 1 or more, not 0.",
    ),
    (
        ("periods: 366", "periods: 5"),
        "p.yaml:14:34: releases.daily.publish: a window of 7 is longer than the 5 periods",
    ),
    (
        ("cumulative, 7", "cumulative, 1"),
        "p.yaml:14:34: releases.daily.publish must be a list of daily",
    ),
    (("cumulative, 7", "daily"), "p.yaml:14:14: releases.daily.publish must be a list of daily"),
    (("{periods: 10}", "{}"), "p.yaml:15:17: releases.daily.per_person needs either periods"),
    (
        ("{periods: 10}", "{periods: 10, every: 3}"),
        "p.yaml:15:17: releases.daily.per_person needs either periods",
    ),
    (("{periods: 10}", "{days: 10}"), "p.yaml:15:18: releases.daily.per_person has no key days."),
    (
        ("    per_person: {periods: 10}\n", ""),
        "p.yaml:9:5: releases.daily needs per_person: in how many periods one person",
    ),
    (("time: day", "tiem: day"), "p.yaml:10:5: releases.daily has no key tiem. Did you mean time?"),
    (
        ("period: day\n    from: 2024-01-01", "period: month\n    from: 2024-01-02"),
        "p.yaml:12:11: releases.daily.from must be the",
    ),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[message[7:40] for _, message in WRONG])
def test_what_is_wrong_is_said_with_its_place(change: tuple[str, str], message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        read(change)
    assert any(line.startswith(message) for line in str(caught.value).splitlines()), str(
        caught.value
    )


def test_all_mistakes_at_once() -> None:
    with pytest.raises(PolicyError) as caught:
        read(
            ("epsilon: 1\n", "epsilon: -1\n"),
            ("period: day", "period: x"),
            ("from: 2024-01-01", "from: y"),
        )
    assert [line.split(":")[1] for line in str(caught.value).splitlines()] == ["11", "12", "16"]


def test_an_unknown_horizon_needs_a_number_of_periods_a_person() -> None:
    assert read(("periods: 366", "periods: unknown")).releases["daily"].periods is None
    with pytest.raises(PolicyError, match="the cost has no end"):
        read(("periods: 366", "periods: unknown"), ("{periods: 10}", "{every: 7}"))


def test_where_the_unit_is_the_event_a_person_is_one_event() -> None:
    schedule = read(("    per_person: {periods: 10}\n", ""), unit="event").releases["daily"]
    assert (schedule.per_person.periods, schedule.per_person.rows) == (1, 1)


def test_periods_begin_and_fall_due() -> None:
    schedule = read().releases["daily"]
    assert schedule.begins(31) == datetime(2024, 2, 1)
    assert schedule.due(datetime(2024, 1, 1)) == 0
    assert schedule.due(datetime(2024, 1, 2)) == 1
    assert schedule.due(datetime(2024, 1, 2, 23)) == 1
    assert schedule.due(datetime(2030, 1, 1)) == 366
    monthly = read(("period: day", "period: month"), ("periods: 366", "periods: 12")).releases[
        "daily"
    ]
    assert [monthly.begins(index).date() for index in (0, 1, 11, 12)] == [
        date(2024, 1, 1),
        date(2024, 2, 1),
        date(2024, 12, 1),
        date(2025, 1, 1),
    ]
    weekly = read(("period: day", "period: week"), ("periods: 366", "periods: 52")).releases[
        "daily"
    ]
    assert weekly.due(datetime(2024, 1, 15)) == 2
    hourly = read(("period: day", "period: hour")).releases["daily"]
    assert hourly.due(datetime(2024, 1, 1, 5, 30)) == 5
