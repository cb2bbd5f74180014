"""A question's releases on two neighbors, a great many times over: what a lower bound on its ε is
judged by.

Every run is what `measure` does, through the same allowance. To have a million of them, runs are
laid side by side as one more key of the exact tables, so that one release draws for all of them;
what takes several choices, or reads only a part of a fine grid, is run one by one and less often.

The outcome of a run is a number: for noise, how much likelier the numbers are on the one neighbor
than on the other if the noise is what it claims to be. Noise that is something else is still judged
by how often each outcome came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.accounting import Accountant
from discreet.algebra import Numbers, key_column
from discreet.asking.measure import measure
from discreet.asking.offer import BlockOffer, Offer
from discreet.audit.change import cells, forms, movement, rows_of
from discreet.audit.epsilon import Codes
from discreet.ledger.chain import fresh_secret
from discreet.mechanisms.shapes import Additive, Mechanism, Noise, Selection, Threshold
from discreet.sql.plan.block import PEOPLE, Shared, Statistic
from discreet.sql.plan.picks import Pick
from discreet.vault.allowance import Allowance
from discreet.vault.exact import Exact

Floats = NDArray[np.float64]
Fetch = Callable[[Numbers], pa.Table]
Progress = Callable[[str, float], None]
Moved = dict[Any, tuple[int, int]]  # the numbers that differ, on the one neighbor and on the other

AT_ONCE = 1 << 19  # cells of all runs that are drawn together
MOST_CELLS = 1 << 26  # of all runs: more groups, fewer runs
ONE_BY_ONE = 200  # runs of what is run so
IMPOSSIBLE = 30.0  # the score of an outcome that the other neighbor cannot have
_FINE = 64  # codes per unit of score


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """The releases of one statistic in each run, as codes: on the one neighbor and on the other."""

    name: str
    mechanisms: tuple[Mechanism, ...]
    codes: tuple[Codes, Codes]
    impossible: tuple[int, int] = (0, 0)  # runs whose outcome the other neighbor cannot have


def outcomes(
    offered: Offer,
    accountant: Accountant,
    fetches: tuple[Fetch, Fetch],
    *,
    runs: int,
    progress: Progress | None,
) -> Iterator[Outcomes]:
    """Run every statistic of an offer that the two neighbors do not share, on both of them."""
    own = {
        number: each
        for number, each in enumerate(offered.blocks)
        if not isinstance(each.block.kind, Shared)
    }
    several = [
        (number, pick)
        for number, each in own.items()
        for pick in each.block.picks
        if len(each.chosen[pick.id]) > 1 or pick.fine or each.block.unknown
    ]
    for each in own.values():
        yield from _Block(each, accountant, offered, fetches, runs, progress).outcomes()
    if several:
        yield from _one_by_one(
            offered, accountant, fetches, several, min(max(10, runs // 100), ONE_BY_ONE), progress
        )


class _Block:
    """One block on two neighbors."""

    def __init__(
        self,
        each: BlockOffer,
        accountant: Accountant,
        offered: Offer,
        fetches: tuple[Fetch, Fetch],
        runs: int,
        progress: Progress | None,
    ) -> None:
        self.each, self.block, self.progress = each, each.block, progress
        self._accountant = accountant
        self._paid = offered.cost
        self._fetches = fetches
        self._runs = runs

    def outcomes(self) -> Iterator[Outcomes]:
        if self.block.unknown:
            yield from self._test()
            return
        if self.block.own_statistics:
            exact = [fetch(self.block.sums) for fetch in self._fetches]
            for statistic in self.block.own_statistics:
                mechanism = self.each.added[statistic.id]
                factors = statistic.over(self.block.readings)
                sides = [forms(rows_of(table), len(self.block.keys), factors) for table in exact]
                scores = _noise_scores(mechanism, movement(*sides), self.block.sizes)
                release = self._measure(mechanism, statistic, scores)
                yield self._run(
                    statistic.name,
                    (mechanism,),
                    exact,
                    release,
                    len(statistic.forms) * self.block.cells,
                )
        for pick in self.block.picks:
            choices = self.each.chosen[pick.id]
            if len(choices) == 1 and not pick.fine:
                exact = [fetch(self.block.rows_in(pick)) for fetch in self._fetches]
                size = pick.domain.size
                release = self._pick(choices[0], pick, movement(*map(cells, exact)))
                yield self._run(
                    pick.name, choices, exact, release, self.block.cells * size * choices[0].slices
                )

    def _run(
        self,
        name: str,
        mechanisms: tuple[Mechanism, ...],
        exact: list[Any],
        release: Any,
        width: int,
    ) -> Outcomes:
        runs = max(1_000, min(self._runs, MOST_CELLS // width))
        at_once = max(1, AT_ONCE // width)
        found: tuple[list[Codes], list[Codes]] = ([], [])
        for start in range(0, runs, at_once):
            for side, table in enumerate(exact):
                allowance = Allowance(
                    key=fresh_secret(), accountant=self._accountant, paid=self._paid
                )
                found[side].append(release(allowance, table, min(at_once, runs - start)))
            if self.progress is not None:
                self.progress(name, min(1.0, (start + at_once) / runs))
        codes = np.concatenate(found[0]), np.concatenate(found[1])
        return Outcomes(name=name, mechanisms=mechanisms, codes=codes)

    def _measure(
        self, mechanism: Additive, statistic: Statistic, scores: list[tuple[int, int, Any]]
    ) -> Any:
        moved = statistic.movement
        factors = statistic.over(self.block.readings)
        totals = None if statistic.totals is None else statistic.totals.grid

        def release(allowance: Allowance, table: pa.Table, runs: int) -> Codes:
            wide = Exact(_beside(table, runs, len(self.block.keys)))
            noisy = allowance.measure(
                mechanism,
                wide,
                moved=moved,
                sizes=[runs, *self.block.sizes],
                forms=factors,
                totals=totals,
            )
            total = np.zeros(runs)
            for form, place, score in scores:
                total += score(noisy[form].reshape(runs, -1)[:, place])
            return _encode(total)

        return release

    def _pick(self, mechanism: Selection, pick: Pick, moved: Moved) -> Any:
        groups = sorted({_place(key[:-1], self.block.sizes) for key in moved})[:4]

        def release(allowance: Allowance, table: pa.Table, runs: int) -> Codes:
            wide = Exact(_beside(table, runs, len(self.block.keys) + 1))
            sizes = [runs, *self.block.sizes]
            chosen = allowance.choose(
                mechanism, wide, moved=pick.movement, sizes=sizes, cells=pick.domain.size
            )
            return _hash(chosen.reshape(runs, self.block.cells, -1)[:, groups].reshape(runs, -1))

        return release

    def _test(self) -> Iterator[Outcomes]:
        """Run a test of unknown keys: the threshold, and what is measured on the keys that pass,
        together.
        """
        block, exact = self.block, []
        for fetch in self._fetches:
            measured = fetch(block.sums) if block.own_statistics else None
            exact.append((fetch(block.people), measured))
        people = [cells(table) for table, _ in exact]
        moved = movement(*people)
        width = max(1, *(len(each) for each in people)) * block.cells
        release = _ThresholdRuns(self.each, moved, [table for _, table in exact])
        name = " and ".join([PEOPLE, *(each.name for each in block.own_statistics)])
        assert self.each.threshold is not None  # a block with unknown keys has one
        found = self._run(
            name, (self.each.threshold, *self.each.added.values()), exact, release, width
        )
        yield replace(found, impossible=_impossible(found.codes))


class _ThresholdRuns:
    """Runs of a threshold and of the sums behind it, scored by the keys in which the neighbors
    differ.
    """

    def __init__(self, each: BlockOffer, moved: Moved, tables: list[pa.Table | None]) -> None:
        self._each = each
        self._block = each.block
        self._moved = moved
        block = each.block
        read = [rows_of(table) for table in tables if table is not None]
        self._sums = {
            statistic.id: movement(
                *(forms(rows, len(block.keys), statistic.over(block.readings)) for rows in read)
            )
            for statistic in block.own_statistics
        }

    def __call__(
        self, allowance: Allowance, exact: tuple[pa.Table, pa.Table | None], runs: int
    ) -> Codes:
        people, sums = exact
        block = self._block
        threshold = self._each.threshold
        assert threshold is not None  # a block with unknown keys has one
        width = len(block.unknown)
        beside = Exact(_beside(people, runs, width))
        survivors, tested = allowance.threshold(
            threshold, beside, moved=block.touching, keys=1 + width
        )
        run = survivors.column(0).to_numpy().astype(np.int64)
        keys = list(
            zip(*(survivors.column(1 + index).to_pylist() for index in range(width)), strict=True)
        )
        total = np.zeros(runs)
        never = np.zeros(runs)
        for key, (one, other) in self._moved.items():
            stays = _stay(threshold, one) - _stay(threshold, other)
            total += stays
            here = np.flatnonzero([each == key for each in keys])
            if one and other:
                np.add.at(
                    total,
                    run[here],
                    _advantage(threshold, np.asarray(tested)[here], one, other) - stays,
                )
            else:
                never[run[here]] = IMPOSSIBLE if one else -IMPOSSIBLE
        if sums is not None:
            self._add_sums(allowance, sums, runs, survivors, run, keys, total)
        return _encode(np.clip(total, -IMPOSSIBLE / 3, IMPOSSIBLE / 3) + never)

    def _add_sums(
        self,
        allowance: Allowance,
        sums: pa.Table,
        runs: int,
        survivors: pa.Table,
        run: Any,
        keys: Any,
        total: Floats,
    ) -> None:
        block = self._block
        extra = len(block.keys)
        places = pa.array(np.repeat(np.arange(runs), sums.num_rows))
        # behind the keys, before the sums
        wide = _repeat(sums, runs).add_column(extra, key_column(extra), places)
        for statistic in block.own_statistics:
            mechanism = self._each.added[statistic.id]
            noisy = allowance.measure(
                mechanism,
                Exact(wide),
                moved=statistic.sensitivity,
                sizes=block.sizes,
                forms=statistic.over(block.readings),
                survivors=survivors,
                keys=(extra, *block.unknown),
            )
            for (group, form), (one, other) in self._sums[statistic.id].items():
                key = tuple(group[index] for index in block.unknown)
                place = _place(
                    [part for index, part in enumerate(group) if index not in block.unknown],
                    block.sizes,
                )
                here = np.flatnonzero([each == key for each in keys])
                left = np.asarray(noisy[form]).reshape(survivors.num_rows, -1)[here, place]
                np.add.at(total, run[here], _advantage(mechanism, left, one, other))


def _one_by_one(
    offered: Offer,
    accountant: Accountant,
    fetches: tuple[Fetch, Fetch],
    picks: list[tuple[int, Pick]],
    runs: int,
    progress: Progress | None,
) -> Iterator[Outcomes]:
    """Run the whole question again and again: for several choices, on fine grids, or with a test of
    keys.
    """
    found: dict[tuple[int, Pick], tuple[list[int], list[int]]] = {each: ([], []) for each in picks}
    for done in range(runs):
        for side, fetch in enumerate(fetches):
            allowance = Allowance(key=fresh_secret(), accountant=accountant, paid=offered.cost)
            noisy = measure(offered, allowance, lambda sql, fetch=fetch: Exact(fetch(sql)))  # type: ignore[misc]
            for (number, pick), sides in found.items():
                # Wide cells: what a few hundred runs can tell apart.
                chosen = np.asarray(noisy[number].picks[pick.id]).astype(np.float64).reshape(-1)
                sides[side].append(int(chosen[0] * 16 // pick.domain.size) if len(chosen) else -1)
        if progress is not None:
            progress("one by one", (done + 1) / runs)
    for (number, pick), sides in found.items():
        codes = np.array(sides[0]), np.array(sides[1])
        yield Outcomes(
            name=pick.name, mechanisms=offered.blocks[number].chosen[pick.id], codes=codes
        )


# --- exact tables of many runs --------------------------------------------------------------------


def _repeat(table: pa.Table, runs: int) -> pa.Table:
    return table.take(pa.array(np.tile(np.arange(table.num_rows), runs)))


def _beside(table: pa.Table, runs: int, keys: int) -> pa.Table:
    """Repeat the table once for each run, whose number is one more key before the others."""
    wide = _repeat(table, runs)
    numbers = table.column_names[keys:]
    names = [*map(key_column, range(keys + 1)), *numbers]
    run = pa.array(np.repeat(np.arange(runs), table.num_rows))
    return wide.add_column(0, "run", run).rename_columns(names)


# --- scores ---------------------------------------------------------------------------------------


def _noise_scores(
    mechanism: Additive, moved: Moved, sizes: list[int]
) -> list[tuple[int, int, Any]]:
    """Return for every number that differs its form, its place on the grid, and the score of its
    releases.
    """

    def score(one: int, other: int) -> Callable[[Any], Floats]:
        return lambda noisy: _advantage(mechanism, noisy, one, other)

    return [(key[1], _place(key[0], sizes), score(*pair)) for key, pair in moved.items()]


def _advantage(mechanism: Noise, noisy: Any, one: int, other: int) -> Floats:
    """Return the log of how much likelier a noisy number is if the exact one is `one`, by the noise
    claimed.
    """
    # first in exact integers: sums may pass what floats hold
    here = np.asarray(noisy - one).astype(np.float64)
    there = np.asarray(noisy - other).astype(np.float64)
    if mechanism.gaussian:
        return (there**2 - here**2) / (2 * float(mechanism.spread) ** 2)
    return (np.abs(there) - np.abs(here)) / float(mechanism.spread)


def _stay(threshold: Threshold, value: int) -> float:
    """Return the log-probability that a key does not pass; one that does not exist never does."""
    return max(float(threshold.log_mass(value, None)), -IMPOSSIBLE) if value else 0.0


def _encode(scores: Floats) -> Codes:
    return np.round(np.clip(scores, -2 * IMPOSSIBLE, 2 * IMPOSSIBLE) * _FINE).astype(np.int64)


def _impossible(codes: tuple[Codes, Codes]) -> tuple[int, int]:
    far = int(IMPOSSIBLE * _FINE / 2)
    return int((codes[0] > far).sum()), int((codes[1] < -far).sum())


def _hash(columns: NDArray[Any]) -> Codes:
    code = np.zeros(len(columns), dtype=np.uint64)
    for column in columns.T:
        code = code * np.uint64(0x9E3779B97F4A7C15) + column.astype(np.int64).view(np.uint64)
    return code.view(np.int64)


def _place(keys: Any, sizes: list[int]) -> int:
    place = 0
    for key, size in zip(keys, sizes, strict=True):
        place = place * size + int(key)
    return place
