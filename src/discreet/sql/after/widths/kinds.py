"""Say how a column computed after noise depends on the noise, and so how we can find its margin
(S11).

PUBLIC     the same whatever the noise
STRAIGHT   linear in the noise: sums, differences, running totals
RATIONAL   means, products and quotients of straight columns, row by row
SMOOTH     other functions of them, row by row: logarithms, roots, CASE
SUMMED     sums and means of rational columns over several rows: a mean of shares, a sum of squares
UNKNOWN    all others: a rank, a maximum, a count of rows that pass a noisy filter, a root of a sum
           of squares. Noise moves these to one side, and redrawing it around noisy numbers does not
           show how far.

Noise moves a sum of squares or quotients to one side, too. There the redrawn answers show it: what
bends a square or a quotient is as large around a noisy number as around the true one, unless the
divisor is near its pole. Near the pole some redrawn answers are very far off, and the margin is the
farthest of them. A root or a logarithm of a small number bends less around a noisy number than
around the true one, and nothing shows it. So sums of these, and roots of sums, are UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from sqlglot import exp

from discreet.sql.after.error_bars import is_half_width

DRAW = "#draw"  # the column that numbers the changes


class Kind(IntEnum):
    """How a column depends on noise, from not at all to unpredictably."""

    PUBLIC = 0
    STRAIGHT = 1
    RATIONAL = 2
    SMOOTH = 3
    SUMMED = 4
    UNKNOWN = 5


@dataclass(slots=True, kw_only=True)
class Read:
    """A table that a SELECT reads, with the names and kinds of its columns."""

    tree: exp.Expression
    names: list[str]
    kinds: list[Kind]
    noisy: bool  # then it has the column `DRAW`
    selected: bool = False  # noise decides which rows it has

    def kind(self, name: str) -> Kind | None:
        for own, kind in zip(self.names, self.kinds, strict=True):
            if own.lower() == name.lower():
                return kind
        return None


@dataclass(slots=True, kw_only=True)
class Scope:
    """The tables that names refer to within one SELECT."""

    sources: dict[str, Read] = field(default_factory=dict)
    aliases: dict[str, Kind] = field(default_factory=dict)
    subqueries: dict[int, Read] = field(default_factory=dict)
    selected: bool = False

    def column(self, node: exp.Column) -> Kind:
        for alias, source in self.sources.items():
            if node.table.lower() in ("", alias):
                kind = source.kind(node.name)
                if kind is not None:
                    return kind
        return self.aliases.get(node.name.lower(), Kind.UNKNOWN)


@dataclass(slots=True, kw_only=True)
class PublicRead(Read):
    """A public table, with columns of any name."""

    def kind(self, name: str) -> Kind | None:
        return Kind.PUBLIC


_THROUGH = (exp.Alias, exp.Try, exp.Neg, exp.Distinct)
_BENT = (exp.Sqrt, exp.Ln, exp.Log, exp.Exp)
_FROM_ANOTHER_ROW = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue)
_NUMBERED = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile)


def kind_of(node: Any, scope: Scope, *, draws: bool = False) -> Kind:
    """Return how an expression depends on noise."""

    def of(part: Any) -> Kind:
        return kind_of(part, scope, draws=draws)

    match node:
        case exp.Null() if is_half_width(node):
            return Kind.UNKNOWN
        case exp.Column():
            return Kind.PUBLIC if draws and node.name == DRAW else scope.column(node)
        case exp.Paren():
            return of(node.this)
        case exp.Subquery():
            return _subquery_kind(scope.subqueries.get(id(node)))
        case exp.Window():
            return _kind_of_window(node, scope)
        case exp.Case() | exp.If():
            return _case_kind(node, of)
        case exp.Cast() if _to_double(node):
            return of(node.this)
        case (
            exp.Add()
            | exp.Sub()
            | exp.Coalesce()
            | exp.Mul()
            | exp.Div()
            | exp.Pow()
            | exp.Nullif()
            | exp.Filter()
        ):
            return _operation_kind(node, of)
        case exp.AggFunc():
            return _aggregate_kind(node, scope, of)
    inner, _ = strip_rounding(node)
    if inner is not node:
        whole = not isinstance(node.parent, exp.Expression) or _is_item(node)
        return of(inner) if whole or of(inner) is Kind.PUBLIC else Kind.UNKNOWN
    return _function_kind(node, of)


def _most(parts: Iterable[Any], of: Callable[[Any], Kind]) -> Kind:
    """Return the highest kind among some parts of an expression."""
    kinds = [of(part) for part in parts if isinstance(part, exp.Expression)]
    return max(kinds, default=Kind.PUBLIC)


def _subquery_kind(table: Read | None) -> Kind:
    """Return the kind of a subquery used as a value."""
    if table is None or table.selected or len(table.kinds) != 1:
        return Kind.UNKNOWN if table is None or table.noisy else Kind.PUBLIC
    return table.kinds[0]


def _operation_kind(node: exp.Expression, of: Callable[[Any], Kind]) -> Kind:
    """Return the kind of an operation: sums keep the kind of their parts, products and quotients of
    noisy numbers are smooth.
    """
    match node:
        case exp.Add() | exp.Sub() | exp.Coalesce():
            others = [node.expression] if node.args.get("expression") else node.expressions
            return _most([node.this, *others], of)
        case exp.Mul():
            left = of(node.this)
            right = of(node.expression)
            return max(left, right, Kind.RATIONAL if left and right else Kind.PUBLIC)
        case exp.Div():
            below = of(node.expression)
            return max(of(node.this), below, Kind.RATIONAL if below else Kind.PUBLIC)
        case exp.Pow():
            base = of(node.this)
            exponent = node.expression
            whole = isinstance(exponent, exp.Literal) and exponent.name.isdigit()
            if base is Kind.PUBLIC and of(exponent) is Kind.PUBLIC:
                return Kind.PUBLIC
            return max(base, Kind.RATIONAL) if whole else Kind.UNKNOWN
    condition = node.expression.this if isinstance(node, exp.Filter) else node.expression
    return of(node.this) if of(condition) is Kind.PUBLIC else Kind.UNKNOWN


def _function_kind(node: exp.Expression, of: Callable[[Any], Kind]) -> Kind:
    """Return the kind of a function: that of its argument, smooth, or public if all its parts are;
    else unknown.
    """
    if isinstance(node, _THROUGH):
        if isinstance(node.this, exp.Expression):
            return of(node.this)
        return _most(node.expressions, of)
    parts = _most(_children(node), of)
    if parts is Kind.PUBLIC:
        return Kind.PUBLIC
    bent = isinstance(node, _BENT) and parts <= Kind.SMOOTH
    return Kind.SMOOTH if bent else Kind.UNKNOWN


def _children(node: exp.Expression) -> Iterator[exp.Expression]:
    for argument in node.args.values():
        parts = argument if isinstance(argument, list) else [argument]
        for part in parts:
            if isinstance(part, exp.Expression):
                yield part


def _is_item(node: exp.Expression) -> bool:
    """Return True if a node is a whole item of a SELECT list."""
    parent = node.parent
    while isinstance(parent, exp.Alias | exp.Paren):
        parent = parent.parent
    return isinstance(parent, exp.Select)


def _kind_of_window(node: exp.Window, scope: Scope) -> Kind:
    around = list(node.args.get("partition_by") or [])
    order = node.args.get("order")
    if order:
        around += [item.this for item in order.expressions]
    function = node.this
    if scope.selected or any(kind_of(part, scope) is not Kind.PUBLIC for part in around):
        return Kind.UNKNOWN
    if isinstance(function, _NUMBERED):
        return Kind.PUBLIC
    if isinstance(function, _FROM_ANOTHER_ROW):
        parts = [kind_of(part, scope) for part in _children(function)]
        return max(parts, default=Kind.PUBLIC)
    return kind_of(function, scope)


def _aggregate_kind(node: exp.AggFunc, scope: Scope, of: Callable[[Any], Kind]) -> Kind:
    """Return the kind of an aggregate: sums and means of straight numbers are straight and those of
    rational ones are summed, unless noise chooses the rows.
    """
    parts = [of(part) for part in _children(node)]
    kind = max(parts, default=Kind.PUBLIC)
    if scope.selected:
        return Kind.UNKNOWN
    if isinstance(node, exp.Sum | exp.Avg) and not node.find(exp.Distinct):
        if kind is Kind.RATIONAL:
            return Kind.SUMMED
        return kind if kind <= Kind.STRAIGHT else Kind.UNKNOWN
    if isinstance(node, exp.First) or kind is Kind.PUBLIC:
        return kind
    counts_rows = isinstance(node, exp.Count) and not node.find(exp.Distinct)
    return Kind.PUBLIC if counts_rows else Kind.UNKNOWN


def _case_kind(node: exp.Case | exp.If, of: Callable[[Any], Kind]) -> Kind:
    """Return the kind of CASE.

    Its conditions may be public. They may also compare a noisy number with zero, to guard a
    quotient or a root; then the value is smooth, and rational if it is divided by that number.
    """
    branches = node.args.get("ifs") or [node]
    values = [branch.args["true"] for branch in branches]
    last = node.args.get("default") if isinstance(node, exp.Case) else node.args.get("false")
    if last is not None:
        values.append(last)
    kind = max(of(value) for value in values)
    conditions = [branch.this for branch in branches]
    if isinstance(node, exp.Case) and node.this is not None:
        return kind if of(node.this) is Kind.PUBLIC else Kind.UNKNOWN
    noisy = [condition for condition in conditions if of(condition) is not Kind.PUBLIC]
    if not noisy:
        return kind
    return _guarded_kind(kind, values, noisy, of)


def _guarded_kind(
    kind: Kind,
    values: list[exp.Expression],
    noisy: list[exp.Expression],
    of: Callable[[Any], Kind],
) -> Kind:
    """Return the kind of CASE with these values, whose highest kind is `kind`, and noisy conditions."""
    public = [value for value in values if of(value) is Kind.PUBLIC]
    plain = all(isinstance(value, exp.Literal | exp.Null) for value in public)
    if not plain or not kind or not all(_about_zero(condition, of) for condition in noisy):
        return Kind.UNKNOWN
    divisors = {_divisor(part) for value in values for part in value.find_all(exp.Div)}
    by_guarded = all(condition.this in divisors for condition in noisy)
    return max(kind, Kind.RATIONAL if by_guarded else Kind.SMOOTH)


def _divisor(node: exp.Div) -> exp.Expression:
    """Return what is divided by, without the NULLIF that `rebuild.rebuild` puts around it."""
    divisor: exp.Expression = node.expression
    while isinstance(divisor, exp.Nullif | exp.Paren):
        divisor = divisor.this
    return divisor


def _about_zero(node: exp.Expression, of: Callable[[Any], Kind]) -> bool:
    """Return True for a comparison of a noisy number with zero: x = 0, x <> 0, x > 0, x >= 0.

    If noise may take the number past zero, the redrawn answers show it, and there is no margin.
    """
    if not isinstance(node, exp.EQ | exp.NEQ | exp.GT | exp.GTE):
        return False
    zero = isinstance(node.expression, exp.Literal) and node.expression.name in ("0", "0.0")
    return zero and Kind.PUBLIC < of(node.this) <= Kind.SMOOTH


def _to_double(node: exp.Cast) -> bool:
    return str(getattr(node.args["to"].this, "value", "")) in ("DOUBLE", "FLOAT")


_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT", "INT128")


def strip_rounding(node: exp.Expression) -> tuple[exp.Expression, float]:
    """Return the expression without its roundings, and the most by which they move it together."""
    slack = 0.0
    while True:
        step: float | None = None
        if isinstance(node, exp.Alias | exp.Paren):
            step = 0.0
        elif isinstance(node, exp.Floor | exp.Ceil) and node.args.get("decimals") is None:
            step = 1.0
        elif isinstance(node, exp.Round) and not node.args.get("truncate"):
            digits = node.args.get("decimals")
            plain = digits is None or (isinstance(digits, exp.Literal) and digits.name.isdigit())
            step = 10.0 ** -int(digits.name if digits is not None else 0) if plain else None
        elif isinstance(node, exp.Cast):
            step = _cast_step(node)
        if step is None:
            return node, slack
        slack += step
        node = node.this


def _cast_step(node: exp.Cast) -> float | None:
    kind = node.args["to"]
    name = str(getattr(kind.this, "value", ""))
    if _to_double(node):
        return 0.0
    if name in _WHOLE:
        return 1.0
    sizes = [size.this.name for size in kind.expressions] if name == "DECIMAL" else []
    return 10.0 ** -int(sizes[1]) if len(sizes) == 2 and sizes[1].isdigit() else None
