"""Make the block of a SELECT that aggregates private rows: its groups, statistics and picks."""

from __future__ import annotations

import math
from functools import cache, partial

from discreet.policy.policy import Policy
from discreet.sql.after.rewrite import Keys, Rewrite
from discreet.sql.check.checker import Checker
from discreet.sql.plan.block import Block
from discreet.sql.plan.keys import Key, Unknown
from discreet.sql.requests.assembly import UNBOUNDED, assemble, with_test
from discreet.sql.requests.readings import RowsRead
from discreet.sql.rolling import Again
from discreet.sql.rows.keys.groups import possible
from discreet.sql.rows.keys.possible import Possible
from discreet.sql.rows.relation import Origins, Relation, distinct_values
from discreet.sql.values.value import Identity


def block_of(
    rewrite: Rewrite,
    relation: Relation,
    origins: dict[Identity, Origins],
    *,
    policy: Policy,
    finder: Possible | None,
) -> tuple[Block, Again, Again]:
    """Return the block of a SELECT; what it would measure over another number of groups; and the
    same were people only added.
    """
    found = [key for key, _ in rewrite.keys.values()]
    joint, place = possible(relation, rewrite.keys, finder)
    groups = math.prod(key.size for key in found if isinstance(key, Key))
    groups = groups if joint is None else joint.size
    unknown = any(isinstance(key, Unknown) for key in found)
    touched, keys_touched = _count_touched(relation, rewrite.keys, origins, groups)
    held = partial(Checker(policy=policy).holds, source=relation.source)
    rows = RowsRead(most=relation.rows, held=held)
    added = partial(assemble, rows=rows, touched=touched, node=rewrite.node)
    measured = partial(added, neighbors=policy.neighbors)
    assembly = measured(rewrite.requests, groups=UNBOUNDED if unknown else groups)
    statistics = assembly.statistics
    if unknown:
        statistics = with_test(
            assembly,
            rewrite.requests,
            rows=relation.rows,
            touched=keys_touched,
            neighbors=policy.neighbors,
            groups=groups,
        )
    block = Block(
        source=relation.source,
        rows=relation.rows,
        touched=keys_touched,
        neighbors=policy.neighbors,
        conditions=relation.conditions,
        keys=tuple(found) if joint is None else (joint,),
        places=tuple(each for _, each in rewrite.keys.values()) if place is None else (place,),
        statistics=statistics,
        picks=assembly.picks,
        derived=tuple(rewrite.derived),
    )
    summed = [request for request in rewrite.requests if not request.chosen]
    again = cache(lambda groups: measured(summed, groups=groups).statistics)
    alone = partial(added, rewrite.requests, neighbors="add_remove")
    return block, again, lambda groups: alone(groups=groups).statistics


def _count_touched(
    relation: Relation, keys: Keys, origins: dict[Identity, Origins], groups: int
) -> tuple[int, int]:
    """Return how many groups one person can be in, and how many unknown keys: only the latter are
    bounded by max_groups.
    """
    touched = distinct_values(frozenset().union(*origins.values()), relation.rows) if keys else 1
    unclear = [origins[same] for same, (key, _) in keys.items() if isinstance(key, Unknown)]
    unknown = distinct_values(frozenset().union(*unclear), relation.touched or relation.rows)
    return min(touched, unknown * groups) if unclear else touched, unknown
