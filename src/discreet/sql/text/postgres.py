"""Rewrite what means something else in Postgres into trees that the analysis knows.

`mean_as_postgres` changes what needs no types: names of columns, folding of case, escapes in LIKE. `resolve`
does the rest where the types of columns are known: `/` of two whole numbers drops the fraction,
`concat` writes t and f. `kind_of` tells what a part's type is, as far as that matters; where it
cannot, the question is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal

from sqlglot import exp

from discreet.sql.text.parse import reject, show, whole
from discreet.sql.text.rules.comparisons import compare_rows

Kind = Literal["integer", "bigint", "boolean", "date", "null", "other"]
ColumnKind = Callable[[exp.Column], Kind | None]
Rule = Callable[[exp.Expression], exp.Expression]
_WIDE = ("integer", "bigint")  # by their width


def mean_as_postgres(tree: exp.Query) -> exp.Query:
    """Rewrite names and escapes as Postgres means them."""

    def apply(node: exp.Expression) -> exp.Expression:
        for rule in RULES:
            node = rule(node)
        return node

    for select in list(tree.find_all(exp.Select)):
        select.set("expressions", [_with_name(item) for item in select.expressions])
    found = tree.transform(apply)
    assert isinstance(found, exp.Query)
    return found


# --- names of columns -----------------------------------------------------------------------------


def _with_name(item: exp.Expression) -> exp.Expression:
    """Return an item of a SELECT list under the name that Postgres gives it."""
    if isinstance(item, exp.Alias | exp.Column | exp.Star) or item.is_star:
        return item
    return exp.alias_(item, _name(item)[0] or "?column?", quoted=True, copy=False)


_TYPES = {
    "INT": "int4",
    "BIGINT": "int8",
    "SMALLINT": "int2",
    "DOUBLE": "float8",
    "FLOAT": "float4",
    "DECIMAL": "numeric",
    "BOOLEAN": "bool",
    "CHAR": "bpchar",
}
_WRITTEN_NAME = re.compile(r"\s*([A-Za-z_]\w*)\s*\(")
_NAMED: dict[type[exp.Expression], str] = {
    exp.CurrentDate: "current_date",
    exp.CurrentTimestamp: "now",
    exp.Localtimestamp: "localtimestamp",
    exp.AtTimeZone: "timezone",
    exp.Exists: "exists",
    exp.Array: "array",
    exp.GroupConcat: "string_agg",
    exp.JSONArrayAgg: "json_agg",
    exp.Trim: "btrim",
    exp.StrPosition: "position",
}


def _name(node: exp.Expression) -> tuple[str, bool]:
    """Return the name of an unnamed item, and whether a cast or CASE around it would hand it on
    (Postgres's FigureColname).
    """
    match node:
        case exp.Column():
            return node.name, True
        case exp.Paren() | exp.Filter() | exp.Window() | exp.WithinGroup() | exp.Bracket():
            return _name(node.this)
        case exp.Cast() | exp.TryCast():
            inner, strong = _name(node.this)
            kind = node.args["to"].this.name
            return (inner, True) if strong else (_TYPES.get(kind, kind.lower()), False)
        case exp.Boolean():
            return "bool", False
        case exp.Case():
            default = node.args.get("default")
            inner, strong = _name(default) if default is not None else ("", False)
            return (inner, True) if strong else ("case", False)
        case exp.Subquery(this=exp.Select() as select):
            first = select.expressions[0]
            return (first.alias, True) if isinstance(first, exp.Alias) else _name(first)
        case exp.Literal() | exp.Null() | exp.Neg() | exp.Not() | exp.Interval():
            return "", False
        case exp.Binary() if "written" not in node.meta:  # POWER(x, 2) is a function, x ^ 2 is not
            return "", False
    known = _NAMED.get(type(node))
    written = _WRITTEN_NAME.match(str(node.meta.get("written", "")))
    if known is None and written is None and not isinstance(node, exp.Func):
        return "", False
    if known in ("btrim", "position") or written is None:
        return known or str(getattr(node, "sql_name", lambda: "?column?")()).lower(), True
    return written[1].lower(), True


# --- what needs no types --------------------------------------------------------------------------


def _fold(node: exp.Expression) -> exp.Expression:
    """Names without quotes are in small letters."""
    if isinstance(node, exp.Identifier) and not node.args.get("quoted"):
        node.set("this", node.name.lower())
    return node


def _negate(node: exp.Expression) -> exp.Expression:
    """x IS NOT NULL, which this parser writes in one node."""
    if isinstance(node, exp.Is) and node.args.get("negate"):
        return exp.Not(this=exp.Is(this=node.this, expression=node.expression))
    return node


def _like(node: exp.Expression) -> exp.Expression:
    r"""LIKE 'a\%': a backslash escapes, unless ESCAPE says otherwise."""
    if not isinstance(node, exp.Like | exp.ILike) or isinstance(node.parent, exp.Escape):
        return node
    escaped = any("\\" in literal.name for literal in node.expression.find_all(exp.Literal))
    return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\")) if escaped else node


def _mark(node: exp.Expression) -> exp.Expression:
    """CONCAT and CAST, whose meaning depends on types."""
    if isinstance(node, exp.Concat | exp.ConcatWs | exp.Cast):
        node.meta["postgres"] = True
    return node


def _text(node: exp.Expression) -> exp.Expression:
    """E'a text', $$a text$$."""
    written = isinstance(node, exp.ByteString | exp.RawString)
    return exp.Literal.string(node.name) if written else node


def _digits(node: exp.Expression) -> exp.Expression:
    """ROUND(x, 2) || '%': as text it has two digits, and ROUND(x) none."""
    if isinstance(node, exp.DPipe):
        names = ["this", "expression"]
    elif isinstance(node, exp.Cast) and node.args["to"].this in exp.DataType.TEXT_TYPES:
        names = ["this"]
    elif isinstance(node, exp.Concat | exp.ConcatWs):
        node.set("expressions", [_with_digits(part) for part in node.expressions])
        return node
    else:
        return node
    for name in names:
        node.set(name, _with_digits(node.args[name]))
    return node


def _with_digits(node: exp.Expression) -> exp.Expression:
    inner = node.unnest()
    if not isinstance(inner, exp.Round | exp.Floor | exp.Ceil):
        return node
    decimals = inner.args.get("decimals")
    digits = 0 if decimals is None else whole(decimals)
    return node if digits is None or digits > 12 else exp.cast(inner, f"DECIMAL(36, {digits})")


def _series(node: exp.Expression) -> exp.Expression:
    """GENERATE_SERIES, which this parser calls exploding; in a SELECT list it stands for rows."""
    if not isinstance(node, exp.ExplodingGenerateSeries):
        return node
    found = exp.GenerateSeries(
        **{name: part for name, part in node.args.items() if part is not None}
    )
    within = node.find_ancestor(exp.From, exp.Join, exp.Select)
    return exp.Explode(this=found) if isinstance(within, exp.Select) else found


def _order_within(node: exp.Expression) -> exp.Expression:
    """WITHIN GROUP (ORDER BY x DESC): aggregates skip NULLs, wherever they would stand."""
    if isinstance(node, exp.WithinGroup) and isinstance(node.expression, exp.Order):
        for item in node.expression.expressions:
            item.set("nulls_first", None)
    return node


def _from_the_end(node: exp.Expression) -> exp.Expression:
    """SUBSTR(x, -1) counts from the end elsewhere, and here begins before the text."""
    start = node.args.get("start") if isinstance(node, exp.Substring) else None
    if isinstance(start, exp.Neg):
        raise reject(
            node, f"{show(node)} begins before the text.", "Write RIGHT(x, 1) for its last letter."
        )
    return node


RULES: tuple[Rule, ...] = (
    compare_rows,
    _fold,
    _negate,
    _like,
    _mark,
    _text,
    _digits,
    _series,
    _order_within,
    _from_the_end,
)


# --- what needs types -----------------------------------------------------------------------------


def resolve(node: exp.Expression, column: ColumnKind) -> exp.Expression:
    """Return the node as it is meant, where that depends on types: 7 / 2 is 3, concat(TRUE) is
    t.
    """
    if isinstance(node, exp.Div) and node.args.get("typed"):
        kinds = [kind_of(part, column) for part in (node.this, node.expression)]
        if "other" in kinds or "null" in kinds:
            return _copy(
                exp.Div(this=node.this, expression=node.expression, typed=False, safe=True), node
            )
        if None in kinds:
            raise reject(
                node,
                f"{show(node)}: whether both are whole numbers, so that the fraction is dropped, cannot be told.",
                "Write CAST(x AS NUMERIC) / y, or CAST(x AS INTEGER) / CAST(y AS INTEGER).",
            )
        node.meta["whole"] = True  # for whoever asks how its value is written
        return _copy(exp.IntDiv(this=node.this, expression=node.expression), node)
    if isinstance(node, exp.Concat | exp.ConcatWs) and "postgres" in node.meta:
        parts = [
            _letter(part) if kind_of(part, column) == "boolean" else part
            for part in node.expressions
        ]
        if parts != node.expressions:
            return _copy(
                type(node)(**{**node.args, "expressions": [part.copy() for part in parts]}), node
            )
    return node


def _copy(made: exp.Expression, node: exp.Expression) -> exp.Expression:
    """Return the new node in the old one's place: parents and messages know it by that."""
    made.meta.update(node.meta)
    made.parent = node.parent
    return made


def _letter(node: exp.Expression) -> exp.Expression:
    """Return a truth value as `concat` writes it: t or f."""
    return exp.Left(this=exp.cast(node.copy(), "VARCHAR"), expression=exp.Literal.number(1))


_SAME = (
    exp.Min,
    exp.Max,
    exp.AnyValue,
    exp.Mode,
    exp.Lag,
    exp.Lead,
    exp.FirstValue,
    exp.LastValue,
    exp.Abs,
    exp.Neg,
)
_INTEGERS = (exp.Length, exp.StrPosition, exp.Unicode, exp.WidthBucket, exp.Ntile)
_BIGINTS = (exp.Count, exp.RowNumber, exp.Rank, exp.DenseRank)
_BOOLEANS = (
    exp.Predicate,
    exp.Connector,
    exp.Not,
    exp.Boolean,
    exp.Exists,
    exp.LogicalAnd,
    exp.LogicalOr,
)
_OTHERS = (
    *(
        exp.Extract,
        exp.Avg,
        exp.Stddev,
        exp.StddevPop,
        exp.StddevSamp,
        exp.Variance,
        exp.VariancePop,
        exp.Corr,
    ),
    *(
        exp.CovarPop,
        exp.CovarSamp,
        exp.Median,
        exp.PercentileCont,
        exp.Quantile,
        exp.Round,
        exp.Floor,
        exp.Ceil,
    ),
    *(
        exp.Trunc,
        exp.Pow,
        exp.Sqrt,
        exp.Cbrt,
        exp.Ln,
        exp.Log,
        exp.Exp,
        exp.Pi,
        exp.Sign,
        exp.PercentRank,
    ),
    *(exp.CumeDist, exp.Interval),
)
_CASTS: dict[str, Kind] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT"), "integer"),
    "BIGINT": "bigint",
    "BOOLEAN": "boolean",
    "DATE": "date",
}


def kind_of(node: exp.Expression, column: ColumnKind) -> Kind | None:
    """Return the type that Postgres gives an expression, as far as it matters; None where that is
    not known.
    """
    match node:
        case exp.Column():
            return column(node)
        case exp.Null():
            return "null"
        case exp.Literal():
            return _literal(node)
        case exp.Cast() | exp.TryCast():
            return _CASTS.get(node.args["to"].this.name, "other")
        case (
            exp.Alias()
            | exp.Paren()
            | exp.Filter()
            | exp.Window()
            | exp.WithinGroup()
            | exp.Where()
        ):
            return kind_of(node.this, column)
        case exp.IgnoreNulls() | exp.RespectNulls():
            return kind_of(node.this, column)
        case exp.Sum():
            inner = kind_of(node.this, column)
            return {"integer": "bigint", None: None}.get(inner, "other")
        case exp.Case():
            default = [node.args["default"]] if node.args.get("default") is not None else []
            return _common(
                [*(branch.args["true"] for branch in node.args["ifs"]), *default], column
            )
        case exp.Coalesce() | exp.Least() | exp.Greatest():
            return _common([node.this, *node.expressions], column)
        case exp.Nullif():
            return kind_of(node.this, column)
        case exp.Subquery(this=exp.Select() as select) if len(select.expressions) == 1:
            return kind_of(select.expressions[0], lambda _: None)
    for kinds, kind in _KINDS:
        if isinstance(node, kinds):
            return kind
    if isinstance(node, _SAME):
        return kind_of(node.this, column)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Mod | exp.Div | exp.IntDiv):
        return _arithmetic(node, column)
    return None


_KINDS: tuple[tuple[tuple[type[exp.Expression], ...], Kind], ...] = (
    (_INTEGERS, "integer"),
    (_BIGINTS, "bigint"),
    (_BOOLEANS, "boolean"),
    (_OTHERS, "other"),
)


def _literal(node: exp.Literal) -> Kind:
    if node.is_string or not node.name.isdigit():
        return "other"
    return (
        "integer"
        if int(node.name[:20]) < 2**31
        else "bigint"
        if int(node.name[:20]) < 2**63
        else "other"
    )


def _common(parts: Sequence[exp.Expression], column: ColumnKind) -> Kind | None:
    return common_kind([kind_of(part, column) for part in parts])


def common_kind(kinds: Sequence[Kind | None]) -> Kind | None:
    """Return the type of what may be any of these: the wider of whole numbers; NULL is of every
    type.
    """
    found = {kind for kind in kinds if kind != "null"}
    if not found:
        return "null"
    if found <= set(_WIDE):
        return "bigint" if "bigint" in found else "integer"
    if len(found) == 1:
        return found.pop()
    return None if None in found else "other"


def _arithmetic(node: exp.Expression, column: ColumnKind) -> Kind | None:
    left, right = (kind_of(part, column) for part in (node.this, node.expression))
    if "other" in (left, right):
        return "other"
    if left == right == "date":
        return "integer"
    if "date" in (left, right):
        return "date"
    return None if None in (left, right) else common_kind([left, right])
