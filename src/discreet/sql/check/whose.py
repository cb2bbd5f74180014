"""Whose each row is: refuse a tree in which rows of two people could meet before the last step."""

from __future__ import annotations

from discreet.algebra import (
    OWNER,
    Aggregate,
    Column,
    Exists,
    Expression,
    Fold,
    Over,
    OwnerJoin,
    PerPerson,
    PublicJoin,
    Scan,
    Select,
    Source,
    Stage,
    UnionAll,
    owner_of,
    walk,
)
from discreet.errors import Unproved
from discreet.policy.policy import Policy
from discreet.sql.check.trees import expressions_of, in_source, private_table, stages


def require_own(aggregate: Aggregate, policy: Policy) -> None:
    """Refuse a tree in which an expression reads anything but its own row, or folds rows of
    several people.
    """
    require_source(aggregate.source, policy)
    for each in expressions_of(aggregate):
        require_row(each, aggregate.source, policy)


def require_source(source: Source, policy: Policy) -> None:
    match source:
        case Scan(table=table):
            private_table(table, policy)
        case OwnerJoin(left=left, right=right, on=on):
            require_source(left, policy)
            require_source(right, policy)
            for each in on:
                require_row(each, source, policy)
        case PublicJoin(left=left, pins=pins, on=on):
            require_source(left, policy)
            for ours, theirs in pins:
                require_row(ours, left, policy)
                require_row(theirs, source, policy)
                if any(in_source(part, left) for part in walk(theirs)):
                    raise Unproved("a public row is pinned by private columns on both sides")
            for each in on:
                require_row(each, source, policy)
        case Stage(query=UnionAll(parts=parts)):
            for part in parts:
                require_query(part, policy)
        case Stage(query=Select() | PerPerson() as query):
            require_query(query, policy)


def require_query(query: Select | PerPerson, policy: Policy) -> None:
    require_source(query.source, policy)
    keys = query.keys if isinstance(query, PerPerson) else ()
    names = [OWNER, *(name.casefold() for name, _ in (*keys, *query.columns))]
    if len(set(names)) < len(names):  # an engine would read one of them for both
        raise Unproved("two columns of a query have one name")
    for each in query.where:
        require_row(each, query.source, policy)
    for _, each in query.columns:
        require_row(
            each,
            query.source,
            policy,
            folds=isinstance(query, PerPerson),
            windows=isinstance(query, Select),
        )
    if isinstance(query, PerPerson):
        for _, each in query.keys:
            require_row(each, query.source, policy)


def require_row(
    node: Expression,
    source: Source,
    policy: Policy,
    *,
    outer: Source | None = None,
    folds: bool = False,
    windows: bool = False,
) -> None:
    """Every column is one of the row's own; windows and EXISTS look at rows of the same
    person.
    """
    here = stages(source) | (frozenset() if outer is None else stages(outer))
    for part in walk(node):
        match part:
            case Column(stage=stage) if stage not in here:
                raise Unproved(f"the plan reads {stage} where it is not")
            case Over(owner=owner):
                if not windows or owner != owner_of(source):
                    raise Unproved("a window looks at other people's rows")
            case Exists(source=inner, owner=owner, where=where):
                # A name that stands inside too means what is inside: an owner is equal to itself.
                if owner != owner_of(source) or stages(inner) & here:
                    raise Unproved("EXISTS looks at other people's rows")
                require_source(inner, policy)
                for each in where:
                    require_row(each, inner, policy, outer=source)
    allowed = folds or windows
    if not allowed and any(isinstance(part, Fold) for part in walk(node)):
        raise Unproved("the plan folds rows outside of a person")
