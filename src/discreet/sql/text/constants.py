"""Constants in the words of Postgres's clients: arrays as texts, casts, arithmetic, series."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from sqlglot import exp

from discreet.sql.text.parse import whole


def rewrite_any_array(node: exp.Expression) -> exp.Expression:
    """x = ANY('{CA,NY}') and x = ANY (SELECT ...) are x IN (...); x <> ALL (...) is NOT IN."""
    if type(node) not in (exp.EQ, exp.NEQ):
        return node
    other = node.expression
    every = isinstance(other, exp.All) or (
        isinstance(other, exp.Anonymous) and other.name.lower() == "all"
    )
    if not every and not isinstance(other, exp.Any):
        return node
    if isinstance(node, exp.NEQ) is not every:
        return node
    inner = (
        other.expressions[0]
        if isinstance(other, exp.Anonymous) and other.expressions
        else other.this
    )
    inner = inner.unnest() if isinstance(inner, exp.Expression) else inner
    if isinstance(inner, exp.Query):
        within = exp.In(this=node.this, query=exp.Subquery(this=inner))
        return exp.Not(this=within) if every else within
    inner = inner.this.unnest() if isinstance(inner, exp.Cast) else inner
    found = inner.expressions if isinstance(inner, exp.Array) else _elements(inner)
    if not found:
        return node
    among = exp.In(this=node.this, expressions=found)
    return exp.Not(this=among) if every else among


_ELEMENT = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^{}",\\]*))\s*(,|$)')


def _elements(node: exp.Expression) -> list[exp.Expression]:
    """Return the texts of an array that is written as a text: '{CA,"New York"}'."""
    text = node.name if isinstance(node, exp.Literal) and node.is_string else ""
    if not text.startswith("{") or not text.endswith("}"):
        return []
    found, place, text = list[exp.Expression](), 0, text[1:-1]
    while place < len(text):
        part = _ELEMENT.match(text, place)
        if part is None or not part[0]:
            return []
        quoted = part[1] is not None
        word = re.sub(r"\\(.)", r"\1", part[1]) if quoted else str(part[2]).strip()
        empty = not quoted and word.upper() in ("", "NULL")
        found.append(exp.Null() if empty else exp.Literal.string(word))
        place = part.end()
    return found


def join_pattern(node: exp.Expression) -> exp.Expression:
    """ILIKE ('%' || REPLACE('ada', '_', '!_') || '%'): a pattern that is put together from
    constants.
    """
    like = node.this if isinstance(node, exp.Escape) else node
    if isinstance(like, exp.Like | exp.ILike) and not isinstance(like.expression, exp.Literal):
        text = text_of(like.expression)
        if text is not None:
            like.set("expression", exp.Literal.string(text))
    return node


def text_of(node: exp.Expression | None) -> str | None:
    """Return the text that an expression of constants stands for, if it is one."""
    match node:
        case exp.Literal() if node.is_string:
            return str(node.this)
        case exp.Paren():
            return text_of(node.this)
        case exp.Cast() if node.args["to"].this in exp.DataType.TEXT_TYPES:
            return text_of(node.this)
        case exp.DPipe():
            parts = [_piece(part) for part in (node.this, node.expression)]
        case exp.Concat():
            parts = [_piece(part) for part in node.expressions]
        case exp.Lower() | exp.Upper():
            inner = text_of(node.this)
            return inner and (inner.lower() if isinstance(node, exp.Lower) else inner.upper())
        case exp.Replace():
            found = [
                text_of(part) for part in (node.this, node.expression, node.args.get("replacement"))
            ]
            if None in found or not found[1]:
                return None
            text, old, new = (str(each) for each in found)
            return text.replace(old, new)
        case _:
            return None
    return None if None in parts else "".join(str(part) for part in parts)


def _piece(node: exp.Expression) -> str | None:
    """Return the text of a part that is put together with others: a whole number may be one."""
    text, number = text_of(node), whole_number(node)
    return str(number) if text is None and number is not None else text


def read_interval(node: exp.Expression) -> exp.Expression:
    """'7 days'::interval, (-6 || ' day')::interval: INTERVAL '7 days'."""
    if not isinstance(node, exp.Cast) or node.args["to"].this != exp.DataType.Type.INTERVAL:
        return node
    text = text_of(node.this)
    if text is None:
        return node
    one = _ONE_LENGTH.fullmatch(text)
    if one is None:  # several: `moments.split_interval` takes them apart
        return exp.Interval(this=exp.Literal.string(text.strip()))
    return exp.Interval(this=exp.Literal.string(one[1]), unit=exp.var(one[2].upper()))


_ONE_LENGTH = re.compile(r"\s*(-?[0-9]{1,6})\s*([a-zA-Z]+)\s*")


def compute_counts(node: exp.Expression) -> exp.Expression:
    """LIMIT 10::INTEGER, LIMIT ('5'::int4), LIMIT 2 * 5, INTERVAL (7 * 2) DAY, NTILE(2 + 2)."""
    name = next((name for kinds, name in _COUNTED if isinstance(node, kinds)), "")
    written = node.args.get(name)
    if isinstance(written, exp.Expression) and not isinstance(written, exp.Literal):
        found = whole_number(written)
        if found is not None and found >= 0:
            node.set(name, exp.Literal.number(found))
    return node


_COUNTED = (  # where a whole number must be written out
    (exp.Limit | exp.Offset, "expression"),
    (exp.Fetch, "count"),
    (exp.Interval | exp.Ntile, "this"),
    (exp.Lag | exp.Lead, "offset"),
    (exp.Round, "decimals"),
)


def whole_number(node: exp.Expression | None) -> int | None:
    """Return the whole number that an expression of whole numbers stands for, if it is one."""
    match node:
        case exp.Paren():
            return whole_number(node.this)
        case exp.Cast():
            inner = node.this.unnest()
            text = inner.name if isinstance(inner, exp.Literal) else ""
            return int(text) if text.isascii() and text.isdigit() and len(text) <= 12 else None
        case exp.Neg():
            negated = whole_number(node.this)
            return None if negated is None else -negated
        case exp.Add() | exp.Sub() | exp.Mul():
            left, right = whole_number(node.this), whole_number(node.expression)
            if left is None or right is None:
                return None
            signed = -right if isinstance(node, exp.Sub) else right
            found = left * right if isinstance(node, exp.Mul) else left + signed
            return found if abs(found) < 10**12 else None
    return whole(node)


def read_boolean(node: exp.Expression) -> exp.Expression:
    """'TRUE'::bool, where a condition stands."""
    if isinstance(node, exp.Cast) and node.args["to"].this == exp.DataType.Type.BOOLEAN:
        text = node.this.unnest()
        if isinstance(text, exp.Literal) and text.is_string:
            word = text.name.strip().lower()
            if word in (*_TRUE, *_FALSE):
                return exp.Boolean(this=word in _TRUE)
    return node


_TRUE, _FALSE = ("t", "true", "y", "yes", "on", "1"), ("f", "false", "n", "no", "off", "0")


def rewrite_buckets(node: exp.Expression) -> exp.Expression:
    """WIDTH_BUCKET(x, ARRAY[18, 30, 65]): how many of the bounds are at most x."""
    if not isinstance(node, exp.WidthBucket):
        return node
    listed = node.args.get("threshold") or node.args.get("min_value")
    if not isinstance(listed, exp.Array) or not listed.expressions:
        return node
    value, bounds = node.this, listed.expressions
    below = [
        exp.If(this=exp.LT(this=value.copy(), expression=bound.copy()), true=exp.convert(place))
        for place, bound in enumerate(bounds)
    ]
    rest = exp.GTE(this=value.copy(), expression=bounds[-1].copy())
    return exp.Case(ifs=[*below, exp.If(this=rest, true=exp.convert(len(bounds)))])


def multiply_interval(node: exp.Expression) -> exp.Expression:
    """-5 * INTERVAL '1 YEAR' is INTERVAL '-5' YEAR."""
    if not isinstance(node, exp.Mul):
        return node
    for times, length in ((node.this, node.expression), (node.expression, node.this)):
        if (
            isinstance(length, exp.Interval)
            and length.args.get("unit") is not None
            and length.this is not None
        ):
            count, each = _number(times.unnest()), re.fullmatch("-?[0-9]{1,6}", length.this.name)
            if count is not None and each is not None:
                total = exp.Literal.string(str(count * int(each[0])))
                return exp.Interval(this=total, unit=length.args["unit"])
    return node


def series_rows(node: exp.GenerateSeries) -> list[exp.Expression] | None:
    """Return the rows of GENERATE_SERIES(1, 10) and of days, written out; None where it is not
    that.
    """
    start, end, step = (node.args.get(name) for name in ("start", "end", "step"))
    first, last, gap = whole_number(start), whole_number(end), whole_number(step)
    if isinstance(step, exp.Interval) or (step is not None and step.is_string):
        return _days(_moment(start), _moment(end), step)
    gap = 1 if step is None else gap
    if first is None or last is None or not gap or abs(last - first) // abs(gap) >= MOST_SERIES:
        return None
    beyond = last if node.args.get("is_end_exclusive") else last + (1 if gap > 0 else -1)
    return [exp.convert(each) for each in range(first, beyond, gap)]


def _moment(node: exp.Expression | None) -> datetime | None:
    """Return the moment that DATE '2024-01-01' and '2024-01-01'::timestamp stand for."""
    inner = node.unnest() if node is not None else None
    inner = inner.this.unnest() if isinstance(inner, exp.Cast) else inner
    try:
        return datetime.fromisoformat(inner.name.strip()) if inner is not None else None
    except ValueError:
        return None


_STEPS = {
    "hour": (0, 3_600),
    "day": (0, 86_400),
    "week": (0, 604_800),
    "month": (1, 0),
    "year": (12, 0),
}


def _days(
    start: datetime | None, end: datetime | None, step: exp.Expression
) -> list[exp.Expression] | None:
    """GENERATE_SERIES(DATE '2024-01-01', DATE '2024-12-01', INTERVAL '1 month')."""
    unit = step.args.get("unit") if isinstance(step, exp.Interval) else None
    text = f"{step.this.name} {unit or ''}" if isinstance(step, exp.Interval) else step.name
    found = re.fullmatch(r"\s*([1-9][0-9]{0,3})\s*([a-zA-Z]+?)s?\s*", text)
    months, seconds = _STEPS.get(found[2].lower(), (0, 0)) if found is not None else (0, 0)
    if start is None or end is None or found is None or not (months or seconds):
        return None
    if start.tzinfo is not None or end.tzinfo is not None or (months and start.day > 28):
        return None
    rows, count, moment = list[exp.Expression](), int(found[1]), start
    while moment <= end:
        if len(rows) >= MOST_SERIES:
            return None
        rows.append(exp.cast(exp.Literal.string(moment.isoformat(sep=" ")), "TIMESTAMP"))
        if months:
            year, month = divmod(moment.year * 12 + moment.month - 1 + count * months, 12)
            moment = moment.replace(year=year, month=month + 1)
        else:
            moment += timedelta(seconds=count * seconds)
    return rows


# rows that a series may have: as many as a table that is written out
MOST_SERIES = 2_000


def _number(node: exp.Expression | None) -> int | None:
    if isinstance(node, exp.Neg):
        inner = whole(node.this)
        return None if inner is None else -inner
    return whole(node)
