"""Find the keys of a block: which are public, which must pass a threshold, and which groups of them
can be.
"""

from __future__ import annotations

import math
from dataclasses import replace

from sqlglot import exp

from discreet.algebra import Expression
from discreet.policy.policy import Policy
from discreet.sql.after.rewrite import Keys
from discreet.sql.plan.keys import Joint, Key, Unknown, key_position
from discreet.sql.rows.keys.places import place_among, texts_in_conditions
from discreet.sql.rows.keys.possible import Possible
from discreet.sql.rows.relation import Relation
from discreet.sql.text.parse import reject, show
from discreet.sql.values.texts_left import MOST_TEXTS, place_of_text
from discreet.sql.values.value import (
    Category,
    Day,
    Flag,
    Missing,
    Moment,
    Number,
    Opaque,
    Text,
    Value,
    careful,
)


def keys_of(
    node: exp.Select,
    values: list[Value],
    relation: Relation,
    policy: Policy,
    finder: Possible | None,
) -> Keys:
    """Return the group keys by the identity of their value: what they are, and the SQL of what the
    engine groups by.
    """
    clause = node.args.get("group")
    if clause is None:
        return {}
    for name, part in clause.args.items():
        if name != "expressions" and part not in (None, False, []):
            raise reject(
                clause, f"GROUP BY {name.upper()} is not answered.", "Group by a list of columns."
            )
    found: Keys = {}
    limit = policy.limits.keys
    for item, value in zip(clause.expressions, values, strict=True):
        if isinstance(value.domain, Opaque):
            raise reject(
                item,
                f"{show(item)} identifies people.",
                f"Group by something that many people share; or, within each person, by the owner and {show(item)}"
                " in a subquery, and aggregate that.",
            )
        if isinstance(value.domain, Missing) or value.constant:
            continue  # the same for everybody: it parts no group, and is shown as it is written
        found[value.identity] = _list_key(value, relation) or key_of(value, limit)
    found = _listed_anyway(relation, found, values, limit, finder) or found
    groups = math.prod(key.size for key, _ in found.values() if isinstance(key, Key))
    if groups > limit and not _few_enough(relation, found, limit, finder):
        # S5: too many to give each a number; those that exist must pass a test
        found = {
            value.identity: key_of(value, limit, unknown=True)
            for value in values
            if value.identity in found
        }
    if any(isinstance(key, Unknown) for key, _ in found.values()):
        _require_delta(clause, policy)
    return found


def _list_key(value: Value, relation: Relation) -> tuple[Key, Expression] | None:
    """Return a text that the question itself lists, WHERE dest IN ('ATL', 'BOS'): its values are
    public.
    """
    if not isinstance(value.domain, Text):
        return None
    texts = texts_in_conditions(value.expression, relation.source, relation.conditions)
    if texts is None or len(texts) > MOST_TEXTS:
        return None
    return Key(domain=Category(values=texts), nullable=False), place_of_text(
        value.expression, texts
    )


def key_of(value: Value, limit: int, *, unknown: bool = False) -> tuple[Key | Unknown, Expression]:
    domain, nullable = value.domain, value.nullable
    if isinstance(domain, Text):
        return Unknown(domain=domain, nullable=nullable), value.expression
    assert isinstance(domain, Number | Category | Flag | Day | Moment)
    if unknown or domain.size > limit:
        return Unknown(domain=domain, nullable=nullable), key_position(
            value.expression, domain, nullable=False
        )
    return Key(domain=domain, nullable=nullable), key_position(
        value.expression, domain, nullable=nullable
    )


def possible(
    relation: Relation, keys: Keys, finder: Possible | None
) -> tuple[Joint | None, Expression | None]:
    """Return the public keys taken together, and a row's place among the groups that can be, where
    not all can.
    """
    public = [key for key, _ in keys.values() if isinstance(key, Key)]
    if finder is None or not public or len(public) < len(keys):
        return None, None
    places, sizes = [place for _, place in keys.values()], [key.size for key in public]
    cells = finder.cells(relation.source, relation.conditions, places, sizes)
    if cells is None:
        return None, None
    return Joint(keys=tuple(public), cells=cells), careful(place_among(places, sizes, cells))


def _few_enough(relation: Relation, keys: Keys, limit: int, finder: Possible | None) -> bool:
    """Return True if no more groups can exist than the policy allows, though the grid of keys is
    larger.
    """
    joint, _ = possible(relation, keys, finder)
    return joint is not None and joint.size <= limit


def _listed_anyway(
    relation: Relation, keys: Keys, values: list[Value], limit: int, finder: Possible | None
) -> Keys | None:
    """The keys as public ones, where a number or a moment of very many values is among them and few
    groups can be: the population of a public table's states, the seconds that WHERE leaves.
    """
    vast = {
        identity
        for identity, (key, _) in keys.items()
        if isinstance(key, Unknown) and not isinstance(key.domain, Text)
    }
    if not vast or any(
        isinstance(key, Unknown) and identity not in vast for identity, (key, _) in keys.items()
    ):
        return None
    if finder is None:
        return None
    few = replace(finder, most=limit)
    public = {
        value.identity: key_of(value, _ANY_SIZE) for value in values if value.identity in vast
    }
    listed = {identity: public.get(identity, found) for identity, found in keys.items()}
    return listed if _few_enough(relation, listed, limit, few) else None


_ANY_SIZE = 2**62


def _require_delta(node: exp.Expression, policy: Policy) -> None:
    """Unknown keys need a δ (S5, S6)."""
    budget = policy.budget
    if not budget.delta or (budget.accountant == "zcdp" and not budget.keys):
        raise reject(
            node,
            "the values of a key are not public, and the budget has no δ with which to test them.",
            "Ask the curator to list the values in the policy, or to declare a delta, such as 1e-9.",
        )
