"""Parts of the trees that run: sources, conditions and the expressions of an aggregate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from discreet.algebra import (
    Aggregate,
    Call,
    Careful,
    Column,
    Constant,
    Distinct,
    Expression,
    OwnerJoin,
    PublicJoin,
    PublicScan,
    Source,
    Stage,
    Sum,
    Written,
)
from discreet.errors import Unproved
from discreet.policy.policy import Policy, Table


def private_table(table: str, policy: Policy) -> Table:
    """Return a private table of the policy; raise Unproved where it is none."""
    found = policy.tables.get(table)
    if found is None or found.public:
        raise Unproved(f"the plan reads {table} as a private table")
    return found


def stages(source: Source | PublicScan | Written) -> frozenset[str]:
    """The names that stand in a FROM clause."""
    if isinstance(source, OwnerJoin | PublicJoin):
        return stages(source.left) | stages(source.right)
    return frozenset({source.stage})


def in_source(node: Expression, source: Source) -> bool:
    return isinstance(node, Column) and node.stage in stages(source)


def limits(source: Source, where: Sequence[Expression]) -> Iterator[tuple[str, int]]:
    """Yield how many places of a numbering conditions leave: `n <= k`, `n < k`, `n = k` on a stage
    read alone.
    """
    for each in conjuncts(where):
        match each:
            case Call(
                name="<=" | "<" | "=",
                arguments=(Column(stage=stage, name=name), Constant(value=int(k))),
            ):
                if isinstance(source, Stage) and source.stage == stage:
                    yield name, 1 if each.name == "=" else max(int(k) - (each.name == "<"), 0)


def conjuncts(where: Sequence[Expression]) -> Iterator[Expression]:
    """The conditions that must all hold, one by one."""
    for each in where:
        bare = each.value if isinstance(each, Careful) else each
        if isinstance(bare, Call) and bare.name == "AND":
            yield from conjuncts(bare.arguments)
        else:
            yield bare


def expressions_of(aggregate: Aggregate) -> Iterator[Expression]:
    yield from (*aggregate.keys, *aggregate.where)
    for each in aggregate.readings:
        if each.where is not None:
            yield each.where
        if isinstance(each, Sum):
            yield from (factor.value for factor in each.factors)
        if isinstance(each, Distinct):
            yield from each.values
