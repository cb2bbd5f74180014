"""Parts of a question: statistics that are measured, paid for and recalled together (S10).

With public keys every statistic is a part of its own. With unknown keys all statistics of a block
are one part: they are measured on the keys that this block's own threshold released. A part's id
says what it reads (`sql.plan.identity`). The ledger stores its mechanisms and its noisy numbers
beside the id.

Privacy
    A part releases the output of mechanisms that were paid for in full: noisy numbers of *all*
    groups, even if HAVING, LIMIT or the choice of columns showed only some of them. Every answer is
    a function of such outputs, of public tables and of the statement. So a second answer from the
    same numbers costs nothing (post-processing). Which parts are stored depends on what was asked
    and paid, never on data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from discreet.sql.plan.block import Block, Shared
from discreet.sql.plan.identity import PEOPLE, digest
from discreet.sql.plan.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Statistics and picks of one block that are measured together; `statistics` has their ids in
    the order of measuring.
    """

    id: str
    block: int
    statistics: tuple[str, ...]


def parts_of(plan: Plan) -> tuple[Measurement, ...]:
    """Return the parts of a plan, each once, in the order of the statement."""
    parts: dict[str, Measurement] = {}
    for index, block in enumerate(plan.blocks):
        for part in block_parts(index, block):
            parts.setdefault(part.id, part)
    return tuple(parts.values())


def block_parts(index: int, block: Block) -> Iterator[Measurement]:
    """Yield the parts of one block; another block may have some of them too."""
    if isinstance(block.kind, Shared):
        return
    if block.threshold_test is None:
        own = [statistic.id for statistic in block.own_statistics]
        for id in [*own, *(pick.id for pick in block.picks)]:
            yield Measurement(id=id, block=index, statistics=(id,))
        return
    # a set: MEDIAN(x) and QUANTILE_CONT(x, [0.5]) have one id
    every = sorted({each.id for each in block.every} - {PEOPLE})
    name = digest("discreet statistics of unknown keys", block.threshold_test.id, *every)
    yield Measurement(id=name, block=index, statistics=tuple(every))
