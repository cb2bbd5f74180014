"""Decide whether two conditions exclude each other, so that no row satisfies both. The analysis and
the proof both trust this module.

A condition such as `x = 1`, `x IN (1, 2)` or `x >= 1 AND x < 3` allows only some values of the
expression x. In a row, x has one value or is NULL. So if two conditions allow disjoint sets of
values of one expression, no row satisfies both.

A condition is itself an expression: it is true in the rows that satisfy it, and false in those that
satisfy its opposite. So `p` and `NOT p` exclude each other, whatever p is. So do `x IS NULL` and
each condition that is true only of an x that is not NULL. `x <> 1` and `NOT x IN (1, 2)` allow all
values except those listed.

The tree does not tell the type of x, and the engine casts the constant to that type. So constants
are compared only if they differ in every type that x may have:

    whole numbers   below 2^53, which also differ as floats
    texts           for equality alone: words that no type reads as a number, date or flag, and
                    numbers in their plain spelling ('1' and '01' are the same number, 'T' and
                    'true' the same flag)
    dates           with dates, and timestamps with timestamps
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from discreet.algebra.rows import Call, Constant, Expression
from discreet.algebra.trees import bare, conjuncts

_ORDERED = (int, date, datetime)
_NULL = type(None)
_MOST = 1 << 53
# words that an engine may read as a flag, a number or a date
_SPECIAL = (
    "|t|f|true|false|y|n|yes|no|on|off|nan|inf|infinity|epoch|now|today|tomorrow|yesterday|null|"
)
# a place in the order of values: just below a value (-1), at it (0), or just above it (1)
Cut = tuple[Any, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The values of an expression that a condition allows: those that it lists (`among`), all
    except some (`but`), or all between two cuts. NULL has the kind `NoneType`.
    """

    kind: type
    among: frozenset[Any] | None = None
    but: frozenset[Any] | None = None  # all values except these
    low: Cut | None = None
    high: Cut | None = None

    def is_disjoint(self, other: Values) -> bool:
        """Return True if no value is in both."""
        if self.kind is not other.kind:
            # NULL differs from all that a comparison with a constant allows. Constants of two types
            # may be equal once the engine has cast them.
            return _NULL in (self.kind, other.kind)
        if self.is_left_out_by(other) or other.is_left_out_by(self):
            return True
        if self.among is not None and other.among is not None:
            return not self.among & other.among
        if self.among is not None:
            return self.kind in _ORDERED and not any(other.holds(value) for value in self.among)
        if other.among is not None:
            return other.is_disjoint(self)
        return self.ends_before(other) or other.ends_before(self)

    def is_left_out_by(self, other: Values) -> bool:
        """Return True if the other excludes every value that this one lists."""
        return self.among is not None and other.but is not None and self.among <= other.but

    def holds(self, value: Any) -> bool:
        """Return True if a value lies between the cuts."""
        at = (value, 0)
        if self.low is not None and at < self.low:
            return False
        return self.high is None or at <= self.high

    def ends_before(self, other: Values) -> bool:
        return self.high is not None and other.low is not None and self.high < other.low


class _AsCondition:
    """The kind of an expression that is used as a condition.

    It differs from the kind of a comparison with TRUE: the number 2 holds as a condition, but is
    not equal to TRUE.
    """


_TRUE = Values(kind=_AsCondition, among=frozenset([True]))
_FALSE = Values(kind=_AsCondition, among=frozenset([False]))


def exclusive(one: Expression, other: Expression) -> bool:
    """Return True if no row satisfies both conditions."""
    ours = _values_allowed(one)
    theirs = _values_allowed(other)
    in_both = ours.keys() & theirs.keys()
    return any(ours[value].is_disjoint(theirs[value]) for value in in_both)


def satisfiable(conditions: Iterable[Expression]) -> list[frozenset[Expression]]:
    """Return all sets of conditions that a row may satisfy at once, the empty set first.

    Sets that can never be true may be among them; none that can be true is missing.
    """
    sets: list[frozenset[Expression]] = [frozenset()]
    for condition in dict.fromkeys(conditions):
        compatible = [each for each in sets if not _excludes_any(condition, each)]
        sets += [each | {condition} for each in compatible]
    return sets


def _excludes_any(condition: Expression, others: Iterable[Expression]) -> bool:
    return any(exclusive(condition, other) for other in others)


def _values_allowed(condition: Expression) -> dict[Expression, Values]:
    """Return the values that a condition allows of each expression that it compares with constants,
    and of itself.
    """
    allowed: dict[Expression, Values] = {bare(condition): _TRUE}
    for part in conjuncts([condition]):
        for value, values in _comparisons(part):
            known = allowed.get(value)
            allowed[value] = values if known is None else _narrow(known, values)
    return allowed


def _narrow(one: Values, other: Values) -> Values:
    """Return values that hold all that both allow, and maybe more."""
    if one.among is None and other.among is not None:
        return other
    if one.among is None and one.kind is other.kind:
        # If both have an end on the same side, keep the first one's.
        return replace(one, low=one.low or other.low, high=one.high or other.high)
    return one


def _comparisons(node: Expression) -> Iterator[tuple[Expression, Values]]:
    """Yield each expression that a condition compares with constants, with the values that the
    condition allows of it; first the condition itself, which is true.
    """
    yield node, _TRUE
    match node:
        case Call(name="NOT", arguments=(part,)):
            yield from _opposite(bare(part))
        case Call(name="<>", arguments=(value, constant)):
            yield from _opposite(Call("=", (value, constant)))
        case Call(name="is null", arguments=(value,)):
            yield value, Values(kind=_NULL, among=frozenset([None]))
        case Call(name="is not null", arguments=(value,)):
            yield value.is_null, _FALSE
        case Call(name="is true" | "is false" as name, arguments=(value,)):
            yield bare(value), _TRUE if name == "is true" else _FALSE
        case Call(name="OR", arguments=arguments):
            yield from _any_of([dict(_comparisons(bare(part))) for part in arguments])
        case Call(name="=" | "in", arguments=(value, *constants)):
            values = _among(constants)
            if values is not None:
                yield value, values
        case Call(name="<" | "<=" | ">" | ">=" as sign, arguments=(value, Constant(value=end))):
            if type(end) in _ORDERED and _is_plain(end):
                yield value, _on_side(sign, end)


def _among(constants: Sequence[Expression]) -> Values | None:
    """Return the values in a list of plain constants of one type; None for any other list."""
    values = [each.value for each in constants if isinstance(each, Constant)]
    if len(values) < len(constants) or not all(map(_is_plain, values)):
        return None
    kinds = {type(value) for value in values}
    if len(kinds) != 1 or not kinds <= {*_ORDERED, str, bool}:
        return None
    return Values(kind=kinds.pop(), among=frozenset(values))


def _opposite(node: Expression) -> Iterator[tuple[Expression, Values]]:
    """Yield what is allowed in the rows where a condition is false: there neither the condition nor
    what it compares is NULL.
    """
    yield node, _FALSE
    match node:
        case Call(name="=" | "in", arguments=(compared, *_)):
            for value, values in _comparisons(node):
                if value == compared and values.among is not None:
                    yield value, Values(kind=values.kind, but=values.among)


def _on_side(sign: str, end: Any) -> Values:
    """Return the values below or above an end."""
    match sign:
        case "<":
            return Values(kind=type(end), high=(end, -1))
        case "<=":
            return Values(kind=type(end), high=(end, 0))
        case ">":
            return Values(kind=type(end), low=(end, 1))
    return Values(kind=type(end), low=(end, 0))


def _is_plain(constant: Any) -> bool:
    """Return True if a constant differs from all other plain ones, to whatever type the engine
    casts them.
    """
    if type(constant) is int:
        return abs(constant) < _MOST
    if type(constant) is not str:
        return True
    if constant[:1].isascii() and constant[:1].isalpha():
        return f"|{constant.strip().lower()}|" not in _SPECIAL
    digits = constant.isascii() and constant.isdigit() and len(constant) < 16
    return digits and constant == str(int(constant))


def _any_of(parts: list[dict[Expression, Values]]) -> Iterator[tuple[Expression, Values]]:
    """Yield what OR allows of each expression that all its parts compare with constants of one
    type: the constants of all parts.
    """
    for value, first in parts[0].items():
        constants: frozenset[Any] = frozenset()
        for part in parts:
            values = part.get(value)
            if values is None or values.among is None or values.kind is not first.kind:
                break
            constants |= values.among
        else:
            yield value, replace(first, among=constants)
