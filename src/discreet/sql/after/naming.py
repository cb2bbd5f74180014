"""Names of the noisy tables and their columns in the SQL that runs after noise. Only this module
writes and reads them.

No table of a policy can have such a name. The names are part of the text that runs after noise, and
so of a question's identity (`sql.plan.identity`): do not change them, or every stored answer is to
another question.
"""

from __future__ import annotations

from discreet.policy.declaration import HIDDEN

# the table of one row with the half-widths that are the same for every row
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
    """Return the name of the column of half-widths of one of the block's `derived` expressions."""
    return f"{_COMPUTED}{number}"


def constant_name(number: int) -> str:
    """Return the name of the column of `HALF_WIDTHS` for one of the plan's `combined` forms."""
    return f"{_CONSTANT}{number}"


def key_number(name: str) -> int | None:
    """Return the number of the key in a column of a noisy table; None if the column is no key."""
    return _number(name, _KEY)


def aggregate_number(name: str) -> int | None:
    """Return the number of the aggregate in a column of a noisy table; None if it is none."""
    return _number(name, _AGGREGATE)


def _number(name: str, kind: str) -> int | None:
    if name[:1] == kind and name[1:].isdecimal():
        return int(name[1:])
    return None
