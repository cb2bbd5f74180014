"""A noisy result that meets private rows: FROM people p JOIN (SELECT state, COUNT(*) ...) AS t ON
p.state = t.state.

Rows cannot meet noisy numbers. But what a row meets here depends on p.state alone, so the groups of
p.state can meet it in the place of their rows:

    FROM (SELECT p.state, COUNT(*) AS a FROM people p GROUP BY p.state) AS m JOIN t ON m.state = t.state

The inner query is measured as any other, and the join is of noisy tables. t must have one row for
each state: a group that nobody is in would be a second one, which the rows do not meet. Where the
outer SELECT groups by p.state too, a group's numbers stay as they are. Otherwise the groups are
added up: COUNT(*) is SUM(m.a), and AVG(t.n) is SUM(t.n * m.a) / SUM(m.a). What cannot be added up,
such as COUNT(DISTINCT x), is refused then.
`state IN (SELECT ...)` and `day = (SELECT MAX(day) ...)` in WHERE are such joins, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from discreet.errors import Rejected
from discreet.sql.after.released import OutputTable
from discreet.sql.after.rewrite import has_aggregate, meaning_of
from discreet.sql.aggregates import is_aggregate
from discreet.sql.joined.adding_up import Adding, columns_there
from discreet.sql.rows.owners import conjuncts
from discreet.sql.rows.relation import Names, Relation
from discreet.sql.rows.rewrites.antijoins import side_of
from discreet.sql.text.parse import quote_if_needed, reject, show, spell
from discreet.sql.walk import Environment, Walk

_GROUPS = "groups"  # the name of the measured groups, in the outer query
_EQUAL = exp.EQ | exp.NullSafeEQ
Tables = Sequence[Relation | OutputTable]


def join_after_noise(
    walk: Walk, node: exp.Select, sources: Tables, environment: Environment
) -> OutputTable | None:
    """Return an aggregating SELECT over private rows that meet noisy results; None for others."""
    if not any(isinstance(each, Relation) for each in sources):
        return None
    if not (node.args.get("group") or has_aggregate(node)):
        return None
    known = dict(environment)
    noisy = dict(_noisy_queries(walk, node, known))
    met = [isinstance(each, OutputTable) and each.noisy for each in sources]
    if not any(met) and not noisy:
        return None
    split = _Split(node=_prepared(node), sources=sources, noisy=noisy)
    made = split.split(known)
    if made is None:
        return None
    blocks = len(walk.blocks)
    result = walk.query(made, known)
    assert isinstance(result, OutputTable)
    if not split.alone and any(block.unknown for block in walk.blocks[blocks:]):
        raise reject(
            node,
            "this adds up groups of which only those that many people share are known.",
            "Group by what the noisy result is joined on, or name its values: x IN ('a', 'b').",
        )
    return result


def _noisy_queries(
    walk: Walk, node: exp.Select, known: dict[str, Relation | OutputTable]
) -> Iterator[tuple[exp.Expression, exp.Expression]]:
    """Yield the noisy subqueries that keys are compared with in WHERE and GROUP BY, with a SELECT of
    a name that means them.
    """
    items = [item.unalias() for item in node.expressions] if node.args.get("group") else []
    clauses = [node.args.get(name) for name in ("where", "group")]
    for part in _own(*filter(None, clauses), *items):
        sides = (part.this, part.expression) if isinstance(part, _EQUAL) else ()
        query = part.args.get("query") if isinstance(part, exp.In) else None
        query = query or next((each for each in sides if isinstance(each, exp.Subquery)), None)
        if query is None:
            continue
        blocks = len(walk.blocks)
        try:
            result = walk.query(query, known)
        except Rejected:
            del walk.blocks[blocks:]
            continue
        # Nobody's key is equal to a number with noise: only keys, and values that are chosen, are.
        if not isinstance(result, OutputTable) or not result.noisy or not _lists_values(result):
            del walk.blocks[blocks:]
            continue
        name = f"#query {len(known)}"
        known[name] = result
        column = exp.column(result.outputs[0].name, quoted=True)
        made = exp.select(column).from_(exp.table_(name, quoted=True))
        yield query.copy(), exp.Subquery(this=made)


def _lists_values(table: OutputTable) -> bool:
    """Return True for one column of values that are not measured numbers."""
    return len(table.outputs) == 1 and table.outputs[0].margin is None


def _own(*parts: exp.Expression) -> Iterator[exp.Expression]:
    """Yield the nodes of expressions, without those of subqueries and below aggregates."""
    pending = list(parts)
    while pending:
        part = pending.pop()
        yield part
        if not isinstance(part, exp.Query | exp.Subquery) and not is_aggregate(part):
            pending.extend(part.iter_expressions())


def _prepared(node: exp.Select) -> exp.Select:
    """Return a copy with a name for each item, and a = b OR a IS NULL AND b IS NULL in one node."""
    copy = node.copy()
    named = [
        exp.alias_(item.unalias(), item.output_name or spell(item), quoted=True)
        for item in copy.expressions
    ]
    copy.set("expressions", named)
    for part in list(copy.find_all(exp.Or)):
        same = _null_safe(part)
        if same is not None:
            part.replace(same)
    return copy


def _null_safe(part: exp.Or) -> exp.NullSafeEQ | None:
    """Return a IS NOT DISTINCT FROM b, for a = b OR (a IS NULL AND b IS NULL)."""
    equal, both = part.this.unnest(), part.expression.unnest()
    if not isinstance(equal, exp.EQ) or not isinstance(both, exp.And):
        return None
    tests = [each.unnest() for each in (both.this, both.expression)]
    if not all(isinstance(each, exp.Is) and each.expression == exp.Null() for each in tests):
        return None
    if {each.this for each in tests} != {equal.this, equal.expression}:
        return None
    return exp.NullSafeEQ(this=equal.this.copy(), expression=equal.expression.copy())


@dataclass(slots=True, kw_only=True)
class _Met:
    """A noisy result that the rows meet."""

    name: str
    side: str  # INNER or LEFT
    keys: frozenset[str] | None  # the columns that tell its rows apart
    on: list[exp.Expression] = field(default_factory=list)
    equated: set[str] = field(default_factory=set)  # its columns that are equal to keys


@dataclass(slots=True, kw_only=True)
class _Split:
    """Splits one SELECT into the groups of its private rows, and what meets them after noise."""

    node: exp.Select
    sources: Tables
    noisy: dict[exp.Expression, exp.Expression]  # subqueries, with what means them
    alone: bool = False  # True if each measured group is a group of the result
    keys: list[exp.Expression] = field(default_factory=list)
    inner: list[exp.Expression] = field(default_factory=list)  # conditions on private rows
    outer: list[exp.Expression] = field(default_factory=list)  # conditions after noise
    met: dict[str, _Met] = field(default_factory=dict)  # noisy results, by their names here
    added: Adding = field(init=False)

    def split(self, known: dict[str, Relation | OutputTable]) -> exp.Select | None:
        """Return the outer SELECT; None if the joins are not of a kind that can be split."""
        node = self.node
        if any(item.is_star for item in node.expressions) or node.args.get("qualify"):
            return None
        self.name_tables()
        groups = [self.meaning(key) for key in self.grouped()]
        self.keys = [key for key in groups if self.is_private(key)]
        for part in _own(*(key for key in groups if self.looks_at_noise(key))):
            if self.looks_at_noise(part):
                self.add_keys(self.sides_of(part))
        rows = self.split_joins(known)
        if rows is None:
            return None
        for part in conjuncts(node.args["where"].this) if node.args.get("where") else []:
            self.place_condition(part)
        self.alone = all(key in groups for key in self.keys)
        self.added = self.adding()
        outer = self.result(groups)
        outer.set("from_", exp.From(this=_named(self.measured(rows), _GROUPS)))
        outer.meta.update(node.meta)
        self.check_one_row()
        return outer

    def result(self, groups: list[exp.Expression]) -> exp.Select:
        """Return the outer SELECT without its FROM clause."""
        node = self.node
        outer = exp.Select(expressions=[self.item(each) for each in node.expressions])
        outer.set("joins", [self.join_of(alias, met) for alias, met in self.met.items()])
        having = [self.rewrite(node.args["having"].this)] if node.args.get("having") else []
        tests = [self.rewrite(part) for part in self.outer] + (having if self.alone else [])
        if tests:
            outer.set("where", exp.Where(this=exp.and_(*tests, copy=False)))
        if groups and not self.alone:
            outer.set("group", exp.Group(expressions=[self.rewrite(each) for each in groups]))
        if having and not self.alone:
            outer.set("having", exp.Having(this=having[0]))
        if node.args.get("order"):
            outer.set("order", self.rewrite(node.args["order"]))
        for clause in ("distinct", "limit", "offset"):
            if node.args.get(clause):
                outer.set(clause, node.args[clause].copy())
        return outer

    def grouped(self) -> list[exp.Expression]:
        group = self.node.args.get("group")
        return list(group.expressions) if group is not None else []

    # --- names ------------------------------------------------------------------------------------

    def name_tables(self) -> None:
        """Write each column with the name of its table, so that equal ones are alike."""
        order = self.node.args.get("order")
        shown = {item.alias.lower() for item in self.node.expressions}
        for column in list(self.node.find_all(exp.Column)):
            table = self.table_of(column)
            ordered = order is not None and column.find_ancestor(exp.Order) is order
            if column.find_ancestor(exp.Query) is not self.node or table is None:
                continue
            if not column.table and ordered and column.name.lower() in shown:
                continue  # a column of the result
            column.set("table", exp.to_identifier(table))
            column.set("this", exp.to_identifier(column.name.lower()))

    def is_measured(self, column: exp.Column) -> bool:
        """Return True for a number with noise."""
        table, name = column.table.lower(), column.name.lower()
        for source, part in zip(self.sources, _parts(self.node), strict=True):
            if isinstance(source, OutputTable) and part.alias_or_name.lower() == table:
                found = (each for each in source.outputs if each.name.lower() == name)
                return any(each.margin is not None for each in found)
        return False

    def columns(self) -> Iterator[tuple[str, str, bool]]:
        """Yield each column of the sources: its table, its name, and True if it is noisy."""
        for source, part in zip(self.sources, _parts(self.node), strict=True):
            if isinstance(source, Relation):
                for each in source.fields:
                    yield each.table.lower(), each.name.lower(), False
            else:
                for output in source.outputs:
                    yield part.alias_or_name.lower(), output.name.lower(), source.noisy

    def table_of(self, column: exp.Column) -> str | None:
        """Return the table that a column is of; None if there is not just one."""
        table, name = column.table.lower(), column.name.lower()
        found = [
            (each, noisy)
            for each, known, noisy in self.columns()
            if known == name and table in ("", each)
        ]
        merged = {
            each.name.lower()
            for join in self.node.args.get("joins") or []
            for each in join.args.get("using") or []
        }
        if name in merged and not table:
            found = [each for each in found if not each[1]][:1]
        return found[0][0] if len(set(found)) == 1 else None

    def is_noisy(self, column: exp.Column) -> bool:
        """Return True for a column of a noisy result."""
        table, name = column.table.lower(), column.name.lower()
        return (table, name, True) in self.columns()

    def looks_at_noise(self, part: exp.Expression) -> bool:
        """Return True if an expression reads a noisy result."""
        columns = part.find_all(exp.Column)
        queries = part.find_all(exp.Subquery, exp.Select)
        return any(map(self.is_noisy, columns)) or any(each in self.noisy for each in queries)

    def is_private(self, part: exp.Expression) -> bool:
        """Return True for an expression over columns of private rows and public tables alone."""
        plain = part.find(exp.Column) and not any(map(is_aggregate, part.walk()))
        return bool(plain) and not part.find(exp.Query) and not self.looks_at_noise(part)

    def meaning(self, key: exp.Expression) -> exp.Expression:
        """Return what an item of GROUP BY stands for."""
        if isinstance(key, exp.Column) and self.table_of(key) is not None:
            return key
        return meaning_of(key, self.node, Names(fields=()))

    # --- joins and conditions ---------------------------------------------------------------------

    def split_joins(self, known: dict[str, Relation | OutputTable]) -> exp.Select | None:
        """Return the FROM clause of the private rows; name the noisy results that they meet."""
        rows = exp.Select()
        conditions: list[tuple[exp.Expression, str]] = []
        first = exp.Join(this=self.node.args["from_"].this)
        joins = [first, *(self.node.args.get("joins") or [])]
        for source, join in zip(self.sources, joins, strict=True):
            side = "INNER" if join is first else _side(join)
            begun = rows.args.get("from_") is not None
            if side not in ("INNER", "LEFT") or (side == "LEFT" and not begun):
                return None
            if isinstance(source, OutputTable) and source.noisy:
                alias, name = join.this.alias_or_name.lower(), f"#result {len(known)}"
                known[name] = source
                self.met[alias] = _Met(name=name, side=side, keys=source.keys)
                conditions += [(part, alias) for part in self.conditions_of(join)]
                continue
            moved = self.add_rows(rows, join)
            if moved and side == "LEFT":
                return None
            conditions += [(part, "") for part in moved]
        for part, alias in conditions:
            self.place_condition(part, alias)
        return rows if rows.args.get("from_") else None

    def add_rows(self, rows: exp.Select, join: exp.Join) -> list[exp.Expression]:
        """Add a join of private rows; return the conditions of it that hold elsewhere."""
        parts = conjuncts(join.args.get("on"))
        if not rows.args.get("from_"):
            rows.set("from_", exp.From(this=join.this.copy()))
            return parts
        made = join.copy()
        kept = [part.copy() for part in parts if not self.looks_at_noise(part)]
        if parts:
            made.set("on", exp.and_(*kept) if kept else exp.true())
        rows.append("joins", made)
        return [part for part in parts if self.looks_at_noise(part)]

    def conditions_of(self, join: exp.Join) -> list[exp.Expression]:
        """Return the conditions of the join of a noisy result."""
        names = [each.name.lower() for each in join.args.get("using") or []]
        alias = join.this.alias_or_name
        same = [
            exp.EQ(
                this=exp.column(name, table=self.table_of(exp.column(name))),
                expression=exp.column(name, table=alias.lower()),
            )
            for name in names
        ]
        return [*conjuncts(join.args.get("on")), *same]

    def place_condition(self, part: exp.Expression, alias: str = "") -> None:
        """Add a condition to those of the private rows, of a noisy result, or of the result.

        `alias` is the noisy result of whose join it is; without one it may hold anywhere.
        """
        met = self.met.get(alias)
        if not self.looks_at_noise(part):
            if met is not None and met.side == "LEFT":
                raise self.refuse(part)
            self.inner.append(part)
            return
        sides = self.sides_of(part)
        private = self.add_keys(sides)
        columns = [each for each in sides if isinstance(each, exp.Column) and self.is_noisy(each)]
        if private and any(map(self.is_measured, columns)):
            raise self.refuse(part)
        if private and columns:
            own = self.met[columns[0].table.lower()]
            met = own if met is None and own.side == "INNER" else met
            if met is own:
                own.equated.add(columns[0].name.lower())
        (self.outer if met is None else met.on).append(part)

    def sides_of(self, part: exp.Expression) -> list[exp.Expression]:
        """Return what is compared by x = y, and x of x IN (SELECT ...) of a noisy result."""
        bare = part.unnest()
        bare = bare.this.unnest() if isinstance(bare, exp.Not) else bare
        if isinstance(bare, exp.In) and bare.args.get("query") in self.noisy:
            return [bare.this]
        return [bare.this, bare.expression] if isinstance(bare, _EQUAL) else []

    def add_keys(self, parts: list[exp.Expression]) -> list[exp.Expression]:
        """Return those that are of private rows, and group the rows by them."""
        private = [each for each in parts if self.is_private(each)]
        self.keys += [each for each in private if each not in self.keys]
        return private

    def join_of(self, alias: str, met: _Met) -> exp.Join:
        """Return the join of the measured groups with a noisy result."""
        table = exp.alias_(exp.table_(met.name, quoted=True), alias, table=True, quoted=True)
        if not met.on:
            return exp.Join(this=table, kind="CROSS")
        on = exp.and_(*map(self.rewrite, met.on), copy=False)
        return exp.Join(this=table, on=on, side="LEFT" if met.side == "LEFT" else None)

    def check_one_row(self) -> None:
        """Refuse a noisy result of which a group may meet several rows."""
        for alias, met in self.met.items():
            if met.keys is not None and met.keys <= met.equated:
                continue
            places = [each for each in _parts(self.node) if each.alias_or_name.lower() == alias]
            name = quote_if_needed(places[0].alias_or_name)
            raise reject(
                places[0],
                f"a row may meet several rows of the noisy result {name}.",
                f"Join {name} on all that it is grouped by, and group it by nothing else.",
            )

    def refuse(self, part: exp.Expression) -> Rejected:
        return reject(
            part,
            f"a noisy result cannot be joined back to private rows by {show(part)}.",
            "Join it on columns that are equal: ON p.state = t.state. Or ask for its numbers first,"
            " and write them out.",
        )

    # --- the measured groups ----------------------------------------------------------------------

    def measured(self, rows: exp.Select) -> exp.Select:
        """Return the query that measures the groups of the private rows."""
        parts = [*_columns("key", self.keys), *_columns("number", self.added.numbers)]
        if not parts:
            parts = [exp.alias_(exp.Count(this=exp.Star()), "number 0", quoted=True)]
        rows.set("expressions", parts)
        if self.inner:
            rows.set("where", exp.Where(this=exp.and_(*self.inner)))
        if self.keys:
            rows.set("group", exp.Group(expressions=[each.copy() for each in self.keys]))
        return rows

    def item(self, item: exp.Expression) -> exp.Expression:
        return exp.alias_(self.rewrite(item.unalias()), item.alias, quoted=True)

    def rewrite(self, node: exp.Expression) -> exp.Expression:
        """Return an expression over the measured groups and the noisy results."""

        def change(part: exp.Expression) -> exp.Expression:
            if part in self.noisy:
                return self.noisy[part].copy()
            if isinstance(part, exp.Query | exp.Subquery):
                return part.copy()  # `transform` does not look into it
            above = part.parent.parent if isinstance(part.parent, exp.Filter) else part.parent
            own = isinstance(above, exp.Window) and part.arg_key == "this"
            if is_aggregate(part) and not own:
                return self.aggregate(part)
            if part in self.keys:
                name = f"key {self.keys.index(part)}"
                return exp.column(name, table=_GROUPS, quoted=True)
            if isinstance(part, exp.Column) and not self.is_noisy(part):
                if self.table_of(part) is None:
                    return part
                if self.looks_at_noise(node):
                    raise self.refuse(node)
                raise reject(
                    part,
                    f"{show(part)} is neither aggregated nor in GROUP BY.",
                    "Aggregate it, or add it to GROUP BY.",
                )
            return part

        return exp.Paren(this=node.copy()).transform(change, copy=False).this

    # --- aggregates of the outer SELECT -----------------------------------------------------------

    def aggregate(self, part: exp.Expression) -> exp.Expression:
        """Return an aggregate of rows that meet the noisy results, from numbers of their groups."""
        if not self.looks_at_noise(part):
            return self.added.of_rows(part)
        return self.added.of_noise(part, self.rewrite)

    def adding(self) -> Adding:
        """Return how the numbers of the measured groups are added up."""
        private = [each for each in self.sources if isinstance(each, Relation)]
        rows = [each for each in self.sources if isinstance(each, Relation) or not each.noisy]
        inner = {alias for alias, met in self.met.items() if met.side == "INNER"}
        return Adding(
            alone=self.alone,
            grouped=bool(self.grouped()),
            names=Names(fields=tuple(field for each in private for field in each.fields)),
            one_row=len(rows) == 1 and private[0].rows == 1,
            keys=self.keys,
            table=_GROUPS,
            there=frozenset(columns_there(self.sources, _parts(self.node), inner)),
        )


def _parts(node: exp.Select) -> list[exp.Expression]:
    """Return the items of a FROM clause and of the joins behind it."""
    return [node.args["from_"].this, *(each.this for each in node.args.get("joins") or [])]


def _side(join: exp.Join) -> str | None:
    """Return INNER or LEFT; None for joins of other kinds."""
    clauses = {name for name, part in join.args.items() if part}
    kind = str(join.args.get("kind") or "").upper()
    if clauses <= {"this", "kind"} and kind in ("", "CROSS"):
        return "INNER"
    return side_of(join)


def _columns(name: str, parts: list[exp.Expression]) -> list[exp.Expression]:
    return [
        exp.alias_(part.copy(), f"{name} {place}", quoted=True) for place, part in enumerate(parts)
    ]


def _named(query: exp.Select, name: str) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(name)))
