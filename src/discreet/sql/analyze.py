"""From a question to a Plan: which rows are whose, what is measured, what runs after noise.

`Analysis.query` walks the statement. A SELECT over private rows without aggregates is again a private relation; with
aggregates it becomes a measured block, and from there on everything is post-processing. What is not understood is
refused; no clause is ignored.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from functools import cache, partial
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp
from sqlglot.errors import SqlglotError

from discreet.algebra import Cast, Expression, Fold, Order, Over, call, weight_of
from discreet.errors import DiscreetError, EngineFailure, Rejected
from discreet.policy.domain import Text as DeclaredText
from discreet.policy.policy import Policy
from discreet.sql import rolling
from discreet.sql.after import after
from discreet.sql.after.again import again
from discreet.sql.after.joint import measured
from discreet.sql.after.kinds import Kind
from discreet.sql.after.linear import Form
from discreet.sql.after.naming import HALF_WIDTHS, constant_name, table_name
from discreet.sql.after.rebuild import as_sql
from discreet.sql.after.released import Output, Released, told_apart
from discreet.sql.after.rewrite import Keys, Rewrite, has_aggregate, meanings_of
from discreet.sql.aggregates.assembly import UNBOUNDED, assemble, people_first
from discreet.sql.aggregates.readings import Rows
from discreet.sql.check import Checker
from discreet.sql.identity import named, sharing
from discreet.sql.keys import key_of, keys_of, possible
from discreet.sql.limits import check_room, check_work
from discreet.sql.listing import COUNTED, LISTS, listed
from discreet.sql.plan import (
    Block,
    Column,
    Key,
    Plan,
    Unknown,
    arrow_type,
    empty_plan,
)
from discreet.sql.rows import persons, sets
from discreet.sql.rows.joins import conjuncts, join, unbracketed
from discreet.sql.rows.possible import Possible, Spell
from discreet.sql.rows.public import PublicSide, public_side
from discreet.sql.rows.relation import ANYTHING, Field, Names, Origins, Relation, distinct_values, links_of, scan
from discreet.sql.rows.scope import RowScope
from discreet.sql.text import clients, grouping
from discreet.sql.text.dialect import Dialect
from discreet.sql.text.parse import (
    MOST_NODES,
    check_weight,
    columns_of,
    counted_labels,
    is_bare,
    parse,
    reject,
    show,
    spelt,
    whole,
    written,
)
from discreet.sql.text.postgres import kind_of, meant
from discreet.sql.text.probe import probed
from discreet.sql.text.spelling import spelled
from discreet.sql.text.top import shown_by_having
from discreet.sql.values.expressions import translate
from discreet.sql.values.unify import as_flag
from discreet.sql.values.value import Coded, Flag, Identity, Missing, Number, Opaque, Text, Value
from discreet.sql.walk import Environment

PublicTables = Mapping[str, pa.Table]
Evaluate = Callable[[str], pa.Table]  # runs SQL over public tables, which are public

MOST_ROWS = 1_000_000  # of one person, after joins: nobody alone can keep the engine busy for long (S13)

_READ = ("from_", "joins", "where", "group", "having", "qualify", "with_")
_SELECT_PARTS = frozenset((*_READ, "expressions", "distinct", "order", "limit", "offset"))


def plan(
    text: str,
    policy: Policy,
    public: PublicTables,
    evaluate: Evaluate,
    *,
    dialect: Dialect = "duckdb",
    today: date | None = None,
    spell: Spell | None = None,
) -> Plan:
    """The plan of one question, or `Rejected`: it depends on these alone.

    `today` is what CURRENT_DATE means; `spell` writes a tree as SQL that `evaluate` can run over values written out.
    """
    tree = parse(text, limit=policy.limits.statement, dialect=dialect)
    analysis = Analysis(policy=policy, public=public, evaluate=evaluate, spell=spell)
    asks_the_day = any(map(clients.is_clock, tree.walk()))
    try:
        tree = spelled(meant(tree) if dialect == "postgres" else tree, database=policy.path.stem, today=today)
        probe = probed(tree)
        with counted_labels():
            result = analysis.query(tree if probe is None else probe, {})
            if probe is not None and isinstance(result, Released) and not analysis.blocks:  # free as it is
                result, probe = analysis.query(tree, {}), None
    except _UNFORESEEN as error:
        if isinstance(error, DiscreetError):
            raise
        # Fail closed: syntax of a shape that no rule foresaw (MAX() without an argument) is not understood, so refused.
        raise reject(
            tree, "the statement has a part that is not understood.", "docs/language.md lists what is."
        ) from None
    if isinstance(result, Relation):
        if probe is None:
            raise _asks_for_rows(tree, result)
        return empty_plan([(each.name, arrow_type(each.value.domain)) for each in result.listed("")])
    shown, only = result.shadowed(), len(analysis.blocks) == 1 and not analysis.public_used
    blocks, ways = rolling.rolled(
        sharing(analysis.blocks), analysis.again, accountant=policy.budget.accountant, limit=policy.limits.keys
    )
    check_work(tree, blocks, policy, analysis.letters)
    check_room(tree, blocks, policy)
    kinds, once_more = again(
        result.tree,
        [each.margin is not None and not result.distinct for each in result.outputs],
        {table_name(index): measured(block) for index, block in enumerate(blocks)},
    )
    return Plan(
        blocks=named(blocks),
        after=as_sql(shown),
        listed=after.listed(shown, table_name(0)) if only else None,
        columns=tuple(_column(output, result, kind) for output, kind in zip(result.outputs, kinds, strict=True)),
        selected=result.selected,
        public=tuple(sorted(analysis.public_used)),
        combined=tuple(analysis.combined),
        ways=ways,
        probe=probe is not None,
        today=today if asks_the_day else None,
        max_rows=tuple(sorted(analysis.private_used.items())),
        again=once_more,
    )


def _column(output: Output, result: Released, kind: Kind) -> Column:
    has_margin = output.margin is not None
    return Column(
        name=output.name,
        measured=has_margin,
        estimate=output.estimate,
        also=output.also,
        forms=output.forms if has_margin and not output.estimate else (),
        simulated=has_margin and not output.estimate and not output.forms and not result.distinct,
        noisy=kind is not Kind.PUBLIC and output.half_width is None,
        half_width=output.half_width,
    )


def _asks_for_rows(tree: exp.Expression, result: Relation) -> Rejected:
    if tree.args.get("group"):
        return reject(tree.args["group"], _OF_EACH, _SPREAD)
    return reject(tree, "this asks for rows, and rows never leave.", f"Aggregate: {_example(tree, result)}.")


def _example(tree: exp.Expression, relation: Relation) -> str:
    """A question that can be answered instead."""
    table = tree.find(exp.Table)
    name = written(table.name) if table is not None else "t"
    asked = {column.name.lower() for item in tree.expressions for column in item.find_all(exp.Column)}
    public = [each.name for each in relation.fields if isinstance(each.value.domain, Coded | Flag)]
    key = next((written(each) for each in sorted(public, key=lambda each: each.lower() not in asked)), None)
    return f"SELECT COUNT(*) FROM {name}" if key is None else f"SELECT {key}, COUNT(*) FROM {name} GROUP BY {key}"


def _counted(node: exp.Select) -> str:
    """SELECT DISTINCT x FROM t, as counts of people."""
    key, table = show(node.expressions[0].unalias()), node.args["from_"].this
    return f"SELECT {key}, COUNT(*) FROM {written(table.name or 't')} GROUP BY {key}"


def _touched(relation: Relation, keys: Keys, origins: dict[Identity, Origins], groups: int) -> tuple[int, int]:
    """How many groups one person can be in, and how many unknown keys: only the latter are bounded by max_groups."""
    touched = distinct_values(frozenset().union(*origins.values()), relation.rows) if keys else 1
    unclear = [origins[same] for same, (key, _) in keys.items() if isinstance(key, Unknown)]
    unknown = distinct_values(frozenset().union(*unclear), relation.touched or relation.rows)
    return min(touched, unknown * groups) if unclear else touched, unknown


@dataclass(slots=True, kw_only=True)
class Analysis:
    """The walk over one statement; collects the blocks it meets."""

    policy: Policy
    public: PublicTables
    evaluate: Evaluate
    spell: Spell | None = None
    sets: int = 0  # grouping sets that this place is inside of: they are added up over the whole grid of keys
    blocks: list[Block] = field(default_factory=list)
    again: dict[int, rolling.Again] = field(default_factory=dict)  # what each block would measure over more groups
    public_used: set[str] = field(default_factory=set)
    combined: list[Form] = field(default_factory=list)  # of several numbers, whose half-widths are asked for
    private_used: dict[str, int] = field(default_factory=dict)  # with their max_rows
    aliases: int = 0

    @property
    def finder(self) -> Possible | None:
        """Finds the groups that can be; grouping sets are added up over the whole grid of their keys."""
        if self.spell is None or self.sets:
            return None
        return Possible(policy=self.policy, public=self.public, spell=self.spell, evaluate=self.evaluate)

    @property
    def checker(self) -> Checker:
        return Checker(policy=self.policy)

    def letters(self, table: str, column: str) -> int:
        """How many letters the texts of a column have at most."""
        declared = self.policy.tables[table]
        if not declared.public:
            domain = declared.columns[column].domain if column in declared.columns else None
            return domain.letters if isinstance(domain, DeclaredText) else 0
        values = self.public[table].column(column)
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            return pc.max(pc.utf8_length(values)).as_py() or 0
        return 0

    def query(self, node: exp.Expression, environment: Environment) -> Relation | Released:
        """What a query stands for; refused where names that are used twice, twice over, would grow without end."""
        result = self.parts(node, environment)
        if isinstance(result, Relation):
            nodes = weight_of(result.source) + sum(each.weight for each in result.conditions)
        else:
            nodes = sum(1 for _ in itertools.islice(result.tree.walk(), MOST_NODES + 1))
        check_weight(nodes)
        return result

    def parts(self, node: exp.Expression, environment: Environment) -> Relation | Released:
        match node:
            case exp.Subquery() if is_bare(node):
                return self.query(node.this, environment)
            case exp.Select():
                return self.select(node, self.with_ctes(node, environment))
            case exp.Union() | exp.Intersect() | exp.Except():
                names = self.with_ctes(node, environment)
                left, right = self.query(node.this, names), self.query(node.expression, names)
                return sets.combined(node, left, right, self.alias)
        raise reject(node, f"{show(node)} cannot stand here.", "Write a SELECT.")

    def with_ctes(self, node: exp.Expression, environment: Environment) -> Environment:
        clause = node.args.get("with_")
        if clause is None:
            return environment
        if clause.args.get("recursive"):
            raise reject(clause, "recursive queries are not answered.", "Write the steps out.")
        names = dict(environment)
        for part in clause.expressions:
            names[part.alias.lower()] = self.named(self.query(part.this, names), part)
        return names

    def combine(self, output: Output, form: Form) -> Output:
        """The column with the half-width of a form of several numbers, which is the same in every row."""
        self.combined.append(form)
        name = constant_name(len(self.combined) - 1)
        constant = exp.select(exp.column(name)).from_(exp.table_(HALF_WIDTHS, quoted=True))
        return replace(output, margin=exp.Subquery(this=constant), forms=(form,))

    def alias(self) -> str:
        """A fresh engine alias."""
        self.aliases += 1
        return f"t{self.aliases}"

    # --- FROM -------------------------------------------------------------------------------------------------------

    def sources(self, node: exp.Select, environment: Environment) -> list[Relation | Released]:
        """What a SELECT reads, in the order of its FROM clause and joins."""
        clause = node.args.get("from_")
        if clause is None:
            if node.args.get("joins"):
                raise reject(node, "JOIN stands without FROM.", "Write FROM and a table before it.")
            return []
        parts = (clause.this, *(join.this for join in node.args.get("joins") or []))
        return [self.relation(part, environment) for part in parts]

    def joined(self, node: exp.Select, sources: list[Relation | Released]) -> Relation | None:
        """The private relation that a SELECT reads, or None when all it reads is public or already noisy."""
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
                    clause, "two public tables are joined before a private one.", "Name the private table first."
                )
            left = join(left, right, clause, where, self.alias())
        assert isinstance(left, Relation)
        return left

    def public_side(self, released: Released, node: exp.Expression) -> PublicSide:
        """A public table, or one computed from public tables, to be joined to private rows."""
        if released.noisy:
            raise reject(
                node,
                "a noisy result cannot be joined back to private rows.",
                "Aggregate both sides, and join the results.",
            )
        table = self.of_public(released, node)
        return public_side(
            table, alias=node.alias or node.name, engine_alias=self.alias(), stored=released.stored, node=node
        )

    def of_public(self, released: Released, node: exp.Expression) -> pa.Table:
        """A table computed from public ones."""
        try:
            return self.evaluate(released.render(margins=False))
        except EngineFailure:
            raise reject(
                node, f"{show(node)} cannot be computed from the public tables.", "Check its types and columns."
            ) from None

    def relation(self, node: exp.Expression, environment: Environment) -> Relation | Released:
        match node:
            case exp.Table():
                return self.table(node, environment)
            case exp.Subquery(this=exp.Table() | exp.Subquery()) if node.this.args.get("joins") and not node.alias:
                return self.bracketed(node, environment)
            case exp.Subquery():
                if any(part for name, part in node.args.items() if name not in ("this", "alias")):
                    raise reject(node, f"{show(node)} has a part that is not understood.", "Write a plain subquery.")
                result = self.named(self.query(node.this, environment), node)
                return result.called(node.alias) if isinstance(result, Relation) else result
            case exp.Lateral():
                raise reject(
                    node,
                    "LATERAL looks at each row by itself.",
                    "Aggregate per person, GROUP BY the owner, in a plain subquery, and join it on the owner.",
                )
            case exp.Values():
                return self.named(after.constants(node), node)
            case exp.Unnest(expressions=[exp.GenerateSeries() as inner]):  # how a parser may read GENERATE_SERIES
                return self.series(exp.Table(this=inner, alias=node.args.get("alias")))
            case exp.Unnest():
                raise reject(node, f"{show(node)} is not a table.", _WRITTEN_OUT)
        raise reject(node, f"{show(node)} is not a table.", "Write the name of a table, or a subquery.")

    def bracketed(self, node: exp.Subquery, environment: Environment) -> Relation:
        """a JOIN (b JOIN c ON ...) ON ...: what stands in brackets is joined first, and its tables keep their names."""
        if any(part for name, part in node.args.items() if name != "this"):
            raise reject(node, f"{show(node)} has a part that is not understood.", "Write only the joins in brackets.")
        inner = unbracketed(exp.Select(from_=exp.From(this=node.this.copy())))
        relation = self.joined(inner, self.sources(inner, environment))
        if relation is None:
            raise reject(
                node, "brackets around joined tables are answered for private ones.", "Write the joins without them."
            )
        return relation

    def named(self, result: Relation | Released, node: exp.Expression) -> Relation | Released:
        """WITH t(a, b), (SELECT ...) AS t(a, b): other names for the first columns."""
        names, count = columns_of(node), len(result.fields if isinstance(result, Relation) else result.outputs)
        if not names:
            return result
        if len(names) > count:
            raise reject(node, f"{len(names)} names are given for {count} columns.", "Name each column once.")
        return result.renamed(names) if isinstance(result, Relation) else told_apart(result, node).renamed(names)

    def table(self, node: exp.Table, environment: Environment) -> Relation | Released:
        if node.args.get("sample"):
            raise reject(node, _SAMPLE, "Leave it out: the answer is about everybody, and costs the same.")
        if node.args.get("db"):
            raise reject(node, f"there is no schema {node.text('db')}.", f"Tables are {', '.join(self.policy.tables)}.")
        if node.args.get("pivots"):
            raise reject(
                node, "PIVOT is not answered.", "Write one column each: COUNT(*) FILTER (WHERE sex = 'F') AS f."
            )
        for name, part in node.args.items():
            if name not in ("this", "alias") and part not in (None, False, []):
                raise reject(
                    node, f"{show(node)} has a part that is not understood ({name}).", "Write the name of a table."
                )
        if isinstance(node.this, exp.GenerateSeries):
            return self.series(node)
        if columns_of(node):
            raise reject(node, f"{show(node)} names columns by their places.", "Use their own names, as in p.age.")
        if not isinstance(node.this, exp.Identifier):
            raise reject(node, f"{show(node)} is not a table.", f"Tables are {', '.join(self.policy.tables)}.")
        known = environment.get(node.name.lower())
        if known is not None:
            return self.reference(known, node.alias or node.name) if isinstance(known, Relation) else known
        table = next((table for name, table in self.policy.tables.items() if name.lower() == node.name.lower()), None)
        if table is None:
            raise reject(node, f"there is no table {show(node.this)}.", f"Tables are {', '.join(self.policy.tables)}.")
        if table.public:
            self.public_used.add(table.name)
            return after.public_table(table.name, self.public[table.name])
        self.private_used[table.name] = table.max_rows
        return scan(table, node.alias or table.name, self.alias(), links_of(self.policy.tables))

    def series(self, node: exp.Table) -> Released:
        """GENERATE_SERIES(1, 10) AS t(n): a public table that is written out, also called t, or generate_series."""
        numbers = clients.series(node.this)
        if not numbers:
            raise reject(node, f"{show(node.this)} is not a table.", _WRITTEN_OUT)
        listed = exp.Values(expressions=[exp.Tuple(expressions=[exp.convert(each)]) for each in numbers])
        names = columns_of(node) or [node.alias or "generate_series"]
        return after.constants(listed).renamed(names[:1])

    def reference(self, relation: Relation, alias: str) -> Relation:
        """A WITH name where it is used: a stage of its own."""
        # Privacy: S4. Two uses of one name must not share an engine alias, or the owners of an EXISTS would be compared
        # with themselves; nor origins, or a person's pairs of rows would be counted as rows.
        fresh = self.alias()
        nested = relation.nested(fresh)
        fields = (
            replace(each, origins=frozenset((f"{fresh}.{stage}", rows) for stage, rows in each.origins))
            for each in nested.fields
        )
        return replace(nested, fields=tuple(fields)).called(alias)

    # --- SELECT -----------------------------------------------------------------------------------------------------

    def select(self, node: exp.Select, environment: Environment) -> Relation | Released:
        if node.args.get("sample"):
            raise reject(node, _SAMPLE, "Leave it out: the answer is about everybody, and costs the same.")
        for name, part in node.args.items():
            if name not in _SELECT_PARTS and part not in (None, False, []):
                raise reject(node, f"{_word(name)} is not answered.", "Leave it out, or write it where it is used.")
        node = shown_by_having(grouping.without_tuples(unbracketed(node)))
        if grouping.has_sets(node):
            self.sets += 1
            found_sets = self.query(grouping.expanded(node, self.columns_of(node, environment)), environment)
            self.sets -= 1
            return found_sets
        sources = self.sources(node, environment)
        relation = self.joined(node, sources)
        if relation is not None and self.lists_keys(node, relation, environment):
            node = node.copy()
            node.set("group", exp.Group(expressions=[item.unalias().copy() for item in node.expressions]))
            node.set("distinct", None)
        if relation is None:
            return after.select(node, [each for each in sources if isinstance(each, Released)], self, environment)
        if node.args.get("where"):
            relation = self.filtered(relation, node.args["where"].this, environment)
        if node.args.get("group") or has_aggregate(node):
            keys = self.group_values(node, self.scope(relation, environment))
            if any(persons.is_own(key) for key in keys):
                return self.per_person(node, relation, keys)
            return self.measure(node, relation, environment, keys)
        return self.project(node, relation, environment)

    def lists_keys(self, node: exp.Select, relation: Relation, environment: Environment) -> bool:
        """Whether SELECT DISTINCT is of public keys, which the policy lists; of owners and texts it is not."""
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
        """The names of the columns of all that a SELECT reads; blocks that were met on the way are forgotten."""
        blocks, forms = len(self.blocks), len(self.combined)
        sources = self.sources(node, environment)
        del self.blocks[blocks:], self.combined[forms:]
        return frozenset(
            column.name for each in sources for column in (each.fields if isinstance(each, Relation) else each.outputs)
        )

    def scope(self, relation: Relation, environment: Environment) -> RowScope:
        return RowScope(fields=relation.fields, analysis=self, environment=environment, relation=relation)

    def filtered(self, relation: Relation, condition: exp.Expression, environment: Environment) -> Relation:
        """WHERE; a bound on each person's row number bounds how many rows a person has."""
        scope = self.scope(relation, environment)
        rows = relation.rows
        for part in conjuncts(condition):
            rows = min(rows, _numbered(part, scope, rows))
        return replace(relation.filtered(as_flag(translate(condition, scope), condition)), rows=rows)

    def per_person(self, node: exp.Select, relation: Relation, keys: list[Value]) -> Relation:
        if any(node.args.get(clause) for clause in ("qualify", "order", "limit", "offset", "distinct")):
            raise reject(
                node.args["group"],
                "GROUP BY the owner gives a row for each person, and people cannot be put in order or picked out.",
                _SPREAD,
            )
        return persons.grouped(node, relation, keys, self.alias(), self.alias())

    def project(self, node: exp.Select, relation: Relation, environment: Environment) -> Relation:
        """A row-wise SELECT: still private rows, with other columns."""
        for clause in ("having", "order", "limit", "offset"):
            if node.args.get(clause) and node.args.get("distinct"):
                raise reject(node, _DISTINCT, f"Count them, COUNT(DISTINCT x), or who has each: {_counted(node)}.")
            if node.args.get(clause):
                raise reject(
                    node.args[clause],
                    f"{_word(clause)} on private rows would depend on other people's rows.",
                    f"Aggregate first; ORDER BY and LIMIT then apply to the noisy result: {_example(node, relation)}.",
                )
        scope, fields = replace(self.scope(relation, environment), windows=True), []
        for item in node.expressions:
            if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
                dropped = after.excluded(item)
                chosen = item.table.lower() if isinstance(item, exp.Column) else ""
                fields += [each for each in relation.listed(chosen) if each.name.lower() not in dropped]
                continue
            value = replace(translate(item.unalias(), scope), kind=kind_of(item, scope.kind))
            name = item.output_name or spelt(item)
            fields.append(Field(table="", name=name, value=value, origins=scope.origins(item)))
        result = replace(relation, fields=tuple(fields), plain=False)
        if node.args.get("distinct"):
            return self.distinct(node, result)
        if node.args.get("qualify"):
            return self.qualified(node, result, relation, environment)
        return result.nested(self.alias()) if any(item.find(exp.Window) for item in node.expressions) else result

    def distinct(self, node: exp.Select, relation: Relation) -> Relation:
        """SELECT DISTINCT within each person: the owner must be among the columns."""
        if node.args["distinct"].args.get("on") or node.args.get("qualify"):
            raise reject(node.args["distinct"], "DISTINCT ON is not answered.", "Use ROW_NUMBER() per person.")
        owners = [each for each in relation.fields if isinstance(each.value.domain, Opaque) and each.value.domain.owner]
        if not owners:
            raise reject(
                node,
                _DISTINCT,
                f"Count them, COUNT(DISTINCT x), or who has each: {_counted(node)}.",
            )
        nested = relation.nested(self.alias(), distinct=True)
        return replace(nested, rows=1 if len(owners) == len(relation.fields) else relation.rows)

    def qualified(self, node: exp.Select, result: Relation, relation: Relation, environment: Environment) -> Relation:
        """QUALIFY: the windows are computed as a stage of their own, then filtered by what the rows had before it."""
        scope = replace(self.scope(relation, environment), windows=True)
        taken = {field.name.lower() for field in relation.fields}
        aliases = {part.alias.lower(): part.this for part in node.expressions if isinstance(part, exp.Alias)}
        meant = {name: part for name, part in aliases.items() if name not in taken}

        def meaning(part: exp.Expression) -> exp.Expression:
            alias = isinstance(part, exp.Column) and not part.table and meant.get(part.name.lower())
            return alias.copy() if alias else part

        condition = node.args["qualify"].this.transform(meaning)
        marks = list(condition.find_all(exp.Window))
        extra = tuple(
            Field(table="#", name=f"#{index}", value=translate(mark, scope), origins=ANYTHING)
            for index, mark in enumerate(marks)
        )
        nested = replace(result, fields=(*result.fields, *relation.fields, *extra)).nested(self.alias())
        shown, rest = nested.fields[: len(result.fields)], nested.fields[len(result.fields) :]
        mapping = {mark: f"#{index}" for index, mark in enumerate(marks)}
        renamed = condition.transform(lambda part: exp.column(mapping[part], table="#") if part in mapping else part)
        return replace(self.filtered(replace(nested, fields=rest), renamed, environment), fields=shown)

    def measure(self, node: exp.Select, relation: Relation, environment: Environment, values: list[Value]) -> Released:
        """A SELECT that aggregates private rows: a measured block, and SQL over its noisy table."""
        names = self.scope(relation, environment)
        keys = keys_of(node, values, relation, self.policy, self.finder)
        if relation.max_groups is not None and any(isinstance(key, Unknown) for key, _ in keys.values()):
            limited = self.limited(relation, [place for key, place in keys.values() if isinstance(key, Unknown)])
            return self.measure(node, limited, environment, self.group_values(node, self.scope(limited, environment)))
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
        released = rewrite.released()
        if not rewrite.requests:
            return self.list_keys(node, released, [key for key, _ in keys.values()], rewrite.index)
        origins = {value.identity: names.origins(meaning) for value, meaning in zip(values, meanings, strict=True)}
        self.blocks[rewrite.index] = block = self.block(rewrite, relation, origins)
        return replace(released, selected=True) if block.unknown else released

    def block(self, rewrite: Rewrite, relation: Relation, origins: dict[Identity, Origins]) -> Block:
        """What is measured for the aggregates that a SELECT asks for, over its groups."""
        keys, found = rewrite.keys, [key for key, _ in rewrite.keys.values()]
        joint, place = possible(relation, keys, self.finder)
        groups = math.prod(key.size for key in found if isinstance(key, Key)) if joint is None else joint.size
        unknown = any(isinstance(key, Unknown) for key in found)
        touched, keys_touched = _touched(relation, keys, origins, groups)
        rows = Rows(most=relation.rows, held=partial(self.checker.holds, source=relation.source))
        measured = partial(assemble, rows=rows, touched=touched, neighbors=self.policy.neighbors, node=rewrite.node)
        assembly = measured(rewrite.requests, groups=UNBOUNDED if unknown else groups)
        summed = [request for request in rewrite.requests if not request.chosen]
        self.again[rewrite.index] = cache(lambda groups: measured(summed, groups=groups).measurements)
        one_shot = False
        if unknown and groups == 1:
            assembly, one_shot = people_first(assembly, rewrite.requests, rows=relation.rows)
        return Block(
            source=relation.source,
            rows=relation.rows,
            touched=keys_touched,
            neighbors=self.policy.neighbors,
            conditions=relation.conditions,
            keys=tuple(found) if joint is None else (joint,),
            places=tuple(each for _, each in keys.values()) if place is None else (place,),
            readings=assembly.readings,
            measurements=assembly.measurements,
            picks=assembly.picks,
            estimates=assembly.estimates,
            derived=tuple(rewrite.derived),
            one_shot=one_shot,
        )

    def list_keys(self, node: exp.Select, released: Released, keys: list[Key | Unknown], index: int) -> Released:
        """What groups without an aggregate are: the policy's list of them, where no subquery measures anything."""
        if len(self.blocks) > index + 1:
            raise reject(node, LISTS, COUNTED)
        self.blocks.pop()
        return listed(node, released, keys, table_name(index))

    def limited(self, relation: Relation, keys: list[Expression]) -> Relation:
        """Only the rows of each person's first `max_groups` keys, in an order of the keys' content alone (S4, S5)."""
        order = (*(call("md5", Cast(key, "VARCHAR")) for key in keys), *keys)
        ranked_by = Over(Fold("dense_rank", ()), relation.owner, (), tuple(map(Order, order)))
        rank = Value(expression=ranked_by, domain=Number(step=Fraction(1), lo=1, hi=relation.rows))
        ranked = replace(
            relation, fields=(*relation.fields, Field(table="#", name="rank", value=rank, origins=ANYTHING))
        )
        nested = ranked.nested(self.alias())
        assert relation.max_groups is not None
        kept = nested.fields[-1].value.expression <= relation.max_groups
        # What is constant stays so: the keys, read again from here, must be those that were ranked.
        pairs = zip(relation.fields, nested.fields[:-1], strict=True)
        fields = tuple(before if before.value.constant else after for before, after in pairs)
        return replace(nested, fields=fields, conditions=(kept,), max_groups=None, touched=relation.max_groups)

    def group_values(self, node: exp.Select, names: Names) -> list[Value]:
        return [translate(meaning, names) for meaning in meanings_of(node, names)]


_NO_KEYS = (Opaque, Missing, Text)
_UNFORESEEN = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError),
    *(SqlglotError, pa.ArrowException),
)
_OF_EACH = "GROUP BY an identifier gives single rows, or a row for each person, and rows never leave."
_SPREAD = (
    "See how they are spread: SELECT QUANTILE_CONT(n, [0.5, 0.9]) FROM"
    " (SELECT owner, COUNT(*) AS n FROM t GROUP BY owner) AS s."
)
_WRITTEN_OUT = "Write its rows out: (VALUES (1), (2), (3)) AS t(n)."
_DISTINCT = "DISTINCT across people tells which values exist."
_SAMPLE = "a sample is other people's rows by chance, and which ones would not be repeatable."
_CLAUSES = {"order": "ORDER BY", "windows": "WINDOW"}


def _word(clause: str) -> str:
    return _CLAUSES.get(clause, clause.replace("_", " ").upper())


def _numbered(part: exp.Expression, scope: Names, rows: int) -> int:
    """How many rows a person has where `row number = 1`, `<= k` or `< k`; otherwise as many as before."""
    if type(part) not in (exp.EQ, exp.LTE, exp.LT) or not isinstance(part.this, exp.Column):
        return rows
    limit = whole(part.expression)
    if not scope.column(part.this).numbering or limit is None:
        return rows
    return 1 if isinstance(part, exp.EQ) else max(limit - isinstance(part, exp.LT), 1)
