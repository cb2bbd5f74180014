"""Carry out an offer: read the exact numbers of each part, and release noisy ones. Nothing here
sees an exact value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.algebra import Constant, Expression, Nearest, Numbers, call
from discreet.asking.offer import BlockOffer, Offer
from discreet.asking.parts import Measurement, block_parts
from discreet.mechanisms.shapes import Selection, nearby
from discreet.sql.after.finish import Noisy, roll_up_numbers
from discreet.sql.plan.block import Block, RolledUp, Shared, Statistic
from discreet.sql.plan.picks import Pick
from discreet.vault.allowance import Allowance
from discreet.vault.exact import Exact
from discreet.vault.released import Released

Fetch = Callable[[Numbers], Exact]
# queries, and how many rows of them may be held at once
Read = Callable[[Sequence[Numbers], int], Exact]

_MOST_NAMED, _MOST_LETTERS = 4_000, 60_000  # of surviving keys that are named to an engine


def measure(
    offered: Offer, allowance: Allowance, fetch: Fetch, read: Read | None = None
) -> list[Noisy]:
    """Return the noisy numbers and chosen cells of every block of a plan; all are measured now."""
    return gather_numbers(offered, release_parts(offered, allowance, fetch, read))


def release_parts(
    offered: Offer,
    allowance: Allowance,
    fetch: Fetch,
    read: Read | None = None,
    *,
    in_passes: bool = True,
) -> dict[str, Released]:
    """Release every part that is due. `read` returns rows of unknown keys part by part.

    With `in_passes` the engine counts people in several passes, each for a part of the unknown
    keys. This changes no number.
    """
    in_parts = read or (lambda queries, _: Exact.chain(map(fetch, queries)))
    found = dict[str, Released]()
    for index, parts in groupby(offered.due, key=lambda part: part.block):
        each = offered.blocks[index]
        if each.block.unknown:
            found |= {
                part.id: _release_unknown(each, part, allowance, in_parts, in_passes)
                for part in parts
            }
        else:
            found |= _release_public(each, tuple(parts), allowance, fetch)
    return found


def gather_numbers(offered: Offer, released: Mapping[str, Released]) -> list[Noisy]:
    """Return the noisy numbers of every block. A rolled-up or shared block takes another's
    numbers.
    """
    own = [_gather_block(index, each.block, released) for index, each in enumerate(offered.blocks)]
    for index, each in enumerate(offered.blocks):
        if isinstance(kind := each.block.kind, RolledUp):
            source = offered.blocks[kind.block].block
            numbers = roll_up_numbers(kind, each.block.sizes, source.sizes, own[kind.block].numbers)
            own[index] = replace(own[index], numbers=numbers)
    return [own[_numbers_from(index, each.block)] for index, each in enumerate(offered.blocks)]


def _numbers_from(index: int, block: Block) -> int:
    return block.kind.block if isinstance(block.kind, Shared) else index


def _gather_block(index: int, block: Block, released: Mapping[str, Released]) -> Noisy:
    """Return the released numbers of a block's own parts."""
    numbers = dict[str, tuple[Any, ...]]()
    survivors = None
    for part in block_parts(index, block):
        left = released[part.id]
        survivors = left.survivors
        numbers |= dict(zip(part.statistics, left.numbers, strict=True))
    own = {each.id for each in block.picks}
    return Noisy(
        numbers={name: each for name, each in numbers.items() if name not in own},
        picks={name: np.stack(each, axis=1) for name, each in numbers.items() if name in own},
        survivors=survivors,
    )


def _release_public(
    each: BlockOffer, parts: Sequence[Measurement], allowance: Allowance, fetch: Fetch
) -> dict[str, Released]:
    """Release a block with public keys: every group of the grid gets a number, even if nobody is in
    it.
    """
    block = each.block
    found = dict[str, Released]()
    exact = None
    statistics, picks = _by_id(block)
    for part in parts:
        if statistic := statistics.get(part.id):
            exact = exact or fetch(block.sums)
            left = allowance.measure(
                each.added[part.id],
                exact,
                moved=statistic.movement,
                sizes=block.sizes,
                forms=statistic.over(block.readings),
                totals=None if statistic.totals is None else statistic.totals.grid,
            )
        else:
            left = _release_pick(block, picks[part.id], each.chosen[part.id], allowance, fetch)
        found[part.id] = Released(numbers=(left,))
    return found


def _by_id(block: Block) -> tuple[dict[str, Statistic], dict[str, Pick]]:
    return {each.id: each for each in block.own_statistics}, {pick.id: pick for pick in block.picks}


def _release_unknown(
    each: BlockOffer, part: Measurement, allowance: Allowance, read: Read, in_passes: bool
) -> Released:
    """Release a block whose keys are not all public: keys that enough people share survive, and
    only they are measured (S5).

    The number of keys depends on the data. So they are read part by part, and only the rows of
    survivors stay in memory.
    """
    block = each.block
    assert each.threshold is not None  # a block with unknown keys has one
    exact = read(block.in_passes(block.people) if in_passes else (block.people,), block.part_rows)
    survivors, tested = allowance.threshold(
        each.threshold, exact, moved=block.touching, keys=len(block.unknown)
    )

    named = _conditions_on_survivors(block, survivors)

    def kept(*queries: Numbers) -> Exact:
        asked = queries if named is None else [_add_conditions(named, query) for query in queries]
        return allowance.keep(read(asked, block.part_rows), survivors, keys=block.unknown)

    statistics, picks = _by_id(block)
    in_parts = in_passes and named is None
    exact = (
        kept(*(block.in_passes(block.sums) if in_parts else (block.sums,))) if statistics else exact
    )
    numbers = []
    for name in part.statistics:
        if statistic := statistics.get(name):
            left = allowance.measure(
                each.added[name],
                exact,
                moved=statistic.sensitivity,
                sizes=block.sizes,
                forms=statistic.over(block.readings),
                survivors=survivors,
                keys=block.unknown,
            )
            numbers.append(left)
        elif pick := picks.get(name):
            numbers.append(
                _release_pick(block, pick, each.chosen[name], allowance, kept, survivors)
            )
        else:
            numbers.append((tested,))
    return Released(numbers=tuple(numbers), survivors=survivors)


def _conditions_on_survivors(block: Block, survivors: pa.Table) -> tuple[Expression, ...] | None:
    """Return conditions that are true for the rows of surviving keys, and for few others; None if
    there are too many such keys to list.

    The engine then groups and sends only those rows. Privacy: the survivors have been released, and
    each row is left out by its own key alone. So nobody moves a sum farther than without the
    conditions.
    """
    conditions = list[Expression]()
    for index, column in zip(block.unknown, survivors.columns, strict=True):
        if not (pa.types.is_integer(column.type) or pa.types.is_large_string(column.type)):
            return None
        values = column.unique().to_pylist()
        known = [value for value in values if value is not None]
        letters = "".join(map(str, known))
        if len(known) > _MOST_NAMED or len(letters) > _MOST_LETTERS or "\x00" in letters:
            return None
        key = block.places[index]
        among: Expression = call("in", key, *known) if known else Constant(False)
        conditions.append(among if len(known) == len(values) else call("OR", among, key.is_null))
    return tuple(conditions)


def _add_conditions(conditions: tuple[Expression, ...], query: Numbers) -> Numbers:
    """Return the query with more conditions on its rows."""
    if isinstance(query, Nearest):
        return replace(
            query, counted=replace(query.counted, where=(*query.counted.where, *conditions))
        )
    return replace(query, where=(*query.where, *conditions))


def _release_pick(
    block: Block,
    pick: Pick,
    choices: tuple[Selection, ...],
    allowance: Allowance,
    fetch: Fetch,
    survivors: Any = None,
) -> tuple[Any, ...]:
    """Return the cells that a pick chooses in each group, in one array for each choice."""
    grid: dict[str, Any] = {
        "moved": pick.movement,
        "sizes": block.sizes,
        "survivors": survivors,
        "keys": block.unknown,
    }
    if near := nearby(choices):
        exact = fetch(block.near(pick, near))
        found = [allowance.choose_near(choice, exact, **grid) for choice in near]
    else:
        exact = fetch(block.rows_in(pick))
        found = [
            allowance.choose(choice, exact, cells=pick.domain.size, **grid) for choice in choices
        ]
    return tuple(np.sort(np.hstack(found), axis=1).T)  # several quantiles never cross
