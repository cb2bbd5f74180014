"""A schedule's question, planned: what is read each period, what gets noise, what its columns are
made of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction

import numpy as np
import pyarrow as pa
from sqlglot import exp

from discreet.errors import PolicyError, Rejected
from discreet.policy.domain import Dates, Timestamps
from discreet.policy.policy import Policy, Table
from discreet.policy.schedule import Schedule
from discreet.sql.after.estimates import Linear
from discreet.sql.after.naming import aggregate_number, key_number
from discreet.sql.analyze import plan
from discreet.sql.check.counts import PersonCounts
from discreet.sql.check.norms import only_adds
from discreet.sql.plan import identity
from discreet.sql.plan.block import Block
from discreet.sql.plan.block import Statistic as Measured
from discreet.sql.plan.keys import Key
from discreet.sql.plan.picks import Pick
from discreet.sql.plan.plan import Plan
from discreet.sql.plan.prove import prove
from discreet.sql.plan.sensitivity import Sensitivity
from discreet.sql.text.parse import parse, refuse_depth


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticColumn:
    """A column of numbers: factors of the parts of one measurement, in units of `step`."""

    name: str
    measurement: int
    factors: tuple[Fraction, ...]
    step: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodQuestion:
    """The measurements of a release in each period. `own` are the sensitivities of one person's
    rows of one period.

    `signed` says which measurements a person can make smaller: there two histories of one person
    may add up.
    """

    table: Table
    block: Block
    own: tuple[Sensitivity, ...]
    signed: tuple[bool, ...]
    keys: Mapping[str, pa.Array]  # key columns of the whole grid
    statistics: tuple[StatisticColumn, ...]
    canonical: str


def question(
    schedule: Schedule,
    policy: Policy,
    public: Mapping[str, pa.Table],
    evaluate: Callable[[str], pa.Table],
) -> PeriodQuestion:
    """Plan the question of a schedule, or tell what is wrong with it and where in the policy."""
    try:
        table = _find_dated_table(schedule, policy)
        alone = replace(
            policy,
            neighbors="add_remove",
            tables={
                **policy.tables,
                table.name: replace(table, max_rows=schedule.per_person.rows, max_groups=None),
            },
        )
        with refuse_depth():
            found = plan(schedule.question, alone, public, evaluate)
        prove(found, alone)
        return _check(found, alone, table)
    except Rejected as error:
        message = f"releases.{schedule.name}.question: {error.reason} {error.hint}"
        raise PolicyError(
            policy.problem("releases", schedule.name, "question", message=message)
        ) from None


def _find_dated_table(schedule: Schedule, policy: Policy) -> Table:
    """Return the one private table that the question reads; a column of it dates its rows."""
    tree = parse(schedule.question, limit=policy.limits.statement)
    private = {name.lower(): table for name, table in policy.tables.items() if not table.public}
    read = [
        private[each.name.lower()]
        for each in tree.find_all(exp.Table)
        if each.name.lower() in private
    ]
    if len(read) != 1:
        # Privacy: rows of a second private table, or of a second look at this one, would be of no
        # period, and a person could count in every one of them.
        raise Rejected(
            "a release reads one private table, once, and public ones.",
            hint="Leave joins and unions of private rows out.",
        )
    column = read[0].columns.get(schedule.time)
    domain = None if column is None else column.domain
    if not isinstance(domain, Dates | Timestamps):
        message = f"releases.{schedule.name}.time must be a date or timestamp of {read[0].name}, not {schedule.time}."
        raise PolicyError(policy.problem("releases", schedule.name, "time", message=message))
    _check_horizon(schedule, policy, domain)
    return read[0]


def _check_horizon(schedule: Schedule, policy: Policy, domain: Dates | Timestamps) -> None:
    """Refuse a horizon beyond the dates' domain: clamping would count all later rows in one
    period.
    """
    low, high = (datetime(each.year, each.month, each.day) for each in (domain.lo, domain.hi))
    ends = schedule.begins(schedule.periods - 1 if schedule.periods else 0)
    if schedule.begins(0) < low or ends > high:
        message = (
            f"releases.{schedule.name} runs from {schedule.start} and its last period begins on {ends.date()}, but "
            f"{schedule.time} is declared from {low.date()} to {high.date()}. Widen the one or shorten the other."
        )
        raise PolicyError(policy.problem("releases", schedule.name, "from", message=message))


def _check(found: Plan, alone: Policy, table: Table) -> PeriodQuestion:
    hint = "Write SELECT keys, COUNT(*), SUM(x) FROM one table WHERE ... GROUP BY keys."
    if len(found.blocks) != 1 or found.listed is None or found.selected:
        raise Rejected(
            "a release lists counts and sums by public keys, and computes nothing from them.",
            hint=hint,
        )
    block = found.blocks[0]
    if block.unknown or block.picks:
        raise Rejected("a release needs public keys, and counts or sums.", hint=hint)
    keys, statistics = {}, []
    shown = found.listed[: len(found.columns)]  # behind the columns come their margins
    grid = np.unravel_index(np.arange(block.cells), block.sizes) if block.sizes else ()
    for column, place in zip(found.columns, shown, strict=True):
        number = key_number(place)
        if number is not None:
            key = block.keys[number]
            assert isinstance(key, Key)
            keys[column.name] = key.labels().take(pa.array(grid[number]))
            continue
        number = aggregate_number(place)
        assert number is not None  # what is listed is a key or an aggregate
        aggregate = block.aggregates[number]
        if isinstance(aggregate, Pick) or not isinstance(aggregate[1], Linear):
            raise Rejected(
                f"{column.name} is neither a count nor a sum.",
                hint="Publish SUM and COUNT; divide afterwards.",
            )
        statistic = aggregate[0]
        estimate = aggregate[1]
        statistics.append(
            StatisticColumn(
                name=column.name,
                measurement=block.statistics.index(statistic),
                factors=estimate.factors,
                step=estimate.step,
            )
        )
    measured = block.own_statistics
    names = [*keys, *(each.name for each in statistics)]
    if len(set(names) | _TAKEN) < len(names) + len(_TAKEN):
        raise Rejected(
            f"columns need different names, none of them {', '.join(sorted(_TAKEN))}.",
            hint="Rename with AS.",
        )
    return PeriodQuestion(
        table=table,
        block=block,
        own=tuple(replace(each.sensitivity, l0=_touched(each, block, alone)) for each in measured),
        signed=tuple(not only_adds(block.sums, each.over(block.readings)) for each in measured),
        keys=keys,
        statistics=tuple(statistics),
        canonical=identity.question(found),
    )


_TAKEN = {"period", "publish", "statistic", "value", "margin"}


def _touched(statistic: Measured, block: Block, policy: Policy) -> int:
    """Return the most numbers that one person can change: each row is in one group."""
    rows = PersonCounts(policy=policy).rows(block.source, block.conditions)
    return min(rows, block.cells) * len(statistic.forms)
