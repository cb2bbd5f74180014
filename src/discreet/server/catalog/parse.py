"""A client's statement as a syntax tree: bounded in size and depth, and whether it is the catalog's
to answer.
"""

from __future__ import annotations

import logging
import re

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType

from discreet.server.catalog.failure import CatalogError
from discreet.server.catalog.functions import AS_TABLES, EXPRESSIONS, FUNCTIONS
from discreet.server.catalog.tables.builtin import (
    INFORMATION_SCHEMA,
    PG_CATALOG,
    Relation,
    relations,
)

MOST_TOKENS = 10_000
MOST_DEPTH = 150  # of nested brackets, and of nodes
MOST_BYTES = 200_000
# before the name of each function of ours: sqlglot then leaves its arguments as they are written
CALL = "f__"

_OWN = frozenset(
    {
        *FUNCTIONS,
        *EXPRESSIONS,
        *AS_TABLES,
        "generate_subscripts",
        "pg_get_indexdef",
        "obj_description",
    }
)
_KEPT = frozenset({"substring", "trim", "position"})  # their arguments have a grammar of their own
# Types of which sqlglot reads an array only by its other name: _oid is oid[].
_ARRAYS_OF = frozenset(("oid", "name", "regclass", "regtype", "regproc", "regnamespace", "regrole"))
_OPEN = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE}
_CLOSE = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END}
_PREFIX = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}

# A table that has no system's name stands in FROM, and no WITH before it could give it: spare the
# parser.
_QUESTION = re.compile(
    r"\A\s*select\b(?!.*\bwith\b).*\b(from|join)\s+(?!lateral\b)[\w\".]++(?!\s*\()",
    re.IGNORECASE | re.DOTALL,
)

logging.getLogger("sqlglot").addHandler(logging.NullHandler())
logging.getLogger("sqlglot").propagate = False


def parse(statement: str, *, database: str) -> exp.Query | None:
    """Return the tree of a statement that the catalog answers; None if another one has to.

    The catalog answers SELECT, VALUES and TABLE that name no relation but its own, and those that
    name none at all.
    """
    if len(statement) > MOST_BYTES:
        raise CatalogError(
            "54000", "The statement is too long.", hint=f"Send at most {MOST_BYTES:,} letters."
        )
    mentions = any(word in statement.lower() for word in ("pg_", INFORMATION_SCHEMA))
    if not mentions and _QUESTION.search(statement):
        return None
    try:
        tokens = Postgres().tokenize(statement)
        _check(tokens)
        trees = Postgres().parser().parse(_mark(tokens), statement)
    except (SqlglotError, RecursionError, ValueError):
        if mentions:
            raise CatalogError("42601", "This is not SQL that can be read.") from None
        return None
    found = [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]
    if len(found) != 1:
        return None
    tree = found[0]
    if isinstance(tree, exp.Values):
        tree = exp.Select(expressions=[exp.Star()], from_=exp.From(this=tree))
    if not isinstance(tree, exp.Query):
        return None
    return tree if _ours(tree, database) else None


def _check(tokens: list[Token]) -> None:
    """Refuse what would nest too deeply for the parser."""
    depth = prefixes = 0
    for token in tokens:
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        prefixes = prefixes + 1 if token.token_type in _PREFIX else 0
        if depth > MOST_DEPTH or prefixes > MOST_DEPTH:
            raise CatalogError("54001", "The statement is nested too deeply.", hint="Split it.")
    if len(tokens) > MOST_TOKENS:
        raise CatalogError("54000", "The statement has too many words.", hint="Split it.")


def _mark(tokens: list[Token]) -> list[Token]:
    """Return the tokens, with every function of ours renamed, and arrays of names and numbers made
    readable.
    """
    marked: list[Token] = []
    brackets = 0  # of an array's type, which is named by one word now
    for place, token in enumerate(tokens):
        if brackets:
            brackets -= 1
            continue
        after = [each.token_type for each in tokens[place + 1 : place + 3]]
        name = token.text.lower()
        kind, text = token.token_type, token.text
        quoted = kind in (TokenType.STRING, TokenType.IDENTIFIER, TokenType.NUMBER)
        if name.startswith(CALL):
            raise CatalogError("42883", f"names do not begin with {CALL} here")
        if after[:1] == [TokenType.L_PAREN] and name in _OWN - _KEPT and not quoted:
            kind = TokenType.VAR
            text = CALL + name
        elif (
            after == [TokenType.L_BRACKET, TokenType.R_BRACKET]
            and name in _ARRAYS_OF
            and not quoted
        ):
            kind = TokenType.VAR
            text = f"_{name}"
            brackets = 2
        marked.append(
            Token(kind, text, token.line, token.col, token.start, token.end, token.comments)
        )
    return marked


def relation_of(table: exp.Table, database: str) -> Relation | None:
    """Return the system's relation that a table of the tree names; None if it is not the
    system's.
    """
    name = _fold(table.args.get("this"))
    schema = _fold(table.args.get("db"))
    catalog = _fold(table.args.get("catalog"))
    if catalog and catalog != database:
        return None
    found = relations().get((schema or PG_CATALOG, name))
    if found is None and schema in (PG_CATALOG, INFORMATION_SCHEMA):
        raise CatalogError("42P01", f'relation "{schema}.{name}" does not exist')
    return found if not schema or schema in (PG_CATALOG, INFORMATION_SCHEMA) else None


def _fold(name: exp.Expression | None) -> str:
    if not isinstance(name, exp.Identifier):
        return ""
    return str(name.this) if name.args.get("quoted") else str(name.this).lower()


def _ours(tree: exp.Query, database: str) -> bool:
    local = {_fold(cte.args["alias"].this) for cte in tree.find_all(exp.CTE)}
    named = [table for table in tree.find_all(exp.Table) if isinstance(table.this, exp.Identifier)]
    outside = [table for table in named if table.args.get("db") or _fold(table.this) not in local]
    found = [relation_of(table, database) for table in outside]
    if any(found) and not all(found):
        raise CatalogError(
            "0A000",
            "One statement cannot ask both the catalog and tables of the policy.",
            hint="Ask them one after the other.",
        )
    if not all(found):
        return False
    depth = max(node.depth for node in tree.walk())
    if depth > MOST_DEPTH * 2:
        raise CatalogError("54001", "The statement is nested too deeply.", hint="Split it.")
    return True
