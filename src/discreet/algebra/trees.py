"""Walk trees: return their parts, stages and owner; copy them with other stages or columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar

from discreet.algebra.rows import (
    OWNER,
    Call,
    Careful,
    Case,
    Cast,
    Column,
    ConstantTable,
    Exists,
    Expression,
    Fold,
    Over,
    OwnerJoin,
    PublicJoin,
    PublicScan,
    Source,
)


def owner_of(source: Source) -> Column:
    """Return the hidden column with the person whom a row of a source belongs to."""
    while isinstance(source, OwnerJoin | PublicJoin):
        source = source.left
    return Column(source.stage, OWNER)


def stages(source: Source | PublicScan | ConstantTable) -> frozenset[str]:
    """Return the names of the sources in a FROM clause."""
    if isinstance(source, OwnerJoin | PublicJoin):
        return stages(source.left) | stages(source.right)
    return frozenset({source.stage})


def bare(node: Expression) -> Expression:
    """Return an expression without the `Careful` around it."""
    return node.value if isinstance(node, Careful) else node


def conjuncts(where: Sequence[Expression]) -> Iterator[Expression]:
    """Yield the single conditions that must all be true: the parts of AND one by one."""
    for each in where:
        condition = bare(each)
        if isinstance(condition, Call) and condition.name == "AND":
            yield from conjuncts(condition.arguments)
        else:
            yield condition


def parts_of(node: Expression) -> Iterator[Expression]:
    """Yield the direct parts of an expression. Of `Exists` only the outer owner is a part."""
    match node:
        case Call(arguments=arguments):
            yield from arguments
        case Cast(value=value) | Careful(value=value):
            yield value
        case Case(branches=branches, otherwise=otherwise):
            for condition, value in branches:
                yield condition
                yield value
            yield otherwise
        case Fold(arguments=arguments, where=where):
            yield from arguments
            if where is not None:
                yield where
        case Over(function=function, owner=owner, partition=partition, order=order):
            yield function
            yield owner
            yield from partition
            yield from (each.value for each in order)
        case Exists(owner=owner):
            yield owner


def walk(node: Expression) -> Iterator[Expression]:
    """Yield an expression and all its parts, at every depth."""
    pending = [node]
    while pending:
        each = pending.pop()
        yield each
        pending.extend(parts_of(each))


T = TypeVar("T")


def with_stages(node: T, rename: Callable[[str], str]) -> T:
    """Return a copy of a tree, or of a tuple of trees, with other names for its stages.

    `rename` is called for the stages in the order in which they appear.
    """
    if isinstance(node, tuple):
        return tuple(with_stages(each, rename) for each in node)  # type: ignore[return-value]
    if not is_dataclass(node) or isinstance(node, type):
        return node
    changes = {}
    for each in fields(node):
        if not each.init:
            continue
        value = getattr(node, each.name)
        if each.name == "stage":
            changes[each.name] = rename(value)
        else:
            changes[each.name] = with_stages(value, rename)
    return replace(node, **changes)


def with_columns(node: T, change: Callable[[Column], Expression]) -> T:
    """Return a copy of a tree, or of a tuple of trees, with an expression in place of each column."""
    if isinstance(node, Column):
        return change(node)  # type: ignore[return-value]
    if isinstance(node, tuple):
        return tuple(with_columns(each, change) for each in node)  # type: ignore[return-value]
    if not is_dataclass(node) or isinstance(node, type):
        return node
    changes = {}
    for each in fields(node):
        if each.init:
            changes[each.name] = with_columns(getattr(node, each.name), change)
    return replace(node, **changes)
