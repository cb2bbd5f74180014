"""Rewrite LEFT JOIN b ON a.owner = b.owner WHERE b.owner IS NULL as NOT EXISTS: it reads the rows of
a that meet no row of b.

If a row of a meets a row of b, `b.owner` is equal to something, so it is not NULL, and WHERE drops
the row. A row that meets none is kept once. That is NOT EXISTS (SELECT 1 FROM b WHERE a.owner =
b.owner). With the join one person may have as many rows as both tables allow together; with NOT
EXISTS no more than a allows (S4). b RIGHT JOIN a means the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from sqlglot import exp

from discreet.policy.policy import Policy
from discreet.sql.rows.owners import conjuncts
from discreet.sql.rows.relation import Relation

Columns = Mapping[str, Collection[str]]  # of each private table; all names in small letters


def private_columns(policy: Policy, *, named: Mapping[str, object]) -> dict[str, set[str]]:
    """Return the columns of each private table, and of each private relation that WITH names; all
    names in small letters.
    """
    columns: dict[str, set[str]] = {}
    for name, table in policy.tables.items():
        if not table.public and name.lower() not in named:
            names = (*table.columns, table.visible_owner or "")
            columns[name.lower()] = {each.lower() for each in names}
    for name, relation in named.items():
        if isinstance(relation, Relation):
            columns[name] = {field.name.lower() for field in relation.fields}
    return columns


def without_antijoins(node: exp.Select, private: Columns) -> exp.Select:
    """Return the SELECT with NOT EXISTS instead of such joins, if only WHERE reads the joined
    columns.
    """
    swapped = _swap_sides(node)
    if swapped is not None:
        result = without_antijoins(swapped, private)
        if result is not swapped:
            return result
    for place, join in enumerate(node.args.get("joins") or []):
        condition = _rest_of_where(node, join, private)
        if condition is not None:
            return without_antijoins(without_join(node, place, condition), private)
    return node


def without_join(node: exp.Select, place: int, condition: exp.Expression) -> exp.Select:
    """Return a copy of a SELECT without one of its joins and with another WHERE condition."""
    copy = node.copy()
    joins = copy.args["joins"]
    copy.set("joins", [*joins[:place], *joins[place + 1 :]])
    copy.set("where", exp.Where(this=condition))
    return copy


def _rest_of_where(node: exp.Select, join: exp.Join, private: Columns) -> exp.Expression | None:
    """Return the WHERE condition with NOT EXISTS instead of the join; None if the join does more
    than exclude rows.
    """
    table = join.this
    where = node.args.get("where")
    columns = columns_of(table, private)
    if where is None or side_of(join) != "LEFT" or columns is None:
        return None
    first = node.args["from_"].this
    if isinstance(first, exp.Table) and first.name.lower() not in private:
        return None  # an outer join may not keep public rows
    alias = table.alias_or_name.lower()
    parts = condition_of(node, join, alias)
    keys = set(_equalities(parts, alias))
    tests = [part for part in conjuncts(where.this) if _tests(part, alias, keys)]
    if not tests or is_used(node, join, alias, tests, columns):
        return None
    inner = exp.select("1").from_(table.copy()).where(*(part.copy() for part in parts))
    others = [part for part in conjuncts(where.this) if not any(part is test for test in tests)]
    rest = [part.copy() for part in others]
    return exp.and_(*rest, exp.Not(this=exp.Exists(this=inner)))


def _swap_sides(node: exp.Select) -> exp.Select | None:
    """Return a RIGHT JOIN b as b LEFT JOIN a; None for other joins."""
    joins = node.args.get("joins") or []
    if not joins or side_of(joins[0]) != "RIGHT":
        return None
    copy = node.copy()
    first = copy.args["from_"]
    join = copy.args["joins"][0]
    left = first.this.pop()
    right = join.this.pop()
    first.set("this", right)
    join.set("this", left)
    join.set("side", "LEFT")
    return copy


def side_of(join: exp.Join) -> str | None:
    """Return LEFT, RIGHT or INNER for a join with ON or USING; None for all other joins."""
    clauses = {name for name, part in join.args.items() if part}
    side = str(join.args.get("side") or "INNER").upper()
    kind = str(join.args.get("kind") or "").upper()
    if side not in ("LEFT", "RIGHT", "INNER"):
        return None
    if kind not in ("", "INNER" if side == "INNER" else "OUTER"):
        return None
    if not clauses & {"on", "using"}:
        return None
    return side if clauses <= {"this", "side", "kind", "on", "using"} else None


def columns_of(source: exp.Expression, private: Columns) -> Collection[str] | None:
    """Return the columns of a private table, or of a plain subquery over one; None for others."""
    clauses = {name for name, part in source.args.items() if part}
    alias = source.args.get("alias")
    renames = isinstance(alias, exp.TableAlias) and bool(alias.columns)
    if renames or not clauses <= {"this", "alias"}:
        return None
    if isinstance(source, exp.Table):
        return private.get(source.name.lower())
    inner = source.this if isinstance(source, exp.Subquery) and source.alias else None
    if not isinstance(inner, exp.Select):
        return None
    clauses = {name for name, part in inner.args.items() if part}
    items = inner.expressions
    if not clauses <= {"expressions", "from_", "where", "distinct"}:
        return None
    if any(item.is_star or not item.alias_or_name or item.find(exp.AggFunc) for item in items):
        return None
    if columns_of(inner.args["from_"].this, private) is None:
        return None
    return {item.alias_or_name.lower() for item in items}


def condition_of(node: exp.Select, join: exp.Join, alias: str) -> list[exp.Expression]:
    """Return the conditions of a join in which every column has its table; an empty list if one has
    none.
    """
    names = join.args.get("using")
    if names:
        first = node.args["from_"].this
        if len(node.args["joins"]) > 1 or not isinstance(first, exp.Table):
            return []
        outer = first.alias or first.name
        pairs = [(_column(each, outer), _column(each, alias)) for each in names]
        return [exp.EQ(this=left, expression=right) for left, right in pairs]
    parts = conjuncts(join.args.get("on"))
    with_tables = all(column.table for part in parts for column in part.find_all(exp.Column))
    if not with_tables or any(part.find(exp.Query) for part in parts):
        return []
    return parts


def _column(name: exp.Expression, table: str) -> exp.Column:
    """Return a column of a table, at the place in the text where USING names it."""
    column = exp.column(name.name, table=table)
    column.meta.update(name.meta)
    return column


def _equalities(parts: list[exp.Expression], alias: str) -> Iterator[str]:
    """Yield the columns of the joined table that equal something of other tables if rows meet."""
    for part in parts:
        if not isinstance(part, exp.EQ):
            continue
        for ours, other in ((part.this, part.expression), (part.expression, part.this)):
            if not isinstance(ours, exp.Column) or ours.table.lower() != alias:
                continue
            tables = {column.table.lower() for column in other.find_all(exp.Column)}
            if alias not in tables:
                yield ours.name.lower()


def _tests(part: exp.Expression, alias: str, keys: Collection[str]) -> bool:
    """Return True if a condition is b.key IS NULL."""
    if not isinstance(part, exp.Is) or not isinstance(part.expression, exp.Null):
        return False
    column = part.this
    if not isinstance(column, exp.Column):
        return False
    return column.table.lower() == alias and column.name.lower() in keys


def is_used(
    node: exp.Select,
    join: exp.Join,
    alias: str,
    tests: list[exp.Expression],
    columns: Collection[str],
) -> bool:
    """Return True if a part of the SELECT other than the join's condition and these tests may read
    the joined table.
    """
    if _is_mixed(node, join, alias):
        return True
    merged = {each.name.lower() for each in join.args.get("using") or []}
    exempt = [join, *tests]
    if node.args.get("with_") is not None:
        exempt.append(node.args["with_"])
    own = {id(part) for each in exempt for part in each.walk()}
    for column in node.find_all(exp.Column):
        name = column.name.lower()
        bare = not column.table and (name == alias or (name in columns and name not in merged))
        if id(column) not in own and (column.table.lower() == alias or bare):
            return True
    return False


def _is_mixed(node: exp.Select, join: exp.Join, alias: str) -> bool:
    """Return True if the joined table may be read without its name: by *, by another join, or by
    another table of the same name.
    """
    others = [each for each in node.args["joins"] if each is not join]
    sources = [node.args["from_"].this, *(each.this for each in others)]
    sides = [str(each.args.get("side") or "").upper() for each in others]
    same = any((each.alias or each.name).lower() == alias for each in sources)
    merging = any(each.args.get("using") for each in others) or "RIGHT" in sides or "FULL" in sides
    if same or merging:
        return True
    items = [item.unalias() for item in node.expressions]
    return any(item.is_star and not item.args.get("table") for item in items)
