"""Answer GROUP BY public keys without an aggregate: return the policy's own list of them, exactly and
for free.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime

from sqlglot import exp

from discreet.sql.after.naming import key_name
from discreet.sql.after.released import OutputTable
from discreet.sql.plan.keys import Key, Unknown
from discreet.sql.text.parse import quote_if_needed, reject

MOST_LISTED = 10_000  # combinations of public keys that are listed free of charge
LISTS = "GROUP BY without an aggregate lists which groups exist."
COUNTED = "Add COUNT(*), which tells how large each group is."


def list_keys(
    node: exp.Select, released: OutputTable, keys: Sequence[Key | Unknown], table: str
) -> OutputTable:
    """Return the SELECT over a table of constants, all its public keys, instead of a noisy table.

    No data is read, so the list is the same whoever is in the data. Keys that are not public are
    refused.
    """
    public = [key for key in keys if isinstance(key, Key)]
    cells = math.prod(key.size for key in public)
    if not keys or len(public) < len(keys) or cells > MOST_LISTED:
        raise reject(node, LISTS, suggest_count(node))
    labels = [key.labels().to_pylist() for key in public]
    rows = []
    for row in itertools.product(*labels):
        values = [_write_out(value) for value in row]
        rows.append(exp.Tuple(expressions=values))
    names = [exp.to_identifier(key_name(index)) for index in range(len(public))]
    alias = exp.TableAlias(this=exp.to_identifier(table, quoted=True), columns=names)
    tree = released.tree.copy()
    tree.set("from_", exp.From(this=exp.Values(expressions=rows, alias=alias)))
    return replace(released, tree=tree, noisy=False)


def suggest_count(node: exp.Select) -> str:
    """Return what to write instead of GROUP BY without an aggregate: the same with COUNT(*)."""
    source = node.args["from_"].this
    plain = isinstance(source, exp.Table) and not node.args.get("joins")
    items = [item.unalias() for item in node.expressions]
    if not plain or not items or not all(type(item) is exp.Column for item in items):
        return COUNTED
    keys = ", ".join(quote_if_needed(item.name) for item in items)
    return (
        "Count who has each (those that enough people share): "
        f"SELECT {keys}, COUNT(*) FROM {quote_if_needed(source.name)} GROUP BY {keys}."
    )


def _write_out(value: object) -> exp.Expression:
    """Return a public value as SQL with its type."""
    if isinstance(value, datetime):
        return exp.cast(exp.Literal.string(value.isoformat(sep=" ")), "TIMESTAMP")
    if isinstance(value, date):
        return exp.cast(exp.Literal.string(value.isoformat()), "DATE")
    return exp.convert(value)
