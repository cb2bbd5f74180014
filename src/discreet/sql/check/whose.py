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
    PublicScan,
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
    """Return a private table of the policy; raise Unproved if there is none of that name."""
    declaration = policy.tables.get(table)
    if declaration is None or declaration.public:
        raise Unproved(f"the plan reads {table} as a private table")
    return declaration


def _require_public(table: str, policy: Policy) -> None:
    """Raise Unproved unless the policy declares a public table of that name."""
    declaration = policy.tables.get(table)
    if declaration is None or not declaration.public:
        raise Unproved(f"the plan reads {table} as a public table")


def columns_in(node: Expression, source: Source) -> list[Column]:
    """Return the columns of a source that an expression reads."""
    names = stages(source)
    columns = [part for part in walk(node) if isinstance(part, Column)]
    return [column for column in columns if column.stage in names]


def require_own(aggregate: Aggregate, policy: Policy) -> None:
    """Refuse a tree in which an expression reads another row than its own, or in which a fold mixes
    rows of several people.
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
    """Refuse a source in which rows of two people can meet."""
    match source:
        case Scan(table=table):
            private_table(table, policy)
        case OwnerJoin(left=left, right=right, on=on):
            require_source(left, policy)
            require_source(right, policy)
            for each in on:
                require_row(each, source, policy)
        case PublicJoin(left=left, right=right, pins=pins, on=on):
            require_source(left, policy)
            if isinstance(right, PublicScan):
                _require_public(right.table, policy)
            for ours, theirs in pins:
                require_row(ours, left, policy)
                require_row(theirs, source, policy)
                if columns_in(theirs, left):
                    raise Unproved("both sides of a pin of a public row read private columns")
            for each in on:
                require_row(each, source, policy)
        case Stage(query=UnionAll(parts=parts)):
            for part in parts:
                require_query(part, policy)
        case Stage(query=Select() | PerPerson() as query):
            require_query(query, policy)


def require_query(query: Select | PerPerson, policy: Policy) -> None:
    """Refuse a query whose rows could mix several people, or depend on where rows are stored."""
    require_source(query.source, policy)
    keys = query.keys if isinstance(query, PerPerson) else ()
    names = [name.casefold() for name, _ in (*keys, *query.columns)]
    names.append(OWNER)
    if len(set(names)) < len(names):  # an engine would read the same column for both
        raise Unproved("two columns of a query have one name")
    for condition in query.where:
        require_row(condition, query.source, policy)
    for _, key in keys:
        require_row(key, query.source, policy)
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
    """Refuse an expression that reads a column of another row, or a row of another person.

    `folds` and `windows` say what the expression may hold; `outer` is the source around an EXISTS.
    """
    here = stages(source) if outer is None else stages(source) | stages(outer)
    parts = list(walk(node))
    fold_count = sum(isinstance(part, Fold) for part in parts)
    window_count = sum(isinstance(part, Over) for part in parts)
    # Each window has one fold as its function.
    if not folds and fold_count > window_count:
        raise Unproved("the plan aggregates rows of several people too early")
    for part in parts:
        match part:
            case Column(stage=stage) if stage not in here:
                raise Unproved(f"the plan reads {stage}, which is not in this FROM clause")
            case Over(owner=owner):
                if not windows or owner != owner_of(source):
                    raise Unproved("a window reads rows of other people")
            case Exists(source=inner, owner=owner, where=where):
                # A stage name that is also used inside would mean the inner rows there: their owner
                # would be compared with itself, which is always true.
                if owner != owner_of(source) or stages(inner) & here:
                    raise Unproved("EXISTS reads rows of other people")
                require_source(inner, policy)
                for each in where:
                    require_row(each, inner, policy, outer=source)
