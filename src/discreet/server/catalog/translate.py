"""A client's statement, written anew for the catalog's own database, in a closed vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp

from discreet.server.catalog import types
from discreet.server.catalog.calls import Calls
from discreet.server.catalog.failure import CatalogError, not_supported, unknown_function
from discreet.server.catalog.functions import AS_TABLES
from discreet.server.catalog.kinds import (
    SYSTEM_COLUMNS,
    Kinds,
    number_of,
    output_name,
    table_function,
)
from discreet.server.catalog.literals import array_of, literal, number, text, unescape
from discreet.server.catalog.parse import CALL, relation_of
from discreet.server.catalog.tables.builtin import INFORMATION_SCHEMA, PG_CATALOG, Relation

PER_SESSION = (
    "pg_settings",
    "pg_roles",
    "pg_user",
    "pg_stat_activity",
    "pg_stat_ssl",
    "pg_stat_gssapi",
)
# Nodes that mean the same here and there, or that are rewritten below.
_NODES = """
Add Alias And Between Boolean Case CTE Distinct Div EQ Except Exists Filter From GT GTE Group Having
Identifier If ILike In Intersect Is IntDiv Join LT LTE Lateral Like Escape Limit Literal Mod Mul NEQ Neg Not Null
NullSafeEQ NullSafeNEQ Offset Or Order Ordered Paren Select SimilarTo Slice Star Sub Subquery Tuple Union
Values Where Window WindowSpec With TableAlias RegexpLike RegexpILike Column Table Cast DataType Anonymous
Dot Array Bracket DPipe Collate Operator Parameter Any ByteString ObjectIdentifier DataTypeParam Var
CurrentUser SessionUser CurrentSchema CurrentCatalog CurrentDatabase CurrentDate CurrentTimestamp Substring Trim
StrPosition Extract BitwiseAnd BitwiseOr BitwiseXor BitwiseNot AtTimeZone
Fetch Cube Rollup GroupingSets National RawString Interval
"""
_VOCABULARY = frozenset(_NODES.split())
_OPERATORS: dict[str, Callable[[Any, Any], exp.Expression]] = {
    "~": lambda a, b: exp.RegexpLike(this=a, expression=b),
    "~*": lambda a, b: exp.RegexpILike(this=a, expression=b),
    "!~": lambda a, b: exp.Not(this=exp.RegexpLike(this=a, expression=b)),
    "!~*": lambda a, b: exp.Not(this=exp.RegexpILike(this=a, expression=b)),
    "=": lambda a, b: exp.EQ(this=a, expression=b),
    "<>": lambda a, b: exp.NEQ(this=a, expression=b),
    "~~": lambda a, b: exp.Like(this=a, expression=b),
    "!~~": lambda a, b: exp.Not(this=exp.Like(this=a, expression=b)),
    "~~*": lambda a, b: exp.ILike(this=a, expression=b),
    "||": lambda a, b: exp.DPipe(this=a, expression=b),
}
_MOST_ITEMS = 1_000  # of an array that is written out; of one that is computed, a tenth


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """SQL for the catalog's database, the relations it reads, and the types of columns and
    parameters, if known.
    """

    sql: str
    reads: frozenset[str]
    kinds: tuple[str | None, ...]
    by_name: Mapping[str, str | None]
    parameters: tuple[str, ...]


def translate(
    tree: exp.Query,
    *,
    database: str,
    session: Mapping[str, str],
    objects: Mapping[str, Mapping[str, int]],
    parameters: Sequence[object] | None,
    given: Sequence[int] = (),
) -> Translation:
    """Write a statement anew for the catalog's database.

    `session` has literals for {user}, {database}, ...; `objects` the numbers of regclass, regtype,
    ... by name. Without `parameters` they are NULL: enough to learn the columns.
    """
    kinds = Kinds(tree, database=database, given=given)
    columns = kinds.projected(tree)
    starred = any(
        item.is_star for select in tree.find_all(exp.Select) for item in select.expressions
    )
    for node in tree.walk():
        kinds.of(node)
    rewriter = _Rewriter(
        kinds, database=database, session=session, objects=objects, parameters=parameters
    )
    made = rewriter.rewrite(tree)
    most = max(kinds.parameters, default=0)
    return Translation(
        sql=made.sql(dialect="duckdb", comments=False),
        reads=frozenset(rewriter.reads),
        kinds=() if starred else tuple(columns.values()),
        by_name=columns,
        parameters=tuple(kinds.parameters.get(place, "text") for place in range(1, most + 1)),
    )


class _Rewriter:
    """Rewrites a tree from its leaves to its root."""

    def __init__(
        self,
        kinds: Kinds,
        *,
        database: str,
        session: Mapping[str, str],
        objects: Mapping[str, Mapping[str, int]],
        parameters: Sequence[object] | None,
    ) -> None:
        self._kinds = kinds
        self._database = database
        self._objects = objects
        self._parameters = parameters
        self._calls = Calls(kinds, session)
        self.reads = self._calls.reads

    def rewrite(self, tree: exp.Query) -> exp.Query:
        root = exp.Paren(this=tree)
        for node in reversed(list(tree.walk(bfs=False))):
            name = type(node).__name__
            if name not in _VOCABULARY:
                what = node.sql_name().lower() if isinstance(node, exp.Func) else name
                raise unknown_function(what) if isinstance(node, exp.Func) else not_supported(what)
            handle = getattr(self, f"_{name.lower()}", None)
            if handle is None:
                continue
            kind = self._kinds.of(node)
            made = handle(node)
            if made is not None and made is not node:
                self._kinds.set(made, kind)
                node.replace(made)
        found = root.this
        assert isinstance(found, exp.Query)
        return found

    # --- names and places -------------------------------------------------------------------------

    def _identifier(self, node: exp.Identifier) -> exp.Expression | None:
        if not node.args.get("quoted"):
            node.set("this", str(node.this).lower())
            node.set("quoted", True)
        return None

    def _select(self, node: exp.Select) -> exp.Expression | None:
        node.set("locks", None)
        return None

    def _column(self, node: exp.Column) -> exp.Expression | None:
        name = node.name.lower()
        if name in SYSTEM_COLUMNS:
            source = self._kinds.source_of(node)
            if not isinstance(source, Relation):
                return None if source else number(0)
            if name == "tableoid":
                return number(source.oid)
            if name != "ctid":
                return number(1)
            return text("(0,1)")
        node.set("db", None)
        node.set("catalog", None)
        return None

    def _dot(self, node: exp.Dot) -> exp.Expression | None:
        right = node.expression
        if node.this.name.lower() in (PG_CATALOG, INFORMATION_SCHEMA) and not isinstance(
            right, exp.Identifier
        ):
            return right.copy() if not isinstance(right, exp.Anonymous) else right
        return None

    def _table(self, node: exp.Table) -> exp.Expression | None:
        if isinstance(node.this, exp.Identifier):
            relation = relation_of(node, self._database)
            if relation is None:
                return None  # named by WITH
            return self._read(relation.stored, relation.name, node)
        call = table_function(node)
        if call is not None and call.name.lower() in AS_TABLES:  # left as it is by _anonymous
            return self._read(AS_TABLES[call.name.lower()], call.name.lower(), node)
        return self._rows_of(node)

    def _read(self, stored: str, name: str, node: exp.Table) -> exp.Expression:
        self.reads.add(stored)
        place = exp.Table(this=exp.to_identifier(stored, quoted=True))
        if stored not in PER_SESSION:
            place.set("db", exp.to_identifier("main", quoted=True))
        place.set(
            "alias",
            node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name, quoted=True)),
        )
        place.set("joins", node.args.get("joins"))
        return place

    def _rows_of(self, node: exp.Table | exp.Lateral) -> exp.Expression | None:
        """Write a call where a table may stand as a SELECT of it, named as Postgres names it."""
        call = node.this.expression if isinstance(node.this, exp.Dot) else node.this
        if isinstance(call, exp.Subquery | exp.Query):
            return None
        alias = node.args.get("alias")
        given = (
            [column.copy() for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
        )
        name = alias.this.copy() if isinstance(alias, exp.TableAlias) and alias.this else None
        made_from = call.args.get("was") or output_name(call)
        name = name or exp.to_identifier(str(made_from), quoted=True)
        calls = [call]
        if call.name == "unnest" and len(call.expressions) > 1:  # side by side
            calls = [
                exp.Anonymous(this="unnest", expressions=[each.copy()]) for each in call.expressions
            ]
        columns = [*given, *[name] * (len(calls) - len(given))]
        named = [
            exp.alias_(each.copy(), column.copy(), quoted=True)
            for each, column in zip(calls, columns, strict=False)
        ]
        inner = exp.Select(expressions=named)
        if node.args.get("ordinality"):
            number = sqlglot.parse_one("row_number() OVER ()", dialect="duckdb")
            second = (
                given[-1]
                if len(given) > len(calls)
                else exp.to_identifier("ordinality", quoted=True)
            )
            once = exp.Subquery(
                this=inner, alias=exp.TableAlias(this=exp.to_identifier("numbered", quoted=True))
            )
            inner = exp.Select(
                expressions=[exp.Star(), exp.alias_(number, second.copy(), quoted=True)],
                from_=exp.From(this=once),
            )
        made = exp.Subquery(this=inner, alias=exp.TableAlias(this=name))
        lateral = next(call.find_all(exp.Column), None) is not None
        wrapped = (
            exp.Lateral(this=exp.Subquery(this=inner), alias=exp.TableAlias(this=name))
            if lateral
            else made
        )
        wrapped.set("joins", node.args.get("joins"))
        return wrapped

    def _lateral(self, node: exp.Lateral) -> exp.Expression | None:
        return self._rows_of(node)

    # --- values -----------------------------------------------------------------------------------

    def _bytestring(self, node: exp.ByteString) -> exp.Expression:
        return text(unescape(str(node.this)))

    def _parameter(self, node: exp.Parameter) -> exp.Expression:
        place = number_of(node)
        kind = self._kinds.parameters.get(place, "text")
        if self._parameters is None:
            value: object = None
        elif place <= len(self._parameters):
            value = self._parameters[place - 1]
        else:
            raise CatalogError(
                "08P01", f"the statement needs parameter ${place}, which was not given"
            )
        if kind in types.REFERENCES and isinstance(value, str):
            return self._look_up(value, kind)
        return literal(value, kind)

    def _currentuser(self, node: exp.Expression) -> exp.Expression:
        return self._calls.fill("{user}", [])

    _sessionuser = _currentuser

    def _currentschema(self, node: exp.Expression) -> exp.Expression:
        return text("public")

    def _currentdatabase(self, node: exp.Expression) -> exp.Expression:
        return self._calls.fill("{database}", [])

    _currentcatalog = _currentdatabase

    def _currenttimestamp(self, node: exp.Expression) -> exp.Expression:
        return self._calls.fill("{moment}", [])

    def _currentdate(self, node: exp.Expression) -> exp.Expression:
        return self._calls.fill("CAST({moment} AS DATE)", [])

    def _interval(self, node: exp.Interval) -> exp.Expression:
        raise not_supported("an interval")

    # --- operators --------------------------------------------------------------------------------

    def _attimezone(self, node: exp.AtTimeZone) -> exp.Expression:
        """Drop AT TIME ZONE: all times are in UTC."""
        return node.this

    def _collate(self, node: exp.Collate) -> exp.Expression:
        return node.this

    def _operator(self, node: exp.Operator) -> exp.Expression:
        sign = str(node.args["operator"]).split(".")[-1].strip()
        if sign not in _OPERATORS:
            raise CatalogError("42883", f"operator {sign} does not exist here")
        return _OPERATORS[sign](node.this, node.expression)

    def _dpipe(self, node: exp.DPipe) -> exp.Expression:
        left, right = node.this, node.expression
        kinds = [self._kinds.of(left) or "", self._kinds.of(right) or ""]
        if any(types.element(kind) for kind in kinds):
            sides = [
                side if types.element(kind) else exp.Array(expressions=[side])
                for side, kind in zip((left, right), kinds, strict=True)
            ]
            return self._calls.grow(exp.Anonymous(this="list_concat", expressions=sides), "d_few")
        parts = [
            self._calls.as_text(side, kind) for side, kind in zip((left, right), kinds, strict=True)
        ]
        made = exp.DPipe(this=parts[0], expression=parts[1], safe=True)
        # of a longer chain, which is looked at as a whole
        inside = isinstance(node.parent, exp.DPipe)
        return made if inside or _constant(node) else self._calls.grow(made, "d_joined")

    def _bracket(self, node: exp.Bracket) -> exp.Expression | None:
        """Index an array from 1, and a vector of a catalog from 0."""
        whole = self._kinds.of(node.this)
        if whole in types.VECTORS and len(node.expressions) == 1:
            place = node.expressions[0]
            node.set("expressions", [exp.Add(this=exp.Paren(this=place), expression=number(1))])
        return None

    def _array(self, node: exp.Array) -> exp.Expression | None:
        inner = node.expressions[0] if len(node.expressions) == 1 else None
        if isinstance(inner, exp.Subquery):
            inner = inner.this
        if isinstance(inner, exp.Query):
            return exp.Anonymous(this="array", expressions=[inner])
        if len(node.expressions) > (_MOST_ITEMS if _constant(node) else _MOST_ITEMS // 10):
            raise CatalogError(
                "54000", "The statement has an array that is too long.", hint="Split it."
            )
        return None

    def _eq(self, node: exp.EQ) -> exp.Expression | None:
        return self._compare(node)

    def _neq(self, node: exp.NEQ) -> exp.Expression | None:
        return self._compare(node)

    def _compare(self, node: exp.Binary) -> exp.Expression | None:
        left, right = node.this, node.expression
        if isinstance(left, exp.Any):
            left, right = right, left
        everyone = isinstance(right, exp.Anonymous) and right.name.lower() == "all"
        if isinstance(right, exp.Any) or everyone:
            return self._in_array(
                node, left, right.expressions[0] if everyone else right.this, everyone
            )
        for one, other in ((left, right), (right, left)):
            kind = self._kinds.of(other)
            if isinstance(one, exp.Literal) and one.is_string and kind and types.element(kind):
                one.replace(array_of(str(one.this), kind))
                break
        return None

    def _in_array(
        self, node: exp.Binary, one: exp.Expression, many: exp.Expression, every: bool
    ) -> exp.Expression:
        while isinstance(many, exp.Paren):
            many = many.this
        if isinstance(many, exp.Query) or (
            isinstance(many, exp.Subquery) and isinstance(many.this, exp.Query)
        ):
            query = many if isinstance(many, exp.Subquery) else exp.Subquery(this=many)
            found: exp.Expression = exp.In(this=one, query=query)
        else:
            if isinstance(many, exp.Literal) and many.is_string:
                kind = self._kinds.of(one)
                many = array_of(str(many.this), f"_{'text' if kind in (None, 'unknown') else kind}")
            found = exp.Anonymous(this="list_contains", expressions=[many, one])
        if isinstance(node, exp.EQ) and not every:
            return found
        if isinstance(node, exp.NEQ) and every:
            return exp.Not(this=exp.Paren(this=found))
        raise not_supported("this comparison with ANY or ALL")

    def _div(self, node: exp.Div) -> exp.Expression | None:
        whole = {"int2", "int4", "int8", "oid"}
        if {self._kinds.of(node.this), self._kinds.of(node.expression)} <= whole:
            return exp.IntDiv(this=node.this, expression=node.expression)
        return None

    # --- casts ------------------------------------------------------------------------------------

    def _cast(self, node: exp.Cast) -> exp.Expression:
        kind = self._kinds.of(node) or "text"
        inner = node.this
        before = self._kinds.of(inner)
        words = str(inner.this) if isinstance(inner, exp.Literal) and inner.is_string else None
        if kind in types.REFERENCES:
            if words is not None:
                return self._look_up(words, kind)
            if before in types.TEXTS:
                return exp.Anonymous(this=f"d_{kind}", expressions=[inner])
        elif words is not None and types.element(kind):
            return array_of(words, kind)
        elif before == "_regtype" and types.element(kind) in types.TEXTS:
            return exp.Anonymous(this="d_regtypes_text", expressions=[inner])
        elif kind in types.TEXTS:
            return exp.cast(self._calls.as_text(inner, before or ""), "VARCHAR", dialect="duckdb")
        return exp.cast(inner, types.storage_type(kind), dialect="duckdb")

    def _look_up(self, words: str, kind: str) -> exp.Expression:
        """Return the number of the object that a constant names."""
        if words.isdigit():
            return number(int(words))
        known = self._objects.get(kind, {})
        bare = words.strip()
        found = known.get(bare, known.get(bare.lower(), known.get(bare.replace('"', ""))))
        if found is None and kind == "regtype":
            name = types.from_sql(bare)
            found = types.oid(name) if name else None
        if found is None:
            if kind == "regclass":
                state = "42P01"
            elif kind == "regtype":
                state = "42704"
            else:
                state = "42883"
            raise CatalogError(state, f'"{words}" does not exist')
        return number(found)

    # --- functions --------------------------------------------------------------------------------

    def _substring(self, node: exp.Substring) -> exp.Expression:
        start = node.args.get("start")
        if isinstance(start, exp.Literal) and start.is_string:
            return exp.Anonymous(this="d_substring_like", expressions=[node.this, start])
        given = [node.this, start, node.args.get("length")]
        return exp.Anonymous(
            this="substring", expressions=[each for each in given if each is not None]
        )

    def _trim(self, node: exp.Trim) -> exp.Expression:
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(
            str(node.args.get("position") or ""), "trim"
        )
        return exp.Anonymous(
            this=name,
            expressions=[each for each in (node.this, node.expression) if each is not None],
        )

    def _strposition(self, node: exp.StrPosition) -> exp.Expression:
        return exp.Anonymous(this="strpos", expressions=[node.this, node.args["substr"]])

    def _anonymous(self, node: exp.Anonymous) -> exp.Expression | None:
        name = node.name.lower()
        if name == "all" or name == "row":
            return None if name == "all" else exp.Tuple(expressions=node.expressions)
        if not name.startswith(CALL):
            raise unknown_function(name)
        name = name.removeprefix(CALL)
        given = list(node.expressions)
        if name in AS_TABLES:
            if not isinstance(node.find_ancestor(exp.Table, exp.Select), exp.Table):
                raise not_supported(f"{name}() as a value")
            node.set("this", name)
            return None
        return self._calls.call(name, given)


def cancel_backends(
    tree: exp.Query, cancel: Callable[[int], bool], parameters: Sequence[object]
) -> None:
    """Carry out pg_cancel_backend of a constant; put TRUE in its place if there was such a session,
    else FALSE.
    """
    for call in list(tree.find_all(exp.Anonymous)):
        if call.name != f"{CALL}pg_cancel_backend" or len(call.expressions) != 1:
            continue
        given = call.expressions[0]
        value: object = str(given.this) if isinstance(given, exp.Literal) else None
        if isinstance(given, exp.Parameter) and number_of(given) <= len(parameters):
            value = parameters[number_of(given) - 1]
        if str(value).isdigit():
            call.replace(exp.Boolean(this=cancel(int(str(value)))))


def _constant(node: exp.Expression) -> bool:
    return node.find(exp.Column, exp.Anonymous, exp.Query) is None
