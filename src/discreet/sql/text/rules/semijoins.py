"""Rewrite tests for rows of another table as EXISTS and NOT EXISTS: a SEMI JOIN b ON ..., a ANTI
JOIN b ON ..., and (SELECT COUNT(*) FROM b WHERE ...) = 0.

A row of a is kept once, if some row of b meets it, or if none does; nothing else of b is seen. That
is what EXISTS (SELECT 1 FROM b WHERE ...) says, and how the analysis bounds it (S4).
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from discreet.sql.text.parse import reject, show, whole


def rewrite_semijoin(node: exp.Expression) -> exp.Expression:
    """Return a SELECT without such joins, and their conditions in WHERE; other nodes as they
    are.
    """
    joins = (node.args.get("joins") or []) if isinstance(node, exp.Select) else []
    tests = [join for join in joins if _kind(join) in ("SEMI", "ANTI")]
    if not tests:
        return node
    node.set("joins", [join for join in joins if not any(join is test for test in tests)])
    for join in tests:
        met = _matching_rows(node, join)
        # NOT IN would be empty with a NULL in the list
        none = _kind(join) == "ANTI"
        found = exp.Not(this=exp.Exists(this=met)) if none else _has_partner(met)
        where = node.args.get("where")
        held = [exp.Paren(this=where.this)] if where is not None else []
        node.set("where", exp.Where(this=exp.and_(*held, found, copy=False)))
    return node


def _has_partner(met: exp.Select) -> exp.Expression:
    """EXISTS, or where one column is compared alone x IN (SELECT y FROM b), which results know,
    too.
    """
    source, condition = met.args["from_"].this, met.args["where"].this.unnest()
    name = source.alias_or_name.lower()
    sides = [condition.this, condition.expression] if type(condition) is exp.EQ else []
    if all(isinstance(side, exp.Column) and side.table for side in sides):
        inner = [side for side in sides if side.table.lower() == name]
        outer = [side for side in sides if side.table.lower() != name]
        if len(inner) == len(outer) == 1:
            listed = exp.select(inner[0].copy()).from_(source.copy())
            return exp.In(this=outer[0].copy(), query=exp.Subquery(this=listed))
    return exp.Exists(this=met)


def rewrite_count_test(node: exp.Expression) -> exp.Expression:
    """(SELECT COUNT(*) FROM b WHERE b.owner = a.owner) = 0 is NOT EXISTS, and > 0 is EXISTS; >= 3 is
    a.owner IN (SELECT owner FROM b GROUP BY owner HAVING COUNT(*) >= 3).
    """
    compared = _COMPARED.get(type(node))
    query, number = (node.this.unnest(), whole(node.expression)) if compared else (node, None)
    select = query.this if isinstance(query, exp.Subquery) else query
    if number is None or not isinstance(select, exp.Select) or not _counts(select):
        return node
    some = {(exp.GT, 0), (exp.NEQ, 0), (exp.GTE, 1)}
    none = {(exp.EQ, 0), (exp.LT, 1)}
    if (type(node), number) not in some | none:
        return _in_groups(node, select, number) or node
    inner = select.copy()
    inner.set("expressions", [exp.Literal.number(1)])
    found = exp.Exists(this=inner)
    return found if (type(node), number) in some else exp.Not(this=found)


# Comparisons of a count with a number: whether one passes to which no row at all is counted.
_COMPARED: dict[type[exp.Expression], Callable[[int], bool]] = {
    exp.EQ: lambda number: number == 0,
    exp.NEQ: lambda number: number != 0,
    exp.GT: lambda number: number < 0,
    exp.GTE: lambda number: number <= 0,
    exp.LT: lambda number: number > 0,
    exp.LTE: lambda number: number >= 0,
}
_OPPOSITE: dict[type[exp.Expression], type[exp.Expression]] = {
    exp.NEQ: exp.EQ,
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
}


def _in_groups(node: exp.Expression, select: exp.Select, number: int) -> exp.Expression | None:
    """Return the comparison as IN, or NOT IN, of the groups of other rows; None where rows meet by
    more than one equality.
    """
    source = select.args["from_"].this
    met = _meeting(select.args["where"].this, source.alias_or_name.lower())
    if met is None:
        return None
    pairs, rest = met
    nobody = _COMPARED[type(node)](number)
    kind = _OPPOSITE.get(type(node)) if nobody else type(node)
    if len(pairs) != 1 or kind is None:
        return None
    outer, own_key = pairs[0]
    counted = exp.Count(this=exp.Star(), big_int=True)
    groups = exp.select(own_key.copy()).from_(source.copy())
    groups.set("group", exp.Group(expressions=[own_key.copy()]))
    held = kind(this=counted, expression=exp.Literal.number(number))
    groups.set("having", exp.Having(this=held))
    if rest:
        groups.set("where", exp.Where(this=exp.and_(*rest)))
    if not nobody:
        return exp.In(this=outer.copy(), query=exp.Subquery(this=groups))
    # of a NULL there is no other row: NOT IN would be NULL
    listed_as = exp.TableAlias(this=exp.to_identifier("counted"))
    same = exp.EQ(this=exp.column(own_key.this.copy(), table="counted"), expression=outer.copy())
    met = exp.select("1").from_(exp.Subquery(this=groups, alias=listed_as)).where(same)
    return exp.Not(this=exp.Exists(this=met))


def _meeting(
    where: exp.Expression, inside: str
) -> tuple[list[tuple[exp.Column, exp.Column]], list[exp.Expression]] | None:
    """Return the equalities of an outer column with one of the table `inside`, and the conditions
    on that table alone; None where a condition is neither.
    """
    listed = where.flatten() if isinstance(where, exp.And) else [where]
    pairs, rest = list[tuple[exp.Column, exp.Column]](), list[exp.Expression]()
    for part in (each.unnest() for each in listed):
        columns = list(part.find_all(exp.Column))
        if part.find(exp.Query) or not all(each.table for each in columns):
            return None
        own = [each for each in columns if each.table.lower() == inside]
        if len(own) == len(columns):
            rest.append(part)
            continue
        sides = [part.this, part.expression] if type(part) is exp.EQ else []
        if (
            len(own) != 1
            or len(columns) != 2
            or not all(isinstance(side, exp.Column) for side in sides or [None])
        ):
            return None
        pairs.append((sides[1] if sides[0] is own[0] else sides[0], own[0]))
    return pairs, rest


def _counts(select: exp.Select) -> bool:
    """Return True for SELECT COUNT(*) FROM one table WHERE ... that looks outside of it."""
    used = {name for name, part in select.args.items() if part}
    if used != {"expressions", "from_", "where"} or len(select.expressions) != 1:
        return False
    item, source = select.expressions[0].unalias(), select.args["from_"].this
    plain = isinstance(item, exp.Count) and isinstance(item.this, exp.Star)
    inside = source.alias_or_name.lower()
    return plain and any(
        column.table and column.table.lower() != inside
        for column in select.args["where"].find_all(exp.Column)
    )


def _kind(join: exp.Join) -> str:
    return str(join.args.get("kind") or "").upper()


def _matching_rows(node: exp.Expression, join: exp.Join) -> exp.Select:
    """SELECT 1 FROM b WHERE ...: the rows of b that a row meets."""
    source, using = join.this, join.args.get("using") or []
    plain = isinstance(source, exp.Table | exp.Subquery) and not join.args.get("method")
    if not plain or (not join.args.get("on") and not using):
        raise reject(
            join,
            f"{show(join).strip()} has no condition that is understood.",
            "Write a SEMI JOIN b ON a.owner = b.owner, or WHERE EXISTS (SELECT ...).",
        )
    name, first = source.alias_or_name, node.args["from_"].this.alias_or_name
    if not name:
        name = "met"
        source.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
    pairs = [
        exp.EQ(
            this=exp.column(each.copy(), table=exp.to_identifier(first)),
            expression=exp.column(each.copy(), table=exp.to_identifier(name)),
        )
        for each in using
    ]
    held = [join.args["on"]] if join.args.get("on") else pairs
    return exp.select("1").from_(source).where(exp.and_(*held, copy=False), copy=False)
