"""What names mean beside private rows, and what only that place explains: windows, and subqueries on owners."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from discreet.errors import Rejected
from discreet.sql import joins, persons, public
from discreet.sql.after import Released
from discreet.sql.expressions import translate
from discreet.sql.parse import reject, show
from discreet.sql.relation import Names, Relation
from discreet.sql.rewrite import has_aggregate
from discreet.sql.values import Flag, Value

if TYPE_CHECKING:
    from discreet.sql.analyze import Analysis, Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class RowScope(Names):
    """Names of a private relation's columns, and what only this place explains: subqueries on owners, windows."""

    analysis: Analysis
    environment: Environment
    relation: Relation
    windows: bool = False  # the SELECT list and QUALIFY alone may hold them

    def special(self, node: exp.Expression) -> Value | None:
        if isinstance(node, exp.Window):
            if not self.windows and persons.names_owner(node, self):
                raise reject(
                    node,
                    f"{show(node)} cannot stand here, only in a SELECT list without aggregates or in QUALIFY.",
                    "Compute it in a subquery: SELECT ... FROM (SELECT *, ROW_NUMBER() OVER (...) AS n FROM t) AS s.",
                )
            return persons.window(node, replace(self, windows=False), self.relation)
        if isinstance(node, exp.Subquery | exp.Select | exp.Union):
            raise self.refused(node)
        if isinstance(node, exp.In) and node.args.get("query") is not None:
            return self.member(node)
        if isinstance(node, exp.Exists):
            return self.exists(node)
        return None

    def refused(self, node: exp.Expression) -> Rejected:
        """A query that stands for a value: what it would tell, and what to write instead."""
        try:
            inner = self.analysis.query(node, self.environment)
        except Rejected:
            return reject(
                node,
                "a subquery beside each row is not answered.",
                "Join it on the owner: FROM people p JOIN (SELECT person_id, COUNT(*) AS n FROM visits"
                " GROUP BY person_id) AS v ON p.person_id = v.person_id.",
            )
        if isinstance(inner, Released) and not inner.noisy:
            return reject(
                node,
                "a subquery on public tables cannot stand for a value beside private rows.",
                "Join the public table, or ask it by itself, and write the value out.",
            )
        if isinstance(inner, Released):
            return reject(
                node,
                "this would compare each row with a number that depends on everybody.",
                "Ask for that number first, then write it out: WHERE income > 41000.",
            )
        return reject(
            node, "a subquery that returns rows of people cannot stand for a value.", "Join it on the owner instead."
        )

    def member(self, node: exp.In) -> Value:
        inner = self.analysis.query(node.args["query"], self.environment)
        value = translate(node.this, self)
        if isinstance(inner, Relation):
            return joins.member(value, self.relation.owner, inner, node)
        if inner.noisy or len(inner.outputs) != 1:
            raise reject(
                node,
                "IN (SELECT ...) is answered for owners, and for one column of a public table.",
                "Write a list of constants.",
            )
        column = self.analysis.of_public(inner, node).column(0)
        if pa.types.is_nested(column.type):
            raise reject(node, "IN (SELECT ...) needs a column of plain values.", "Write a list of constants.")
        listed = column.unique().to_pylist()
        if len(listed) > public.MAX_LISTED:
            raise reject(node, f"this list has {len(listed)} values.", f"Keep it under {public.MAX_LISTED}.")
        if not listed:
            return Value(sql="FALSE", domain=Flag())
        items = [
            exp.convert(each) if each is None or isinstance(each, int | float) else exp.Literal.string(str(each))
            for each in listed
        ]
        return translate(exp.In(this=node.this.copy(), expressions=items), self)

    def exists(self, node: exp.Exists) -> Value:
        inner = node.this.this if isinstance(node.this, exp.Subquery) else node.this
        plain = ("expressions", "from_", "joins", "where", "order")
        if (
            not isinstance(inner, exp.Select)
            or any(part for name, part in inner.args.items() if name not in plain)
            or has_aggregate(inner)  # which returns a row whether or not there are any
        ):
            raise reject(
                node,
                "EXISTS is answered for a plain SELECT with WHERE.",
                "Write EXISTS (SELECT 1 FROM t WHERE t.owner = p.owner AND ...).",
            )
        relation = self.analysis.joined(inner, self.analysis.sources(inner, self.environment))
        if relation is None:
            raise reject(
                node, "EXISTS on public tables is the same for everybody.", "Write IN (SELECT column FROM ...)."
            )
        where = inner.args["where"].this if inner.args.get("where") else None
        return joins.exists(relation, self.relation, where, node)
