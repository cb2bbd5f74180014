"""Find the texts in a question that no value of their column can be, because the policy lists its
values: 'West' where only `west` is listed.

This is for a note beside a quote. It reads the question's text and the policy, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from sqlglot import exp

from discreet.policy.document import nearest
from discreet.policy.domain import Categories
from discreet.policy.policy import Policy
from discreet.sql.text.dialect import Dialect
from discreet.sql.text.parse import parse, show

_MOST_NOTES = 3
_MOST_VALUES = 1_000  # of a column for which a value that may be meant is looked for


def unlisted(
    sql: str, policy: Policy, public: Mapping[str, pa.Table], *, dialect: Dialect
) -> tuple[str, ...]:
    """Return a sentence for each text that is compared with a column and is not among its values;
    at most three. The question can be answered, so it can be read.
    """
    tree = parse(sql, limit=policy.limits.statement, dialect=dialect, tables=policy.tables)
    read = {each.name.lower() for each in tree.find_all(exp.Table)}
    known: dict[str, set[str]] = {name: set() for name in _computed(tree)}
    notes: dict[tuple[str, str], str] = {}
    for column, text in _compared(tree):
        name = column.name.lower()
        if name not in known:
            known[name] = _values(name, read, policy, public)
        if known[name] and text.name not in known[name] and (name, text.name) not in notes:
            meant = _meant(text.name, known[name])
            notes[name, text.name] = f"No listed value of {column.name} is {show(text)}.{meant}"
        if len(notes) == _MOST_NOTES:
            break
    return tuple(notes.values())


def _computed(tree: exp.Query) -> set[str]:
    """Return the names that the question gives to something else than a column of that name."""
    aliases = {
        each.alias.lower()
        for each in tree.find_all(exp.Alias)
        if not isinstance(each.this, exp.Column) or each.this.name.lower() != each.alias.lower()
    }
    listed = {
        column.name.lower() for each in tree.find_all(exp.TableAlias) for column in each.columns
    }
    return aliases | listed


def _compared(tree: exp.Query) -> Iterator[tuple[exp.Column, exp.Literal]]:
    """Yield each column that is compared for equality with a text, and the text."""
    for node in tree.find_all(exp.EQ, exp.NEQ, exp.In):
        others = node.expressions if isinstance(node, exp.In) else [node.expression]
        for left, right in ((node.this, other) for other in others):
            column, text = (left, right) if isinstance(left, exp.Column) else (right, left)
            if isinstance(column, exp.Column) and isinstance(text, exp.Literal) and text.is_string:
                yield column, text


def _values(name: str, read: set[str], policy: Policy, public: Mapping[str, pa.Table]) -> set[str]:
    """Return the values that a column of this name can have in the tables that are read; none if
    the policy does not list them all.
    """
    found: set[str] = set()
    for table in policy.tables.values():
        if table.name.lower() not in read:
            continue
        if table.public and name in {each.lower() for each in public[table.name].column_names}:
            return set()
        for column in table.columns.values():
            if column.name.lower() == name:
                values = column.domain.values if isinstance(column.domain, Categories) else ()
                texts = {value for value in values if isinstance(value, str)}
                if not texts:
                    return set()
                found |= texts
    return found


def _meant(text: str, values: set[str]) -> str:
    """Return a question about the value that may be meant, if one is written alike."""
    told = nearest(text, values) if len(values) <= _MOST_VALUES else ""
    return f" {told}" if told.startswith("Did you mean") else ""
