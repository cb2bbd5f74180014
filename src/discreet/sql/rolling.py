"""Choose how groupings of the same rows (GROUPING SETS, ROLLUP, CUBE) are had: measured each, or
added up after noise (S3).

s groupings that are each measured share the amount, so that each has s times the noise (√s with
Gaussian noise). Or a finer one is measured with more, and its noisy numbers are added up to the
coarser ones, which is free: a number made of c others has √c times their noise. What is measured is
chosen for the smallest mean margin over the groupings, from the sizes of the keys and the
sensitivities, which are public.

Privacy
    What is measured is an ordinary block of public keys, whose sensitivities are those of its whole
    vector; adding up what was released is post-processing.
Right answers
    A row whose key is a NULL that is not meant is in no group of that key, but it is in the coarser
    groups: every key of a block that is added up has a cell for NULL, so that each row is in
    exactly one cell. Those cells are not shown. Sums over disjoint cells are sums over their union;
    not so people that are in several cells, distinct values, and what is chosen by rank: those are
    measured for each grouping.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from discreet.algebra import Expression, call, with_stages
from discreet.budget import AccountantName
from discreet.mechanisms.currency import currency
from discreet.sql.plan.block import Block, RolledUp, Shared, Statistic
from discreet.sql.plan.keys import Joint, Key
from discreet.sql.plan.plan import Way

# of the keys of a grouping: each by its place, over stages numbered alike
Names = frozenset[Expression]
Again = Callable[[int], tuple[Statistic, ...]]  # what a block measures, over so many groups


def choose_roll_ups(
    blocks: Sequence[Block], again: Mapping[int, Again], *, accountant: AccountantName, limit: int
) -> tuple[tuple[Block, ...], tuple[Way, ...]]:
    """Return the blocks, with those marked that are better added up from others, and what was
    weighed.
    """
    result, ways = list(blocks), list[Way]()
    for members in _families(blocks):
        why = _why_not_added_up(blocks, members)
        if why:
            ways.append(Way(blocks=members, together=None, apart=0.0, why=why))
            continue
        others = sum(
            _count_numbers(block) for index, block in enumerate(blocks) if index not in members
        )
        family = _Family.of(
            blocks, members, again[members[0]], accountant=accountant, limit=limit, others=others
        )
        chosen, way = family.choice()
        ways.append(way)
        for source in dict.fromkeys(chosen):
            served = [index for index, each in zip(members, chosen, strict=True) if each == source]
            if len(served) > 1 or family.sets[served[0]] != source:
                for index in served:
                    result[index] = family.roll_up(index, source, place=len(result))
                result.append(family.block(source))
    for index, block in enumerate(blocks):
        if isinstance(block.kind, Shared):  # with a block that may be rolled up by now
            result[index] = replace(
                result[block.kind.block], derived=block.derived, kind=block.kind
            )
    return tuple(result), tuple(ways)


def _count_numbers(block: Block) -> int:
    """Count a block's noisy numbers per group, among which the amount is split."""
    return 0 if isinstance(block.kind, Shared) else len(block.statistics) + len(block.picks)


def _families(blocks: Sequence[Block]) -> Iterator[tuple[int, ...]]:
    """Yield the places of blocks that read the same sums of the same rows and differ in their
    keys.
    """
    if len(blocks) == 1:
        return
    found: dict[object, list[int]] = {}
    for index, block in enumerate(blocks):
        if not isinstance(block.kind, Shared):
            read = with_stages(block.read, _numbering())
            found.setdefault((read, block.rows, bool(block.unknown)), []).append(index)
    yield from (tuple(each) for each in found.values() if len(each) > 1)


def _numbering() -> Callable[[str], str]:
    """Return a function that gives the stages of one block new names, in the order in which they
    appear.
    """
    known: dict[str, str] = {}
    return lambda stage: known.setdefault(stage, f"t{len(known)}")


def _note_stage(own: dict[str, str], number: Callable[[str], str], stage: str) -> str:
    """Remember what the block itself calls a stage, by the stage's new name."""
    return own.setdefault(number(stage), stage)


def _why_not_added_up(blocks: Sequence[Block], members: Sequence[int]) -> str:
    """Say why groupings must be measured one by one; an empty text if they need not."""
    if any(isinstance(key, Joint) for index in members for key in blocks[index].keys):
        return "only some combinations of their keys can be"
    if blocks[members[0]].unknown:
        return "their keys are not public"
    if any(len(set(blocks[index].places)) < len(blocks[index].places) for index in members):
        return "two of their keys are one"
    statistics = [each for index in members for each in blocks[index].statistics]
    distinct = [each.name for each in statistics if not each.additive]
    if distinct:
        return f"{distinct[0]} of a group is not the sum of its parts'"
    return (
        ""
        if statistics
        else f"{blocks[members[0]].picks[0].name} is chosen in each group, not added up"
    )


# --- the choice -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """Groupings of the same rows, by the index of their block; `keys` has what each name stands
    for.
    """

    sets: dict[int, Names]
    # with a cell for NULL, and the place as the first block has it
    keys: dict[Expression, tuple[Key, Expression]]
    blocks: dict[int, Block]
    names: dict[int, tuple[Expression, ...]]
    again: Again
    accountant: AccountantName
    limit: int
    others: int

    @classmethod
    def of(
        cls,
        blocks: Sequence[Block],
        members: Sequence[int],
        again: Again,
        *,
        accountant: AccountantName,
        limit: int,
        others: int,
    ) -> _Family:
        keys: dict[Expression, tuple[Key, Expression]] = {}
        names: dict[int, tuple[Expression, ...]] = {}
        # what the first block calls the stages that are numbered alike in all
        own: dict[str, str] = {}
        for index in members:
            block, number = blocks[index], _numbering()
            read = with_stages(block.read, number)
            if not own:
                with_stages(block.read, partial(_note_stage, own, number))
            assert read == with_stages(blocks[members[0]].read, _numbering())
            names[index] = with_stages(block.places, number)
            for name, key in zip(names[index], block.keys, strict=True):
                assert isinstance(key, Key)
                # Stages inside a key, of an EXISTS, are not among those that are read; the first
                # block may call something else by the same name.
                place = with_stages(name, lambda stage: own.get(stage, f"key_{stage}"))
                if not key.nullable:
                    place = call("coalesce", place, key.domain.size)
                keys.setdefault(name, (replace(key, nullable=True), place))
        return cls(
            sets={index: frozenset(names[index]) for index in members},
            keys=keys,
            blocks={index: blocks[index] for index in members},
            names=names,
            again=again,
            accountant=accountant,
            limit=limit,
            others=others + sum(len(blocks[index].picks) for index in members),
        )

    def cells(self, names: Names) -> int:
        return math.prod(self.keys[name][0].size for name in names)

    def choice(self) -> tuple[list[Names], Way]:
        """Choose what each grouping is added up from, by the least mean margin that small steps
        lead to.
        """
        finest, sets = frozenset(self.keys), list(self.sets.values())
        sources = list(dict.fromkeys((finest, *sets)))
        noise = np.array([[self.noise(source, each) for each in sets] for source in sources])
        # A grouping that nothing finer is measured for is measured itself.
        itself = np.array([sources.index(each) for each in sets])
        parts = len(self.again(1))

        def weighed(measured: frozenset[int]) -> tuple[float, list[int]]:
            """Return the mean margin, in units of a number's own noise at the whole amount, and
            where each comes from.
            """
            there = np.where(
                np.isin(np.arange(len(sources)), list(measured))[:, None], noise, np.inf
            )
            found = np.where(np.isfinite(there.min(axis=0)), there.argmin(axis=0), itself)
            shares = self.others + len(set(found.tolist())) * parts
            mean = float(noise[found, np.arange(len(sets))].mean())
            return currency(self.accountant).widening(shares) * mean, found.tolist()

        def improved(way: tuple[float, list[int]]) -> tuple[float, list[int]]:
            """Improve a way by measuring one grouping more or less, the one that helps most, while
            it helps.
            """
            while True:
                used = frozenset(way[1])
                better = min(weighed(used ^ {one}) for one in range(len(sources)))
                if better[0] >= way[0]:
                    return way
                way = better

        together, apart = weighed(frozenset({0})), weighed(frozenset(itself.tolist()))
        best = min(improved(together), improved(apart))
        if best[1] == itself.tolist():
            best = (together[0], best[1])
        chosen = [sources[index] for index in best[1]]
        return chosen, Way(blocks=tuple(self.sets), together=best[0], apart=apart[0])

    def noise(self, source: Names, names: Names) -> float:
        """Return the margin of a grouping that is added up from a source; infinite where it cannot
        be.
        """
        if not (names == source or (names < source and self.cells(source) <= self.limit)):
            return math.inf
        draws = self.cells(source - names)
        return self.norm(source) * currency(self.accountant).sum_width(draws)

    def norm(self, source: Names) -> float:
        """Return how far one person moves what is measured, as a share of how far over many
        groups.
        """
        paid, shares = currency(self.accountant), []
        for here, most in zip(self.again(self.cells(source)), self.again(2**31), strict=True):
            shares.append(paid.ratio(here.sensitivity, most.sensitivity))
        return sum(shares) / len(shares)

    def block(self, source: Names) -> Block:
        """Return the block from which others are added up: nothing of it is shown as it is."""
        keys = {name: key for name, key in self.keys.items() if name in source}
        return replace(
            next(iter(self.blocks.values())),
            keys=tuple(key for key, _ in keys.values()),
            places=tuple(place for _, place in keys.values()),
            statistics=tuple(
                replace(each, estimates=()) for each in self.again(self.cells(source))
            ),
            picks=(),
            derived=(),
        )

    def roll_up(self, index: int, source: Names, *, place: int) -> Block:
        order = [name for name in self.keys if name in source]
        places = tuple(order.index(name) for name in self.names[index])
        kind = RolledUp(block=place, keys=places, draws=self.cells(source - self.sets[index]))
        return replace(self.blocks[index], kind=kind)
