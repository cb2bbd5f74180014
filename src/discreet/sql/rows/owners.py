"""Find the conditions that say that two rows belong to the same person."""

from __future__ import annotations

from sqlglot import exp

from discreet.algebra import OWNER, Expression
from discreet.errors import Rejected
from discreet.sql.rows.relation import Field, Names, Relation
from discreet.sql.values.value import Opaque, Value


def same_owner(left: Value, right: Value) -> bool:
    """Return True if two rows with equal values here, which are not NULL, belong to one person."""
    key = leads_to(left)
    return key is not None and key == leads_to(right)


def matches_owners(
    part: exp.Expression, left: Relation, right: Relation, names: Names
) -> Expression | None:
    """Return a condition that says that the owners of both sides are equal, or keys that lead to
    them; None for other conditions.
    """
    part = as_equality(part, names)
    if not isinstance(part, exp.EQ):
        return None
    if not isinstance(part.this, exp.Column) or not isinstance(part.expression, exp.Column):
        return None
    try:
        a = names.column(part.this)
        b = names.column(part.expression)
    except Rejected:
        return None
    x = a.expression
    y = b.expression
    ours = {field.value.expression for field in left.fields}
    theirs = {field.value.expression for field in right.fields}
    across = (x in ours and y in theirs) or (y in ours and x in theirs)
    return x.equals(y) if across and same_owner(a, b) else None


def as_equality(part: exp.Expression, names: Names) -> exp.Expression:
    """Return x IS NOT DISTINCT FROM y as x = y if one of them cannot be NULL; other conditions as
    they are.

    The two forms differ if both are NULL, which cannot be here. If one is NULL, one form is false
    and the other NULL; a condition drops the row for both.
    """
    if not isinstance(part, exp.NullSafeEQ):
        return part
    for side in (part.this, part.expression):
        try:
            if isinstance(side, exp.Column) and not names.column(side).nullable:
                return exp.EQ(this=part.this, expression=part.expression)
        except Rejected:  # it is raised again when the condition is translated
            return part
    return part


def conjuncts(node: exp.Expression | None) -> list[exp.Expression]:
    """Return the parts of a condition that must all be true."""
    if node is None:
        return []
    if isinstance(node, exp.Paren):
        return conjuncts(node.this)
    if isinstance(node, exp.And):
        return [part for side in (node.this, node.expression) for part in conjuncts(side)]
    return [node]


def leads_to(value: Value) -> str | None:
    """Return the key by which an identifier leads to the owner; None if it does not.

    The owner column itself is such a key.
    """
    domain = value.domain
    if not isinstance(domain, Opaque):
        return None
    return OWNER if domain.owner else domain.link


def owner_hint(left: Relation, right: Relation) -> str:
    """Return a hint on what to join two private relations on: their owners, or the key through which
    one of them is owned.
    """
    for side in (right, left):
        keys: dict[Field, str] = {}
        for field in side.fields:
            key = leads_to(field.value)
            if key is not None:
                keys[field] = key
        if keys and OWNER not in keys.values():
            field, link = next(iter(keys.items()))
            via, _, column = link.rpartition(".")
            name = f"{field.table}.{field.name}" if field.table else field.name
            return f"{name} leads to the owner through {via}: join {via} first, then ON {via}.{column} = {name}."
    return "Join on the owner: ON a.owner = b.owner, with the owner columns of both tables."
