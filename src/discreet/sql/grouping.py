"""GROUPING SETS, ROLLUP and CUBE, written out as a UNION ALL of plain groupings.

Whether every set is measured by itself, or coarser ones are added up from a finer one's noisy numbers, is decided when
the whole statement is known: see `rolling`.
"""

from __future__ import annotations

import itertools

from sqlglot import exp

from discreet.sql.parse import reject, show, spelt

MAX_SETS = 64
_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)
Keys = tuple[exp.Expression, ...]


def has_sets(node: exp.Select) -> bool:
    group = node.args.get("group")
    return group is not None and any(isinstance(item, _SETS) for item in group.expressions)


def expanded(node: exp.Select) -> exp.Query:
    """The statement as one SELECT per grouping set; ORDER BY and LIMIT apply to all of them together."""
    group = node.args["group"]
    if node.args.get("qualify") or node.args.get("distinct") or any(item.find(exp.Window) for item in node.expressions):
        raise reject(
            group,
            "windows, QUALIFY and DISTINCT would see each grouping set by itself.",
            "Use them in an outer SELECT.",
        )
    choices = [_sets(_named(item, node)) for item in group.expressions]
    sets = [tuple(itertools.chain(*parts)) for parts in itertools.product(*choices)]
    if len(sets) > MAX_SETS:
        raise reject(
            group, f"this makes {len(sets)} grouping sets, and {MAX_SETS} are allowed.", "Group by fewer columns."
        )
    every = list(dict.fromkeys(itertools.chain(*sets)))
    selects = [_select(node, keys, every) for keys in sets]
    result: exp.Query = selects[0]
    for each in selects[1:]:
        result = exp.Union(this=result, expression=each, distinct=False)
    for clause in ("order", "limit", "offset"):
        if node.args.get(clause):
            result.set(clause, node.args[clause].copy())
    return result


def _named(item: exp.Expression, node: exp.Select) -> exp.Expression:
    """Aliases of the SELECT list inside a grouping set mean their expressions."""
    aliases = {part.alias.lower(): part.this for part in node.expressions if isinstance(part, exp.Alias)}

    def meaning(part: exp.Expression) -> exp.Expression:
        if isinstance(part, exp.Column) and not part.table and part.name.lower() in aliases:
            return aliases[part.name.lower()].copy()
        return part

    return item.transform(meaning)


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


def _select(node: exp.Select, keys: Keys, every: list[exp.Expression]) -> exp.Select:
    """One grouping: keys that are not in it are NULL, and GROUPING tells so."""
    missing = [key for key in every if key not in keys]

    def rewrite(part: exp.Expression) -> exp.Expression:
        if isinstance(part, exp.Grouping):
            asked = part.expressions or [part.this]
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
    items = [
        exp.alias_(item.unalias().transform(rewrite), item.output_name or spelt(item), quoted=True)
        for item in node.expressions
    ]
    copy.set("expressions", items)
    if node.args.get("having"):
        copy.set("having", node.args["having"].transform(rewrite))
    if keys:
        copy.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    return copy
