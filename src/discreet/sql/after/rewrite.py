"""Split an aggregating SELECT: its keys and aggregates are measured, the rest runs after noise on
the noisy table.
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
from discreet.sql.after.released import Output, OutputTable
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

# of GROUP BY, each with where its value stands
Keys = dict[Identity, tuple[Key | Unknown, Expression]]


def has_aggregate(node: exp.Select) -> bool:
    """Return True if this SELECT itself aggregates; subqueries and window functions do not
    count.
    """
    clauses = [
        *node.expressions,
        *(node.args[name] for name in ("having", "qualify", "order") if node.args.get(name)),
    ]
    return any(aggregates.aggregates_in(part) for part in clauses)


def meanings_of(node: exp.Select, names: Names) -> list[exp.Expression]:
    clause = node.args.get("group")
    return [meaning_of(item, node, names) for item in clause.expressions] if clause else []


def meaning_of(item: exp.Expression, node: exp.Select, names: Names) -> exp.Expression:
    """Return the expression that an item of GROUP BY means: a place (1) or an alias stands for an
    item of the SELECT list.
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
        known = any(field.name.lower() == item.name.lower() for field in names.fields)
        alias = next(
            (
                part
                for part in node.expressions
                if isinstance(part, exp.Alias) and part.alias.lower() == item.name.lower()
            ),
            None,
        )
        if alias is not None and not known:
            return alias.this
    return item.this if isinstance(item, exp.Paren) else item


_ON_KEYS = (
    *(
        exp.EQ,
        exp.NEQ,
        exp.GT,
        exp.GTE,
        exp.LT,
        exp.LTE,
        exp.Between,
        exp.In,
        exp.Is,
        exp.Like,
        exp.ILike,
    ),
    *(exp.And, exp.Or, exp.Not, exp.Paren, exp.Literal, exp.Neg, exp.Null, exp.Boolean),
)


@dataclass(slots=True, kw_only=True)
class Rewrite:
    """Rewrites one aggregating SELECT to run on its noisy table: keys and aggregates become columns
    of that table.
    """

    analysis: Walk
    environment: Environment
    names: Names
    keys: Keys
    # what stands in GROUP BY, and the identity of its value
    meanings: list[tuple[exp.Expression, Identity]]
    node: exp.Select
    index: int
    requests: list[AggregateRequest] = field(default_factory=list)
    signatures: dict[str, int] = field(default_factory=dict)
    derived: list[str] = field(default_factory=list)

    def output_table(self) -> OutputTable:
        items, outputs = [], []
        for item in self.node.expressions:
            if isinstance(item, exp.Star) or (
                isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
            ):
                raise reject(
                    item, "* stands for rows, and rows never leave.", "List keys and aggregates."
                )
            expression, output = self.item(item.output_name or spell(item), item.unalias())
            items.append(expression)
            outputs.append(replace(output, kind=kind_of(item, self.kind)))
        tree = exp.select(*items).from_(exp.table_(table_name(self.index), quoted=True))
        for condition in self.on_keys():
            tree = tree.where(condition, copy=False)
        conditions = [self.node.args[name].this for name in ("having",) if self.node.args.get(name)]
        for condition in conditions:
            tree = tree.where(self.rewrite(condition), copy=False)
        if self.node.args.get("qualify"):
            tree.set("qualify", exp.Qualify(this=self.rewrite(self.node.args["qualify"].this)))
        after.finish(tree, self.node, self.resolve_order)
        error_bars.check_unused(tree, self.node)
        selected = bool(conditions) or after.leaves_out_rows(self.node)
        return OutputTable(
            tree=tree,
            outputs=tuple(outputs),
            selected=selected,
            distinct=bool(self.node.args.get("distinct")),
        )

    def item(self, name: str, node: exp.Expression) -> tuple[exp.Expression, Output]:
        """Return one column of the SELECT list, rewritten and described; it may be MARGIN(x)."""
        asked = error_bars.argument(node)
        expression = self.rewrite(node if asked is None else asked)
        output = self.output(name, expression)
        if asked is None:
            return exp.alias_(expression, name, quoted=True), output
        if output.half_width:
            raise error_bars.not_here(asked)
        return after.with_half_width(name, expression, output.margin)

    def on_keys(self) -> Iterator[exp.Expression]:
        """Yield what WHERE says about keys alone, in the noisy table's names: groups ruled out are
        nobody's.
        """
        where = self.node.args.get("where") if self.keys else None
        for part in conjuncts(where.this if where is not None else None):
            if part.find(exp.Column):
                with suppress(Rejected):
                    yield self.of_keys(part)

    def of_keys(self, node: exp.Expression) -> exp.Expression:
        """Return a condition that compares keys with constants in the noisy table's names; raise
        Rejected for any other.

        No more than that, which means on noisy tables what it means on rows: a number beside a text
        does not.
        """
        found = self.key(node) if node.find(exp.Column) else None
        if found is not None:
            compared = node.find_ancestor(exp.Predicate)
            beside = compared.find_all(exp.Literal) if compared is not None else ()
            if not isinstance(self.domain(found), Number | Flag) or not any(
                each.is_string for each in beside
            ):
                return found
        if found is not None or not isinstance(node, _ON_KEYS):
            raise reject(node, f"{show(node)} is not about keys alone.", "Group by it.")
        return rebuild(node, self.of_keys)

    def output(self, name: str, expression: exp.Expression) -> Output:
        """Describe an output column: a key, an aggregate as measured, or something computed from
        them.
        """
        if error_bars.inside(expression) is not None:
            return Output(name=name, margin=None, estimate=None, half_width="here")
        plain = expression.this if isinstance(expression, exp.Paren) else expression
        if isinstance(plain, exp.Column):
            number = aggregate_number(plain.name)
            if number is None:  # a key
                return Output(name=name, margin=None, estimate=None)
            if self.requests[number].chosen:
                return Output(name=name, margin=None, estimate=(self.index, number))
            forms = (self.form(number),)
            return Output(
                name=name, margin=self.margin(number), estimate=(self.index, number), forms=forms
            )
        if expression.find(exp.Window):
            return Output(name=name, margin=None, estimate=None)
        found = self.linear(Output(name=name, margin=None, estimate=None), expression)
        # whose columns are not those of this block
        if found is not None or expression.find(exp.Query):
            return found or Output(name=name, margin=None, estimate=None)
        numbers = (aggregate_number(column.name) for column in expression.find_all(exp.Column))
        used = [self.requests[number] for number in numbers if number is not None]
        if not used or any(request.chosen for request in used):
            return Output(name=name, margin=None, estimate=None)
        self.derived.append(as_sql(expression))
        margin = exp.column(
            expression_margin_name(len(self.derived) - 1), table=table_name(self.index), quoted=True
        )
        return Output(name=name, margin=margin, estimate=None)

    def linear(self, output: Output, expression: exp.Expression) -> Output | None:
        """Return the column with its margin, where that is known from the noise alone or from that
        of one aggregate.
        """
        form = form_of(expression, self.leaf)
        if form is None or not any(form.factors.values()):
            return None
        if len(form.factors) > 1:
            return self.analysis.combine(output, form) if form.straight else None
        (number,) = form.factors
        if number.row:  # a subquery's
            return self.analysis.combine(output, form) if form.straight else None
        return replace(
            output, margin=after.scale_margin(self.margin(number.estimate), form), forms=(form,)
        )

    def leaf(self, node: exp.Expression) -> Form | None:
        if isinstance(node, exp.Subquery):
            found = node.meta.get("output")
            return (
                after.inside(found.forms[0], f"subquery {id(node)}")
                if found and len(found.forms) == 1
                else None
            )
        number = aggregate_number(node.name)
        if number is None:  # a key
            return Form(factors={}) if isinstance(self.domain(node), Number) else None
        return None if self.requests[number].chosen else self.form(number)

    def domain(self, column: exp.Expression) -> PublicDomain | Text:
        """Return what a key may be, given its column of the noisy table."""
        number = key_number(column.name)
        assert number is not None
        key, _ = list(self.keys.values())[number]
        return key.domain

    def form(self, number: int) -> Form:
        """Return the form that is one aggregate by itself."""
        place, step = (
            linear.Number(row=(), block=self.index, estimate=number),
            self.requests[number].step,
        )
        summed = step is not None
        return Form(factors={place: Fraction(1)}, grid=step, present=summed, straight=summed)

    def margin(self, number: int) -> exp.Expression:
        return exp.column(margin_name(number), table=table_name(self.index), quoted=True)

    def resolve_order(self, node: exp.Expression) -> exp.Expression:
        """Resolve ORDER BY: a name alone is a column of the result, if it is one, and not of the
        rows.
        """
        if isinstance(node, exp.Column) and not node.table:
            shown = [each.output_name.lower() for each in self.node.expressions]
            if shown.count(node.name.lower()) == 1:
                return exp.Literal.number(shown.index(node.name.lower()) + 1)
        return self.rewrite(node)

    def rewrite(self, node: exp.Expression) -> exp.Expression:
        """Return the expression with keys and aggregates replaced by columns of the noisy table."""
        if isinstance(node, exp.Query | exp.Subquery):
            return after.embed(node, after.subquery(node, self.analysis, self.environment))
        if isinstance(node, exp.Window):
            return rebuild(
                node,
                lambda part: (
                    rebuild(part, self.rewrite) if part is node.this else self.rewrite(part)
                ),
            )
        if error_bars.argument(node) is not None:
            return self.half_width(node)
        if aggregates.is_aggregate(node):
            return self.aggregate(node)
        if isinstance(node, exp.Literal | exp.Null | exp.Boolean):
            return rebuild(node, self.rewrite)
        if not aggregates.aggregates_in(node) and node.find(exp.Column):
            found = self.key(node)
            if found is not None:
                return found
        if isinstance(node, exp.Column):
            alias = None if node.table else self.alias(node.name)
            if alias is not None and alias.this != node:
                return exp.Paren(this=self.rewrite(alias.this))
            self.names.column(node)  # an unknown name is the better message
            raise reject(
                node,
                f"{show(node)} is neither aggregated nor in GROUP BY.",
                "Aggregate it, or add it to GROUP BY.",
            )
        return rebuild(whole_division(node, self.kind), self.rewrite)

    def half_width(self, node: exp.Expression) -> exp.Expression:
        """Rewrite MARGIN(x) that stands inside an expression."""
        expression, output = self.item("", node)
        if output.half_width == "late":
            raise error_bars.not_here(node)
        return expression.unalias()

    def kind(self, column: exp.Column) -> Kind | None:
        """Return the type of a column of the rows, or of the SELECT list."""
        known = any(each.name.lower() == column.name.lower() for each in self.names.fields)
        alias = None if known or column.table else self.alias(column.name)
        return self.names.kind(column) if alias is None else kind_of(alias.this, self.kind)

    def alias(self, name: str) -> exp.Alias | None:
        """Return the item of the SELECT list of this name."""
        named = (part for part in self.node.expressions if isinstance(part, exp.Alias))
        return next((part for part in named if part.alias.lower() == name.lower()), None)

    def key(self, node: exp.Expression) -> exp.Expression | None:
        """Return the column of a key, if the expression is one of GROUP BY's, by its text or by its
        meaning.
        """
        same = next((identity for meaning, identity in self.meanings if meaning == node), None)
        if same is None and self.keys and not node.find(exp.Query):
            try:
                same = translate(node, self.names).identity
            except Rejected:  # it may mean something after noise only; its parts are looked at next
                return None
        position = list(self.keys).index(same) if same in self.keys else None
        return (
            None
            if position is None
            else exp.column(key_name(position), table=table_name(self.index))
        )

    def aggregate(self, node: exp.Expression) -> exp.Expression:
        request = aggregates.read(node, self.names)
        if request.signature not in self.signatures:
            self.signatures[request.signature] = len(self.requests)
            self.requests.append(request)
        return exp.column(
            aggregate_name(self.signatures[request.signature]), table=table_name(self.index)
        )
