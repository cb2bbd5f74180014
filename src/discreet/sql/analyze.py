"""From a question to a Plan: which rows are whose, what is measured, what runs after noise.

`Analysis.query` walks the statement. A SELECT over private rows without aggregates is again a private relation; with
aggregates it becomes a measured block, and from there on everything is post-processing. What is not understood is
refused; no clause is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from discreet.errors import Rejected
from discreet.policy import Policy
from discreet.sql import after, aggregates
from discreet.sql.after import Output, Released
from discreet.sql.expressions import as_flag, translate
from discreet.sql.parse import parse, reject, show
from discreet.sql.plan import Block, Column, Key, Plan, key_position, table_name
from discreet.sql.relation import Field, Names, Relation, scan
from discreet.sql.values import Coded, Day, Flag, Missing, Moment, Number, Opaque, Text, Value

PublicSchemas = Mapping[str, tuple[str, ...]]  # public tables and their columns
Environment = Mapping[str, "Relation | Released"]

_SELECT_PARTS = frozenset(
    (
        "expressions",
        "from_",
        "joins",
        "where",
        "group",
        "having",
        "qualify",
        "order",
        "limit",
        "offset",
        "distinct",
        "with_",
    )
)


def plan(text: str, policy: Policy, public: PublicSchemas) -> Plan:
    """The plan of one question, or `Rejected`. Reads no data; depends on the text and the policy only."""
    tree = parse(text, limit=policy.limits.statement)
    analysis = Analysis(policy=policy, public=public)
    try:
        result = analysis.query(tree, {})
    except RecursionError:
        raise reject(tree, "the statement is nested too deeply to be analyzed.", "Split it.") from None
    if isinstance(result, Relation):
        raise reject(tree, "this asks for rows, and rows never leave.", f"Aggregate: {_example(result)}.")
    return Plan(
        blocks=tuple(analysis.blocks),
        after=result.render(margins=True),
        columns=tuple(Column(name=o.name, margin=o.margin, estimate=o.estimate) for o in result.outputs),
        selected=result.selected,
        public=tuple(sorted(analysis.public_used)),
    )


def _example(relation: Relation) -> str:
    """A question that can be answered instead."""
    for each in relation.fields:
        if isinstance(each.value.domain, Coded | Flag):
            return f"SELECT {each.name}, COUNT(*) FROM ... GROUP BY {each.name}"
    return "SELECT COUNT(*) FROM ..."


@dataclass(slots=True, kw_only=True)
class Analysis:
    """The walk over one statement; collects the blocks it meets."""

    policy: Policy
    public: PublicSchemas
    blocks: list[Block] = field(default_factory=list)
    public_used: set[str] = field(default_factory=set)
    aliases: int = 0

    def query(self, node: exp.Expression, environment: Environment) -> Relation | Released:
        match node:
            case exp.Subquery():
                return self.query(node.this, environment)
            case exp.Select():
                return self.select(node, self.with_ctes(node, environment))
            case exp.Union():
                return self.union(node, self.with_ctes(node, environment))
        raise reject(node, f"{show(node)} cannot stand here.", "Write a SELECT.")

    def with_ctes(self, node: exp.Expression, environment: Environment) -> Environment:
        clause = node.args.get("with_")
        if clause is None:
            return environment
        if clause.args.get("recursive"):
            raise reject(clause, "recursive queries are not answered.", "Write the steps out.")
        names = dict(environment)
        for part in clause.expressions:
            if part.args["alias"].columns:
                raise reject(part, "a list of column names behind a WITH name is not answered.", "Use AS inside.")
            names[part.alias.lower()] = self.query(part.this, names)
        return names

    def union(self, node: exp.Union, environment: Environment) -> Relation | Released:
        left, right = self.query(node.this, environment), self.query(node.expression, environment)
        if isinstance(left, Relation) or isinstance(right, Relation):
            raise reject(node, "a UNION of private rows is not answered.", "Ask each part, and add the answers.")
        return after.union(node, left, right)

    # --- FROM -------------------------------------------------------------------------------------------------------

    def sources(self, node: exp.Select, environment: Environment) -> list[Relation | Released]:
        """What a SELECT reads, in the order of its FROM clause and joins."""
        clause = node.args.get("from_")
        if clause is None:
            return []
        parts = (clause.this, *(join.this for join in node.args.get("joins") or []))
        return [self.relation(part, environment) for part in parts]

    def joined(self, node: exp.Select, sources: list[Relation | Released]) -> Relation | None:
        """The private relation that a SELECT reads, or None when all it reads is public or already noisy."""
        private = [each for each in sources if isinstance(each, Relation)]
        if not private:
            return None
        if len(sources) > 1:
            raise reject(
                node.args["joins"][0], "joins with private tables are not answered yet.", "Ask one table at a time."
            )
        return private[0]

    def relation(self, node: exp.Expression, environment: Environment) -> Relation | Released:
        match node:
            case exp.Table():
                return self.table(node, environment)
            case exp.Subquery():
                if (
                    node.args.get("joins")
                    or node.args.get("laterals")
                    or node.args.get("sample")
                    or node.args.get("pivots")
                ):
                    raise reject(node, f"{show(node)} has a part that is not understood.", "Write a plain subquery.")
                result = self.query(node.this, environment)
                return result.called(node.alias) if isinstance(result, Relation) else result
        raise reject(node, f"{show(node)} is not a table.", f"Tables are {', '.join(self.policy.tables)}.")

    def table(self, node: exp.Table, environment: Environment) -> Relation | Released:
        for name, part in node.args.items():
            if name not in ("this", "alias") and part not in (None, False, []):
                raise reject(
                    node, f"{show(node)} has a part that is not understood ({name}).", "Write the name of a table."
                )
        if not isinstance(node.this, exp.Identifier) or (node.args.get("alias") and node.args["alias"].columns):
            raise reject(node, f"{show(node)} is not a table.", f"Tables are {', '.join(self.policy.tables)}.")
        known = environment.get(node.name.lower())
        if known is not None:
            return known.called(node.alias or node.name) if isinstance(known, Relation) else known
        table = next((table for name, table in self.policy.tables.items() if name.lower() == node.name.lower()), None)
        if table is None:
            raise reject(node, f"there is no table {show(node.this)}.", f"Tables are {', '.join(self.policy.tables)}.")
        if table.public:
            self.public_used.add(table.name)
            return after.public_table(table.name, self.public[table.name])
        self.aliases += 1
        return scan(table, node.alias or table.name, f"t{self.aliases}")

    # --- SELECT -----------------------------------------------------------------------------------------------------

    def select(self, node: exp.Select, environment: Environment) -> Relation | Released:
        for name, part in node.args.items():
            if name not in _SELECT_PARTS and part not in (None, False, []):
                raise reject(node, f"{name.replace('_', ' ').upper()} is not answered.", "Leave it out.")
        sources = self.sources(node, environment)
        relation = self.joined(node, sources)
        if relation is None:
            return after.select(node, [each for each in sources if isinstance(each, Released)], self, environment)
        if node.args.get("where"):
            condition = node.args["where"].this
            relation = relation.filtered(as_flag(translate(condition, Names(fields=relation.fields)), condition))
        if node.args.get("group") or _has_aggregate(node):
            return self.measure(node, relation, environment)
        return self.project(node, relation)

    def project(self, node: exp.Select, relation: Relation) -> Relation:
        """A row-wise SELECT: still private rows, with other columns."""
        for clause in ("having", "qualify", "order", "limit", "offset", "distinct"):
            if node.args.get(clause):
                raise reject(
                    node,
                    f"{clause.upper()} on private rows would depend on other people's rows.",
                    "Aggregate first; ORDER BY and LIMIT then apply to the noisy result.",
                )
        names, fields = Names(fields=relation.fields), []
        for item in node.expressions:
            if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
                if item.find(exp.Star) and any(item.find(exp.Star).args.values()):
                    raise reject(item, "this form of * is not answered.", "List the columns.")
                chosen = item.table.lower() if isinstance(item, exp.Column) else ""
                fields += [each for each in relation.fields if chosen in ("", each.table.lower())]
                continue
            value = translate(item.unalias(), names)
            fields.append(Field(table="", name=item.output_name or show(item), value=value))
        return Relation(
            source=relation.source,
            owner=relation.owner,
            fields=tuple(fields),
            rows=relation.rows,
            conditions=relation.conditions,
        )

    def measure(self, node: exp.Select, relation: Relation, environment: Environment) -> Released:
        """A SELECT that aggregates private rows: a measured block, and SQL over its noisy table."""
        names = Names(fields=relation.fields)
        keys = self.keys(node, names)
        rewrite = _Rewrite(
            analysis=self, environment=environment, names=names, keys=keys, node=node, index=len(self.blocks)
        )
        self.blocks.append(None)  # type: ignore[arg-type]  # the place of this block; subqueries may add theirs
        released = rewrite.released()
        groups = 1
        for key in keys.values():
            groups *= key[0].size
        if groups > self.policy.limits.keys:
            raise reject(
                node.args["group"],
                f"the keys make {groups} groups, and the policy allows {self.policy.limits.keys}.",
                "Group by fewer columns, or by coarser ones.",
            )
        if not rewrite.requests:
            raise reject(
                node,
                "GROUP BY without an aggregate lists which groups exist.",
                "Add COUNT(*), which tells how large each group is.",
            )
        assembly = aggregates.assemble(
            rewrite.requests, rows=relation.rows, groups=groups, neighbors=self.policy.neighbors, node=node
        )
        self.blocks[rewrite.index] = Block(
            source=relation.source,
            conditions=relation.conditions,
            keys=tuple(key for key, _ in keys.values()),
            key_sql=tuple(sql for _, sql in keys.values()),
            sums=assembly.sums,
            measurements=assembly.measurements,
            estimates=assembly.estimates,
            derived=tuple(rewrite.derived),
        )
        return released

    def keys(self, node: exp.Select, names: Names) -> dict[str, tuple[Key, str]]:
        """The group keys by the SQL of their value: what they are, and the SQL of their position."""
        clause = node.args.get("group")
        if clause is None:
            return {}
        for name, part in clause.args.items():
            if name != "expressions" and part not in (None, False, []):
                raise reject(clause, f"GROUP BY {name.upper()} is not answered yet.", "Group by a list of columns.")
        found: dict[str, tuple[Key, str]] = {}
        for item in clause.expressions:
            expression = _meaning(item, node, names)
            value = translate(expression, names)
            domain = value.domain
            if isinstance(domain, Opaque):
                raise reject(item, f"{show(item)} identifies people.", "Group by something that many people share.")
            if isinstance(domain, Text):
                raise reject(
                    item,
                    f"the values of {show(item)} are not public.",
                    "Ask the curator to list them in the policy, or group by another column.",
                )
            if isinstance(domain, Missing) or value.constant:
                raise reject(item, f"{show(item)} is the same for everybody.", "Leave it out of GROUP BY.")
            assert isinstance(domain, Number | Coded | Flag | Day | Moment)
            if domain.size > self.policy.limits.keys:
                raise reject(
                    item,
                    f"{show(item)} has {domain.size} values, and the policy allows {self.policy.limits.keys} groups.",
                    "Group by something coarser, such as ROUND(x, -3).",
                )
            found[value.sql] = (
                Key(domain=domain, nullable=value.nullable),
                key_position(value.sql, domain, nullable=value.nullable),
            )
        return found


def _has_aggregate(node: exp.Select) -> bool:
    """Whether this SELECT itself aggregates; subqueries and window functions do not count."""
    clauses = [*node.expressions, *(node.args[name] for name in ("having", "qualify", "order") if node.args.get(name))]
    return any(_aggregates(part) for part in clauses)


def _aggregates(node: exp.Expression) -> bool:
    if isinstance(node, exp.Query | exp.Subquery):
        return False
    if isinstance(node, exp.Window):
        return any(_aggregates(part) for part in node.this.iter_expressions()) or any(
            _aggregates(part) for name, part in node.args.items() if name != "this" and isinstance(part, exp.Expression)
        )
    return aggregates.is_aggregate(node) or any(_aggregates(part) for part in node.iter_expressions())


def _meaning(item: exp.Expression, node: exp.Select, names: Names) -> exp.Expression:
    """GROUP BY 1 and GROUP BY alias mean an expression of the SELECT list."""
    if isinstance(item, exp.Literal) and not item.is_string:
        index = int(item.this) if item.this.isdigit() else 0
        if not 1 <= index <= len(node.expressions):
            raise reject(item, f"there is no column {item.this} in the SELECT list.", "Group by a column's name.")
        return node.expressions[index - 1].unalias()
    if isinstance(item, exp.Column) and not item.table:
        known = any(field.name.lower() == item.name.lower() for field in names.fields)
        alias = next(
            (
                part
                for part in node.expressions
                if isinstance(part, exp.Alias) and part.alias.lower() == item.name.lower()
            ),
            None,
        )
        if alias is not None and not known:
            return alias.this
    return item.this if isinstance(item, exp.Paren) else item


@dataclass(slots=True, kw_only=True)
class _Rewrite:
    """The part of an aggregating SELECT that runs after noise: keys and aggregates become columns of the noisy table."""

    analysis: Analysis
    environment: Environment
    names: Names
    keys: dict[str, tuple[Key, str]]
    node: exp.Select
    index: int
    requests: list[aggregates.Request] = field(default_factory=list)
    signatures: dict[str, int] = field(default_factory=dict)
    derived: list[str] = field(default_factory=list)

    def released(self) -> Released:
        table = table_name(self.index)
        items, outputs = [], []
        for item in self.node.expressions:
            if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
                raise reject(item, "* stands for rows, and rows never leave.", "List keys and aggregates.")
            expression = self.rewritten(item.unalias())
            name = item.output_name or show(item)
            items.append(exp.alias_(expression, name, quoted=True))
            outputs.append(self.output(name, expression))
        tree = exp.select(*items).from_(table)
        conditions = [self.node.args[name].this for name in ("having",) if self.node.args.get(name)]
        for condition in conditions:
            tree = tree.where(self.rewritten(condition), copy=False)
        if self.node.args.get("qualify"):
            tree.set("qualify", exp.Qualify(this=self.rewritten(self.node.args["qualify"].this)))
        after.finish(tree, self.node, self.rewritten)
        selected = bool(conditions) or after.selects(self.node)
        return Released(
            tree=tree, outputs=tuple(outputs), selected=selected, distinct=bool(self.node.args.get("distinct"))
        )

    def output(self, name: str, expression: exp.Expression) -> Output:
        """What is known of an output column: a key, an aggregate as measured, or something computed from them."""
        plain = expression.this if isinstance(expression, exp.Paren) else expression
        if isinstance(plain, exp.Column):
            kind, number = plain.name[0], int(plain.name[1:])
            if kind == "k":
                return Output(name=name, margin=None, estimate=None)
            return Output(name=name, margin=f"m{number}", estimate=(self.index, number))
        used = [column for column in expression.find_all(exp.Column) if column.name.startswith("a")]
        if not used or expression.find(exp.Window, exp.Query):
            return Output(name=name, margin=None, estimate=None)
        self.derived.append(after.as_sql(expression))
        return Output(name=name, margin=f"d{len(self.derived) - 1}", estimate=None)

    def rewritten(self, node: exp.Expression) -> exp.Expression:
        """A copy of the expression with keys and aggregates replaced by columns of the noisy table."""
        if isinstance(node, exp.Query | exp.Subquery):
            return after.subquery(node, self.analysis, self.environment)
        if isinstance(node, exp.Window):
            return after.rebuilt(
                node, lambda part: after.rebuilt(part, self.rewritten) if part is node.this else self.rewritten(part)
            )
        if aggregates.is_aggregate(node):
            return self.aggregate(node)
        if isinstance(node, exp.Literal | exp.Null | exp.Boolean):
            return after.rebuilt(node, self.rewritten)
        if not _aggregates(node) and not node.find(exp.Query) and node.find(exp.Column):
            found = self.key(node)
            if found is not None:
                return found
        if isinstance(node, exp.Column):
            alias = (
                None
                if node.table
                else next(
                    (
                        part
                        for part in self.node.expressions
                        if isinstance(part, exp.Alias) and part.alias.lower() == node.name.lower()
                    ),
                    None,
                )
            )
            if alias is not None and alias.this != node:
                return exp.Paren(this=self.rewritten(alias.this))
            self.names.column(node)  # an unknown name is the better message
            raise reject(
                node, f"{show(node)} is neither aggregated nor in GROUP BY.", "Aggregate it, or add it to GROUP BY."
            )
        return after.rebuilt(node, self.rewritten)

    def key(self, node: exp.Expression) -> exp.Expression | None:
        """The key's column, where the expression is one of the GROUP BY expressions."""
        if not self.keys:
            return None
        try:
            value: Value = translate(node, self.names)
        except Rejected:  # it may mean something after noise only; its parts are looked at next
            return None
        position = list(self.keys).index(value.sql) if value.sql in self.keys else None
        return None if position is None else exp.column(f"k{position}", table=table_name(self.index))

    def aggregate(self, node: exp.Expression) -> exp.Expression:
        request = aggregates.read(node, self.names)
        signature = repr(
            (request.kind, request.value and request.value.sql, request.condition, request.sample, request.root)
        )
        if signature not in self.signatures:
            self.signatures[signature] = len(self.requests)
            self.requests.append(request)
        return exp.column(f"a{self.signatures[signature]}", table=table_name(self.index))
