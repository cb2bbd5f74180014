"""Find the conditions that match the owners of two relations."""

from __future__ import annotations

from sqlglot import exp

from discreet.algebra import (
    OWNER,
    Expression,
)
from discreet.errors import Rejected
from discreet.sql.rows.relation import Names, Relation
from discreet.sql.values.value import Opaque, Value


def same_owner(left: Value, right: Value) -> bool:
    """Equality of these two, which no NULL is part of, implies that both rows belong to one
    person.
    """
    return leads_to(left) is not None and leads_to(left) == leads_to(right)


def matches_owners(
    part: exp.Expression, left: Relation, right: Relation, names: Names
) -> Expression | None:
    """Return a conjunct that equates the two sides' owners (or keys that lead to the owner), else
    None.
    """
    part = as_equality(part, names)
    if (
        not isinstance(part, exp.EQ)
        or not isinstance(part.this, exp.Column)
        or not isinstance(part.expression, exp.Column)
    ):
        return None
    try:
        a, b = names.column(part.this), names.column(part.expression)
    except Rejected:
        return None
    x, y = a.expression, b.expression
    ours, theirs = ({field.value.expression for field in side.fields} for side in (left, right))
    across = (x in ours and y in theirs) or (y in ours and x in theirs)
    return x.equals(y) if across and same_owner(a, b) else None


def as_equality(part: exp.Expression, names: Names) -> exp.Expression:
    """x IS NOT DISTINCT FROM y as x = y, where one of them cannot be NULL; other parts as they are.

    They differ only where both are NULL, or in being NULL in place of false: a conjunct drops both.
    """
    if not isinstance(part, exp.NullSafeEQ):
        return part
    for side in (part.this, part.expression):
        try:
            if isinstance(side, exp.Column) and not names.column(side).nullable:
                return exp.EQ(this=part.this, expression=part.expression)
        except Rejected:  # told where the condition itself is read
            return part
    return part


def conjuncts(node: exp.Expression | None) -> list[exp.Expression]:
    """Return the parts of a condition that must all hold."""
    if node is None:
        return []
    if isinstance(node, exp.Paren):
        return conjuncts(node.this)
    if isinstance(node, exp.And):
        return [part for side in (node.this, node.expression) for part in conjuncts(side)]
    return [node]


def leads_to(value: Value) -> str | None:
    """By which key an identifier leads to the owner, if it does: the owner's own name is such a
    key.
    """
    domain = value.domain
    return None if not isinstance(domain, Opaque) else OWNER if domain.owner else domain.link


def owner_hint(left: Relation, right: Relation) -> str:
    """Return what to join two private relations on: their owners, or the key through which one of
    them is owned.
    """
    for side in (right, left):
        keys = {field: link for field in side.fields if (link := leads_to(field.value)) is not None}
        if keys and OWNER not in keys.values():
            field, link = next(iter(keys.items()))
            via, _, column = link.rpartition(".")
            name = f"{field.table}.{field.name}" if field.table else field.name
            return f"{name} leads to the owner through {via}: join {via} first, then ON {via}.{column} = {name}."
    return "Join on the owner: ON a.owner = b.owner, with the owner columns of both tables."
