"""Read arithmetic as a linear form of noisy numbers. Its margin is that of a sum of draws, which we
know before paying (S11).

    -SUM(x)   COUNT(*) + 1   SUM(x) / 3   COUNT(*) FILTER (WHERE a) - COUNT(*) FILTER (WHERE b)
    s.n - t.n

A `Form` describes an expression: the factor of each number, and how far rounding may move it. Each
number names its row, because the numbers of one row of a noisy table share that row's draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from sqlglot import exp


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """An aggregate of a noisy table: its block, and the row that it is from, where a row of a join
    has several.
    """

    row: tuple[str, ...]
    block: int
    estimate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """An expression that is sum(factor * number) plus a public number, within `slack`.

    A `bent` form bounds only its error: that is no larger than the error of the sum. A constant has
    a `value`. With a `grid`, all values are its multiples. A form is `present` if it is never NULL,
    and `straight` if its numbers are counts and sums, not means and the like.
    """

    factors: Mapping[Any, Fraction]
    value: Fraction | None = None
    slack: Fraction = Fraction(0)
    grid: Fraction | None = None
    present: bool = False
    straight: bool = True
    bent: bool = False

    def times(self, factor: Fraction) -> Form:
        """Return the form times a constant."""
        return replace(
            self,
            factors={number: own * factor for number, own in self.factors.items()},
            value=None if self.value is None else self.value * factor,
            slack=self.slack * abs(factor),
            grid=None if self.grid is None else self.grid * abs(factor),
        )

    def plus(self, other: Form) -> Form | None:
        """Return the sum of two forms; None if nothing bounds its error."""
        if self.factors and other.factors and (self.bent or other.bent):
            return None  # the error of a bent form may have either sign, also where noise is shared
        factors = dict(self.factors)
        for number, factor in other.factors.items():
            factors[number] = factors.get(number, Fraction(0)) + factor
        value = None
        if self.value is not None and other.value is not None:
            value = self.value + other.value
        return Form(
            factors=factors,
            value=value,
            slack=self.slack + other.slack,
            grid=_common(self.grid, other.grid),
            present=self.present and other.present,
            straight=self.straight and other.straight,
            bent=self.bent or other.bent,
        )

    def round_to(self, step: Fraction) -> Form:
        """Return the form rounded to multiples of a step.

        The results of two roundings differ by less than a step more than their arguments.
        """
        if self.grid is not None and (self.grid / step).denominator == 1:
            return self
        return replace(self, slack=self.slack + step, grid=step, value=None)


def constant(value: Fraction) -> Form:
    """Return the form of a constant."""
    return Form(factors={}, value=value, grid=abs(value), present=True)


def _common(a: Fraction | None, b: Fraction | None) -> Fraction | None:
    """Return the largest number of which both are multiples; None if there is no grid."""
    if b == 0:
        return a
    if a == 0:
        return b
    if a is None or b is None:
        return None
    common = math.lcm(a.denominator, b.denominator)
    return Fraction(math.gcd(int(a * common), int(b * common)), common)


Leaf = Callable[[exp.Expression], "Form | None"]


def form_of(node: exp.Expression, leaf: Leaf) -> Form | None:
    """Return the form of an expression over noisy numbers, or None if it has none.

    `leaf` returns the forms of columns and subqueries.
    """
    match node:
        case exp.Paren() | exp.Try() | exp.Alias():
            return form_of(node.this, leaf)
        case exp.Column() | exp.Subquery():
            return leaf(node)
        case exp.Literal():
            return _literal_form(node)
        case exp.Neg():
            inner = form_of(node.this, leaf)
            return inner and inner.times(Fraction(-1))
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.IntDiv():
            left = form_of(node.this, leaf)
            right = form_of(_divisor(node.expression), leaf)
            if left is None or right is None:
                return None
            return _combine_forms(node, left, right)
        case exp.Cast() | exp.Round() | exp.Floor() | exp.Ceil():
            step = _step(node)
            inner = form_of(node.this, leaf)
            if inner is None or step is None:
                return None
            return inner.round_to(step) if step else inner
        case exp.Abs() | exp.Greatest() | exp.Least():
            return _no_steeper(node, leaf)
        case exp.Coalesce():
            inner = form_of(node.this, leaf)
            return inner if inner is not None and inner.present else None
    return None


def _divisor(node: exp.Expression) -> exp.Expression:
    """Return the divisor without the NULLIF that `rebuild.rebuild` puts around it."""
    return node.this if isinstance(node, exp.Nullif) else node


def _literal_form(node: exp.Literal) -> Form | None:
    if node.is_string:
        return None
    try:
        return constant(Fraction(Decimal(node.name)))
    except InvalidOperation:
        return None


def _combine_forms(node: exp.Expression, left: Form, right: Form) -> Form | None:
    match node:
        case exp.Add():
            return left.plus(right)
        case exp.Sub():
            return left.plus(right.times(Fraction(-1)))
        case exp.Mul():
            if left.value is not None and not left.factors:
                left, right = right, left
            return None if right.value is None or right.factors else left.times(right.value)
    if not right.value or right.factors:
        return None
    quotient = left.times(1 / right.value)
    return quotient.round_to(Fraction(1)) if isinstance(node, exp.IntDiv) else quotient


_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT", "INT128")


def _step(node: exp.Expression) -> Fraction | None:
    """Return the step that an expression rounds to; 0 if it does not round, None if the step is not
    known.
    """
    if isinstance(node, exp.Floor | exp.Ceil):
        plain = node.args.get("decimals") is None and node.args.get("to") is None
        return Fraction(1) if plain else None
    if isinstance(node, exp.Round):
        digits = node.args.get("decimals") or exp.Literal.number(0)
        if not isinstance(digits, exp.Literal) or node.args.get("truncate"):
            return None
        plain = digits.name.isdigit() and int(digits.name) <= 30
        return Fraction(1, 10 ** int(digits.name)) if plain else None
    kind = node.args["to"]
    name = kind.this.value if isinstance(kind, exp.DataType) and hasattr(kind.this, "value") else ""
    if name == "DOUBLE":
        return Fraction(0)
    if name in _WHOLE:
        return Fraction(1)
    sizes = [size.this.name for size in kind.expressions] if name == "DECIMAL" else []
    if len(sizes) != 2 or not sizes[1].isdigit():
        return None
    return Fraction(1, 10 ** int(sizes[1]))


def _no_steeper(node: exp.Expression, leaf: Leaf) -> Form | None:
    """Return the form of ABS(x), GREATEST(x, 0) or LEAST(x, 100): their errors are no larger than
    those of x.
    """
    noisy = []
    for argument in (node.this, *node.expressions):
        form = form_of(argument, leaf)
        if form is None:
            return None
        if form.factors:
            noisy.append(form)
        elif form.value is None:
            return None
    return replace(noisy[0], bent=True, grid=None) if len(noisy) == 1 else None


def substitute_forms(form: Form, forms: Mapping[Hashable, Form]) -> Form | None:
    """Replace each number of a form by its own form; return None if the sum has none."""
    total: Form | None = replace(form, factors={})
    for number, factor in form.factors.items():
        term = forms[number].times(factor)
        total = total and total.plus(replace(term, value=None))
    return total and replace(total, bent=form.bent or total.bent)
