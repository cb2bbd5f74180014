"""Functions of texts: on a category value by value, on text by the engine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sqlglot import exp

from discreet.algebra import Cast, Constant, Expression, call, case
from discreet.sql.text.parse import check_labels, reject, show
from discreet.sql.values import numbers
from discreet.sql.values.arguments import Read
from discreet.sql.values.categories import (
    MAX_CODES,
    MAX_LENGTH,
    among,
    check_letters,
    decode,
    letters_of,
    map_codes,
    relabel,
)
from discreet.sql.values.patterns import change_letters
from discreet.sql.values.value import (
    NO_FLAG,
    NULL,
    Category,
    Day,
    Flag,
    Missing,
    Moment,
    Number,
    Opaque,
    Text,
    Value,
    widen,
)


def as_text(value: Value, node: exp.Expression, *, written: exp.Expression) -> Value:
    """Return a value, `written` so, as text: a category of its own where it has few values."""
    match value.domain:
        case Text():
            return value
        case Category(values=values):
            return Value(
                expression=value.expression,
                domain=Category(values=tuple(map(str, values))),
                nullable=value.nullable,
                constant=value.constant,
            )
        case Number() as grid if grid.size <= MAX_CODES:
            check_labels(grid.size)
            digits = None if numbers.is_float(written) else _digits(grid.step)
            labels = tuple(_show(grid.at(units), digits) for units in range(grid.lo, grid.hi + 1))
            places = Cast(widen(value.expression, grid.largest) - grid.lo, "BIGINT")
            # Numbers so near each other that the engine writes them alike are one text.
            return relabel(
                Value(expression=places, domain=Category(values=labels), nullable=value.nullable),
                labels,
            )
        case Flag():
            return Value(
                expression=case((value.expression, 1), (call("NOT", value.expression), 0)),
                domain=Category(values=("false", "true")),
                nullable=value.nullable,
            )
        case Day() as days if days.size <= MAX_CODES:
            check_labels(days.size)
            passed = "day" if days.grain == "week" else days.grain
            code: Expression = call("date_diff", passed, days.lo, value.expression)
            code = code // 7 if days.grain == "week" else code
            coded = Category(values=tuple(range(days.size)))
            clock = " 00:00:00" if days.stamp else ""
            labels = tuple(days.at(place).isoformat() + clock for place in range(days.size))
            return relabel(Value(expression=code, domain=coded, nullable=value.nullable), labels)
        case Day() | Moment():
            written_out = Text(letters=30)  # 2024-12-31 23:59:59.999999
            return Value(
                expression=Cast(value.expression, "VARCHAR"),
                domain=written_out,
                nullable=value.nullable,
            )
    raise reject(node, f"{show(node)} has too many values to become text.", "Round it first.")


def _digits(step: Fraction) -> int | None:
    """Return how many decimals a grid needs, if it is one of decimals."""
    return next((places for places in range(19) if (step * 10**places).denominator == 1), None)


def _show(value: Fraction, digits: int | None) -> str:
    """Write a number as the engine does: decimals with the digits of their type, floats with those
    they need.
    """
    return (
        f"{float(value)!r}"
        if digits is None
        else f"{Decimal(int(value * 10**digits)).scaleb(-digits):f}"
    )


# --- functions ------------------------------------------------------------------------------------


def function(
    node: exp.Expression, scope: Any, translate: Callable[[exp.Expression, Any], Value]
) -> Value:
    return FUNCTIONS[type(node)](node, lambda part: _textual(translate(part, scope), part))


def _textual(value: Value, node: exp.Expression) -> Value:
    if isinstance(value.domain, Category | Text | Missing):
        return value
    if isinstance(value.domain, Opaque):
        raise reject(
            node,
            "an identifier cannot be computed with.",
            "It can be counted: COUNT(DISTINCT ...).",
        )
    return as_text(value, node, written=node)


def _map(
    value: Value,
    label: Callable[[str], str | None],
    found: Expression,
    *,
    letters: int | None = None,
) -> Value:
    """Return a text function: on a category value by value, on text by the engine.

    `letters` bounds the result's length; where it is not given the text grows no longer.
    """
    match value.domain:
        case Category(values=values):
            return relabel(value, [label(str(each)) for each in values])
        case Missing():
            return value
    kept = letters_of(value) if letters is None else letters
    return Value(expression=found, domain=Text(letters=kept), nullable=value.nullable)


def _lower(node: exp.Expression, read: Read) -> Value:
    value = read(node.this)
    return _map(
        value, lambda text: change_letters(text, str.lower), call("lower", value.expression)
    )


def _upper(node: exp.Expression, read: Read) -> Value:
    value = read(node.this)
    return _map(
        value, lambda text: change_letters(text, str.upper), call("upper", value.expression)
    )


def _trim(node: exp.Expression, read: Read) -> Value:
    if node.expression is not None:
        raise reject(node, "TRIM is answered for spaces only.", "Write TRIM(x).")
    value, position = read(node.this), node.args.get("position") or "BOTH"
    strip = {"BOTH": str.strip, "LEADING": str.lstrip, "TRAILING": str.rstrip}[position]
    name = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[position]
    return _map(value, lambda text: strip(text, " "), call(name, value.expression))


def _whole_constant(node: exp.Expression, read: Read) -> int:
    """Return a number of letters, or a place among them; no text is longer than MAX_LENGTH, so
    larger numbers mean the same.
    """
    inner = node.this if isinstance(node, exp.Neg) else node
    if isinstance(inner, exp.Literal) and not inner.is_string and inner.this.isdigit():
        if len(inner.this) >= 10:
            raise reject(
                node,
                f"{show(node)} is too large: texts are at most {MAX_LENGTH} letters long.",
                "Write less.",
            )
        most = min(int(inner.this), MAX_LENGTH + 1)
        return -most if isinstance(node, exp.Neg) else most
    raise reject(
        node,
        "this place needs a whole number written out.",
        "Write SUBSTR(x, 1, 3), or LPAD(x, 5, '0').",
    )


def _substring(node: exp.Expression, read: Read) -> Value:
    value, start = read(node.this), _whole_constant(node.args["start"], read)
    length = None if node.args.get("length") is None else _whole_constant(node.args["length"], read)
    if length is not None and length < 0:
        raise reject(
            node, "SUBSTR with a negative length is not answered.", "Write SUBSTR(x, 1, 3)."
        )
    found = call("substr", value.expression, start, *(() if length is None else (length,)))
    kept = letters_of(value) if length is None else min(length, letters_of(value))
    return _map(value, lambda text: _cut(text, start, length), found, letters=kept)


def _cut(text: str, start: int, length: int | None) -> str:
    """Positions count from 1; negative ones from the end; a length counts from the position asked
    for.
    """
    begin = start - 1 if start > 0 else (len(text) + start if start < 0 else -1)
    end = len(text) if length is None else begin + length
    return text[max(begin, 0) : max(end, 0)]


def _left(node: exp.Expression, read: Read) -> Value:
    value, length = read(node.this), _whole_constant(node.expression, read)
    kept = min(length, letters_of(value)) if length >= 0 else letters_of(value)
    return _map(
        value, lambda text: text[:length], call("left", value.expression, length), letters=kept
    )


def _right(node: exp.Expression, read: Read) -> Value:
    value, length = read(node.this), _whole_constant(node.expression, read)
    if length < 0:
        raise reject(node, "RIGHT with a negative length is not answered.", "Write RIGHT(x, 3).")
    kept = min(length, letters_of(value))
    found = call("right", value.expression, length)
    return _map(value, lambda text: text[max(len(text) - length, 0) :], found, letters=kept)


def _length(node: exp.Expression, read: Read) -> Value:
    value = read(node.this)
    match value.domain:
        case Category(values=values):
            sizes = [len(str(each)) for each in values]
            return Value(
                expression=map_codes(value.expression, sizes),
                domain=Number(step=Fraction(1), lo=min(sizes), hi=max(sizes)),
                nullable=value.nullable,
            )
        case Missing():
            return value
    domain = Number(step=Fraction(1), lo=0, hi=MAX_LENGTH)
    return Value(
        expression=_limit_letters(value.expression, call("length", value.expression)),
        domain=domain,
        nullable=value.nullable,
    )


def _limit_letters(text: Expression, number: Expression) -> Expression:
    """Return a number of letters of a text, up to the most; LEAST skips NULLs, so NULL has to be
    kept by hand.
    """
    return case((text.is_known, call("least", number, MAX_LENGTH)))


def _concatenate(node: exp.Expression, read: Read) -> Value:
    """|| and CONCAT; the latter takes NULL for nothing."""
    skip_null = isinstance(node, exp.Concat)
    parts = [
        read(part) for part in (node.expressions if skip_null else (node.this, node.expression))
    ]
    parts = [part for part in parts if not (skip_null and isinstance(part.domain, Missing))]
    if any(isinstance(part.domain, Missing) for part in parts):
        return Value(expression=NULL, domain=Missing(), nullable=True)
    if not parts:
        return Value(expression=Constant(0), domain=Category(values=("",)), constant=True)
    parts = [_empty_for_null(part) for part in parts] if skip_null else parts
    result = parts[0]
    for part in parts[1:]:
        result = _pair(result, part, skip_null)
    return result


def _empty_for_null(value: Value) -> Value:
    """Return the text, or an empty one where it is NULL, which it may be whether or not that is
    meant.
    """
    if value.constant:
        return value
    if isinstance(value.domain, Category):
        labels = (*map(str, value.domain.values), "")
        found = call("coalesce", value.expression, value.domain.size)
        return relabel(replace(value, expression=found, nullable=False), labels)
    return replace(value, expression=call("coalesce", value.expression, ""), nullable=False)


def _pair(left: Value, right: Value, skip_null: bool) -> Value:
    nullable = left.nullable or right.nullable
    if isinstance(left.domain, Category) and isinstance(right.domain, Category):
        a, b = left.domain.values, right.domain.values
        if len(a) * len(b) <= MAX_CODES:
            check_letters(len(a) * len(b) * (letters_of(left) + letters_of(right)))
            labels = [f"{x}{y}"[:MAX_LENGTH] for x in a for y in b]
            codes = Value(
                expression=Cast(left.expression, "BIGINT") * len(b) + right.expression,
                domain=Category(values=tuple(labels)),
                nullable=nullable,
            )
            return relabel(codes, labels)
    joined = call("concat" if skip_null else "||", decode(left), decode(right))
    letters = min(letters_of(left) + letters_of(right), MAX_LENGTH)
    # Privacy: a text that doubles in every subquery would use up the memory, for those people alone
    # who have one.
    kept = call("left", joined, MAX_LENGTH)
    return Value(expression=kept, domain=Text(letters=letters), nullable=nullable)


def _starts_with(node: exp.Expression, read: Read) -> Value:
    value, prefix = read(node.this), read(node.expression)
    if not prefix.constant or not isinstance(prefix.domain, Category):
        raise reject(node, "the prefix must be a constant.", "Write STARTS_WITH(name, 'Ka').")
    text = str(prefix.domain.values[0])
    if isinstance(value.domain, Category):
        return among(
            value,
            [code for code, each in enumerate(value.domain.values) if str(each).startswith(text)],
        )
    return Value(
        expression=call("starts_with", value.expression, text),
        domain=Flag(),
        nullable=value.nullable,
    )


def _ends_with(node: exp.Expression, read: Read) -> Value:
    value, text = read(node.this), _text_constant(node.expression, read, node)
    if isinstance(value.domain, Category):
        return among(
            value,
            [code for code, each in enumerate(value.domain.values) if str(each).endswith(text)],
        )
    return _flag_of(call("ends_with", value.expression, text), value)


def _contains(node: exp.Expression, read: Read) -> Value:
    value, text = read(node.this), _text_constant(node.expression, read, node)
    if isinstance(value.domain, Category):
        return among(
            value, [code for code, each in enumerate(value.domain.values) if text in str(each)]
        )
    return _flag_of(call("contains", value.expression, text), value)


def _flag_of(condition: Expression, value: Value) -> Value:
    if isinstance(value.domain, Missing):
        return Value(expression=NO_FLAG, domain=Flag(), nullable=True)
    return Value(expression=condition, domain=Flag(), nullable=value.nullable)


def _text_constant(
    node: exp.Expression | None, read: Read, owner: exp.Expression, *, most: int = 1_000
) -> str:
    value = read(node) if node is not None else None
    if value is None or not value.constant or not isinstance(value.domain, Category):
        raise reject(
            owner, f"{show(owner)} needs a text written out.", "Write CONTAINS(name, 'Ka')."
        )
    text = str(value.domain.values[0])
    if len(text) > most:
        raise reject(
            owner, f"{show(owner)} has a text of over {most} letters.", "Write a shorter one."
        )
    return text


def _replace(node: exp.Expression, read: Read) -> Value:
    value = read(node.this)
    old = _text_constant(node.expression, read, node)
    new = _text_constant(node.args.get("replacement"), read, node, most=100)
    if not old:
        return value
    # Privacy: as for ||, a text must not grow without end for some people alone.
    found = call("left", call("replace", value.expression, old, new), MAX_LENGTH)
    longest = letters_of(value) + letters_of(value) // len(old) * len(new)
    return _map(
        value,
        lambda text: text.replace(old, new)[:MAX_LENGTH],
        found,
        letters=min(longest, MAX_LENGTH),
    )


def _split_part(node: exp.Expression, read: Read) -> Value:
    value, part = read(node.this), _whole_constant(node.args["part_index"], read)
    delimiter = _text_constant(node.args["delimiter"], read, node)
    if part < 1 or not delimiter:
        raise reject(node, f"{show(node)} is not answered.", "Write SPLIT_PART(name, ' ', 1).")
    found = call("split_part", value.expression, delimiter, part)
    return _map(value, lambda text: "".join(text.split(delimiter)[part - 1 : part]), found)


def _position(node: exp.Expression, read: Read) -> Value:
    """Return where a text begins in another, counted from 1; 0 if it does not."""
    value, text = read(node.this), _text_constant(node.args["substr"], read, node)
    if not text:
        raise reject(node, "an empty text is found everywhere.", "Look for something.")
    if isinstance(value.domain, Category):
        places = [str(each).find(text) + 1 for each in value.domain.values]
        domain = Number(step=Fraction(1), lo=min(places), hi=max(places))
        found = map_codes(value.expression, places)
        return Value(
            expression=found, domain=domain, nullable=value.nullable, constant=value.constant
        )
    if isinstance(value.domain, Missing):
        return value
    return Value(
        expression=_limit_letters(value.expression, call("strpos", value.expression, text)),
        domain=Number(step=Fraction(1), lo=0, hi=MAX_LENGTH),
        nullable=value.nullable,
    )


def _pad(node: exp.Expression, read: Read) -> Value:
    """LPAD and RPAD: also cut off what is too long."""
    value, length = read(node.this), _whole_constant(node.expression, read)
    given = node.args.get("fill_pattern")
    fill = _text_constant(given, read, node) if given is not None else " "
    if length > 1_000:
        raise reject(
            node, f"{show(node)} makes texts of over 1,000 letters.", "Write LPAD(code, 5, '0')."
        )
    if length < 0 or not fill:
        raise reject(node, f"{show(node)} is not answered.", "Write LPAD(code, 5, '0').")
    left = bool(node.args.get("is_left"))

    def padded(text: str) -> str:
        more = (fill * (length // len(fill) + 1))[: max(0, length - len(text))]
        return more + text[:length] if left else text[:length] + more

    found = call("lpad" if left else "rpad", value.expression, length, fill)
    return _map(value, padded, found, letters=length)


def _join(node: exp.Expression, read: Read) -> Value:
    """CONCAT_WS: the texts that are not NULL, with a separator between them."""
    separator, parts = (
        _text_constant(node.expressions[0], read, node),
        [read(each) for each in node.expressions[1:]],
    )
    parts = [part for part in parts if not isinstance(part.domain, Missing)]
    if not parts:
        return Value(expression=Constant(0), domain=Category(values=("",)), constant=True)
    values = [
        (*map(str, part.domain.values), None) if isinstance(part.domain, Category) else None
        for part in parts
    ]
    if None in values or math.prod(len(each or ()) for each in values) > MAX_CODES:
        joined = call("left", call("concat_ws", separator, *map(decode, parts)), MAX_LENGTH)
        letters = sum(map(letters_of, parts)) + len(separator) * (len(parts) - 1)
        return Value(expression=joined, domain=Text(letters=min(letters, MAX_LENGTH)))
    check_letters(math.prod(len(each or ()) for each in values) * sum(map(letters_of, parts)))
    labels = [
        separator.join(text for text in row if text is not None)[:MAX_LENGTH]
        for row in itertools.product(*(each for each in values if each is not None))
    ]
    code: Expression = Constant(0)
    for part, each in zip(parts, values, strict=True):
        size = len(each or ())
        code = code * size + call("coalesce", Cast(part.expression, "BIGINT"), size - 1)
    return relabel(
        Value(expression=code, domain=Category(values=tuple(range(len(labels))))), labels
    )


FUNCTIONS: dict[type[exp.Expression], Callable[[Any, Read], Value]] = {
    exp.Lower: _lower,
    exp.Upper: _upper,
    exp.Trim: _trim,
    exp.Substring: _substring,
    exp.Left: _left,
    exp.Right: _right,
    exp.Length: _length,
    exp.DPipe: _concatenate,
    exp.Concat: _concatenate,
    exp.StartsWith: _starts_with,
    exp.EndsWith: _ends_with,
    exp.Contains: _contains,
    exp.Replace: _replace,
    exp.SplitPart: _split_part,
    exp.StrPosition: _position,
    exp.Pad: _pad,
    exp.ConcatWs: _join,
}
