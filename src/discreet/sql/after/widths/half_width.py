"""Compute the half-width of a form that is linear in the noise of several blocks, exactly and
before paying (S11).
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
    """Return the half-width of a form with the noise of each block; None where it depends on more
    than that.
    """
    numbers = {number: factor for number, factor in form.factors.items() if factor}
    if len(numbers) == 1:
        ((number, factor),) = numbers.items()
        aggregate = blocks[number.block].aggregates[number.estimate]
        if isinstance(aggregate, Pick):
            return None
        statistic, estimate = aggregate
        known = estimate.margin(noise[number.block][statistic.id], assuming=assuming)
        return None if known is None else float(abs(factor)) * known + float(form.slack)
    rows: dict[tuple[tuple[str, ...], int], dict[tuple[str, int], Fraction]] = {}
    slack = form.slack
    for number, factor in numbers.items():
        aggregate = blocks[number.block].aggregates[number.estimate]
        if isinstance(aggregate, Pick) or not isinstance(aggregate[1], Linear):
            return None
        statistic, estimate = aggregate[0], aggregate[1]
        if estimate.rounds:
            slack += abs(factor) * estimate.step / 2
        draws = rows.setdefault((number.row, _same(blocks, number.block)), {})
        for place, each in enumerate(estimate.factors):
            draw = statistic.id, place
            draws[draw] = draws.get(draw, Fraction(0)) + factor * each * estimate.step
    return combined.as_float(_together(rows, blocks, noise) + slack)


def of_totals(total: TotalOf, blocks: Sequence[Block], noise: Mapping[str, Noise]) -> float | None:
    """Return the largest half-width of a running total; None where it is not a sum of noise
    alone.
    """
    aggregate = blocks[total.block].aggregates[total.estimate]
    if isinstance(aggregate, Pick) or not isinstance(aggregate[1], Linear):
        return None
    statistic, estimate = aggregate[0], aggregate[1]
    own = noise[statistic.id]
    if isinstance(own, Running):
        return float(own.of_totals(estimate.factors).max() * estimate.step)
    apart = (replace(part(own, each), draws=total.periods) for each in estimate.factors)
    rounding = Fraction(total.periods, 2) if estimate.rounds else 0
    return combined.as_float((combined.half_width(apart) + rounding) * estimate.step)


def instead(plan: Plan, noise: Sequence[Mapping[str, Noise]]) -> dict[str, tuple[float, float]]:
    """Return, by column with noise on running totals, its largest half-width and what noise on each
    number would give.
    """
    found = {}
    for column in plan.columns:
        shown = column.total_of
        place = column.estimate if shown is None else (shown.block, shown.estimate)
        aggregate = None if place is None else plan.blocks[place[0]].aggregates[place[1]]
        if place is None or aggregate is None or isinstance(aggregate, Pick):
            continue
        statistic, estimate = aggregate
        here = noise[place[0]]
        own = here[statistic.id]
        if statistic.totals is None or not isinstance(own, Running):
            continue
        # the same loss: l2² / 2 sigma²
        share = statistic.sensitivity.l2_squared / statistic.totals.l2_squared
        sigma = Fraction(float(own.noise.spread) * math.sqrt(share))
        apart = {**here, statistic.id: DiscreteGaussian(sigma=sigma, l2_squared=Fraction(1))}
        told = [
            estimate.margin(each[statistic.id], assuming=None)
            if shown is None
            else of_totals(shown, plan.blocks, each)
            for each in (here, apart)
        ]
        if told[0] is not None and told[1] is not None:
            found[column.name] = (told[0], told[1])
    return found


def _together(
    rows: Mapping[tuple[tuple[str, ...], int], Mapping[tuple[str, int], Fraction]],
    blocks: Sequence[Block],
    noise: Sequence[Mapping[str, Noise]],
) -> Fraction:
    """Return rows of tables that were measured apart have noise of their own. Others may share some
    of it or none.

    Two rows of one table are the same row or have nothing in common: the wider of both. Of rows in
    other relations each is within its half-width at 1 - 5 % / n, but for 5 % in all, whatever they
    share.
    """
    parts = {place: _parts(noise[place[1]], draws) for place, draws in rows.items()}
    sources = [_source(blocks, block) for _, block in rows]
    apart = combined.half_width(each for row in parts.values() for each in row)
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


def _same(blocks: Sequence[Block], block: int) -> int:
    """Return the first block that reads the same."""
    kind = blocks[block].kind
    return kind.block if isinstance(kind, Shared) else block


def _source(blocks: Sequence[Block], block: int) -> int:
    """Return the first of the blocks whose draws are in this one's numbers, or in those of one that
    has some of them too.
    """
    found = {block}
    while True:  # a statistic that two blocks have is measured once, and one that is rolled up is the other's
        names = {each.id for index in found for each in blocks[index].statistics}
        more = {
            index
            for index, each in enumerate(blocks)
            if names & {one.id for one in each.statistics}
        }
        if more <= found:
            return min(found)
        found |= more
