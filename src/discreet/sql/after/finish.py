"""Make the noisy tables that the rest of the statement reads, run it, and split the answer from its
margins. All free.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import sqlglot
from sqlglot import exp

from discreet import arrow
from discreet.errors import EngineFailure
from discreet.mechanisms.tails.simulate import Noise, part, redrawn, redrawn_quantile, simulate
from discreet.sql.after.after import drop_filters
from discreet.sql.after.estimates import Components, redraws
from discreet.sql.after.guards import guard_with_try
from discreet.sql.after.naming import (
    HALF_WIDTHS,
    aggregate_name,
    constant_name,
    expression_margin_name,
    key_name,
    key_number,
    margin_name,
    table_name,
)
from discreet.sql.after.widths.half_width import half_width
from discreet.sql.plan.block import Block, RolledUp
from discreet.sql.plan.keys import Joint, Unknown
from discreet.sql.plan.picks import Pick
from discreet.sql.plan.plan import AnswerColumn, Plan
from discreet.sql.text.dialect import WRITER
from discreet.sql.values.value import Text, few_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Noisy:
    """The noisy numbers of one block's statistics, and the cells that its picks chose in each
    group, by id.
    """

    numbers: Mapping[str, Components]
    picks: Mapping[str, Any]
    survivors: pa.Table | None  # unknown keys that passed the threshold


Run = Callable[[str, dict[str, pa.Table]], pa.Table]
MOST_MOVED = 1 << 20  # rows with redrawn noise that are held at once


def noisy_table(
    block: Block, noisy: Noisy, noise: Mapping[str, Noise], run: Run, *, name: str
) -> pa.Table:
    """Return the block's noisy table: keys; each aggregate with its margins; and the margins of
    computed columns.
    """
    columns = keys_of(block, noisy.survivors)
    for number, aggregate in block.aggregates.items():
        if isinstance(aggregate, Pick):
            columns[aggregate_name(number)] = decode_picks(aggregate, noisy.picks[aggregate.id])
            columns[margin_name(number)] = pa.nulls(
                len(columns[aggregate_name(number)]), pa.float64()
            )
            continue
        statistic, estimate = aggregate
        numbers = noisy.numbers[statistic.id]
        columns[aggregate_name(number)] = estimate.values(numbers)
        within = estimate.margins(numbers, noise[statistic.id])
        wide = ~np.isfinite(within)  # noise as wide as anything: no margin
        columns[margin_name(number)] = arrow.array(within, mask=wide)
    if block.derived:
        margins = _simulate_margins(block, noisy, noise, run, name, pa.table(columns))
        columns |= {expression_margin_name(index): margin for index, margin in enumerate(margins)}
    return pa.table(columns)


def roll_up_numbers(
    kind: RolledUp, sizes: Sequence[int], finer: Sequence[int], numbers: Mapping[str, Components]
) -> dict[str, Components]:
    """Return the numbers of a coarser block: a finer block's noisy numbers, summed over the keys
    that the coarser one has not.

    `sizes` are those of its own keys, and `finer` those of the other block's.
    """
    rest = tuple(axis for axis in range(len(finer)) if axis not in kind.keys)
    order = (*kind.keys, *rest)
    shown = tuple(slice(size) for size in sizes)  # without the cells for a NULL that is not meant

    def coarser(values: Any) -> Any:
        largest = max((abs(int(end)) for end in (values.min(), values.max())), default=0)
        exact = values if largest * len(values) < 2**63 else values.astype(object)
        grid = exact.reshape(finer).transpose(order)[shown]
        return grid.reshape(math.prod(sizes), -1).sum(axis=1)

    return {name: tuple(map(coarser, components)) for name, components in numbers.items()}


def half_widths(plan: Plan, noise: Sequence[Mapping[str, Noise]]) -> dict[str, pa.Table]:
    """Return the table of half-widths that are the same in every row, if `plan.after` reads it."""
    if not plan.combined:
        return {}
    widths = [half_width(form, plan.blocks, noise, assuming=None) for form in plan.combined]
    columns = {
        constant_name(index): arrow.array([width], pa.float64())
        for index, width in enumerate(widths)
    }
    return {HALF_WIDTHS: pa.table(columns)}


def rehearsals(plan: Plan) -> Iterator[tuple[str, dict[str, pa.Table]]]:
    """Yield statements with made-up noisy tables of a few rows, to try them before anything is
    paid.

    With large numbers, with negative ones and with zeros; what stands behind a filter also without
    it, since which rows pass is for noise to decide.
    """
    statements = dict.fromkeys((plan.after, drop_filters(plan.after)))
    for sign in (1, -1, 0):
        tables = {
            table_name(index): _make_up_table(block, sign)
            for index, block in enumerate(plan.blocks)
            if block.aggregates  # others are there to be added up
        }
        if plan.combined:
            names = [constant_name(index) for index in range(len(plan.combined))]
            tables[HALF_WIDTHS] = pa.table({name: pa.nulls(1, pa.float64()) for name in names})
        yield from ((sql, tables) for sql in statements)


def _make_up_table(block: Block, sign: int) -> pa.Table:
    keys = tuple(replace(key, domain=cast(Any, few_of(key.domain))) for key in block.parts)
    unknown = [key for key in keys if isinstance(key, Unknown)]
    names = [arrow.array(["a", "b"] if isinstance(key.domain, Text) else [0, 0]) for key in unknown]
    survivors = pa.table(names, [key_name(index) for index in range(len(names))]) if names else None
    few = replace(block, keys=keys)
    columns = {name: values[:64] for name, values in keys_of(few, survivors).items()}
    rows = len(columns[key_name(0)]) if keys else 1
    for number, aggregate in block.aggregates.items():
        if isinstance(aggregate, Pick):
            cells = np.tile(np.arange(rows)[:, None], (1, max(1, len(aggregate.quantiles))))
            columns[aggregate_name(number)] = decode_picks(aggregate, cells)
        else:
            statistic, estimate = aggregate
            numbers = tuple(sign * (1000 + 7 * np.arange(rows)) for _ in statistic.forms)
            columns[aggregate_name(number)] = estimate.values(numbers)
        columns[margin_name(number)] = pa.nulls(rows, pa.float64())
    columns |= {
        expression_margin_name(index): pa.nulls(rows, pa.float64())
        for index in range(len(block.derived))
    }
    return pa.table(columns)


def decode_picks(pick: Pick, cells: Any) -> pa.Array:
    if not pick.listed:
        return pick.decode(cells[:, 0])
    return pa.FixedSizeListArray.from_arrays(pick.decode(cells.ravel()), cells.shape[1])


def keys_of(block: Block, survivors: pa.Table | None) -> dict[str, pa.Array]:
    """Return the key columns of the whole grid, in the order of the keys' values; survivors vary
    slowest.
    """
    sizes = block.sizes if survivors is None else [survivors.num_rows, *block.sizes]
    places = list(np.unravel_index(np.arange(math.prod(sizes)), sizes)) if sizes else []
    columns, public, unknown = {}, 0 if survivors is None else 1, 0
    for index, key in enumerate(block.keys):
        if isinstance(key, Joint):  # alone: no other key is there
            return {key_name(part): labels for part, labels in enumerate(key.labels())}
        if isinstance(key, Unknown):
            assert survivors is not None
            labels, place = key.labels(survivors.column(unknown)), places[0]
            unknown += 1
        else:
            labels, place = key.labels(), places[public]
            public += 1
        columns[key_name(index)] = labels.take(arrow.array(place))
    return columns


def _simulate_margins(
    block: Block,
    noisy: Noisy,
    noise: Mapping[str, Noise],
    run: Run,
    name: str,
    table: pa.Table,
) -> list[pa.Array]:
    """Return half-widths of computed columns, by evaluating the expression again with redrawn noise
    (S11).

    Each redrawn noise is taken off and, for `simulated_half_widths`, also put on; then each noisy
    number is moved by itself, for the slopes. A divisor that is zero or changes its sign has passed
    a pole, beyond which a quotient has no bound: that counts as infinitely far, as in Fieller's
    interval. Groups are taken in parts, so that few rows are held at once.
    """
    noises = [noise[statistic] for statistic, numbers in noisy.numbers.items() for _ in numbers]
    drawn = redrawn(noises, max(60, redraws(table.num_rows) // 2))
    at_once = max(1, MOST_MOVED // (2 * (len(drawn[0]) + len(noises))))
    parts = list[list[pa.Array]]()
    for begin in range(0, max(1, table.num_rows), at_once):
        here = slice(begin, begin + at_once)
        numbers = {
            name: tuple(values[here] for values in each) for name, each in noisy.numbers.items()
        }
        rows = table.slice(begin, at_once)
        moved = _redraw_rows(block, numbers, rows, noises, drawn)
        parts.append(
            [
                _simulate_margin(derived, rows, moved, noises, drawn, run, name)
                for derived in block.derived
            ]
        )
    return [pa.concat_arrays(list(each)) for each in zip(*parts, strict=True)]


def _steps(noises: Sequence[Noise]) -> list[int]:
    """Return how far each noisy number is moved by itself."""
    return [max(1, round(part(noise).spread)) for noise in noises]


def _redraw_rows(
    block: Block,
    numbers: Mapping[str, Components],
    rows: pa.Table,
    noises: Sequence[Noise],
    drawn: Sequence[Any],
) -> pa.Table:
    """Return the rows many times over: with each redrawn noise taken off, then put on; then with
    one number moved down, then up.
    """
    groups, times = rows.num_rows, 2 * (len(drawn[0]) + len(noises))
    again = arrow.array(np.tile(np.arange(groups), times))
    moved = {
        key: rows.column(key).take(again)
        for key in rows.column_names
        if key_number(key) is not None
    }
    shifts, shifted = (
        iter(zip(drawn, _steps(noises), np.eye(len(noises), dtype=np.int64), strict=True)),
        {},
    )
    for name, components in numbers.items():
        found = []
        for values in components:
            off, step, place = next(shifts)
            alone = place.astype(off.dtype) * step
            found.append(
                np.tile(values, times)
                + np.repeat(np.concatenate((-off, off, -alone, alone)), groups)
            )
        shifted[name] = tuple(found)
    for number, aggregate in block.aggregates.items():
        if not isinstance(aggregate, Pick):  # no expression with a pick in it gets here
            statistic, estimate = aggregate
            moved[aggregate_name(number)] = estimate.values(shifted[statistic.id])
    return pa.table(moved)


def _simulate_margin(
    derived: str,
    rows: pa.Table,
    moved: pa.Table,
    noises: Sequence[Noise],
    drawn: Any,
    run: Run,
    name: str,
) -> pa.Array:
    """Return half-widths of one computed column, given its rows and the same rows `moved` by
    redrawn noise.
    """
    groups, pairs = rows.num_rows, len(drawn[0])
    times = 2 * (pairs + len(noises))
    items = ", ".join(
        f"CAST({sql} AS DOUBLE) AS d{index}" for index, sql in enumerate(_with_divisors(derived))
    )
    try:
        center = run(f'SELECT {items} FROM "{name}"', {name: rows})
        replicas = run(f'SELECT {items} FROM "{name}"', {name: moved})
    except EngineFailure:  # a column that is no number has no margin
        return pa.nulls(groups, pa.float64())
    values = _floats(replicas, 0).reshape(times, groups).copy()
    for index in range(1, center.num_columns):
        signs = np.sign(_floats(replicas, index)).reshape(times, groups)
        values[signs != np.sign(_floats(center, index))] = np.nan
    around = values[2 * pairs :].reshape(2, len(noises), groups)
    with np.errstate(invalid="ignore", over="ignore"):  # infinities have no slope
        slopes = (around[1] - around[0]) / (2 * np.array(_steps(noises), dtype=np.float64)[:, None])
    both = values[: 2 * pairs].reshape(2, pairs, groups)
    widths = half_widths_from_replicas(_floats(center, 0), both, slopes, noises, drawn)
    return arrow.array(widths, mask=~np.isfinite(widths))


def _with_divisors(sql: str) -> list[str]:
    """Return the expression, and every divisor in it."""
    divisions = sqlglot.parse_one(sql, read="duckdb").find_all(exp.Div, exp.IntDiv)
    divisors = (each.expression for each in divisions if each.expression.find(exp.Column))
    return [sql, *dict.fromkeys(each.sql(dialect=WRITER) for each in divisors)]


def _floats(table: pa.Table, index: int) -> Any:
    return arrow.numbers(table.column(index).cast(pa.float64()))


def half_widths_from_replicas(
    center: Any, replicas: Any, slopes: Any, noises: Sequence[Noise], drawn: Sequence[Any]
) -> Any:
    """Return half-widths from answers with noise taken off (replicas[0]) and put on (replicas[1]),
    a row for each redrawn noise.

    Noise is symmetric, so an interval that holds for it must hold on both sides: of each pair the
    farther counts. Of a straight function of noise those are the distances of the errors. One that
    bends by more than half (a quotient by few, a product near zero, CASE) has other distances
    around the truth than around the answer: there it is as far as any redrawn one.
    """
    with np.errstate(
        invalid="ignore", over="ignore"
    ):  # infinities beside each other, of which nothing is known
        distance = np.abs(replicas - center[None, None, :])
        bend = np.abs(replicas[0] + replicas[1] - 2 * center[None, :])
    distance[~np.isfinite(distance)] = np.inf  # a replica without a value counts as infinitely far
    farther = distance.max(axis=0)
    widths = redrawn_quantile(farther)
    straight = (bend <= np.maximum(farther, widths[None, :]) / 2).all(axis=0)
    farthest = np.where(np.isfinite(farther), farther, 0.0).max(axis=0)
    return np.asarray(
        np.where(straight, simulate(farther, slopes, noises, drawn), np.maximum(widths, farthest))
    )


def run_after(sql: str, tables: dict[str, pa.Table], run: Run) -> pa.Table:
    """Run the SQL above the noise; if it raises, run it again with TRY so that failing cells are
    NULL.
    """
    try:
        return run(sql, tables)
    except EngineFailure:
        return run(guard_with_try(sql), tables)


def split(result: pa.Table, columns: Sequence[AnswerColumn]) -> tuple[pa.Table, pa.Table]:
    """Split the columns of a result into the answer and, of the same shape, its margins."""
    shown = [column.name for column in columns]
    table = pa.Table.from_arrays(
        [_null_unshowable(result.column(index)) for index in range(len(shown))], names=shown
    )
    carriers = [index for index, column in enumerate(columns) if column.measured]
    present = result.num_columns == len(shown) + len(carriers)
    margins = [pa.nulls(result.num_rows, pa.float64())] * len(shown)
    for place, index in enumerate(carriers if present else []):
        half_width = result.column(len(shown) + place).combine_chunks()
        if half_width.type != pa.float64():
            half_width = half_width.cast(pa.float64())
        if table.column(index).null_count:
            import pyarrow.compute as pc

            there = table.column(index).combine_chunks().is_valid()
            half_width = pc.if_else(there, half_width, arrow.scalar(None, pa.float64()))
        margins[index] = half_width
    return table, pa.Table.from_arrays(margins, names=shown)


_DIVIDED = "noise may hide what it is divided by, and no margin is known."
_SEVERAL = (
    "no margin is known: it is computed from several noisy numbers in a way that noise moves to one side (ranks,"
    " maxima, filters on noisy numbers, sums of quotients), or there are too many of them."
)


def without_margin(
    table: pa.Table, margins: pa.Table, columns: Sequence[AnswerColumn]
) -> dict[str, str]:
    """Return why a margin is missing, for each computed column that has a number without one."""
    return {
        column.name: _DIVIDED if column.simulated else _SEVERAL
        for index, column in enumerate(columns)
        if column.noisy
        and column.estimate is None
        and _is_number(table.column(index).type)
        and margins.column(index).null_count > table.column(index).null_count
    }


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _null_unshowable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Replace by NULL what cannot be shown: NaN and infinities, as from a quotient of noisy
    numbers, and years beyond 9999.
    """
    import pyarrow.compute as pc

    # which hold no more than some centuries
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    if pa.types.is_floating(column.type):
        there = pc.is_finite(column)
    elif pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        kind = datetime.date if pa.types.is_date(column.type) else datetime.datetime
        first, last = (arrow.scalar(end, column.type) for end in (kind.min, kind.max))
        there = pc.and_(pc.greater_equal(column, first), pc.less_equal(column, last))
    else:
        return column
    return pc.if_else(there, column, arrow.scalar(None, column.type))
