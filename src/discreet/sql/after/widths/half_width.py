"""Half-widths of forms that are linear in the noise of several blocks: exact, and known before
paying (S11).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from discreet.mechanisms import combined
from discreet.mechanisms.combined import CONFIDENCE, DrawSum
from discreet.mechanisms.discrete_gaussian import DiscreteGaussian
from discreet.mechanisms.running import Running
from discreet.mechanisms.tails.simulate import Noise, part
from discreet.sql.after.estimates import Linear
from discreet.sql.after.widths.linear import Form
from discreet.sql.plan.block import Block, Shared
from discreet.sql.plan.picks import Pick
from discreet.sql.plan.plan import Plan, TotalOf


def half_width(
    form: Form,
    blocks: Sequence[Block],
    noise: Sequence[Mapping[str, Noise]],
    *,
    assuming: int | None,
) -> float | None:
    """Return the half-width of a form, from the noise of each block; None if it depends on more
    than the noise.
    """
    numbers = {number: factor for number, factor in form.factors.items() if factor}
    if len(numbers) == 1:
        ((number, factor),) = numbers.items()
        aggregate = blocks[number.block].aggregates[number.estimate]
        if isinstance(aggregate, Pick):
            return None
        statistic, estimate = aggregate
        width = estimate.margin(noise[number.block][statistic.id], assuming=assuming)
        return None if width is None else float(abs(factor)) * width + float(form.slack)
    # of each row of a noisy table, the factors of its draws
    rows: dict[tuple[tuple[str, ...], int], dict[tuple[str, int], Fraction]] = {}
    slack = form.slack
    for number, factor in numbers.items():
        aggregate = blocks[number.block].aggregates[number.estimate]
        if isinstance(aggregate, Pick) or not isinstance(aggregate[1], Linear):
            return None
        statistic = aggregate[0]
        estimate = aggregate[1]
        if estimate.rounds:
            slack += abs(factor) * estimate.step / 2
        draws = rows.setdefault((number.row, _first_alike(blocks, number.block)), {})
        for place, own in enumerate(estimate.factors):
            draw = statistic.id, place
            draws[draw] = draws.get(draw, Fraction(0)) + factor * own * estimate.step
    return combined.as_float(_of_rows(rows, blocks, noise) + slack)


def of_totals(total: TotalOf, blocks: Sequence[Block], noise: Mapping[str, Noise]) -> float | None:
    """Return the largest half-width of a running total; None if it is no sum of noise alone."""
    aggregate = blocks[total.block].aggregates[total.estimate]
    if isinstance(aggregate, Pick) or not isinstance(aggregate[1], Linear):
        return None
    statistic = aggregate[0]
    estimate = aggregate[1]
    own = noise[statistic.id]
    if isinstance(own, Running):
        return float(own.of_totals(estimate.factors).max() * estimate.step)
    sums = (replace(part(own, factor), draws=total.periods) for factor in estimate.factors)
    rounding = Fraction(total.periods, 2) if estimate.rounds else 0
    return combined.as_float((combined.half_width(sums) + rounding) * estimate.step)


def instead(plan: Plan, noise: Sequence[Mapping[str, Noise]]) -> dict[str, tuple[float, float]]:
    """Return the half-widths of the columns whose noise is on running totals: the largest one, and
    the one that noise on each number would give.
    """
    widths = {}
    for column in plan.columns:
        total = column.total_of
        place = column.estimate if total is None else (total.block, total.estimate)
        if place is None:
            continue
        aggregate = plan.blocks[place[0]].aggregates[place[1]]
        if isinstance(aggregate, Pick):
            continue
        statistic, estimate = aggregate
        here = noise[place[0]]
        own = here[statistic.id]
        if statistic.totals is None or not isinstance(own, Running):
            continue
        # Noise on each number with the same loss, l2² / 2 sigma², has this sigma.
        share = statistic.sensitivity.l2_squared / statistic.totals.l2_squared
        sigma = Fraction(float(own.noise.spread) * math.sqrt(share))
        apart = {**here, statistic.id: DiscreteGaussian(sigma=sigma, l2_squared=Fraction(1))}
        if total is None:
            now = estimate.margin(own, assuming=None)
            then = estimate.margin(apart[statistic.id], assuming=None)
        else:
            now = of_totals(total, plan.blocks, here)
            then = of_totals(total, plan.blocks, apart)
        if now is not None and then is not None:
            widths[column.name] = (now, then)
    return widths


def _of_rows(
    rows: Mapping[tuple[tuple[str, ...], int], Mapping[tuple[str, int], Fraction]],
    blocks: Sequence[Block],
    noise: Sequence[Mapping[str, Noise]],
) -> Fraction:
    """Return the half-width of a sum over rows of noisy tables.

    Rows of tables with separate measurements have independent noise. Otherwise rows may share some
    noise or none. Two rows of one table are the same row or share nothing: take the wider of both
    cases. In all other cases add up the half-widths of the n rows at 1 - 5 % / n: all of them hold
    together with 95 %, whatever the rows share.
    """
    parts = {place: _parts(noise[place[1]], draws) for place, draws in rows.items()}
    sources = [_source(blocks, block) for _, block in rows]
    apart = combined.half_width(draw for row in parts.values() for draw in row)
    if len(set(sources)) == len(sources):
        return apart
    if len(rows) == 2 and len({block for _, block in rows}) == 1:
        (_, block), _ = rows
        a, b = rows.values()
        same = {draw: a.get(draw, Fraction(0)) + b.get(draw, Fraction(0)) for draw in {**a, **b}}
        return max(apart, combined.half_width(_parts(noise[block], same)))
    sure = 1 - (1 - CONFIDENCE) / len(rows)
    return sum((combined.half_width(row, sure) for row in parts.values()), Fraction(0))


def _parts(noise: Mapping[str, Noise], draws: Mapping[tuple[str, int], Fraction]) -> list[DrawSum]:
    return [part(noise[statistic], factor) for (statistic, _), factor in draws.items()]


def _first_alike(blocks: Sequence[Block], block: int) -> int:
    """Return the first block that reads the same rows."""
    kind = blocks[block].kind
    return kind.block if isinstance(kind, Shared) else block


def _source(blocks: Sequence[Block], block: int) -> int:
    """Return the first of the blocks that share draws with a block, directly or through others.

    Blocks share draws if they share a statistic: two blocks with the same statistic measure it
    once, and a block that is rolled up has the statistics of the finer one.
    """
    group = {block}
    while True:
        shared = {statistic.id for index in group for statistic in blocks[index].statistics}
        more = {
            index
            for index, other in enumerate(blocks)
            if any(statistic.id in shared for statistic in other.statistics)
        }
        if more <= group:
            return min(group)
        group |= more
