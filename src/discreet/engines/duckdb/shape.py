"""The shape of a query. If two queries have one shape, an engine can bind either both or none, so
trying one of them is enough.

A shape keeps of whole numbers that are compared with a column only their order and their length. An
engine takes a comparison's types from the column and from the length of the number, and may see
from the order that `x < 3 AND x > 5` holds for no row. Every other constant is part of the shape.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from discreet.algebra import Call, Column, Constant, Numbers
from discreet.engines.spelling import Spelling

_COMPARISONS = frozenset(("=", "<>", "<", "<=", ">", ">="))
_LENGTHS = (2**7, 2**8, 2**15, 2**16, 2**31)  # below which a number fits a shorter type


@dataclass(frozen=True, slots=True)
class _ShapeSpelling(Spelling):
    compared: list[int] = field(default_factory=list)

    def call(self, node: Call) -> str:
        match node:
            case Call(
                name=sign, arguments=(Column() as column, Constant(value=int(value), kind=kind))
            ):
                if sign in _COMPARISONS and kind is int and 0 <= value < _LENGTHS[-1]:
                    self.compared.append(value)
                    return f"({self.expression(column)} {sign} ?{_length(value)})"
        return Spelling.call(self, node)


def _length(value: int) -> int:
    return next(place for place, end in enumerate(_LENGTHS) if value < end)


def shape(query: Numbers) -> tuple[str, tuple[int, ...]]:
    """Return a key that is equal for two queries if one binds wherever the other does."""
    spelling = _ShapeSpelling()
    text = spelling.numbers(query)
    order = {value: place for place, value in enumerate(sorted(set(spelling.compared)))}
    return text, tuple(order[value] for value in spelling.compared)
