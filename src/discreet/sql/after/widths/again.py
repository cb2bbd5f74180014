"""Rewrite a statement to run on many changed noisy tables at once, to see how far noise moves its
answer (S11).

Some columns use several noisy rows: a share of a total, a difference to the row before, a running
sum, a quotient of two tables' numbers. We find their margins by changing the noisy numbers and
computing the statement again. The rewritten statement computes all changes in one run: each noisy
table has a column with the number of the change, and joins, windows, groups and subqueries stay
within one change.

Not every column has a margin that we can find so: `kinds` says which have.
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

DRAWS = f"{HIDDEN}draws"  # the table of the numbers of all changes
_MARGIN = "#margin "


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """A statement over noisy tables with a column `DRAW`, and the kinds of its columns.

    Its result has all columns of the answer, then `value(i)` for each column of `wanted` as a
    number that is not rounded, then `DRAW`.
    """

    sql: str
    kinds: tuple[Kind, ...]
    wanted: tuple[int, ...]
    slacks: Mapping[int, float]  # how much rounding adds to a column's margin
    summed: bool  # whether a column adds up means or quotients


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyKinds:
    """The kinds of a noisy table's columns; `selected` says that a threshold chooses its rows."""

    kinds: Mapping[str, Kind]
    selected: bool


def value(column: int) -> str:
    """Return the name of the column with the unrounded numbers of a column of the answer."""
    return f"#value {column}"


def again(
    tree: exp.Select, measured: Sequence[bool], tables: Mapping[str, NoisyKinds]
) -> tuple[tuple[Kind, ...], Again | None]:
    """Return the kinds of a statement's columns, and the statement that finds missing margins.

    `measured` says which columns have margins already. `tables` are the noisy tables.
    """
    walk = _Walk(tables=tables)
    result = walk.select(tree.copy(), outermost=True)
    kinds = tuple(result.kinds[: len(measured)])
    wanted = tuple(
        index
        for index, (kind, has) in enumerate(zip(kinds, measured, strict=True))
        if Kind.PUBLIC < kind < Kind.UNKNOWN and not has
    )
    if not wanted or not walk.possible or not result.noisy:
        return kinds, None
    slacks = {}
    for index in wanted:
        inner, slacks[index] = strip_rounding(result.tree.expressions[index])
        number = exp.cast(inner.copy(), "DOUBLE")
        result.tree.append("expressions", exp.alias_(number, value(index), quoted=True))
    items = result.tree.expressions
    place = next(index for index, item in enumerate(items) if item.alias == DRAW)
    items.append(items.pop(place))
    statement = result.tree.sql(dialect=WRITER, comments=False)
    summed = Kind.SUMMED in kinds
    return kinds, Again(sql=statement, kinds=kinds, wanted=wanted, slacks=slacks, summed=summed)


# --- one SELECT -----------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _Walk:
    tables: Mapping[str, NoisyKinds]
    possible: bool = True  # False if a part cannot run for several changes at once

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
        left = self.query(node.this)
        right = self.query(node.expression)
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
        """Rewrite a SELECT for many changes at once, if it reads noisy tables, and describe it.

        It changes the node.
        """
        if not outermost:  # a question may give the outermost columns any names
            _drop_margins(node)
        _drop_half_widths(node)
        scope = Scope()
        self._read(node, scope)
        self._embed(node, scope)
        tables = (*scope.sources.values(), *scope.subqueries.values())
        noisy = any(table.noisy for table in tables)
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
            noisy = self.tables.get(node.name)
            table: Read = PublicRead(tree=node, names=[], kinds=[], noisy=False)
            if noisy is not None:
                names = list(noisy.kinds)
                kinds = list(noisy.kinds.values())
                table = Read(
                    tree=node, names=names, kinds=kinds, noisy=True, selected=noisy.selected
                )
        else:
            renamed = node.alias_column_names
            table = self.query(node)
            table.names[: len(renamed)] = renamed
            # a shorter list of names leaves the other columns theirs
            name = exp.TableAlias(
                this=exp.to_identifier(alias, quoted=True),
                columns=[exp.to_identifier(each, quoted=True) for each in renamed],
            )
            node = exp.Subquery(this=table.tree, alias=name)
        scope.sources[alias.lower()] = table
        scope.selected = scope.selected or table.selected
        return node

    def _draw(self, node: exp.Select, scope: Scope) -> exp.Expression:
        """Return the column with the number of the change; join tables within one change."""
        aliases = list(scope.sources)
        joins = node.args.get("joins") or []
        sides = [str(join.args.get("side") or "").upper() for join in joins]
        if "RIGHT" in sides or "FULL" in sides:
            self.possible = False
        if any(self._may_lack(join, scope) for join in joins):
            self.possible = False
        noisy = [alias for alias in aliases if scope.sources[alias].noisy]
        if not noisy:
            return self._all_draws(node, aliases, joins)
        if not scope.sources[aliases[0]].noisy and _has_outer(joins):
            return self._draws_before(node, scope, joins)
        draw = exp.column(DRAW, table=noisy[0], quoted=True)
        noisy_before = scope.sources[aliases[0]].noisy
        for alias, join in zip(aliases[1:], joins, strict=True):
            if scope.sources[alias].noisy and noisy_before:
                _join_within(join, exp.column(DRAW, table=alias, quoted=True), draw)
            noisy_before = noisy_before or scope.sources[alias].noisy
        return draw

    @staticmethod
    def _may_lack(join: exp.Join, scope: Scope) -> bool:
        """Return True if noise may hide the row that an outer join would find.

        Then COALESCE(n, 0) is 0 although n is not.
        """
        source = scope.sources[join.this.alias_or_name.lower()]
        return bool(join.args.get("side")) and source.noisy and source.selected

    def _draws_before(
        self, node: exp.Select, scope: Scope, joins: Sequence[exp.Join]
    ) -> exp.Expression:
        """Return the number of the change where noisy tables are outer joined to public rows, such
        as the days of a calendar: every public row is there for every change.
        """
        draw = exp.column(DRAW, table="#all", quoted=True)
        for join in joins:
            alias = join.this.alias_or_name
            if scope.sources[alias.lower()].noisy:
                _join_within(join, exp.column(DRAW, table=alias, quoted=True), draw)
        table = exp.alias_(exp.table_(DRAWS, quoted=True), "#all", quoted=True, table=True)
        node.set("joins", [exp.Join(this=table, kind="CROSS"), *joins])
        return draw

    def _all_draws(
        self, node: exp.Select, aliases: Sequence[str], joins: Sequence[exp.Join]
    ) -> exp.Expression:
        """Return the number of the change where FROM has no noisy table: every row is there for
        every change.
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
        """Rewrite each subquery used as a value; `_partition` ties it to the change of the row."""
        for subquery in list(_inside(node)):
            if not isinstance(subquery, exp.Subquery):
                continue
            _name_its_number(subquery.this)
            table = self.query(subquery)
            inner: exp.Expression = table.tree
            if table.noisy:
                names = [exp.column(name, table="#sub", quoted=True) for name in table.names]
                alias = exp.TableAlias(this=exp.to_identifier("#sub", quoted=True))
                inner = exp.select(*names).from_(exp.Subquery(this=table.tree, alias=alias))
            new = exp.Subquery(this=inner)
            subquery.replace(new)
            scope.subqueries[id(new)] = table

    def _filter(self, node: exp.Select, scope: Scope, *, grouped: bool, outermost: bool) -> None:
        """Note whether noise chooses rows.

        A filter of the outermost SELECT does not count if it only drops rows of the answer: the
        margins are those of the rows before it.
        """
        windows = any(isinstance(part, exp.Window) for part in _inside(node))
        for join in node.args.get("joins") or []:
            on = join.args.get("on")
            if on is not None and kind_of(on, scope, draws=True) is not Kind.PUBLIC:
                scope.selected = True
        only_drops = {
            "where": not grouped and not windows,
            "having": not windows,
            "qualify": True,
        }
        for clause in ("where", "having", "qualify"):
            part = node.args.get(clause)
            if part is None or kind_of(part.this, scope) is Kind.PUBLIC:
                continue
            if outermost and only_drops[clause]:
                node.set(clause, None)
            elif clause == "qualify":
                self.possible = False
                scope.selected = True
            else:
                scope.selected = True

    def _cut(self, node: exp.Select, scope: Scope, *, outermost: bool) -> None:
        """Drop ORDER BY, LIMIT and OFFSET: they cannot run for several changes at once, nor can
        DISTINCT.
        """
        cut = not outermost and (node.args.get("limit") or node.args.get("offset"))
        if node.args.get("distinct") or cut:
            self.possible = False
            scope.selected = True
        for clause in ("order", "limit", "offset"):
            node.set(clause, None)

    @staticmethod
    def _by_noise(node: exp.Select, scope: Scope) -> bool:
        """Return True if noise decides which groups there are."""
        group = node.args.get("group")
        if group is None:
            return False
        items = node.expressions
        for key in group.expressions:
            is_number = isinstance(key, exp.Literal) and key.this.isdigit()
            if is_number and int(key.this) <= len(items):
                key = items[int(key.this) - 1]
            if kind_of(key, scope) is not Kind.PUBLIC:
                return True
        return any(part for name, part in group.args.items() if name != "expressions")

    def _partition(self, node: exp.Select, draw: exp.Expression, *, grouped: bool) -> None:
        """Keep windows, groups and subqueries within one change."""
        for part in list(_inside(node)):
            if isinstance(part, exp.Window):
                part.append("partition_by", draw.copy())
            elif isinstance(part, exp.Subquery) and isinstance(part.this, exp.Select):
                own = part.this.args.get("from_")
                if own is not None and own.this.alias == "#sub":
                    inner = exp.column(DRAW, table="#sub", quoted=True)
                    part.this.where(exp.EQ(this=inner, expression=draw.copy()), copy=False)
        if grouped:
            group = node.args.get("group") or exp.Group(expressions=[])
            group.append("expressions", draw.copy())
            node.set("group", group)
        node.append("expressions", exp.alias_(draw.copy(), DRAW, quoted=True))


def _name_its_number(node: exp.Expression) -> None:
    """Give the column of a subquery used as a value a name, so that it can be selected again."""
    if isinstance(node, exp.Select) and not node.expressions[0].alias_or_name:
        node.set("expressions", [exp.alias_(node.expressions[0], "#number", quoted=True)])


def _drop_margins(node: exp.Select) -> None:
    """Drop the columns of half-widths of an inner SELECT."""
    items = [item for item in node.expressions if not item.alias_or_name.startswith(_MARGIN)]
    node.set("expressions", items)


def _drop_half_widths(node: exp.Select) -> None:
    """Replace each MARGIN(x) by NULL: changed tables have no half-widths."""
    for part in list(_inside(node)):
        if error_bars.is_half_width(part):
            part.replace(error_bars.nothing())


def _has_outer(joins: Sequence[exp.Join]) -> bool:
    return any(join.args.get("side") for join in joins)


def _join_within(join: exp.Join, own: exp.Column, draw: exp.Expression) -> None:
    """Join rows of the same change only."""
    if join.args.get("using"):
        join.append("using", exp.to_identifier(DRAW, quoted=True))
        return
    if str(join.args.get("kind") or "").upper() == "CROSS":
        join.set("kind", None)
    same = exp.EQ(this=own, expression=draw.copy())
    on = join.args.get("on")
    join.set("on", same if on is None else exp.and_(on.copy(), same))


def _inside(node: exp.Select) -> Iterator[exp.Expression]:
    """Yield the nodes of a SELECT without its tables, and of each subquery the outermost node."""
    parts = [*node.expressions, *(join.args.get("on") for join in node.args.get("joins") or [])]
    parts += [node.args.get(name) for name in ("where", "group", "having", "qualify", "order")]
    for part in parts:
        if part is not None:
            yield from part.walk(prune=_is_query)


_QUERIES = (exp.Subquery, exp.Select)


def _is_query(node: exp.Expression) -> bool:
    return isinstance(node, _QUERIES)


def _is_grouped(node: exp.Select) -> bool:
    if node.args.get("group") is not None:
        return True
    for part in (*node.expressions, node.args.get("having")):
        if part is not None:
            inner = part.walk(prune=_is_query)
            if any(isinstance(child, exp.AggFunc) and not _has_window(child) for child in inner):
                return True
    return False


def _has_window(node: exp.Expression) -> bool:
    """Return True if an aggregate is the function of a window."""
    parent = node.parent
    while isinstance(parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        parent = parent.parent
    return isinstance(parent, exp.Window)
