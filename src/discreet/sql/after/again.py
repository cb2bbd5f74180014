"""The same statement on noise that is drawn again: how it is asked of many tables at once (S11).

Some columns are computed from several noisy rows: a share of a total, a difference to the row before, a running sum, a
quotient of two tables' numbers. Their margin is found by changing the noisy numbers and computing the statement again.
Here the statement is written so that one run answers all changes: each noisy table has a column that numbers the
change, rows meet only within one change, and so do windows, groups and subqueries.

Not everything that can be computed has a margin that can be found so. Each column is of one `Kind`:

    PUBLIC     the same whatever the noise
    STRAIGHT   linear in the noise: sums, differences, running totals
    SMOOTH     computed from straight ones row by row: quotients, products, logarithms
    UNKNOWN    all else. A rank, a maximum, a count of rows that pass a noisy filter, or a sum of quotients: noise
               moves these to one side, and drawing it again around noisy numbers does not show how far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from sqlglot import exp

from discreet.policy.declaration import HIDDEN

DRAW = "#draw"  # the column that numbers the changes
DRAWS = f"{HIDDEN}draws"  # the table of all of them
_MARGIN = "#margin "


class Kind(IntEnum):
    """How a column depends on noise."""

    PUBLIC = 0
    STRAIGHT = 1
    SMOOTH = 2
    UNKNOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """A statement over noisy tables with a column `DRAW`, and what is known of its columns.

    It gives all columns of the answer, then `value(i)` for each of `wanted` as an unrounded number, then `DRAW`.
    """

    sql: str
    kinds: tuple[Kind, ...]
    wanted: tuple[int, ...]
    slacks: Mapping[int, float]  # how far rounding can move a column beyond its margin


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A noisy table: the kinds of its columns, and whether a threshold decides which rows it has."""

    kinds: Mapping[str, Kind]
    selected: bool


def value(column: int) -> str:
    return f"#value {column}"


def again(
    tree: exp.Select, measured: Sequence[bool], tables: Mapping[str, Measured]
) -> tuple[tuple[Kind, ...], Again | None]:
    """The kinds of a statement's columns, and the statement that finds the margins of those that have none yet.

    `tables` are the noisy ones.
    """
    walk = _Walk(tables=tables)
    found = walk.select(tree.copy(), outermost=True)
    kinds = tuple(found.kinds[: len(measured)])
    wanted = tuple(
        index
        for index, (kind, has) in enumerate(zip(kinds, measured, strict=True))
        if kind in (Kind.STRAIGHT, Kind.SMOOTH) and not has
    )
    if not wanted or not walk.possible or not found.noisy:
        return kinds, None
    slacks = {}
    for index in wanted:
        inner, slacks[index] = _unrounded(found.tree.expressions[index])
        shown = exp.cast(inner.copy(), "DOUBLE")
        found.tree.append("expressions", exp.alias_(shown, value(index), quoted=True))
    items = found.tree.expressions
    place = next(index for index, item in enumerate(items) if item.alias == DRAW)
    items.append(items.pop(place))
    statement = found.tree.sql(dialect="duckdb", comments=False)
    return kinds, Again(sql=statement, kinds=kinds, wanted=wanted, slacks=slacks)


# --- one SELECT -------------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _Table:
    """A table that is read: the kinds of its columns by name, and whether it has the column `DRAW`."""

    tree: exp.Expression
    names: list[str]
    kinds: list[Kind]
    noisy: bool
    selected: bool = False  # which rows there are is for noise to decide

    def kind(self, name: str) -> Kind | None:
        for own, kind in zip(self.names, self.kinds, strict=True):
            if own.lower() == name.lower():
                return kind
        return None


@dataclass(slots=True, kw_only=True)
class _Scope:
    """What names mean within one SELECT."""

    sources: dict[str, _Table] = field(default_factory=dict)
    aliases: dict[str, Kind] = field(default_factory=dict)
    subqueries: dict[int, _Table] = field(default_factory=dict)
    selected: bool = False

    def column(self, node: exp.Column) -> Kind:
        for alias, source in self.sources.items():
            if node.table.lower() in ("", alias):
                kind = source.kind(node.name)
                if kind is not None:
                    return kind
        return self.aliases.get(node.name.lower(), Kind.UNKNOWN)


@dataclass(slots=True, kw_only=True)
class _Walk:
    tables: Mapping[str, Measured]
    possible: bool = True  # whether all of it could be written for several changes at once

    def query(self, node: exp.Expression) -> _Table:
        while isinstance(node, exp.Subquery) and not node.args.get("joins"):
            node = node.this
        if isinstance(node, exp.Select):
            return self.select(node)
        if type(node) is exp.Union:
            return self._union(node)
        self.possible = False
        return _Table(tree=node, names=[], kinds=[], noisy=True, selected=True)

    def _union(self, node: exp.Union) -> _Table:
        left, right = self.query(node.this), self.query(node.expression)
        both = zip(left.kinds, right.kinds, strict=True)
        kinds = [max(pair) for pair in both] if len(left.kinds) == len(right.kinds) else []
        if node.args.get("distinct") or left.noisy != right.noisy or node.args.get("limit"):
            self.possible = False
        tree = exp.Union(this=left.tree, expression=right.tree, distinct=False)
        return _Table(
            tree=tree,
            names=left.names,
            kinds=kinds,
            noisy=left.noisy or right.noisy,
            selected=left.selected or right.selected,
        )

    def select(self, node: exp.Select, *, outermost: bool = False) -> _Table:
        """A SELECT, written for many changes at once if it reads noisy tables. The node is changed."""
        node.set("expressions", [each for each in node.expressions if not each.alias_or_name.startswith(_MARGIN)])
        scope = _Scope()
        self._read(node, scope)
        self._embed(node, scope)
        noisy = any(each.noisy for each in (*scope.sources.values(), *scope.subqueries.values()))
        draw = self._draw(node, scope) if noisy else None
        grouped = _is_grouped(node)
        self._filter(node, scope, grouped=grouped, outermost=outermost)
        kinds = [_kind(item, scope) for item in node.expressions]
        names = [item.alias_or_name for item in node.expressions]
        scope.aliases = {name.lower(): kind for name, kind in zip(names, kinds, strict=True)}
        if self._by_noise(node, scope):
            kinds = [Kind.UNKNOWN for _ in kinds]
        if node.args.get("distinct") or (not outermost and (node.args.get("limit") or node.args.get("offset"))):
            self.possible = self.possible and not noisy
            scope.selected = scope.selected or noisy
        for clause in ("order", "limit", "offset") if outermost or noisy else ():
            node.set(clause, None)
        if draw is not None:
            self._partition(node, draw, grouped=grouped)
        return _Table(tree=node, names=names, kinds=kinds, noisy=noisy, selected=scope.selected)

    # --- FROM ---------------------------------------------------------------------------------------------------------

    def _read(self, node: exp.Select, scope: _Scope) -> None:
        clause = node.args.get("from_")
        if clause is None:
            return
        clause.set("this", self._source(clause.this, scope))
        for join in node.args.get("joins") or []:
            join.set("this", self._source(join.this, scope))

    def _source(self, node: exp.Expression, scope: _Scope) -> exp.Expression:
        alias = node.alias_or_name
        if isinstance(node, exp.Table):
            known = self.tables.get(node.name)
            table: _Table = _Public(tree=node, names=[], kinds=[], noisy=False)
            if known is not None:
                names, kinds = list(known.kinds), list(known.kinds.values())
                table = _Table(tree=node, names=names, kinds=kinds, noisy=True, selected=known.selected)
        else:
            table = self.query(node)
            node = exp.Subquery(this=table.tree, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
        scope.sources[alias.lower()] = table
        scope.selected = scope.selected or table.selected
        return node

    def _draw(self, node: exp.Select, scope: _Scope) -> exp.Expression:
        """The number of the change in a row; rows of several tables meet within one."""
        aliases = list(scope.sources)
        joins = node.args.get("joins") or []
        if any(str(join.args.get("side") or "").upper() in ("RIGHT", "FULL") for join in joins):
            self.possible = False
        noisy = [alias for alias in aliases if scope.sources[alias].noisy]
        if not noisy or (joins and not scope.sources[aliases[0]].noisy and _has_outer(joins)):
            return self._all_draws(node, aliases, joins)
        draw = exp.column(DRAW, table=noisy[0], quoted=True)
        reached = scope.sources[aliases[0]].noisy
        for alias, join in zip(aliases[1:], joins, strict=True):
            if scope.sources[alias].noisy and reached:
                _meet(join, exp.column(DRAW, table=alias, quoted=True), draw)
            reached = reached or scope.sources[alias].noisy
        return draw

    def _all_draws(self, node: exp.Select, aliases: Sequence[str], joins: Sequence[exp.Join]) -> exp.Expression:
        """Of a SELECT that begins with no noisy table: every row for every change."""
        if joins:
            self.possible = False
        table = exp.alias_(exp.table_(DRAWS, quoted=True), "#all", quoted=True, table=True)
        if aliases:
            node.append("joins", exp.Join(this=table, kind="CROSS"))
        else:
            node.set("from_", exp.From(this=table))
        return exp.column(DRAW, table="#all", quoted=True)

    # --- the other clauses --------------------------------------------------------------------------------------------

    def _embed(self, node: exp.Select, scope: _Scope) -> None:
        """Subqueries that stand as values: each is asked within the change of the row around it."""
        for each in list(_inside(node)):
            if not isinstance(each, exp.Subquery):
                continue
            table = self.query(each)
            inner: exp.Expression = table.tree
            if table.noisy:
                names = [exp.column(name, table="#sub", quoted=True) for name in table.names]
                alias = exp.TableAlias(this=exp.to_identifier("#sub", quoted=True))
                inner = exp.select(*names).from_(exp.Subquery(this=table.tree, alias=alias))
            new = exp.Subquery(this=inner)
            each.replace(new)
            scope.subqueries[id(new)] = table

    def _filter(self, node: exp.Select, scope: _Scope, *, grouped: bool, outermost: bool) -> None:
        """Which rows there are. The last SELECT's own filters only choose among rows: margins hold before that."""
        windows = any(isinstance(each, exp.Window) for each in _inside(node))
        for join in node.args.get("joins") or []:
            if join.args.get("on") is not None and _kind(join.args["on"], scope, draws=True) is not Kind.PUBLIC:
                scope.selected = True
        for clause in ("where", "having", "qualify"):
            part = node.args.get(clause)
            if part is None or _kind(part.this, scope) is Kind.PUBLIC:
                continue
            free = {"where": not grouped and not windows, "having": not windows, "qualify": True}[clause]
            if outermost and free:
                node.set(clause, None)
            elif clause == "qualify":
                self.possible = False
                scope.selected = True
            else:
                scope.selected = True

    @staticmethod
    def _by_noise(node: exp.Select, scope: _Scope) -> bool:
        """Whether noise decides which groups there are."""
        group = node.args.get("group")
        if group is None:
            return False
        items = node.expressions
        for each in group.expressions:
            named = isinstance(each, exp.Literal) and each.this.isdigit() and int(each.this) <= len(items)
            if _kind(items[int(each.this) - 1] if named else each, scope) is not Kind.PUBLIC:
                return True
        return any(part for name, part in group.args.items() if name != "expressions")

    def _partition(self, node: exp.Select, draw: exp.Expression, *, grouped: bool) -> None:
        """Windows, groups and subqueries stay within one change."""
        for each in list(_inside(node)):
            if isinstance(each, exp.Window):
                each.append("partition_by", draw.copy())
            elif isinstance(each, exp.Subquery) and isinstance(each.this, exp.Select):
                own = each.this.args.get("from_")
                if own is not None and own.this.alias == "#sub":
                    inner = exp.column(DRAW, table="#sub", quoted=True)
                    each.this.where(exp.EQ(this=inner, expression=draw.copy()), copy=False)
        if grouped:
            group = node.args.get("group") or exp.Group(expressions=[])
            group.append("expressions", draw.copy())
            node.set("group", group)
        node.append("expressions", exp.alias_(draw.copy(), DRAW, quoted=True))


@dataclass(slots=True, kw_only=True)
class _Public(_Table):
    """A public table: whatever its columns are called."""

    def kind(self, name: str) -> Kind | None:
        return Kind.PUBLIC


def _has_outer(joins: Sequence[exp.Join]) -> bool:
    return any(join.args.get("side") for join in joins)


def _meet(join: exp.Join, own: exp.Column, draw: exp.Expression) -> None:
    if join.args.get("using"):
        join.append("using", exp.to_identifier(DRAW, quoted=True))
        return
    if str(join.args.get("kind") or "").upper() == "CROSS":
        join.set("kind", None)
    same = exp.EQ(this=own, expression=draw.copy())
    on = join.args.get("on")
    join.set("on", same if on is None else exp.and_(on.copy(), same))


def _inside(node: exp.Select) -> Iterator[exp.Expression]:
    """All nodes of a SELECT but its tables; of subqueries only the outermost node."""
    parts = [*node.expressions, *(join.args.get("on") for join in node.args.get("joins") or [])]
    parts += [node.args.get(name) for name in ("where", "group", "having", "qualify", "order")]
    for part in parts:
        if part is not None:
            yield from part.walk(prune=lambda each: isinstance(each, exp.Subquery | exp.Select))


def _is_grouped(node: exp.Select) -> bool:
    return node.args.get("group") is not None or any(
        isinstance(each, exp.AggFunc) and not _windowed(each)
        for part in (*node.expressions, node.args.get("having"))
        if part is not None
        for each in part.walk(prune=lambda inner: isinstance(inner, exp.Subquery | exp.Select))
    )


def _windowed(node: exp.Expression) -> bool:
    parent = node.parent
    while isinstance(parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        parent = parent.parent
    return isinstance(parent, exp.Window)


# --- kinds ------------------------------------------------------------------------------------------------------------

_THROUGH = (exp.Paren, exp.Alias, exp.Try, exp.Neg, exp.Distinct)
_BENT = (exp.Sqrt, exp.Ln, exp.Log, exp.Exp)
_FROM_ANOTHER_ROW = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue)
_NUMBERED = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile)


def _kind(node: Any, scope: _Scope, *, draws: bool = False) -> Kind:
    """How an expression depends on noise."""

    def of(part: Any) -> Kind:
        return _kind(part, scope, draws=draws)

    def most(parts: Sequence[Any]) -> Kind:
        return max((of(part) for part in parts if isinstance(part, exp.Expression)), default=Kind.PUBLIC)

    match node:
        case exp.Column():
            return Kind.PUBLIC if draws and node.name == DRAW else scope.column(node)
        case exp.Subquery():
            table = scope.subqueries.get(id(node))
            if table is None or table.selected or len(table.kinds) != 1:
                return Kind.UNKNOWN if table is None or table.noisy else Kind.PUBLIC
            return table.kinds[0]
        case exp.Window():
            return _windowed_kind(node, scope)
        case exp.Add() | exp.Sub() | exp.Coalesce():
            return most([node.this, *([node.expression] if node.args.get("expression") else node.expressions)])
        case exp.Mul():
            left, right = of(node.this), of(node.expression)
            return max(left, right, Kind.SMOOTH if left and right else Kind.PUBLIC)
        case exp.Div():
            below = of(node.expression)
            return max(of(node.this), below, Kind.SMOOTH if below else Kind.PUBLIC)
        case exp.Nullif():
            return of(node.this) if of(node.expression) is Kind.PUBLIC else Kind.UNKNOWN
        case exp.Cast() if _to_double(node):
            return of(node.this)
        case exp.Case() | exp.If():
            return _case_kind(node, of)
        case exp.Filter():
            return of(node.this) if of(node.expression.this) is Kind.PUBLIC else Kind.UNKNOWN
        case exp.AggFunc():
            return _aggregate_kind(node, scope, of)
    inner, _ = _unrounded(node)
    if inner is not node:
        return (
            of(inner)
            if not isinstance(node.parent, exp.Expression) or _is_item(node)
            else max(Kind.PUBLIC if of(inner) is Kind.PUBLIC else Kind.UNKNOWN, of(inner))
        )
    if isinstance(node, _THROUGH):
        return of(node.this) if isinstance(node.this, exp.Expression) else most(node.expressions)
    if isinstance(node, _BENT):
        parts = most(list(_children(node)))
        return max(parts, Kind.SMOOTH) if parts else parts
    return Kind.PUBLIC if most(list(_children(node))) is Kind.PUBLIC else Kind.UNKNOWN


def _children(node: exp.Expression) -> Iterator[exp.Expression]:
    for part in node.args.values():
        yield from (each for each in (part if isinstance(part, list) else [part]) if isinstance(each, exp.Expression))


def _is_item(node: exp.Expression) -> bool:
    """Whether it is a whole item of a SELECT list."""
    parent = node.parent
    while isinstance(parent, exp.Alias | exp.Paren):
        parent = parent.parent
    return isinstance(parent, exp.Select)


def _windowed_kind(node: exp.Window, scope: _Scope) -> Kind:
    order = node.args.get("order")
    around = [*(node.args.get("partition_by") or []), *(each.this for each in (order.expressions if order else []))]
    function = node.this
    if scope.selected or any(_kind(part, scope) is not Kind.PUBLIC for part in around):
        return Kind.UNKNOWN
    if isinstance(function, _NUMBERED):
        return Kind.PUBLIC
    if isinstance(function, _FROM_ANOTHER_ROW):
        parts = [_kind(part, scope) for part in _children(function)]
        return max(parts, default=Kind.PUBLIC)
    return _kind(function, scope)


def _aggregate_kind(node: exp.AggFunc, scope: _Scope, of: Callable[[Any], Kind]) -> Kind:
    """Sums and means of straight numbers are straight, over rows that noise does not choose."""
    parts = [of(part) for part in _children(node)]
    kind = max(parts, default=Kind.PUBLIC)
    if scope.selected:
        return Kind.UNKNOWN
    if isinstance(node, exp.Sum | exp.Avg) and not node.find(exp.Distinct):
        return kind if kind <= Kind.STRAIGHT else Kind.UNKNOWN
    if isinstance(node, exp.First) or kind is Kind.PUBLIC:
        return kind
    return Kind.PUBLIC if isinstance(node, exp.Count) and not node.find(exp.Distinct) else Kind.UNKNOWN


def _case_kind(node: exp.Case | exp.If, of: Callable[[Any], Kind]) -> Kind:
    """Public conditions choose between rows. One about a noisy number may guard what is only computed beyond zero."""
    branches = node.args.get("ifs") or [node]
    values = [each.args["true"] for each in branches]
    last = node.args.get("default") if isinstance(node, exp.Case) else node.args.get("false")
    values += [last] if last is not None else []
    kinds = max(of(each) for each in values)
    conditions = [each.this for each in branches]
    if isinstance(node, exp.Case) and node.this is not None:
        return kinds if of(node.this) is Kind.PUBLIC else Kind.UNKNOWN
    if all(of(each) is Kind.PUBLIC for each in conditions):
        return kinds
    plain = all(isinstance(each, exp.Literal | exp.Null) for each in values if of(each) is Kind.PUBLIC)
    guards = all(of(each) is Kind.PUBLIC or _about_zero(each, of) for each in conditions)
    return max(kinds, Kind.SMOOTH) if plain and guards and kinds else Kind.UNKNOWN


def _about_zero(node: exp.Expression, of: Callable[[Any], Kind]) -> bool:
    """x = 0, x <> 0, or x > 0 before a root or a logarithm: a number that noise may take past zero has no margin."""
    if not isinstance(node, exp.EQ | exp.NEQ | exp.GT | exp.GTE):
        return False
    zero = isinstance(node.expression, exp.Literal) and node.expression.name in ("0", "0.0")
    return zero and of(node.this) in (Kind.STRAIGHT, Kind.SMOOTH)


def _to_double(node: exp.Cast) -> bool:
    return str(getattr(node.args["to"].this, "value", "")) in ("DOUBLE", "FLOAT")


_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT", "INT128")


def _unrounded(node: exp.Expression) -> tuple[exp.Expression, float]:
    """What stands under roundings, and how far they take it from that in all."""
    slack = 0.0
    while True:
        step: float | None = None
        if isinstance(node, exp.Alias | exp.Paren):
            step = 0.0
        elif isinstance(node, exp.Floor | exp.Ceil) and node.args.get("decimals") is None:
            step = 1.0
        elif isinstance(node, exp.Round) and not node.args.get("truncate"):
            digits = node.args.get("decimals")
            plain = digits is None or (isinstance(digits, exp.Literal) and digits.name.isdigit())
            step = 10.0 ** -int(digits.name if digits is not None else 0) if plain else None
        elif isinstance(node, exp.Cast):
            step = _cast_step(node)
        if step is None:
            return node, slack
        slack += step
        node = node.this


def _cast_step(node: exp.Cast) -> float | None:
    kind = node.args["to"]
    name = str(getattr(kind.this, "value", ""))
    if _to_double(node):
        return 0.0
    if name in _WHOLE:
        return 1.0
    sizes = [each.this.name for each in kind.expressions] if name == "DECIMAL" else []
    return 10.0 ** -int(sizes[1]) if len(sizes) == 2 and sizes[1].isdigit() else None
