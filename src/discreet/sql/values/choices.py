"""Expressions that choose one of several values: CASE, IF, COALESCE, NULLIF, LEAST and GREATEST."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from discreet.algebra import Expression, call, case
from discreet.sql.text.parse import check_weight, reject
from discreet.sql.values import numbers
from discreet.sql.values.texts_left import narrow_text
from discreet.sql.values.unify import (
    among_others,
    as_flag,
    comparison,
    join_domains,
    unify,
)
from discreet.sql.values.value import (
    NULL,
    Category,
    Missing,
    Number,
    Opaque,
    Value,
    widen,
)

Read = Callable[[exp.Expression], Value]  # translates a part of the node in the node's scope
Choice = Callable[[exp.Expression, Read], Value]


def _case(node: exp.Case, read: Read) -> Value:
    subject = read(node.this) if node.this else None
    branches = node.args["ifs"]
    if subject is not None:
        check_weight(subject.expression.weight * len(branches))
    conditions: list[Value] = []
    for branch in branches:
        if subject is None:
            conditions.append(as_flag(read(branch.this), branch.this))
        else:
            conditions.append(comparison("=", subject, read(branch.this), branch.this))
    results = []
    for branch, condition in zip(branches, conditions, strict=True):
        result = read(branch.args["true"])
        results.append(narrow_text(result, condition.expression))
    results.append(_default(node.args.get("default"), read))
    return _choose(conditions, results, node)


def _if(node: exp.If, read: Read) -> Value:
    condition = as_flag(read(node.this), node.this)
    result = narrow_text(read(node.args["true"]), condition.expression)
    otherwise = _default(node.args.get("false"), read)
    return _choose([condition], [result, otherwise], node)


def _default(node: exp.Expression | None, read: Read) -> Value:
    """Return the value of ELSE; NULL if there is none."""
    if node:
        return read(node)
    return Value(expression=NULL, domain=Missing(), nullable=True)


def _choose(conditions: Sequence[Value], results: Sequence[Value], node: exp.Expression) -> Value:
    common = unify(results, node)
    *results_then, result_else = common
    branches = [
        (condition.expression, among_others(result))
        for condition, result in zip(conditions, results_then, strict=True)
    ]
    return Value(
        expression=case(*branches, otherwise=among_others(result_else)),
        domain=join_domains(common),
        nullable=any(result.nullable for result in results),
    )


def _coalesce(node: exp.Coalesce, read: Read) -> Value:
    values = [read(part) for part in (node.this, *node.expressions)]
    common = unify(values, node)
    return Value(
        expression=call("coalesce", *map(among_others, common)),
        domain=join_domains(common),
        nullable=all(value.nullable for value in values),
    )


def _nullif(node: exp.Nullif, read: Read) -> Value:
    value = read(node.this)
    other = read(node.expression)
    if isinstance(value.domain, Opaque):
        # Privacy: S4. An owner that is NULL for some people is none: a window's partition by it
        # would hold the rows of many people.
        raise reject(
            node,
            "an identifier cannot be computed with.",
            "It can be counted: COUNT(DISTINCT ...).",
        )
    same = comparison("=", value, other, node)
    found = case((same.expression, None), otherwise=value.expression)
    return Value(expression=found, domain=value.domain, nullable=True)


def _extreme(function: str) -> Choice:
    """Return the translator of LEAST or GREATEST.

    The engine skips NULLs, so any argument may be the result. Only a constant argument, which is
    never NULL, narrows the domain.
    """

    def apply(node: exp.Expression, read: Read) -> Value:
        values = [read(part) for part in (node.this, *node.expressions)]
        common = unify(values, node)
        domain = join_domains(common)
        if isinstance(domain, Missing):
            return Value(expression=NULL, domain=domain, nullable=True)
        if isinstance(domain, Category):
            raise reject(node, f"{function.upper()} of categories is not answered.", "Use CASE.")
        arguments: Sequence[Expression] = _arguments(common)
        if isinstance(domain, Number):
            # Privacy: the engine's integer type must hold every argument, not only the result:
            # otherwise a large argument is an error, which only some people's rows raise.
            most = domain.largest
            constants = [numbers.grid(value).lo for value in common if value.constant]
            if constants and function == "least":
                domain = Number(step=domain.step, lo=domain.lo, hi=min(constants))
            elif constants:
                domain = Number(step=domain.step, lo=max(constants), hi=domain.hi)
            arguments = [widen(argument, most) for argument in arguments]
        return Value(
            expression=call(function, *arguments),
            domain=domain,
            nullable=all(value.nullable for value in common),
        )

    return apply


def _arguments(values: Sequence[Value]) -> list[Expression]:
    """Return the expressions of the values that are not the literal NULL."""
    return [value.expression for value in values if not isinstance(value.domain, Missing)]


FUNCTIONS: dict[type[exp.Expression], Choice] = {
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
    exp.Least: _extreme("least"),
    exp.Greatest: _extreme("greatest"),
}
