"""Write GROUPING SETS, ROLLUP and CUBE out as a UNION ALL of plain groupings.

Whether every set is measured by itself, or coarser ones are added up from a finer one's noisy
numbers, is decided when the whole statement is known: see `rolling`.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Collection
from functools import cache

from sqlglot import exp

from discreet.sql.aggregates import is_aggregate
from discreet.sql.text.parse import reject, show, spell, whole

MAX_SETS = 64
_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)
_SETS_OF = exp.Rollup | exp.Cube | exp.GroupingSets
Keys = tuple[exp.Expression, ...]
Items = list[tuple[str, exp.Expression]]  # of a SELECT list, with their names
Spelling = Callable[[exp.Expression], exp.Expression]


def without_tuples(node: exp.Select) -> exp.Select:
    """GROUP BY (a, b) is GROUP BY a, b."""
    group = node.args.get("group")
    if group is None or not any(isinstance(item, exp.Tuple) for item in group.expressions):
        return node
    copy = node.copy()
    keys = [
        item.expressions if isinstance(item, exp.Tuple) else [item]
        for item in copy.args["group"].expressions
    ]
    copy.args["group"].set("expressions", list(itertools.chain(*keys)))
    return copy


def has_sets(node: exp.Select) -> bool:
    group = node.args.get("group")
    return group is not None and any(isinstance(item, _SETS) for item in group.expressions)


def expand_sets(node: exp.Select, columns: Collection[str]) -> exp.Query:
    """Return the statement as one SELECT per grouping set; ORDER BY and LIMIT apply to all of them
    together.

    `columns` are those of the tables that it reads: they win over aliases of the SELECT list.
    """
    group = node.args["group"]
    if _looks_across(node):
        return _outer(node, columns)
    choices = [_sets(item) for item in group.expressions]
    meaning = {
        part: _meaning(part, node, columns) for keys in itertools.chain(*choices) for part in keys
    }
    sets = [
        tuple(meaning[part] for part in itertools.chain(*parts))
        for parts in itertools.product(*choices)
    ]
    if len(sets) > MAX_SETS:
        raise reject(
            group,
            f"this makes {len(sets)} grouping sets, and {MAX_SETS} are allowed.",
            "Group by fewer columns.",
        )
    normal = _normal(node)
    every = frozenset(normal(key) for key in itertools.chain(*sets))
    shown = [(item.output_name or spell(item), item.unalias()) for item in node.expressions]
    order, hidden = _order(node, every, columns, normal)
    selects = [_select(node, keys, every, [*shown, *hidden], columns, normal) for keys in sets]
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


def _looks_across(node: exp.Select) -> bool:
    """Return True if windows, QUALIFY or DISTINCT look at the rows of all sets together."""
    parts = [*node.expressions, *([node.args["order"]] if node.args.get("order") else [])]
    clauses = node.args.get("qualify") or node.args.get("distinct")
    return bool(clauses) or any(part.find(exp.Window) for part in parts)


def _outer(node: exp.Select, columns: Collection[str]) -> exp.Query:
    """Windows beside grouping sets: a SELECT over the sets, which has keys and aggregates by name.

    SELECT a, RANK() OVER (PARTITION BY GROUPING(a) ORDER BY COUNT(*)) FROM t GROUP BY ROLLUP (a)
    is SELECT k0, RANK() OVER (PARTITION BY k1 ORDER BY k2) of the sets' a, GROUPING(a), COUNT(*).
    """
    normal, group = _normal(node), node.args["group"]
    choices = [_sets(item) for item in group.expressions]
    keys = {
        normal(_meaning(part, node, columns))
        for listed in itertools.chain(*choices)
        for part in listed
    }
    inside: dict[exp.Expression, str] = {}
    items = {item.alias.lower(): item.this for item in node.expressions if item.args.get("alias")}

    def named(part: exp.Expression) -> exp.Expression:
        if isinstance(part, exp.Query):
            return part
        above = part.parent.parent if isinstance(part.parent, exp.Filter) else part.parent
        own = isinstance(above, exp.Window) and part.arg_key == "this"
        whole_aggregate = isinstance(part, exp.Grouping) or (is_aggregate(part) and not own)
        if whole_aggregate or normal(part) in keys:
            name = inside.setdefault(normal(part), f"set {len(inside)}")
            if name not in written_as:
                written_as[name] = part.copy()
            return exp.column(name, table=_SETS_NAME, quoted=True)
        alias = part.name.lower() if isinstance(part, exp.Column) and not part.table else ""
        if alias in items and alias not in taken:
            return exp.Paren(this=_change_parts(items[alias], named))
        return part

    written_as: dict[str, exp.Expression] = {}
    taken = {each.lower() for each in columns}
    shown = [
        exp.alias_(
            _change_parts(item.unalias(), named), item.output_name or spell(item), quoted=True
        )
        for item in node.expressions
    ]
    outer = exp.select(*shown)
    for clause in ("qualify", "order"):
        if node.args.get(clause):
            outer.set(clause, _change_parts(_resolve_places(node.args[clause], node), named))
    if not any(is_aggregate(part) for part in written_as.values()):
        raise reject(
            group,
            "windows, QUALIFY and DISTINCT beside grouping sets look at groups, and none is measured.",
            "Add COUNT(*), which tells how large each group is.",
        )
    for clause in ("distinct", "limit", "offset"):
        if node.args.get(clause):
            outer.set(clause, node.args[clause].copy())
    inner = node.copy()
    for clause in ("qualify", "order", "distinct", "limit", "offset"):
        inner.set(clause, None)

    def meant(part: exp.Expression) -> exp.Expression:
        if isinstance(part, exp.Tuple | _SETS_OF):
            return type(part)(expressions=[meant(each) for each in part.expressions])
        return meant(part.this) if isinstance(part, exp.Paren) else _meaning(part, node, columns)

    inner.set("group", exp.Group(expressions=[meant(part) for part in group.expressions]))
    inner.set(
        "expressions", [exp.alias_(part, name, quoted=True) for name, part in written_as.items()]
    )
    alias = exp.TableAlias(this=exp.to_identifier(_SETS_NAME))
    return outer.from_(exp.Subquery(this=inner, alias=alias))


_SETS_NAME = "sets"


def _change_parts(node: exp.Expression, change: Spelling) -> exp.Expression:
    """Return a copy of the node with its parts changed; each knows what stands above it."""
    return exp.Paren(this=node.copy()).transform(change, copy=False).this


def _resolve_places(clause: exp.Expression, node: exp.Select) -> exp.Expression:
    """ORDER BY 2, with what stands there in its place."""
    copy = clause.copy()
    for item in copy.expressions if isinstance(copy, exp.Order) else []:
        place = whole(item.this) or 0
        if 1 <= place <= len(node.expressions):
            item.set("this", node.expressions[place - 1].unalias().copy())
    return copy


def _normal(node: exp.Select) -> Spelling:
    """One spelling of equal expressions, to compare them: names in small letters, no brackets,
    columns without a table.

    A column keeps its table where the SELECT names two tables' columns of that name: a.x is not
    b.x. A column of USING is the left table's, and with RIGHT and FULL JOIN neither's.
    """
    tables = defaultdict[str, set[str]](set)
    parts = [
        *node.expressions,
        *(node.args[name] for name in ("group", "having", "order") if node.args.get(name)),
    ]
    for column in itertools.chain(*(part.find_all(exp.Column) for part in parts)):
        if column.table and column.find_ancestor(exp.Query) is node:
            tables[column.name.lower()].add(column.table.lower())
    for join in node.args.get("joins") or []:
        sides = (
            [node.args["from_"], join] if join.side in ("RIGHT", "FULL") else [node.args["from_"]]
        )
        for name in join.args.get("using") or []:
            tables[name.name.lower()] |= {side.alias_or_name.lower() for side in sides}

    def plain(part: exp.Expression) -> exp.Expression:
        if isinstance(part, exp.Paren):
            return part.this.transform(plain)
        if isinstance(part, exp.Column):
            name = part.name.lower()
            return exp.column(name, table=part.table.lower() if len(tables[name]) > 1 else None)
        return part

    return cache(lambda part: part.transform(plain))  # long expressions are looked at in every set


def _meaning(item: exp.Expression, node: exp.Select, columns: Collection[str]) -> exp.Expression:
    """Positions of the SELECT list, and its aliases that are not names of columns, mean their
    expressions.
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
    aliases = {
        part.alias.lower(): part.this for part in node.expressions if isinstance(part, exp.Alias)
    }
    taken = {name.lower() for name in columns}

    def meaning(part: exp.Expression) -> exp.Expression:
        if (
            isinstance(part, exp.Column)
            and not part.table
            and part.name.lower() in aliases.keys() - taken
        ):
            return aliases[part.name.lower()].copy()
        return part

    return item.transform(meaning)


def _order(
    node: exp.Select, every: Collection[exp.Expression], columns: Collection[str], normal: Spelling
) -> tuple[exp.Order | None, Items]:
    """ORDER BY for all sets together: what is not a column of the result becomes a hidden one of
    each set.
    """
    if not node.args.get("order"):
        return None, []
    order = node.args["order"].copy()
    hidden: Items = []
    shown = {item.output_name.lower() for item in node.expressions}
    for item in order.expressions:
        outside = any(
            column.table or column.name.lower() not in shown
            for column in item.this.find_all(exp.Column)
        )
        computed = any(
            part in every and not isinstance(part, exp.Column) for part in normal(item.this).walk()
        )
        if outside or computed or item.this.find(exp.Grouping, exp.AggFunc):
            name = f"#order {len(hidden)}"
            hidden.append((name, _meaning(item.this, node, columns)))
            item.set("this", exp.column(name, quoted=True))
    return order, hidden


def _sets(item: exp.Expression) -> list[Keys]:
    """Return the sets that one item of GROUP BY stands for."""
    match item:
        case exp.Rollup():
            parts = [_keys(part) for part in item.expressions]
            return [tuple(itertools.chain(*parts[:length])) for length in range(len(parts), -1, -1)]
        case exp.Cube():
            parts = [_keys(part) for part in item.expressions]
            if len(parts) > 6:
                raise reject(
                    item,
                    "CUBE of more than six columns is not answered.",
                    "Name the grouping sets you need.",
                )
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
    every: Collection[exp.Expression],
    items: Items,
    columns: Collection[str],
    normal: Spelling,
) -> exp.Select:
    """One grouping: keys that are not in it are NULL, and GROUPING tells so."""
    present = {normal(key): key for key in keys}
    kinds = {type(key) for key in every}

    def rewrite(part: exp.Expression) -> exp.Expression:
        if isinstance(part, exp.Grouping):
            asked = [_meaning(each, node, columns) for each in part.expressions or [part.this]]
            unknown = next((each for each in asked if normal(each) not in every), None)
            if unknown is not None:
                raise reject(
                    part,
                    f"{show(unknown)} is not one of the grouped columns.",
                    "Ask GROUPING of a grouped column.",
                )
            value = sum(
                (normal(each) not in present) << place for place, each in enumerate(reversed(asked))
            )
            return exp.Literal.number(value)
        if type(part) not in kinds or part.find_ancestor(
            exp.AggFunc, exp.Filter, exp.WithinGroup, exp.Query
        ):
            return part  # inside an aggregate it is the column that is aggregated
        same = normal(part)
        if same in present:
            # as a whole: `transform` does not look for missing keys in what is new
            return part.copy()
        return exp.Null() if same in every else part

    copy = node.copy()
    for clause in ("order", "limit", "offset", "group", "with_"):
        copy.set(clause, None)
    shown = [
        exp.alias_(expression.transform(rewrite), name, quoted=True) for name, expression in items
    ]
    copy.set("expressions", shown)
    if node.args.get("having"):
        copy.set("having", node.args["having"].transform(rewrite))
    if keys:
        copy.set("group", exp.Group(expressions=[key.copy() for key in present.values()]))
    return copy
