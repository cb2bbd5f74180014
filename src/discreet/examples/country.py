"""A generated country, to try publications on: people in households, in blocks of very different
sizes, in a hierarchy of five levels.

It is the same on every machine: all numbers come from hashes of names, not from a random generator.
About a quarter of the blocks are empty, a few hold a prison, a dormitory or a nursing home, and
groups of people live apart.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.examples.town import bell, even

if TYPE_CHECKING:
    import pyarrow as pa

Array = np.ndarray[Any, np.dtype[Any]]

LEVELS = ("state", "county", "tract", "block_group", "block")
GROUPS = ("white", "black", "native", "asian", "islander", "other")
# 63, as in the census
RACES = tuple("+".join(each) for size in range(1, 7) for each in combinations(GROUPS, size))
LIVING = (
    "household",
    "prison",
    "juvenile",
    "nursing",
    "other institution",
    "dormitory",
    "barracks",
    "other quarters",
)
PEOPLE_A_BLOCK = 100

POLICY = """\
source: data/                      # people and blocks as Parquet files
unit: person
neighbors: add_remove
tables:
  people:
    owner: person_id
    columns:
      person_id: {identifier: true}
      household: {identifier: true}
      block:     text              # which blocks there are is public: the table blocks
      living:    {values: [LIVING]}
      age:       {integer: [0, 115]}
      adult:     {boolean: true}
      sex:       {values: [F, M]}
      race:      {values: [RACES]}
      hispanic:  {boolean: true}
  blocks: {public: true}
hierarchies:
  geography: {levels: [state, county, tract, block_group, block], table: blocks}
publications:
  census_2030:                     # discreet publish run country.yaml census_2030
    table: people
    hierarchy: geography
    tables: [[], [living], [adult, hispanic, race], [living, adult, hispanic, race]]
    epsilon: 4
    zeros:
      - {living: juvenile, adult: true}
budget: {epsilon: 8, delta: 1e-10, accountant: zcdp, keys: 0}
limits: {epsilon: 1, seconds: 600, memory: 4GB}
analysts:
  alice: {epsilon: 2}
"""


def build(folder: str | Path, people: int = 20_000, *, name: str = "") -> Path:
    """Write the country's Parquet files and its policy to a folder; return the policy's path.

    Countries with different names have different people.
    """
    import pyarrow.parquet

    data = Path(folder) / "data"
    data.mkdir(parents=True, exist_ok=True)
    for called, table in tables(people, name).items():
        pyarrow.parquet.write_table(table, data / f"{called}.parquet")
    policy = Path(folder) / "country.yaml"
    text = POLICY.replace("LIVING", ", ".join(LIVING)).replace("RACES", ", ".join(RACES))
    policy.write_text(text, encoding="utf-8")
    return policy


def tables(people: int, name: str = "") -> dict[str, pa.Table]:
    """Return the country as Arrow tables: people and blocks."""
    import pyarrow as pa

    blocks = tree(max(1, people // PEOPLE_A_BLOCK), name)
    names = {level: pa.array(_names(codes, level)) for level, codes in blocks.items()}
    residents = _people(people, blocks, name)
    block = residents.pop("block")
    columns = {
        "person_id": pa.array(np.arange(1, people + 1)),
        "household": pa.array(residents["household"]),
        "block": names["block"].take(pa.array(block)),
        "living": pa.array(LIVING).take(pa.array(residents["living"])),
        "age": pa.array(residents["age"]),
        "adult": pa.array(residents["age"] >= 18),
        "sex": pa.array(["F", "M"]).take(pa.array(residents["sex"])),
        "race": pa.array(RACES).take(pa.array(residents["race"])),
        "hispanic": pa.array(residents["hispanic"].astype(bool)),
    }
    return {"people": pa.table(columns), "blocks": pa.table(names)}


def _names(codes: Array, level: str) -> list[str]:
    width = len(str(int(codes.max()) + 1))
    letter = "G" if level == "block_group" else level[0].upper()
    return [f"{letter}{code + 1:0{width}}" for code in codes]


def tree(blocks: int, name: str = "") -> dict[str, Array]:
    """Return, for each level, the number of the place in which each block lies."""
    found = {"block": np.arange(blocks)}
    below = found["block"]
    for level, children, least in (
        ("block_group", 5, 1),
        ("tract", 3, 1),
        ("county", 13, 4),
        ("state", 10, 2),
    ):
        count = len(np.unique(below))
        above = _parents(
            count, max(round(count / children), min(least, count)), f"{name}size of a {level}"
        )
        below = above[below]
        found[level] = below
    return {level: found[level] for level in LEVELS}


def _parents(children: int, parents: int, purpose: str) -> Array:
    """Return the parent of each child. Neighbors have the same parent, and some parents have far
    more children than others.
    """
    sizes = np.exp(0.8 * bell(np.arange(parents), purpose))
    free = children - parents  # every parent has at least one child
    ends = np.floor(np.cumsum(sizes) / sizes.sum() * free + 1e-9).astype(np.int64)
    counts = 1 + np.diff(np.append(0, ends))
    return np.repeat(np.arange(parents), counts)


def _people(n: int, blocks: dict[str, Array], name: str) -> dict[str, Array]:
    count = len(blocks["block"])
    places = np.arange(count)
    weight = np.exp(1.1 * bell(places, f"{name}block"))
    weight[even(places, f"{name}empty") < 0.27] = 0
    quarters = even(places, f"{name}quarters") < 0.015
    weight[quarters] *= 3
    if not weight.any():
        weight[:] = 1
    block = np.searchsorted(np.cumsum(weight) / weight.sum(), (np.arange(n) + 0.5) / n)
    who = np.arange(n)
    kind = 1 + np.floor(even(places, f"{name}kind") * 7).astype(np.int64)
    living = np.where(quarters[block] & (even(who, f"{name}inside") < 0.8), kind[block], 0)
    age = np.floor(100 * even(who, f"{name}age") ** 1.3).astype(np.int64)
    age = np.where(living == 1, 18 + age * 6 // 10, np.where(living == 2, 10 + age * 7 // 100, age))
    age = np.where(
        living == 3, 65 + age // 3, np.where((living == 5) | (living == 6), 18 + age // 12, age)
    )
    return {
        "block": block,
        "household": who // 3 + block,
        "living": living,
        "age": np.minimum(age, 115),
        "sex": (even(who, f"{name}sex") < 0.49).astype(np.int64),
        "race": _race(who, block, blocks["tract"][block], name),
        "hispanic": even(who, f"{name}hispanic") < _hispanic(blocks, name)[block],
    }


def _hispanic(blocks: dict[str, Array], name: str) -> Array:
    wide = 1.4 * bell(blocks["tract"], f"{name}hispanic")
    tilt = wide + 0.6 * bell(blocks["block"], f"{name}hispanic here")
    return np.asarray(1 / (1 + np.exp(1.9 - tilt)))


def _race(who: Array, block: Array, tract: Array, name: str) -> Array:
    """Return one group for most, by where they live; a second or third one for some."""
    base = np.log([0.62, 0.14, 0.012, 0.07, 0.004, 0.10])
    there = np.arange(int(tract.max()) + 1), np.arange(int(block.max()) + 1)
    wide = [1.2 * bell(there[0], f"{name}group {g}")[tract] for g in range(6)]
    narrow = [0.6 * bell(there[1], f"{name}group {g} here")[block] for g in range(6)]
    tilt = base[:, None] + np.stack(wide) + np.stack(narrow)
    share = np.exp(tilt - tilt.max(axis=0))
    first = (np.cumsum(share, axis=0) < even(who, f"{name}group") * share.sum(axis=0)).sum(axis=0)
    chosen = np.left_shift(1, first)
    for place, chance in enumerate((0.08, 0.006, 0.0008)):
        other = np.floor(even(who, f"{name}other group {place}") * 6).astype(np.int64)
        chosen = np.where(
            even(who, f"{name}more {place}") < chance, chosen | np.left_shift(1, other), chosen
        )
    masks = [sum(1 << GROUPS.index(each) for each in race.split("+")) for race in RACES]
    order = np.zeros(64, dtype=np.int64)
    order[masks] = np.arange(len(RACES))
    return np.asarray(order[chosen])
