"""Plan a SELECT over private rows without aggregates: the result is private rows again, fewer or with
other columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from discreet.algebra import Cast, Expression, Fold, Order, Over, Select, Stage, call
from discreet.sql.after import after
from discreet.sql.check.ties import sortings
from discreet.sql.rows import persons, windows
from discreet.sql.rows.numbered import numbers_left
from discreet.sql.rows.owners import conjuncts
from discreet.sql.rows.relation import ANYTHING, Field, Origins, Relation, distinct_values
from discreet.sql.rows.scope import RowScope
from discreet.sql.text.parse import (
    quote_if_needed,
    reject,
    show,
    spell,
)
from discreet.sql.text.postgres import kind_of
from discreet.sql.text.rules.earlier_names import with_meanings
from discreet.sql.values.expressions import translate
from discreet.sql.values.unify import as_flag
from discreet.sql.values.value import Category, Flag, Number, Opaque, Value

Alias = Callable[[], str]  # returns a fresh name for a stage


def show_spread(node: exp.Select) -> str:
    """Return the hint to ask how a number of rows a person is spread, in the question's names."""
    source = node.args.get("from_")
    table = source.this if source is not None else None
    group = node.args.get("group")
    keys = group.expressions if group is not None else []
    own, name = "owner", "t"
    if len(keys) == 1 and isinstance(keys[0], exp.Column) and isinstance(table, exp.Table):
        own, name = quote_if_needed(keys[0].name), quote_if_needed(table.name)
    return (
        "See how they are spread: SELECT QUANTILE_CONT(n, [0.5, 0.9]) FROM"
        f" (SELECT {own}, COUNT(*) AS n FROM {name} GROUP BY {own}) AS s."
    )


_DISTINCT = "DISTINCT across people tells which values exist."
_CLAUSES = {"order": "ORDER BY", "windows": "WINDOW"}


def filter_rows(condition: exp.Expression, scope: RowScope) -> Relation:
    """Apply WHERE. A limit on each person's row numbers also limits a person's rows."""
    relation = scope.relation
    rows = relation.rows
    for part in conjuncts(condition):
        limit = numbers_left(part, scope)
        rows = rows if limit is None else min(rows, limit[1])
    flag = as_flag(translate(condition, scope), condition)
    return replace(relation.filter(flag), rows=rows)


def project(node: exp.Select, scope: RowScope, alias: Alias) -> Relation:
    """Return the rows of a SELECT, with each column computed from its row. DISTINCT and QUALIFY work
    within each person.
    """
    relation = scope.relation
    for clause in ("having", "order", "limit", "offset"):
        if node.args.get(clause) and node.args.get("distinct"):
            raise reject(node, _DISTINCT, _count_them(node))
        if node.args.get(clause):
            raise reject(
                node.args[clause],
                f"{word(clause)} on private rows would depend on other people's rows.",
                f"Aggregate first; ORDER BY and LIMIT then apply to the noisy result: {example(node, relation)}.",
            )
    node = with_meanings(node, {each.name.lower() for each in relation.fields})
    scope = replace(scope, windows=True)
    result = _compute_columns(node, scope, alias)
    # Privacy: S4. If windows have several orders, the storage could decide which of two equal rows
    # is first in one order and second in another. So end all orders with one row number.
    if result.source is not relation.source and _orders(result) > 1:
        return _compute_columns(node, _number_rows(scope, alias), alias)
    return result


def _compute_columns(node: exp.Select, scope: RowScope, alias: Alias) -> Relation:
    fields = [field for item in node.expressions for field in _fields(item, scope)]
    result = replace(scope.relation, fields=tuple(fields), plain=False)
    if node.args.get("distinct"):
        return _distinct(node, result, alias)
    if node.args.get("qualify"):
        return _qualify(node, result, scope, alias)
    if any(item.find(exp.Window) for item in node.expressions):
        return result.nest(alias())
    return result


def _orders(relation: Relation) -> int:
    """Return the number of different orders in which windows take rows by their place."""
    query = relation.source.query if isinstance(relation.source, Stage) else None
    if not isinstance(query, Select):
        return 0
    return len(sortings(value for _, value in query.columns))


def _number_rows(scope: RowScope, alias: Alias) -> RowScope:
    """Return a scope with one more column: the row's number among its person's rows, in an order by
    all columns.
    """
    relation = scope.relation
    order = tuple(dict.fromkeys(Order(each.value.expression) for each in relation.fields))
    place = Over(windows.ROW_NUMBER, relation.owner, (), order)
    number = Number(step=Fraction(1), lo=1, hi=max(relation.rows, 1))
    value = Value(expression=place, domain=number)
    # merged: * does not include it
    column = Field(table="#", name="place", value=value, origins=ANYTHING, merged=True)
    nested = replace(relation, fields=(*relation.fields, column)).nest(alias())
    return replace(scope, fields=nested.fields, relation=nested)


def _fields(item: exp.Expression, scope: RowScope) -> list[Field]:
    """Return the columns of one item of a SELECT list: several for *."""
    if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
        return _expand(item, item.table.lower(), scope)
    if isinstance(item, exp.Star):
        return _expand(item, "", scope)
    value = replace(translate(item.unalias(), scope), kind=kind_of(item, scope.kind))
    name = item.output_name or spell(item)
    return [Field(table="", name=name, value=value, origins=scope.origins(item))]


def _expand(item: exp.Expression, table: str, scope: RowScope) -> list[Field]:
    """Return the columns of * or table.*, without those after EXCLUDE."""
    excluded = after.names_left_out(item)
    columns = scope.relation.expand_star(table)
    return [each for each in columns if each.name.lower() not in excluded]


def _distinct(node: exp.Select, relation: Relation, alias: Alias) -> Relation:
    """Apply SELECT DISTINCT within each person: the owner must be one of the columns."""
    if node.args["distinct"].args.get("on") or node.args.get("qualify"):
        raise reject(
            node.args["distinct"], "DISTINCT ON is not answered.", "Use ROW_NUMBER() per person."
        )
    domains = [each.value.domain for each in relation.fields]
    owners = [domain for domain in domains if isinstance(domain, Opaque) and domain.owner]
    if not owners:
        raise reject(node, _DISTINCT, _count_them(node))
    nested = relation.nest(alias(), distinct=True)
    every_origin = Origins().union(*(field.origins for field in relation.fields))
    return replace(nested, rows=distinct_values(every_origin, relation.rows))


def _qualify(node: exp.Select, result: Relation, scope: RowScope, alias: Alias) -> Relation:
    """Apply QUALIFY: compute its windows as columns of a stage, then filter the rows of the stage.

    The stage has the columns of the SELECT, those that it reads, and one for each window.
    """
    relation = scope.relation
    columns = {field.name.lower() for field in relation.fields}
    meanings: dict[str, exp.Expression] = {}
    for item in node.expressions:
        if isinstance(item, exp.Alias) and item.alias.lower() not in columns:
            meanings[item.alias.lower()] = item.this

    def replace_alias(part: exp.Expression) -> exp.Expression:
        if not isinstance(part, exp.Column) or part.table:
            return part
        meaning = meanings.get(part.name.lower())
        return part if meaning is None else meaning.copy()

    condition = node.args["qualify"].this.transform(replace_alias)
    names: dict[exp.Expression, str] = {}
    extra = []
    for index, each in enumerate(condition.find_all(exp.Window)):
        names[each] = f"#{index}"
        value = translate(each, scope)
        extra.append(Field(table="#", name=f"#{index}", value=value, origins=ANYTHING))
    nested = replace(result, fields=(*result.fields, *relation.fields, *extra)).nest(alias())
    count = len(result.fields)
    own = nested.fields[:count]
    rest = nested.fields[count:]
    condition = condition.transform(
        lambda part: exp.column(names[part], table="#") if part in names else part
    )
    inside = replace(scope, fields=rest, relation=replace(nested, fields=rest), windows=False)
    return replace(filter_rows(condition, inside), fields=own)


def group_by_owner(
    node: exp.Select, relation: Relation, keys: list[Value], alias: Alias
) -> Relation:
    """Aggregate within each person: GROUP BY the owner, alone or with other keys."""
    if any(node.args.get(clause) for clause in ("qualify", "order", "limit", "offset", "distinct")):
        raise reject(
            node.args["group"],
            "GROUP BY the owner gives a row for each person, and people cannot be put in order or picked out.",
            show_spread(node),
        )
    return persons.group_rows_by_owner(node, relation, keys, alias(), alias())


def limit_groups(
    relation: Relation, keys: list[Expression], unknown: list[Expression], alias: Alias
) -> tuple[Relation, list[Expression]]:
    """Keep the rows of each person's first `max_groups` unknown keys; return them with the columns
    that hold the keys. The order of keys depends on their content alone (S4, S5).
    """
    assert relation.max_groups is not None
    order = (*(call("md5", Cast(key, "VARCHAR")) for key in unknown), *unknown)
    place = Over(Fold("dense_rank", ()), relation.owner, (), tuple(map(Order, order)))
    count = len(relation.fields)
    # Privacy: S5. What is grouped by is what was ranked: columns of one stage, computed once.
    columns = [_unnamed(each, hi=relation.rows) for each in (*keys, place)]
    nested = replace(relation, fields=(*relation.fields, *columns)).nest(alias())
    *held, rank = (each.value.expression for each in nested.fields[count:])
    # Constants stay constants: they divide no group.
    pairs = zip(relation.fields, nested.fields[:count], strict=True)
    fields = tuple(before if before.value.constant else now for before, now in pairs)
    fewer = replace(
        nested,
        fields=fields,
        conditions=(rank <= relation.max_groups,),
        max_groups=None,
        touched=relation.max_groups,
    )
    return fewer, held


def _unnamed(computed: Expression, *, hi: int) -> Field:
    """Return a column for a stage that no name in a question finds."""
    value = Value(expression=computed, domain=Number(step=Fraction(1), lo=1, hi=hi))
    return Field(table="#", name="#", value=value, origins=ANYTHING)


def word(clause: str) -> str:
    """Return the words of a clause in SQL."""
    return _CLAUSES.get(clause, clause.replace("_", " ").upper())


def example(tree: exp.Expression, relation: Relation) -> str:
    """Return a question that can be answered instead."""
    table = tree.find(exp.Table)
    name = quote_if_needed(table.name) if table is not None else "t"
    in_question: set[str] = set()
    for item in tree.expressions:
        in_question |= {column.name.lower() for column in item.find_all(exp.Column)}
    public = [
        each.name for each in relation.fields if isinstance(each.value.domain, Category | Flag)
    ]
    public.sort(key=lambda each: each.lower() not in in_question)
    if not public:
        return f"SELECT COUNT(*) FROM {name}"
    key = quote_if_needed(public[0])
    return f"SELECT {key}, COUNT(*) FROM {name} GROUP BY {key}"


def _count_them(node: exp.Select) -> str:
    """Return what to write instead of SELECT DISTINCT x FROM t: counts of people."""
    key = show(node.expressions[0].unalias())
    table = node.args["from_"].this
    count = f"SELECT {key}, COUNT(*) FROM {quote_if_needed(table.name or 't')} GROUP BY {key}"
    return f"Count them, COUNT(DISTINCT x), or who has each: {count}."
