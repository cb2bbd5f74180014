"""Find margins of numbers computed from several noisy rows, by computing them again on changed
numbers (S11).

A column that is linear in the noise is told by its slopes: each noisy number is moved by itself,
and the half-width of the sum of all draws follows. One that is a quotient or the like is computed
again with noise redrawn as well, as `finish` does for columns of one row. Everything is made from
released numbers, so it costs nothing.
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
from discreet.sql.plan.block import Block, RolledUp, Shared
from discreet.sql.plan.block import Measured as BlockMeasured
from discreet.sql.plan.picks import Pick
from discreet.sql.plan.plan import Plan

Floats = npt.NDArray[np.float64]
MOST_MOVED = 1 << 20  # rows of changed tables that are held at once
MOST_ROWS = 5_000  # of an answer whose margins are found so
_PAIRS = (60, 300)  # of redrawn noise, off and on: at least, at most
# deviations that hold 95 % of any sum of normal numbers, and of any with Laplace numbers in it
_NORMAL, _WIDEST = 1.96, 2.1185
_UNSURE = 1.25  # times a deviation that a few hundred redraws told: it is larger with 1 in 10^5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moves:
    """The changes tried on the noisy numbers: redrawn noise off, then on; then one number moved
    down, then up.
    """

    noises: tuple[Noise, ...]  # of each draw
    drawn: Sequence[Any]  # for each draw
    moved: Sequence[Any]  # for each number: how far its draws move it
    running: tuple[tuple[int, int, Running], ...]  # numbers, from and to, that share their draws
    steps: npt.NDArray[np.int64]
    alone: bool  # whether numbers are also moved one by one

    @property
    def pairs(self) -> int:
        return len(self.drawn[0])

    @property
    def changes(self) -> int:
        """Return the number of changes, with the first, in which nothing is changed."""
        return 1 + 2 * self.pairs + (2 * len(self.noises) if self.alone else 0)

    def of(self, begin: int, end: int) -> Any:
        """Return the changes of numbers from one place to another, a row for each change."""
        size = end - begin
        off = np.array([self.moved[place] for place in range(begin, end)]).T.reshape(
            self.pairs, size
        )
        parts = [np.zeros((1, size), dtype=off.dtype), -off, off]
        if self.alone:
            one = np.zeros((len(self.noises), size), dtype=np.int64)
            one[np.arange(begin, end), np.arange(size)] = self.steps[begin:end]
            parts += [-one, one]
        return np.concatenate(parts)

    def by_draws(self, slopes: Floats) -> tuple[Floats, Floats]:
        """Return slopes by draws, from those by numbers; and how far rounding takes each column."""
        found, slack = slopes.copy(), np.zeros(slopes.shape[1])
        for begin, end, noise in self.running:
            found[begin:end], more = noise.by_draws(slopes[begin:end])
            slack += more
        return found, slack


def describe_noisy_table(block: Block) -> NoisyKinds:
    """Return how a block's noisy table depends on noise."""
    kinds = {key_name(index): Kind.PUBLIC for index in range(len(block.parts))}
    for number, aggregate in block.aggregates.items():
        if isinstance(aggregate, Pick):
            kinds[aggregate_name(number)] = Kind.UNKNOWN
        else:
            kinds[aggregate_name(number)] = (
                Kind.STRAIGHT if isinstance(aggregate[1], Linear) else Kind.SMOOTH
            )
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
    asked = plan.again
    if asked is None or not 0 < answer.num_rows <= MOST_ROWS:
        return {}
    moves = _moves(plan, noisy, noise)
    if moves is None:
        return {}
    try:
        found = run(asked.sql, _tables(plan, noisy, moves) | dict(public))
    except EngineFailure:
        return {}
    place = _match_rows(found, answer, asked)
    result = {}
    for column in asked.wanted:
        values = _spread(found, value(column), place, changes=moves.changes, rows=answer.num_rows)
        widths = _widths(values, asked.kinds[column], moves) + asked.slacks[column]
        if (total := plan.columns[column].total_of) is not None:
            most = of_totals(
                total, plan.blocks, noise[total.block]
            )  # of all of them, known exactly
            widths = np.minimum(widths, math.inf if most is None else most)
        result[column] = arrow.array(widths, mask=~np.isfinite(widths))
    return result


def _own(plan: Plan) -> list[int]:
    """Return the blocks whose numbers have noise of their own."""
    return [
        index for index, block in enumerate(plan.blocks) if isinstance(block.kind, BlockMeasured)
    ]


def _moves(
    plan: Plan, noisy: Sequence[Noisy], noise: Sequence[Mapping[str, Noise]]
) -> _Moves | None:
    """Return the changes to try; None where there are too many numbers to change them often
    enough.
    """
    noises, running = list[Noise](), list[tuple[int, int, Running]]()
    for index in _own(plan):
        for statistic, components in noisy[index].numbers.items():
            for values in components:
                one, begin = noise[index][statistic], len(noises)
                if isinstance(one, Running):
                    running.append((begin, begin + len(values), one))
                    one = one.noise
                noises += [one] * len(values)
    rows = sum(_rows(plan.blocks[index], noisy[index]) for index in range(len(plan.blocks)))
    pairs = min(_PAIRS[1], MOST_MOVED // (2 * max(rows, 1)))
    if not noises or pairs < _PAIRS[0]:
        return None
    drawn = redrawn(noises, pairs)
    moved, steps = list(drawn), [max(1, round(part(each).spread)) for each in noises]
    for begin, end, one in running:
        moved[begin:end] = _whole(one.on_numbers(np.array(drawn[begin:end], dtype=np.float64)))
        steps[begin:end] = [max(1, each // UNIT) for each in steps[begin:end]]
    return _Moves(
        noises=tuple(noises),
        drawn=drawn,
        moved=moved,
        running=tuple(running),
        steps=np.array(steps, dtype=np.int64),
        alone=2 * len(noises) * rows <= MOST_MOVED,
    )


def _whole(values: Floats) -> list[Any]:
    if np.abs(values).max(initial=0.0) < 2.0**62:
        return list(values.astype(np.int64))
    return [np.array([int(each) for each in row], dtype=object) for row in values]


def _rows(block: Block, noisy: Noisy) -> int:
    return math.prod(block.sizes) * (1 if noisy.survivors is None else noisy.survivors.num_rows)


def _tables(plan: Plan, noisy: Sequence[Noisy], moves: _Moves) -> dict[str, pa.Table]:
    """Return every noisy table, once for each change."""
    # numbers of a block by statistic, change by change
    own: dict[int, list[dict[str, tuple[Any, ...]]]] = {}
    begin = 0
    for index in _own(plan):
        measured = {}
        for statistic, components in noisy[index].numbers.items():
            moved = []
            for values in components:
                moved.append(np.asarray(values)[None, :] + moves.of(begin, begin + len(values)))
                begin += len(values)
            measured[statistic] = moved
        own[index] = [
            {
                statistic: tuple(each[change] for each in moved)
                for statistic, moved in measured.items()
            }
            for change in range(moves.changes)
        ]
    for index, block in enumerate(plan.blocks):
        if isinstance(kind := block.kind, RolledUp):
            finer = plan.blocks[kind.block].sizes
            own[index] = [
                roll_up_numbers(kind, block.sizes, finer, numbers) for numbers in own[kind.block]
            ]
    tables = {DRAWS: pa.table({DRAW: arrow.array(np.arange(moves.changes))})}
    for index, block in enumerate(plan.blocks):
        if block.aggregates:
            first = block.kind.block if isinstance(block.kind, Shared) else index
            tables[table_name(index)] = _change_numbers(block, noisy[index], own[first])
    return tables


def _change_numbers(
    block: Block, noisy: Noisy, numbers: Sequence[Mapping[str, tuple[Any, ...]]]
) -> pa.Table:
    rows, changes = _rows(block, noisy), len(numbers)
    again = arrow.array(np.tile(np.arange(rows), changes))
    columns = {name: values.take(again) for name, values in keys_of(block, noisy.survivors).items()}
    for number, aggregate in block.aggregates.items():
        # of which nothing is known here: whatever reads it is of kind UNKNOWN
        if isinstance(aggregate, Pick):
            columns[aggregate_name(number)] = decode_picks(
                aggregate, noisy.picks[aggregate.id]
            ).take(again)
            continue
        statistic, estimate = aggregate
        together = tuple(
            np.concatenate([each[statistic.id][place] for each in numbers])
            for place in range(len(statistic.forms))
        )
        columns[aggregate_name(number)] = estimate.values(together)
    columns[DRAW] = arrow.array(np.repeat(np.arange(changes), rows))
    return pa.table(columns)


# --- which row is which ---------------------------------------------------------------------------


def _match_rows(found: pa.Table, answer: pa.Table, asked: Again) -> npt.NDArray[np.int64]:
    """Match each row of all changes to its row of the answer, by its public columns; -1 where there
    is none.
    """
    code = np.zeros(answer.num_rows + found.num_rows, dtype=np.int64)
    for index, kind in enumerate(asked.kinds):
        if kind is not Kind.PUBLIC:
            continue
        own = answer.column(index).combine_chunks()
        every = pa.concat_arrays(
            [own, found.column(index).combine_chunks().cast(own.type, safe=False)]
        )
        place = arrow.numbers(every.dictionary_encode(null_encoding="encode").indices).astype(
            np.int64
        )
        _, code = np.unique(code * (place.max(initial=0) + 1) + place, return_inverse=True)
    rows, changed = code[: answer.num_rows], code[answer.num_rows :]
    here = np.full(int(code.max(initial=0)) + 1, -1, dtype=np.int64)
    here[rows] = np.arange(answer.num_rows)
    shared = np.bincount(rows, minlength=len(here)) > 1
    here[shared] = -1
    return here[changed]


def _spread(
    found: pa.Table, name: str, place: npt.NDArray[np.int64], *, changes: int, rows: int
) -> Floats:
    """Return a column's values by change and row of the answer; NaN where there is none, or more
    than one.
    """
    values = np.full((changes, rows), np.nan)
    draw, number = (
        arrow.numbers(found.column(DRAW)).astype(np.int64),
        arrow.numbers(found.column(name)),
    )
    known = place >= 0
    at = draw[known] * rows + place[known]
    values.ravel()[at] = number[known]
    values.ravel()[np.bincount(at, minlength=changes * rows) > 1] = np.nan
    return values


# --- half-widths ----------------------------------------------------------------------------------


def _widths(values: Floats, kind: Kind, moves: _Moves) -> Floats:
    """Return half-widths from the values of each change; infinite or NaN where they are not
    known.
    """
    pairs, count = moves.pairs, len(moves.noises)
    center, both = values[0], values[1 : 1 + 2 * pairs].reshape(2, pairs, -1)
    if not moves.alone:
        with np.errstate(invalid="ignore", over="ignore"):
            distance = np.abs(both - center)
            spread = np.sqrt((distance**2).mean(axis=(0, 1)))
        normal = all(part(each).gaussian for each in set(moves.noises))
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
