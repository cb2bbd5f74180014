"""Plan a SELECT over private rows that aggregates nothing: it gives private rows again, fewer or
with other columns.
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
from discreet.sql.rows.owners import conjuncts
from discreet.sql.rows.relation import ANYTHING, Field, Names, Relation
from discreet.sql.rows.scope import RowScope
from discreet.sql.text.parse import (
    quote_if_needed,
    reject,
    show,
    spell,
    whole,
)
from discreet.sql.text.postgres import kind_of
from discreet.sql.text.rules.earlier_names import with_meanings
from discreet.sql.values.expressions import translate
from discreet.sql.values.unify import as_flag
from discreet.sql.values.value import Category, Flag, Number, Opaque, Value

Alias = Callable[[], str]  # gives a fresh name for a stage

SPREAD = (
    "See how they are spread: SELECT QUANTILE_CONT(n, [0.5, 0.9]) FROM"
    " (SELECT owner, COUNT(*) AS n FROM t GROUP BY owner) AS s."
)
_DISTINCT = "DISTINCT across people tells which values exist."
_CLAUSES = {"order": "ORDER BY", "windows": "WINDOW"}


def filter_rows(condition: exp.Expression, scope: RowScope) -> Relation:
    """Apply WHERE; a bound on each person's row number bounds how many rows a person has."""
    relation = scope.relation
    rows = relation.rows
    for part in conjuncts(condition):
        rows = min(rows, _rows_numbered(part, scope, rows))
    return replace(relation.filter(as_flag(translate(condition, scope), condition)), rows=rows)


def _rows_numbered(part: exp.Expression, scope: Names, rows: int) -> int:
    """Return how many rows a person has where `row number = 1`, `<= k` or `< k`; otherwise as many
    as before.
    """
    if type(part) not in (exp.EQ, exp.LTE, exp.LT) or not isinstance(part.this, exp.Column):
        return rows
    limit = whole(part.expression)
    if not scope.column(part.this).numbering or limit is None:
        return rows
    return 1 if isinstance(part, exp.EQ) else max(limit - isinstance(part, exp.LT), 1)


def project(node: exp.Select, scope: RowScope, alias: Alias) -> Relation:
    """Compute the columns of a SELECT row by row; DISTINCT and QUALIFY work within each person."""
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
    result = _projected(node, scope, alias)
    # Privacy: S4. Of two equal rows, which is first by one order and second by another is decided
    # by where they lie, unless a number that both orders end with tells them apart.
    if result.source is not relation.source and _orders(result) > 1:
        return _projected(node, _numbered(scope, alias), alias)
    return result


def _projected(node: exp.Select, scope: RowScope, alias: Alias) -> Relation:
    fields = [field for item in node.expressions for field in _fields(item, scope)]
    result = replace(scope.relation, fields=tuple(fields), plain=False)
    if node.args.get("distinct"):
        return _distinct(node, result, alias)
    if node.args.get("qualify"):
        return _qualify(node, result, scope, alias)
    return (
        result.nest(alias()) if any(item.find(exp.Window) for item in node.expressions) else result
    )


def _orders(relation: Relation) -> int:
    """Return in how many orders windows take the rows of a relation by their place."""
    query = relation.source.query if isinstance(relation.source, Stage) else None
    return len(sortings(value for _, value in query.columns)) if isinstance(query, Select) else 0


def _numbered(scope: RowScope, alias: Alias) -> RowScope:
    """Return a scope in which each row has a number among its person's, by all that it has."""
    relation = scope.relation
    order = tuple(dict.fromkeys(Order(each.value.expression) for each in relation.fields))
    place = Over(windows.ROW_NUMBER, relation.owner, (), order)
    number = Number(step=Fraction(1), lo=1, hi=max(relation.rows, 1))
    value = Value(expression=place, domain=number)
    # merged: * does not stand for it
    column = Field(table="#", name="place", value=value, origins=ANYTHING, merged=True)
    nested = replace(relation, fields=(*relation.fields, column)).nest(alias())
    return replace(scope, fields=nested.fields, relation=nested)


def _fields(item: exp.Expression, scope: RowScope) -> list[Field]:
    """Return the columns that one item of a SELECT list stands for."""
    if isinstance(item, exp.Star) or (
        isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
    ):
        dropped = after.names_left_out(item)
        chosen = item.table.lower() if isinstance(item, exp.Column) else ""
        return [
            each for each in scope.relation.expand_star(chosen) if each.name.lower() not in dropped
        ]
    value = replace(translate(item.unalias(), scope), kind=kind_of(item, scope.kind))
    return [
        Field(
            table="", name=item.output_name or spell(item), value=value, origins=scope.origins(item)
        )
    ]


def _distinct(node: exp.Select, relation: Relation, alias: Alias) -> Relation:
    """Apply SELECT DISTINCT within each person: the owner must be among the columns."""
    if node.args["distinct"].args.get("on") or node.args.get("qualify"):
        raise reject(
            node.args["distinct"], "DISTINCT ON is not answered.", "Use ROW_NUMBER() per person."
        )
    owners = [
        each
        for each in relation.fields
        if isinstance(each.value.domain, Opaque) and each.value.domain.owner
    ]
    if not owners:
        raise reject(node, _DISTINCT, _count_them(node))
    nested = relation.nest(alias(), distinct=True)
    return replace(nested, rows=1 if len(owners) == len(relation.fields) else relation.rows)


def _qualify(node: exp.Select, result: Relation, scope: RowScope, alias: Alias) -> Relation:
    """Apply QUALIFY: compute the windows in a stage of their own, then filter by what the rows had
    before it.
    """
    relation = scope.relation
    taken = {field.name.lower() for field in relation.fields}
    aliases = {
        part.alias.lower(): part.this for part in node.expressions if isinstance(part, exp.Alias)
    }
    meanings = {name: part for name, part in aliases.items() if name not in taken}

    def meaning(part: exp.Expression) -> exp.Expression:
        found = isinstance(part, exp.Column) and not part.table and meanings.get(part.name.lower())
        return found.copy() if found else part

    condition = node.args["qualify"].this.transform(meaning)
    marks = list(condition.find_all(exp.Window))
    extra = tuple(
        Field(table="#", name=f"#{index}", value=translate(mark, scope), origins=ANYTHING)
        for index, mark in enumerate(marks)
    )
    nested = replace(result, fields=(*result.fields, *relation.fields, *extra)).nest(alias())
    shown, rest = nested.fields[: len(result.fields)], nested.fields[len(result.fields) :]
    mapping = {mark: f"#{index}" for index, mark in enumerate(marks)}
    condition = condition.transform(
        lambda part: exp.column(mapping[part], table="#") if part in mapping else part
    )
    inside = replace(scope, fields=rest, relation=replace(nested, fields=rest), windows=False)
    return replace(filter_rows(condition, inside), fields=shown)


def group_by_owner(
    node: exp.Select, relation: Relation, keys: list[Value], alias: Alias
) -> Relation:
    """Aggregate within each person: GROUP BY the owner, alone or with other keys."""
    if any(node.args.get(clause) for clause in ("qualify", "order", "limit", "offset", "distinct")):
        raise reject(
            node.args["group"],
            "GROUP BY the owner gives a row for each person, and people cannot be put in order or picked out.",
            SPREAD,
        )
    return persons.group_rows_by_owner(node, relation, keys, alias(), alias())


def limit_groups(relation: Relation, keys: list[Expression], alias: Alias) -> Relation:
    """Keep only the rows of each person's first `max_groups` keys, in an order of the keys' content
    alone (S4, S5).
    """
    assert relation.max_groups is not None
    order = (*(call("md5", Cast(key, "VARCHAR")) for key in keys), *keys)
    place = Over(Fold("dense_rank", ()), relation.owner, (), tuple(map(Order, order)))
    rank = Value(expression=place, domain=Number(step=Fraction(1), lo=1, hi=relation.rows))
    column = Field(table="#", name="rank", value=rank, origins=ANYTHING)
    nested = replace(relation, fields=(*relation.fields, column)).nest(alias())
    *rest, last = nested.fields
    inside = last.value.expression <= relation.max_groups
    # What is constant stays so: the keys, read again from here, must be those that were ranked.
    pairs = zip(relation.fields, rest, strict=True)
    fields = tuple(before if before.value.constant else now for before, now in pairs)
    return replace(
        nested, fields=fields, conditions=(inside,), max_groups=None, touched=relation.max_groups
    )


def word(clause: str) -> str:
    """Return a clause as SQL writes it."""
    return _CLAUSES.get(clause, clause.replace("_", " ").upper())


def example(tree: exp.Expression, relation: Relation) -> str:
    """Return a question that can be answered instead."""
    table = tree.find(exp.Table)
    name = quote_if_needed(table.name) if table is not None else "t"
    asked = {
        column.name.lower() for item in tree.expressions for column in item.find_all(exp.Column)
    }
    public = [
        each.name for each in relation.fields if isinstance(each.value.domain, Category | Flag)
    ]
    public.sort(key=lambda each: each.lower() not in asked)
    if not public:
        return f"SELECT COUNT(*) FROM {name}"
    key = quote_if_needed(public[0])
    return f"SELECT {key}, COUNT(*) FROM {name} GROUP BY {key}"


def _count_them(node: exp.Select) -> str:
    """Return what to write instead of SELECT DISTINCT x FROM t: counts of people."""
    key, table = show(node.expressions[0].unalias()), node.args["from_"].this
    count = f"SELECT {key}, COUNT(*) FROM {quote_if_needed(table.name or 't')} GROUP BY {key}"
    return f"Count them, COUNT(DISTINCT x), or who has each: {count}."
