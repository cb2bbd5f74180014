"""Expressions that choose one of several values: CASE, IF, COALESCE, NULLIF, LEAST and GREATEST."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from discreet.algebra import call, case
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

Read = Callable[[exp.Expression], Value]  # translates a part, where the expression stands
Choice = Callable[[exp.Expression, Read], Value]


def _case(node: exp.Case, read: Read) -> Value:
    subject = read(node.this) if node.this else None
    check_weight(subject.expression.weight * len(node.args["ifs"]) if subject else 0)
    conditions: list[Value] = []
    for branch in node.args["ifs"]:
        if subject is None:
            conditions.append(as_flag(read(branch.this), branch.this))
        else:
            conditions.append(comparison("=", subject, read(branch.this), branch.this))
    results = [
        narrow_text(read(branch.args["true"]), condition.expression)
        for branch, condition in zip(node.args["ifs"], conditions, strict=True)
    ]
    default = node.args.get("default")
    results.append(
        read(default) if default else Value(expression=NULL, domain=Missing(), nullable=True)
    )
    return _choose(conditions, results, node)


def _if(node: exp.If, read: Read) -> Value:
    condition = as_flag(read(node.this), node.this)
    otherwise = node.args.get("false")
    results = [
        narrow_text(read(node.args["true"]), condition.expression),
        read(otherwise) if otherwise else Value(expression=NULL, domain=Missing(), nullable=True),
    ]
    return _choose([condition], results, node)


def _choose(conditions: Sequence[Value], results: Sequence[Value], node: exp.Expression) -> Value:
    common = unify(results, node)
    branches = [
        (condition.expression, among_others(result))
        for condition, result in zip(conditions, common[:-1], strict=True)
    ]
    found = case(*branches, otherwise=among_others(common[-1]))
    return Value(
        expression=found,
        domain=join_domains(common),
        nullable=any(result.nullable for result in results),
    )


def _coalesce(node: exp.Coalesce, read: Read) -> Value:
    values = [read(part) for part in (node.this, *node.expressions)]
    common = unify(values, node)
    found = call("coalesce", *map(among_others, common))
    return Value(
        expression=found,
        domain=join_domains(common),
        nullable=all(value.nullable for value in values),
    )


def _nullif(node: exp.Nullif, read: Read) -> Value:
    value, other = read(node.this), read(node.expression)
    if isinstance(value.domain, Opaque):
        # Privacy: S4. What is NULL for some people is no owner: as a window's partition it would
        # hold many people.
        raise reject(
            node,
            "an identifier cannot be computed with.",
            "It can be counted: COUNT(DISTINCT ...).",
        )
    same = comparison("=", value, other, node)
    found = case((same.expression, None), otherwise=value.expression)
    return Value(expression=found, domain=value.domain, nullable=True)


def _extreme(function: str) -> Choice:
    """LEAST and GREATEST skip NULLs, so any argument may be the result, except beyond a constant
    one.
    """

    def apply(node: exp.Expression, read: Read) -> Value:
        common = unify([read(part) for part in (node.this, *node.expressions)], node)
        domain = join_domains(common)
        if isinstance(domain, Missing):
            return Value(expression=NULL, domain=domain, nullable=True)
        if isinstance(domain, Category):
            raise reject(node, f"{function.upper()} of categories is not answered.", "Use CASE.")
        if isinstance(domain, Number):
            # Privacy: the engine's integers must hold every argument, not only the result, or a
            # large one is an error.
            most = domain.largest
            fixed = [numbers.grid(value).lo for value in common if value.constant]
            if fixed and function == "least":
                domain = Number(step=domain.step, lo=domain.lo, hi=min(fixed))
            elif fixed:
                domain = Number(step=domain.step, lo=max(fixed), hi=domain.hi)
            known = [
                widen(value.expression, most)
                for value in common
                if not isinstance(value.domain, Missing)
            ]
            found = call(function, *known)
        else:
            found = call(
                function,
                *(value.expression for value in common if not isinstance(value.domain, Missing)),
            )
        return Value(
            expression=found, domain=domain, nullable=all(value.nullable for value in common)
        )

    return apply


FUNCTIONS: dict[type[exp.Expression], Choice] = {
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
    exp.Least: _extreme("least"),
    exp.Greatest: _extreme("greatest"),
}
