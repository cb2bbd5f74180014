"""An offer carried out: each block is read, and what was paid for is released. Nothing here sees an exact value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.algebra import Numbers
from discreet.mechanisms.shapes import Selection
from discreet.offer import BlockOffer, Offer
from discreet.sql.after.finish import Noisy, added_up
from discreet.sql.picks import Pick
from discreet.sql.plan import Block
from discreet.vault.allowance import Allowance
from discreet.vault.exact import Exact

Fetch = Callable[[Numbers], Exact]
Read = Callable[[Sequence[Numbers], int], Exact]  # queries, and how many rows of them may be held at once


def measure(offered: Offer, allowance: Allowance, fetch: Fetch, read: Read | None = None) -> list[Noisy]:
    """Noisy numbers and picked cells for every block of a plan; `read` reads in parts where keys are not public.

    A block that reads the same as another, or is added up from another's noisy numbers, is not read.
    """
    blocks, parts = offered.plan.blocks, read or (lambda queries, _: Exact.chained(map(fetch, queries)))
    own = {
        index: _unknown(each, allowance, parts) if each.block.unknown else _public(each, allowance, fetch)
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
        exact = fetch(block.sums)
        for mechanism, measurement in zip(each.measured, block.measurements, strict=True):
            moved, forms = measurement.sensitivity, measurement.forms
            numbers.append(allowance.measure(mechanism, exact, moved=moved, sizes=block.sizes, forms=forms))
    picks = [
        _pick(block, pick, choices, allowance, fetch) for pick, choices in zip(block.picks, each.picked, strict=True)
    ]
    return Noisy(numbers=numbers, picks=picks, survivors=None)


def _unknown(each: BlockOffer, allowance: Allowance, read: Read) -> Noisy:
    """Some keys are not public: those that enough people share survive, and only they are measured (S5).

    How many keys there are is for data to decide: they are read part by part, and what is not of survivors is let go.
    """
    block = each.block
    assert each.threshold is not None  # a block with unknown keys has one
    exact = read(block.in_passes(block.people), block.part_rows)
    survivors, tested = allowance.threshold(each.threshold, exact, moved=block.tested, keys=len(block.unknown))

    def kept(*queries: Numbers) -> Exact:
        return allowance.keep(read(queries, block.part_rows), survivors, keys=block.unknown)

    numbers: list[Any] = [(tested,)] if block.one_shot else []
    if each.measured:
        exact = kept(*block.in_passes(block.sums))
        for mechanism, measurement in zip(each.measured, block.measurements[block.one_shot :], strict=True):
            released = allowance.measure(
                mechanism,
                exact,
                moved=measurement.sensitivity,
                sizes=block.sizes,
                forms=measurement.forms,
                survivors=survivors,
                keys=block.unknown,
            )
            numbers.append(released)
    picks = [
        _pick(block, pick, choices, allowance, kept, survivors)
        for pick, choices in zip(block.picks, each.picked, strict=True)
    ]
    return Noisy(numbers=numbers, picks=picks, survivors=survivors)


def _pick(
    block: Block,
    pick: Pick,
    choices: tuple[Selection, ...],
    allowance: Allowance,
    fetch: Fetch,
    survivors: Any = None,
) -> Any:
    """The cells that a pick chooses in each group."""
    grid: dict[str, Any] = {
        "moved": pick.moved,
        "sizes": block.sizes,
        "survivors": survivors,
        "keys": block.unknown,
    }
    if pick.fine:
        near = pick.nearby(choices)
        exact = fetch(block.near(pick, near))
        found = [allowance.choose_near(choice, exact, **grid) for choice in near]
    else:
        exact = fetch(block.rows_in(pick))
        found = [allowance.choose(choice, exact, cells=pick.domain.size, **grid) for choice in choices]
    return np.sort(np.hstack(found), axis=1)  # several quantiles never cross
