"""Categories: values from a public list, held as codes; a function of one is computed here, value
by value.
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

MAX_CODES = 10_000  # values that a computed category may have; beyond, it is text like any other


MAX_LENGTH = MOST_LETTERS  # LENGTH of a text is counted up to here, and || cuts off the rest


_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)\s*")


def all_numeric(values: Iterable[str | int]) -> bool:
    return all(isinstance(value, int) or _NUMBER.fullmatch(value) for value in values)


def numeric_codes(value: Value, values: Sequence[str | int], node: exp.Expression) -> Value:
    """Return a category whose values are written as numbers, as that number; any other value
    becomes NULL.
    """
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
        expression=map_codes(value.expression, units),
        domain=domain,
        nullable=value.nullable or None in units,
        constant=value.constant and len(values) == 1,
    )


def map_codes(code: Expression, targets: Sequence[int | None]) -> Expression:
    """Return the expression that maps code i to targets[i]."""
    return code if list(targets) == list(range(len(targets))) else _look_up(code, targets)


def _look_up(code: Expression, listed: Sequence[Operand]) -> Expression:
    """Return the entry at a code, from 0; the expression stands there once, however many codes
    there are.

    Branches of a CASE would each repeat it, and the engine unfolds what is nested: seconds for
    three functions.
    """
    return call("list_extract", call("list", *listed), Cast(code, "BIGINT") + 1)


def relabel(value: Value, labels: Sequence[str | int | None], *, nullable: bool = False) -> Value:
    """Return the category with each value replaced by a label; None is NULL, equal labels become
    one value.
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
    """Refuse a statement whose computed categories would take much memory: twenty letters count as
    one value.
    """
    check_labels(letters // 20)


def decode(value: Value) -> Expression:
    """Return a category or text as text."""
    if isinstance(value.domain, Category):
        texts = [str(each) for each in value.domain.values]
        return Constant(texts[0]) if value.constant else _look_up(value.expression, texts)
    return value.expression


def letters_of(value: Value) -> int:
    """Return how many letters a category or text has at most."""
    if isinstance(value.domain, Category):
        return max((len(str(each)) for each in value.domain.values), default=0)
    return value.domain.letters if isinstance(value.domain, Text) else MAX_LENGTH


def unify(values: Sequence[Value], node: exp.Expression) -> list[Value]:
    """Categories on the union of their values; with a text among them, all as text."""
    if any(isinstance(value.domain, Text) for value in values):
        return [
            value
            if isinstance(value.domain, Missing)
            else Value(
                expression=decode(value),
                domain=Text(letters=letters_of(value)),
                nullable=value.nullable,
            )
            for value in values
        ]
    domains = [value.domain.values for value in values if isinstance(value.domain, Category)]
    mixed = len({type(each) for each in itertools.chain(*domains)}) > 1
    union = tuple(dict.fromkeys(str(each) if mixed else each for each in itertools.chain(*domains)))
    position = {each: code for code, each in enumerate(union)}
    result = []
    for value in values:
        if isinstance(value.domain, Category):
            targets = [position[str(each) if mixed else each] for each in value.domain.values]
            found = Constant(targets[0]) if value.constant else map_codes(value.expression, targets)
            value = Value(expression=found, domain=Category(values=union), nullable=value.nullable)
        result.append(value)
    return result


def rank_by_text(value: Value) -> Value:
    """Return a category as the rank of its value in byte order, so that codes compare as the texts
    do.
    """
    assert isinstance(value.domain, Category)
    order = sorted(value.domain.values, key=_sort_key)
    return Value(
        expression=map_codes(value.expression, [order.index(each) for each in value.domain.values]),
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
    """Return a category against a constant: which codes satisfy it is known without data."""
    if left.constant and not right.constant:
        left, right, operator = right, left, _MIRROR[operator]
    assert isinstance(left.domain, Category)
    assert isinstance(right.domain, Category)
    other: str | int | Fraction = right.domain.values[0]
    whole = all(isinstance(each, int) for each in (*left.domain.values, *right.domain.values))
    if (
        not whole
        and all_numeric(right.domain.values)
        and all(isinstance(each, int) for each in left.domain.values)
    ):
        other, whole = Fraction(str(other).strip()), True
    keys = [each if whole else str(each).encode() for each in left.domain.values]
    target = other if whole else str(other).encode()
    return among(left, [code for code, key in enumerate(keys) if _COMPARE[operator](key, target)])


def among(value: Value, codes: Sequence[int]) -> Value:
    """TRUE where the category has one of the codes, NULL where it is NULL."""
    found = call("in", value.expression, *codes) if codes else value.expression < 0
    return Value(expression=found, domain=Flag(), nullable=value.nullable)
