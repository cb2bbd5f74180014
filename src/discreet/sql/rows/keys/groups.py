"""Decide about the keys of a block: which are public, which must pass a threshold, and which groups
are possible.
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
    """Return the group keys by the identity of their values, each with the expression that the
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
    keys: Keys = {}
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
            continue  # a constant is equal for all rows, so it divides no group
        keys[value.identity] = _list_key(value, relation) or key_of(value, limit)
    keys = _vast_keys(relation, keys, values, limit, finder) or keys
    groups = math.prod(key.size for key, _ in keys.values() if isinstance(key, Key))
    if groups > limit and not _few_enough(relation, keys, limit, finder):
        # Privacy: S5. There are too many groups to measure each. So treat the keys as not public:
        # those that exist must pass the threshold.
        for value in values:
            if value.identity in keys:
                keys[value.identity] = key_of(value, limit, unknown=True)
    if any(isinstance(key, Unknown) for key, _ in keys.values()):
        _require_delta(clause, policy)
    return keys


def _list_key(value: Value, relation: Relation) -> tuple[Key, Expression] | None:
    """Return a text as a public key if the question lists its values: WHERE dest IN ('ATL', 'BOS')."""
    if not isinstance(value.domain, Text):
        return None
    texts = texts_in_conditions(value.expression, relation.source, relation.conditions)
    if texts is None or len(texts) > MOST_TEXTS:
        return None
    key = Key(domain=Category(values=texts), nullable=False)
    return key, place_of_text(value.expression, texts)


def key_of(value: Value, limit: int, *, unknown: bool = False) -> tuple[Key | Unknown, Expression]:
    """Return a value as a key, with the expression to group by. It is public if its domain has at
    most `limit` values, unless `unknown` says otherwise.
    """
    domain = value.domain
    nullable = value.nullable
    if isinstance(domain, Text):
        return Unknown(domain=domain, nullable=nullable), value.expression
    assert isinstance(domain, Number | Category | Flag | Day | Moment)
    if unknown or domain.size > limit:
        position = key_position(value.expression, domain, nullable=False)
        return Unknown(domain=domain, nullable=nullable), position
    position = key_position(value.expression, domain, nullable=nullable)
    return Key(domain=domain, nullable=nullable), position


def keys_in_columns(
    keys: Keys, before: list[Value], after: list[Value], columns: list[Expression]
) -> Keys:
    """Return keys by the values that GROUP BY has in a later stage, whose columns hold them."""
    now = {old.identity: new.identity for old, new in zip(before, after, strict=True)}
    return {
        now[same]: (key, column)
        for (same, (key, _)), column in zip(keys.items(), columns, strict=True)
    }


def possible(
    relation: Relation, keys: Keys, finder: Possible | None
) -> tuple[Joint | None, Expression | None]:
    """Return all keys as one, and the expression of a row's place among the possible groups; None if
    all groups are possible, or some keys are not public.
    """
    public = [key for key, _ in keys.values() if isinstance(key, Key)]
    if finder is None or not public or len(public) < len(keys):
        return None, None
    places = [place for _, place in keys.values()]
    sizes = [key.size for key in public]
    cells = finder.cells(relation.source, relation.conditions, places, sizes)
    if cells is None:
        return None, None
    return Joint(keys=tuple(public), cells=cells), careful(place_among(places, sizes, cells))


def _few_enough(relation: Relation, keys: Keys, limit: int, finder: Possible | None) -> bool:
    """Return True if at most `limit` groups are possible, although the grid of keys is larger."""
    joint, _ = possible(relation, keys, finder)
    return joint is not None and joint.size <= limit


def _vast_keys(
    relation: Relation, keys: Keys, values: list[Value], limit: int, finder: Possible | None
) -> Keys | None:
    """Return the keys as public ones if some have very many values, but few groups are possible; None
    otherwise.

    Examples are the population of a state from a public table, and the seconds that WHERE allows.
    """
    unknown = {same: key for same, (key, _) in keys.items() if isinstance(key, Unknown)}
    has_texts = any(isinstance(key.domain, Text) for key in unknown.values())
    if finder is None or not unknown or has_texts:
        return None
    public: Keys = dict(keys)
    for value in values:
        if value.identity in unknown:
            public[value.identity] = key_of(value, _ANY_SIZE)
    finder = replace(finder, most=limit)
    return public if _few_enough(relation, public, limit, finder) else None


_ANY_SIZE = 2**62


def _require_delta(node: exp.Expression, policy: Policy) -> None:
    """Refuse unknown keys if the budget has no δ for them (S5, S6)."""
    budget = policy.budget
    if not budget.delta or (budget.accountant == "zcdp" and not budget.keys):
        raise reject(
            node,
            "the values of a key are not public, and the budget has no δ with which to test them.",
            "Ask the curator to list the values in the policy, or to declare a delta, such as 1e-9.",
        )
