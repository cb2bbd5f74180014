"""Answer GROUP BY public keys without an aggregate: the policy's own list of them, exact and
free.
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
    """Return the SELECT over a written-out list of its public keys, in the place of a noisy table.

    Nothing is read: who is there, and whether anybody is, does not matter. Keys that are not public
    are refused.
    """
    public = [key for key in keys if isinstance(key, Key)]
    cells = math.prod(key.size for key in public)
    if not keys or len(public) < len(keys) or cells > MOST_LISTED:
        raise reject(node, LISTS, suggest_count(node))
    rows = itertools.product(*(key.labels().to_pylist() for key in public))
    written = [exp.Tuple(expressions=[_write_out(each) for each in row]) for row in rows]
    names = [exp.to_identifier(key_name(index)) for index in range(len(public))]
    alias = exp.TableAlias(this=exp.to_identifier(table, quoted=True), columns=names)
    tree = released.tree.copy()
    tree.set("from_", exp.From(this=exp.Values(expressions=written, alias=alias)))
    return replace(released, tree=tree, noisy=False)


def suggest_count(node: exp.Select) -> str:
    """Suggest the question with COUNT(*), in the place of GROUP BY without an aggregate."""
    source = node.args["from_"].this
    plain = isinstance(source, exp.Table) and not node.args.get("joins")
    items = [item.unalias() for item in node.expressions]
    if not plain or not items or not all(type(item) is exp.Column for item in items):
        return COUNTED
    shown = ", ".join(quote_if_needed(item.name) for item in items)
    return (
        "Count who has each (those that enough people share): "
        f"SELECT {shown}, COUNT(*) FROM {quote_if_needed(source.name)} GROUP BY {shown}."
    )


def _write_out(value: object) -> exp.Expression:
    """Return a public value as it is written in SQL, with its type."""
    if isinstance(value, datetime):
        return exp.cast(exp.Literal.string(value.isoformat(sep=" ")), "TIMESTAMP")
    if isinstance(value, date):
        return exp.cast(exp.Literal.string(value.isoformat()), "DATE")
    return exp.convert(value)
