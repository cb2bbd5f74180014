"""Text and categories. A function of a category is computed here, value by value, because its values are public."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sqlglot import exp

from discreet.algebra import Cast, Constant, Expression, Operand, call, case
from discreet.policy.domain import MOST_LETTERS
from discreet.sql.text.parse import check_labels, reject, show
from discreet.sql.values import numbers
from discreet.sql.values.value import (
    NO_FLAG,
    NULL,
    Coded,
    Day,
    Flag,
    Missing,
    Moment,
    Number,
    Opaque,
    Text,
    Value,
    widened,
)

MAX_CODES = 10_000  # values that a computed category may have; beyond, it is text like any other
MAX_LENGTH = MOST_LETTERS  # LENGTH of a text is counted up to here, and || cuts off the rest

_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)\s*")


def all_numeric(values: Iterable[str | int]) -> bool:
    return all(isinstance(value, int) or _NUMBER.fullmatch(value) for value in values)


def numeric_codes(value: Value, values: Sequence[str | int], node: exp.Expression) -> Value:
    """A category whose values are written as numbers, as that number; any other value becomes NULL."""
    read = [Fraction(str(each).strip()) if all_numeric([each]) else None for each in values]
    known = [each for each in read if each is not None]
    if not known:
        raise reject(node, f"{show(node)} is not a number.", "Only numbers can be computed with.")
    step = numbers.common_step(*known, Fraction(1)) if any(known) else Fraction(1)
    numbers.check_step(step, node)
    units = [None if each is None else int(each / step) for each in read]
    counted = [each for each in units if each is not None]
    domain = Number(step=step, lo=min(counted), hi=max(counted))
    numbers.check_size(domain.lo, domain.hi, node)
    return Value(
        expression=recoded(value.expression, units),
        domain=domain,
        nullable=value.nullable or None in units,
        constant=value.constant and len(values) == 1,
    )


def recoded(code: Expression, targets: Sequence[int | None]) -> Expression:
    """What maps code i to targets[i]."""
    return code if list(targets) == list(range(len(targets))) else _looked_up(code, targets)


def _looked_up(code: Expression, listed: Sequence[Operand]) -> Expression:
    """The entry at a code, from 0; the expression stands there once, however many codes there are.

    Branches of a CASE would each repeat it, and the engine unfolds what is nested: seconds for three functions.
    """
    return call("list_extract", call("list", *listed), Cast(code, "BIGINT") + 1)


def relabelled(value: Value, labels: Sequence[str | int | None], *, nullable: bool = False) -> Value:
    """The category with each value replaced by a label; None is NULL, equal labels become one value."""
    check_labels(len(labels))
    _check_letters(sum(len(str(label)) for label in labels))
    distinct = tuple(dict.fromkeys(label for label in labels if label is not None))
    position = {label: index for index, label in enumerate(distinct)}
    targets = [None if label is None else position[label] for label in labels]
    constant = value.constant and len(labels) == 1 and labels[0] is not None
    return Value(
        expression=recoded(value.expression, targets),
        domain=Coded(values=distinct),
        nullable=value.nullable or nullable or None in targets,
        constant=constant,
    )


def _check_letters(letters: int) -> None:
    """Refuse a statement whose computed categories would take much memory: twenty letters count as one value."""
    check_labels(letters // 20)


def decoded(value: Value) -> Expression:
    """A category or text as text."""
    if isinstance(value.domain, Coded):
        texts = [str(each) for each in value.domain.values]
        return Constant(texts[0]) if value.constant else _looked_up(value.expression, texts)
    return value.expression


def letters_of(value: Value) -> int:
    """How many letters a category or text has at most."""
    if isinstance(value.domain, Coded):
        return max((len(str(each)) for each in value.domain.values), default=0)
    return value.domain.letters if isinstance(value.domain, Text) else MAX_LENGTH


def unify(values: Sequence[Value], node: exp.Expression) -> list[Value]:
    """Categories on the union of their values; with a text among them, all as text."""
    if any(isinstance(value.domain, Text) for value in values):
        return [
            value
            if isinstance(value.domain, Missing)
            else Value(expression=decoded(value), domain=Text(letters=letters_of(value)), nullable=value.nullable)
            for value in values
        ]
    domains = [value.domain.values for value in values if isinstance(value.domain, Coded)]
    mixed = len({type(each) for each in itertools.chain(*domains)}) > 1
    union = tuple(dict.fromkeys(str(each) if mixed else each for each in itertools.chain(*domains)))
    position = {each: code for code, each in enumerate(union)}
    result = []
    for value in values:
        if isinstance(value.domain, Coded):
            targets = [position[str(each) if mixed else each] for each in value.domain.values]
            found = Constant(targets[0]) if value.constant else recoded(value.expression, targets)
            value = Value(expression=found, domain=Coded(values=union), nullable=value.nullable)
        result.append(value)
    return result


def ranked(value: Value) -> Value:
    """A category as the rank of its value in byte order, so that codes compare as the texts do."""
    assert isinstance(value.domain, Coded)
    order = sorted(value.domain.values, key=_sort_key)
    return Value(
        expression=recoded(value.expression, [order.index(each) for each in value.domain.values]),
        domain=value.domain,
        nullable=value.nullable,
    )


def _sort_key(value: str | int) -> Any:
    return value if isinstance(value, int) else value.encode()


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_MIRROR = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compare_codes(operator: str, left: Value, right: Value) -> Value:
    """A category against a constant: which codes satisfy it is known without data."""
    if left.constant and not right.constant:
        left, right, operator = right, left, _MIRROR[operator]
    assert isinstance(left.domain, Coded)
    assert isinstance(right.domain, Coded)
    other: str | int | Fraction = right.domain.values[0]
    whole = all(isinstance(each, int) for each in (*left.domain.values, *right.domain.values))
    if not whole and all_numeric(right.domain.values) and all(isinstance(each, int) for each in left.domain.values):
        other, whole = Fraction(str(other).strip()), True
    keys = [each if whole else str(each).encode() for each in left.domain.values]
    target = other if whole else str(other).encode()
    return among(left, [code for code, key in enumerate(keys) if _COMPARE[operator](key, target)])


def among(value: Value, codes: Sequence[int]) -> Value:
    """TRUE where the category has one of the codes, NULL where it is NULL."""
    found = call("in", value.expression, *codes) if codes else value.expression < 0
    return Value(expression=found, domain=Flag(), nullable=value.nullable)


def compare_identifiers(operator: str, left: Value, right: Value, node: exp.Expression) -> Value:
    """Identifiers may be compared for equality: with a constant, which selects one person, and noise hides one person;
    and with each other within a row, all of which belongs to one person.
    """
    texts: list[Expression] = []
    for value in (left, right):
        if isinstance(value.domain, Opaque):
            texts.append(Cast(value.expression, "VARCHAR"))
        elif value.constant and isinstance(value.domain, Coded | Number):
            domain = value.domain
            texts.append(Constant(str(domain.values[0] if isinstance(domain, Coded) else domain.at(domain.lo))))
    if operator not in ("=", "<>") or len(texts) < 2:
        raise reject(
            node,
            f"{show(node)} does more with an identifier than compare it for equality.",
            "Owners are matched by a JOIN on the owner, or by IN (SELECT owner FROM ...).",
        )
    return Value(expression=call(operator, *texts), domain=Flag(), nullable=left.nullable or right.nullable)


def like(value: Value, node: exp.Expression, *, ignore_case: bool, escape: str = "") -> Value:
    pattern = node.expression
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise reject(node, "LIKE needs a constant pattern.", "Write name LIKE 'Ka%'.")
    text = pattern.this
    if isinstance(value.domain, Coded):
        fold = (lambda part: _characters(part, str.lower)) if ignore_case else str
        signs = _signs(fold(text), escape)
        if _ONE in signs:  # then each letter may have to be held against all of the pattern
            check_labels(sum(len(str(each)) for each in value.domain.values) * len(signs) // 20)
        found = [code for code, each in enumerate(value.domain.values) if _is_like(fold(str(each)), signs)]
        return among(value, found)
    if isinstance(value.domain, Missing):
        return Value(expression=NO_FLAG, domain=Flag(), nullable=True)
    if isinstance(value.domain, Text):
        name, more = "ilike" if ignore_case else "like", (escape,) if escape else ()
        return Value(expression=call(name, value.expression, text, *more), domain=Flag(), nullable=value.nullable)
    raise reject(node, f"LIKE is for text, and {show(node.this)} is not text.", "Compare it with =, < or BETWEEN.")


_ANY, _ONE = "any", "one"


def _signs(pattern: str, escape: str) -> list[str]:
    """The letters of a pattern, % and _ by what they stand for; behind the escape they stand for themselves."""
    signs, letters = [], iter(pattern)
    for letter in letters:
        if letter == escape:
            signs.append(next(letters, ""))
        else:
            signs.append({"%": _ANY, "_": _ONE}.get(letter, letter))
    return signs


def _is_like(text: str, signs: Sequence[str]) -> bool:
    """Whether a text is like a pattern; on a mismatch only the last % takes one letter more."""
    if _ONE not in signs:
        return _has_in_order(text, signs)
    at = place = mark = 0
    star = -1
    while at < len(text):
        if place < len(signs) and signs[place] == _ANY:
            star, mark, place = place, at, place + 1
        elif place < len(signs) and signs[place] in (_ONE, text[at]):
            at, place = at + 1, place + 1
        elif star >= 0:
            mark += 1
            at, place = mark, star + 1
        else:
            return False
    return all(sign == _ANY for sign in signs[place:])


def _has_in_order(text: str, signs: Sequence[str]) -> bool:
    """Whether a text is like a pattern without _: what stands between its % follows one on the other."""
    pieces = [""]
    for sign in signs:
        if sign == _ANY:
            pieces.append("")
        else:
            pieces[-1] += sign
    if len(pieces) == 1:
        return text == pieces[0]
    first, *middle, last = pieces
    at, end = len(first), len(text) - len(last)
    if end < at or not (text.startswith(first) and text.endswith(last)):
        return False
    for piece in middle:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def as_text(value: Value, node: exp.Expression, *, written: exp.Expression) -> Value:
    """A value, `written` so, as text: a category of its own where it has few values."""
    match value.domain:
        case Text():
            return value
        case Coded(values=values):
            return Value(
                expression=value.expression,
                domain=Coded(values=tuple(map(str, values))),
                nullable=value.nullable,
                constant=value.constant,
            )
        case Number() as grid if grid.size <= MAX_CODES:
            check_labels(grid.size)
            digits = None if numbers.is_float(written) else _digits(grid.step)
            labels = tuple(_shown(grid.at(units), digits) for units in range(grid.lo, grid.hi + 1))
            places = Cast(widened(value.expression, grid.largest) - grid.lo, "BIGINT")
            # Numbers so near each other that the engine writes them alike are one text.
            return relabelled(Value(expression=places, domain=Coded(values=labels), nullable=value.nullable), labels)
        case Flag():
            return Value(
                expression=case((value.expression, 1), (call("NOT", value.expression), 0)),
                domain=Coded(values=("false", "true")),
                nullable=value.nullable,
            )
        case Day() | Moment():
            written_out = Text(letters=30)  # 2024-12-31 23:59:59.999999
            return Value(expression=Cast(value.expression, "VARCHAR"), domain=written_out, nullable=value.nullable)
    raise reject(node, f"{show(node)} has too many values to become text.", "Round it first.")


def _digits(step: Fraction) -> int | None:
    """How many decimals a grid needs, if it is one of decimals."""
    return next((places for places in range(19) if (step * 10**places).denominator == 1), None)


def _shown(value: Fraction, digits: int | None) -> str:
    """As the engine writes decimals, all with the digits of their type, and floats, with those they need."""
    return f"{float(value)!r}" if digits is None else f"{Decimal(int(value * 10**digits)).scaleb(-digits):f}"


# --- functions ------------------------------------------------------------------------------------------------------


def function(node: exp.Expression, scope: Any, translate: Callable[[exp.Expression, Any], Value]) -> Value:
    return FUNCTIONS[type(node)](node, lambda part: _textual(translate(part, scope), part))


def _textual(value: Value, node: exp.Expression) -> Value:
    if isinstance(value.domain, Coded | Text | Missing):
        return value
    if isinstance(value.domain, Opaque):
        raise reject(node, "an identifier cannot be computed with.", "It can be counted: COUNT(DISTINCT ...).")
    return as_text(value, node, written=node)


Read = Callable[[exp.Expression], Value]


def _mapped(
    value: Value, label: Callable[[str], str | None], found: Expression, *, letters: int | None = None
) -> Value:
    """A text function: on a category value by value, on text by the engine.

    `letters` bounds the result's length; where it is not given the text grows no longer.
    """
    match value.domain:
        case Coded(values=values):
            return relabelled(value, [label(str(each)) for each in values])
        case Missing():
            return value
    kept = letters_of(value) if letters is None else letters
    return Value(expression=found, domain=Text(letters=kept), nullable=value.nullable)


def _characters(text: str, change: Callable[[str], str]) -> str:
    """Letter by letter, always one for one, as the engine does: where Python gives two, as for ß, the one there is."""
    return "".join(new if len(new := change(old)) == 1 else _ONE_FOR_ONE.get(old, _titled(old)) for old in text)


_ONE_FOR_ONE = {"ß": "ẞ", "İ": "i"}


def _titled(letter: str) -> str:
    """Greek letters with a subscript become the capitals of titles."""
    return letter.title() if len(letter.title()) == 1 else letter


def _lower(node: exp.Expression, read: Read) -> Value:
    value = read(node.this)
    return _mapped(value, lambda text: _characters(text, str.lower), call("lower", value.expression))


def _upper(node: exp.Expression, read: Read) -> Value:
    value = read(node.this)
    return _mapped(value, lambda text: _characters(text, str.upper), call("upper", value.expression))


def _trim(node: exp.Expression, read: Read) -> Value:
    if node.expression is not None:
        raise reject(node, "TRIM is answered for spaces only.", "Write TRIM(x).")
    value, position = read(node.this), node.args.get("position") or "BOTH"
    strip = {"BOTH": str.strip, "LEADING": str.lstrip, "TRAILING": str.rstrip}[position]
    name = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[position]
    return _mapped(value, lambda text: strip(text, " "), call(name, value.expression))


def _whole_constant(node: exp.Expression, read: Read) -> int:
    """A number of letters, or a place among them: no text is longer than MAX_LENGTH, so beyond it all mean the same."""
    inner = node.this if isinstance(node, exp.Neg) else node
    if isinstance(inner, exp.Literal) and not inner.is_string and inner.this.isdigit():
        if len(inner.this) >= 10:
            raise reject(
                node, f"{show(node)} is too large: texts are at most {MAX_LENGTH} letters long.", "Write less."
            )
        most = min(int(inner.this), MAX_LENGTH + 1)
        return -most if isinstance(node, exp.Neg) else most
    raise reject(node, "this place needs a whole number written out.", "Write SUBSTR(x, 1, 3), or LPAD(x, 5, '0').")


def _substring(node: exp.Expression, read: Read) -> Value:
    value, start = read(node.this), _whole_constant(node.args["start"], read)
    length = None if node.args.get("length") is None else _whole_constant(node.args["length"], read)
    if length is not None and length < 0:
        raise reject(node, "SUBSTR with a negative length is not answered.", "Write SUBSTR(x, 1, 3).")
    found = call("substr", value.expression, start, *(() if length is None else (length,)))
    kept = letters_of(value) if length is None else min(length, letters_of(value))
    return _mapped(value, lambda text: _cut(text, start, length), found, letters=kept)


def _cut(text: str, start: int, length: int | None) -> str:
    """Positions count from 1; negative ones from the end; a length counts from the position asked for."""
    begin = start - 1 if start > 0 else (len(text) + start if start < 0 else -1)
    end = len(text) if length is None else begin + length
    return text[max(begin, 0) : max(end, 0)]


def _left(node: exp.Expression, read: Read) -> Value:
    value, length = read(node.this), _whole_constant(node.expression, read)
    kept = min(length, letters_of(value)) if length >= 0 else letters_of(value)
    return _mapped(value, lambda text: text[:length], call("left", value.expression, length), letters=kept)


def _right(node: exp.Expression, read: Read) -> Value:
    value, length = read(node.this), _whole_constant(node.expression, read)
    if length < 0:
        raise reject(node, "RIGHT with a negative length is not answered.", "Write RIGHT(x, 3).")
    kept = min(length, letters_of(value))
    found = call("right", value.expression, length)
    return _mapped(value, lambda text: text[max(len(text) - length, 0) :], found, letters=kept)


def _length(node: exp.Expression, read: Read) -> Value:
    value = read(node.this)
    match value.domain:
        case Coded(values=values):
            sizes = [len(str(each)) for each in values]
            return Value(
                expression=recoded(value.expression, sizes),
                domain=Number(step=Fraction(1), lo=min(sizes), hi=max(sizes)),
                nullable=value.nullable,
            )
        case Missing():
            return value
    domain = Number(step=Fraction(1), lo=0, hi=MAX_LENGTH)
    return Value(
        expression=_counted(value.expression, call("length", value.expression)),
        domain=domain,
        nullable=value.nullable,
    )


def _counted(text: Expression, number: Expression) -> Expression:
    """A number of letters of a text, up to the most; LEAST skips NULLs, so NULL has to be kept by hand."""
    return case((text.is_known, call("least", number, MAX_LENGTH)))


def _concatenate(node: exp.Expression, read: Read) -> Value:
    """|| and CONCAT; the latter takes NULL for nothing."""
    skip_null = isinstance(node, exp.Concat)
    parts = [read(part) for part in (node.expressions if skip_null else (node.this, node.expression))]
    parts = [part for part in parts if not (skip_null and isinstance(part.domain, Missing))]
    if any(isinstance(part.domain, Missing) for part in parts):
        return Value(expression=NULL, domain=Missing(), nullable=True)
    if not parts:
        return Value(expression=Constant(0), domain=Coded(values=("",)), constant=True)
    parts = [_empty_for_null(part) for part in parts] if skip_null else parts
    result = parts[0]
    for part in parts[1:]:
        result = _pair(result, part, skip_null)
    return result


def _empty_for_null(value: Value) -> Value:
    """The text, or an empty one where it is NULL, which it may be whether or not that is meant."""
    if value.constant:
        return value
    if isinstance(value.domain, Coded):
        labels = (*map(str, value.domain.values), "")
        found = call("coalesce", value.expression, value.domain.size)
        return relabelled(replace(value, expression=found, nullable=False), labels)
    return replace(value, expression=call("coalesce", value.expression, ""), nullable=False)


def _pair(left: Value, right: Value, skip_null: bool) -> Value:
    nullable = left.nullable or right.nullable
    if isinstance(left.domain, Coded) and isinstance(right.domain, Coded):
        a, b = left.domain.values, right.domain.values
        if len(a) * len(b) <= MAX_CODES:
            _check_letters(len(a) * len(b) * (letters_of(left) + letters_of(right)))
            labels = [f"{x}{y}"[:MAX_LENGTH] for x in a for y in b]
            codes = Value(
                expression=Cast(left.expression, "BIGINT") * len(b) + right.expression,
                domain=Coded(values=tuple(labels)),
                nullable=nullable,
            )
            return relabelled(codes, labels)
    joined = call("concat" if skip_null else "||", decoded(left), decoded(right))
    letters = min(letters_of(left) + letters_of(right), MAX_LENGTH)
    # Privacy: a text that doubles in every subquery would use up the memory, for those people alone who have one.
    kept = call("left", joined, MAX_LENGTH)
    return Value(expression=kept, domain=Text(letters=letters), nullable=nullable)


def _starts_with(node: exp.Expression, read: Read) -> Value:
    value, prefix = read(node.this), read(node.expression)
    if not prefix.constant or not isinstance(prefix.domain, Coded):
        raise reject(node, "the prefix must be a constant.", "Write STARTS_WITH(name, 'Ka').")
    text = str(prefix.domain.values[0])
    if isinstance(value.domain, Coded):
        return among(value, [code for code, each in enumerate(value.domain.values) if str(each).startswith(text)])
    return Value(expression=call("starts_with", value.expression, text), domain=Flag(), nullable=value.nullable)


def _ends_with(node: exp.Expression, read: Read) -> Value:
    value, text = read(node.this), _text_constant(node.expression, read, node)
    if isinstance(value.domain, Coded):
        return among(value, [code for code, each in enumerate(value.domain.values) if str(each).endswith(text)])
    return _flag_of(call("ends_with", value.expression, text), value)


def _contains(node: exp.Expression, read: Read) -> Value:
    value, text = read(node.this), _text_constant(node.expression, read, node)
    if isinstance(value.domain, Coded):
        return among(value, [code for code, each in enumerate(value.domain.values) if text in str(each)])
    return _flag_of(call("contains", value.expression, text), value)


def _flag_of(condition: Expression, value: Value) -> Value:
    if isinstance(value.domain, Missing):
        return Value(expression=NO_FLAG, domain=Flag(), nullable=True)
    return Value(expression=condition, domain=Flag(), nullable=value.nullable)


def _text_constant(node: exp.Expression | None, read: Read, owner: exp.Expression, *, most: int = 1_000) -> str:
    value = read(node) if node is not None else None
    if value is None or not value.constant or not isinstance(value.domain, Coded):
        raise reject(owner, f"{show(owner)} needs a text written out.", "Write CONTAINS(name, 'Ka').")
    text = str(value.domain.values[0])
    if len(text) > most:
        raise reject(owner, f"{show(owner)} has a text of over {most} letters.", "Write a shorter one.")
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
    return _mapped(value, lambda text: text.replace(old, new)[:MAX_LENGTH], found, letters=min(longest, MAX_LENGTH))


def _split_part(node: exp.Expression, read: Read) -> Value:
    value, part = read(node.this), _whole_constant(node.args["part_index"], read)
    delimiter = _text_constant(node.args["delimiter"], read, node)
    if part < 1 or not delimiter:
        raise reject(node, f"{show(node)} is not answered.", "Write SPLIT_PART(name, ' ', 1).")
    found = call("split_part", value.expression, delimiter, part)
    return _mapped(value, lambda text: "".join(text.split(delimiter)[part - 1 : part]), found)


def _position(node: exp.Expression, read: Read) -> Value:
    """Where a text begins in another, counted from 1; 0 if it does not."""
    value, text = read(node.this), _text_constant(node.args["substr"], read, node)
    if not text:
        raise reject(node, "an empty text is found everywhere.", "Look for something.")
    if isinstance(value.domain, Coded):
        places = [str(each).find(text) + 1 for each in value.domain.values]
        domain = Number(step=Fraction(1), lo=min(places), hi=max(places))
        found = recoded(value.expression, places)
        return Value(expression=found, domain=domain, nullable=value.nullable, constant=value.constant)
    if isinstance(value.domain, Missing):
        return value
    return Value(
        expression=_counted(value.expression, call("strpos", value.expression, text)),
        domain=Number(step=Fraction(1), lo=0, hi=MAX_LENGTH),
        nullable=value.nullable,
    )


def _pad(node: exp.Expression, read: Read) -> Value:
    """LPAD and RPAD: also cut off what is too long."""
    value, length = read(node.this), _whole_constant(node.expression, read)
    given = node.args.get("fill_pattern")
    fill = _text_constant(given, read, node) if given is not None else " "
    if length > 1_000:
        raise reject(node, f"{show(node)} makes texts of over 1,000 letters.", "Write LPAD(code, 5, '0').")
    if length < 0 or not fill:
        raise reject(node, f"{show(node)} is not answered.", "Write LPAD(code, 5, '0').")
    left = bool(node.args.get("is_left"))

    def padded(text: str) -> str:
        more = (fill * (length // len(fill) + 1))[: max(0, length - len(text))]
        return more + text[:length] if left else text[:length] + more

    found = call("lpad" if left else "rpad", value.expression, length, fill)
    return _mapped(value, padded, found, letters=length)


def _joined(node: exp.Expression, read: Read) -> Value:
    """CONCAT_WS: the texts that are not NULL, with a separator between them."""
    separator, parts = _text_constant(node.expressions[0], read, node), [read(each) for each in node.expressions[1:]]
    parts = [part for part in parts if not isinstance(part.domain, Missing)]
    if not parts:
        return Value(expression=Constant(0), domain=Coded(values=("",)), constant=True)
    values = [(*map(str, part.domain.values), None) if isinstance(part.domain, Coded) else None for part in parts]
    if None in values or math.prod(len(each or ()) for each in values) > MAX_CODES:
        joined = call("left", call("concat_ws", separator, *map(decoded, parts)), MAX_LENGTH)
        letters = sum(map(letters_of, parts)) + len(separator) * (len(parts) - 1)
        return Value(expression=joined, domain=Text(letters=min(letters, MAX_LENGTH)))
    _check_letters(math.prod(len(each or ()) for each in values) * sum(map(letters_of, parts)))
    labels = [
        separator.join(text for text in row if text is not None)[:MAX_LENGTH]
        for row in itertools.product(*(each for each in values if each is not None))
    ]
    code: Expression = Constant(0)
    for part, each in zip(parts, values, strict=True):
        size = len(each or ())
        code = code * size + call("coalesce", Cast(part.expression, "BIGINT"), size - 1)
    return relabelled(Value(expression=code, domain=Coded(values=tuple(range(len(labels))))), labels)


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
    exp.ConcatWs: _joined,
}
