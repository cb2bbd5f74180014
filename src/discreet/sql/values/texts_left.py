"""Find the texts that a condition leaves: x IN ('a', 'b') leaves two, which the question itself
lists.

They are public, whatever the column holds; so they can be groups, and values of a CASE.
"""

from __future__ import annotations

from collections.abc import Sequence

from discreet.algebra import Call, Careful, Cast, Constant, Expression, call
from discreet.sql.values.value import Category, Text, Value, careful

MOST_TEXTS = 1_000  # of a list in the question that are groups


def texts_left(condition: Expression, value: Expression) -> tuple[str, ...]:
    """Return the texts that x = 'a' and x IN ('a', 'b') leave of x; none where it says something
    else.
    """
    bare = condition.value if isinstance(condition, Careful) else condition
    parts = bare.arguments if isinstance(bare, Call) and bare.name == "OR" else None
    found = [_text_of(part, value) for part in parts or (condition,)]
    return () if None in found else tuple(dict.fromkeys(str(text) for text in found))


def _text_of(node: Expression, value: Expression) -> str | None:
    bare = node.value if isinstance(node, Careful) else node
    match bare:
        case Call(name="=", arguments=(left, Constant(value=str(text)))) if left == value:
            return text
    return None


def place_of_text(value: Expression, texts: Sequence[str]) -> Expression:
    """Return the place of a text among those listed; NULL for others."""
    written = call("list", *(Cast(Constant(each), "VARCHAR") for each in texts))
    return careful(call("list_position", written, value) - 1)


def narrow_text(value: Value, condition: Expression) -> Value:
    """Return a text where a condition holds that lists its values: a category of these."""
    if not isinstance(value.domain, Text):
        return value
    texts = texts_left(condition, value.expression)
    if not texts or len(texts) > MOST_TEXTS:
        return value
    place = place_of_text(value.expression, texts)
    return Value(expression=place, domain=Category(values=texts), nullable=False)
