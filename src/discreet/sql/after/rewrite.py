"""Split an aggregating SELECT: noise goes on its aggregates, by its keys; the rest of it runs on the
noisy table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sqlglot import exp

from discreet.algebra import Expression
from discreet.errors import Rejected
from discreet.sql import aggregates
from discreet.sql.after import after, error_bars
from discreet.sql.after.naming import (
    aggregate_name,
    aggregate_number,
    expression_margin_name,
    key_name,
    key_number,
    margin_name,
    table_name,
)
from discreet.sql.after.rebuild import as_sql, rebuild, whole_division
from discreet.sql.after.released import Output, OutputTable, rename_keys
from discreet.sql.after.widths import linear
from discreet.sql.after.widths.linear import Form, form_of
from discreet.sql.plan.keys import Key, PublicDomain, Unknown
from discreet.sql.requests.request import AggregateRequest
from discreet.sql.rows.owners import conjuncts
from discreet.sql.rows.relation import Names
from discreet.sql.text.parse import reject, show, spell, whole
from discreet.sql.text.postgres import Kind, kind_of
from discreet.sql.values.expressions import translate
from discreet.sql.values.value import Flag, Identity, Number, Text
from discreet.sql.walk import Environment, Walk

# the keys of GROUP BY, with the expressions of their places
Keys = dict[Identity, tuple[Key | Unknown, Expression]]


def has_aggregate(node: exp.Select) -> bool:
    """Return True if this SELECT itself aggregates, apart from its subqueries and windows."""
    clauses = [node.args.get(name) for name in ("having", "qualify", "order")]
    parts = [*node.expressions, *filter(None, clauses)]
    return any(aggregates.aggregates_in(part) for part in parts)


def meanings_of(node: exp.Select, names: Names) -> list[exp.Expression]:
    """Return the expressions of GROUP BY, without places and aliases."""
    clause = node.args.get("group")
    return [meaning_of(item, node, names) for item in clause.expressions] if clause else []


def meaning_of(item: exp.Expression, node: exp.Select, names: Names) -> exp.Expression:
    """Return the expression that an item of GROUP BY means.

    A place, as in GROUP BY 1, and an alias stand for an item of the SELECT list.
    """
    if isinstance(item, exp.Literal) and not item.is_string:
        index = whole(item) or 0
        if not 1 <= index <= len(node.expressions):
            raise reject(
                item,
                f"there is no column {show(item)} in the SELECT list.",
                "Group by a column's name.",
            )
        return node.expressions[index - 1].unalias()
    if isinstance(item, exp.Column) and not item.table:
        is_column = any(field.name.lower() == item.name.lower() for field in names.fields)
        alias = _find_alias(node, item.name)
        if alias is not None and not is_column:
            return alias.this
    return item.this if isinstance(item, exp.Paren) else item


def _find_alias(node: exp.Select, name: str) -> exp.Alias | None:
    """Return the item of the SELECT list with this name."""
    for item in node.expressions:
        if isinstance(item, exp.Alias) and item.alias.lower() == name.lower():
            return item
    return None


_ON_KEYS = (
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE),
    *(exp.Between, exp.In, exp.Is, exp.Like, exp.ILike),
    *(exp.And, exp.Or, exp.Not, exp.Paren, exp.Literal, exp.Neg, exp.Null, exp.Boolean),
)


@dataclass(slots=True, kw_only=True)
class Rewrite:
    """Rewrites one aggregating SELECT to run on its noisy table, whose columns are its keys and
    aggregates.
    """

    analysis: Walk
    environment: Environment
    names: Names
    keys: Keys
    # the expressions of GROUP BY, with the identities of their values
    meanings: list[tuple[exp.Expression, Identity]]
    node: exp.Select
    index: int
    requests: list[AggregateRequest] = field(default_factory=list)
    signatures: dict[str, int] = field(default_factory=dict)
    derived: list[str] = field(default_factory=list)

    def output_table(self) -> OutputTable:
        """Return the SELECT over its noisy table."""
        items = []
        outputs = []
        for item in self.node.expressions:
            table_star = isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
            if table_star or isinstance(item, exp.Star):
                raise reject(
                    item, "* stands for rows, and rows never leave.", "List keys and aggregates."
                )
            expression, output = self.item(item.output_name or spell(item), item.unalias())
            items.append(expression)
            outputs.append(replace(output, kind=kind_of(item, self.kind)))
        tree = exp.select(*items).from_(exp.table_(table_name(self.index), quoted=True))
        for condition in self.on_keys():
            tree = tree.where(condition, copy=False)
        having = self.node.args.get("having")
        if having:
            tree = tree.where(self.rewrite(having.this), copy=False)
        if self.node.args.get("qualify"):
            tree.set("qualify", exp.Qualify(this=self.rewrite(self.node.args["qualify"].this)))
        after.finish(tree, self.node, self.resolve_order)
        error_bars.check_unused(tree, self.node)
        return OutputTable(
            tree=tree,
            outputs=tuple(outputs),
            selected=after.leaves_out_rows(self.node),
            distinct=bool(self.node.args.get("distinct")),
            keys=rename_keys(
                frozenset(map(key_name, range(len(self.keys)))),
                [(item.this.name, item.alias) for item in items if type(item.this) is exp.Column],
            ),
        )

    def item(self, name: str, node: exp.Expression) -> tuple[exp.Expression, Output]:
        """Return one column of the SELECT list, rewritten and described; it may be MARGIN(x)."""
        inner = error_bars.argument(node)
        expression = self.rewrite(node if inner is None else inner)
        output = self.output(name, expression)
        if inner is None:
            return exp.alias_(expression, name, quoted=True), output
        if output.half_width:
            raise error_bars.not_here(inner)
        return after.with_half_width(name, expression, output.margin)

    def on_keys(self) -> Iterator[exp.Expression]:
        """Yield the conditions of WHERE about keys alone, with the columns of the noisy table.

        No row is in a group that they exclude, so the answer can leave it out.
        """
        where = self.node.args.get("where") if self.keys else None
        for part in conjuncts(where.this if where is not None else None):
            if part.find(exp.Column):
                with suppress(Rejected):
                    yield self.of_keys(part)

    def of_keys(self, node: exp.Expression) -> exp.Expression:
        """Return a condition that compares keys with constants, with the columns of the noisy
        table; raise Rejected for any other.

        Only comparisons that mean the same on noisy tables as on rows pass. A comparison of a
        number with a text does not.
        """
        column = self.key(node) if node.find(exp.Column) else None
        if column is not None:
            predicate = node.find_ancestor(exp.Predicate)
            literals = predicate.find_all(exp.Literal) if predicate is not None else ()
            beside_text = any(literal.is_string for literal in literals)
            if not isinstance(self.domain(column), Number | Flag) or not beside_text:
                return column
        if column is not None or not isinstance(node, _ON_KEYS):
            raise reject(node, f"{show(node)} is not about keys alone.", "Group by it.")
        return rebuild(node, self.of_keys)

    def output(self, name: str, expression: exp.Expression) -> Output:
        """Describe an output column: a key, an aggregate, or a computation from them."""
        nothing = Output(name=name, margin=None, estimate=None)
        if error_bars.inside(expression) is not None:
            return replace(nothing, half_width="here")
        plain = expression.this if isinstance(expression, exp.Paren) else expression
        if isinstance(plain, exp.Column):
            number = aggregate_number(plain.name)
            if number is None:  # a key
                return nothing
            estimate = (self.index, number)
            if self.requests[number].chosen:
                return replace(nothing, estimate=estimate)
            forms = (self.form(number),)
            return Output(name=name, margin=self.margin(number), estimate=estimate, forms=forms)
        if expression.find(exp.Window):
            return nothing
        output = self.linear(nothing, expression)
        if output is not None:
            return output
        if expression.find(exp.Query):  # its columns are not those of this block
            return nothing
        numbers = [aggregate_number(column.name) for column in expression.find_all(exp.Column)]
        requests = [self.requests[number] for number in numbers if number is not None]
        if not requests or any(request.chosen for request in requests):
            return nothing
        self.derived.append(as_sql(expression))
        column = expression_margin_name(len(self.derived) - 1)
        margin = exp.column(column, table=table_name(self.index), quoted=True)
        return replace(nothing, margin=margin)

    def linear(self, output: Output, expression: exp.Expression) -> Output | None:
        """Return the column with its margin if it is linear in noisy numbers, else None."""
        form = form_of(expression, self.leaf)
        if form is None or not any(form.factors.values()):
            return None
        number, *others = form.factors
        if others or number.row:  # several numbers, or one of a subquery
            return self.analysis.combine(output, form) if form.straight else None
        margin = after.scale_margin(self.margin(number.estimate), form)
        return replace(output, margin=margin, forms=(form,))

    def leaf(self, node: exp.Expression) -> Form | None:
        """Return the form of a column of the noisy table or of a subquery, if it has one."""
        if isinstance(node, exp.Subquery):
            output = node.meta.get("output")
            if not output or len(output.forms) != 1:
                return None
            return after.inside(output.forms[0], f"subquery {id(node)}")
        number = aggregate_number(node.name)
        if number is None:  # a key
            return Form(factors={}) if isinstance(self.domain(node), Number) else None
        return None if self.requests[number].chosen else self.form(number)

    def domain(self, column: exp.Expression) -> PublicDomain | Text:
        """Return the domain of a key, given its column of the noisy table."""
        number = key_number(column.name)
        assert number is not None
        key, _ = list(self.keys.values())[number]
        return key.domain

    def form(self, number: int) -> Form:
        """Return the form of one aggregate alone."""
        place = linear.Number(row=(), block=self.index, estimate=number)
        step = self.requests[number].step
        is_sum = step is not None
        return Form(factors={place: Fraction(1)}, grid=step, present=is_sum, straight=is_sum)

    def margin(self, number: int) -> exp.Expression:
        """Return the column of an aggregate's half-widths."""
        return exp.column(margin_name(number), table=table_name(self.index), quoted=True)

    def resolve_order(self, node: exp.Expression) -> exp.Expression:
        """Rewrite an item of ORDER BY: a name means a column of the result before one of the
        rows.
        """
        if isinstance(node, exp.Column) and not node.table:
            names = [item.output_name.lower() for item in self.node.expressions]
            if names.count(node.name.lower()) == 1:
                return exp.Literal.number(names.index(node.name.lower()) + 1)
        return self.rewrite(node)

    def rewrite(self, node: exp.Expression) -> exp.Expression:
        """Return the expression with keys and aggregates replaced by columns of the noisy table."""
        if isinstance(node, exp.Query | exp.Subquery):
            return after.embed(node, after.subquery(node, self.analysis, self.environment))
        if isinstance(node, exp.Window):
            return self.window(node)
        if error_bars.argument(node) is not None:
            return self.half_width(node)
        if aggregates.is_aggregate(node):
            return self.aggregate(node)
        if isinstance(node, exp.Literal | exp.Null | exp.Boolean):
            return rebuild(node, self.rewrite)
        if not aggregates.aggregates_in(node) and node.find(exp.Column):
            column = self.key(node)
            if column is not None:
                return column
        if isinstance(node, exp.Column):
            alias = None if node.table else self.alias(node.name)
            if alias is not None and alias.this != node:
                return exp.Paren(this=self.rewrite(alias.this))
            self.names.column(node)  # refuses an unknown name, which is the better message
            raise reject(
                node,
                f"{show(node)} is neither aggregated nor in GROUP BY.",
                "Aggregate it, or add it to GROUP BY.",
            )
        return rebuild(whole_division(node, self.kind), self.rewrite)

    def window(self, node: exp.Window) -> exp.Expression:
        """Rewrite a window over the noisy table: its function is no aggregate of rows."""

        def rewrite(part: exp.Expression) -> exp.Expression:
            return rebuild(part, self.rewrite) if part is node.this else self.rewrite(part)

        return rebuild(node, rewrite)

    def half_width(self, node: exp.Expression) -> exp.Expression:
        """Rewrite a MARGIN(x) inside an expression."""
        expression, output = self.item("", node)
        if output.half_width == "late":
            raise error_bars.not_here(node)
        return expression.unalias()

    def kind(self, column: exp.Column) -> Kind | None:
        """Return the type of a column of the rows, or of the SELECT list."""
        is_column = any(field.name.lower() == column.name.lower() for field in self.names.fields)
        alias = None if is_column or column.table else self.alias(column.name)
        return self.names.kind(column) if alias is None else kind_of(alias.this, self.kind)

    def alias(self, name: str) -> exp.Alias | None:
        """Return the item of the SELECT list with this name."""
        return _find_alias(self.node, name)

    def key(self, node: exp.Expression) -> exp.Expression | None:
        """Return the column of a key if the expression is in GROUP BY, in the same words or with
        the same meaning; else None.
        """
        same = next((identity for meaning, identity in self.meanings if meaning == node), None)
        if same is None and self.keys and not node.find(exp.Query):
            try:
                same = translate(node, self.names).identity
            except Rejected:  # the node may have a meaning after noise only; go on with its parts
                return None
        if same not in self.keys:
            return None
        position = list(self.keys).index(same)
        return exp.column(key_name(position), table=table_name(self.index))

    def aggregate(self, node: exp.Expression) -> exp.Expression:
        """Return the column of an aggregate; request it if no equal one was requested."""
        request = aggregates.read(node, self.names)
        if request.signature not in self.signatures:
            self.signatures[request.signature] = len(self.requests)
            self.requests.append(request)
        number = self.signatures[request.signature]
        return exp.column(aggregate_name(number), table=table_name(self.index))
