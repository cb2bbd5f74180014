"""Show that two conditions exclude each other, so that no row satisfies both. The proof reads this,
and trusts it.

Each condition leaves some values of every expression that it compares with constants: `x = 1`, `x
IN (1, 2)`, or `x >= 1 AND x < 3`. Where two conditions leave disjoint values of one expression, a
row, in which it has one value or is NULL, satisfies at most one of them. Constants are compared
only within one type, and only where that is right whatever the type of the expression is, because
the tree does not tell it: the engine casts the constant.

A condition is itself an expression that is true where it holds, and false where its opposite does:
`p` and `NOT p` exclude each other, whatever p is, and so do `x IS NULL` and what is true only of an
x that is known. `x <> 1` and `NOT x IN (1, 2)` leave all values but those.

    whole numbers   below 2^53, which floats tell apart as well
    texts           for equality alone; words that are no number, date or flag in any spelling, and
                    numbers written in one way: '1' and '01' are one number, 'T' and 'true' one flag
    dates           and timestamps, each among themselves
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from discreet.algebra import Call, Constant, Expression, bare, conjuncts

_ORDERED = (int, date, datetime)
_NULL = type(None)
_MOST = 1 << 53
_MEANT = (
    "|t|f|true|false|y|n|yes|no|on|off|nan|inf|infinity|epoch|now|today|tomorrow|yesterday|null|"
)
Cut = tuple[
    Any, int
]  # a place in the order of values: just below one (-1), at it (0), above it (1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The values of an expression that a condition leaves: some that it lists, all but some, or all
    between two cuts. `NoneType` is the kind of NULL.
    """

    kind: type
    among: frozenset[Any] | None = None
    but: frozenset[Any] | None = None  # all values but these
    low: Cut | None = None
    high: Cut | None = None

    def is_disjoint(self, other: Values) -> bool:
        """Return True if no value is left by both."""
        if self.kind is not other.kind:
            # a value is NULL or known, and what compares it with a constant leaves known ones
            return _NULL in (self.kind, other.kind)
        if self.is_ruled_out_by(other) or other.is_ruled_out_by(self):
            return True
        if self.among is not None and other.among is not None:
            return not self.among & other.among
        if self.among is not None:
            return self.kind in _ORDERED and not any(other.holds(value) for value in self.among)
        if other.among is not None:
            return other.is_disjoint(self)
        return self.ends_before(other) or other.ends_before(self)

    def is_ruled_out_by(self, other: Values) -> bool:
        """Return True if all that it lists are among those that the other leaves out."""
        return self.among is not None and other.but is not None and self.among <= other.but

    def holds(self, value: Any) -> bool:
        """Return True if a value lies between the cuts."""
        at = (value, 0)
        return (self.low is None or self.low <= at) and (self.high is None or at <= self.high)

    def ends_before(self, other: Values) -> bool:
        return self.high is not None and other.low is not None and self.high < other.low


class _Held:
    """The kind of an expression that is itself a condition. It is not that of a comparison with
    TRUE: 2 holds as a condition, and is not TRUE.
    """


_TRUE = Values(kind=_Held, among=frozenset([True]))
_FALSE = Values(kind=_Held, among=frozenset([False]))


def exclusive(one: Expression, other: Expression) -> bool:
    """Return True if no row satisfies both conditions."""
    ours, theirs = _values_left(one), _values_left(other)
    return any(ours[value].is_disjoint(theirs[value]) for value in ours.keys() & theirs.keys())


def satisfiable(conditions: Iterable[Expression]) -> list[frozenset[Expression]]:
    """Return all sets of conditions that a row can satisfy at once, as far as they are told apart;
    the empty one first.
    """
    sets: list[frozenset[Expression]] = [frozenset()]
    for condition in dict.fromkeys(conditions):
        fitting = [
            known for known in sets if not any(exclusive(condition, other) for other in known)
        ]
        sets += [known | {condition} for known in fitting]
    return sets


def _values_left(condition: Expression) -> dict[Expression, Values]:
    left: dict[Expression, Values] = {bare(condition): _TRUE}
    for part in conjuncts([condition]):
        for value, values in _comparisons(part):
            left[value] = _narrow(left[value], values) if value in left else values
    return left


def _narrow(one: Values, other: Values) -> Values:
    """Return values among which are all that both leave: less is ruled out than could be."""
    if one.among is None and other.among is not None:
        return other
    if one.among is None and one.kind is other.kind:  # of two ends on one side, the first
        return replace(one, low=one.low or other.low, high=one.high or other.high)
    return one


def _comparisons(node: Expression) -> Iterator[tuple[Expression, Values]]:
    """Yield the value that a comparison with constants is about, and what it leaves of it; first the
    condition itself, which is true.
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
            listed = [each.value for each in constants if isinstance(each, Constant)]
            plain = len(listed) == len(constants) > 0 and all(map(_are_apart, listed))
            kinds = {type(each) for each in listed}
            if plain and len(kinds) == 1 and kinds <= {*_ORDERED, str, bool}:
                yield value, Values(kind=kinds.pop(), among=frozenset(listed))
        case Call(name="<" | "<=" | ">" | ">=" as sign, arguments=(value, Constant(value=end))):
            if type(end) in _ORDERED and _are_apart(end):
                yield value, _beyond(end, sign)


def _opposite(node: Expression) -> Iterator[tuple[Expression, Values]]:
    """Yield what is left where a condition is false: it is known then, and so is what it compares."""
    yield node, _FALSE
    match node:
        case Call(name="=" | "in", arguments=(compared, *_)):
            for value, values in _comparisons(node):
                if value == compared and values.among is not None:
                    yield value, Values(kind=values.kind, but=values.among)


def _beyond(end: Any, sign: str) -> Values:
    match sign:
        case "<":
            return Values(kind=type(end), high=(end, -1))
        case "<=":
            return Values(kind=type(end), high=(end, 0))
        case ">":
            return Values(kind=type(end), low=(end, 1))
    return Values(kind=type(end), low=(end, 0))


def _are_apart(constant: Any) -> bool:
    """Return True if it differs from all others that pass here, in whatever type the engine casts
    to.
    """
    if type(constant) is int:
        return abs(constant) < _MOST
    if type(constant) is not str:
        return True
    if constant[:1].isascii() and constant[:1].isalpha():
        return f"|{constant.strip().lower()}|" not in _MEANT
    digits = constant.isascii() and constant.isdigit() and len(constant) < 16
    return digits and constant == str(int(constant))


def _any_of(parts: list[dict[Expression, Values]]) -> Iterator[tuple[Expression, Values]]:
    """Yield what OR leaves: the constants, if each part compares a value with constants of one
    type.
    """
    for value, first in parts[0].items():
        listed: frozenset[Any] = frozenset()
        for part in parts:
            values = part.get(value)
            if values is None or values.among is None or values.kind is not first.kind:
                break
            listed |= values.among
        else:
            yield value, replace(first, among=listed)
