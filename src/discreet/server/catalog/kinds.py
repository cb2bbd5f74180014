"""The Postgres type of every part of a statement, as far as it can be told without running
anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from discreet.server.catalog import types
from discreet.server.catalog.failure import CatalogError
from discreet.server.catalog.functions import AS_TABLES, EXPRESSIONS, FUNCTIONS
from discreet.server.catalog.parse import CALL, relation_of
from discreet.server.catalog.tables.builtin import Relation, relations

SYSTEM_COLUMNS = {
    "tableoid": "oid",
    "xmin": "xid",
    "xmax": "xid",
    "cmin": "cid",
    "cmax": "cid",
    "ctid": "tid",
}
_TRUTHS = (
    exp.And,
    exp.Or,
    exp.Not,
    exp.Is,
    exp.In,
    exp.Exists,
    exp.Between,
    exp.Boolean,
    exp.Predicate,
)
_NAMES = (
    exp.CurrentUser,
    exp.SessionUser,
    exp.CurrentSchema,
    exp.CurrentCatalog,
    exp.CurrentDatabase,
)
_INSIDE = (
    exp.Paren,
    exp.Alias,
    exp.Ordered,
    exp.Order,
    exp.Distinct,
    exp.Filter,
    exp.Window,
    exp.Collate,
    exp.Neg,
)

_QUERIES = (exp.Select, exp.SetOperation, exp.Values)

Columns = dict[str, str | None]  # names of a source's columns, and their types where they are known


class Kinds:
    """Types by node, each found once."""

    def __init__(self, tree: exp.Query, *, database: str, given: Sequence[int] = ()) -> None:
        self._database = database
        self._given = given
        self._known: dict[int, str | None] = {}
        self._sources: dict[int, dict[str, Relation | Columns]] = {}
        self._under_way: set[int] = set()
        self._ctes = {cte.alias.lower(): cte for cte in tree.find_all(exp.CTE)}
        self.parameters: dict[int, str] = {}
        self.parameters = self._find_parameters(tree)

    def of(self, node: exp.Expression | None) -> str | None:
        """Return the type of a node, such as int4; None if it is not known."""
        if node is None or id(node) in self._under_way:
            return None
        if id(node) not in self._known:
            self._under_way.add(id(node))
            self._known[id(node)] = self._find(node)
            self._under_way.discard(id(node))
        return self._known[id(node)]

    def set(self, node: exp.Expression, kind: str | None) -> None:
        """Set the type of a node that was made anew."""
        self._known[id(node)] = kind

    # --- expressions ------------------------------------------------------------------------------

    def _find(self, node: exp.Expression) -> str | None:
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Cast):
            return type_in_cast(node.args["to"])
        if isinstance(node, exp.Anonymous):
            return self._call(node)
        if isinstance(node, exp.Literal):
            return _literal(node)
        if isinstance(node, exp.Parameter):
            return self.parameters.get(number_of(node))
        if isinstance(node, exp.Dot):
            return self._dot(node)
        if isinstance(node, exp.DPipe):
            return self._join(node)
        if isinstance(node, exp.Bracket):
            whole = self.of(node.this)
            return types.element(whole) if whole else None
        return self._compound(node)

    def _compound(self, node: exp.Expression) -> str | None:
        if isinstance(node, _INSIDE):
            return self.of(node.this or next(iter(node.expressions), None))
        if isinstance(node, _NAMES):
            return "name"
        if isinstance(node, _TRUTHS):
            return "bool"
        if isinstance(node, exp.Case):
            branches = [branch.args["true"] for branch in node.args["ifs"]] + [
                node.args.get("default")
            ]
            return self._first(branches)
        if isinstance(node, exp.Subquery | exp.Select | exp.SetOperation):
            return next(iter(self.projected(node).values()), None)
        if isinstance(node, exp.Array):
            element = self._first(node.expressions)
            return f"_{'text' if element in (None, 'unknown') else element}"
        if isinstance(node, exp.AtTimeZone):
            return "timestamp" if self.of(node.this) == "timestamptz" else "timestamptz"
        if isinstance(node, exp.Binary):
            return self._first([node.this, node.expression], whole="int4")
        if isinstance(node, exp.CurrentDate):
            return "date"
        if isinstance(node, exp.CurrentTimestamp):
            return "timestamptz"
        if isinstance(node, exp.Extract | exp.Div):
            return "float8"
        if isinstance(node, exp.StrPosition):
            return "int4"
        return "text" if isinstance(node, exp.Substring | exp.Trim | exp.ByteString) else None

    def _first(
        self, nodes: Sequence[exp.Expression | None], whole: str | None = None
    ) -> str | None:
        """Return the first type that says something; a literal in quotes says nothing."""
        found = [
            self.of(node) for node in nodes if node is not None and not isinstance(node, exp.Null)
        ]
        certain = [kind for kind in found if kind not in (None, "unknown", whole)]
        return next(iter([*certain, *found]), None)

    def _join(self, node: exp.DPipe) -> str:
        sides = [self.of(node.this), self.of(node.expression)]
        return next((kind for kind in sides if kind and types.element(kind)), "text")

    def _dot(self, node: exp.Dot) -> str | None:
        if isinstance(node.expression, exp.Anonymous):
            return self.of(node.expression)
        fields = {
            "grantee": "oid",
            "grantor": "oid",
            "is_grantable": "bool",
            "privilege_type": "text",
            "n": "int4",
        }
        return fields.get(
            node.expression.name.lower(), "int2" if node.expression.name.lower() == "x" else None
        )

    def _call(self, node: exp.Anonymous) -> str | None:
        name = node.name.lower().removeprefix(CALL)
        if name == "generate_subscripts":
            return "int4"
        if name in ("pg_get_indexdef", "obj_description"):
            return "text"
        kind = FUNCTIONS.get(name, EXPRESSIONS.get(name, ("", None)))[1]
        if kind is None or not kind.startswith("$1"):
            return kind
        first = self._first(node.expressions)
        if kind == "$1" or first is None:
            return "text" if first == "name" and name in ("max", "min") else first
        if kind == "$1[]":
            return f"_{'text' if first == 'unknown' else first}"
        return types.element(first)

    # --- columns ----------------------------------------------------------------------------------

    def _column(self, node: exp.Column) -> str | None:
        name = node.name.lower()
        if name in SYSTEM_COLUMNS:
            return SYSTEM_COLUMNS[name]
        source = self.source_of(node)
        if isinstance(source, Relation):
            return source.columns.get(name)
        return source.get(name) if source else None

    def source_of(self, node: exp.Column) -> Relation | Columns | None:
        """Return the source of a column, looking outwards from its own SELECT."""
        name = node.name.lower()
        wanted = node.table.lower()
        select = node.find_ancestor(exp.Select)
        while select is not None:
            sources = self.sources(select)
            if wanted in sources:
                return sources[wanted]
            for source in () if wanted else sources.values():
                columns = source.columns if isinstance(source, Relation) else source
                if name in columns or (name in SYSTEM_COLUMNS and isinstance(source, Relation)):
                    return source
            select = select.find_ancestor(exp.Select)
        return None

    def sources(self, select: exp.Select) -> dict[str, Relation | Columns]:
        """Return what stands in FROM, by alias."""
        if id(select) not in self._sources:
            self._sources[id(select)] = {}  # a recursive query finds nothing in itself
            start = select.args.get("from_")
            items = [start.this] if start is not None else []
            items += [join.this for join in select.args.get("joins") or ()]
            found: dict[str, Relation | Columns] = {}
            for item in items:
                self._add_source(found, item)
            self._sources[id(select)] = found
        return self._sources[id(select)]

    def _add_source(self, found: dict[str, Relation | Columns], item: exp.Expression) -> None:
        for join in item.args.get("joins") or ():  # (a JOIN b ON ...) between brackets
            self._add_source(found, join.this)
        if isinstance(item, exp.Paren | exp.Subquery) and not isinstance(item.this, _QUERIES):
            self._add_source(found, item.this)
            return
        source = self._source(item)
        alias = item.args.get("alias")
        names = (
            [each.name.lower() for each in alias.columns]
            if isinstance(alias, exp.TableAlias)
            else []
        )
        if names:
            columns = dict(source.columns) if isinstance(source, Relation) else source
            kinds: list[str | None] = [*columns.values()]
            kinds += [None] * (len(names) - len(kinds))
            source = dict(zip(names, kinds, strict=False))
        found[(item.alias_or_name or f"#{len(found)}").lower()] = source

    def _source(self, item: exp.Expression) -> Relation | Columns:
        if isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier):
            cte = self._ctes.get(item.name.lower())
            if cte is not None and not item.args.get("db"):
                return self._of_cte(cte)
            return relation_of(item, self._database) or {}
        if isinstance(item, exp.Values):
            first = item.expressions[0].expressions if item.expressions else []
            return {f"column{n}": self.of(cell) for n, cell in enumerate(first, start=1)}
        if isinstance(item, exp.Subquery | exp.Query):
            return self.projected(item)
        call = table_function(item)
        if call is None:
            return {}
        name = call.name.lower().removeprefix(CALL)
        if name in AS_TABLES:
            return relations().get(("pg_catalog", AS_TABLES[name])) or {
                "word": "text",
                "catcode": "char",
            }
        columns: Columns = {(item.alias_or_name or name).lower(): self.of(call)}
        if item.args.get("ordinality"):
            columns["ordinality"] = "int8"
        return columns

    def _of_cte(self, cte: exp.CTE) -> Columns:
        columns = self.projected(cte.this)
        names = [each.name.lower() for each in cte.args["alias"].columns]
        return dict(zip(names, columns.values(), strict=False)) if names else columns

    def projected(self, query: exp.Expression) -> Columns:
        """Return the columns that a query gives, by name."""
        while isinstance(query, exp.Subquery | exp.SetOperation | exp.Paren):
            query = query.this
        if isinstance(query, exp.Values):
            source = self._source(query)
            return {} if isinstance(source, Relation) else dict(source)
        found: Columns = {}
        for item in query.expressions if isinstance(query, exp.Select) else ():
            if item.is_star:
                self._add_star(found, query, item)
            else:
                name = (item.alias or output_name(item)).lower()
                found[name if name not in found else f"{name}:{len(found)}"] = self.of(item)
        return found

    def _add_star(self, found: Columns, select: exp.Select, star: exp.Expression) -> None:
        wanted = star.table.lower() if isinstance(star, exp.Column) else ""
        for alias, source in self.sources(select).items():
            if not wanted or alias == wanted:
                found |= source.columns if isinstance(source, Relation) else source

    # --- parameters -------------------------------------------------------------------------------

    def _find_parameters(self, tree: exp.Query) -> dict[int, str]:
        found: dict[int, str] = {}
        for node in tree.find_all(exp.Parameter):
            place = number_of(node)
            if 0 < place <= len(self._given) and self._given[place - 1]:
                found[place] = types.name(self._given[place - 1]) or "text"
            else:
                wanted = self._expect(node)
                if place not in found or found[place] == "text":
                    found[place] = "text" if wanted in (None, "unknown") else wanted or "text"
        return found

    def _expect(self, node: exp.Expression) -> str | None:
        """Return the type that a parameter should have, by what stands beside it."""
        parent = node.parent
        if isinstance(parent, exp.Paren | exp.Tuple):
            return self._expect(parent)
        if isinstance(parent, exp.Cast):
            return type_in_cast(parent.args["to"])
        if isinstance(parent, exp.Any) or (
            isinstance(parent, exp.Anonymous) and parent.name.lower() == "all"
        ):
            element = self._expect(parent)
            return f"_{element or 'text'}"
        if isinstance(parent, exp.Limit | exp.Offset):
            return "int8"
        if isinstance(parent, exp.In):
            return self.of(parent.this)
        if isinstance(parent, exp.Binary | exp.Operator | exp.Predicate) and not isinstance(
            parent, exp.DPipe
        ):
            other = parent.this if parent.this is not node else parent.args.get("expression")
            return None if isinstance(parent, exp.Like | exp.RegexpLike) else self.of(other)
        return None


def number_of(parameter: exp.Parameter) -> int:
    """Return the number of a parameter: 1 for $1."""
    text = str(parameter.this.this) if isinstance(parameter.this, exp.Literal) else parameter.name
    if not text.isdigit() or not 1 <= int(text) <= 1000:
        raise CatalogError("42P02", f"there is no parameter ${text}")
    return int(text)


def type_in_cast(node: exp.Expression) -> str:
    """Return the type that a cast names."""
    text = node.sql(dialect="postgres")
    found = types.from_sql(text)
    if found is None:
        raise CatalogError("42704", f'type "{text.lower()}" does not exist')
    return found


def table_function(item: exp.Expression) -> exp.Anonymous | None:
    """Return the function that stands where a table may stand."""
    inner = item.this if isinstance(item, exp.Table | exp.Lateral) else item
    if isinstance(inner, exp.Dot):
        inner = inner.expression
    return inner if isinstance(inner, exp.Anonymous) else None


def _literal(node: exp.Literal) -> str:
    if node.is_string:
        return "unknown"
    text = str(node.this)
    if not text.isdigit():
        return "numeric"
    if int(text) < 2**31:
        return "int4"
    if int(text) < 2**63:
        return "int8"
    return "numeric"


def output_name(node: exp.Expression) -> str:
    """Return the name that Postgres gives a column without an alias."""
    return _name(node)[0]


def _name(node: exp.Expression | None) -> tuple[str, bool]:
    """Return the name of an expression, and True if what stands around it may take that name."""
    if isinstance(node, exp.Alias | exp.Column):
        return str(node.alias_or_name), True
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower().removeprefix(CALL), True
    if isinstance(node, exp.Dot):
        called_by = node.expression
        if isinstance(called_by, exp.Anonymous):
            return _name(called_by)
        return (str(called_by.name), True)
    if isinstance(node, exp.Cast):
        inner, good = _name(node.this)
        return (inner, True) if good else (type_in_cast(node.args["to"]).removeprefix("_"), False)
    if isinstance(node, exp.Case):
        inner, good = _name(node.args.get("default"))
        return (inner, True) if good else ("case", False)
    if isinstance(node, exp.Window | exp.Filter | exp.Paren | exp.Bracket | exp.Collate):
        return _name(node.this)
    if isinstance(node, exp.Subquery):
        first = (
            node.this.selects[0] if isinstance(node.this, exp.Query) and node.this.selects else None
        )
        return _name(first)
    return next(
        ((name, True) for kind, name in _OUTPUT_NAMES if isinstance(node, kind)),
        ("?column?", False),
    )


_OUTPUT_NAMES: tuple[tuple[type[exp.Expression], str], ...] = (
    (exp.Exists, "exists"),
    (exp.Array, "array"),
    (exp.CurrentUser, "current_user"),
    (exp.SessionUser, "session_user"),
    (exp.CurrentSchema, "current_schema"),
    (exp.CurrentCatalog, "current_catalog"),
    (exp.CurrentDatabase, "current_database"),
    (exp.CurrentDate, "current_date"),
    (exp.CurrentTimestamp, "current_timestamp"),
    (exp.Substring, "substring"),
    (exp.Trim, "btrim"),
    (exp.StrPosition, "position"),
    (exp.Extract, "extract"),
)
