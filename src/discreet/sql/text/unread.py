"""Refuse texts before the parser reads them: too long, too deep, or of a form on which it is
slow.
"""

from __future__ import annotations

from itertools import pairwise

from sqlglot.tokens import Token, TokenType

from discreet.errors import NO_TEXT, Rejected

MAX_DEPTH = 100  # nested brackets and nodes; a person writes fewer than twenty
MAX_OPEN_JOINS = 8  # JOINs in a row without a condition: the parser tries every way to nest them


EXAMPLE = "Write one, for example SELECT COUNT(*) FROM a_table."


def check_text(text: str, limit: int) -> None:
    if not text.strip():
        raise Rejected("there is no question in this text.", hint=EXAMPLE)
    if len(text.encode("utf-8", "surrogatepass")) > limit:
        raise Rejected(
            f"the statement is longer than the {limit} bytes that the policy allows.",
            hint="Ask less at once.",
        )
    # Control characters would speak to the terminal of whoever reads the ledger; others turn a
    # line's reading around.
    if NO_TEXT.search(text.replace("\r\n", "\n")):
        raise Rejected("the statement holds characters that are not text.", hint="Remove them.")
    _check_brackets(text)


def _check_brackets(text: str) -> None:
    """Refuse deep nesting before the parser recurses into it (brackets inside strings count too:
    harmless).
    """
    if sum(map(text.count, "([{")) <= MAX_DEPTH:
        return
    depth = deepest = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise Rejected(f"the statement is nested more than {MAX_DEPTH} deep.", hint="Split it.")


def check_joins(tokens: list[Token]) -> None:
    """Refuse JOIN JOIN JOIN ... without conditions, on which the parser's time doubles with
    each.
    """
    pending, previous = 0, None
    for token in tokens:
        if token.token_type is TokenType.JOIN and previous not in (
            TokenType.CROSS,
            TokenType.NATURAL,
        ):
            pending += 1
        elif token.token_type in (TokenType.ON, TokenType.USING):
            pending = max(0, pending - 1)
        previous = token.token_type
        if pending > MAX_OPEN_JOINS:
            raise Rejected(
                "many JOINs have no condition.",
                hint="Write JOIN t ON a.owner = t.owner after each.",
            )


def check_parameters(tokens: list[Token]) -> None:
    """Refuse @day, a parameter elsewhere: DuckDB would read ABS(day)."""
    for sign, name in pairwise(tokens):
        if sign.text == "@" and name.text.isidentifier() and name.start == sign.end + 1:
            raise Rejected(
                f"@{name.text} has no value here: parameters are not answered.",
                hint=f"Write the value out (and ABS({name.text}) for what is without its sign).",
                line=sign.line,
                column=sign.col,
            )
