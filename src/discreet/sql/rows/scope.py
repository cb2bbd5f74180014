"""Resolve names over private rows, and the windows and owner subqueries allowed there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from discreet.algebra import Constant
from discreet.errors import Rejected
from discreet.sql.after.rewrite import has_aggregate
from discreet.sql.rows import joins, public, subqueries, windows
from discreet.sql.rows.relation import Names, Relation
from discreet.sql.text.parse import reject, show
from discreet.sql.values.expressions import translate
from discreet.sql.values.value import Flag, Value
from discreet.sql.walk import Environment, Walk


@dataclass(frozen=True, slots=True, kw_only=True)
class RowScope(Names):
    """Resolves the columns of a relation, and what is allowed only over rows: windows, and subqueries
    about the row's owner.
    """

    analysis: Walk
    environment: Environment
    relation: Relation
    windows: bool = False  # True in the SELECT list and in QUALIFY, the only places for windows

    def special(self, node: exp.Expression) -> Value | None:
        if isinstance(node, exp.Window):
            if not self.windows and windows.names_owner(node, self):
                raise reject(
                    node,
                    f"{show(node)} cannot stand here, only in a SELECT list without aggregates or in QUALIFY.",
                    "Compute it in a subquery: SELECT ... FROM (SELECT *, ROW_NUMBER() OVER (...) AS n FROM t) AS s.",
                )
            return windows.window(node, replace(self, windows=False), self.relation)
        if isinstance(node, exp.Subquery | exp.Select | exp.SetOperation):
            return self.scalar(node)
        if isinstance(node, exp.In) and node.args.get("query") is not None:
            return self.member(node)
        if isinstance(node, exp.Exists):
            return self.exists(node)
        return None

    def scalar(self, node: exp.Expression) -> Value:
        """Return the value of a scalar subquery: a constant, if it reads public tables only.
        Others are refused.
        """
        try:
            inner = self.analysis.query(node, self.environment)
        except Rejected:
            raise reject(
                node,
                "a subquery beside each row is not answered.",
                "Join it on the owner: FROM people p JOIN (SELECT person_id, COUNT(*) AS n FROM visits"
                " GROUP BY person_id) AS v ON p.person_id = v.person_id.",
            ) from None
        if isinstance(inner, Relation):
            raise reject(
                node,
                "a subquery that returns rows of people cannot stand for a value.",
                "Join it on the owner.",
            )
        if inner.noisy:
            subquery = node.this.sql(dialect="duckdb", comments=False)
            raise reject(
                node,
                "this would compare each row with a number that depends on everybody.",
                f"Ask for that number first, and write it in this place: {subquery}.",
            )
        table = self.analysis.of_public(inner, node)
        if table.num_columns != 1 or table.num_rows > 1 or pa.types.is_nested(table.column(0).type):
            raise reject(
                node,
                "a subquery that stands for a value needs one row and one column.",
                "Write MAX(x).",
            )
        value = table.column(0)[0].as_py() if table.num_rows else None
        return translate(_constant(value), self)

    def member(self, node: exp.In) -> Value:
        """Return the value of x IN (SELECT ...): of owners, or of a column of a public table."""
        inner = self.analysis.query(node.args["query"], self.environment)
        value = translate(node.this, self)
        if isinstance(inner, Relation):
            return subqueries.member(value, self.relation.owner, inner, node)
        if inner.noisy or len(inner.outputs) != 1:
            raise reject(
                node,
                "IN (SELECT ...) is answered for owners, and for one column of a public table.",
                "Write a list of constants.",
            )
        column = self.analysis.of_public(inner, node).column(0)
        if pa.types.is_nested(column.type):
            raise reject(
                node,
                "IN (SELECT ...) needs a column of plain values.",
                "Write a list of constants.",
            )
        values = column.unique().to_pylist()
        if len(values) > public.MAX_LISTED:
            raise reject(
                node, f"this list has {len(values)} values.", f"Keep it under {public.MAX_LISTED}."
            )
        if not values:
            return Value(expression=Constant(False), domain=Flag())
        constants = [_constant(each) for each in values]
        return translate(exp.In(this=node.this.copy(), expressions=constants), self)

    def exists(self, node: exp.Exists) -> Value:
        """Return the value of EXISTS (SELECT ...) over rows of the same person."""
        inner = node.this.this if isinstance(node.this, exp.Subquery) else node.this
        if not _is_plain_select(inner):
            raise reject(
                node,
                "EXISTS is answered for a plain SELECT with WHERE.",
                "Write EXISTS (SELECT 1 FROM t WHERE t.owner = p.owner AND ...).",
            )
        inner = joins.drop_brackets(inner)
        relation = self.analysis.join_sources(inner, self.analysis.sources(inner, self.environment))
        if relation is None:
            raise reject(
                node,
                "EXISTS is answered for rows of people.",
                "Of a public table, write x IN (SELECT y FROM t).",
            )
        where = inner.args["where"].this if inner.args.get("where") else None
        return subqueries.exists(relation, self.relation, where, node)


def _is_plain_select(node: exp.Expression) -> bool:
    """Return True if a subquery is a SELECT with FROM, WHERE and ORDER BY at most.

    With an aggregate it would return a row even if it reads none.
    """
    if not isinstance(node, exp.Select) or has_aggregate(node):
        return False
    plain = ("expressions", "from_", "joins", "where", "order")
    return not any(part for name, part in node.args.items() if name not in plain)


def _constant(value: object) -> exp.Expression:
    """Return a public value as a constant in SQL."""
    plain = value is None or isinstance(value, int | float)
    return exp.convert(value) if plain else exp.Literal.string(str(value))
