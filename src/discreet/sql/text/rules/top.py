"""The top groups, joined back: FROM visits JOIN (SELECT clinic, COUNT(*) ... LIMIT 2) AS t ON
clinic = t.clinic.

Charts of the largest groups over time are asked so. The inner query is noisy, and a noisy result
meets no private rows. But where the outer query groups by what they meet on, the join only says
which groups are shown: HAVING clinic IN (...), which runs after noise.
"""

from __future__ import annotations

from sqlglot import exp

from discreet.sql.aggregates import aggregates_in
from discreet.sql.text.parse import whole


def rewrite_top_groups(node: exp.Select) -> exp.Select:
    """Return the SELECT with such joins as conditions in HAVING; others as they are."""
    for join in node.args.get("joins") or []:
        pairs = _pairs(join)
        if pairs:
            changed = _change(node, join, pairs)
            if changed is not None:
                return rewrite_top_groups(changed)
    return node


def _pairs(join: exp.Join) -> list[tuple[exp.Column, str]]:
    """Return what the outer query joins on, with the inner query's column; empty if it is no such
    join.
    """
    inner = not join.args.get("side") and str(join.args.get("kind") or "").upper() in ("", "INNER")
    if not inner or not join.args.get("on") or not _keeps_some_groups(join.this):
        return []
    query = join.this.this
    plain = [item for item in query.expressions if not aggregates_in(item)]
    names, alias = [item.output_name.lower() for item in plain], join.this.alias.lower()
    on = join.args["on"].unnest()
    parts = on.flatten() if isinstance(on, exp.And) else [on]
    found = [_pair(part.unnest(), alias, names) for part in parts]
    pairs = [pair for pair in found if pair is not None]
    # One row of each: the keys of the inner query are all that it is joined on, and nothing else is
    # asked of them.
    return (
        pairs
        if len(found) == len(pairs) == len(names) == len(query.args["group"].expressions)
        else []
    )


def _keeps_some_groups(source: exp.Expression) -> bool:
    """Return True for a subquery with GROUP BY, of whose groups LIMIT or HAVING keeps some."""
    query = source.this if isinstance(source, exp.Subquery) else None
    if not isinstance(query, exp.Select) or not query.args.get("group"):
        return False
    return any(query.args.get(clause) for clause in ("limit", "having"))


def _pair(part: exp.Expression, alias: str, names: list[str]) -> tuple[exp.Column, str] | None:
    """Return the two sides of clinic = t.clinic: the outer query's column, and the name of the
    inner one's.
    """
    sides = (part.this, part.expression) if isinstance(part, exp.EQ) else ()
    own = [side for side in sides if isinstance(side, exp.Column) and _is_of(side, alias, names)]
    rest = [side for side in sides if isinstance(side, exp.Column) and side not in own]
    return (rest[0], own[0].name) if len(own) == len(rest) == 1 else None


def _is_of(column: exp.Column, alias: str, names: list[str]) -> bool:
    if column.table:
        return str(column.table).lower() == alias
    return str(column.name).lower() in names


def _change(
    node: exp.Select, join: exp.Join, pairs: list[tuple[exp.Column, str]]
) -> exp.Select | None:
    """Return the SELECT without the join, if it groups by what is joined on and names nothing else
    of the inner query.
    """
    alias = join.this.alias.lower()
    meant = {name.lower(): column for column, name in pairs}

    def outer(part: exp.Expression) -> exp.Expression:
        if (
            isinstance(part, exp.Column)
            and part.table.lower() == alias
            and part.name.lower() in meant
        ):
            return meant[part.name.lower()].copy()
        return part

    made = node.copy()
    made.set("joins", [each for each in made.args["joins"] if each != join])
    items = [(item.alias_or_name, item.unalias().transform(outer)) for item in made.expressions]
    made.set(
        "expressions",
        [exp.alias_(item, name, quoted=True) if name else item for name, item in items],
    )
    for clause in ("where", "group", "having", "order", "qualify"):
        if made.args.get(clause):
            made.set(clause, made.args[clause].transform(outer))
    if any(
        column.table.lower() == alias for column in made.find_all(exp.Column)
    ) or not made.args.get("group"):
        return None
    groups = [_meaning(key, made) for key in made.args["group"].expressions]
    if any(column not in groups for column, _ in pairs):
        return None
    for column, name in pairs:
        source = exp.Subquery(
            this=join.this.this.copy(), alias=exp.TableAlias(this=exp.to_identifier("top"))
        )
        listed = exp.select(exp.column(name, table="top", quoted=True)).from_(source)
        made.having(exp.In(this=column.copy(), query=exp.Subquery(this=listed)), copy=False)
    return made


def _meaning(key: exp.Expression, node: exp.Select) -> exp.Expression:
    place = whole(key)
    if place and place <= len(node.expressions):
        return node.expressions[place - 1].unalias()
    for item in node.expressions:
        if (
            isinstance(key, exp.Column)
            and not key.table
            and isinstance(item, exp.Alias)
            and item.alias == key.name
        ):
            return item.this
    return key
