"""A calendar, or another public table, that keeps its rows: FROM days LEFT JOIN visits ON visits.day =
days.day GROUP BY days.day.

On rows such a join is refused: the row that meets nobody is a row without an owner. But where the
SELECT groups by public columns, and each aggregate skips the row that meets nobody, the same is

    FROM (SELECT DISTINCT days.day FROM days) LEFT JOIN (... days JOIN visits ... GROUP BY days.day)

The inner query is measured as any other, and the outer join is of public rows and noisy ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from discreet.sql.after.released import OutputTable
from discreet.sql.aggregates import aggregates_in, is_aggregate
from discreet.sql.rows.owners import conjuncts
from discreet.sql.rows.relation import Relation
from discreet.sql.rows.rewrites.antijoins import side_of
from discreet.sql.text.parse import reject, show, spell, whole
from discreet.sql.walk import Environment, Walk

_KEPT, _MET = "_kept", "_met"
_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.ILike)


def keep_public_rows(
    analysis: Walk,
    node: exp.Select,
    sources: Sequence[Relation | OutputTable],
    environment: Environment,
) -> Relation | OutputTable | None:
    """Return a SELECT that keeps the rows of a public table, joined after noise; None of others.

    None also where groups must pass a threshold: one that does not is no group of nobody.
    """
    turned = without_spine(node, sources)
    if turned is None:
        return None
    blocks = len(analysis.blocks)
    found = analysis.query(turned, environment)
    if not any(block.unknown for block in analysis.blocks[blocks:]):
        return found
    del analysis.blocks[blocks:]
    return None


def without_spine(node: exp.Select, sources: Sequence[Relation | OutputTable]) -> exp.Select | None:
    """Return the SELECT with an outer join after noise; None if it has no such join."""
    joins = node.args.get("joins") or []
    side = side_of(joins[0]) if len(joins) == 1 else None
    if side not in ("LEFT", "RIGHT"):
        return None
    order = (0, 1) if side == "LEFT" else (1, 0)
    kept, met = (sources[place] for place in order)
    if not isinstance(kept, OutputTable) or kept.noisy or not isinstance(met, Relation):
        return None
    names = [each.name.lower() for each in kept.outputs]
    others = [each.name.lower() for each in met.fields]
    node = node.copy()
    table = (node.args["from_"].this, node.args["joins"][0].this)[order[0]]
    spine = _Spine(node=node, table=table, kept=tuple(names), met=tuple(others))
    if not _compare_by_name(node):
        return None
    spine.name_tables()
    return spine.after_noise()


def _compare_by_name(node: exp.Select) -> bool:
    """Write USING (day) as ON days.day = visits.day; return False where a side has no name."""
    join = node.args["joins"][0]
    using = [each.name for each in join.args.get("using") or []]
    sides = [node.args["from_"].this.alias_or_name, join.this.alias_or_name]
    if using and not all(sides):
        return False
    if using:
        same = [
            exp.EQ(
                this=exp.column(name, table=sides[0]), expression=exp.column(name, table=sides[1])
            )
            for name in using
        ]
        join.set("on", exp.and_(*same, copy=False))
        join.set("using", None)
        node.meta["merged"] = using
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spine:
    """One SELECT over a public table that keeps its rows, and private rows that meet them."""

    node: exp.Select
    table: exp.Expression  # the public one
    kept: tuple[str, ...]  # its columns
    met: tuple[str, ...]  # those of the private side

    def name_tables(self) -> None:
        """Write each public column with the name of its table, so that equal ones are alike."""
        for column in list(self.node.find_all(exp.Column)):
            own = column.find_ancestor(exp.Select) is self.node
            if own and self.side(column) == "kept" and self.table.alias_or_name:
                column.set("table", exp.to_identifier(self.table.alias_or_name))

    def after_noise(self) -> exp.Select | None:
        """Return the SELECT as an outer join of groups; None where it is not such a question."""
        node = self.node
        if node.args.get("qualify") or any(item.is_star for item in node.expressions):
            return None
        where = conjuncts(node.args["where"].this) if node.args.get("where") else []
        if any(self.fails_alone(part) for part in where):
            return self.inner()  # WHERE drops the rows that meet nobody
        group = node.args.get("group")
        listed = [*group.expressions] if group is not None else []
        keys = [self.meaning(key) for key in listed]
        found = list(self.aggregates())
        for aggregate in found:
            if not self.skips_alone(aggregate):
                raise reject(
                    aggregate,
                    "an outer join that keeps public rows shows whether anybody matches them, and"
                    f" {show(aggregate)} looks at those whom nobody matches.",
                    f"Count a column of the private table: COUNT({self.example()}).",
                )
        if not all(self.is_public(part) for part in (*keys, *where)):
            return None
        if not found:
            return None
        return self.joined(keys, found) if keys else self.inner()

    def inner(self) -> exp.Select:
        copy = self.node.copy()
        join = copy.args["joins"][0]
        join.set("side", None)
        join.set("kind", None)
        return copy

    def joined(self, keys: list[exp.Expression], found: list[exp.Expression]) -> exp.Select:
        """Return the outer join of the public groups and the measured ones."""
        distinct = list(dict.fromkeys(found))
        measured = exp.Select(
            expressions=[
                *(exp.alias_(key.copy(), f"group_{place}") for place, key in enumerate(keys)),
                *(
                    exp.alias_(each.copy(), f"number_{place}")
                    for place, each in enumerate(distinct)
                ),
            ],
            group=exp.Group(expressions=[key.copy() for key in keys]),
        )
        inner = self.inner()
        listed = exp.Select(
            expressions=[
                exp.alias_(key.copy(), f"group_{place}") for place, key in enumerate(keys)
            ],
            distinct=exp.Distinct(),
            from_=exp.From(this=self.table.copy()),
        )
        for part in ("from_", "joins", "where"):
            if inner.args.get(part):
                measured.set(part, inner.args[part])
        if inner.args.get("where"):
            listed.set("where", inner.args["where"].copy())
        places = {key: exp.column(f"group_{place}", table=_KEPT) for place, key in enumerate(keys)}
        for place, each in enumerate(distinct):
            column = exp.column(f"number_{place}", table=_MET)
            inside = each.this if isinstance(each, exp.Filter) else each
            none = isinstance(inside, exp.Count)
            zero = exp.Literal.number(0)
            places[each] = exp.Coalesce(this=column, expressions=[zero]) if none else column
        same = [
            exp.NullSafeEQ(
                this=exp.column(f"group_{place}", table=_KEPT),
                expression=exp.column(f"group_{place}", table=_MET),
            )
            for place in range(len(keys))
        ]
        join = exp.Join(this=_named(measured, _MET), side="LEFT", on=exp.and_(*same, copy=False))
        return self.outer(exp.From(this=_named(listed, _KEPT)), join, places)

    def outer(
        self, source: exp.From, join: exp.Join, places: dict[exp.Expression, exp.Expression]
    ) -> exp.Select:
        node = self.node

        def change(part: exp.Expression) -> exp.Expression:
            known = places.get(part)
            if known is None and isinstance(part, exp.Column):
                known = places.get(self.meaning(part))
            return part if known is None else known.copy()

        items = []
        for item in node.expressions:
            name = item.output_name or spell(item)
            made = item.unalias().copy().transform(change, copy=False)
            items.append(exp.alias_(made, name, quoted=True))
        tree = exp.Select(expressions=items, from_=source, joins=[join])
        if node.args.get("having"):
            held = node.args["having"].this.copy().transform(change, copy=False)
            tree.set("where", exp.Where(this=held))
        if node.args.get("order"):
            tree.set("order", _change_below(node.args["order"], change))
        for clause in ("distinct", "limit", "offset"):
            if node.args.get(clause):
                tree.set(clause, node.args[clause].copy())
        tree.meta.update(node.meta)
        return tree

    # --- what a part looks at ---------------------------------------------------------------------

    def aggregates(self) -> list[exp.Expression]:
        """Return the aggregates of the SELECT, not the windows above them."""
        clauses = [self.node.args[name] for name in ("having", "order") if self.node.args.get(name)]
        pending, found = [*self.node.expressions, *clauses], list[exp.Expression]()
        while pending:
            part = pending.pop(0)
            if isinstance(part, exp.Query):
                continue
            if isinstance(part, exp.Window):
                over = part.this.this if isinstance(part.this, exp.Filter) else part.this
                pending += [*over.iter_expressions()]
                pending += [each for each in part.iter_expressions() if each is not part.this]
            elif is_aggregate(part):
                found.append(part)
            else:
                pending += [*part.iter_expressions()]
        return found

    def meaning(self, key: exp.Expression) -> exp.Expression:
        """Return what an item of GROUP BY, or a name, stands for."""
        place = whole(key) or 0
        if isinstance(key, exp.Literal) and 1 <= place <= len(self.node.expressions):
            return self.node.expressions[place - 1].unalias()
        bare = isinstance(key, exp.Column) and not key.table
        if bare and key.name.lower() not in (*self.kept, *self.met):
            for item in self.node.expressions:
                if isinstance(item, exp.Alias) and item.alias.lower() == key.name.lower():
                    return item.this
        return key

    def side(self, column: exp.Column) -> str:
        """Return on which side a column is: kept, met, or neither for sure."""
        name, table = column.name.lower(), column.table.lower()
        if table:
            mine = table == self.table.alias_or_name.lower()
            return "kept" if mine else "met"
        if name in [each.lower() for each in self.node.meta.get("merged", ())]:
            return "kept"
        inside = (name in self.kept, name in self.met)
        return {(True, False): "kept", (False, True): "met"}.get(inside, "")

    def is_public(self, part: exp.Expression) -> bool:
        """Return True if an expression is of public columns alone."""
        columns = list(part.find_all(exp.Column))
        plain = not part.find(exp.Query) and not aggregates_in(part) and not part.find(exp.Window)
        return plain and bool(columns) and all(self.side(each) == "kept" for each in columns)

    def fails_alone(self, part: exp.Expression) -> bool:
        """Return True for a condition that no row without a partner passes: v.cost > 100."""
        inner = part.unnest()
        if isinstance(inner, exp.Not):
            absent = inner.this.unnest()
            test = isinstance(absent, exp.Is) and isinstance(absent.expression, exp.Null)
            return test and self.is_missing(absent.this)
        if isinstance(inner, exp.And):
            return any(map(self.fails_alone, (inner.this, inner.expression)))
        if type(inner) in _COMPARED:
            return self.is_missing(inner.this) or self.is_missing(inner.expression)
        if isinstance(inner, exp.Between) or (
            isinstance(inner, exp.In) and not inner.args.get("query")
        ):
            return self.is_missing(inner.this)
        return False

    def is_missing(self, part: exp.Expression) -> bool:
        """Return True if an expression is NULL in every row without a partner."""
        inner = part.unnest()
        if isinstance(inner, exp.Column):
            return self.side(inner) == "met"
        if isinstance(inner, exp.Cast | exp.Neg | exp.Extract | exp.TimestampTrunc | exp.DateTrunc):
            return self.is_missing(inner.expression or inner.this)
        if isinstance(inner, exp.Add | exp.Sub | exp.Mul | exp.Div):
            return self.is_missing(inner.this) or self.is_missing(inner.expression)
        if isinstance(inner, exp.Case):
            default = inner.args.get("default")
            empty = default is None or isinstance(default, exp.Null) or self.is_missing(default)
            tests = [branch.this for branch in inner.args["ifs"]]
            return empty and inner.this is None and all(map(self.fails_alone, tests))
        return False

    def skips_alone(self, aggregate: exp.Expression) -> bool:
        """Return True if an aggregate is the same without the rows that meet nobody."""
        if isinstance(aggregate, exp.Filter):
            held = aggregate.expression.this
            return self.fails_alone(held) or self.skips_alone(aggregate.this)
        if isinstance(aggregate, exp.WithinGroup):
            order = aggregate.expression
            return isinstance(order, exp.Order) and all(
                self.is_missing(each.this) for each in order.expressions
            )
        if isinstance(aggregate, exp.Count | exp.Sum | exp.Avg | exp.Min | exp.Max | exp.Median):
            inner = aggregate.this
            if isinstance(inner, exp.Distinct) and len(inner.expressions) == 1:
                inner = inner.expressions[0]
            return isinstance(inner, exp.Expression) and self.is_missing(inner)
        return False

    def example(self) -> str:
        """Return a column of the private side, with the name of its table."""
        join = self.node.args["joins"][0]
        tables = [self.node.args["from_"].this, join.this]
        other = next(each for each in tables if each is not self.table)
        name = other.alias_or_name
        return f"{name}.{self.met[0]}" if name else self.met[0]


def _named(query: exp.Select, name: str) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(name)))


def _change_below(
    node: exp.Expression, change: Callable[[exp.Expression], exp.Expression]
) -> exp.Expression:
    copy = node.copy()
    for part in list(copy.iter_expressions()):
        part.replace(part.transform(change, copy=False))
    return copy
