"""An offer carried out: each block is read, and what was paid for is released. Nothing here sees an exact value.

Blocks are read one after another; later passes of a pick look where the pass before pointed, which is released already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.mechanisms import Mechanism
from discreet.offer import BlockOffer, Offer
from discreet.release import Allowance, Exact
from discreet.sql.finish import Noisy, added_up
from discreet.sql.picks import Pick, Window
from discreet.sql.plan import Block

Fetch = Callable[[str], Exact]


def measure(offered: Offer, allowance: Allowance, fetch: Fetch) -> list[Noisy]:
    """Noisy numbers and picked cells for every block of a plan.

    A block that reads the same as another, or is added up from another's noisy numbers, is not read.
    """
    blocks = offered.plan.blocks
    own = {
        index: (_unknown if each.block.unknown else _public)(each, allowance, fetch)
        for index, each in enumerate(offered.blocks)
        if each.block.same_as is None
    }
    for index, noisy in own.items():
        if (rolled := blocks[index].rolled) is not None:
            numbers = added_up(blocks[index], blocks[rolled.block], own[rolled.block].numbers)
            own[index] = replace(noisy, numbers=numbers)
    return [own[index if block.same_as is None else block.same_as] for index, block in enumerate(blocks)]


def _public(each: BlockOffer, allowance: Allowance, fetch: Fetch) -> Noisy:
    """All keys are public: every group of the grid gets a number, whether or not anybody is in it."""
    block, numbers = each.block, []
    if each.measured:
        exact = fetch(block.query)
        for mechanism, measurement in zip(each.measured, block.measurements, strict=True):
            numbers.append(allowance.measure(mechanism, exact, sizes=block.sizes, forms=measurement.forms))
    picks = [
        _pick(block, pick, passes, allowance, fetch) for pick, passes in zip(block.picks, each.picked, strict=True)
    ]
    return Noisy(numbers=numbers, picks=picks, survivors=None)


def _unknown(each: BlockOffer, allowance: Allowance, fetch: Fetch) -> Noisy:
    """Some keys are not public: those that enough people share survive, and only they are measured (S5)."""
    block = each.block
    survivors, tested = allowance.threshold(each.threshold, fetch(block.people_query), keys=len(block.unknown))
    numbers: list[Any] = [(tested,)] if block.one_shot else []
    if each.measured:
        exact = fetch(block.query)
        for mechanism, measurement in zip(each.measured, block.measurements[block.one_shot :], strict=True):
            released = allowance.measure(
                mechanism, exact, sizes=block.sizes, forms=measurement.forms, survivors=survivors, keys=block.unknown
            )
            numbers.append(released)
    picks = []
    for pick, mechanisms in zip(block.picks, each.picked, strict=True):
        found = []
        for part, mechanism in zip(pick.parts, mechanisms, strict=True):
            cells = allowance.choose(
                mechanism,
                fetch(block.pick_query(part, ())),
                sizes=block.sizes,
                cells=part.cells(0),
                survivors=survivors,
                keys=block.unknown,
            )
            found.append(part.places(cells, ()))
        picks.append(np.sort(np.hstack(found), axis=1))
    return Noisy(numbers=numbers, picks=picks, survivors=survivors)


def _pick(block: Block, pick: Pick, mechanisms: tuple[Mechanism, ...], allowance: Allowance, fetch: Fetch) -> Any:
    """The cells that a pick chooses in each group, pass by pass."""
    found, remaining = [], iter(mechanisms)
    for part in pick.parts:
        windows, places = tuple[Window, ...](), np.empty(0)
        for index in range(len(part.widths)):
            windows = part.around(index, places, windows) if index else ()
            exact = fetch(block.pick_query(part, windows))
            cells = allowance.choose(next(remaining), exact, sizes=block.sizes, cells=part.cells(index))
            places = part.places(cells, windows)
        found.append(places)
    return np.sort(np.hstack(found), axis=1)  # several quantiles never cross
