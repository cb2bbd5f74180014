"""Functions of texts: computed here for each value of a category, and by the engine for texts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sqlglot import exp

from discreet.algebra import Cast, Constant, Expression, call, case
from discreet.sql.text.parse import reject, show
from discreet.sql.values.arguments import Read
from discreet.sql.values.as_text import as_text
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
    Flag,
    Missing,
    Number,
    Opaque,
    Text,
    Value,
)


def function(
    node: exp.Expression, scope: Any, translate: Callable[[exp.Expression, Any], Value]
) -> Value:
    """Return the value of a function of texts; each argument is read as text."""

    def read(part: exp.Expression) -> Value:
        return _read_as_text(translate(part, scope), part)

    return FUNCTIONS[type(node)](node, read)


def _read_as_text(value: Value, node: exp.Expression) -> Value:
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
    expression: Expression,
    *,
    letters: int | None = None,
) -> Value:
    """Apply a function of texts: `label` to the values of a category, `expression` to a text.

    `letters` bounds the length of a resulting text; without it, the function makes no text longer.
    """
    match value.domain:
        case Category(values=values):
            return relabel(value, [label(str(old)) for old in values])
        case Missing():
            return value
    most = letters_of(value) if letters is None else letters
    return Value(expression=expression, domain=Text(letters=most), nullable=value.nullable)


def _lower(node: exp.Expression, read: Read) -> Value:
    value = read(node.this)
    expression = call("lower", value.expression)
    return _map(value, lambda text: change_letters(text, str.lower), expression)


def _upper(node: exp.Expression, read: Read) -> Value:
    value = read(node.this)
    expression = call("upper", value.expression)
    return _map(value, lambda text: change_letters(text, str.upper), expression)


def _trim(node: exp.Expression, read: Read) -> Value:
    value = read(node.this)
    letters = " " if node.expression is None else _text_constant(node.expression, read, node)
    position = node.args.get("position") or "BOTH"
    if letters != " " and not isinstance(value.domain, Category | Missing):
        raise reject(
            node,
            "TRIM of texts is answered for spaces only.",
            f"Write TRIM({show(node.this)}), or REPLACE({show(node.this)}, {show(node.expression)}, '').",
        )
    strip = {"BOTH": str.strip, "LEADING": str.lstrip, "TRAILING": str.rstrip}[position]
    name = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[position]
    return _map(value, lambda text: strip(text, letters), call(name, value.expression))


def _initcap(node: exp.Expression, read: Read) -> Value:
    """Return the values of a category with a capital at the beginning of each word."""
    value = read(node.this)
    if not isinstance(value.domain, Category | Missing):
        written = show(node.this)
        hint = f"Write UPPER(LEFT({written}, 1)) || LOWER(SUBSTR({written}, 2))."
        raise reject(node, f"{show(node)} is answered of listed values only.", hint)
    return _map(value, _in_capitals, value.expression)


def _in_capitals(text: str) -> str:
    """Return what INITCAP returns: words are of letters and digits."""
    before = ["", *text]
    changed = []
    for letter, last in zip(text, before, strict=False):
        changed.append(change_letters(letter, str.lower if last.isalnum() else str.upper))
    return "".join(changed)


def _whole_constant(node: exp.Expression, read: Read) -> int:
    """Return a whole number written out: a number of letters, or a place among them.

    No text is longer than MAX_LENGTH, so all larger numbers mean the same.
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
    value = read(node.this)
    start = _whole_constant(node.args["start"], read)
    length = None if node.args.get("length") is None else _whole_constant(node.args["length"], read)
    if length is not None and length < 0:
        raise reject(
            node, "SUBSTR with a negative length is not answered.", "Write SUBSTR(x, 1, 3)."
        )
    letters = letters_of(value)
    if length is None:
        expression = call("substr", value.expression, start)
    else:
        expression = call("substr", value.expression, start, length)
        letters = min(length, letters)
    return _map(value, lambda text: _cut(text, start, length), expression, letters=letters)


def _cut(text: str, start: int, length: int | None) -> str:
    """Return what SUBSTR returns.

    Positions count from 1, negative ones from the end. The length counts from the position asked
    for, also if that lies before the text.
    """
    begin = len(text) + start if start < 0 else start - 1
    end = len(text) if length is None else begin + length
    return text[max(begin, 0) : max(end, 0)]


def _left(node: exp.Expression, read: Read) -> Value:
    value = read(node.this)
    length = _whole_constant(node.expression, read)
    letters = letters_of(value)
    if length >= 0:
        letters = min(length, letters)
    expression = call("left", value.expression, length)
    return _map(value, lambda text: text[:length], expression, letters=letters)


def _right(node: exp.Expression, read: Read) -> Value:
    value = read(node.this)
    length = _whole_constant(node.expression, read)
    if length < 0:
        raise reject(node, "RIGHT with a negative length is not answered.", "Write RIGHT(x, 3).")
    letters = min(length, letters_of(value))
    expression = call("right", value.expression, length)

    def cut(text: str) -> str:
        start = max(len(text) - length, 0)
        return text[start:]

    return _map(value, cut, expression, letters=letters)


def _length(node: exp.Expression, read: Read) -> Value:
    value = read(node.this)
    match value.domain:
        case Category(values=values):
            sizes = [len(str(label)) for label in values]
            return Value(
                expression=map_codes(value.expression, sizes),
                domain=Number(step=Fraction(1), lo=min(sizes), hi=max(sizes)),
                nullable=value.nullable,
            )
        case Missing():
            return value
    length = call("length", value.expression)
    return Value(
        expression=_limit_letters(value.expression, length),
        domain=Number(step=Fraction(1), lo=0, hi=MAX_LENGTH),
        nullable=value.nullable,
    )


def _limit_letters(text: Expression, number: Expression) -> Expression:
    """Return a number of letters of a text, at most MAX_LENGTH; NULL where the text is NULL."""
    # LEAST skips NULLs, so the CASE keeps them.
    return case((text.is_known, call("least", number, MAX_LENGTH)))


def _concatenate(node: exp.Expression, read: Read) -> Value:
    """Return the value of ||, or of CONCAT, which takes NULL for an empty text."""
    skip_null = isinstance(node, exp.Concat)
    nodes = node.expressions if skip_null else (node.this, node.expression)
    parts = [read(part) for part in nodes]
    if skip_null:
        parts = [part for part in parts if not isinstance(part.domain, Missing)]
    if any(isinstance(part.domain, Missing) for part in parts):
        return Value(expression=NULL, domain=Missing(), nullable=True)
    if not parts:
        return Value(expression=Constant(0), domain=Category(values=("",)), constant=True)
    if skip_null:
        parts = [_empty_for_null(part) for part in parts]
    result = parts[0]
    for part in parts[1:]:
        result = _pair(result, part, skip_null)
    return result


def _empty_for_null(value: Value) -> Value:
    """Return the text, or an empty one where it is NULL.

    A value may be NULL in the data even if it is not marked nullable.
    """
    if value.constant:
        return value
    if isinstance(value.domain, Category):
        labels = (*map(str, value.domain.values), "")
        code = call("coalesce", value.expression, value.domain.size)
        return relabel(replace(value, expression=code, nullable=False), labels)
    text = call("coalesce", value.expression, "")
    return replace(value, expression=text, nullable=False)


def _pair(left: Value, right: Value, skip_null: bool) -> Value:
    """Return two texts, one behind the other: a category if there are few pairs."""
    nullable = left.nullable or right.nullable
    letters = letters_of(left) + letters_of(right)
    if isinstance(left.domain, Category) and isinstance(right.domain, Category):
        a = left.domain.values
        b = right.domain.values
        pairs = len(a) * len(b)
        if pairs <= MAX_CODES:
            check_letters(pairs * letters)
            labels = [f"{x}{y}"[:MAX_LENGTH] for x in a for y in b]
            codes = Value(
                expression=Cast(left.expression, "BIGINT") * len(b) + right.expression,
                domain=Category(values=tuple(labels)),
                nullable=nullable,
            )
            return relabel(codes, labels)
    name = "concat" if skip_null else "||"
    # Privacy: cut the text off. One that doubles in every subquery would use up the memory, but
    # only if somebody has such a text, and the failure would tell it.
    text = call("left", call(name, decode(left), decode(right)), MAX_LENGTH)
    return Value(expression=text, domain=Text(letters=min(letters, MAX_LENGTH)), nullable=nullable)


def _starts_with(node: exp.Expression, read: Read) -> Value:
    value = read(node.this)
    prefix = read(node.expression)
    if not prefix.constant or not isinstance(prefix.domain, Category):
        raise reject(node, "the prefix must be a constant.", "Write STARTS_WITH(name, 'Ka').")
    text = str(prefix.domain.values[0])
    if isinstance(value.domain, Category):
        return among(value, _codes_where(value.domain, lambda label: label.startswith(text)))
    return Value(
        expression=call("starts_with", value.expression, text),
        domain=Flag(),
        nullable=value.nullable,
    )


def _ends_with(node: exp.Expression, read: Read) -> Value:
    value = read(node.this)
    text = _text_constant(node.expression, read, node)
    if isinstance(value.domain, Category):
        return among(value, _codes_where(value.domain, lambda label: label.endswith(text)))
    return _flag_of(call("ends_with", value.expression, text), value)


def _contains(node: exp.Expression, read: Read) -> Value:
    value = read(node.this)
    text = _text_constant(node.expression, read, node)
    if isinstance(value.domain, Category):
        return among(value, _codes_where(value.domain, lambda label: text in label))
    return _flag_of(call("contains", value.expression, text), value)


def _codes_where(domain: Category, condition: Callable[[str], bool]) -> list[int]:
    """Return the codes of the values for which a condition holds."""
    return [code for code, label in enumerate(domain.values) if condition(str(label))]


def _flag_of(condition: Expression, value: Value) -> Value:
    if isinstance(value.domain, Missing):
        return Value(expression=NO_FLAG, domain=Flag(), nullable=True)
    return Value(expression=condition, domain=Flag(), nullable=value.nullable)


def _text_constant(
    node: exp.Expression | None, read: Read, owner: exp.Expression, *, most: int = 1_000
) -> str:
    """Return the text that an argument of `owner` is written as; refuse anything but a constant."""
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
    # Privacy: cut the text off, as in `_pair`: a long one must not fail for some people only.
    expression = call("left", call("replace", value.expression, old, new), MAX_LENGTH)
    longest = letters_of(value) + letters_of(value) // len(old) * len(new)

    def label(text: str) -> str:
        return text.replace(old, new)[:MAX_LENGTH]

    return _map(value, label, expression, letters=min(longest, MAX_LENGTH))


def _split_part(node: exp.Expression, read: Read) -> Value:
    value = read(node.this)
    part = _whole_constant(node.args["part_index"], read)
    delimiter = _text_constant(node.args["delimiter"], read, node)
    if part < 1 or not delimiter:
        raise reject(node, f"{show(node)} is not answered.", "Write SPLIT_PART(name, ' ', 1).")
    expression = call("split_part", value.expression, delimiter, part)

    def label(text: str) -> str:
        pieces = text.split(delimiter)
        return pieces[part - 1] if part <= len(pieces) else ""

    return _map(value, label, expression)


def _position(node: exp.Expression, read: Read) -> Value:
    """Return the place at which a text begins in another, from 1; 0 if it is not in it."""
    value = read(node.this)
    text = _text_constant(node.args["substr"], read, node)
    if not text:
        raise reject(node, "an empty text is found everywhere.", "Look for something.")
    if isinstance(value.domain, Category):
        places = [str(label).find(text) + 1 for label in value.domain.values]
        return Value(
            expression=map_codes(value.expression, places),
            domain=Number(step=Fraction(1), lo=min(places), hi=max(places)),
            nullable=value.nullable,
            constant=value.constant,
        )
    if isinstance(value.domain, Missing):
        return value
    place = call("strpos", value.expression, text)
    return Value(
        expression=_limit_letters(value.expression, place),
        domain=Number(step=Fraction(1), lo=0, hi=MAX_LENGTH),
        nullable=value.nullable,
    )


def _pad(node: exp.Expression, read: Read) -> Value:
    """Return the value of LPAD or RPAD, which also cut off a text that is too long."""
    value = read(node.this)
    length = _whole_constant(node.expression, read)
    pattern = node.args.get("fill_pattern")
    fill = _text_constant(pattern, read, node) if pattern is not None else " "
    if length > 1_000:
        raise reject(
            node, f"{show(node)} makes texts of over 1,000 letters.", "Write LPAD(code, 5, '0')."
        )
    if length < 0 or not fill:
        raise reject(node, f"{show(node)} is not answered.", "Write LPAD(code, 5, '0').")
    left = bool(node.args.get("is_left"))

    def pad(text: str) -> str:
        many = fill * (length // len(fill) + 1)
        more = many[: max(0, length - len(text))]
        return more + text[:length] if left else text[:length] + more

    expression = call("lpad" if left else "rpad", value.expression, length, fill)
    return _map(value, pad, expression, letters=length)


def _join(node: exp.Expression, read: Read) -> Value:
    """Return the value of CONCAT_WS: the texts that are not NULL, with a separator between them."""
    separator = _text_constant(node.expressions[0], read, node)
    parts = [read(part) for part in node.expressions[1:]]
    parts = [part for part in parts if not isinstance(part.domain, Missing)]
    if not parts:
        return Value(expression=Constant(0), domain=Category(values=("",)), constant=True)
    letters = sum(map(letters_of, parts))
    # the values of each category, and None for NULL
    choices: list[tuple[str | None, ...]] = []
    for part in parts:
        if isinstance(part.domain, Category):
            choices.append((*map(str, part.domain.values), None))
    rows = math.prod(map(len, choices))
    if len(choices) < len(parts) or rows > MAX_CODES:
        text = call("left", call("concat_ws", separator, *map(decode, parts)), MAX_LENGTH)
        letters += len(separator) * (len(parts) - 1)
        return Value(expression=text, domain=Text(letters=min(letters, MAX_LENGTH)))
    check_letters(rows * letters)
    labels = []
    for row in itertools.product(*choices):
        known = [text for text in row if text is not None]
        labels.append(separator.join(known)[:MAX_LENGTH])
    code: Expression = Constant(0)
    for part, texts in zip(parts, choices, strict=True):
        size = len(texts)
        code = code * size + call("coalesce", Cast(part.expression, "BIGINT"), size - 1)
    codes = Category(values=tuple(range(len(labels))))
    return relabel(Value(expression=code, domain=codes), labels)


FUNCTIONS: dict[type[exp.Expression], Callable[[Any, Read], Value]] = {
    exp.Lower: _lower,
    exp.Upper: _upper,
    exp.Trim: _trim,
    exp.Initcap: _initcap,
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
