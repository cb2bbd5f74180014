"""Parts of a question: statistics that are measured, paid for and recalled at once (S10).

With public keys every statistic is a part of its own. With unknown keys all statistics of a block
are one part: they are measured on the keys that this block's own threshold let through. A part is
known by what is read (`sql.plan.identity`); the ledger keeps beside it by which noise it was measured,
and what it released.

Privacy
    What a part releases is the output of mechanisms that were paid for in full: noisy numbers of
    *all* groups, whatever HAVING, LIMIT or the choice of columns showed of them. Every answer is a
    function of such outputs, of public tables and of the statement, so another one of the same
    numbers costs nothing (post-processing). Which parts are stored follows from what was asked and
    paid, never from data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from discreet.sql.plan.block import Block, Shared
from discreet.sql.plan.identity import PEOPLE, digest
from discreet.sql.plan.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Statistics and picks of one block that are measured at once; their ids are in the order of
    measuring.
    """

    id: str
    block: int
    statistics: tuple[str, ...]


def parts_of(plan: Plan) -> tuple[Measurement, ...]:
    """Return the parts of a plan, each once, in the order of the statement."""
    found: dict[str, Measurement] = {}
    for index, block in enumerate(plan.blocks):
        for part in block_parts(index, block):
            found.setdefault(part.id, part)
    return tuple(found.values())


def block_parts(index: int, block: Block) -> Iterator[Measurement]:
    """Yield the parts that one block is measured by; another block may have them too."""
    if isinstance(block.kind, Shared):
        return
    if block.threshold_test is None:
        own = [each.id for each in block.own_statistics] + [pick.id for pick in block.picks]
        yield from (Measurement(id=name, block=index, statistics=(name,)) for name in own)
        return
    # MEDIAN(x) and QUANTILE_CONT(x, [0.5]) are one
    every = sorted({each.id for each in block.every} - {PEOPLE})
    name = digest("discreet statistics of unknown keys", block.threshold_test.id, *every)
    yield Measurement(id=name, block=index, statistics=tuple(every))
