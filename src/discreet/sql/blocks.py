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
    """Return the block of a SELECT, and two functions of a number of groups: the statistics that it
    would measure with so many groups, and the same if people are only added.
    """
    keys = [key for key, _ in rewrite.keys.values()]
    positions = [position for _, position in rewrite.keys.values()]
    joint, place = possible(relation, rewrite.keys, finder)
    grid = math.prod(key.size for key in keys if isinstance(key, Key))
    groups = grid if joint is None else joint.size
    unknown = any(isinstance(key, Unknown) for key in keys)
    touched, keys_touched = _count_touched(relation, rewrite.keys, origins, groups)
    in_range = partial(Checker(policy=policy).holds, source=relation.source)
    rows = RowsRead(most=relation.rows, held=in_range)
    any_neighbors = partial(assemble, rows=rows, touched=touched, node=rewrite.node)
    assemble_here = partial(any_neighbors, neighbors=policy.neighbors)
    assembly = assemble_here(rewrite.requests, groups=UNBOUNDED if unknown else groups)
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
        keys=tuple(keys) if joint is None else (joint,),
        places=tuple(positions) if place is None else (place,),
        statistics=statistics,
        picks=assembly.picks,
        derived=tuple(rewrite.derived),
    )
    sums = [request for request in rewrite.requests if not request.chosen]
    again = cache(lambda groups: assemble_here(sums, groups=groups).statistics)
    alone = partial(any_neighbors, rewrite.requests, neighbors="add_remove")
    return block, again, lambda groups: alone(groups=groups).statistics


def _count_touched(
    relation: Relation, keys: Keys, origins: dict[Identity, Origins], groups: int
) -> tuple[int, int]:
    """Return how many groups, and how many unknown keys, one person can have. Only unknown keys are
    limited by max_groups.
    """
    touched = 1
    if keys:
        every_origin = Origins().union(*origins.values())
        touched = distinct_values(every_origin, relation.rows)
    of_unknown = [origins[same] for same, (key, _) in keys.items() if isinstance(key, Unknown)]
    unknown_origins = Origins().union(*of_unknown)
    unknown = distinct_values(unknown_origins, relation.touched or relation.rows)
    if of_unknown:
        touched = min(touched, unknown * groups)
    return touched, unknown
