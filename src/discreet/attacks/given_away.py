"""Count the people whom published tables give away: the tables' people are matched with the real
ones, in three ways.

Tables of all columns at the finest level are a list of people. Published exactly they are the
people; with swapping, as in 2010, most of them still are; made from noisy counts, some agree by
chance. Use it on the microdata of a publication and the data that it was made from. Agreement alone
says little, as most people are like many others: what counts are people who are the only one of
their kind in their place, and how often a list is right that shows such a person.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.attacks.experiment.dice import Dice
from discreet.attacks.experiment.finding import Finding, Rate
from discreet.errors import UsageError

Integers = NDArray[np.int64]
SWAPPED = 0.05  # of people, in the 2010 way


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to publish: the people who agree with a listed one in all columns, and the further
    ones who agree in all but one.

    `alone` people are the only one of their kind in their place; the list has `found` of them. It
    shows `claims` such people, of whom `right` are real.
    """

    name: str
    people: int
    exact: int
    partial: int
    alone: int
    found: int
    claims: int
    right: int

    def as_json(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenAway:
    """`finding`: the share of people alone of their kind whom the published list has, beside a
    shuffled list.
    """

    finding: Finding
    ways: tuple[Way, ...]

    def as_json(self) -> dict[str, object]:
        return {**self.finding.as_json(), "ways": [way.as_json() for way in self.ways]}


def given_away(
    original: pa.Table, published: pa.Table, *, place: str, swap: float = SWAPPED
) -> GivenAway:
    """Hold exact, swapped and published tables against the people they are about, by place and all
    common columns.
    """
    if not 0 <= swap <= 1:
        raise UsageError(f"swap is a share of people, from 0 to 1, not {swap!r}.")
    columns = [
        name for name in published.column_names if name in original.column_names and name != place
    ]
    if place not in original.column_names or place not in published.column_names or not columns:
        raise UsageError(
            f"Both tables need the column {place} and another one in common. The published one has "
            f"{', '.join(published.column_names)}; the original {', '.join(original.column_names)}."
        )
    if not original.num_rows:
        raise UsageError("The original is empty: there is nobody to give away.")
    dice = Dice()
    people, listed = _encode(original, published, [place, *columns])
    swapped = _swap(people, swap, dice)
    shuffled = listed.copy()
    shuffled[:, 0] = listed[dice.order(len(listed)), 0]
    lists = {
        "exact": people,
        f"swapped {swap:.0%}": swapped,
        "published": listed,
        "shuffled": shuffled,
    }
    ways = tuple(_way(name, people, each) for name, each in lists.items())
    one = ways[2]
    chance = ways[3]
    rate = Rate(hits=one.found, n=one.alone)
    return GivenAway(
        finding=rate.finding("census", chance=chance.found / max(chance.alone, 1)), ways=ways
    )


def _encode(
    original: pa.Table, published: pa.Table, columns: list[str]
) -> tuple[Integers, Integers]:
    """Encode both tables as rows of small numbers; equal values have equal numbers."""
    coded = []
    for name in columns:
        texts = [
            table.column(name).cast(pa.string()).combine_chunks() for table in (original, published)
        ]
        both = pc.fill_null(pa.concat_arrays(texts), "NULL").dictionary_encode()
        coded.append(np.asarray(both.indices.to_numpy(zero_copy_only=False), dtype=np.int64))
    rows = np.stack(coded, axis=1)
    return rows[: original.num_rows], rows[original.num_rows :]


def _way(name: str, people: Integers, listed: Integers) -> Way:
    together = np.concatenate([people, listed])
    of_people, of_list = _kinds(together, len(people))
    exact = int(np.minimum(of_people[0], of_list[0]).sum())
    alone = of_people[0] == 1
    claims = of_list[0] == 1
    return Way(
        name=name,
        people=len(people),
        exact=exact,
        partial=_partly(people, listed, of_people, of_list),
        alone=int(alone.sum()),
        found=int((alone & (of_list[0] > 0)).sum()),
        claims=int(claims.sum()),
        right=int((alone & claims).sum()),
    )


def _kinds(
    rows: Integers, first: int
) -> tuple[tuple[Integers, Integers], tuple[Integers, Integers]]:
    """Count the first rows and the others by kind, and return the kind of each row with the
    counts.
    """
    _, kind = np.unique(rows, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    size = int(kind.max(initial=-1)) + 1
    parts = kind[:first], kind[first:]
    counts = [np.bincount(part, minlength=size) for part in parts]
    return (counts[0], parts[0]), (counts[1], parts[1])


def _partly(
    people: Integers,
    listed: Integers,
    of_people: tuple[Integers, Integers],
    of_list: tuple[Integers, Integers],
) -> int:
    """Count people without an exact match who agree with somebody on the list in all columns but
    one, one for one.
    """
    both = np.minimum(of_people[0], of_list[0])
    left = people[_beyond(of_people[1], both)]
    right = listed[_beyond(of_list[1], both)]
    found = 0
    for column in range(1, people.shape[1]):
        others = [each for each in range(people.shape[1]) if each != column]
        rows = np.concatenate([left[:, others], right[:, others]])
        here, there = _kinds(rows, len(left))
        met = np.minimum(here[0], there[0])
        found += int(met.sum())
        left = left[_beyond(here[1], met)]
        right = right[_beyond(there[1], met)]
    return found


def _beyond(kind: Integers, matched: Integers) -> NDArray[np.bool_]:
    """Return the rows that are left when so many of each kind are matched."""
    order = np.argsort(kind, kind="stable")
    ordered = kind[order]
    rank = np.arange(len(kind)) - np.searchsorted(ordered, ordered)
    left = np.empty(len(kind), dtype=bool)
    left[order] = rank >= matched[ordered]
    return left


def _swap(people: Integers, share: float, dice: Dice) -> Integers:
    """Swap as in 2010: some people change places with others; the only ones of their kind come
    first.
    """
    _, kind, counts = np.unique(people, axis=0, return_inverse=True, return_counts=True)
    risk = counts[kind.reshape(-1)] > 1
    order = dice.order(len(people))
    first = order[np.argsort(risk[order], kind="stable")]
    chosen = first[: 2 * round(share * len(people) / 2)]
    chosen = chosen[dice.order(len(chosen))]
    half = len(chosen) // 2
    found = people.copy()
    found[chosen[:half], 0], found[chosen[half:], 0] = (
        people[chosen[half:], 0],
        people[chosen[:half], 0],
    )
    return found
