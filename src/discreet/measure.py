"""An offer carried out: each part is read, and what was paid for is released. Nothing here sees an exact value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from discreet.algebra import Numbers
from discreet.mechanisms.shapes import Selection, nearby
from discreet.offer import BlockOffer, Offer
from discreet.parts import Part, block_parts
from discreet.sql.after.finish import Noisy, added_up
from discreet.sql.picks import Pick
from discreet.sql.plan import Block
from discreet.vault.allowance import Allowance
from discreet.vault.exact import Exact
from discreet.vault.released import Released

Fetch = Callable[[Numbers], Exact]
Read = Callable[[Sequence[Numbers], int], Exact]  # queries, and how many rows of them may be held at once


def measure(offered: Offer, allowance: Allowance, fetch: Fetch, read: Read | None = None) -> list[Noisy]:
    """Noisy numbers and picked cells for every block of a plan, all measured now."""
    return noisy(offered, released(offered, allowance, fetch, read))


def released(offered: Offer, allowance: Allowance, fetch: Fetch, read: Read | None = None) -> dict[str, Released]:
    """What every part that is due releases; `read` reads in parts where keys are not public."""
    in_parts = read or (lambda queries, _: Exact.chained(map(fetch, queries)))
    found = dict[str, Released]()
    for index, parts in groupby(offered.due, key=lambda part: part.block):
        each = offered.blocks[index]
        if each.block.unknown:
            found |= {part.id: _unknown(each, part, allowance, in_parts) for part in parts}
        else:
            found |= _public(each, tuple(parts), allowance, fetch)
    return found


def noisy(offered: Offer, released: Mapping[str, Released]) -> list[Noisy]:
    """The blocks' numbers from those of all parts; a block that is added up from another has sums of that one's."""
    own = [_noisy(index, each.block, released) for index, each in enumerate(offered.blocks)]
    for index, each in enumerate(offered.blocks):
        if (rolled := each.block.rolled) is not None:
            source = offered.blocks[rolled.block].block
            own[index] = replace(own[index], numbers=added_up(each.block, source, own[rolled.block].numbers))
    return own


def _noisy(index: int, block: Block, released: Mapping[str, Released]) -> Noisy:
    numbers, survivors = dict[int, tuple[Any, ...]](), None
    for part in block_parts(index, block):
        left = released[part.id]
        survivors = left.survivors
        numbers |= dict(zip(part.places, left.numbers, strict=True))
    measured = len(block.measurements)
    return Noisy(
        numbers=[numbers[place] for place in range(measured)],
        picks=[np.stack(numbers[place], axis=1) for place in range(measured, len(block.names))],
        survivors=survivors,
    )


def _public(each: BlockOffer, parts: Sequence[Part], allowance: Allowance, fetch: Fetch) -> dict[str, Released]:
    """All keys are public: every group of the grid gets a number, whether or not anybody is in it."""
    block, found, exact = each.block, dict[str, Released](), None
    for part in parts:
        [place] = part.places
        for mechanism in each.added(place):
            exact = exact or fetch(block.sums)
            moved, forms = block.measurements[place].sensitivity, block.measurements[place].forms
            left = allowance.measure(mechanism, exact, moved=moved, sizes=block.sizes, forms=forms)
            found[part.id] = Released(numbers=(left,))
        if choices := each.chosen(place):
            left = _pick(block, block.pick_at(place), choices, allowance, fetch)
            found[part.id] = Released(numbers=(left,))
    return found


def _unknown(each: BlockOffer, part: Part, allowance: Allowance, read: Read) -> Released:
    """Some keys are not public: those that enough people share survive, and only they are measured (S5).

    How many keys there are is for data to decide: they are read part by part, and what is not of survivors is let go.
    """
    block = each.block
    assert each.threshold is not None  # a block with unknown keys has one
    exact = read(block.in_passes(block.people), block.part_rows)
    survivors, tested = allowance.threshold(each.threshold, exact, moved=block.tested, keys=len(block.unknown))

    def kept(*queries: Numbers) -> Exact:
        return allowance.keep(read(queries, block.part_rows), survivors, keys=block.unknown)

    exact = kept(*block.in_passes(block.sums)) if each.measured else exact
    numbers = []
    for place in part.places:
        for mechanism in each.added(place):
            measurement = block.measurements[place]
            left = allowance.measure(
                mechanism,
                exact,
                moved=measurement.sensitivity,
                sizes=block.sizes,
                forms=measurement.forms,
                survivors=survivors,
                keys=block.unknown,
            )
            numbers.append(left)
        if choices := each.chosen(place):
            numbers.append(_pick(block, block.pick_at(place), choices, allowance, kept, survivors))
        elif not each.added(place):
            numbers.append((tested,))
    return Released(numbers=tuple(numbers), survivors=survivors)


def _pick(
    block: Block,
    pick: Pick,
    choices: tuple[Selection, ...],
    allowance: Allowance,
    fetch: Fetch,
    survivors: Any = None,
) -> tuple[Any, ...]:
    """The cells that a pick chooses in each group, in one array for each choice."""
    grid: dict[str, Any] = {
        "moved": pick.moved,
        "sizes": block.sizes,
        "survivors": survivors,
        "keys": block.unknown,
    }
    if near := nearby(choices):
        exact = fetch(block.near(pick, near))
        found = [allowance.choose_near(choice, exact, **grid) for choice in near]
    else:
        exact = fetch(block.rows_in(pick))
        found = [allowance.choose(choice, exact, cells=pick.domain.size, **grid) for choice in choices]
    return tuple(np.sort(np.hstack(found), axis=1).T)  # several quantiles never cross
