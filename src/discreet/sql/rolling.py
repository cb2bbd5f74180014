"""Choose how several groupings of the same rows (GROUPING SETS, ROLLUP, CUBE) are measured: each of
them, or some added up from others after noise (S3).

If s groupings are measured, they share the amount, so each has s times the noise (√s times with
Gaussian noise). Or only a finer grouping is measured, with a larger share, and its noisy numbers
are added up to the coarser ones for free; a sum of c numbers has √c times their noise. We choose
the groupings to measure so that the mean margin over all groupings is smallest. It follows from the
sizes of the keys and from the sensitivities, which are public.

Privacy
    What is measured is an ordinary block with public keys, and its sensitivities are those of its
    whole vector. Adding up released numbers is post-processing.
Right answers
    A row whose key is NULL, where NULL is not a key, is in no group by that key, but it is in the
    coarser groups. So each key of a block that is added up has a cell for NULL, which is not shown:
    then every row is in exactly one cell. Sums over disjoint cells add up to the sum over their
    union. This does not hold for people who are in several cells, for distinct values, and for
    choices by rank: these are measured for each grouping.
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

# The keys of a grouping, each by its expression. Equal stages have equal numbers in all groupings.
Names = frozenset[Expression]
Again = Callable[[int], tuple[Statistic, ...]]  # what a block would measure with so many groups


def choose_roll_ups(
    blocks: Sequence[Block], again: Mapping[int, Again], *, accountant: AccountantName, limit: int
) -> tuple[tuple[Block, ...], tuple[Way, ...]]:
    """Return the blocks, with roll-ups where they give smaller margins, and the comparison of
    margins for each family of groupings.
    """
    result = list(blocks)
    ways: list[Way] = []
    for members in _families(blocks):
        why = _why_not_added_up(blocks, members)
        if why:
            ways.append(Way(blocks=members, together=None, apart=0.0, why=why))
            continue
        outside = [block for index, block in enumerate(blocks) if index not in members]
        others = sum(map(_count_numbers, outside))
        family = _Family.of(
            blocks, members, again[members[0]], accountant=accountant, limit=limit, others=others
        )
        sources, way = family.choice()
        ways.append(way)
        for source in dict.fromkeys(sources):
            users = [index for index, each in zip(members, sources, strict=True) if each == source]
            if len(users) == 1 and family.sets[users[0]] == source:
                continue  # it is measured itself, and serves no other grouping
            for index in users:
                result[index] = family.roll_up(index, source, place=len(result))
            result.append(family.block(source))
    for index, block in enumerate(blocks):
        if isinstance(block.kind, Shared):
            first = result[block.kind.block]  # it may be rolled up now
            result[index] = replace(first, derived=block.derived, kind=block.kind)
    return tuple(result), tuple(ways)


def _count_numbers(block: Block) -> int:
    """Return the number of a block's statistics and picks, which share the amount."""
    if isinstance(block.kind, Shared):
        return 0
    return len(block.statistics) + len(block.picks)


def _families(blocks: Sequence[Block]) -> Iterator[tuple[int, ...]]:
    """Yield the indexes of blocks that read the same sums of the same rows and differ in their
    keys.
    """
    if len(blocks) == 1:
        return
    families: dict[object, list[int]] = {}
    for index, block in enumerate(blocks):
        if isinstance(block.kind, Shared):
            continue
        read = with_stages(block.read, _numbering())
        same = (read, block.rows, bool(block.unknown))
        families.setdefault(same, []).append(index)
    for members in families.values():
        if len(members) > 1:
            yield tuple(members)


def _numbering() -> Callable[[str], str]:
    """Return a function that gives the stages of one block new names: t0, t1, ... in the order in
    which they appear.
    """
    names: dict[str, str] = {}
    return lambda stage: names.setdefault(stage, f"t{len(names)}")


def _note_stage(own: dict[str, str], number: Callable[[str], str], stage: str) -> str:
    """Store a stage's own name under its new name; return the own name."""
    return own.setdefault(number(stage), stage)


def _why_not_added_up(blocks: Sequence[Block], members: Sequence[int]) -> str:
    """Return why each grouping must be measured; an empty text if some can be added up."""
    if any(isinstance(key, Joint) for index in members for key in blocks[index].keys):
        return "only some combinations of their keys are possible"
    if blocks[members[0]].unknown:
        return "their keys are not public"
    if any(len(set(blocks[index].places)) < len(blocks[index].places) for index in members):
        return "two of their keys are one"
    statistics = [each for index in members for each in blocks[index].statistics]
    not_additive = [each.name for each in statistics if not each.additive]
    if not_additive:
        return f"{not_additive[0]} of a group is not the sum of its parts'"
    if not statistics:
        return f"{blocks[members[0]].picks[0].name} is chosen in each group, not added up"
    return ""


# --- the choice -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """Groupings of the same rows, by the indexes of their blocks."""

    sets: dict[int, Names]
    # for each name: the key with a cell for NULL, and its place as the first block writes it
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
        """Return the family of these blocks; `others` are the statistics and picks of all other
        blocks.
        """
        keys: dict[Expression, tuple[Key, Expression]] = {}
        names: dict[int, tuple[Expression, ...]] = {}
        first = blocks[members[0]]
        # the first block's own name of each stage, by its new name
        own: dict[str, str] = {}
        for index in members:
            block = blocks[index]
            number = _numbering()
            read = with_stages(block.read, number)
            if not own:
                with_stages(block.read, partial(_note_stage, own, number))
            assert read == with_stages(first.read, _numbering())
            names[index] = with_stages(block.places, number)
            for name, key in zip(names[index], block.keys, strict=True):
                assert isinstance(key, Key)
                # A stage inside a key, as in an EXISTS, is not among the stages of the rows. It gets
                # a new name, because the first block may use its name for another stage.
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
        """Return the number of groups by these keys."""
        return math.prod(self.keys[name][0].size for name in names)

    def choice(self) -> tuple[list[Names], Way]:
        """Choose the source that each grouping is added up from; return the sources and the mean
        margins.

        It starts from two choices, and takes the step that lowers the mean margin most, as long as
        there is one.
        """
        finest = frozenset(self.keys)
        sets = list(self.sets.values())
        sources = list(dict.fromkeys((finest, *sets)))
        noise = np.array([[self.noise(source, each) for each in sets] for source in sources])
        # A grouping is its own source if no finer one is measured.
        itself = np.array([sources.index(each) for each in sets])
        every_source = np.arange(len(sources))
        every_set = np.arange(len(sets))
        parts = len(self.again(1))

        def weigh(indexes: frozenset[int]) -> tuple[float, list[int]]:
            """Return the mean margin if these sources are measured, in units of the noise of one
            number at the whole amount; and the source of each grouping.
            """
            is_available = np.isin(every_source, list(indexes))[:, None]
            available = np.where(is_available, noise, np.inf)
            has_source = np.isfinite(available.min(axis=0))
            choice = np.where(has_source, available.argmin(axis=0), itself)
            shares = self.others + len(set(choice.tolist())) * parts
            mean = float(noise[choice, every_set].mean())
            return currency(self.accountant).widening(shares) * mean, choice.tolist()

        def improve(way: tuple[float, list[int]]) -> tuple[float, list[int]]:
            """Add or remove the one source that helps most, as long as it helps."""
            while True:
                in_use = frozenset(way[1])
                better = min(weigh(in_use ^ {one}) for one in range(len(sources)))
                if better[0] >= way[0]:
                    return way
                way = better

        together = weigh(frozenset({0}))
        apart = weigh(frozenset(itself.tolist()))
        best = min(improve(together), improve(apart))
        if best[1] == itself.tolist():
            best = (together[0], best[1])
        choices = [sources[index] for index in best[1]]
        return choices, Way(blocks=tuple(self.sets), together=best[0], apart=apart[0])

    def noise(self, source: Names, names: Names) -> float:
        """Return the margin of a grouping that is added up from a source; infinite if it cannot
        be.
        """
        is_coarser = names < source and self.cells(source) <= self.limit
        if names != source and not is_coarser:
            return math.inf
        draws = self.cells(source - names)
        return self.norm(source) * currency(self.accountant).sum_width(draws)

    def norm(self, source: Names) -> float:
        """Return how far one person moves what is measured, relative to a block with very many
        groups.
        """
        money = currency(self.accountant)
        here = self.again(self.cells(source))
        most = self.again(2**31)
        ratios = []
        for one, other in zip(here, most, strict=True):
            ratios.append(money.ratio(one.sensitivity, other.sensitivity))
        return sum(ratios) / len(ratios)

    def block(self, source: Names) -> Block:
        """Return the block that measures a source. The answer shows nothing of it directly."""
        keys = [pair for name, pair in self.keys.items() if name in source]
        statistics = self.again(self.cells(source))
        first = next(iter(self.blocks.values()))
        return replace(
            first,
            keys=tuple(key for key, _ in keys),
            places=tuple(place for _, place in keys),
            statistics=tuple(replace(each, estimates=()) for each in statistics),
            picks=(),
            derived=(),
        )

    def roll_up(self, index: int, source: Names, *, place: int) -> Block:
        """Return the block at an index, rolled up from the source's block at a place."""
        order = [name for name in self.keys if name in source]
        places = tuple(order.index(name) for name in self.names[index])
        kind = RolledUp(block=place, keys=places, draws=self.cells(source - self.sets[index]))
        return replace(self.blocks[index], kind=kind)
