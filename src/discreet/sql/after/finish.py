"""Build the noisy tables, run the rest of the statement over them, and split the answer from its
margins. It costs nothing.
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
    group. The keys are ids.
    """

    numbers: Mapping[str, Components]
    picks: Mapping[str, Any]
    survivors: pa.Table | None  # unknown keys that passed the threshold


Run = Callable[[str, dict[str, pa.Table]], pa.Table]
MOST_MOVED = 1 << 20  # the most rows with redrawn noise in memory at a time


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
    """Return the numbers of a coarser block: the sums of a finer block's noisy numbers over the keys
    that only the finer one has.

    `sizes` are the sizes of the coarser block's keys, `finer` those of the finer block's.
    """
    rest = tuple(axis for axis in range(len(finer)) if axis not in kind.keys)
    order = (*kind.keys, *rest)
    own = tuple(slice(size) for size in sizes)  # without the cells that only the finer block has

    def sum_up(values: Any) -> Any:
        largest = max(abs(int(values.min())), abs(int(values.max())))
        exact = values if largest * len(values) < 2**63 else values.astype(object)
        grid = exact.reshape(finer).transpose(order)[own]
        return grid.reshape(math.prod(sizes), -1).sum(axis=1)

    return {name: tuple(map(sum_up, components)) for name, components in numbers.items()}


def half_widths(plan: Plan, noise: Sequence[Mapping[str, Noise]]) -> dict[str, pa.Table]:
    """Return the table of half-widths that are the same in every row, if `plan.after` reads it."""
    if not plan.combined:
        return {}
    columns = {}
    for index, form in enumerate(plan.combined):
        width = half_width(form, plan.blocks, noise, assuming=None)
        columns[constant_name(index)] = arrow.array([width], pa.float64())
    return {HALF_WIDTHS: pa.table(columns)}


def rehearsals(plan: Plan) -> Iterator[tuple[str, dict[str, pa.Table]]]:
    """Yield statements with made-up noisy tables of a few rows, to try them before the charge.

    The tables have large numbers, negative ones, or zeros. Each statement also comes without its
    filters: noise decides which rows pass them, so every row must work.
    """
    statements = dict.fromkeys((plan.after, drop_filters(plan.after)))
    for sign in (1, -1, 0):
        tables = {
            table_name(index): _make_up_table(block, sign)
            for index, block in enumerate(plan.blocks)
            if block.aggregates  # a block without them only gives numbers to others
        }
        if plan.combined:
            names = [constant_name(index) for index in range(len(plan.combined))]
            tables[HALF_WIDTHS] = pa.table({name: pa.nulls(1, pa.float64()) for name in names})
        for sql in statements:
            yield sql, tables


def _make_up_table(block: Block, sign: int) -> pa.Table:
    """Return a small table like the noisy table of a block, with numbers of this sign."""
    keys = tuple(replace(key, domain=cast(Any, few_of(key.domain))) for key in block.parts)
    unknown = [key for key in keys if isinstance(key, Unknown)]
    survivors = None
    if unknown:
        values = [["a", "b"] if isinstance(key.domain, Text) else [0, 0] for key in unknown]
        names = [key_name(index) for index in range(len(unknown))]
        survivors = pa.table([arrow.array(column) for column in values], names)
    few = replace(block, keys=keys)
    columns = {name: labels[:64] for name, labels in keys_of(few, survivors).items()}
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
    for index in range(len(block.derived)):
        columns[expression_margin_name(index)] = pa.nulls(rows, pa.float64())
    return pa.table(columns)


def decode_picks(pick: Pick, cells: Any) -> pa.Array:
    """Return the values of the cells that a pick chose, one row for each group."""
    if not pick.listed:
        return pick.decode(cells[:, 0])
    return pa.FixedSizeListArray.from_arrays(pick.decode(cells.ravel()), cells.shape[1])


def keys_of(block: Block, survivors: pa.Table | None) -> dict[str, pa.Array]:
    """Return the key columns of all groups, in the order of the keys' values; survivors of unknown
    keys vary slowest.
    """
    sizes = block.sizes if survivors is None else [survivors.num_rows, *block.sizes]
    places = list(np.unravel_index(np.arange(math.prod(sizes)), sizes)) if sizes else []
    columns = {}
    public = 0 if survivors is None else 1
    unknown = 0
    for index, key in enumerate(block.keys):
        if isinstance(key, Joint):  # it is the only key
            return {key_name(part): labels for part, labels in enumerate(key.labels())}
        if isinstance(key, Unknown):
            assert survivors is not None
            labels = key.labels(survivors.column(unknown))
            place = places[0]
            unknown += 1
        else:
            labels = key.labels()
            place = places[public]
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
    """Return half-widths of computed columns: compute each expression again with redrawn noise
    (S11).

    First subtract each redrawn noise, then add it; then move each noisy number alone, which tells
    the slopes. A divisor that is zero or has another sign has passed a pole, beyond which a quotient
    has no bound: such an answer counts as infinitely far, as in Fieller's interval. Groups come in
    slices, so that few rows are in memory at a time.
    """
    noises = [noise[statistic] for statistic, numbers in noisy.numbers.items() for _ in numbers]
    draws = redrawn(noises, max(60, redraws(table.num_rows) // 2))
    at_once = max(1, MOST_MOVED // (2 * (len(draws[0]) + len(noises))))
    slices = list[list[pa.Array]]()
    for begin in range(0, max(1, table.num_rows), at_once):
        here = slice(begin, begin + at_once)
        numbers = {}
        for statistic, components in noisy.numbers.items():
            numbers[statistic] = tuple(values[here] for values in components)
        rows = table.slice(begin, at_once)
        replicas = _redraw_rows(block, numbers, rows, noises, draws)
        margins = [
            _simulate_margin(derived, rows, replicas, noises, draws, run, name)
            for derived in block.derived
        ]
        slices.append(margins)
    return [pa.concat_arrays(list(columns)) for columns in zip(*slices, strict=True)]


def _steps(noises: Sequence[Noise]) -> list[int]:
    """Return how far to move each noisy number alone."""
    return [max(1, round(part(noise).spread)) for noise in noises]


def _redraw_rows(
    block: Block,
    numbers: Mapping[str, Components],
    rows: pa.Table,
    noises: Sequence[Noise],
    drawn: Sequence[Any],
) -> pa.Table:
    """Return the rows many times: with each redrawn noise subtracted, then added; then with one
    number moved down, then up.
    """
    groups = rows.num_rows
    times = 2 * (len(drawn[0]) + len(noises))
    again = arrow.array(np.tile(np.arange(groups), times))
    columns = {
        key: rows.column(key).take(again)
        for key in rows.column_names
        if key_number(key) is not None
    }
    shifts = iter(zip(drawn, _steps(noises), np.eye(len(noises), dtype=np.int64), strict=True))
    replicas = {}
    for name, components in numbers.items():
        parts = []
        for values in components:
            off, step, place = next(shifts)
            alone = place.astype(off.dtype) * step
            changes = np.concatenate((-off, off, -alone, alone))
            parts.append(np.tile(values, times) + np.repeat(changes, groups))
        replicas[name] = tuple(parts)
    for number, aggregate in block.aggregates.items():
        if not isinstance(aggregate, Pick):  # no computed column uses a pick
            statistic, estimate = aggregate
            columns[aggregate_name(number)] = estimate.values(replicas[statistic.id])
    return pa.table(columns)


def _simulate_margin(
    derived: str,
    rows: pa.Table,
    moved: pa.Table,
    noises: Sequence[Noise],
    drawn: Any,
    run: Run,
    name: str,
) -> pa.Array:
    """Return half-widths of one computed column, from its rows and from the same rows `moved` by
    redrawn noise.
    """
    groups = rows.num_rows
    pairs = len(drawn[0])
    times = 2 * (pairs + len(noises))
    numbers = enumerate(_with_divisors(derived))
    items = ", ".join(f"CAST({sql} AS DOUBLE) AS d{index}" for index, sql in numbers)
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
    divisors = [division.expression for division in divisions]
    noisy = [divisor for divisor in divisors if divisor.find(exp.Column)]
    return [sql, *dict.fromkeys(divisor.sql(dialect=WRITER) for divisor in noisy)]


def _floats(table: pa.Table, index: int) -> Any:
    return arrow.numbers(table.column(index).cast(pa.float64()))


def half_widths_from_replicas(
    center: Any, replicas: Any, slopes: Any, noises: Sequence[Noise], drawn: Sequence[Any]
) -> Any:
    """Return half-widths from answers with redrawn noise subtracted (replicas[0]) and added
    (replicas[1]). Each has a row for each redrawn noise.

    Noise is symmetric, so the interval must hold on both sides: of each pair, the farther answer
    counts. For a straight function of noise these distances are those of the errors. A function
    that bends by more than half (a quotient by a small number, a product near zero, CASE) has other
    distances around the truth than around the answer: for it take the farthest of all redrawn
    answers.
    """
    with np.errstate(invalid="ignore", over="ignore"):  # a difference of infinities is no number
        distance = np.abs(replicas - center[None, None, :])
        bend = np.abs(replicas[0] + replicas[1] - 2 * center[None, :])
    distance[~np.isfinite(distance)] = np.inf  # an answer without a value counts as infinitely far
    farther = distance.max(axis=0)
    widths = redrawn_quantile(farther)
    straight = (bend <= np.maximum(farther, widths[None, :]) / 2).all(axis=0)
    farthest = np.where(np.isfinite(farther), farther, 0.0).max(axis=0)
    simulated = simulate(farther, slopes, noises, drawn)
    return np.asarray(np.where(straight, simulated, np.maximum(widths, farthest)))


def run_after(sql: str, tables: dict[str, pa.Table], run: Run) -> pa.Table:
    """Run the SQL above the noise; if it raises, run it again with TRY so that failing cells are
    NULL.
    """
    try:
        return run(sql, tables)
    except EngineFailure:
        return run(guard_with_try(sql), tables)


def split(result: pa.Table, columns: Sequence[AnswerColumn]) -> tuple[pa.Table, pa.Table]:
    """Split a result into the answer and the table of its margins, which has the same columns."""
    names = [column.name for column in columns]
    values = [_null_unshowable(result.column(index)) for index in range(len(names))]
    table = pa.Table.from_arrays(values, names=names)
    # The half-widths of these columns follow the answer's columns, unless the statement drops them.
    carriers = [index for index, column in enumerate(columns) if column.measured]
    if result.num_columns != len(names) + len(carriers):
        carriers = []
    margins = [pa.nulls(result.num_rows, pa.float64())] * len(names)
    for place, index in enumerate(carriers):
        half_width = result.column(len(names) + place).combine_chunks()
        if half_width.type != pa.float64():
            half_width = half_width.cast(pa.float64())
        if table.column(index).null_count:
            import pyarrow.compute as pc

            there = table.column(index).combine_chunks().is_valid()
            half_width = pc.if_else(there, half_width, arrow.scalar(None, pa.float64()))
        margins[index] = half_width
    return table, pa.Table.from_arrays(margins, names=names)


_DIVIDED = "noise may hide what it is divided by, and no margin is known."
_ALIKE = "rows that are alike are shown once (DISTINCT, UNION), and no margin is known."
_SEVERAL = (
    "no margin is known: it is computed from several noisy numbers in a way that noise moves to one side (ranks,"
    " maxima, filters on noisy numbers, groups that these choose, roots of sums), or there are too many of them,"
    " or noise may hide what it is divided by."
)


def without_margin(
    table: pa.Table, margins: pa.Table, columns: Sequence[AnswerColumn]
) -> dict[str, str]:
    """Return why a margin is missing, for each noisy column that has a number without one.

    Values that were chosen, as a median is, have no margin of this kind.
    """
    return {
        column.name: _why(column)
        for index, column in enumerate(columns)
        if column.noisy
        and (column.measured or column.estimate is None)
        and _is_number(table.column(index).type)
        and margins.column(index).null_count > table.column(index).null_count
    }


def _why(column: AnswerColumn) -> str:
    if column.distinct:
        return _ALIKE
    return _DIVIDED if column.simulated or column.estimate is not None else _SEVERAL


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _null_unshowable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column with NULL for values that we cannot show: NaN and infinities, as a quotient
    of noisy numbers may be, and years after 9999.
    """
    import pyarrow.compute as pc

    # nanoseconds hold a few centuries only, so the ends below would not fit
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    if pa.types.is_floating(column.type):
        there = pc.is_finite(column)
    elif pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        kind = datetime.date if pa.types.is_date(column.type) else datetime.datetime
        first = arrow.scalar(kind.min, column.type)
        last = arrow.scalar(kind.max, column.type)
        there = pc.and_(pc.greater_equal(column, first), pc.less_equal(column, last))
    else:
        return column
    return pc.if_else(there, column, arrow.scalar(None, column.type))
