"""Plan the SQL that runs after noise, over noisy and public tables. It costs nothing.

`rebuild` has its expressions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import sqlglot
from sqlglot import exp

from discreet.policy.declaration import HIDDEN
from discreet.sql.after import as_json, error_bars
from discreet.sql.after.rebuild import as_sql, rebuild, whole_division
from discreet.sql.after.released import (
    Combine,
    Output,
    OutputTable,
    pass_on,
    rename_keys,
    require_distinct_names,
    shadowing,
)
from discreet.sql.after.widths.linear import Form, form_of, substitute_forms
from discreet.sql.aggregates import aggregates_in
from discreet.sql.text.dialect import WRITER
from discreet.sql.text.parse import reject, show, spell, whole
from discreet.sql.text.postgres import Kind, kind_of
from discreet.sql.walk import Environment, Walk

Change = Callable[[exp.Expression], exp.Expression]  # rewrites a part of the tree
MAX_LIMIT = 10**9


def drop_filters(sql: str) -> str:
    """Return the statement without the clauses in which noisy numbers choose rows."""
    if re.search(r"\b(WHERE|HAVING|QUALIFY|LIMIT|OFFSET)\b", sql) is None:
        return sql
    tree = sqlglot.parse_one(sql, read="duckdb")
    for node in list(tree.find_all(exp.Select)):
        if any(table.name.startswith(HIDDEN) for table in node.find_all(exp.Table)):
            for clause in ("where", "having", "qualify", "limit", "offset"):
                node.set(clause, None)
    return as_sql(tree)


def leaves_out_rows(node: exp.Select) -> bool:
    """Return True if a SELECT leaves out some rows of its groups or of its result."""
    return any(node.args.get(name) for name in ("having", "qualify", "limit", "offset"))


def finish(tree: exp.Select, node: exp.Select, rewrite: Change) -> None:
    """Copy DISTINCT, ORDER BY, LIMIT and OFFSET of the original SELECT to the rebuilt tree."""
    distinct = node.args.get("distinct")
    if distinct:
        if distinct.args.get("on"):
            raise reject(
                distinct,
                "DISTINCT ON does not say which row comes first.",
                "Write ORDER BY behind it: SELECT DISTINCT ON (k) k, n FROM t ORDER BY k, n DESC.",
            )
        tree.set("distinct", exp.Distinct())
    order = node.args.get("order")
    if order:
        if order.args.get("siblings"):
            raise reject(order, "ORDER SIBLINGS BY is not answered.", "Use ORDER BY.")
        columns = len(tree.expressions)  # those that * stands for, too
        items = [_rewrite_order(item, columns, rewrite) for item in order.expressions]
        tree.set("order", exp.Order(expressions=items))
    for name in ("limit", "offset"):
        clause = node.args.get(name)
        if clause is not None:
            if clause.args.get("limit_options"):
                raise reject(
                    clause,
                    "LIMIT is a number of rows, without PERCENT or TIES.",
                    "Write LIMIT 10, or QUALIFY RANK() OVER (ORDER BY n DESC) <= 10.",
                )
            if type(clause) not in (exp.Limit, exp.Offset) or not _is_count(clause.expression):
                raise reject(
                    clause,
                    f"{name.upper()} needs a whole number written out.",
                    f"Write {name.upper()} 10.",
                )
            tree.set(name, type(clause)(expression=clause.expression.copy()))


def _is_count(node: exp.Expression | None) -> bool:
    """Return True for a whole number up to MAX_LIMIT that is written out."""
    if not isinstance(node, exp.Literal) or node.is_string:
        return False
    return node.this.isdigit() and int(node.this[:12]) <= MAX_LIMIT


def _rewrite_order(item: exp.Ordered, columns: int, rewrite: Change) -> exp.Ordered:
    if item.args.get("with_fill"):
        raise reject(item, "WITH FILL is not answered.", "Leave it out.")
    target = item.this
    if isinstance(target, exp.Literal) and not target.is_string:  # ORDER BY 2
        if not 1 <= (whole(target) or 0) <= columns:
            raise reject(
                target,
                f"there is no column {show(target)} in the SELECT list.",
                "Order by a column's name.",
            )
        value = target.copy()
    else:
        value = rewrite(target)
    return exp.Ordered(
        this=value,
        desc=item.args.get("desc"),
        nulls_first=item.args.get("nulls_first"),
    )


def _count_instead(node: exp.Expression) -> str:
    """Return a hint: the question that counts the rows which a subquery would return."""
    query = node.unnest()
    if not isinstance(query, exp.Select) or query.args.get("group") or query.args.get("with_"):
        return "Aggregate inside it."
    count = query.copy().select("COUNT(*)", append=False, copy=False)
    for clause in ("order", "limit", "offset", "distinct"):
        count.set(clause, None)
    return f"Count them: {count.sql(dialect=WRITER)}."


def subquery(node: exp.Expression, analysis: Walk, environment: Environment) -> OutputTable:
    """Analyze a subquery inside an expression; refuse one that returns rows of people."""
    result = analysis.query(node, environment)
    if not isinstance(result, OutputTable):
        raise reject(node, "this subquery returns rows of people.", _count_instead(node))
    if any(output.half_width == "late" for output in result.outputs):
        raise error_bars.not_here(node)
    return result


def embed(node: exp.Expression, result: OutputTable) -> exp.Expression:
    """Return the expression that takes the place of a subquery."""
    in_list = isinstance(node.parent, exp.In) and node.arg_key == "query"
    as_table = in_list or isinstance(node.parent, exp.Exists)
    as_value = not as_table and len(result.outputs) == 1
    if as_value and (result.selected or result.tree.find(exp.Join)):
        return exp.Subquery(this=_only(result.tree))
    query = exp.Subquery(this=result.tree.copy())
    if as_value and not result.selected and not result.distinct:
        query.meta["output"] = result.outputs[0]
    return query


def _only(tree: exp.Select) -> exp.Select:
    """Return the single value of a one-column table; NULL if noise leaves several rows.

    The engine would raise an error there, after the charge.
    """
    alias = exp.TableAlias(this=exp.to_identifier("s"), columns=[exp.to_identifier("only")])
    single = exp.EQ(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1))
    value = exp.func("FIRST", exp.column("only", table="s"))
    first = exp.Case(ifs=[exp.If(this=single, true=value)])
    return exp.select(first).from_(exp.Subquery(this=tree.copy(), alias=alias))


# --- SELECT over released tables ------------------------------------------------------------------


def select(
    node: exp.Select, tables: list[OutputTable], analysis: Walk, environment: Environment
) -> OutputTable:
    """Plan a SELECT over tables that are public or already noisy.

    `tables` are in the order of the FROM clause and the joins.
    """
    sources: dict[str, OutputTable] = {}
    inside: list[OutputTable] = []
    remaining = iter(tables)

    def table(part: exp.Expression) -> exp.Expression:
        source = require_distinct_names(next(remaining), part)
        alias = part.alias or part.name or f"unnamed {len(sources) + 1}"
        sources[alias.lower()] = source.without_margins() if source.distinct else source
        return exp.Subquery(
            this=source.with_margin_columns(),
            alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)),
        )

    def rewrite(part: exp.Expression) -> exp.Expression:
        if isinstance(part, exp.Query | exp.Subquery):
            inside.append(subquery(part, analysis, environment))
            return embed(part, inside[-1])
        if isinstance(part, exp.Anonymous | exp.Column):
            json = as_json.row(part, sources)
            if json is not None:
                return json
        if isinstance(part, exp.Column):
            _check_usable(part, sources)
        inner = error_bars.argument(part)
        if inner is not None:
            value, output = _items(inner, sources, rewrite, analysis.combine)[0]
            if output.margin is None or output.half_width or grouped:
                raise error_bars.not_here(part)
            return error_bars.half_width(value.unalias(), output.margin)
        return rebuild(whole_division(part, kind), rewrite)

    def kind(column: exp.Column) -> Kind | None:
        _check_known(column, sources)
        _, output = _find_output(column, sources)
        return output.kind if output is not None else None

    tree = exp.Select()
    aliases = {item.alias.lower() for item in node.expressions if isinstance(item, exp.Alias)}
    grouped = bool(node.args.get("group")) or any(aggregates_in(item) for item in node.expressions)
    if node.args.get("from_"):
        tree.set("from_", exp.From(this=table(node.args["from_"].this)))
    for join in node.args.get("joins") or []:
        tree.append("joins", _join(join, table, rewrite))
    outputs: list[Output] = []
    for item in node.expressions:
        for expression, output in _item(item, sources, rewrite, analysis.combine, grouped=grouped):
            tree.append("expressions", expression)
            typed = output if item.is_star else replace(output, kind=kind_of(item, kind))
            outputs.append(replace(typed, margin=None, forms=()) if grouped else typed)

    def late(part: exp.Expression) -> exp.Expression:
        """Rewrite a part of ORDER BY, GROUP BY or HAVING: it may use aliases of the SELECT list."""
        if isinstance(part, exp.Column) and not part.table and part.name.lower() in aliases:
            return part.copy()
        if isinstance(part, exp.Query | exp.Subquery):
            return rewrite(part)
        if isinstance(part, exp.Column):
            _check_usable(part, sources)
        if error_bars.argument(part) is not None:
            return rewrite(part)
        return rebuild(whole_division(part, kind), late)

    _add_clauses(tree, node, rewrite, late)
    selected = (
        leaves_out_rows(node)
        or bool(node.args.get("where"))
        or any(source.selected for source in sources.values())
    )
    noisy = any(part.noisy for part in (*sources.values(), *inside))
    return OutputTable(
        tree=tree,
        outputs=tuple(outputs),
        selected=selected and noisy,
        noisy=noisy,
        distinct=bool(node.args.get("distinct")) or grouped,
        keys=_keys(node, tables, grouped=grouped),
    )


def _keys(node: exp.Select, tables: list[OutputTable], *, grouped: bool) -> frozenset[str] | None:
    """Return the columns that tell the rows apart: those of GROUP BY, or those of the one table."""
    items = {item.unalias(): item.alias_or_name for item in node.expressions}
    if grouped:
        group = node.args.get("group")
        listed = group.expressions if group is not None else []
        places = [whole(key) or 0 for key in listed]
        keys = [
            node.expressions[place - 1].unalias() if 0 < place <= len(node.expressions) else key
            for place, key in zip(places, listed, strict=True)
        ]
        shown = [items.get(key) for key in keys]
        return None if None in shown else frozenset(str(name).lower() for name in shown)
    if len(tables) != 1:
        return None
    if any(item.is_star for item in node.expressions):
        return tables[0].keys
    passed = [(key.name, name) for key, name in items.items() if isinstance(key, exp.Column)]
    return rename_keys(tables[0].keys, passed)


def _add_clauses(tree: exp.Select, node: exp.Select, rewrite: Change, late: Change) -> None:
    """Rewrite WHERE, and the clauses that come after the SELECT list."""
    if node.args.get("where"):
        tree.set("where", exp.Where(this=rewrite(node.args["where"].this)))
    for name in ("group", "having", "qualify"):
        if node.args.get(name):
            tree.set(name, rebuild(node.args[name], late))
    finish(tree, node, late)
    error_bars.check_unused(tree, node)


def _check_known(column: exp.Column, sources: Mapping[str, OutputTable]) -> None:
    """Refuse a name that no source shows; names of margin columns are hidden."""
    table = column.table.lower()
    name = column.name.lower()
    candidates = [source for alias, source in sources.items() if table in ("", alias)]
    if not any(output.name.lower() == name for source in candidates for output in source.outputs):
        listing = ", ".join(output.name for source in sources.values() for output in source.outputs)
        raise reject(
            column,
            f"there is no column {show(column)} here.",
            f"Columns are {listing}." if listing else "There are none.",
        )


def _check_usable(column: exp.Column, sources: Mapping[str, OutputTable]) -> None:
    """Refuse a name that no source shows, and a column whose values we know at the end only."""
    _check_known(column, sources)
    _, output = _find_output(column, sources)
    if output is not None and output.half_width == "late":
        raise error_bars.not_here(column)


def _item(
    item: exp.Expression,
    sources: Mapping[str, OutputTable],
    rewrite: Change,
    combine: Combine,
    *,
    grouped: bool,
) -> list[tuple[exp.Expression, Output]]:
    """Return the output columns of one item of a SELECT list, which may be MARGIN(x)."""
    inner = error_bars.argument(item.unalias())
    if inner is None:
        return _items(item, sources, rewrite, combine)
    name = item.output_name or spell(item)
    value, output = _items(inner, sources, rewrite, combine)[0]
    if output.half_width:
        raise error_bars.not_here(inner)
    return [with_half_width(name, value.unalias(), None if grouped else output.margin)]


def with_half_width(
    name: str, value: exp.Expression, margin: exp.Expression | None
) -> tuple[exp.Expression, Output]:
    """Return MARGIN(x) as a column: the half-width of `value`.

    It is computed by `margin`, or if that is None, it takes the value's place at the end.
    """
    if margin is None:
        expression = error_bars.late(value)
        output = Output(name=name, margin=None, estimate=None, half_width="late")
    else:
        expression = error_bars.half_width(value, margin)
        output = Output(name=name, margin=None, estimate=None, half_width="here")
    return exp.alias_(expression, name, quoted=True), output


def _items(
    item: exp.Expression,
    sources: Mapping[str, OutputTable],
    rewrite: Change,
    combine: Combine,
) -> list[tuple[exp.Expression, Output]]:
    """Return the output columns of one item of a SELECT list; * stands for all columns."""
    table_star = isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
    if table_star or isinstance(item, exp.Star):
        return _all_columns(item, sources)
    inner = item.unalias()
    name = item.output_name or spell(item)
    if isinstance(inner, exp.Column):
        _check_known(inner, sources)
        alias, output = _find_output(inner, sources)
        if output is not None:
            return [pass_on(alias, output, name)]
    expression = rewrite(inner)
    output = _describe_computed(name, expression, sources, combine)
    if error_bars.inside(expression) is not None:
        output = Output(name=name, margin=None, estimate=None, half_width="here")
    return [(exp.alias_(expression, name, quoted=True), output)]


def _all_columns(
    star: exp.Expression, sources: Mapping[str, OutputTable]
) -> list[tuple[exp.Expression, Output]]:
    """Return the columns that *, t.* or * EXCLUDE (a, b) stands for."""
    left_out = names_left_out(star)
    table = star.table.lower() if isinstance(star, exp.Column) else ""
    columns = []
    for alias, source in sources.items():
        if table in ("", alias):
            for output in source.outputs:
                if output.name.lower() not in left_out:
                    columns.append(pass_on(alias, output, output.name))
    return columns


def _describe_computed(
    name: str, expression: exp.Expression, sources: Mapping[str, OutputTable], combine: Combine
) -> Output:
    """Describe a column computed from columns of other tables: it has a margin if it is linear in
    them.
    """
    # each column or subquery in it, with its half-widths
    parts: dict[Hashable, tuple[Output, exp.Expression | None]] = {}
    forms: dict[Hashable, tuple[Form, ...]] = {}

    def leaf(node: exp.Expression) -> Form | None:
        if isinstance(node, exp.Subquery):
            place: Hashable = id(node)
            output = node.meta.get("output")
            row = [f"subquery {len(parts)}"]
            parts[place] = (output, None)
        else:
            alias, output = _find_output(node, sources)
            place = (alias, output.name) if output is not None else ""
            row = [alias] if len(sources) > 1 else []
            parts[place] = (output, shadowing(alias, node.name))
        if output is None or (output.margin is None and not output.forms):
            return None
        forms[place] = tuple(inside(form, *row) for form in output.forms)
        grid = output.forms[0].grid if len(output.forms) == 1 else None
        return Form(factors={place: Fraction(1)}, grid=grid)

    nothing = Output(name=name, margin=None, estimate=None)
    form = form_of(expression, leaf)
    if form is None or not form.factors:
        return nothing
    if len(form.factors) == 1:
        (place,) = form.factors
        source, margin = parts[place]
        if margin is not None and source.margin is not None:
            totals = [substitute_forms(form, {place: inner}) for inner in forms[place]]
            return replace(
                nothing,
                margin=scale_margin(margin, form),
                forms=tuple(total for total in totals if total is not None),
            )
    if any(len(forms[place]) != 1 for place in form.factors):
        return nothing
    total = substitute_forms(form, {place: forms[place][0] for place in form.factors})
    if total is None or not total.straight:
        return nothing
    return combine(nothing, total)


def _find_output(column: exp.Expression, sources: Mapping[str, OutputTable]) -> tuple[str, Any]:
    """Return the alias of the table that a column belongs to, and its output there."""
    for alias, source in sources.items():
        if column.table.lower() in ("", alias):
            for output in source.outputs:
                if output.name.lower() == column.name.lower():
                    return alias, output
    return "", None


def inside(form: Form, *row: str) -> Form:
    """Return the form with its numbers marked by the table or subquery whose row they are in."""
    factors = {}
    for number, factor in form.factors.items():
        factors[replace(number, row=(*row, *number.row))] = factor
    return replace(form, factors=factors)


def names_left_out(item: exp.Expression) -> frozenset[str]:
    """Return the names that * EXCLUDE (a, b) leaves out."""
    star = item if isinstance(item, exp.Star) else item.this
    if any(part for name, part in star.args.items() if name != "except_"):
        raise reject(item, "this form of * is not answered.", "List the columns.")
    return frozenset(part.name.lower() for part in star.args.get("except_") or [])


def scale_margin(margin: exp.Expression, form: Form) -> exp.Expression:
    """Return the half-widths of a form of one number, from those of the number."""
    (factor,) = form.factors.values()
    width = exp.Mul(this=_double(abs(factor)), expression=exp.Paren(this=margin.copy()))
    if not form.slack:
        return width
    return exp.Add(this=width, expression=_double(form.slack))


def _double(value: Fraction) -> exp.Expression:
    return exp.cast(exp.Literal.number(repr(float(value))), "DOUBLE")


_JOIN_PARTS = ("this", "on", "using", "side", "kind", "expressions")


def _join(
    join: exp.Join,
    table: Change,
    rewrite: Change,
) -> exp.Join:
    for name, part in join.args.items():
        if name not in _JOIN_PARTS and part not in (None, False, []):
            word = str(part).upper() if name == "method" else name
            raise reject(
                join, f"{word} JOIN is not answered.", "Use JOIN, LEFT JOIN or CROSS JOIN."
            )
    if str(join.args.get("kind") or "").upper() not in ("", "INNER", "OUTER", "CROSS"):
        raise reject(
            join, "this kind of JOIN is not answered.", "Use JOIN, LEFT JOIN or CROSS JOIN."
        )
    copy = exp.Join(this=table(join.this), side=join.args.get("side"), kind=join.args.get("kind"))
    if join.args.get("on"):
        copy.set("on", rewrite(join.args["on"]))
    if join.args.get("using"):
        copy.set("using", [part.copy() for part in join.args["using"]])
    return copy
