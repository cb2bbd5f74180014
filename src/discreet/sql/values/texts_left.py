"""Find the texts that a condition leaves: x IN ('a', 'b') leaves 'a' and 'b'.

The question itself lists them, so they are public whatever the column holds. They can be groups and
values of a CASE.
"""

from __future__ import annotations

from collections.abc import Sequence

from discreet.algebra import Call, Careful, Cast, Constant, Expression, call
from discreet.sql.values.value import Category, Text, Value, careful

MOST_TEXTS = 1_000  # a longer list in the question makes no groups


def texts_left(condition: Expression, value: Expression) -> tuple[str, ...]:
    """Return the texts that x = 'a' or x IN ('a', 'b') leaves of x; none for other conditions."""
    bare = condition.value if isinstance(condition, Careful) else condition
    parts: tuple[Expression, ...] = (condition,)
    if isinstance(bare, Call) and bare.name == "OR":
        parts = bare.arguments
    texts = [_text_of(part, value) for part in parts]
    if None in texts:
        return ()
    return tuple(dict.fromkeys(str(text) for text in texts))


def _text_of(node: Expression, value: Expression) -> str | None:
    bare = node.value if isinstance(node, Careful) else node
    match bare:
        case Call(name="=", arguments=(left, Constant(value=str(text)))) if left == value:
            return text
    return None


def place_of_text(value: Expression, texts: Sequence[str]) -> Expression:
    """Return the place of a text in a list of texts, from 0; NULL if it is not there."""
    constants = [Cast(Constant(text), "VARCHAR") for text in texts]
    place = call("list_position", call("list", *constants), value)
    return careful(place - 1)


def narrow_text(value: Value, condition: Expression) -> Value:
    """Return a text as a category of the values that a condition leaves of it; a text if it leaves
    none or too many.
    """
    if not isinstance(value.domain, Text):
        return value
    texts = texts_left(condition, value.expression)
    if not texts or len(texts) > MOST_TEXTS:
        return value
    place = place_of_text(value.expression, texts)
    return Value(expression=place, domain=Category(values=texts), nullable=False)
