"""Limit how much of the engine's time and of memory one question may use (S21)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pyarrow as pa
from sqlglot import exp

from discreet.algebra import weight_of
from discreet.policy.domain import Texts
from discreet.policy.policy import Policy
from discreet.sql import work
from discreet.sql.check.counts import PersonCounts
from discreet.sql.plan.block import Block, Shared
from discreet.sql.text.parse import check_weight, reject

# A question's blocks together may be as large as so many relations that are as large as they can be.
MOST_LARGE = 4
MOST_SUMS = 1_000  # that one block reads: an engine plans as many in a second or two


def check_work(
    tree: exp.Expression,
    blocks: Sequence[Block],
    policy: Policy,
    public: Mapping[str, pa.Table],
) -> None:
    """Refuse a question in which one person alone could take more than a thousandth of the engine's
    time (S21), and one whose planning would take long.
    """
    own = [block for block in blocks if not isinstance(block.kind, Shared)]
    _check_planning(tree, own)
    limits = policy.limits
    counts = PersonCounts(policy=policy)
    shortest = min(limits.seconds, limits.deadline or limits.seconds)
    allowed = float(work.SHARE * shortest)
    costs = work.Work(rows=counts.rows, letters=partial(_letters, policy, public))
    queries = [(query, block) for block in own for query in block.queries]
    needed = sum(block.passes * costs.seconds(query) for query, block in queries)
    if needed > allowed:
        rows = max(counts.rows(query.source) for query, _ in queries)
        raise reject(
            tree,
            f"one person alone could keep the engine busy for {_milliseconds(needed)} here, in up to {rows} rows, and"
            f" {_milliseconds(allowed)} are allowed: a thousandth of the time limits.",
            "Join fewer rows, aggregate per person before joining (GROUP BY the owner in a subquery), or use fewer"
            " functions of texts; the curator can declare shorter texts, fewer max_rows, or more seconds.",
        )


def _check_planning(tree: exp.Expression, blocks: Sequence[Block]) -> None:
    """Refuse a question that an engine would take long to plan, whatever the data."""
    check_weight(sum(weight_of(block.source) for block in blocks) // MOST_LARGE)
    sums = [len(block.readings) for block in blocks]
    if max(sums, default=0) > MOST_SUMS or sum(sums) > MOST_LARGE * MOST_SUMS:
        raise reject(
            tree,
            f"its aggregates are computed from {sum(sums):,} sums, and {MOST_SUMS:,} are allowed at once.",
            "Ask for fewer aggregates.",
        )


def check_room(tree: exp.Expression, blocks: Sequence[Block], policy: Policy) -> None:
    """Refuse a question whose groups and aggregates need more memory than is allowed (S21)."""
    needed = sum(block.bytes_held for block in blocks if not isinstance(block.kind, Shared))
    allowed = policy.limits.python_memory
    if needed > allowed:
        raise reject(
            tree,
            f"its groups and aggregates could need {needed // 10**6:,} MB, and {allowed // 10**6:,} MB are allowed, a"
            " quarter of limits.memory.",
            "Group by fewer or coarser keys, or ask for fewer aggregates; the curator can raise limits.memory.",
        )


def _milliseconds(seconds: float) -> str:
    return f"{float(f'{seconds * 1000:.2g}'):,g} ms"


def _letters(policy: Policy, public: Mapping[str, pa.Table], table: str, column: str) -> int:
    """Return the most letters of a text in a column; 0 if it has no texts."""
    declaration = policy.tables[table]
    if not declaration.public:
        if column not in declaration.columns:
            return 0
        domain = declaration.columns[column].domain
        return domain.letters if isinstance(domain, Texts) else 0
    values = public[table].column(column)
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        import pyarrow.compute as pc

        return pc.max(pc.utf8_length(values)).as_py() or 0
    return 0
