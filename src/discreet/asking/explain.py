"""Explain a question in numbered plain sentences, made from the plan itself so that they cannot
fall out of date.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from discreet.accounting import Accountant
from discreet.algebra import Numbers
from discreet.asking.offer import Offer
from discreet.asking.parts import Measurement, block_parts
from discreet.budget import Charge, number
from discreet.display.show import each_row, left_out, running_totals, shared_by
from discreet.mechanisms import Mechanism
from discreet.mechanisms.running import UNIT
from discreet.mechanisms.shapes import Additive, Threshold
from discreet.policy.policy import Policy
from discreet.sql.plan.block import RolledUp, Shared, Statistic
from discreet.sql.plan.plan import Way

Spell = Callable[[Numbers], str]  # as the engine's SQL


def explanation(
    offered: Offer,
    policy: Policy,
    accountant: Accountant,
    *,
    analyst: str,
    left: Charge,
    spell: Spell,
    savings: Sequence[str] = (),
    unlisted: Sequence[str] = (),
) -> str:
    """Write numbered sentences: what is read (as `spell` writes it), what gets noise at which cost,
    what follows.
    """
    lines: list[str] = []
    if not offered.plan.blocks:
        lines.append("Only public tables are read: the answer is exact and free.")
    if policy.each_row:
        lines.append(f"{each_row(policy.unit)}.")
    lines += [f"In a snapshot, {each}." for each in left_out(dict(offered.plan.max_rows))]
    for index in range(len(offered.blocks)):
        lines += _block(index, offered, policy, accountant, spell)
    lines += [_way(way, offered) for way in offered.plan.ways]
    lines += running_totals(offered.instead())
    lines.append(f"Compute the answer from the noisy numbers, free of charge: {offered.plan.after}")
    if offered.plan.selected:
        lines.append(
            "Rows are left out by noisy numbers; ± does not cover that choice, "
            "and the answer marks the rows that stay."
        )
    if offered.plan.blocks:
        lines.append(
            f"In all this costs {accountant.budget(offered.cost)}; {analyst} has {accountant.left(left)} left. "
            "On this snapshot, other questions that need the same noisy numbers are free."
        )
    lines += [*unlisted, *savings]
    return "\n".join(f"{index}. {line}" for index, line in enumerate(lines, start=1))


def _block(
    index: int, offered: Offer, policy: Policy, accountant: Accountant, spell: Spell
) -> list[str]:
    """Tell what is read and noised for one aggregation of private rows."""
    each = offered.blocks[index]
    lines = list[str]()
    block, due = each.block, {part.id for part in offered.due if part.block == index}
    if isinstance(block.kind, Shared):
        return []
    parts = {statistic: part for part in block_parts(index, block) for statistic in part.statistics}

    def cost(part: Measurement, *mechanisms: Mechanism) -> str:
        if part.id in offered.stored:
            return f"Free: measured before, and paid for by charge {offered.stored[part.id]}."
        if part.id not in due:
            return "Free: measured already, as above."
        return f"This costs {accountant.budget(accountant.price(mechanism.loss() for mechanism in mechanisms))}."

    if each.threshold is not None:
        [whole] = block_parts(index, block)
        if whole.id in due:
            passes = f", in {block.passes} parts of the keys" if block.passes > 1 else ""
            lines.append(f"Count people for each key that exists{passes}: {spell(block.people)}")
        lines.append(
            f"Keep the keys whose noisy count reaches {_threshold(each.threshold)}: "
            f"one {policy.unit} touches at most {block.touched} keys. So {shared_by(each.threshold.threshold + 1)} "
            f"{cost(whole, each.threshold)}"
        )
    if any(parts[statistic.id].id in due for statistic in block.own_statistics):
        if block.unknown:
            groups = "the keys that were kept"
        elif block.keys:
            groups = f"{block.cells:,} public groups"
            if not block.aggregates:
                groups += ", with one more of each key, for NULL"
        else:
            groups = "one group"
        sums = len(block.readings)
        lines.append(f"Read {sums} exact sum{'s' * (sums > 1)} for {groups}: {spell(block.sums)}")
    for statistic in block.own_statistics:
        noise = each.added[statistic.id]
        lines.append(f"{_noise(statistic, noise, policy)} {cost(parts[statistic.id], noise)}")
    for pick in block.picks:
        rule = (
            "how many rows have each"
            if pick.kind == "mode"
            else "how near each is to the wanted rank"
        )
        chosen = f"For {pick.name}: choose among {pick.domain.size:,} public values by {rule}."
        lines.append(f"{chosen} {cost(parts[pick.id], *each.chosen[pick.id])}")
    return lines


def _threshold(mechanism: Threshold) -> str:
    """Write a threshold; a key's own coin raises it by one."""
    at = mechanism.threshold
    return f"{at}, or {at + 1} by a coin" if mechanism.later else f"{at}"


def _way(way: Way, offered: Offer) -> str:
    """Tell how several groupings of the same rows are had, and why so."""
    kinds = (offered.plan.blocks[index].kind for index in way.blocks)
    rolled = [kind for kind in kinds if isinstance(kind, RolledUp)]
    if way.together is None:
        return f"Each of {len(way.blocks)} groupings of the same rows is measured by itself: {way.why}."
    if not rolled:
        return (
            f"Each of {len(way.blocks)} groupings of the same rows is measured by itself: added up from the noisy "
            f"numbers of the finest, they would have margins {way.together / way.apart:.2g} times as large on average."
        )
    sums = ", ".join(f"{each.draws:,}" for each in rolled if each.draws > 1)
    # A total also has the rows of a NULL that is not meant, which are in no part of it that is
    # shown.
    one = len(rolled) == len(way.blocks) and len({each.block for each in rolled}) == 1
    one = one and all(
        key.nullable for index in way.blocks for key in offered.plan.blocks[index].parts
    )
    whole = "Every total is the sum of its parts, but for rounding. " if one else ""
    return (
        f"Add up noisy numbers to the other groupings of the same rows, {sums} of them to one, free of charge. {whole}"
        f"Measured each by itself, they would have margins {way.apart / way.together:.2g} times as large on average."
    )


def _noise(statistic: Statistic, mechanism: Additive, policy: Policy) -> str:
    """Tell how far one person moves a statistic and what is added, in the units of each aggregate
    it is for.
    """
    parts = len(statistic.forms)
    verb = "adding or removing" if policy.neighbors == "add_remove" else "changing"
    numbers = "a number" if parts == 1 else f"{parts} numbers, measured together,"
    if statistic.totals is not None:
        numbers = f"sums over {statistic.totals.grid.periods:,} values of an ordered key"
    (first, name), *others = statistic.names_by_unit.items()
    text = f"For {name}: {verb} one {policy.unit} moves {numbers} by {_in_units(statistic, mechanism, first)}"
    also = (
        f"; in the units of {name}, by {_in_units(statistic, mechanism, unit)}"
        for unit, name in others
    )
    return "".join([text, *also, "."])


def _in_units(statistic: Statistic, mechanism: Additive, unit: Fraction) -> str:
    sensitivity, l2_squared, step = statistic.sensitivity, statistic.sensitivity.l2_squared, 1
    if statistic.totals is not None:
        l2_squared = statistic.totals.l2_squared
        step = UNIT
    size = number(mechanism.spread * unit / step)
    l1 = sensitivity.l1 * unit
    l2 = l2_squared**0.5 * float(unit / step)
    moved = number(l1) if mechanism.norm == "l1" else number(l2)
    steps = "" if unit == 1 else f", in steps of {number(unit)}"
    return f"at most {moved} ({mechanism.norm}); add {mechanism.words} {size}{steps}"
