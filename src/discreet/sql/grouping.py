"""GROUPING SETS, ROLLUP and CUBE, written out as a UNION ALL of plain groupings.

Whether every set is measured by itself, or coarser ones are added up from a finer one's noisy numbers, is decided when
the whole statement is known: see `rolling`.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection

from sqlglot import exp

from discreet.sql.parse import reject, show, spelt, whole

MAX_SETS = 64
_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)
Keys = tuple[exp.Expression, ...]


def has_sets(node: exp.Select) -> bool:
    group = node.args.get("group")
    return group is not None and any(isinstance(item, _SETS) for item in group.expressions)


def expanded(node: exp.Select, columns: Collection[str]) -> exp.Query:
    """The statement as one SELECT per grouping set; ORDER BY and LIMIT apply to all of them together.

    `columns` are those of the tables that it reads: they win over aliases of the SELECT list.
    """
    group = node.args["group"]
    if node.args.get("qualify") or node.args.get("distinct") or any(item.find(exp.Window) for item in node.expressions):
        raise reject(
            group,
            "windows, QUALIFY and DISTINCT would see each grouping set by itself.",
            "Use them in an outer SELECT.",
        )
    choices = [_sets(item) for item in group.expressions]
    meaning = {part: _meaning(part, node, columns) for keys in itertools.chain(*choices) for part in keys}
    sets = [tuple(meaning[part] for part in itertools.chain(*parts)) for parts in itertools.product(*choices)]
    if len(sets) > MAX_SETS:
        raise reject(
            group, f"this makes {len(sets)} grouping sets, and {MAX_SETS} are allowed.", "Group by fewer columns."
        )
    every = list(dict.fromkeys(itertools.chain(*sets)))
    shown = [(item.output_name or spelt(item), item.unalias()) for item in node.expressions]
    order, hidden = _order(node, columns)
    selects = [_select(node, keys, every, [*shown, *hidden], columns) for keys in sets]
    result: exp.Query = selects[0]
    for each in selects[1:]:
        result = exp.Union(this=result, expression=each, distinct=False)
    if hidden:
        alias = exp.TableAlias(this=exp.to_identifier("sets"))
        result = exp.select(*(exp.column(name, quoted=True) for name, _ in shown)).from_(
            exp.Subquery(this=result, alias=alias)
        )
    clauses = {"order": order, "limit": node.args.get("limit"), "offset": node.args.get("offset")}
    for clause, part in clauses.items():
        if part:
            result.set(clause, part.copy())
    return result


def _meaning(item: exp.Expression, node: exp.Select, columns: Collection[str]) -> exp.Expression:
    """Positions of the SELECT list, and its aliases that are not names of columns, mean their expressions."""
    if isinstance(item, exp.Literal) and not item.is_string:
        index = whole(item) or 0
        if not 1 <= index <= len(node.expressions):
            raise reject(item, f"there is no column {show(item)} in the SELECT list.", "Group by a column's name.")
        return node.expressions[index - 1].unalias()
    aliases = {part.alias.lower(): part.this for part in node.expressions if isinstance(part, exp.Alias)}
    taken = {name.lower() for name in columns}

    def meaning(part: exp.Expression) -> exp.Expression:
        if isinstance(part, exp.Column) and not part.table and part.name.lower() in aliases.keys() - taken:
            return aliases[part.name.lower()].copy()
        return part

    return item.transform(meaning)


def _order(node: exp.Select, columns: Collection[str]) -> tuple[exp.Order | None, list[tuple[str, exp.Expression]]]:
    """ORDER BY for all sets together: what is not a column of the result becomes a hidden one of each set."""
    if not node.args.get("order"):
        return None, []
    order = node.args["order"].copy()
    hidden: list[tuple[str, exp.Expression]] = []
    shown = {item.output_name.lower() for item in node.expressions}
    for item in order.expressions:
        outside = any(column.name.lower() not in shown for column in item.this.find_all(exp.Column))
        if outside or item.this.find(exp.Grouping, exp.AggFunc):
            name = f"#order {len(hidden)}"
            hidden.append((name, _meaning(item.this, node, columns)))
            item.set("this", exp.column(name, quoted=True))
    return order, hidden


def _sets(item: exp.Expression) -> list[Keys]:
    """The sets that one item of GROUP BY stands for."""
    match item:
        case exp.Rollup():
            parts = [_keys(part) for part in item.expressions]
            return [tuple(itertools.chain(*parts[:length])) for length in range(len(parts), -1, -1)]
        case exp.Cube():
            parts = [_keys(part) for part in item.expressions]
            if len(parts) > 6:
                raise reject(item, "CUBE of more than six columns is not answered.", "Name the grouping sets you need.")
            chosen = itertools.product((True, False), repeat=len(parts))
            return [tuple(itertools.chain(*itertools.compress(parts, which))) for which in chosen]
        case exp.GroupingSets():
            return [
                each
                for part in item.expressions
                for each in (_sets(part) if isinstance(part, _SETS) else [_keys(part)])
            ]
    return [(item,)]


def _keys(item: exp.Expression) -> Keys:
    if isinstance(item, exp.Tuple):
        return tuple(item.expressions)
    return (item.this,) if isinstance(item, exp.Paren) else (item,)


def _select(
    node: exp.Select,
    keys: Keys,
    every: list[exp.Expression],
    items: list[tuple[str, exp.Expression]],
    columns: Collection[str],
) -> exp.Select:
    """One grouping: keys that are not in it are NULL, and GROUPING tells so."""
    missing = [key for key in every if key not in keys]

    def rewrite(part: exp.Expression) -> exp.Expression:
        if isinstance(part, exp.Grouping):
            asked = [_meaning(each, node, columns) for each in part.expressions or [part.this]]
            unknown = next((each for each in asked if each not in every), None)
            if unknown is not None:
                raise reject(
                    part, f"{show(unknown)} is not one of the grouped columns.", "Ask GROUPING of a grouped column."
                )
            value = sum((each in missing) << place for place, each in enumerate(reversed(asked)))
            return exp.Literal.number(value)
        if part in missing and part.find_ancestor(exp.AggFunc, exp.Filter, exp.WithinGroup, exp.Query) is None:
            return exp.Null()  # but inside an aggregate it is the column that is aggregated
        return part

    copy = node.copy()
    for clause in ("order", "limit", "offset", "group", "with_"):
        copy.set(clause, None)
    shown = [exp.alias_(expression.transform(rewrite), name, quoted=True) for name, expression in items]
    copy.set("expressions", shown)
    if node.args.get("having"):
        copy.set("having", node.args["having"].transform(rewrite))
    if keys:
        copy.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    return copy
