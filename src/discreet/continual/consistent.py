"""Revise published values so that they agree: no count is below zero, and every total is the sum of
its periods.

This is post-processing of released numbers. A revision uses all periods published so far, so it
changes with each new period; the published values do not. The margins are those of the published
values, before the revision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from scipy.optimize import lsq_linear

from discreet.continual.design import Design
from discreet.continual.question import PeriodQuestion
from discreet.continual.strategies.dense import sum_rows
from discreet.continual.strategies.strategy import Floats
from discreet.errors import UsageError
from discreet.policy.schedule import Schedule

MOST_PERIODS = 2048


def revise(
    schedule: Schedule,
    asked: PeriodQuestion,
    design: Design,
    noisy: tuple[Any, ...],
    table: pa.Table,
) -> pa.Table:
    """Return the table with revised values."""
    periods = len(noisy)
    if not 0 < periods <= MOST_PERIODS:
        raise UsageError(
            f"Values can be revised once there are some, and up to {MOST_PERIODS} periods."
        )
    long = design.covering(periods)
    weights = [
        1.0 / long.strategy.deviations(publish)[:periods] for publish in ("daily", "cumulative")
    ]
    found: dict[tuple[str, str], Floats] = {}
    decoded = [
        _decode(long, [each[index] for each in noisy]) for index in range(len(design.mechanisms))
    ]
    for each in asked.statistics:
        factors = np.array([float(factor * each.step) for factor in each.factors])
        daily, totals = (_combine(part, factors) for part in decoded[each.measurement])
        rises = not asked.signed[each.measurement] and min(factors) >= 0
        lowest = 0.0 if rises else -np.inf
        cells = [_reconcile(*pair, weights, lowest) for pair in zip(daily.T, totals.T, strict=True)]
        agreed = np.stack(cells, axis=1)
        for publish in schedule.publish:
            found[each.name, str(publish)] = sum_rows(agreed, publish)
    return table.set_column(
        table.column_names.index("value"),
        "value",
        pa.array(_in_order(table, asked, schedule, found)),
    )


def _decode(design: Design, rows: list[Any]) -> tuple[Floats, Floats]:
    decoder = design.strategy.decoder()
    pairs = [decoder.add(np.array(each, dtype=np.float64)) for each in rows]
    return np.stack([daily for daily, _ in pairs]), np.stack([total for _, total in pairs])


def _combine(part: Floats, factors: Floats) -> Floats:
    """Return the sums of factors times forms: from periods by (forms, cells) to periods by
    cells.
    """
    return np.asarray(np.einsum("f,pfc->pc", factors, part.reshape(len(part), len(factors), -1)))


def _reconcile(daily: Any, totals: Any, weights: list[Floats], lowest: float) -> Floats:
    """Return the values of single periods that are nearest to the estimates of periods and totals,
    weighted by their deviations, and not below `lowest`.
    """
    identity = np.eye(len(daily))
    matrix = np.vstack(
        [weights[0][:, None] * identity, weights[1][:, None] * np.tril(np.ones_like(identity))]
    )
    wanted = np.concatenate([weights[0] * daily, weights[1] * totals])
    return np.asarray(
        lsq_linear(
            matrix, wanted, bounds=(lowest, np.inf), method="bvls" if len(daily) < 50 else "trf"
        ).x
    )


def _in_order(
    table: pa.Table, asked: PeriodQuestion, schedule: Schedule, found: dict[tuple[str, str], Floats]
) -> list[float]:
    """Return the values in the order of the table's rows, in which the cells of one period and kind
    of sum follow one another.
    """
    begins = {}
    for period in range(len(next(iter(found.values())))):
        moment = schedule.begins(period)
        begins[moment if schedule.period == "hour" else moment.date()] = period
    columns = (table.column(name).to_pylist() for name in ("period", "statistic", "publish"))
    cells = asked.block.cells
    return [
        float(found[statistic, publish][begins[period], row % cells])
        for row, (period, statistic, publish) in enumerate(zip(*columns, strict=True))
    ]
