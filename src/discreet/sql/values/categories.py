"""Categories: values from a public list, which the engine holds as codes.

A function of a category is computed here for each value of the list, without data.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from sqlglot import exp

from discreet.algebra import Cast, Constant, Expression, Operand, call
from discreet.policy.domain import MOST_LETTERS
from discreet.sql.text.parse import check_labels, reject, show
from discreet.sql.values import numbers
from discreet.sql.values.value import (
    Category,
    Flag,
    Missing,
    Number,
    Text,
    Value,
)

MAX_CODES = 10_000  # a computed category with more values becomes a text


MAX_LENGTH = MOST_LETTERS  # LENGTH counts up to this number, and || cuts off longer texts


_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)\s*")


def all_numeric(values: Iterable[str | int]) -> bool:
    return all(isinstance(value, int) or _NUMBER.fullmatch(value) for value in values)


def numeric_codes(value: Value, values: Sequence[str | int], node: exp.Expression) -> Value:
    """Return a category as a number: values that are not written as numbers become NULL."""
    readings = [_as_fraction(label) for label in values]
    amounts = [amount for amount in readings if amount is not None]
    if not amounts:
        raise reject(node, f"{show(node)} is not a number.", "Only numbers can be computed with.")
    step = numbers.common_step(*amounts, Fraction(1)) if any(amounts) else Fraction(1)
    numbers.check_step(step, node)
    units = [None if amount is None else int(amount / step) for amount in readings]
    whole = [unit for unit in units if unit is not None]
    domain = Number(step=step, lo=min(whole), hi=max(whole))
    numbers.check_size(domain.lo, domain.hi, node)
    return Value(
        expression=map_codes(value.expression, units),
        domain=domain,
        nullable=value.nullable or None in units,
        constant=value.constant and len(values) == 1,
    )


def _as_fraction(label: str | int) -> Fraction | None:
    """Return the number that a label is written as, or None."""
    return Fraction(str(label).strip()) if all_numeric([label]) else None


def map_codes(code: Expression, targets: Sequence[int | None]) -> Expression:
    """Return the expression that maps code i to targets[i]."""
    unchanged = list(targets) == list(range(len(targets)))
    return code if unchanged else _look_up(code, targets)


def _look_up(code: Expression, entries: Sequence[Operand]) -> Expression:
    """Return the entry at a code; codes count from 0.

    The SQL has `code` once, however many entries there are. In a CASE each branch would repeat it,
    and the engine unfolds nested ones: three functions would take seconds.
    """
    return call("list_extract", call("list", *entries), Cast(code, "BIGINT") + 1)


def relabel(value: Value, labels: Sequence[str | int | None], *, nullable: bool = False) -> Value:
    """Return the category with a label in place of each value.

    None stands for NULL; equal labels become one value.
    """
    check_labels(len(labels))
    check_letters(sum(len(str(label)) for label in labels))
    distinct = tuple(dict.fromkeys(label for label in labels if label is not None))
    position = {label: index for index, label in enumerate(distinct)}
    targets = [None if label is None else position[label] for label in labels]
    constant = value.constant and len(labels) == 1 and labels[0] is not None
    return Value(
        expression=map_codes(value.expression, targets),
        domain=Category(values=distinct),
        nullable=value.nullable or nullable or None in targets,
        constant=constant,
    )


def check_letters(letters: int) -> None:
    """Refuse a statement whose computed categories need too much memory; twenty letters count as
    one value.
    """
    check_labels(letters // 20)


def decode(value: Value) -> Expression:
    """Return a category or text as text."""
    if isinstance(value.domain, Category):
        texts = [str(label) for label in value.domain.values]
        return Constant(texts[0]) if value.constant else _look_up(value.expression, texts)
    return value.expression


def letters_of(value: Value) -> int:
    """Return the largest number of letters that a category or text can have."""
    if isinstance(value.domain, Category):
        return max((len(str(label)) for label in value.domain.values), default=0)
    return value.domain.letters if isinstance(value.domain, Text) else MAX_LENGTH


def unify(values: Sequence[Value], node: exp.Expression) -> list[Value]:
    """Return categories as codes of the union of their values; if one of them is a text, all as
    texts.
    """
    if any(isinstance(value.domain, Text) for value in values):
        return [_without_codes(value) for value in values]
    domains = [value.domain.values for value in values if isinstance(value.domain, Category)]
    labels = list(itertools.chain(*domains))
    both_kinds = len({type(label) for label in labels}) > 1
    union = tuple(dict.fromkeys(str(label) if both_kinds else label for label in labels))
    position = {label: code for code, label in enumerate(union)}
    result = []
    for value in values:
        if isinstance(value.domain, Category):
            own = (str(label) if both_kinds else label for label in value.domain.values)
            targets = [position[label] for label in own]
            code = Constant(targets[0]) if value.constant else map_codes(value.expression, targets)
            value = Value(expression=code, domain=Category(values=union), nullable=value.nullable)
        result.append(value)
    return result


def _without_codes(value: Value) -> Value:
    """Return a category or text as text, and the literal NULL as it is."""
    if isinstance(value.domain, Missing):
        return value
    return Value(
        expression=decode(value),
        domain=Text(letters=letters_of(value)),
        nullable=value.nullable,
    )


def rank_by_text(value: Value) -> Value:
    """Return a category with ranks in byte order as codes, so that codes compare as the texts do."""
    assert isinstance(value.domain, Category)
    order = sorted(value.domain.values, key=_sort_key)
    ranks = [order.index(label) for label in value.domain.values]
    return Value(
        expression=map_codes(value.expression, ranks),
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
    """Return the comparison of a category with a constant: a list of the codes that satisfy it."""
    if left.constant and not right.constant:
        left, right, operator = right, left, _MIRROR[operator]
    assert isinstance(left.domain, Category)
    assert isinstance(right.domain, Category)
    other: str | int | Fraction = right.domain.values[0]
    labels = left.domain.values
    as_numbers = all(isinstance(label, int) for label in (*labels, *right.domain.values))
    integers = all(isinstance(label, int) for label in labels)
    if not as_numbers and all_numeric(right.domain.values) and integers:
        other = Fraction(str(other).strip())
        as_numbers = True
    compare = _COMPARE[operator]
    keys = [label if as_numbers else str(label).encode() for label in labels]
    target = other if as_numbers else str(other).encode()
    return among(left, [code for code, key in enumerate(keys) if compare(key, target)])


def among(value: Value, codes: Sequence[int]) -> Value:
    """Return TRUE where the category has one of the codes, NULL where it is NULL, else FALSE."""
    # no code is negative, so this is FALSE or NULL
    condition = call("in", value.expression, *codes) if codes else value.expression < 0
    return Value(expression=condition, domain=Flag(), nullable=value.nullable)
