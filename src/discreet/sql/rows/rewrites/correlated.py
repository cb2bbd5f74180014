"""Rewrite a subquery that aggregates the rows of a row's own person as a join on the owner.

    (SELECT COUNT(*) FROM visits v WHERE v.owner = p.owner AND v.cost > 9)

is COALESCE(s.n, 0) of LEFT JOIN (SELECT owner, COUNT(*) AS n FROM visits v WHERE v.cost > 9
GROUP BY owner) AS s ON s.owner = p.owner: the join finds at most one row, and none where the
subquery reads none. A person has no more rows than without it (S4). ORMs write such subqueries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from discreet.policy.policy import Policy
from discreet.sql.aggregates import aggregates_in, is_aggregate
from discreet.sql.rows.owners import conjuncts
from discreet.sql.text.parse import spell

Owners = Mapping[str, str]  # the owner's column of each private table, in small letters
_CLAUSES = ("where", "group", "having", "order")
_PARTS = {"expressions", "from_", "joins", "where", "group"}


def owners_of(policy: Policy, named: Mapping[str, object]) -> Owners:
    """Return the column of the owner of each private table that WITH does not name anew."""
    return {
        name.lower(): table.owner.lower()
        for name, table in policy.tables.items()
        if not table.public and isinstance(table.owner, str) and name.lower() not in named
    }


def without_correlated(node: exp.Select, owners: Owners) -> exp.Select:
    """Return the SELECT with joins in the place of such subqueries."""
    found = [each for each in _subqueries(node) if _own_rows(each, node, owners)]
    if not found or any(isinstance(item, exp.Star) for item in node.expressions):
        return node  # * would have the columns of the joins, too
    copy = node.copy()
    joined: dict[exp.Expression, exp.Expression] = {}
    for query in _subqueries(copy):
        keys = _own_rows(query, copy, owners)
        if keys is None:
            continue
        if query not in joined:
            name = f"own rows {len(joined) + 1}"
            written = query.copy()
            made, value = _aggregated(query.this, keys[0], name)
            alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
            on = exp.EQ(
                this=exp.column(f"{name} key", table=name, quoted=True), expression=keys[1].copy()
            )
            copy.append(
                "joins", exp.Join(this=exp.Subquery(this=made, alias=alias), side="LEFT", on=on)
            )
            joined[written] = value
        query.replace(joined[query].copy())
    return copy


def _subqueries(node: exp.Select) -> list[exp.Subquery]:
    """Return the subqueries in expressions of a SELECT, without those in other subqueries."""
    pending = [*node.expressions, *(node.args[name] for name in _CLAUSES if node.args.get(name))]
    found = []
    while pending:
        part = pending.pop(0)
        if isinstance(part, exp.Subquery):
            found.append(part)
        elif not isinstance(part, exp.Query):
            pending.extend(part.iter_expressions())
    return found


def _own_rows(
    query: exp.Subquery, node: exp.Select, owners: Owners
) -> tuple[exp.Column, exp.Column] | None:
    """Return the owner's columns, within and outside, by which a subquery of one aggregate reads
    the rows of the row's own person; None for others.
    """
    select = query.this
    if query.alias or not _is_one_aggregate(select):
        return None
    outside, within = _tables(node), _tables(select)
    where = select.args.get("where")
    pairs = [_owners_equal(part, within, outside, owners) for part in _conditions(where)]
    keys = next((pair for pair in pairs if pair is not None), None)
    group = select.args.get("group")
    if keys is None or (group is not None and group.expressions != [keys[0]]):
        return None
    columns = [each for each in select.find_all(exp.Column) if each is not keys[1]]
    alone = all(not each.table or each.table.lower() in within for each in columns)
    return keys if alone and not select.find(exp.Subquery) else None


def _is_one_aggregate(select: exp.Expression) -> bool:
    """Return True for a plain SELECT of one column that aggregates."""
    if not isinstance(select, exp.Select) or len(select.expressions) != 1:
        return False
    plain = not {name for name, part in select.args.items() if part} - _PARTS
    return plain and bool(select.args.get("from_")) and aggregates_in(select.expressions[0])


def _conditions(where: exp.Expression | None) -> list[exp.Expression]:
    return conjuncts(where.this) if where is not None else []


def _tables(select: exp.Select) -> dict[str, str]:
    """Return the tables that a SELECT reads: what they are called, with their names."""
    clause = select.args.get("from_")
    parts = [clause.this] if clause is not None else []
    parts += [join.this for join in select.args.get("joins") or []]
    return {
        part.alias_or_name.lower(): part.name.lower() if isinstance(part, exp.Table) else ""
        for part in parts
    }


def _owners_equal(
    part: exp.Expression, within: dict[str, str], outside: dict[str, str], owners: Owners
) -> tuple[exp.Column, exp.Column] | None:
    """Return both columns of inner.owner = outer.owner, the inner one first."""
    bare = part.unnest()
    if not isinstance(bare, exp.EQ):
        return None
    left, right = bare.this.unnest(), bare.expression.unnest()
    for inner, outer in ((left, right), (right, left)):
        if not isinstance(inner, exp.Column) or not isinstance(outer, exp.Column):
            return None
        place = inner.table.lower() or (next(iter(within)) if len(within) == 1 else "")
        if place not in within or outer.table.lower() in within:
            continue
        names = (within[place], outside.get(outer.table.lower(), ""))
        if all(
            owners.get(name) == each.name.lower()
            for name, each in zip(names, (inner, outer), strict=True)
        ):
            return inner, outer
    return None


def _aggregated(
    select: exp.Select, key: exp.Column, name: str
) -> tuple[exp.Select, exp.Expression]:
    """Return the subquery grouped by the owner, and its value in a row that is joined with it."""
    made = select.copy()
    numbers = list(dict.fromkeys(_aggregates(made.expressions[0].unalias())))
    grouped = bool(select.args.get("group"))

    def column(part: exp.Expression) -> exp.Expression:
        if not is_aggregate(part):
            return part
        number = exp.column(spell(part), table=name, quoted=True)
        inner = part.this if isinstance(part, exp.Filter) else part
        if grouped or not isinstance(inner, exp.Count):
            return number
        return exp.Coalesce(this=number, expressions=[exp.Literal.number(0)])

    value = exp.Paren(this=made.expressions[0].unalias().copy()).transform(column)
    items = [exp.alias_(part, spell(part), quoted=True) for part in numbers]
    rest = [
        part
        for part in _conditions(select.args.get("where"))
        if not any(each is key for each in part.find_all(exp.Column))
    ]
    made.set("expressions", [exp.alias_(key.copy(), f"{name} key", quoted=True), *items])
    made.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
    made.set("group", exp.Group(expressions=[key.copy()]))
    return made, value


def _aggregates(part: exp.Expression) -> Iterator[exp.Expression]:
    if is_aggregate(part):
        yield part.copy()
        return
    for each in part.iter_expressions():
        yield from _aggregates(each)
