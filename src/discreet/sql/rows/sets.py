"""Plan UNION, INTERSECT and EXCEPT: of noisy results, of private rows for each person, and of sets of
owners.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from discreet.algebra import OWNER, Column, Stage, UnionAll, call
from discreet.sql.after import after
from discreet.sql.after.released import OutputTable
from discreet.sql.after.union import union
from discreet.sql.rows.relation import Field, Relation, rows_of_stage
from discreet.sql.rows.subqueries import member
from discreet.sql.text.parse import reject
from discreet.sql.text.postgres import common_kind
from discreet.sql.values.unify import join_domains, unify
from discreet.sql.values.value import Opaque, Value


def combine(
    node: exp.SetOperation,
    left: Relation | OutputTable,
    right: Relation | OutputTable,
    alias: Callable[[], str],
) -> Relation | OutputTable:
    """Plan a set operation of two queries; `alias` gives fresh names for the engine."""
    if isinstance(left, OutputTable) and isinstance(right, OutputTable):
        return union(node, left, right)
    if isinstance(left, Relation) and isinstance(right, Relation):
        if isinstance(node, exp.Union):
            return _union(node, left, right, alias)
        return _match_owners(node, left, right, alias)
    raise reject(
        node,
        f"{_word(node)} of private and other rows is not answered.",
        "Ask each part by itself.",
    )


def _match_owners(
    node: exp.SetOperation, left: Relation, right: Relation, alias: Callable[[], str]
) -> Relation:
    """Plan INTERSECT and EXCEPT of owners: people on the left who are also, or are not, on the
    right.
    """
    within = isinstance(node, exp.Intersect)
    if not _of_owners(node, left, right):
        raise reject(
            node,
            f"{_word(node)} compares rows of different people.",
            f"Of owners, write WHERE owner {'IN' if within else 'NOT IN'} (SELECT owner FROM ...).",
        )
    people = replace(left.nest(alias(), distinct=True), rows=1)
    condition = member(people.fields[0].value, people.owner, right, node)
    if not within:
        condition = replace(condition, expression=call("NOT", condition.expression))
    return people.filter(condition)


def _union(node: exp.Union, left: Relation, right: Relation, alias: Callable[[], str]) -> Relation:
    """Plan UNION ALL of private rows, where a person has the rows of both sides; or UNION of owners,
    each person once.
    """
    once = bool(node.args.get("distinct"))
    plain = type(node) is exp.Union and not node.args.get("by_name")
    plain = plain and not after.leaves_out_rows(node)
    if not plain or (once and not _of_owners(node, left, right)):
        raise reject(
            node,
            "UNION without ALL, or with an order, compares rows of different people.",
            "Write UNION ALL, and count people with COUNT(DISTINCT owner).",
        )
    if node.args.get("order") or len(left.fields) != len(right.fields):
        raise reject(
            node,
            "both sides of UNION ALL need the same columns, unordered.",
            "List them on both sides.",
        )
    name = alias()
    rows = left.rows + right.rows
    fields = []
    sides: tuple[list[Field], list[Field]] = ([], [])
    for index, (a, b) in enumerate(zip(left.fields, right.fields, strict=True)):
        values = _common(a.value, b.value, node)
        domain = values[0].domain if isinstance(values[0].domain, Opaque) else join_domains(values)
        column = OWNER if isinstance(domain, Opaque) and domain.owner else f"c{index}"
        value = Value(
            expression=Column(name, column),
            domain=domain,
            nullable=a.value.nullable or b.value.nullable,
            kind=common_kind([a.value.kind, b.value.kind]),
        )
        fields.append(replace(a, origins=rows_of_stage(name, rows), value=value))
        for side, value in zip(sides, values, strict=True):
            side.append(replace(a, value=value))
    selects = (each.select(side) for each, side in zip((left, right), sides, strict=True))
    both = Relation(source=Stage(UnionAll(tuple(selects)), name), fields=tuple(fields), rows=rows)
    return replace(both.nest(alias(), distinct=True), rows=1) if once else both


def _common(a: Value, b: Value, node: exp.Expression) -> list[Value]:
    """Return both sides of a column as values of one domain."""
    if isinstance(a.domain, Opaque) and a.domain == b.domain:
        return [a, b]
    return unify((a, b), node)


def _of_owners(node: exp.SetOperation, left: Relation, right: Relation) -> bool:
    """Return True if a set operation has only owners on both sides, and no other clauses."""
    domains = [side.fields[0].value.domain for side in (left, right) if len(side.fields) == 1]
    owners = [each for each in domains if isinstance(each, Opaque) and each.owner]
    plain = ("this", "expression", "distinct", "with_")
    has_more = any(part for name, part in node.args.items() if name not in plain)
    return not has_more and len(owners) == 2 and bool(node.args.get("distinct"))


def _word(node: exp.SetOperation) -> str:
    """Return the operation's name in SQL."""
    return str(node.key).upper()
