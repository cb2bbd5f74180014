"""What must hold of one statement: how it is answered does not depend on data, and data moves no
more than claimed.

`verdict` plans a statement, runs the exact SELECTs of its plan on all databases of a world, and
raises `Violation` when a measurement, a rank score or the people of an unknown key move by more
than the plan says, when a group lies outside the public grid, when the engine fails on any of them,
or when anything but a refusal comes out of planning.
"""

from __future__ import annotations

import random
import re
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from typing import Any

import duckdb
import numpy as np

from discreet.algebra import Aggregate, Numbers, Sum
from discreet.asking.measure import measure
from discreet.asking.offer import Offer, offer
from discreet.binding import accountant_of, terms_of
from discreet.engines.duckdb.workbench import WorkbenchSpelling
from discreet.engines.limits.watch import interrupt_after
from discreet.engines.spelling import Spelling
from discreet.errors import EngineFailure, Rejected, UsageError
from discreet.mechanisms.running import factor
from discreet.sql.after.finish import half_widths, noisy_table, rehearsals, run_after, split
from discreet.sql.after.naming import table_name
from discreet.sql.after.widths.joint import joint_margins
from discreet.sql.analyze import plan
from discreet.sql.plan.block import Block, Shared, Statistic
from discreet.sql.plan.keys import Key
from discreet.sql.plan.picks import Pick
from discreet.sql.plan.plan import Plan
from discreet.sql.plan.prove import prove
from discreet.sql.text.dialect import Dialect
from discreet.sql.text.parse import refuse_depth
from discreet.vault.allowance import Allowance
from discreet.vault.exact import Exact

from .worlds import BACKGROUND, EMPTY, World

LONG = 5.0  # seconds of processor time for an exact SELECT over a handful of rows
# for all of an answer: up to 5,000 groups, each with its draws, and margins simulated
LONGER = 20.0
CARRIED_OUT = 0.2  # of the answered statements: noise and all, on neighbors
TINY = Fraction(1, 1000)  # an epsilon at which noise hides everything
STUCK = 120.0  # seconds on the clock, which a busy machine may take for any of them
# that there may be: what one of them adds to a sum, so many times, must fit its type
PEOPLE = 2**36
SLOW = 4.0  # seconds of planning: parsing and analysis of any statement within the limits take less


class Violation(AssertionError):
    """A statement for which the promise does not hold."""


class Slow(Violation):
    """More processor time than any statement may take."""


def verdict(sql: str, world: World, source: random.Random, *, dialect: Dialect = "duckdb") -> str:
    """How the statement was answered: "answered", "public", or the reason of the refusal in general
    words.
    """
    try:
        planned = _planned(sql, world, dialect)
    except Slow:  # once more: what is slow only once, the machine was short of memory for
        planned = _planned(sql, world, dialect)
    if isinstance(planned, str):
        return planned
    for block in planned.blocks:
        if not isinstance(block.kind, Shared):
            _measured(block, world)
            for pick in block.picks:
                _picked(block, pick, world)
    if planned.blocks and source.random() < CARRIED_OUT:
        _carried_out(planned, world, source.choice((TINY, world.policy.limits.epsilon)), source)
    if any(each.totals for block in planned.blocks for each in block.statistics):
        return "answered by running totals"
    return "answered" if planned.blocks else "public"


def _planned(sql: str, world: World, dialect: Dialect) -> Plan | str:
    """A plan that would be charged for, or the reason of the refusal."""
    with _within(SLOW, "planning"):
        try:
            with refuse_depth():
                planned = plan(
                    sql,
                    world.policy,
                    world.public,
                    world.evaluate,
                    dialect=dialect,
                    spell=WorkbenchSpelling().numbers,
                )
                prove(planned, world.policy)
                _rehearsed(planned, world)
        except (Rejected, UsageError) as refusal:
            return f"refused: {_general(str(refusal))}"
        except EngineFailure:
            return "refused: what is computed from the aggregates does not fit together"
        except Exception as error:
            raise Violation(f"planning raised {type(error).__name__}: {error}") from error
    return planned


def _rehearsed(planned: Plan, world: World) -> None:
    """What `Curator` tries before it charges: on tables without rows, and on made-up numbers."""
    for query in (
        query
        for block in planned.blocks
        if not isinstance(block.kind, Shared)
        for query in block.queries
    ):
        try:
            world.cursors[EMPTY].execute(f"PREPARE checked AS {Spelling().numbers(query)}")
        except duckdb.Error:
            raise Rejected("the engine does not bind this.", hint="") from None
    public = {name: world.public[name] for name in planned.public}
    for sql, made_up in rehearsals(planned) if planned.blocks else ():
        world.workbench.run(sql, public | made_up, seconds=60)


def _carried_out(planned: Plan, world: World, epsilon: Fraction, source: random.Random) -> None:
    """Through the allowance: answered whatever the data, in the same columns, and where epsilon is
    tiny in noise.
    """
    accountant, public = accountant_of(world.policy), dict(world.public)
    try:
        spend = accountant.allot(epsilon=epsilon)
        offered = offer(planned, accountant, amount=spend, limit=terms_of(world.policy).limit)
    except UsageError:  # so little that the noise would not fit
        return
    failed, answers = set[bool](), dict[str, str]()
    for name in (EMPTY, EMPTY, BACKGROUND, "alone"):
        cursor, key = world.cursors[name], source.randbytes(32)
        allowance = Allowance(key=key, accountant=accountant, paid=offered.cost)
        try:
            with warnings.catch_warnings(), _within(LONGER, f"carrying it out on {name!r}"):
                # numbers that left their type behind are no estimates
                warnings.simplefilter("error")
                noisy = measure(offered, allowance, partial(_read, cursor))
                types, columns = _finished(offered, noisy, public, world)
        except EngineFailure:
            failed.add(True)
            continue
        except Violation:
            raise
        except Exception as error:
            raise Violation(f"carrying it out raised {type(error).__name__}: {error}") from error
        failed.add(False)
        if answers.setdefault(types, columns) != columns:
            raise Violation(f"the answer's columns depend on the data: {answers[types]}, {columns}")
        if name == EMPTY and epsilon == TINY:
            _noisy(offered, noisy)
    if len(failed) > 1:
        raise Violation("on some databases the engine failed, on others not")


def _read(cursor: Any, query: Numbers) -> Exact:
    return Exact(cursor.sql(Spelling().numbers(query)).to_arrow_table())


def _finished(
    offered: Offer, noisy: list[Any], public: dict[str, Any], world: World
) -> tuple[str, str]:
    """What `Curator.ask` does after noise: types of noisy tables, as wide as their numbers, and of
    the answer.
    """
    tables = {name: public[name] for name in offered.plan.public}
    tables |= half_widths(offered.plan, [each.noise for each in offered.blocks])
    run = partial(world.workbench.run, seconds=60)
    for index, each in enumerate(offered.blocks):
        name = table_name(index)
        tables[name] = noisy_table(each.block, noisy[index], each.noise, run, name=name)
    table, _ = split(run_after(offered.plan.after, tables, run), offered.plan.columns)
    noise = [each.noise for each in offered.blocks]
    joint_margins(offered.plan, noisy, noise, table, public, run)
    return str([table.schema for table in tables.values()]), str(table.schema)


def _noisy(offered: Offer, noisy: list[Any]) -> None:
    """Of nobody all numbers are zero; at so small an epsilon a zero is released with probability
    1/2000 at most.
    """
    for each, left in zip(offered.blocks, noisy, strict=True):
        for statistic in each.block.own_statistics:
            parts = left.numbers[statistic.id]
            numbers = [int(number) for part in parts for number in part]
            zeros = sum(number == 0 for number in numbers)
            if len(numbers) >= 6 and zeros > 5 + len(numbers) / 50:
                raise Violation(
                    f"{statistic.name}: {zeros} of {len(numbers)} numbers left without noise"
                )


@contextmanager
def _within(seconds: float, what: str) -> Iterator[None]:
    """Of processor time, so that a busy machine is no violation; refusals are timed too."""
    began = time.process_time()
    try:
        yield
    finally:
        if time.process_time() - began > seconds:
            raise Slow(f"{what} took {time.process_time() - began:.1f} s")


def _general(text: str) -> str:
    """A refusal without what was asked in it, to be counted."""
    reason = re.sub(r"^Rejected \(line \d+, column \d+\): ", "", text)
    reason = re.sub(r"[A-Z_]+\(.*?\)+|'[^']*'|\"[^\"]*\"|\d+(\.\d+)?", "…", reason)
    return " ".join(reason.split(". ")[0].split()[-9:])


def fetched(world: World, query: Numbers) -> dict[str, list[tuple[Any, ...]]]:
    sql, total = Spelling().numbers(query), Spelling(careful=True).numbers(query)
    found = {}
    for name, cursor in world.cursors.items():
        try:
            with interrupt_after(STUCK, cursor.interrupt), _within(LONG, f"the engine on {name!r}"):
                found[name] = cursor.execute(sql).fetchall()
        except Exception as error:
            raise Violation(f"the engine failed on {name!r}: {error}\n{sql}") from error
    background = sorted(found[BACKGROUND], key=repr)
    # The second wall: what fails on no row is what it was.
    if total != sql:
        careful = world.cursors[BACKGROUND].execute(total).fetchall()
        if sorted(careful, key=repr) != background:
            raise Violation(f"with NULL where it fails it is something else\n{sql}")
    with interrupt_after(STUCK, world.literal.interrupt):
        literal = world.literal.execute(sql).fetchall()
    if sorted(literal, key=repr) != background:
        raise Violation(f"the engine's optimizers make something else of it\n{sql}")
    return found


def _measured(block: Block, world: World) -> None:
    width = len(block.keys)
    if block.own_statistics:
        exact = fetched(world, block.sums)
        for rows in exact.values():
            _once(rows, width, block.sums)
            for row in rows:
                _on_grid(block, row)
        _fit(block, exact["alone"], width)
        _rows_of_one(block, world)
        for measurement in block.own_statistics:
            vectors = {
                name: _forms(rows, width, measurement.over(block.readings))
                for name, rows in exact.items()
            }
            claim = measurement.sensitivity
            for before, after in world.pairs:
                moved = _moved(vectors[before], vectors[after])
                found = (
                    len(moved),
                    sum(moved),
                    sum(each * each for each in moved),
                    max(moved, default=0),
                )
                allowed = (claim.l0, claim.l1, claim.l2_squared, claim.linf)
                for norm, here, most in zip(
                    ("l0", "l1", "l2 squared", "linf"), found, allowed, strict=True
                ):
                    if here > most:
                        what = f"{measurement.name}: {norm} {here} > {most} between {before!r} and {after!r}"
                        raise Violation(f"{what}\n{told(block.sums)}")
            if measurement.totals is not None:
                _running(block, measurement, vectors, world)
    if block.unknown:
        found_people = fetched(world, block.people)
        for rows in found_people.values():
            _once(rows, len(block.unknown), block.people)
        people = {
            name: {row[:-1]: int(row[-1]) for row in rows} for name, rows in found_people.items()
        }
        touched = block.touched * (2 if block.neighbors == "change_one" else 1)
        for before, after in world.pairs:
            moved = _moved(people[before], people[after])
            if len(moved) > touched or max(moved, default=0) > 1:
                raise Violation(f"people per key: {moved} for {touched} keys\n{told(block.people)}")


def _running(
    block: Block, statistic: Statistic, vectors: dict[str, dict[Any, int]], world: World
) -> None:
    """What gets noise where running totals are measured: every number in every sum of its column
    of factors, added up here number by number.
    """
    assert statistic.totals is not None
    grid, claim = statistic.totals.grid, statistic.totals.l2_squared
    factors = factor(grid.periods).tolist()
    for before, after in world.pairs:
        moved: dict[Any, int] = {}
        ours, theirs = vectors[before], vectors[after]
        for key in ours.keys() | theirs.keys():
            (places, index), change = key, ours.get(key, 0) - theirs.get(key, 0)
            cell = int(np.ravel_multi_index([int(each) for each in places], block.sizes))
            others, inner = divmod(cell, grid.periods * grid.inner)
            period, inner = divmod(inner, grid.inner)
            for place in range(period, grid.periods) if change else ():
                sum_of = (index, others, inner, place)
                moved[sum_of] = moved.get(sum_of, 0) + factors[place][period] * change
        here = sum(each * each for each in moved.values())
        if here > claim:
            what = f"{statistic.name}: sums {here} > {claim} between {before!r} and {after!r}"
            raise Violation(f"{what}\n{told(block.sums)}")


def _fit(block: Block, rows: list[tuple[Any, ...]], width: int) -> None:
    """What one person adds to each sum, for 2^36 people, fits the type in which the engine adds it
    up (S21).
    """
    for place, reading in enumerate(block.readings):
        added = isinstance(reading, Sum) and any(factor.power for factor in reading.factors)
        bits = reading.bits - 1 if isinstance(reading, Sum) and added else 63
        most = max((abs(int(row[width + place] or 0)) for row in rows), default=0)
        if most * PEOPLE >= 2**bits:
            raise Violation(
                f"{reading}: {most} for one person, and 2^36 of them are beyond {bits} bits\n{told(block.sums)}"
            )


def told(query: Numbers) -> str:
    return Spelling().numbers(query)


def _rows_of_one(block: Block, world: World) -> None:
    """Nobody has more rows than the plan says."""
    rows = fetched(world, Aggregate(block.source, (), (Sum(),), block.conditions))["alone"][0][0]
    if rows > block.rows:
        raise Violation(f"one person has {rows} rows, of {block.rows}\n{told(block.sums)}")


def _on_grid(block: Block, row: tuple[Any, ...]) -> None:
    for key, place in zip(block.keys, row, strict=False):
        if isinstance(key, Key) and not (isinstance(place, int) and 0 <= place < key.size):
            raise Violation(f"a key lies at {place!r} of {key.size}\n{told(block.sums)}")


def _once(rows: list[tuple[Any, ...]], width: int, query: Numbers) -> None:
    """A key stands in one row: of two, what reads them would take one."""
    if len({row[:width] for row in rows}) < len(rows):
        raise Violation(f"a key stands twice\n{told(query)}")


def _forms(
    rows: list[tuple[Any, ...]], width: int, forms: tuple[tuple[int, ...], ...]
) -> dict[Any, int]:
    return {
        (row[:width], index): sum(
            f * int(value or 0) for f, value in zip(form, row[width:], strict=True)
        )
        for row in rows
        for index, form in enumerate(forms)
    }


def _moved(a: dict[Any, int], b: dict[Any, int]) -> list[int]:
    """By how much each number that changes changes; what is not there is zero."""
    changes = (abs(a.get(key, 0) - b.get(key, 0)) for key in a.keys() | b.keys())
    return [change for change in changes if change]


def _picked(block: Block, pick: Pick, world: World) -> None:
    """Rows per group and cell: one person moves them by at most `rows`, in or out, and no cell is
    off the grid.

    A rank score at any cell moves by no more than the rows that move, so this bounds the scores of
    all mechanisms. What is read of a fine grid must be what its counts say.
    """
    counted = block.rows_in(pick)
    _cells(block, pick, counted, pick.domain.size, world)
    if not pick.fine:
        return
    near = block.near(pick, pick.mechanisms("sum", Fraction(1)))  # type: ignore[arg-type]
    every = fetched(world, counted)
    for name, rows in fetched(world, near).items():
        _once(rows, len(block.keys) + 1, near)
        groups: dict[Any, list[tuple[int, int]]] = {}
        for row in every[name]:
            groups.setdefault(row[:-2], []).append(row[-2:])
        for row in rows:
            held, (cell, count, before, total) = groups.get(row[:-4], []), row[-4:]
            if (cell, count) not in held or before != sum(n for place, n in held if place < cell):
                raise Violation(f"{pick.name}: near the wanted rank {row} is read\n{told(near)}")
            if total != sum(n for _, n in held):
                raise Violation(
                    f"{pick.name}: near the wanted rank a group has {total} rows\n{told(near)}"
                )


def _cells(block: Block, pick: Pick, query: Numbers, cells: int, world: World) -> None:
    counts = {}
    for name, rows in fetched(world, query).items():
        _once(rows, len(block.keys) + 1, query)
        for row in rows:
            _on_grid(block, row)
            if not 0 <= row[-2] < cells:
                raise Violation(
                    f"{pick.name}: a row lies in cell {row[-2]} of {cells}\n{told(query)}"
                )
        counts[name] = {row[:-1]: row[-1] for row in rows}
    most = pick.rows * (2 if block.neighbors == "change_one" else 1)
    for before, after in world.pairs:
        moved = sum(_moved(counts[before], counts[after]))
        if moved > most:
            raise Violation(f"{pick.name}: {moved} rows move, of {most}\n{told(query)}")
