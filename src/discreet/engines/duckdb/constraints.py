"""Read the keys and CHECK constraints that a DuckDB file declares, from its catalog and never from
rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.engines.readers.reader import Declarations

_CONSTRAINTS = """
SELECT constraint_type, constraint_column_names, expression, referenced_table, referenced_column_names
FROM duckdb_constraints() WHERE database_name = ? AND schema_name = 'main' AND table_name = ?
"""


def read_declarations(
    connection: Any, database: str, table: str, types: Mapping[str, str]
) -> Declarations:
    """Return types, primary key, foreign keys of one column and conditions of a table."""
    primary: tuple[str, ...] = ()
    foreign: dict[str, tuple[str, str]] = {}
    checks: list[str] = []
    constraints = connection.execute(_CONSTRAINTS, [database, table]).fetchall()
    for kind, ours, condition, other, theirs in constraints:
        if kind == "PRIMARY KEY":
            primary = tuple(ours)
        elif kind == "FOREIGN KEY" and len(ours) == 1:
            foreign[ours[0]] = (other, theirs[0])
        elif kind == "CHECK":
            checks.append(condition)
    return Declarations(types=dict(types), primary=primary, foreign=foreign, checks=tuple(checks))
