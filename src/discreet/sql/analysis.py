"""Walk over one statement: find whose rows it reads, what it measures, and what runs after noise.

`Analysis.query` walks the statement. A SELECT over private rows without aggregates is again a
private relation; with aggregates it becomes a measured block, and from there on everything is
post-processing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import pyarrow as pa
from sqlglot import exp

from discreet.algebra import weight_of
from discreet.errors import EngineFailure
from discreet.policy.policy import Policy
from discreet.sql import catalog, rolling
from discreet.sql.after import after
from discreet.sql.after.naming import HALF_WIDTHS, constant_name, table_name
from discreet.sql.after.released import Output, OutputTable
from discreet.sql.after.rewrite import Rewrite, has_aggregate, meanings_of
from discreet.sql.after.tables import constants, public_table
from discreet.sql.after.widths.linear import Form
from discreet.sql.blocks import block_of
from discreet.sql.listing import LISTS, list_keys, suggest_count
from discreet.sql.plan.block import Block
from discreet.sql.plan.keys import Key, Unknown
from discreet.sql.rows import persons, sets
from discreet.sql.rows.antijoins import private_columns, without_antijoins
from discreet.sql.rows.filters import without_filters
from discreet.sql.rows.joins import drop_brackets, join
from discreet.sql.rows.keys.groups import key_of, keys_of
from discreet.sql.rows.keys.possible import Possible, Spell
from discreet.sql.rows.project import filter_rows, group_by_owner, limit_groups, project, word
from discreet.sql.rows.public import PublicSide, public_side
from discreet.sql.rows.relation import Names, Relation, links_of, scan
from discreet.sql.rows.scope import RowScope
from discreet.sql.rows.spines import keep_public_rows
from discreet.sql.sources import check_name, check_table, name_columns, series
from discreet.sql.text import grouping
from discreet.sql.text.parse import (
    MOST_NODES,
    check_weight,
    is_bare,
    reject,
    show,
)
from discreet.sql.text.rules.earlier_names import with_meanings
from discreet.sql.text.rules.top import rewrite_top_groups
from discreet.sql.values.expressions import translate
from discreet.sql.values.value import Missing, Opaque, Text, Value
from discreet.sql.walk import Environment

PublicTables = Mapping[str, pa.Table]
Evaluate = Callable[[str], pa.Table]  # runs SQL over public tables, which are public


_READ = ("from_", "joins", "where", "group", "having", "qualify", "with_")
_SELECT_PARTS = frozenset((*_READ, "expressions", "distinct", "order", "limit", "offset"))


@dataclass(slots=True, kw_only=True)
class Analysis:
    """Walks over one statement and collects the blocks that it measures."""

    policy: Policy
    public: PublicTables
    evaluate: Evaluate
    spell: Spell | None = None
    # grouping sets that this place is inside of: they are added up over the whole grid of keys
    sets: int = 0
    blocks: list[Block] = field(default_factory=list)
    # what each block would measure over more groups
    again: dict[int, rolling.Again] = field(default_factory=dict)
    # and were people only added: what one of two people who are exchanged adds
    alone: dict[int, rolling.Again] = field(default_factory=dict)
    public_used: set[str] = field(default_factory=set)
    # of several numbers, whose half-widths are asked for
    combined: list[Form] = field(default_factory=list)
    private_used: dict[str, int] = field(default_factory=dict)  # with their max_rows
    aliases: int = 0

    @property
    def finder(self) -> Possible | None:
        """Return the finder of groups that can be, if there is an engine to ask. Grouping sets are
        mostly added up over the whole grid of their keys.
        """
        if self.spell is None:
            return None
        return Possible(
            policy=self.policy,
            public=self.public,
            spell=self.spell,
            evaluate=self.evaluate,
            sets=bool(self.sets),
        )

    def query(self, node: exp.Expression, environment: Environment) -> Relation | OutputTable:
        """Return the table that a query stands for: private rows, or an output table after noise.
        Refuse names used twice, twice over, that would grow without end.
        """
        result = self.parts(node, environment)
        if isinstance(result, Relation):
            nodes = weight_of(result.source) + sum(each.weight for each in result.conditions)
        else:
            nodes = sum(1 for _ in itertools.islice(result.tree.walk(), MOST_NODES + 1))
        check_weight(nodes)
        return result

    def parts(self, node: exp.Expression, environment: Environment) -> Relation | OutputTable:
        match node:
            case exp.Subquery() if is_bare(node):
                return self.query(node.this, environment)
            case exp.Select():
                return self.select(node, self.with_ctes(node, environment))
            case exp.Union() | exp.Intersect() | exp.Except():
                names = self.with_ctes(node, environment)
                left, right = self.query(node.this, names), self.query(node.expression, names)
                return sets.combine(node, left, right, self.alias)
        raise reject(node, f"{show(node)} cannot stand here.", "Write a SELECT.")

    def with_ctes(self, node: exp.Expression, environment: Environment) -> Environment:
        clause = node.args.get("with_")
        if clause is None:
            return environment
        if clause.args.get("recursive"):
            raise reject(clause, "recursive queries are not answered.", _STEPS)
        names = dict(environment)
        for part in clause.expressions:
            names[part.alias.lower()] = name_columns(self.query(part.this, names), part)
        return names

    def combine(self, output: Output, form: Form) -> Output:
        """Return the column with the half-width of a form of several numbers, which is the same in
        every row.
        """
        self.combined.append(form)
        name = constant_name(len(self.combined) - 1)
        constant = exp.select(exp.column(name)).from_(exp.table_(HALF_WIDTHS, quoted=True))
        return replace(output, margin=exp.Subquery(this=constant), forms=(form,))

    def alias(self) -> str:
        """Return a fresh engine alias."""
        self.aliases += 1
        return f"t{self.aliases}"

    # --- FROM -------------------------------------------------------------------------------------

    def sources(self, node: exp.Select, environment: Environment) -> list[Relation | OutputTable]:
        """Return what a SELECT reads, in the order of its FROM clause and joins."""
        clause = node.args.get("from_")
        if clause is None:
            if node.args.get("joins"):
                raise reject(node, "JOIN stands without FROM.", "Write FROM and a table before it.")
            return []
        parts = (clause.this, *(join.this for join in node.args.get("joins") or []))
        return [self.relation(part, environment) for part in parts]

    def join_sources(
        self, node: exp.Select, sources: list[Relation | OutputTable]
    ) -> Relation | None:
        """Return the private relation that a SELECT reads, or None when all it reads is public or
        already noisy.
        """
        if not any(isinstance(each, Relation) for each in sources):
            return None
        joins = node.args.get("joins") or []
        parts = [node.args["from_"].this, *(join.this for join in joins)]
        sides = [
            each if isinstance(each, Relation) else self.public_side(each, part)
            for each, part in zip(sources, parts, strict=True)
        ]
        where = node.args["where"].this if node.args.get("where") else None
        left = sides[0]
        for right, clause in zip(sides[1:], joins, strict=True):
            if isinstance(left, PublicSide) and isinstance(right, PublicSide):
                raise reject(
                    clause,
                    "two public tables are joined before a private one.",
                    "Name the private table first.",
                )
            left = join(left, right, clause, where, self.alias())
        assert isinstance(left, Relation)
        return left

    def public_side(self, released: OutputTable, node: exp.Expression) -> PublicSide:
        """Return a public table, or one computed from public tables, ready to be joined to private
        rows.
        """
        if released.noisy:
            raise reject(
                node,
                "a noisy result cannot be joined back to private rows.",
                "Aggregate both sides, and join the results.",
            )
        table = self.of_public(released, node)
        return public_side(
            table,
            alias=node.alias or node.name,
            engine_alias=self.alias(),
            stored=released.stored,
            node=node,
        )

    def of_public(self, released: OutputTable, node: exp.Expression) -> pa.Table:
        """Evaluate a table that is computed from public ones."""
        try:
            return self.evaluate(released.render(margins=False))
        except EngineFailure:
            raise reject(
                node,
                f"{show(node)} cannot be computed from the public tables.",
                "Check its types and columns.",
            ) from None

    def relation(self, node: exp.Expression, environment: Environment) -> Relation | OutputTable:
        match node:
            case exp.Table():
                return self.table(node, environment)
            case exp.Subquery(this=exp.Table() | exp.Subquery()) if (
                node.this.args.get("joins") and not node.alias
            ):
                return self.join_in_brackets(node, environment)
            case exp.Subquery():
                if any(part for name, part in node.args.items() if name not in ("this", "alias")):
                    raise reject(
                        node,
                        f"{show(node)} has a part that is not understood.",
                        "Write a plain subquery.",
                    )
                result = name_columns(self.query(node.this, environment), node)
                return result.with_name(node.alias) if isinstance(result, Relation) else result
            case exp.Lateral():
                raise reject(
                    node,
                    "LATERAL looks at each row by itself.",
                    "Aggregate per person, GROUP BY the owner, in a plain subquery, and join it on the owner.",
                )
            case exp.Values():
                return name_columns(constants(node), node)
            case exp.Unnest():
                return series(node)
        raise reject(
            node, f"{show(node)} is not a table.", "Write the name of a table, or a subquery."
        )

    def join_in_brackets(self, node: exp.Subquery, environment: Environment) -> Relation:
        """Join a JOIN (b JOIN c ON ...) ON ...: what stands in brackets comes first, and its tables
        keep their names.
        """
        if any(part for name, part in node.args.items() if name != "this"):
            raise reject(
                node,
                f"{show(node)} has a part that is not understood.",
                "Write only the joins in brackets.",
            )
        inner = drop_brackets(exp.Select(from_=exp.From(this=node.this.copy())))
        relation = self.join_sources(inner, self.sources(inner, environment))
        if relation is None:
            raise reject(
                node,
                "brackets around joined tables are answered for private ones.",
                "Write the joins without them.",
            )
        return relation

    def table(self, node: exp.Table, environment: Environment) -> Relation | OutputTable:
        if node.args.get("sample"):
            raise reject(
                node, _SAMPLE, "Leave it out: the answer is about everybody, and costs the same."
            )
        if node.text("db").lower() == catalog.SCHEMA and not node.args.get("pivots"):
            return catalog.listing(node, self.policy, self.public)
        check_table(node, self.policy.tables)
        if isinstance(node.this, exp.GenerateSeries):
            return series(node)
        check_name(node, self.policy.tables)
        known = environment.get(node.name.lower())
        if known is not None:
            return (
                self.reference(known, node.alias or node.name)
                if isinstance(known, Relation)
                else known
            )
        table = next(
            (
                table
                for name, table in self.policy.tables.items()
                if name.lower() == node.name.lower()
            ),
            None,
        )
        if table is None:
            raise reject(
                node,
                f"there is no table {show(node.this)}.",
                f"Tables are {', '.join(self.policy.tables)}.",
            )
        if table.public:
            self.public_used.add(table.name)
            return public_table(table.name, self.public[table.name])
        self.private_used[table.name] = table.max_rows
        return scan(table, node.alias or table.name, self.alias(), links_of(self.policy.tables))

    def reference(self, relation: Relation, alias: str) -> Relation:
        """Return the rows that a WITH name stands for, as a stage of its own at each use."""
        # Privacy: S4. Two uses of one name must not share an engine alias, or the owners of an
        # EXISTS would be compared with themselves; nor origins, or a person's pairs of rows would
        # be counted as rows.
        fresh = self.alias()
        nested = relation.nest(fresh)
        fields = (
            replace(
                each, origins=frozenset((f"{fresh}.{stage}", rows) for stage, rows in each.origins)
            )
            for each in nested.fields
        )
        return replace(nested, fields=tuple(fields)).with_name(alias)

    # --- SELECT -----------------------------------------------------------------------------------

    def select(self, node: exp.Select, environment: Environment) -> Relation | OutputTable:
        """Return what a SELECT stands for: private rows, or a table after noise if it aggregates
        them or reads none.
        """
        _check_clauses(node)
        node = self.without_habits(node, environment)
        if grouping.has_sets(node):
            return self.select_sets(node, environment)
        sources = self.sources(node, environment)
        kept = keep_public_rows(self, node, sources, environment)
        if kept is not None:
            return kept
        relation = self.join_sources(node, sources)
        if relation is None:
            return self.select_after_noise(node, sources, environment)
        if self.lists_keys(node, relation, environment):
            node = _group_by_items(node)
        if node.args.get("where"):
            relation = filter_rows(node.args["where"].this, self.scope(relation, environment))
        if node.args.get("group") or has_aggregate(node):
            keys = self.group_values(node, self.scope(relation, environment))
            if any(persons.is_own(key) for key in keys):
                return group_by_owner(node, relation, keys, self.alias)
            return self.measure(node, relation, environment, keys)
        return project(node, self.scope(relation, environment), self.alias)

    def without_habits(self, node: exp.Select, environment: Environment) -> exp.Select:
        """Return the SELECT with brackets, rows of keys and joins that only filter written in the
        one way that is analyzed.
        """
        node = rewrite_top_groups(grouping.without_tuples(drop_brackets(node)))
        private = private_columns(self.policy, named=environment)
        return without_filters(without_antijoins(node, private), private)

    def select_sets(self, node: exp.Select, environment: Environment) -> Relation | OutputTable:
        """Return what a SELECT with GROUPING SETS, ROLLUP or CUBE stands for: a UNION of them."""
        self.sets += 1
        found = self.query(
            grouping.expand_sets(node, self.columns_of(node, environment)), environment
        )
        self.sets -= 1
        return found

    def select_after_noise(
        self, node: exp.Select, sources: list[Relation | OutputTable], environment: Environment
    ) -> OutputTable:
        """Return a SELECT over tables that are public or already noisy."""
        tables = [each for each in sources if isinstance(each, OutputTable)]
        known = {output.name.lower() for each in tables for output in each.outputs}
        return after.select(with_meanings(node, known), tables, self, environment)

    def lists_keys(self, node: exp.Select, relation: Relation, environment: Environment) -> bool:
        """Return True if SELECT DISTINCT is of public keys, which the policy lists; of owners and
        texts it is not.
        """
        clause = node.args.get("distinct")
        if clause is None or clause.args.get("on") or node.args.get("group") or has_aggregate(node):
            return False
        if any(item.is_star or item.find(exp.Window, exp.Query) for item in node.expressions):
            return False
        scope = self.scope(relation, environment)
        values = [translate(item.unalias(), scope) for item in node.expressions]
        if any(isinstance(value.domain, _NO_KEYS) for value in values):
            return False
        return all(isinstance(key_of(value, self.policy.limits.keys)[0], Key) for value in values)

    def columns_of(self, node: exp.Select, environment: Environment) -> frozenset[str]:
        """Return the names of all columns that a SELECT reads; forget the blocks met on the way."""
        blocks, forms = len(self.blocks), len(self.combined)
        sources = self.sources(node, environment)
        del self.blocks[blocks:], self.combined[forms:]
        return frozenset(
            column.name
            for each in sources
            for column in (each.fields if isinstance(each, Relation) else each.outputs)
        )

    def scope(self, relation: Relation, environment: Environment) -> RowScope:
        return RowScope(
            fields=relation.fields, analysis=self, environment=environment, relation=relation
        )

    def measure(
        self, node: exp.Select, relation: Relation, environment: Environment, values: list[Value]
    ) -> OutputTable:
        """Measure a SELECT that aggregates private rows: return the SQL that runs on its noisy
        table.
        """
        names = self.scope(relation, environment)
        keys = keys_of(node, values, relation, self.policy, self.finder)
        if relation.max_groups is not None and any(
            isinstance(key, Unknown) for key, _ in keys.values()
        ):
            unknown = [place for key, place in keys.values() if isinstance(key, Unknown)]
            fewer = limit_groups(relation, unknown, self.alias)
            return self.measure(
                node, fewer, environment, self.group_values(node, self.scope(fewer, environment))
            )
        meanings = meanings_of(node, names)
        rewrite = Rewrite(
            analysis=self,
            environment=environment,
            names=names,
            keys=keys,
            meanings=list(zip(meanings, (value.identity for value in values), strict=True)),
            node=node,
            index=len(self.blocks),
        )
        self.blocks.append(cast(Block, None))  # the place of this block; subqueries may add theirs
        released = rewrite.output_table()
        if not rewrite.requests:
            return self.list_keys(node, released, [key for key, _ in keys.values()], rewrite.index)
        origins = {
            value.identity: names.origins(meaning)
            for value, meaning in zip(values, meanings, strict=True)
        }
        block, again, alone = block_of(
            rewrite, relation, origins, policy=self.policy, finder=self.finder
        )
        self.blocks[rewrite.index] = block
        self.again[rewrite.index], self.alone[rewrite.index] = again, alone
        return replace(released, selected=True) if block.unknown else released

    def list_keys(
        self, node: exp.Select, released: OutputTable, keys: list[Key | Unknown], index: int
    ) -> OutputTable:
        """Return the policy's list of groups, for GROUP BY without an aggregate; refuse it if a
        subquery measures anything.
        """
        if len(self.blocks) > index + 1:
            raise reject(node, LISTS, suggest_count(node))
        self.blocks.pop()
        return list_keys(node, released, keys, table_name(index))

    def group_values(self, node: exp.Select, names: Names) -> list[Value]:
        return [translate(meaning, names) for meaning in meanings_of(node, names)]


def _check_clauses(node: exp.Select) -> None:
    """Refuse a SELECT with a clause that is not understood."""
    if node.args.get("sample"):
        raise reject(
            node, _SAMPLE, "Leave it out: the answer is about everybody, and costs the same."
        )
    for name, part in node.args.items():
        if name not in _SELECT_PARTS and part not in (None, False, []):
            raise reject(
                node,
                f"{word(name)} is not answered.",
                "Leave it out, or write it where it is used.",
            )


def _group_by_items(node: exp.Select) -> exp.Select:
    """Return SELECT DISTINCT a, b as SELECT a, b ... GROUP BY a, b."""
    grouped = node.copy()
    keys = [item.unalias().copy() for item in node.expressions]
    grouped.set("group", exp.Group(expressions=keys))
    grouped.set("distinct", None)
    return grouped


_NO_KEYS = (Opaque, Missing, Text)
_STEPS = "Write the steps out: (VALUES (1), (2), (3)) AS t(n), or GENERATE_SERIES(1, 12) AS t(n)."
_SAMPLE = "a sample is other people's rows by chance, and which ones would not be repeatable."
