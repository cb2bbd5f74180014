"""Offer an answer to a plan: choose its mechanisms, compute their price and the margins. Nothing is
read or charged.

`sum` budgets get discrete Laplace noise and permute-and-flip, `zcdp` budgets discrete Gaussian
noise and the exponential mechanism (S6, S7). The amount is split evenly among statistics, picks and
thresholds; what shares rows has already been put together into one statistic by `sql.aggregates`.

The amount is split as if everything were measured now. Parts that were measured before, for at
least as much, are recalled and cost nothing (S10). The other parts still get only their share of
the split.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from discreet.accounting import Accountant, delta_for_keys
from discreet.accounting.calibrate import cheapest
from discreet.asking.parts import Measurement, block_parts, parts_of
from discreet.budget import FEWER, FREE, Charge
from discreet.errors import UsageError
from discreet.mechanisms.combined import CONFIDENCE
from discreet.mechanisms.currency import Currency, currency
from discreet.mechanisms.running import UNIT, Running
from discreet.mechanisms.shapes import Additive, Mechanism, Selection, Threshold
from discreet.mechanisms.tails.simulate import Noise, Several
from discreet.policy.domain import MOST_PEOPLE
from discreet.sql.after.widths.half_width import half_width, instead, of_totals
from discreet.sql.after.widths.small_groups import counting_column, ends, most_rows
from discreet.sql.plan.block import PEOPLE, Block, RolledUp, Shared, Statistic
from discreet.sql.plan.picks import Pick
from discreet.sql.plan.plan import Plan
from discreet.vault.answer import plain

MOST_NOISE = 10**33  # numbers have 38 digits, and noise is rarely a hundred times its spread


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockOffer:
    """A block with its mechanisms: for each statistic and pick, by its id.

    The number that a threshold tests has the threshold's noise. A number that is rolled up from
    another block has the sum of several of that block's noises.
    """

    block: Block
    threshold: Threshold | None = None
    added: Mapping[str, Additive] = field(default_factory=dict)
    chosen: Mapping[str, tuple[Selection, ...]] = field(default_factory=dict)
    summed: Mapping[str, Noise] = field(default_factory=dict)

    @property
    def noise(self) -> dict[str, Noise]:
        """Return the noise on the numbers of each statistic."""
        found: dict[str, Noise] = {**self.added, **self.summed}
        if self.threshold is not None and self.block.threshold_test is not None:
            found[self.block.threshold_test.id] = self.threshold
        for each in self.block.own_statistics:
            if each.totals is not None:
                found[each.id] = Running(noise=self.added[each.id], grid=each.totals.grid)
        return found

    def mechanisms_for(self, statistic: str) -> tuple[Mechanism, ...]:
        """Return the mechanisms of a statistic or pick, without a threshold."""
        if statistic in self.added:
            return (self.added[statistic],)
        return self.chosen.get(statistic, ())

    def of(self, part: Measurement) -> tuple[Mechanism, ...]:
        """Return the mechanisms of a part, in the order in which they are used."""
        first = () if self.threshold is None else (self.threshold,)
        return (
            *first,
            *(each for statistic in part.statistics for each in self.mechanisms_for(statistic)),
        )

    def using(self, part: Measurement, mechanisms: Sequence[Any]) -> BlockOffer:
        """Return the block with other mechanisms for a part, in the order in which they are
        used.
        """
        rest = iter(mechanisms)
        threshold = None if self.threshold is None else next(rest)
        added = dict(self.added)
        chosen = dict(self.chosen)
        for statistic in part.statistics:
            if statistic in added:
                added[statistic] = next(rest)
            elif statistic in chosen:
                chosen[statistic] = tuple(next(rest) for _ in chosen[statistic])
        return replace(self, threshold=threshold, added=added, chosen=chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierCharge:
    """A part that was measured before: by which charge, with which mechanisms."""

    charge: int
    mechanisms: tuple[Mechanism, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A plan with its noise and its cost."""

    plan: Plan
    blocks: tuple[BlockOffer, ...]
    cost: Charge  # of what is measured now
    amount: Fraction = Fraction(0)  # that its noise was made for
    parts: tuple[Measurement, ...] = ()  # each once, in the order of the statement
    # of each part, to be measured as well as offered
    prices: Mapping[str, Charge] = field(default_factory=dict)
    # parts that were measured before: the charge of each
    stored: Mapping[str, int] = field(default_factory=dict)

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """Return all mechanisms behind the answer, paid now or earlier, in the order of
        `statistics`.
        """
        return tuple(
            mechanism for part in self.parts for mechanism in self.of(self._as_written(part))
        )

    def of(self, part: Measurement) -> tuple[Mechanism, ...]:
        return self.blocks[part.block].of(part)

    def _as_written(self, part: Measurement) -> Measurement:
        """Return the part with its statistics in the order of the statement."""
        if len(part.statistics) == 1:
            return part
        block = self.blocks[part.block].block
        own = dict.fromkeys(each.id for each in block.every if each.id in part.statistics)
        return replace(part, statistics=tuple(own))

    @property
    def due(self) -> tuple[Measurement, ...]:
        """Return the parts to measure, block by block, in an order that no order of columns
        changes.
        """
        rest = [part for part in self.parts if part.id not in self.stored]
        first = {
            part.block: min(each.id for each in rest if each.block == part.block) for part in rest
        }
        return tuple(sorted(rest, key=lambda part: (first[part.block], part.id)))

    @property
    def least_costs(self) -> dict[str, Fraction]:
        """Return, for each part, the least that a stored measurement must have cost to be recalled
        (S10).
        """
        return {part: price.amount for part, price in self.prices.items()}

    def recalling(self, stored: Mapping[str, EarlierCharge], accountant: Accountant) -> Offer:
        """Return the offer with parts that were measured before. They keep their noise, which is no
        wider than the offered noise.
        """
        blocks = list(self.blocks)
        for index, each in enumerate(blocks):
            for part in block_parts(index, each.block):
                if part.id in stored:
                    blocks[index] = blocks[index].using(part, stored[part.id].mechanisms)
        known = {part.id: stored[part.id].charge for part in self.parts if part.id in stored}
        found = replace(
            self, blocks=tuple(_with_noise_of_source(each, blocks) for each in blocks), stored=known
        )
        return replace(
            found,
            cost=accountant.price(each.loss() for part in found.due for each in found.of(part)),
        )

    def store_under(self, charge: int) -> Offer:
        """Return the offer after all due parts are stored under this charge."""
        return replace(
            self, stored={**self.stored, **{part.id: charge for part in self.due}}, cost=FREE
        )

    def statistics(self) -> list[dict[str, Any]]:
        """Describe every statistic for certificates, as JSON: sensitivities, noise, and the charge
        that paid it.
        """
        found = []
        for part in self.parts:
            told = self._describe_part(part)
            found += (
                [each | {"charge": self.stored[part.id]} for each in told]
                if part.id in self.stored
                else told
            )
        return found

    def shared_by(self) -> tuple[int, ...]:
        """Return about how many people must share a value for it to be shown, for each
        threshold.
        """
        own = (each for each in self.blocks if not isinstance(each.block.kind, Shared))
        return tuple(each.threshold.threshold + 1 for each in own if each.threshold is not None)

    def _describe_part(self, part: Measurement) -> list[dict[str, Any]]:
        each = self.blocks[part.block]
        found = list[dict[str, Any]]()
        if each.threshold is not None:
            found.append(_describe_threshold(each.block, each.threshold))
        for statistic in each.block.own_statistics:
            if statistic.id in part.statistics:
                found += _describe_statistic(statistic, each.added[statistic.id])
        for name in dict.fromkeys(
            pick.id for pick in each.block.picks if pick.id in part.statistics
        ):
            same = [pick for pick in each.block.picks if pick.id == name]
            told = ", ".join(dict.fromkeys(pick.name for pick in same))
            found += [
                _describe_pick(replace(same[0], name=told), choice) for choice in each.chosen[name]
            ]
        return found

    def margin(self, column: int, *, assuming: int | None) -> float | None:
        """Return the half-width of an output column; None if it is not known beforehand."""
        found = self.margins(column, assuming=assuming)
        return None if found is None else max(found)

    def margins(self, column: int, *, assuming: int | None) -> tuple[float, ...] | None:
        """Return the half-widths of an output column, one for each grouping that it contains."""
        shown = self.plan.columns[column]
        found = list[float]()
        for block, number in (*([shown.estimate] if shown.estimate else []), *shown.also):
            aggregate = self.plan.blocks[block].aggregates[number]
            if isinstance(aggregate, Pick):
                return None
            statistic, estimate = aggregate
            margin = estimate.margin(self.blocks[block].noise[statistic.id], assuming=assuming)
            if margin is None:
                return None
            found.append(margin)
        if shown.total_of is not None:
            own = self.blocks[shown.total_of.block].noise
            whole = of_totals(shown.total_of, self.plan.blocks, own)
            return None if whole is None else (whole,)
        noise = [each.noise for each in self.blocks]
        computed = [
            half_width(form, self.plan.blocks, noise, assuming=assuming) for form in shown.forms
        ]
        if None in computed:
            return None
        return (*found, *(each for each in computed if each is not None)) or None

    def instead(self) -> dict[str, tuple[float, float]]:
        """Return, for each column with noise on running totals, its margin and the margin of noise
        on each number.
        """
        return instead(self.plan, [each.noise for each in self.blocks])

    def ranks(self) -> dict[str, int]:
        """Return the 95 % margin of each quantile in ranks; for a list of quantiles, of all
        together (S11).

        `beside_ranks` has the conditions.
        """
        names = [column.name for column in self.plan.columns]
        return {names[place]: _most_ranks(choices) for place, _, choices in self._quantiles()}

    def beside_ranks(self) -> dict[str, dict[str, Any]]:
        """Return the conditions of the margins of `ranks`, by column.

        `extreme` and `inside`: if the group has at least `inside` rows, the value is, with 95 %,
        not beyond the extreme either. `ties`: the part of the rows of one value by which a list of
        quantiles may be farther off, because such rows are cut. `rows`: in a group of so many rows
        or fewer the margin says nothing, and the value may be anywhere in `range`; the column
        `counted` has the number of rows.
        """
        found: dict[str, dict[str, Any]] = {}
        for place, pick, choices in self._quantiles():
            name = self.plan.columns[place].name
            counted = counting_column(self.plan, place)
            beside = choices[0].beside_ranks() if len(choices) == 1 else {}
            found[name] = {
                **beside,
                "rows": most_rows(pick, _most_ranks(choices)),
                "range": [plain(each) for each in ends(pick)],
                **({} if counted is None else {"counted": counted}),
            }
        return found

    def _quantiles(self) -> Iterator[tuple[int, Pick, tuple[Selection, ...]]]:
        """Yield the columns that are quantiles, by place, with their choices."""
        for place, column in enumerate(self.plan.columns):
            if column.estimate is not None:
                block, number = column.estimate
                pick = self.plan.blocks[block].aggregates[number]
                if isinstance(pick, Pick) and pick.kind == "quantile":
                    yield place, pick, self.blocks[block].chosen[pick.id]


def _most_ranks(choices: tuple[Selection, ...]) -> int:
    """Return the largest margin of several quantiles, in ranks. It holds after the values are
    sorted too.
    """
    sure = 1 - (1 - CONFIDENCE) / len(choices)
    return max(ranks for choice in choices if (ranks := choice.ranks(sure)) is not None)


def _describe_statistic(statistic: Statistic, mechanism: Additive) -> list[dict[str, Any]]:
    """Describe a statistic in the units of its column, for certificates and quotes; `step` is the
    grid's (1 for a count).
    """
    sensitivity, l2_squared, step = statistic.sensitivity, statistic.sensitivity.l2_squared, 1
    totals: dict[str, Any] = {}
    if statistic.totals is not None:  # in sums whose factors are multiples of 1 / UNIT
        l2_squared = statistic.totals.l2_squared
        step = UNIT
        totals = {"totals_over": statistic.totals.grid.periods}
    return [
        {
            "name": name,
            "l0": sensitivity.l0,
            "l1": json_number(sensitivity.l1 * unit),
            "l2": math.sqrt(l2_squared) * float(unit / step),
            "linf": json_number(sensitivity.linf * unit),
            "step": json_number(unit),
            "mechanism": type(mechanism).__name__,
            "scale": float(mechanism.spread * unit / step),
            **totals,
        }
        for unit, name in statistic.names_by_unit.items()
    ]


def json_number(value: Fraction) -> int | float:
    """Return a number as JSON writes it: 200000 and 0.01."""
    return int(value) if value.denominator == 1 else float(value)


def _describe_pick(pick: Pick, mechanism: Selection) -> dict[str, Any]:
    """Describe a choice by rank or by count, with the number of rows by which one person moves the
    scores of all groups together.
    """
    rows = pick.max_rows
    return {
        "name": pick.name,
        "l0": min(rows, pick.groups),
        "l1": rows,
        "l2": math.sqrt(rows * pick.rows),
        "linf": pick.rows,
        "step": 1,
        "mechanism": type(mechanism).__name__,
        "scale": None if mechanism.scale is None else float(mechanism.scale),
    }


def _describe_threshold(block: Block, mechanism: Threshold) -> dict[str, Any]:
    """Describe the number that a threshold tests: people per key."""
    touched = block.touched * (2 if mechanism.neighbors == "change_one" else 1)
    return {
        "name": PEOPLE if block.threshold_test is None else block.threshold_test.name,
        "l0": touched,
        "l1": touched,
        "l2": math.sqrt(touched),
        "linf": 1,
        "step": 1,
        "mechanism": type(mechanism).__name__,
        "scale": float(mechanism.spread),
    }


def offer(plan: Plan, accountant: Accountant, *, amount: Fraction, limit: Charge) -> Offer:
    """Split an amount among the parts of a plan, and choose their mechanisms. Unknown keys get a
    part of the δ of `limit`, the whole budget.
    """
    parts = parts_of(plan)
    if not parts:
        return Offer(plan=plan, blocks=(), cost=FREE)
    # one part each
    tested = [
        (part, block.threshold_test)
        for part in parts
        if (block := plan.blocks[part.block]).threshold_test
    ]
    extra = sum(
        statistic is not None and statistic.id not in part.statistics for part, statistic in tested
    )
    count = sum(len(part.statistics) for part in parts) + extra
    share = amount / count
    delta = delta_for_keys(amount, of=limit) / len(tested) if tested else Fraction(0)
    each = [_offer_block(block, accountant, share, delta) for block in plan.blocks]
    found = Offer(
        plan=plan,
        blocks=tuple(_with_noise_of_source(block, each) for block in each),
        cost=FREE,
        amount=amount,
        parts=parts,
    )
    prices = {part.id: accountant.price(each.loss() for each in found.of(part)) for part in parts}
    found = replace(found, prices=prices)
    return replace(found, cost=accountant.price(mechanism.loss() for mechanism in found.mechanisms))


def _offer_block(
    block: Block, accountant: Accountant, share: Fraction, delta: Fraction
) -> BlockOffer:
    paid = currency(accountant.name)
    return BlockOffer(
        block=block,
        threshold=None
        if block.threshold_test is None
        else _choose_threshold(block, paid, share, delta),
        added={each.id: _choose_noise(each, paid, share) for each in block.own_statistics},
        chosen={pick.id: pick.mechanisms(accountant.name, share) for pick in block.picks},
    )


def _with_noise_of_source(each: BlockOffer, blocks: Sequence[BlockOffer]) -> BlockOffer:
    """Return a shared block with the noise of its source; a rolled-up block with the sum of several
    of its source's noises.
    """
    match each.block.kind:
        case Shared(block=first):
            return replace(_with_noise_of_source(blocks[first], blocks), block=each.block)
        case RolledUp(block=source, draws=draws):
            noise = blocks[source].added
            several = {name: Several(noise=one, draws=draws) for name, one in noise.items()}
            return replace(each, summed=noise if draws == 1 else several)
    return each


def _choose_noise(statistic: Statistic, paid: Currency, share: Fraction) -> Additive:
    """Choose the noise of a statistic; refuse noise so wide that the noisy numbers could have more
    than 38 digits.
    """
    noise = paid.noise(amount=share, moved=statistic.movement)
    if noise.spread > MOST_NOISE:
        raise UsageError(
            "This epsilon is so small that the answer would have more digits than fit. Give a larger one."
        )
    return noise


def _choose_threshold(block: Block, paid: Currency, share: Fraction, delta: Fraction) -> Threshold:
    """Choose the threshold for the number of people of a key. One person adds 1 to at most
    `touched` keys; replacing a person moves twice as many (S5).
    """
    if not delta:
        raise UsageError(
            "This question's part of the budget's δ is zero, and unknown keys need some. Give a larger epsilon."
        )
    found = paid.people(
        amount=share, max_groups=block.touched, neighbors=block.neighbors, delta=delta
    )
    if found.threshold >= MOST_PEOPLE:
        raise UsageError(
            f"At this epsilon a value would be shown if {found.threshold:,} people shared it, and there are fewer. "
            f"{FEWER} lower that."
        )
    return found


def amount_for_margin(
    plan: Plan,
    accountant: Accountant,
    *,
    margin: Fraction,
    assuming: int | None,
    most: Fraction,
    limit: Charge,
) -> Fraction:
    """Return the cheapest amount at which every aggregate's margin is at most `margin` (S11)."""
    columns = [index for index, column in enumerate(plan.columns) if column.tells_margin]
    if not columns:
        raise UsageError(
            "A margin can be asked for counts, sums and means, and what adds them up; give epsilon instead."
        )
    known: dict[Fraction, float] = {}

    def widest(amount: Fraction) -> float:
        if amount not in known:
            priced = offer(plan, accountant, amount=amount, limit=limit)
            margins = [priced.margin(column, assuming=assuming) for column in columns]
            if None in margins:
                raise UsageError(
                    "The margin of a mean or variance depends on how many rows there are: say how many, with assuming."
                )
            known[amount] = max(each for each in margins if each is not None)
        return known[amount]

    return cheapest(widest, wanted=margin, most=most)
