"""Find the margins of numbers computed from several noisy rows, by computing them again on changed
noisy numbers (S11).

For a column that is linear in the noise, move each noisy number alone: this gives the slopes, and
they give the half-width of the sum of all draws. For a quotient and the like, also redraw the
noise, as `finish` does for columns of one row. All of it uses released numbers, so it costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet import arrow
from discreet.errors import EngineFailure
from discreet.mechanisms.running import UNIT, Running
from discreet.mechanisms.tails.simulate import Noise, part, redrawn, straight_half_widths
from discreet.sql.after.estimates import Linear
from discreet.sql.after.finish import (
    Noisy,
    Run,
    decode_picks,
    half_widths_from_replicas,
    keys_of,
    roll_up_numbers,
)
from discreet.sql.after.naming import aggregate_name, key_name, table_name
from discreet.sql.after.widths.again import DRAWS, Again, NoisyKinds, value
from discreet.sql.after.widths.half_width import of_totals
from discreet.sql.after.widths.kinds import DRAW, Kind
from discreet.sql.aggregates.mean import Mean
from discreet.sql.plan.block import Block, RolledUp, Shared
from discreet.sql.plan.block import Measured as BlockMeasured
from discreet.sql.plan.picks import Pick
from discreet.sql.plan.plan import Plan

Floats = npt.NDArray[np.float64]
MOST_MOVED = 1 << 20  # the most rows of changed tables in memory at a time
MOST_ROWS = 5_000  # the most rows of an answer whose margins we find so
# the fewest and the most redraws; each noise is subtracted once and added once
_PAIRS = (60, 300)
# 95 % of a sum lie within this many deviations: of normal numbers; with Laplace numbers among them
_NORMAL = 1.96
_WIDEST = 2.1185
# The factor for a deviation from a few hundred redraws: the true one is larger once in 10^5.
_UNSURE = 1.25


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moves:
    """The changes of the noisy numbers: subtract redrawn noise, then add it; then move one number
    down, then up.
    """

    noises: tuple[Noise, ...]  # the noise of each draw
    drawn: Sequence[Any]  # the redraws of each draw
    moved: Sequence[Any]  # how far the redraws move each number
    running: tuple[tuple[int, int, Running], ...]  # ranges of numbers that share their draws
    steps: npt.NDArray[
        Any
    ]  # how far each number is moved alone; Python's integers if they are wide
    alone: bool  # whether numbers are also moved alone

    @property
    def pairs(self) -> int:
        return len(self.drawn[0])

    @property
    def changes(self) -> int:
        """Return the number of changes; the first one changes nothing."""
        return 1 + 2 * self.pairs + (2 * len(self.noises) if self.alone else 0)

    def of(self, begin: int, end: int) -> Any:
        """Return the changes of a range of numbers, with a row for each change."""
        size = end - begin
        moved = np.array([self.moved[place] for place in range(begin, end)])
        off = moved.T.reshape(self.pairs, size)
        parts = [np.zeros((1, size), dtype=off.dtype), -off, off]
        if self.alone:
            one = np.zeros((len(self.noises), size), dtype=self.steps.dtype)
            one[np.arange(begin, end), np.arange(size)] = self.steps[begin:end]
            parts += [-one, one]
        return np.concatenate(parts)

    def by_draws(self, slopes: Floats) -> tuple[Floats, Floats]:
        """Return the slopes by draw, from those by number, and how far rounding moves each
        column.
        """
        by_draw = slopes.copy()
        slack = np.zeros(slopes.shape[1])
        for begin, end, noise in self.running:
            by_draw[begin:end], more = noise.by_draws(slopes[begin:end])
            slack += more
        return by_draw, slack


def describe_noisy_table(block: Block) -> NoisyKinds:
    """Return how a block's noisy table depends on noise."""
    kinds = {key_name(index): Kind.PUBLIC for index in range(len(block.parts))}
    for number, aggregate in block.aggregates.items():
        kind = Kind.UNKNOWN
        if not isinstance(aggregate, Pick):
            _, estimate = aggregate
            kind = Kind.SMOOTH
            if isinstance(estimate, Linear):
                kind = Kind.STRAIGHT
            elif type(estimate) is Mean:
                kind = Kind.RATIONAL
        kinds[aggregate_name(number)] = kind
    return NoisyKinds(kinds=kinds, selected=bool(block.unknown))


def joint_margins(
    plan: Plan,
    noisy: Sequence[Noisy],
    noise: Sequence[Mapping[str, Noise]],
    answer: pa.Table,
    public: Mapping[str, pa.Table],
    run: Run,
) -> dict[int, pa.Array]:
    """Return half-widths of the columns that `plan.again` wants, by their place in the answer."""
    again = plan.again
    if again is None or not 0 < answer.num_rows <= MOST_ROWS:
        return {}
    moves = _moves(plan, noisy, noise)
    if moves is None:
        return {}
    try:
        result = run(again.sql, _tables(plan, noisy, moves, again.summed) | dict(public))
    except EngineFailure:
        return {}
    place = _match_rows(result, answer, again)
    margins = {}
    for column in again.wanted:
        values = _spread(result, value(column), place, changes=moves.changes, rows=answer.num_rows)
        widths = _widths(values, again.kinds[column], moves) + again.slacks[column]
        if again.summed:  # the margin is that of the number without clamping
            widths += np.abs(arrow.numbers(answer.column(column).cast(pa.float64())) - values[0])
        total = plan.columns[column].total_of
        if total is not None:
            # the exact half-width of the noisiest total
            most = of_totals(total, plan.blocks, noise[total.block])
            widths = np.minimum(widths, math.inf if most is None else most)
        margins[column] = arrow.array(widths, mask=~np.isfinite(widths))
    return margins


def _own(plan: Plan) -> list[int]:
    """Return the blocks whose numbers have noise of their own."""
    return [
        index for index, block in enumerate(plan.blocks) if isinstance(block.kind, BlockMeasured)
    ]


def _moves(
    plan: Plan, noisy: Sequence[Noisy], noise: Sequence[Mapping[str, Noise]]
) -> _Moves | None:
    """Return the changes; None if there are too many rows to change them often enough."""
    noises = list[Noise]()
    running = list[tuple[int, int, Running]]()
    for index in _own(plan):
        for statistic, components in noisy[index].numbers.items():
            for values in components:
                own = noise[index][statistic]
                begin = len(noises)
                if isinstance(own, Running):
                    running.append((begin, begin + len(values), own))
                    own = own.noise
                noises += [own] * len(values)
    rows = sum(_rows(block, noisy[index]) for index, block in enumerate(plan.blocks))
    pairs = min(_PAIRS[1], MOST_MOVED // (2 * max(rows, 1)))
    if not noises or pairs < _PAIRS[0]:
        return None
    drawn = redrawn(noises, pairs)
    moved = list(drawn)
    steps = [max(1, round(part(own).spread)) for own in noises]
    for begin, end, totals in running:
        draws = np.array(drawn[begin:end], dtype=np.float64)
        moved[begin:end] = _integers(totals.on_numbers(draws))
        steps[begin:end] = [max(1, step // UNIT) for step in steps[begin:end]]
    return _Moves(
        noises=tuple(noises),
        drawn=drawn,
        moved=moved,
        running=tuple(running),
        steps=np.array(steps, dtype=object if max(steps) >= 2**62 else np.int64),
        alone=2 * len(noises) * rows <= MOST_MOVED,
    )


def _integers(values: Floats) -> list[Any]:
    """Return rows of integers, of Python's own if they do not fit into 64 bits."""
    if np.abs(values).max(initial=0.0) < 2.0**62:
        return list(values.astype(np.int64))
    return [np.array([int(value) for value in row], dtype=object) for row in values]


def _rows(block: Block, noisy: Noisy) -> int:
    """Return the number of rows of a block's noisy table."""
    survivors = 1 if noisy.survivors is None else noisy.survivors.num_rows
    return math.prod(block.sizes) * survivors


def _tables(plan: Plan, noisy: Sequence[Noisy], moves: _Moves, summed: bool) -> dict[str, pa.Table]:
    """Return the noisy tables with the rows of every change."""
    # the numbers of a block by statistic, change by change
    own: dict[int, list[dict[str, tuple[Any, ...]]]] = {}
    begin = 0
    for index in _own(plan):
        changes: list[dict[str, tuple[Any, ...]]] = [{} for _ in range(moves.changes)]
        for statistic, components in noisy[index].numbers.items():
            parts = []
            for values in components:
                parts.append(np.asarray(values)[None, :] + moves.of(begin, begin + len(values)))
                begin += len(values)
            for place, numbers in enumerate(changes):
                numbers[statistic] = tuple(part[place] for part in parts)
        own[index] = changes
    for index, block in enumerate(plan.blocks):
        kind = block.kind
        if isinstance(kind, RolledUp):
            finer = plan.blocks[kind.block].sizes
            own[index] = [
                roll_up_numbers(kind, block.sizes, finer, numbers) for numbers in own[kind.block]
            ]
    tables = {DRAWS: pa.table({DRAW: arrow.array(np.arange(moves.changes))})}
    for index, block in enumerate(plan.blocks):
        if block.aggregates:
            first = block.kind.block if isinstance(block.kind, Shared) else index
            tables[table_name(index)] = _change_numbers(
                block, noisy[index], own[first], summed=summed
            )
    return tables


def _change_numbers(
    block: Block, noisy: Noisy, numbers: Sequence[Mapping[str, tuple[Any, ...]]], *, summed: bool
) -> pa.Table:
    """Return a block's noisy table with the rows of every change.

    Means that are added up are not clamped: the true ones need no clamping, and a sum of clamped
    ones is off to one side. A mean that noise hides makes the whole sum NaN.
    """
    rows = _rows(block, noisy)
    changes = len(numbers)
    again = arrow.array(np.tile(np.arange(rows), changes))
    columns = {name: values.take(again) for name, values in keys_of(block, noisy.survivors).items()}
    for number, aggregate in block.aggregates.items():
        # a pick does not change: every column that uses it is of kind UNKNOWN
        if isinstance(aggregate, Pick):
            picks = decode_picks(aggregate, noisy.picks[aggregate.id])
            columns[aggregate_name(number)] = picks.take(again)
            continue
        statistic, estimate = aggregate
        components = []
        for place in range(len(statistic.forms)):
            parts = [change[statistic.id][place] for change in numbers]
            components.append(np.concatenate(parts))
        rows_of_changes = tuple(components)
        if summed and type(estimate) is Mean:
            values = arrow.array(estimate.quotients(rows_of_changes))
        else:
            values = estimate.values(rows_of_changes)
        columns[aggregate_name(number)] = values
    columns[DRAW] = arrow.array(np.repeat(np.arange(changes), rows))
    return pa.table(columns)


# --- match rows -----------------------------------------------------------------------------------


def _match_rows(result: pa.Table, answer: pa.Table, again: Again) -> npt.NDArray[np.int64]:
    """Return the row of the answer for each row of the result, by its public columns; -1 if there
    is none, or more than one.
    """
    code = np.zeros(answer.num_rows + result.num_rows, dtype=np.int64)
    for index, kind in enumerate(again.kinds):
        if kind is not Kind.PUBLIC:
            continue
        own = answer.column(index).combine_chunks()
        others = result.column(index).combine_chunks().cast(own.type, safe=False)
        labels = pa.concat_arrays([own, others]).dictionary_encode(null_encoding="encode")
        place = arrow.numbers(labels.indices).astype(np.int64)
        _, code = np.unique(code * (place.max(initial=0) + 1) + place, return_inverse=True)
    rows = code[: answer.num_rows]
    changed = code[answer.num_rows :]
    here = np.full(int(code.max(initial=0)) + 1, -1, dtype=np.int64)
    here[rows] = np.arange(answer.num_rows)
    shared = np.bincount(rows, minlength=len(here)) > 1
    here[shared] = -1
    return here[changed]


def _spread(
    result: pa.Table, name: str, place: npt.NDArray[np.int64], *, changes: int, rows: int
) -> Floats:
    """Return a column's values by change and row of the answer; NaN if there is none, or more than
    one.
    """
    values = np.full((changes, rows), np.nan)
    draw = arrow.numbers(result.column(DRAW)).astype(np.int64)
    number = arrow.numbers(result.column(name))
    matches = place >= 0
    at = draw[matches] * rows + place[matches]
    values.ravel()[at] = number[matches]
    values.ravel()[np.bincount(at, minlength=changes * rows) > 1] = np.nan
    return values


# --- half-widths ----------------------------------------------------------------------------------


def _widths(values: Floats, kind: Kind, moves: _Moves) -> Floats:
    """Return half-widths from the values of each change; infinite or NaN where there are none."""
    pairs = moves.pairs
    count = len(moves.noises)
    center = values[0]
    both = values[1 : 1 + 2 * pairs].reshape(2, pairs, -1)
    if not moves.alone:
        with np.errstate(invalid="ignore", over="ignore"):
            distance = np.abs(both - center)
            spread = np.sqrt((distance**2).mean(axis=(0, 1)))
        normal = all(part(noise).gaussian for noise in set(moves.noises))
        farthest = distance.max(axis=(0, 1))
        wide = (_NORMAL if normal else _WIDEST) * spread
        return np.asarray(_UNSURE * (wide if kind is Kind.STRAIGHT else farthest))
    around = values[1 + 2 * pairs :].reshape(2, count, -1)
    with np.errstate(invalid="ignore", over="ignore"):
        slopes = (around[1] - around[0]) / (2 * moves.steps.astype(np.float64)[:, None])
        slopes, slack = moves.by_draws(slopes)
    if kind is Kind.STRAIGHT:
        return np.asarray(straight_half_widths(slopes, moves.noises) + slack)
    return np.asarray(half_widths_from_replicas(center, both, slopes, moves.noises, moves.drawn))
