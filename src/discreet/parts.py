"""Parts of a question: what is measured, paid for and recalled at once (S10).

With public keys every statistic is a part of its own. With unknown keys all statistics of a block are one part: they
are measured on the keys that this block's own threshold let through. A part is known by what is read (`sql.identity`);
the ledger keeps beside it by which noise it was measured, and what it released.

Privacy
    What a part releases is the output of mechanisms that were paid for in full: noisy numbers of *all* groups, whatever
    HAVING, LIMIT or the choice of columns showed of them. Every answer is a function of such outputs, of public tables
    and of the statement, so another one of the same numbers costs nothing (post-processing). Which parts are stored
    follows from what was asked and paid, never from data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from discreet.sql.identity import digest
from discreet.sql.plan import Block, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Statistics of one block, by their places: its measurements, then its picks; in the order of measuring."""

    id: str
    block: int
    places: tuple[int, ...]

    @property
    def in_order(self) -> Part:
        """The same, in the order of the statement."""
        return self if len(self.places) == 1 else replace(self, places=tuple(sorted(self.places)))


def parts_of(plan: Plan) -> tuple[Part, ...]:
    """The parts of a plan, each once, in the order of the statement."""
    found: dict[str, Part] = {}
    for index, block in enumerate(plan.blocks):
        for part in block_parts(index, block):
            found.setdefault(part.id, part)
    return tuple(found.values())


def block_parts(index: int, block: Block) -> Iterator[Part]:
    """The parts that one block needs, whether or not another has them too."""
    if not block.unknown:
        for place, name in enumerate(block.names):
            yield Part(id=name, block=index, places=(place,))
        return
    tested = block.names[0] if block.one_shot else "people"
    order = sorted(range(len(block.names)), key=lambda place: block.names[place])
    name = digest("discreet statistics of unknown keys", tested, *(block.names[place] for place in order))
    yield Part(id=name, block=index, places=tuple(order))
