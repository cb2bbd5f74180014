"""LEFT JOIN b ON a.owner = b.owner WHERE b.owner IS NULL: the rows of a that meet none of b,
planned as NOT EXISTS.

Of a row of a that meets some of b, `b.owner` is equal to something, hence not NULL: WHERE drops it.
One that meets none is kept once. That is NOT EXISTS (SELECT 1 FROM b WHERE a.owner = b.owner). As a
join, one person may have as many rows as both tables allow; as NOT EXISTS no more than a allows
(S4). b RIGHT JOIN a says the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from sqlglot import exp

from discreet.policy.policy import Policy
from discreet.sql.rows.owners import conjuncts
from discreet.sql.rows.relation import Relation

Columns = Mapping[str, Collection[str]]  # of each private table, in small letters


def private_columns(policy: Policy, *, named: Mapping[str, object]) -> dict[str, set[str]]:
    """Return the names of the columns of each private table and WITH name, in small letters."""
    tables = {
        name.lower(): {column.lower() for column in (*table.columns, table.visible_owner or "")}
        for name, table in policy.tables.items()
        if not table.public and name.lower() not in named
    }
    relations = {name: each for name, each in named.items() if isinstance(each, Relation)}
    return tables | {
        name: {field.name.lower() for field in each.fields} for name, each in relations.items()
    }


def without_antijoins(node: exp.Select, private: Columns) -> exp.Select:
    """Return the SELECT with NOT EXISTS in the place of such joins, if nothing but WHERE looks at
    what they joined.
    """
    turned = _swap_sides(node)
    if turned is not None:
        planned = without_antijoins(turned, private)
        if planned is not turned:
            return planned
    for place, join in enumerate(node.args.get("joins") or []):
        condition = _rest_of_where(node, join, private)
        if condition is not None:
            copy = node.copy()
            copy.set(
                "joins", [each for index, each in enumerate(copy.args["joins"]) if index != place]
            )
            copy.set("where", exp.Where(this=condition))
            return without_antijoins(copy, private)
    return node


def _rest_of_where(node: exp.Select, join: exp.Join, private: Columns) -> exp.Expression | None:
    """Return what WHERE says without the join; None where the join is more than a test."""
    table, where = join.this, node.args.get("where")
    columns = columns_of(table, private)
    if where is None or side_of(join) != "LEFT" or columns is None:
        return None
    first = node.args["from_"].this
    if isinstance(first, exp.Table) and first.name.lower() not in private:
        return None  # public rows, which no join may keep
    alias = table.alias_or_name.lower()
    parts = condition_of(node, join, alias)
    keys = set(_equalities(parts, alias))
    tests = [part for part in conjuncts(where.this) if _tests(part, alias, keys)]
    if not tests or is_used(node, join, alias, tests, columns):
        return None
    inner = exp.select("1").from_(table.copy()).where(*(part.copy() for part in parts))
    rest = [
        part.copy() for part in conjuncts(where.this) if not any(part is test for test in tests)
    ]
    return exp.and_(*rest, exp.Not(this=exp.Exists(this=inner)))


def _swap_sides(node: exp.Select) -> exp.Select | None:
    """Return b LEFT JOIN a for a RIGHT JOIN b."""
    joins = node.args.get("joins") or []
    if not joins or side_of(joins[0]) != "RIGHT":
        return None
    copy = node.copy()
    first, join = copy.args["from_"], copy.args["joins"][0]
    left, right = first.this.pop(), join.this.pop()
    first.set("this", right)
    join.set("this", left)
    join.set("side", "LEFT")
    return copy


def side_of(join: exp.Join) -> str | None:
    """Return LEFT, RIGHT or INNER where it is such a JOIN b ON ... or USING; None of all others."""
    used = {name for name, part in join.args.items() if part}
    side = str(join.args.get("side") or "INNER").upper()
    kind = str(join.args.get("kind") or "").upper()
    plain = kind in ("", "INNER" if side == "INNER" else "OUTER")
    told = used <= {"this", "side", "kind", "on", "using"} and used & {"on", "using"}
    return side if plain and told and side in ("LEFT", "RIGHT", "INNER") else None


def columns_of(source: exp.Expression, private: Columns) -> Collection[str] | None:
    """Return the columns of a private table, or of a plain subquery over one; None of others."""
    used = {name for name, part in source.args.items() if part}
    if not used <= {"this", "alias"} or (
        isinstance(source.args.get("alias"), exp.TableAlias) and (source.args["alias"].columns)
    ):
        return None
    if isinstance(source, exp.Table):
        return private.get(source.name.lower())
    inner = source.this if isinstance(source, exp.Subquery) and source.alias else None
    if not isinstance(inner, exp.Select):
        return None
    used = {name for name, part in inner.args.items() if part}
    items = inner.expressions
    if not used <= {"expressions", "from_", "where", "distinct"} or any(
        item.is_star or not item.alias_or_name or item.find(exp.AggFunc) for item in items
    ):
        return None
    if columns_of(inner.args["from_"].this, private) is None:
        return None
    return {item.alias_or_name.lower() for item in items}


def condition_of(node: exp.Select, join: exp.Join, alias: str) -> list[exp.Expression]:
    """Return what the join compares, with the table of every column; nothing where that is not
    told.
    """
    names = join.args.get("using")
    if names:
        first = node.args["from_"].this
        if len(node.args["joins"]) > 1 or not isinstance(first, exp.Table):
            return []
        outer = first.alias or first.name
        return [
            exp.EQ(this=_column(each, outer), expression=_column(each, alias)) for each in names
        ]
    parts = conjuncts(join.args.get("on"))
    told = all(column.table for part in parts for column in part.find_all(exp.Column))
    return parts if told and not any(part.find(exp.Query) for part in parts) else []


def _column(name: exp.Expression, table: str) -> exp.Column:
    found = exp.column(name.name, table=table)
    found.meta.update(name.meta)
    return found


def _equalities(parts: list[exp.Expression], alias: str) -> Iterator[str]:
    """Yield the columns of the joined table that are equal to something else where rows meet."""
    for part in parts:
        if isinstance(part, exp.EQ):
            for ours, other in ((part.this, part.expression), (part.expression, part.this)):
                mentioned = any(
                    column.table.lower() == alias for column in other.find_all(exp.Column)
                )
                if isinstance(ours, exp.Column) and ours.table.lower() == alias and not mentioned:
                    yield ours.name.lower()


def _tests(part: exp.Expression, alias: str, keys: Collection[str]) -> bool:
    """Return True if it says b.key IS NULL."""
    column = (
        part.this if isinstance(part, exp.Is) and isinstance(part.expression, exp.Null) else None
    )
    return (
        isinstance(column, exp.Column)
        and column.table.lower() == alias
        and column.name.lower() in keys
    )


def is_used(
    node: exp.Select,
    join: exp.Join,
    alias: str,
    tests: list[exp.Expression],
    columns: Collection[str],
) -> bool:
    """Return True if anything beside the join's own condition and these tests may look at the
    joined table.
    """
    if _is_mixed(node, join, alias):
        return True
    merged = {each.name.lower() for each in join.args.get("using") or []}
    named = node.args.get("with_")
    apart = (join, *tests) if named is None else (join, *tests, named)
    own = {id(part) for each in apart for part in each.walk()}
    for column in node.find_all(exp.Column):
        name = column.name.lower()
        bare = not column.table and (name == alias or (name in columns and name not in merged))
        if id(column) not in own and (column.table.lower() == alias or bare):
            return True
    return False


def _is_mixed(node: exp.Select, join: exp.Join, alias: str) -> bool:
    """Return True if other joins or * do more with the joined table than its names tell."""
    others = [each for each in node.args["joins"] if each is not join]
    sources = [node.args["from_"].this, *(each.this for each in others)]
    sides = [str(each.args.get("side") or "").upper() for each in others]
    same = any((each.alias or each.name).lower() == alias for each in sources)
    merging = any(each.args.get("using") for each in others) or "RIGHT" in sides or "FULL" in sides
    items = [item.unalias() for item in node.expressions]
    return same or merging or any(item.is_star and not item.args.get("table") for item in items)
