"""Read arithmetic as a linear form of noisy numbers: its margin is that of a sum of draws, known
before paying (S11).

    -SUM(x)   COUNT(*) + 1   SUM(x) / 3   COUNT(*) FILTER (WHERE a) - COUNT(*) FILTER (WHERE b)
    s.n - t.n

A `Form` stands for an expression: factors of numbers, and how far rounding takes it from that.
Whether numbers share noise is told by the row that they stand in: numbers of one row of a noisy
table have that row's draws.
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
    """An aggregate of a noisy table: of which block, and which row it stands in, among those that
    meet in a row.
    """

    row: tuple[str, ...]
    block: int
    estimate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """sum(factor * number) plus something public, within `slack`. A `bent` form is true of
    differences only.

    `value` is known of constants. All values are multiples of `grid`, if there is one. A form that
    is `present` is never NULL. One that is `straight` is of counts and sums only, and not of means
    and the like.
    """

    factors: Mapping[Any, Fraction]
    value: Fraction | None = None
    slack: Fraction = Fraction(0)
    grid: Fraction | None = None
    present: bool = False
    straight: bool = True
    bent: bool = False

    def times(self, factor: Fraction) -> Form:
        return replace(
            self,
            factors={number: each * factor for number, each in self.factors.items()},
            value=None if self.value is None else self.value * factor,
            slack=self.slack * abs(factor),
            grid=None if self.grid is None else self.grid * abs(factor),
        )

    def plus(self, other: Form) -> Form | None:
        if self.factors and other.factors and (self.bent or other.bent):
            return None  # how the errors of two add up is not known when the sign of one is not
        factors = dict(self.factors)
        for number, factor in other.factors.items():
            factors[number] = factors.get(number, Fraction(0)) + factor
        known = self.value is not None and other.value is not None
        return Form(
            factors=factors,
            value=(self.value or Fraction(0)) + (other.value or Fraction(0)) if known else None,
            slack=self.slack + other.slack,
            grid=_common(self.grid, other.grid),
            present=self.present and other.present,
            straight=self.straight and other.straight,
            bent=self.bent or other.bent,
        )

    def round_to(self, step: Fraction) -> Form:
        """Return the form rounded to multiples of a step: two roundings differ by less than a step
        more than their arguments.
        """
        if self.grid is not None and (self.grid / step).denominator == 1:
            return self
        return replace(self, slack=self.slack + step, grid=step, value=None)


def constant(value: Fraction) -> Form:
    return Form(factors={}, value=value, grid=abs(value), present=True)


def _common(a: Fraction | None, b: Fraction | None) -> Fraction | None:
    """Return the largest number of which both are multiples."""
    if a is None or b is None or not a or not b:
        return a if b == 0 else b if a == 0 else None
    common = math.lcm(a.denominator, b.denominator)
    return Fraction(math.gcd(int(a * common), int(b * common)), common)


Leaf = Callable[[exp.Expression], "Form | None"]


def form_of(node: exp.Expression, leaf: Leaf) -> Form | None:
    """Return the form of an expression over noisy numbers, or None where it has none; `leaf` knows
    columns and subqueries.
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
            left, right = form_of(node.this, leaf), form_of(_divisor(node.expression), leaf)
            return None if left is None or right is None else _combine_forms(node, left, right)
        case exp.Cast() | exp.Round() | exp.Floor() | exp.Ceil():
            step, inner = _step(node), form_of(node.this, leaf)
            return (
                None if inner is None or step is None else inner.round_to(step) if step else inner
            )
        case exp.Abs() | exp.Greatest() | exp.Least():
            return _no_steeper(node, leaf)
        case exp.Coalesce():
            inner = form_of(node.this, leaf)
            return inner if inner is not None and inner.present else None
    return None


def _divisor(node: exp.Expression) -> exp.Expression:
    """Return the divisor without the NULLIF that gives NULL instead of 0; see `rebuild.rebuilt`."""
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
    divided = left.times(1 / right.value)
    return divided.round_to(Fraction(1)) if isinstance(node, exp.IntDiv) else divided


_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT", "INT128")


def _step(node: exp.Expression) -> Fraction | None:
    """Return what an expression rounds to; 0 where it does not round, None where that is not
    known.
    """
    if isinstance(node, exp.Floor | exp.Ceil):
        return (
            Fraction(1)
            if node.args.get("decimals") is None and node.args.get("to") is None
            else None
        )
    if isinstance(node, exp.Round):
        digits = node.args.get("decimals") or exp.Literal.number(0)
        plain = isinstance(digits, exp.Literal) and digits.name.isdigit() and int(digits.name) <= 30
        return (
            Fraction(1, 10 ** int(digits.name)) if plain and not node.args.get("truncate") else None
        )
    kind = node.args["to"]
    name = kind.this.value if isinstance(kind, exp.DataType) and hasattr(kind.this, "value") else ""
    if name == "DOUBLE":
        return Fraction(0)
    if name in _WHOLE:
        return Fraction(1)
    sizes = [each.this.name for each in kind.expressions] if name == "DECIMAL" else []
    return Fraction(1, 10 ** int(sizes[1])) if len(sizes) == 2 and sizes[1].isdigit() else None


def _no_steeper(node: exp.Expression, leaf: Leaf) -> Form | None:
    """Return the form of ABS(x), GREATEST(x, 0) and LEAST(x, 100), whose errors are no larger than
    those of x.
    """
    parts = [form_of(each, leaf) for each in (node.this, *node.expressions)]
    noisy = [each for each in parts if each is not None and each.factors]
    if len(noisy) != 1 or any(
        each is None or (each.value is None and each is not noisy[0]) for each in parts
    ):
        return None
    return replace(noisy[0], bent=True, grid=None)


def substitute_forms(form: Form, forms: Mapping[Hashable, Form]) -> Form | None:
    """Replace each number of a form by the form given for it; None if one has none."""
    total: Form | None = replace(form, factors={})
    for number, factor in form.factors.items():
        each = forms[number].times(factor)
        total = total and total.plus(replace(each, value=None))
    return total and replace(total, bent=form.bent or total.bent)
