"""Walk over one statement: find whose rows it reads, what it measures, and what runs after noise.

`Analysis.query` walks the statement. A SELECT over private rows without aggregates gives private
rows again. With aggregates it becomes a measured block, and everything above it is post-processing.
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
from discreet.sql.joined.after_noise import join_after_noise
from discreet.sql.listing import LISTS, list_keys, suggest_count
from discreet.sql.plan.block import Block
from discreet.sql.plan.keys import Key, Unknown
from discreet.sql.rows import persons, sets
from discreet.sql.rows.joins import drop_brackets, join
from discreet.sql.rows.keys.groups import key_of, keys_in_columns, keys_of
from discreet.sql.rows.keys.possible import Possible, Spell
from discreet.sql.rows.project import filter_rows, group_by_owner, limit_groups, project, word
from discreet.sql.rows.public import PublicSide, public_side
from discreet.sql.rows.relation import Names, Relation, links_of, scan
from discreet.sql.rows.rewrites.antijoins import private_columns, without_antijoins
from discreet.sql.rows.rewrites.correlated import owners_of, without_correlated
from discreet.sql.rows.rewrites.filters import without_filters
from discreet.sql.rows.scope import RowScope
from discreet.sql.rows.spines import keep_public_rows
from discreet.sql.sources import (
    check_name,
    check_table,
    check_without_from,
    name_columns,
    series,
)
from discreet.sql.text import grouping
from discreet.sql.text.parse import MOST_NODES, check_weight, is_bare, reject, show
from discreet.sql.text.rules.earlier_names import with_meanings
from discreet.sql.values.expressions import translate
from discreet.sql.values.value import Missing, Opaque, Text, Value
from discreet.sql.walk import Environment

PublicTables = Mapping[str, pa.Table]
Evaluate = Callable[[str], pa.Table]  # runs SQL over public tables


_READ = ("from_", "joins", "where", "group", "having", "qualify", "with_")
_SELECT_PARTS = frozenset((*_READ, "expressions", "distinct", "order", "limit", "offset"))


@dataclass(slots=True, kw_only=True)
class Analysis:
    """Walks over one statement and collects the blocks that it measures."""

    policy: Policy
    public: PublicTables
    evaluate: Evaluate
    spell: Spell | None = None
    # how many SELECTs with grouping sets are around this place
    sets: int = 0
    blocks: list[Block] = field(default_factory=list)
    # for each block: the statistics it would have with another number of groups
    again: dict[int, rolling.Again] = field(default_factory=dict)
    # the same if people are only added: what one of two exchanged people adds
    alone: dict[int, rolling.Again] = field(default_factory=dict)
    public_used: set[str] = field(default_factory=set)
    # forms of several numbers whose half-widths the question asks for
    combined: list[Form] = field(default_factory=list)
    private_used: dict[str, int] = field(default_factory=dict)  # tables, with their max_rows
    aliases: int = 0

    @property
    def finder(self) -> Possible | None:
        """Return the finder of possible groups; None if there is no engine to ask.

        Inside grouping sets it finds fewer, as those are mostly added up over the whole grid of keys.
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
        """Return the result of a query: private rows, or an output table after noise.

        Refuse a result that is too large, as when each WITH name uses the one before it twice.
        """
        result = self.parts(node, environment)
        if isinstance(result, Relation):
            nodes = weight_of(result.source) + sum(each.weight for each in result.conditions)
        else:
            nodes = sum(1 for _ in itertools.islice(result.tree.walk(), MOST_NODES + 1))
        check_weight(nodes)
        return result

    def parts(self, node: exp.Expression, environment: Environment) -> Relation | OutputTable:
        """Return the result of a query by its form: a SELECT, a set operation, or one in brackets."""
        match node:
            case exp.Subquery() if is_bare(node):
                return self.query(node.this, environment)
            case exp.Select():
                return self.select(node, self.with_ctes(node, environment))
            case exp.Union() | exp.Intersect() | exp.Except():
                names = self.with_ctes(node, environment)
                left = self.query(node.this, names)
                right = self.query(node.expression, names)
                return sets.combine(node, left, right, self.alias)
        raise reject(node, f"{show(node)} cannot stand here.", "Write a SELECT.")

    def with_ctes(self, node: exp.Expression, environment: Environment) -> Environment:
        """Return the environment with the tables of a WITH clause."""
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
        """Return the column with the half-width of a form of several numbers, the same in every
        row.
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
        """Return the tables of a SELECT's FROM clause, in its order."""
        clause = node.args.get("from_")
        if clause is None:
            check_without_from(node, self.policy.tables)
            return []
        parts = (clause.this, *(join.this for join in node.args.get("joins") or []))
        return [self.relation(part, environment) for part in parts]

    def join_sources(
        self, node: exp.Select, sources: list[Relation | OutputTable]
    ) -> Relation | None:
        """Join the tables of a SELECT to one private relation; return None if no table is
        private.
        """
        if not any(isinstance(each, Relation) for each in sources):
            return None
        joins = node.args.get("joins") or []
        parts = [node.args["from_"].this, *(join.this for join in joins)]
        sides: list[Relation | PublicSide] = []
        for source, part in zip(sources, parts, strict=True):
            if isinstance(source, Relation):
                sides.append(source)
            else:
                sides.append(self.public_side(source, part))
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
        """Return a public table, or one computed from public tables, as a side of a join with private
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
        """Return an item of a FROM clause as a table."""
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
        """Return the joined tables in brackets, as in a JOIN (b JOIN c ON ...) ON ...; they keep
        their names.
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
        """Return the table that a name means: of WITH, of the policy, or of information_schema."""
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
        name = node.name.lower()
        definition = environment.get(name)
        if isinstance(definition, Relation):
            return self.reference(definition, node.alias or node.name)
        if definition is not None:
            return definition
        tables = self.policy.tables.items()
        table = next((each for key, each in tables if key.lower() == name), None)
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
        """Return the rows of a WITH name, as a stage of its own for each use."""
        # Privacy: S4. Two uses of one name must have different engine aliases: otherwise EXISTS would
        # compare an owner with itself. They must have different origins: otherwise a person's pairs
        # of rows would be counted as rows.
        fresh = self.alias()
        nested = relation.nest(fresh)
        fields = []
        for column in nested.fields:
            origins = frozenset((f"{fresh}.{origin[0]}", *origin[1:]) for origin in column.origins)
            fields.append(replace(column, origins=origins))
        return replace(nested, fields=tuple(fields)).with_name(alias)

    # --- SELECT -----------------------------------------------------------------------------------

    def select(self, node: exp.Select, environment: Environment) -> Relation | OutputTable:
        """Return the result of a SELECT: private rows, or a table after noise if it aggregates them
        or reads none.
        """
        _check_clauses(node)
        node = self.without_habits(node, environment)
        if grouping.has_sets(node):
            return self.select_sets(node, environment)
        sources = self.sources(node, environment)
        for turn in (join_after_noise, keep_public_rows):
            turned = turn(self, node, sources, environment)
            if turned is not None:
                return turned
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
        """Return the SELECT with brackets, tuples of keys, and joins that only filter rewritten to the
        one form that is analyzed.
        """
        node = grouping.without_tuples(drop_brackets(node))
        node = without_correlated(node, owners_of(self.policy, environment))
        private = private_columns(self.policy, named=environment)
        return without_filters(without_antijoins(node, private), private)

    def select_sets(self, node: exp.Select, environment: Environment) -> Relation | OutputTable:
        """Return the result of a SELECT with GROUPING SETS, ROLLUP or CUBE: the UNION of its
        groupings.
        """
        self.sets += 1
        union = grouping.expand_sets(node, self.columns_of(node, environment))
        result = self.query(union, environment)
        self.sets -= 1
        return result

    def select_after_noise(
        self, node: exp.Select, sources: list[Relation | OutputTable], environment: Environment
    ) -> OutputTable:
        """Return the result of a SELECT over tables that are public or already noisy."""
        tables = [each for each in sources if isinstance(each, OutputTable)]
        columns = {output.name.lower() for each in tables for output in each.outputs}
        return after.select(with_meanings(node, columns), tables, self, environment)

    def lists_keys(self, node: exp.Select, relation: Relation, environment: Environment) -> bool:
        """Return True for a SELECT DISTINCT of public keys, which the policy lists; False for owners
        and texts.
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
        keys = [key_of(value, self.policy.limits.keys)[0] for value in values]
        return all(isinstance(key, Key) for key in keys)

    def columns_of(self, node: exp.Select, environment: Environment) -> frozenset[str]:
        """Return the names of all columns in a SELECT's FROM clause; forget the blocks that it
        measures.
        """
        blocks = len(self.blocks)
        forms = len(self.combined)
        sources = self.sources(node, environment)
        del self.blocks[blocks:], self.combined[forms:]
        names: set[str] = set()
        for source in sources:
            columns = source.fields if isinstance(source, Relation) else source.outputs
            names |= {column.name for column in columns}
        return frozenset(names)

    def scope(self, relation: Relation, environment: Environment) -> RowScope:
        return RowScope(
            fields=relation.fields, analysis=self, environment=environment, relation=relation
        )

    def measure(
        self, node: exp.Select, relation: Relation, environment: Environment, values: list[Value]
    ) -> OutputTable:
        """Add the block of a SELECT that aggregates private rows; return the SQL that runs on its
        noisy table.
        """
        names = self.scope(relation, environment)
        keys = keys_of(node, values, relation, self.policy, self.finder)
        unknown = [place for key, place in keys.values() if isinstance(key, Unknown)]
        if unknown and relation.max_groups is not None:
            places = [place for _, place in keys.values()]
            relation, columns = limit_groups(relation, places, unknown, self.alias)
            names = self.scope(relation, environment)
            before = values
            values = self.group_values(node, names)
            keys = keys_in_columns(keys, before, values, columns)
        meanings = meanings_of(node, names)
        identities = [value.identity for value in values]
        index = len(self.blocks)
        rewrite = Rewrite(
            analysis=self,
            environment=environment,
            names=names,
            keys=keys,
            meanings=list(zip(meanings, identities, strict=True)),
            node=node,
            index=index,
        )
        # Keep the place of this block: subqueries may add theirs behind it.
        self.blocks.append(cast(Block, None))
        released = rewrite.output_table()
        if not rewrite.requests:
            return self.list_keys(node, released, [key for key, _ in keys.values()], index)
        origins = {}
        for identity, meaning in zip(identities, meanings, strict=True):
            origins[identity] = names.origins(meaning)
        block, again, alone = block_of(
            rewrite, relation, origins, policy=self.policy, finder=self.finder
        )
        self.blocks[index] = block
        self.again[index] = again
        self.alone[index] = alone
        return replace(released, selected=True) if block.unknown else released

    def list_keys(
        self, node: exp.Select, released: OutputTable, keys: list[Key | Unknown], index: int
    ) -> OutputTable:
        """Return the policy's list of groups, the answer to GROUP BY without an aggregate; refuse it
        if a subquery measures anything.
        """
        if len(self.blocks) > index + 1:
            raise reject(node, LISTS, suggest_count(node))
        self.blocks.pop()
        return list_keys(node, released, keys, table_name(index))

    def group_values(self, node: exp.Select, names: Names) -> list[Value]:
        """Return the values of GROUP BY."""
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
    result = node.copy()
    keys = [item.unalias().copy() for item in node.expressions]
    result.set("group", exp.Group(expressions=keys))
    result.set("distinct", None)
    return result


_NO_KEYS = (Opaque, Missing, Text)
_STEPS = "Write the steps out: (VALUES (1), (2), (3)) AS t(n), or GENERATE_SERIES(1, 12) AS t(n)."
_SAMPLE = "a sample is other people's rows by chance, and which ones would not be repeatable."
