"""Name the noisy tables and their columns for the SQL that runs after noise. Nobody else writes or
reads such a name.

A policy can have no table of these names. The columns' names stand in the text of what runs after
noise, and so in what a question is known by (`sql.plan.identity`): another name would be another
question.
"""

from __future__ import annotations

from discreet.policy.declaration import HIDDEN

# the table, of one row, of half-widths that are the same in every row
HALF_WIDTHS = f"{HIDDEN}half_widths"
_KEY, _AGGREGATE, _MARGIN, _COMPUTED, _CONSTANT = "kamdc"


def table_name(block: int) -> str:
    """Return the name of a block's noisy table."""
    return f"{HIDDEN}{block}"


def key_name(number: int) -> str:
    """Return the name of the column of a block's key."""
    return f"{_KEY}{number}"


def aggregate_name(number: int) -> str:
    """Return the name of the column of a block's aggregate."""
    return f"{_AGGREGATE}{number}"


def margin_name(number: int) -> str:
    """Return the name of the column that holds the half-widths of an aggregate."""
    return f"{_MARGIN}{number}"


def expression_margin_name(number: int) -> str:
    """Return the name of the column that holds the half-widths of one of the block's `derived`
    expressions.
    """
    return f"{_COMPUTED}{number}"


def constant_name(number: int) -> str:
    """Return the name, in `HALF_WIDTHS`, of the half-width of one of the plan's `combined`
    forms.
    """
    return f"{_CONSTANT}{number}"


def key_number(name: str) -> int | None:
    """Return the number of the key that a column of a noisy table is; None where it is none."""
    return _number(name, _KEY)


def aggregate_number(name: str) -> int | None:
    """Return the number of the aggregate that a column of a noisy table is; None where it is
    none.
    """
    return _number(name, _AGGREGATE)


def _number(name: str, kind: str) -> int | None:
    return int(name[1:]) if name[:1] == kind and name[1:].isdecimal() else None
