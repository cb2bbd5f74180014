"""Refuse a tree in which rows of two people could meet before the last step."""

from __future__ import annotations

from collections.abc import Iterator

from discreet.algebra import (
    OWNER,
    Aggregate,
    Column,
    Distinct,
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
    Sum,
    UnionAll,
    owner_of,
    stages,
    walk,
)
from discreet.errors import Unproved
from discreet.policy.policy import Policy, Table
from discreet.sql.check.ties import require_no_ties


def private_table(table: str, policy: Policy) -> Table:
    """Return a private table of the policy; raise Unproved where it is none."""
    found = policy.tables.get(table)
    if found is None or found.public:
        raise Unproved(f"the plan reads {table} as a private table")
    return found


def columns_in(node: Expression, source: Source) -> list[Column]:
    """Return the columns of a source that an expression reads."""
    names = stages(source)
    return [part for part in walk(node) if isinstance(part, Column) and part.stage in names]


def require_own(aggregate: Aggregate, policy: Policy) -> None:
    """Refuse a tree in which an expression reads anything but its own row, or folds rows of
    several people.
    """
    require_source(aggregate.source, policy)
    for each in _expressions(aggregate):
        require_row(each, aggregate.source, policy)


def _expressions(aggregate: Aggregate) -> Iterator[Expression]:
    yield from (*aggregate.keys, *aggregate.where)
    for reading in aggregate.readings:
        if reading.where is not None:
            yield reading.where
        if isinstance(reading, Sum):
            yield from (factor.value for factor in reading.factors)
        if isinstance(reading, Distinct):
            yield from reading.values


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
                if columns_in(theirs, left):
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
    for each in (*query.where, *(key for _, key in keys)):
        require_row(each, query.source, policy)
    windows = isinstance(query, Select)
    for _, column in query.columns:
        require_row(column, query.source, policy, folds=not windows, windows=windows)
    if isinstance(query, Select):
        require_no_ties(query)


def require_row(
    node: Expression,
    source: Source,
    policy: Policy,
    *,
    outer: Source | None = None,
    folds: bool = False,
    windows: bool = False,
) -> None:
    """Refuse an expression that reads columns of another row, or in which a window or EXISTS looks
    at rows of another person, and a fold that goes over rows of several.
    """
    here = stages(source) if outer is None else stages(source) | stages(outer)
    parts = list(walk(node))
    in_windows = sum(isinstance(part, Over) for part in parts)  # each has one fold as its function
    if not folds and sum(isinstance(part, Fold) for part in parts) > in_windows:
        raise Unproved("the plan folds rows outside of a person")
    for part in parts:
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
