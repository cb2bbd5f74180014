"""Parse a question: one SELECT, of bounded size and depth, with the place of each node in the text.

Nothing of the analyst's text goes further than this tree: engines run SQL that `discreet` writes
itself.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice, pairwise

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType

from discreet.errors import Rejected
from discreet.sql.text.dialect import WRITER, Dialect, reader
from discreet.sql.text.select_top import without_braces, without_top
from discreet.sql.text.showing import in_words_of_select
from discreet.sql.text.unread import EXAMPLE, MAX_DEPTH, check_joins, check_parameters, check_text

MAX_NODES = 5_000  # a question of 64 KB of IN-list is refused before it is analyzed
# values of categories that the functions in one statement are computed of: a second or two
MAX_LABELS = 1_000_000
# of one expression, each counted as often as it is written; nested ones repeat their parts
MOST_NODES = 20_000
MAX_TABLES = 50  # the engine's planning grows faster than their number


_HINTS = {
    "EXPLAIN": "Leave the word out, and use discreet explain.",
    "VALUES": "Write SELECT * FROM (VALUES ...) AS t(a, b).",
    "SUMMARIZE": "Ask for what you need: SELECT COUNT(*), AVG(x), QUANTILE_CONT(x, [0.25, 0.5, 0.75]) FROM t.",
    "DESCRIBE": "Write DESCRIBE and a table; of a question, ask it with LIMIT 0.",
    "SHOW": "Write SHOW TABLES, or DESCRIBE and a table.",
}

# names that are quoted, or need not be, and texts
_NO_WORDS = (TokenType.IDENTIFIER, TokenType.VAR, TokenType.STRING)

# The parser logs what it cannot read; a question is the analyst's, and goes to no log.
logging.getLogger("sqlglot").addHandler(logging.NullHandler())
logging.getLogger("sqlglot").propagate = False


# What other databases write that this parser cannot read, and what to write instead.
_UNREADABLE = tuple(
    (re.compile(pattern, re.IGNORECASE), hint)
    for pattern, hint in (
        (r"\s*SELECT\s+(DISTINCT\s+)?TOP\b", "Write LIMIT at the end instead of TOP."),
        (
            r".*\b(FROM|JOIN)\s+\[",
            "Write names as they are, or in double quotes, not between [ and ].",
        ),
        (r".*\bXOR\b", "Write a <> b instead of a XOR b."),
        (r".*\bDECODE\s*\(", "Write CASE x WHEN 'a' THEN 'b' ELSE 'c' END instead of DECODE."),
    )
)


def parse(
    text: str,
    *,
    limit: int,
    dialect: Dialect = "duckdb",
    tables: Collection[str] = (),
    columns: Collection[str] = (),
) -> exp.Query:
    """Return the tree of one SELECT statement, or `Rejected`; SHOW and DESCRIBE of `tables` are
    SELECTs, too. A word of SQL that is the name of one of `columns` must be quoted.
    """
    check_text(text, limit)
    tree = _inside_brackets(_statement(text, dialect, columns))
    meant = in_words_of_select(tree, tables)
    if meant is not None:
        text, tree = meant, _statement(meant, "duckdb")
    if isinstance(tree, exp.Condition | exp.Alias):  # hello, or 1 + 1
        raise Rejected(
            f"{_shorten(' '.join(text.split()))} is not a question in SQL.", hint=EXAMPLE
        )
    if not isinstance(tree, exp.Select | exp.SetOperation):
        name = _statement_name(tree)
        if isinstance(tree, exp.Pivot):
            raise Rejected("PIVOT is not a question.", hint=_unpivot(tree))
        raise Rejected(
            f"{name} is not a question.",
            hint=_HINTS.get(name, "Only SELECT statements are answered."),
        )
    _check_size(tree)
    _remember_places(tree, text)
    _check_selects(tree)
    _check_clauses(tree)
    _check_windows(tree)
    for call in reversed(
        [call for call in tree.find_all(exp.Anonymous) if call.name.upper() in _MARKED]
    ):
        _arrange(call)
    return tree


def _unpivot(tree: exp.Pivot) -> str:
    """Say what to write instead of PIVOT t ON x USING COUNT(*) GROUP BY y: the same numbers, one in
    a row.
    """
    group = tree.args.get("group")
    keys = [*(group.expressions if group is not None else []), *tree.expressions]
    if not isinstance(tree.this, exp.Table) or not all(
        isinstance(each, exp.Column) for each in keys
    ):
        return "Write one column each: COUNT(*) FILTER (WHERE sex = 'F') AS f."
    listed = ", ".join(key.sql(dialect="duckdb") for key in keys)
    numbers = (
        ", ".join(each.sql(dialect="duckdb") for each in tree.args.get("using") or []) or "COUNT(*)"
    )
    return f"Write SELECT {listed}, {numbers} FROM {quote_if_needed(tree.this.name)} GROUP BY {listed}."


def _statement(text: str, dialect: Dialect, columns: Collection[str] = ()) -> exp.Expression:
    """Return the tree of a text that is one statement, of whatever kind."""
    tokens: list[Token] = []
    try:
        reads = reader(dialect)
        tokens = reads.tokenize(text)
        check_joins(tokens)
        check_parameters(tokens)
        found = reads.parser().parse(_set_aside(without_top(without_braces(tokens))), text)
        trees = [tree for tree in found if tree is not None and not isinstance(tree, exp.Semicolon)]
    except SqlglotError as error:
        where = error.errors[0] if getattr(error, "errors", None) else {}
        line, column = where.get("line") or 1, where.get("col") or 1
        flat = " ".join(text.split())
        known = (hint for pattern, hint in _UNREADABLE if pattern.match(flat))
        named = _column_unquoted(tokens, (line, column), columns)
        hint = named or next(known, "Check the statement near here.")
        raise Rejected(
            "this is not SQL that can be read.", hint=hint, line=line, column=column
        ) from None
    except (RecursionError, ValueError):
        raise Rejected("the statement is nested too deeply to be read.", hint="Split it.") from None
    if not trees:
        raise Rejected("there is no question in this text.", hint=EXAMPLE)
    if len(trees) != 1:
        raise Rejected("one statement at a time.", hint="Remove what follows the first semicolon.")
    return trees[0]


def _column_unquoted(
    tokens: list[Token], place: tuple[int, int], columns: Collection[str]
) -> str | None:
    """Return what to write where the parser stopped at a word of SQL, or behind one, that is also
    the name of a column.
    """
    here = next((at for at, each in enumerate(tokens) if (each.line, each.col) == place), None)
    if here is None:
        return None
    names = {each.lower() for each in columns}
    for each in reversed(tokens[max(0, here - 1) : here + 1]):
        if each.token_type not in _NO_WORDS and each.text.lower() in names:
            return (
                f'{each.text} is a word of SQL here. If the column is meant, write "{each.text}".'
            )
    return None


@contextmanager
def refuse_depth() -> Iterator[None]:
    """Refuse a statement whose trees are deeper than Python recurses: long chains of NOT, || or +
    are.
    """
    try:
        yield
    except RecursionError:
        raise Rejected(
            "the statement is nested too deeply to be analyzed.", hint="Split it."
        ) from None


def _inside_brackets(tree: exp.Expression) -> exp.Expression:
    """Return the statement that stands in brackets, with what stands behind them."""
    while isinstance(tree, exp.Subquery) and is_bare(tree) and not tree.args.get("alias"):
        tree = tree.this
    if (
        isinstance(tree, exp.Subquery)
        and not {name for name, part in tree.args.items() if part} - _BEHIND_BRACKETS
    ):
        inner = exp.Subquery(
            this=tree.this, alias=exp.TableAlias(this=exp.to_identifier("bracketed"))
        )
        behind = {name: tree.args.get(name) for name in ("order", "limit", "offset")}
        tree = exp.Select(expressions=[exp.Star()], from_=exp.From(this=inner), **behind)
    return tree


def place(node: exp.Expression) -> dict[str, int]:
    """Return where a node stands in the text, as keyword arguments for `Rejected`."""
    for candidate in node.walk():
        if "place" in candidate.meta:
            line, column = candidate.meta["place"]
            return {"line": line, "column": column}
    return {"line": 1, "column": 1}


def reject(node: exp.Expression, reason: str, hint: str = "") -> Rejected:
    """Return a refusal of this node, to be raised."""
    return Rejected(reason, hint=hint, **place(node))


def whole(node: exp.Expression | None) -> int | None:
    """Return the whole number that a literal writes out, if it is one of at most twelve digits."""
    text = str(node.this) if isinstance(node, exp.Literal) else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 12 else None


def word(node: exp.Expression) -> str:
    """Return a name that stands by itself, such as DAY; no name otherwise."""
    bare = isinstance(node, exp.Column) and not node.table and not node.this.args.get("quoted")
    return node.name.lower() if bare else ""


def is_bare(node: exp.Subquery) -> bool:
    """Return True if a query in brackets has nothing behind them, such as a LIMIT, but its name."""
    return not any(
        part for name, part in node.args.items() if name not in ("this", "alias")
    ) and not columns_of(node)


def columns_of(node: exp.Expression) -> list[str]:
    """Return the names that stand behind an alias, as in AS t(a, b)."""
    alias = node.args.get("alias")
    return [column.name for column in alias.columns] if isinstance(alias, exp.TableAlias) else []


def check_weight(nodes: int) -> None:
    """Refuse an expression that grew out of all proportion to the question."""
    if nodes > MOST_NODES:
        raise Rejected(
            "this nests expressions too deeply to be computed.",
            hint="Compute parts of it in a subquery.",
        )


_labels: ContextVar[list[int]] = ContextVar("labels")


@contextmanager
def count_labels() -> Iterator[None]:
    """Within it `check_labels` counts: for one statement."""
    token = _labels.set([0])
    try:
        yield
    finally:
        _labels.reset(token)


def check_labels(count: int) -> None:
    """Refuse a statement whose functions of categories would have to be computed of too many
    values.
    """
    made = _labels.get([0])
    made[0] += count
    if made[0] > MAX_LABELS:
        raise Rejected(
            "this computes functions of too many values, one by one.",
            hint="Compute them once, in a subquery.",
        )


def show(node: exp.Expression) -> str:
    """Return the node as SQL, shortened, for messages: functions in the words in which they were
    asked for.
    """
    return _shorten(node.meta["written"]) if "written" in node.meta else spell(node)


def spell(node: exp.Expression) -> str:
    """Return the node as SQL in one spelling, shortened, for names."""
    return _shorten(node.sql(dialect=WRITER, comments=False))


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def quote_if_needed(name: str) -> str:
    """Return a name as it is written in SQL: in quotes where it must be."""
    identifier: str = exp.to_identifier(name).sql(dialect=WRITER)
    return identifier


def quote(name: str) -> str:
    """Return a name between quotes."""
    identifier: str = exp.to_identifier(name, quoted=True).sql(dialect=WRITER)
    return identifier


def _check_selects(tree: exp.Expression) -> None:
    for select in tree.find_all(exp.Select):
        if not select.expressions and not select.args.get("from_"):
            raise reject(select, "SELECT is followed by nothing.", EXAMPLE)
        if select.args.get("locks"):
            raise reject(
                select,
                "FOR UPDATE and the like lock rows to change them, and nothing is.",
                "Leave it out.",
            )


def _check_clauses(tree: exp.Expression) -> None:
    """No clause is ignored: what the parser knows from other dialects, and means nothing here, is
    refused.
    """
    for node in tree.find_all(*_PARTS):
        for name, part in node.args.items():
            if part and name not in _PARTS[type(node)]:
                raise reject(
                    node,
                    f"{show(node)} has a part that is not answered.",
                    "Write it as in standard SQL.",
                )
    for group in tree.find_all(exp.Group):
        if group.args.get("all") is False:
            raise reject(group, "GROUP BY DISTINCT is not answered.", "Write each grouping once.")


def _check_windows(tree: exp.Expression) -> None:
    """Refuse OVER behind brackets: the parser reads it, and no engine does."""
    for window in tree.find_all(exp.Window):
        if isinstance(window.this, exp.Paren):
            raise reject(
                window.this,
                f"OVER stands behind a function, and {show(window.this)} is none.",
                "Leave out the brackets around the function.",
            )


def _check_size(tree: exp.Expression) -> None:
    pending, nodes, tables = [(tree, 0)], 0, 0
    while pending:
        node, depth = pending.pop()
        nodes += 1
        # A chain of ANDs is a deep tree, though nobody nested anything: it counts by its nodes
        # only.
        if depth > MAX_DEPTH * 4 or nodes > MAX_NODES:
            raise Rejected("the statement is too large to be analyzed.", hint="Ask less at once.")
        tables += isinstance(node, exp.Table)
        if tables > MAX_TABLES:
            raise reject(
                node, f"the statement reads more than {MAX_TABLES} tables.", "Ask less at once."
            )
        pending.extend((child, depth + 1) for child in node.iter_expressions())


def _remember_places(tree: exp.Expression, text: str) -> None:
    for node in tree.walk():
        start = node.meta.get("start")
        if start is not None:
            line = text.count("\n", 0, start) + 1
            node.meta["place"] = (line, start - text.rfind("\n", 0, start))
    for node in tree.find_all(exp.Func):
        if not isinstance(node, exp.Connector):
            start = _before(node, text) if isinstance(node, _FORGOTTEN) else node.meta.get("start")
            written = None if start is None else _name_called(text[start : start + 200])
            if written is not None:
                node.meta["written"] = written


# --- calls whose arguments other databases write in another order ---------------------------------

_ASIDE = "#"  # marks the name of a call that the parser is to leave as it is written
_TURNED = ("DATE_DIFF", "DATEDIFF", "DATE_TRUNC", "TIMESTAMPDIFF")
_PARTS: dict[type[exp.Expression], frozenset[str]] = {  # of clauses that other dialects add to
    exp.With: frozenset(("expressions", "recursive")),
    exp.CTE: frozenset(("this", "alias", "materialized")),
    exp.Limit: frozenset(("expression", "limit_options")),
    exp.Offset: frozenset(("expression",)),
}
_BEHIND_BRACKETS = frozenset(("this", "order", "limit", "offset"))
_FORMATS = ("TO_CHAR", "TO_DATE", "TO_TIMESTAMP")  # whose formats `formats` reads
_MARKED = tuple(name + _ASIDE for name in (*_TURNED, *_FORMATS))
# not weeks: elsewhere they begin on Sundays
_UNITS = ("second", "minute", "hour", "day", "month", "quarter", "year")


def _set_aside(tokens: list[Token]) -> list[Token]:
    for token, following in pairwise(tokens):
        if (
            token.text.upper() in (*_TURNED, *_FORMATS)
            and following.token_type is TokenType.L_PAREN
        ):
            token.text += _ASIDE
    return tokens


def _arrange(call: exp.Anonymous) -> None:
    """DATE_DIFF(later, earlier, DAY), DATEDIFF(later, earlier), DATE_TRUNC(day, YEAR), as DuckDB
    writes them.
    """
    name, parts = call.name.removesuffix(_ASIDE).upper(), list(call.expressions)
    call.set("this", name)
    if name in _FORMATS:
        return
    if name == "DATE_TRUNC" and len(parts) == 3 and parts[2].is_string:
        call.replace(_within_zone(parts))
        return
    if len(parts) not in {"DATE_TRUNC": (2,), "TIMESTAMPDIFF": (3,)}.get(name, (2, 3)):
        raise reject(call, f"{show(call)} has too few arguments, or too many.", _ORDERS[name])
    first, last = word(parts[0]), word(parts[-1])
    behind = (
        first not in _UNITS and not parts[0].is_string and (len(parts) == 3 or name == "DATE_TRUNC")
    )
    if name == "TIMESTAMPDIFF":
        if first not in (*_UNITS, "week"):
            raise reject(
                call, f"{show(call)} begins with no unit of time that is answered.", _ORDERS[name]
            )
        call.set("expressions", [exp.Literal.string(first), *parts[1:]])
        return
    if behind and last in ("week", "isoweek"):
        raise reject(
            call, f"{show(call)}: where this is written, weeks begin on other days.", _ORDERS[name]
        )
    if behind and last in _UNITS:
        parts = [exp.Literal.string(last), *reversed(parts[:-1])]
    elif name != "DATE_TRUNC" and len(parts) == 2:
        parts = [exp.Literal.string("day"), *reversed(parts)]
    built = DuckDB.Parser.FUNCTIONS[name](parts)
    built.meta.update(call.meta)
    call.replace(built)


def _within_zone(parts: list[exp.Expression]) -> exp.Expression:
    """DATE_TRUNC('day', seen, 'UTC'): truncated in the zone's time, as a moment again."""
    unit, value, zone = parts
    there = exp.AtTimeZone(this=exp.Paren(this=value), zone=zone)
    return exp.AtTimeZone(this=exp.DateTrunc(this=there, unit=unit), zone=zone.copy())


_ORDERS = {
    "DATE_DIFF": "Write DATE_DIFF('day', earlier, later); 'week' counts how many weeks have passed.",
    "DATEDIFF": "Write DATE_DIFF('day', earlier, later); 'week' counts how many weeks have passed.",
    "DATE_TRUNC": "Write DATE_TRUNC('week', day): the Monday before it.",
    "TIMESTAMPDIFF": "Write TIMESTAMPDIFF(DAY, earlier, later).",
}


_FORGOTTEN = (exp.ArgMax, exp.ArgMin, exp.GroupConcat, exp.Initcap)
_NAME = re.compile(r"[A-Za-z_]\w*\s*\(")


def _before(node: exp.Expression, text: str) -> int | None:
    """Return where a call begins whose place the parser forgot: the name before its first
    argument.
    """
    known = [part.meta["start"] for part in islice(node.walk(), 1, 12) if "start" in part.meta]
    before = text[max(0, min(known) - 60) : min(known)] if known else ""
    calls = [
        match
        for match in _NAME.finditer(before)
        if before[match.end() :].strip().upper() in ("", "DISTINCT")
    ]
    return min(known) - len(before) + calls[-1].start() if calls else None


def _name_called(text: str) -> str | None:
    """Return a call at the beginning of a text, up to its closing bracket, on one line."""
    if not _NAME.match(text):
        return None
    depth, quote = 0, ""
    for index, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        else:
            depth += (character == "(") - (character == ")")
            if character == ")" and depth == 0:
                return " ".join(text[: index + 1].split())
    return " ".join(text.split())


def _statement_name(tree: exp.Expression) -> str:
    return tree.key.upper() if not isinstance(tree, exp.Command) else str(tree.this).upper()
