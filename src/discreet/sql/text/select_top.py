"""Change tokens that the parser cannot read: SELECT TOP 5 a FROM t, as SQL Server has it, and
ODBC's {d '2024-01-01'}.
"""

from __future__ import annotations

from sqlglot.tokens import Token, TokenType

_ODBC = {"D": TokenType.DATE, "TS": TokenType.TIMESTAMP}


def without_braces(tokens: list[Token]) -> list[Token]:
    """{d '2024-01-01'} and {ts '2024-01-01 00:00:00'}, as DATE and TIMESTAMP."""
    found, place = list[Token](), 0
    while place < len(tokens):
        here = tokens[place : place + 4]
        kind = _ODBC.get(here[1].text.upper()) if len(here) == 4 else None
        kinds = [each.token_type for each in here]
        braced = kinds[:1] == [TokenType.L_BRACE] and kinds[2:] == _STRING_IN_BRACE
        if kind is None or not braced:
            found.append(tokens[place])
            place += 1
            continue
        word, text = here[1], here[2]
        found += [Token(kind, kind.name, word.line, word.col, word.start, word.end), text]
        place += 4
    return found


_STRING_IN_BRACE = [TokenType.STRING, TokenType.R_BRACE]


def without_top(tokens: list[Token]) -> list[Token]:
    """SELECT TOP 5 a FROM t, as SELECT a FROM t LIMIT 5."""
    for place, token in enumerate(tokens):
        if token.token_type is not TokenType.SELECT:
            continue
        start = place + 1
        if _type(tokens, start) is TokenType.DISTINCT:
            start += 1
        end = start + 2 if _type(tokens, start + 1) is TokenType.NUMBER else start + 4
        in_brackets = [_type(tokens, start + step) for step in (1, 2, 3)] == _BRACKETS
        if start >= len(tokens) or tokens[start].text.upper() != "TOP":
            continue
        if end == start + 4 and not in_brackets:
            continue
        if end < len(tokens) and tokens[end].text.upper() in ("PERCENT", "WITH", ","):
            continue
        number = tokens[start + 1 if end == start + 2 else start + 2]
        last = _end(tokens, end)
        if last is None:
            continue
        limit = Token(TokenType.LIMIT, "LIMIT", number.line, number.col, number.start, number.end)
        found = [*tokens[:start], *tokens[end:last], limit, number, *tokens[last:]]
        return without_top(found)
    return tokens


_BRACKETS = [TokenType.L_PAREN, TokenType.NUMBER, TokenType.R_PAREN]
_BEHIND = (TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT, TokenType.LIMIT)


def _type(tokens: list[Token], place: int) -> TokenType | None:
    return tokens[place].token_type if place < len(tokens) else None


def _end(tokens: list[Token], start: int) -> int | None:
    """Return where the SELECT ends that goes on at `start`; None where more follows it."""
    depth = 0
    for place in range(start, len(tokens)):
        kind = tokens[place].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if depth < 0 or kind is TokenType.SEMICOLON:
            return place
        if depth == 0 and kind in _BEHIND:
            return None
    return len(tokens)
