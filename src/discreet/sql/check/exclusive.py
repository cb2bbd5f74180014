"""Conditions that exclude each other: no row satisfies both. Read by the proof, and trusted with it.

Each condition leaves some values of every expression that it compares with constants: `x = 1`, `x
IN (1, 2)`, or `x >= 1 AND x < 3`. Where two conditions leave disjoint values of one expression, a
row, in which it has one value or is NULL, satisfies at most one of them. Constants are compared
only within one type, and only where that is right whatever the type of the expression is, because
the tree does not tell it: the engine casts the constant.

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

from discreet.algebra import Call, Careful, Constant, Expression

_ORDERED = (int, date, datetime)
_MOST = 1 << 53
_MEANT = (
    "|t|f|true|false|y|n|yes|no|on|off|nan|inf|infinity|epoch|now|today|tomorrow|yesterday|null|"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What a condition leaves of a value: one of some, from one on or beyond it, up to one or below
    it.
    """

    kind: type
    among: frozenset[Any] | None = None
    low: tuple[Any, bool] | None = None  # with whether the end itself is left out
    high: tuple[Any, bool] | None = None

    def apart(self, other: Left) -> bool:
        """Return True if no value is left by both."""
        if self.kind is not other.kind:
            return False
        if self.among is not None and other.among is not None:
            return not self.among & other.among
        if self.among is not None:
            return self.kind in _ORDERED and not any(other.holds(each) for each in self.among)
        return (
            other.apart(self) if other.among is not None else self.below(other) or other.below(self)
        )

    def holds(self, value: Any) -> bool:
        above = (
            self.low is None or value > self.low[0] or (value == self.low[0] and not self.low[1])
        )
        return above and (
            self.high is None
            or value < self.high[0]
            or (value == self.high[0] and not self.high[1])
        )

    def below(self, other: Left) -> bool:
        if self.high is None or other.low is None:
            return False
        (high, high_open), (low, low_open) = self.high, other.low
        return bool(high < low or (high == low and (high_open or low_open)))


def exclusive(one: Expression, other: Expression) -> bool:
    """Return True if no row satisfies both conditions."""
    ours, theirs = _left(one), _left(other)
    return any(left.apart(theirs[value]) for value, left in ours.items() if value in theirs)


def together(conditions: Iterable[Expression]) -> list[frozenset[Expression]]:
    """All sets of conditions that a row can satisfy at once, as far as they are told apart; the
    empty one first.
    """
    found: list[frozenset[Expression]] = [frozenset()]
    for each in dict.fromkeys(conditions):
        found += [
            known | {each} for known in found if not any(exclusive(each, other) for other in known)
        ]
    return found


def _left(condition: Expression) -> dict[Expression, Left]:
    found: dict[Expression, Left] = {}
    for value, left in (pair for part in _conjuncts(condition) for pair in _comparisons(part)):
        known = found.get(value)
        if known is None or (left.among is not None and known.among is None):
            found[value] = left
        elif known.kind is left.kind and known.among is None and left.among is None:
            # Of two ends on the same side the first is kept: less is ruled out than could be.
            found[value] = replace(known, low=known.low or left.low, high=known.high or left.high)
    return found


def _conjuncts(node: Expression) -> Iterator[Expression]:
    bare = node.value if isinstance(node, Careful) else node
    if isinstance(bare, Call) and bare.name == "AND":
        for each in bare.arguments:
            yield from _conjuncts(each)
    else:
        yield bare


def _comparisons(node: Expression) -> Iterator[tuple[Expression, Left]]:
    """The value that a comparison with constants is about, and what it leaves of it."""
    match node:
        case Call(name="OR", arguments=arguments):
            yield from _any_of(
                [
                    dict(_comparisons(part.value if isinstance(part, Careful) else part))
                    for part in arguments
                ]
            )
        case Call(name="=" | "in", arguments=(value, *constants)):
            plain = [
                each.value
                for each in constants
                if isinstance(each, Constant) and _are_apart(each.value)
            ]
            kinds = {type(each) for each in plain}
            if len(plain) == len(constants) > 0 and len(kinds) == 1 and kinds <= {*_ORDERED, str}:
                yield value, Left(kind=kinds.pop(), among=frozenset(plain))
        case Call(name="<" | "<=" as name, arguments=(value, Constant(value=end))) if _has_order(
            end
        ):
            yield value, Left(kind=type(end), high=(end, name == "<"))
        case Call(name=">" | ">=" as name, arguments=(value, Constant(value=end))) if _has_order(
            end
        ):
            yield value, Left(kind=type(end), low=(end, name == ">"))


def _has_order(constant: Any) -> bool:
    return type(constant) in _ORDERED and _are_apart(constant)


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
    return (
        constant.isascii()
        and constant.isdigit()
        and len(constant) < 16
        and constant == str(int(constant))
    )


def _any_of(parts: list[dict[Expression, Left]]) -> Iterator[tuple[Expression, Left]]:
    """Yield what OR leaves: the constants, if each part compares a value with constants of one
    type.
    """
    for value, first in parts[0].items():
        others = [part[value] for part in parts if value in part]
        listed = [
            left.among for left in others if left.among is not None and left.kind is first.kind
        ]
        if len(listed) == len(parts):
            yield value, replace(first, among=frozenset[Any]().union(*listed))
