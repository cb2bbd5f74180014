"""Translate subqueries over private rows that are conditions: IN and EXISTS."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from discreet.algebra import Column, Exists, Expression
from discreet.sql.rows.owners import conjuncts, matches_owners, same_owner
from discreet.sql.rows.relation import Names, Relation
from discreet.sql.text.parse import reject, show
from discreet.sql.values.expressions import translate
from discreet.sql.values.unify import as_flag
from discreet.sql.values.value import Flag, Value


def member(value: Value, owner: Column, inner: Relation, node: exp.Expression) -> Value:
    """Return owner IN (SELECT owner FROM ...): True if the row's own person is among those."""
    other = inner.fields[0].value
    nullable = value.nullable or other.nullable
    if len(inner.fields) != 1 or not same_owner(value, other) or nullable:
        raise reject(
            node,
            f"{show(node)} would let one person's rows decide about other people's.",
            "IN (SELECT ...) on private tables is answered for the owner: owner IN (SELECT owner FROM ...).",
        )
    # `Exists` itself adds that the inner rows are the same person's, whatever these keys are.
    same = other.expression.equals(value.expression)
    return _exists(inner, owner, [*inner.conditions, same])


def exists(
    inner: Relation, outer: Relation, condition: exp.Expression | None, node: exp.Expression
) -> Value:
    """Return EXISTS (SELECT ... WHERE inner.owner = outer.owner AND ...)."""
    names = Names(fields=inner.fields, outer=outer.fields)
    owned = False
    where = list(inner.conditions)
    for part in conjuncts(condition):
        match = matches_owners(part, outer, inner, names)
        owned = owned or match is not None
        if match is None:
            match = as_flag(translate(part, names), part).expression
        where.append(match)
    if not owned:
        raise reject(
            node,
            "EXISTS without an equality of owners flips for everybody when one person arrives.",
            "Correlate it: EXISTS (SELECT 1 FROM visits v WHERE v.owner = p.owner AND ...).",
        )
    return _exists(inner, outer.owner, where)


def _exists(inner: Relation, owner: Column, where: Sequence[Expression]) -> Value:
    """Return an `Exists` without the equality of owners, which it adds itself."""
    same_person = (inner.owner.equals(owner), owner.equals(inner.owner))
    others = tuple(each for each in dict.fromkeys(where) if each not in same_person)
    return Value(expression=Exists(inner.source, owner, others), domain=Flag())
