"""Rewrite comparisons that clients write in other words: rows in order, times of day, patterns with
alternatives.
"""

from __future__ import annotations

import re

from sqlglot import exp

_ORDER = (exp.GT, exp.GTE, exp.LT, exp.LTE)
_STRICT: dict[type[exp.Expression], type[exp.Expression]] = {exp.GTE: exp.GT, exp.LTE: exp.LT}


def compare_rows(node: exp.Expression) -> exp.Expression:
    """(a, b) >= (1, 2) is a > 1 OR a = 1 AND b >= 2 in Postgres. DuckDB compares a NULL in it too."""
    if type(node) not in _ORDER:
        return node
    left, right = node.this, node.expression
    both = isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple)
    if not both or not 0 < len(left.expressions) == len(right.expressions) <= 8:
        return node
    strict = _STRICT.get(type(node), type(node))
    *first, (a, b) = zip(left.expressions, right.expressions, strict=True)
    found: exp.Expression = type(node)(this=a.copy(), expression=b.copy())
    for a, b in reversed(first):
        before = strict(this=a.copy(), expression=b.copy())
        same = exp.EQ(this=a.copy(), expression=b.copy())
        found = exp.Paren(this=exp.or_(before, exp.and_(same, found, copy=False), copy=False))
    return found


_CLOCK = re.compile(r"([0-2]?[0-9]):([0-5][0-9])(?::([0-5][0-9]))?")


def compare_times(node: exp.Expression) -> exp.Expression:
    """seen::time >= '08:00': seconds since midnight."""
    names: tuple[str, ...] = ("this", "expression")
    if isinstance(node, exp.Between) and not node.args.get("symmetric"):
        names = ("this", "low", "high")
    elif type(node) not in (*_ORDER, exp.EQ, exp.NEQ):
        return node
    parts = [_seconds(node.args[name]) for name in names]
    if None in parts or not any(_of_day(node.args[name]) for name in names):
        return node
    return type(node)(**dict(zip(names, parts, strict=True)))


def _of_day(node: exp.Expression) -> exp.Expression | None:
    """Return x, of CAST(x AS TIME)."""
    inner = node.unnest()
    if isinstance(inner, exp.Cast) and inner.args["to"].this == exp.DataType.Type.TIME:
        return None if _written(inner.this) else inner.this
    return None


def _written(node: exp.Expression) -> str:
    """Return a time of day that is written out: '08:00', TIME '08:00'."""
    inner = node.unnest()
    if isinstance(inner, exp.Cast) and inner.args["to"].this == exp.DataType.Type.TIME:
        inner = inner.this.unnest()
    return str(inner.this) if isinstance(inner, exp.Literal) and inner.is_string else ""


def _seconds(node: exp.Expression) -> exp.Expression | None:
    moment = _of_day(node)
    if moment is not None:
        midnight = exp.DateTrunc(this=moment.copy(), unit=exp.Literal.string("day"))
        gap = exp.Sub(this=_bracket(moment), expression=midnight)
        return exp.Extract(this=exp.var("EPOCH"), expression=gap)
    found = _CLOCK.fullmatch(_written(node).strip())
    if found is None or int(found[1]) > 23:
        return None
    return exp.Literal.number(int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3] or 0))


def _bracket(node: exp.Expression) -> exp.Expression:
    copy = node.copy()
    return exp.Paren(this=copy) if isinstance(copy, exp.Binary) else copy


_LETTERS = r"(?:[^\\^$.|?*+()\[\]{}%_]|\\[.$*+?()\[\]{}|^-])*"
_GROUP = re.compile(rf"(\^?)\(({_LETTERS}(?:\|{_LETTERS})*)\)(\$?)")
_SIMILAR = re.compile(r"(%?)\(([^()|\\\[\]*+?{}]*(?:\|[^()|\\\[\]*+?{}]*)*)\)(%?)")


def split_alternatives(node: exp.Expression) -> exp.Expression:
    """name ~ '^(Ka|Lu)' is name ~ '^Ka' OR name ~ '^Lu'; name SIMILAR TO '(Ka|Lu)%' the same of
    LIKE.
    """
    if not isinstance(node, exp.RegexpLike | exp.RegexpILike | exp.SimilarTo):
        return node
    pattern = node.expression
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        return node
    text = pattern.name
    if isinstance(node, exp.SimilarTo):
        found = _SIMILAR.fullmatch(text if "(" in text else f"({text})")
        if found is None:
            return node
        texts = [f"{found[1]}{each}{found[3]}" for each in found[2].split("|")]
        return _any_of([exp.Like(this=node.this.copy(), expression=_text(each)) for each in texts])
    text = text.removesuffix(".*") if not text.endswith("\\.*") else text
    text = text.removeprefix(".*")
    found = _GROUP.fullmatch(text)
    parts = re.split(r"(?<!\\)\|", text if found is None else found[2])
    if "(" in re.sub(r"\\.", "", "".join(parts)) or (text == pattern.name and len(parts) == 1):
        return node
    ends = ("", "") if found is None else (found[1], found[3])
    made = []
    for part in parts:
        copy = node.copy()
        copy.set("expression", _text(f"{ends[0]}{part}{ends[1]}"))
        made.append(copy)
    return _any_of(made)


def _text(text: str) -> exp.Expression:
    return exp.Literal.string(text)


def _any_of(parts: list[exp.Expression]) -> exp.Expression:
    return parts[0] if len(parts) == 1 else exp.Paren(this=exp.or_(*parts, copy=False))


RULES = (compare_times, split_alternatives)
