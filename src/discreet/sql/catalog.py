"""Answer information_schema, SHOW and DESCRIBE: list the policy's tables and columns, exactly and for
free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from discreet.policy.dictionary import Listing, dictionary
from discreet.policy.policy import Policy
from discreet.sql.after.released import OutputTable
from discreet.sql.after.tables import constants
from discreet.sql.text.parse import reject

SCHEMA = "information_schema"
Row = dict[str, str | int | None]


def listing(node: exp.Table, policy: Policy, public: Mapping[str, pa.Table]) -> OutputTable:
    """Return information_schema.tables or information_schema.columns as a table of constants."""
    make_rows = _RELATIONS.get(node.name.lower())
    database = policy.path.stem
    if make_rows is None or node.text("catalog").lower() not in ("", database.lower()):
        names = " and ".join(f"{SCHEMA}.{name}" for name in _RELATIONS)
        raise reject(node, f"there is no table {SCHEMA}.{node.name}.", f"There are {names}.")
    schemas = {name: table.schema for name, table in public.items()}
    rows = make_rows(dictionary(policy, schemas), database)
    tuples = []
    for row in rows:
        values = [exp.convert(value) for value in row.values()]
        tuples.append(exp.Tuple(expressions=values))
    return constants(exp.Values(expressions=tuples)).rename(list(rows[0]))


def _tables(tables: Sequence[Listing], database: str) -> list[Row]:
    return [
        {
            "table_catalog": database,
            "table_schema": "public",
            "table_name": table.name,
            "table_type": "BASE TABLE",
            "table_comment": table.comment,
        }
        for table in tables
    ]


def _columns(tables: Sequence[Listing], database: str) -> list[Row]:
    return [
        {
            "table_catalog": database,
            "table_schema": "public",
            "table_name": table.name,
            "column_name": column.name,
            "ordinal_position": place,
            "is_nullable": "NO" if column.name == table.primary_key else "YES",
            "data_type": column.type,
            "column_key": column.key,
            "column_comment": column.contains,
        }
        for table in tables
        for place, column in enumerate(table.columns, start=1)
    ]


_RELATIONS: dict[str, Callable[[Sequence[Listing], str], list[Row]]] = {
    "tables": _tables,
    "columns": _columns,
}
