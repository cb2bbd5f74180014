"""Rewrite a statement to run on many redrawn noisy tables at once, to see how far noise moves its
answer (S11).

Some columns are computed from several noisy rows: a share of a total, a difference to the row
before, a running sum, a quotient of two tables' numbers. Their margin is found by changing the
noisy numbers and computing the statement again. Here the statement is written so that one run
answers all changes: each noisy table has a column that numbers the change, rows meet only within
one change, and so do windows, groups and subqueries.

Not everything that can be computed has a margin that can be found so: `kinds` tells which.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from discreet.policy.declaration import HIDDEN
from discreet.sql.after import error_bars
from discreet.sql.after.widths.kinds import (
    DRAW,
    Kind,
    PublicRead,
    Read,
    Scope,
    kind_of,
    strip_rounding,
)
from discreet.sql.text.dialect import WRITER

DRAWS = f"{HIDDEN}draws"  # the table of all of them
_MARGIN = "#margin "


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """A statement over noisy tables with a column `DRAW`, and what is known of its columns.

    It gives all columns of the answer, then `value(i)` for each of `wanted` as an unrounded number,
    then `DRAW`.
    """

    sql: str
    kinds: tuple[Kind, ...]
    wanted: tuple[int, ...]
    slacks: Mapping[int, float]  # how far rounding can move a column beyond its margin


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyKinds:
    """A noisy table: the kinds of its columns, and whether a threshold decides which rows it
    has.
    """

    kinds: Mapping[str, Kind]
    selected: bool


def value(column: int) -> str:
    return f"#value {column}"


def again(
    tree: exp.Select, measured: Sequence[bool], tables: Mapping[str, NoisyKinds]
) -> tuple[tuple[Kind, ...], Again | None]:
    """Return the kinds of a statement's columns, and the statement that finds the margins of those
    that have none yet.

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
        inner, slacks[index] = strip_rounding(found.tree.expressions[index])
        shown = exp.cast(inner.copy(), "DOUBLE")
        found.tree.append("expressions", exp.alias_(shown, value(index), quoted=True))
    items = found.tree.expressions
    place = next(index for index, item in enumerate(items) if item.alias == DRAW)
    items.append(items.pop(place))
    statement = found.tree.sql(dialect=WRITER, comments=False)
    return kinds, Again(sql=statement, kinds=kinds, wanted=wanted, slacks=slacks)


# --- one SELECT -----------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _Walk:
    tables: Mapping[str, NoisyKinds]
    possible: bool = True  # whether all of it could be written for several changes at once

    def query(self, node: exp.Expression) -> Read:
        while isinstance(node, exp.Subquery) and not node.args.get("joins"):
            node = node.this
        if isinstance(node, exp.Select):
            return self.select(node)
        if type(node) is exp.Union:
            return self._union(node)
        self.possible = False
        return Read(tree=node, names=[], kinds=[], noisy=True, selected=True)

    def _union(self, node: exp.Union) -> Read:
        left, right = self.query(node.this), self.query(node.expression)
        both = zip(left.kinds, right.kinds, strict=True)
        kinds = [max(pair) for pair in both] if len(left.kinds) == len(right.kinds) else []
        if node.args.get("distinct") or left.noisy != right.noisy or node.args.get("limit"):
            self.possible = False
        tree = exp.Union(this=left.tree, expression=right.tree, distinct=False)
        return Read(
            tree=tree,
            names=left.names,
            kinds=kinds,
            noisy=left.noisy or right.noisy,
            selected=left.selected or right.selected,
        )

    def select(self, node: exp.Select, *, outermost: bool = False) -> Read:
        """Return a SELECT, written for many changes at once if it reads noisy tables. The node is
        changed.
        """
        if not outermost:  # whose columns a question may call as it likes
            _drop_margins(node)
        _drop_half_widths(node)
        scope = Scope()
        self._read(node, scope)
        self._embed(node, scope)
        noisy = any(each.noisy for each in (*scope.sources.values(), *scope.subqueries.values()))
        draw = self._draw(node, scope) if noisy else None
        grouped = _is_grouped(node)
        self._filter(node, scope, grouped=grouped, outermost=outermost)
        kinds = [kind_of(item, scope) for item in node.expressions]
        names = [item.alias_or_name for item in node.expressions]
        scope.aliases = {name.lower(): kind for name, kind in zip(names, kinds, strict=True)}
        if self._by_noise(node, scope):
            kinds = [Kind.UNKNOWN for _ in kinds]
        if noisy:
            self._cut(node, scope, outermost=outermost)
        if draw is not None:
            self._partition(node, draw, grouped=grouped)
        return Read(tree=node, names=names, kinds=kinds, noisy=noisy, selected=scope.selected)

    # --- FROM -------------------------------------------------------------------------------------

    def _read(self, node: exp.Select, scope: Scope) -> None:
        clause = node.args.get("from_")
        if clause is None:
            return
        clause.set("this", self._source(clause.this, scope))
        for join in node.args.get("joins") or []:
            join.set("this", self._source(join.this, scope))

    def _source(self, node: exp.Expression, scope: Scope) -> exp.Expression:
        alias = node.alias_or_name
        if isinstance(node, exp.Table | exp.Values):
            known = self.tables.get(node.name)
            table: Read = PublicRead(tree=node, names=[], kinds=[], noisy=False)
            if known is not None:
                names, kinds = list(known.kinds), list(known.kinds.values())
                table = Read(
                    tree=node, names=names, kinds=kinds, noisy=True, selected=known.selected
                )
        else:
            table = self.query(node)
            node = exp.Subquery(
                this=table.tree, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
            )
        scope.sources[alias.lower()] = table
        scope.selected = scope.selected or table.selected
        return node

    def _draw(self, node: exp.Select, scope: Scope) -> exp.Expression:
        """Return the number of the change in a row; rows of several tables meet within one."""
        aliases = list(scope.sources)
        joins = node.args.get("joins") or []
        if any(str(join.args.get("side") or "").upper() in ("RIGHT", "FULL") for join in joins):
            self.possible = False
        if any(self._may_lack(each, scope) for each in joins):
            self.possible = False
        noisy = [alias for alias in aliases if scope.sources[alias].noisy]
        if not noisy:
            return self._all_draws(node, aliases, joins)
        if not scope.sources[aliases[0]].noisy and _has_outer(joins):
            return self._draws_before(node, scope, joins)
        draw = exp.column(DRAW, table=noisy[0], quoted=True)
        reached = scope.sources[aliases[0]].noisy
        for alias, join in zip(aliases[1:], joins, strict=True):
            if scope.sources[alias].noisy and reached:
                _meet(join, exp.column(DRAW, table=alias, quoted=True), draw)
            reached = reached or scope.sources[alias].noisy
        return draw

    @staticmethod
    def _may_lack(join: exp.Join, scope: Scope) -> bool:
        """Return True if a row may meet nothing because noise hid what it would meet: COALESCE(n, 0)
        is no zero there.
        """
        source = scope.sources[join.this.alias_or_name.lower()]
        return bool(join.args.get("side")) and source.noisy and source.selected

    def _draws_before(
        self, node: exp.Select, scope: Scope, joins: Sequence[exp.Join]
    ) -> exp.Expression:
        """Return the draw of public rows to which noisy tables are joined, whether they meet one or
        not: the days of a calendar.
        """
        draw = exp.column(DRAW, table="#all", quoted=True)
        for join in joins:
            alias = join.this.alias_or_name
            if scope.sources[alias.lower()].noisy:
                _meet(join, exp.column(DRAW, table=alias, quoted=True), draw)
        table = exp.alias_(exp.table_(DRAWS, quoted=True), "#all", quoted=True, table=True)
        node.set("joins", [exp.Join(this=table, kind="CROSS"), *joins])
        return draw

    def _all_draws(
        self, node: exp.Select, aliases: Sequence[str], joins: Sequence[exp.Join]
    ) -> exp.Expression:
        """Return the draw of a SELECT that begins with no noisy table: every row for every
        change.
        """
        if joins:
            self.possible = False
        table = exp.alias_(exp.table_(DRAWS, quoted=True), "#all", quoted=True, table=True)
        if aliases:
            node.append("joins", exp.Join(this=table, kind="CROSS"))
        else:
            node.set("from_", exp.From(this=table))
        return exp.column(DRAW, table="#all", quoted=True)

    # --- the other clauses ------------------------------------------------------------------------

    def _embed(self, node: exp.Select, scope: Scope) -> None:
        """Ask each subquery that stands as a value within the change of the row around it."""
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

    def _filter(self, node: exp.Select, scope: Scope, *, grouped: bool, outermost: bool) -> None:
        """Note whether noise chooses rows; the last SELECT's own filters do not count: margins hold
        before them.
        """
        windows = any(isinstance(each, exp.Window) for each in _inside(node))
        for join in node.args.get("joins") or []:
            if (
                join.args.get("on") is not None
                and kind_of(join.args["on"], scope, draws=True) is not Kind.PUBLIC
            ):
                scope.selected = True
        for clause in ("where", "having", "qualify"):
            part = node.args.get(clause)
            if part is None or kind_of(part.this, scope) is Kind.PUBLIC:
                continue
            free = {"where": not grouped and not windows, "having": not windows, "qualify": True}[
                clause
            ]
            if outermost and free:
                node.set(clause, None)
            elif clause == "qualify":
                self.possible = False
                scope.selected = True
            else:
                scope.selected = True

    def _cut(self, node: exp.Select, scope: Scope, *, outermost: bool) -> None:
        """Keep every row, in whatever order: LIMIT and DISTINCT cannot be run for several changes
        at once.
        """
        cut = not outermost and (node.args.get("limit") or node.args.get("offset"))
        if node.args.get("distinct") or cut:
            self.possible, scope.selected = False, True
        for clause in ("order", "limit", "offset"):
            node.set(clause, None)

    @staticmethod
    def _by_noise(node: exp.Select, scope: Scope) -> bool:
        """Return True if noise decides which groups there are."""
        group = node.args.get("group")
        if group is None:
            return False
        items = node.expressions
        for each in group.expressions:
            named = (
                isinstance(each, exp.Literal)
                and each.this.isdigit()
                and int(each.this) <= len(items)
            )
            if kind_of(items[int(each.this) - 1] if named else each, scope) is not Kind.PUBLIC:
                return True
        return any(part for name, part in group.args.items() if name != "expressions")

    def _partition(self, node: exp.Select, draw: exp.Expression, *, grouped: bool) -> None:
        """Keep windows, groups and subqueries within one change."""
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


def _drop_margins(node: exp.Select) -> None:
    """Leave out the columns of half-widths that inner SELECTs hand on."""
    node.set(
        "expressions",
        [each for each in node.expressions if not each.alias_or_name.startswith(_MARGIN)],
    )


def _drop_half_widths(node: exp.Select) -> None:
    """Leave out what MARGIN(x) computes: changed tables have no half-widths."""
    for each in list(_inside(node)):
        if error_bars.is_half_width(each):
            each.replace(error_bars.nothing())


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
    """Yield all nodes of a SELECT but its tables; of subqueries only the outermost node."""
    parts = [*node.expressions, *(join.args.get("on") for join in node.args.get("joins") or [])]
    parts += [node.args.get(name) for name in ("where", "group", "having", "qualify", "order")]
    for part in parts:
        if part is not None:
            yield from part.walk(prune=_is_query)


_QUERIES = (exp.Subquery, exp.Select)


def _is_query(node: exp.Expression) -> bool:
    return isinstance(node, _QUERIES)


def _is_grouped(node: exp.Select) -> bool:
    return node.args.get("group") is not None or any(
        isinstance(each, exp.AggFunc) and not _windowed(each)
        for part in (*node.expressions, node.args.get("having"))
        if part is not None
        for each in part.walk(prune=_is_query)
    )


def _windowed(node: exp.Expression) -> bool:
    parent = node.parent
    while isinstance(parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        parent = parent.parent
    return isinstance(parent, exp.Window)
