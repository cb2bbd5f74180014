"""Tables that are read after noise as they are: public ones, constants, and a noisy one
that is only listed.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from sqlglot import exp

from discreet.sql.after.rebuild import rebuild
from discreet.sql.after.released import Output, OutputTable
from discreet.sql.text.parse import reject, show
from discreet.sql.text.postgres import Kind, common_kind, kind_of


def plain_columns(tree: exp.Query, table: str) -> tuple[str, ...] | None:
    """Return the columns that a statement lists from a table and does nothing else with; None for
    other statements.
    """
    used = {name for name, part in tree.args.items() if part}
    source = tree.args["from_"].this if used == {"expressions", "from_"} else None
    if not isinstance(source, exp.Table) or source.name != table:
        return None
    columns = [item.unalias() for item in tree.expressions]
    return (
        tuple(column.name for column in columns)
        if all(type(each) is exp.Column for each in columns)
        else None
    )


def public_table(name: str, table: pa.Table) -> OutputTable:
    """Return a public table: exact, and free."""
    items = [exp.column(column, quoted=True) for column in table.column_names]
    outputs = tuple(
        Output(name=column, margin=None, estimate=None, kind=public_column_kind(values))
        for column, values in zip(table.column_names, table.columns, strict=True)
    )
    return OutputTable(
        tree=exp.select(*items).from_(exp.to_table(name, dialect="duckdb")),
        outputs=outputs,
        noisy=False,
        stored=name,
    )


def public_column_kind(column: pa.ChunkedArray) -> Kind:
    """Return the type of a public column in Postgres: of whole numbers the narrower one that holds
    them.
    """
    if pa.types.is_integer(column.type):
        import pyarrow.compute as pc

        known = pc.max(pc.abs_checked(column.cast(pa.decimal128(38, 0)))).as_py()
        return "integer" if known is None or known < 2**31 else "bigint"
    kinds: tuple[tuple[Callable[[pa.DataType], bool], Kind], ...] = (
        (pa.types.is_boolean, "boolean"),
        (pa.types.is_date, "date"),
    )
    return next((kind for is_kind, kind in kinds if is_kind(column.type)), "other")


def constants(node: exp.Values) -> OutputTable:
    """Return VALUES (1, 'a'), (2, 'b') as a table: the question writes it out, so it is public."""
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    width = len(rows[0]) if rows else 0
    if not width or any(len(row) != width for row in rows):
        raise reject(
            node, "the rows of VALUES differ in length.", "Write as many values in every row."
        )
    for value in (value for row in rows for value in row):
        inner = value.this if isinstance(value, exp.Neg | exp.Cast) else value
        if not isinstance(inner, exp.Literal | exp.Null | exp.Boolean):
            raise reject(
                value, f"{show(value)} is not a constant.", "Write out every value in VALUES."
            )
    names = [f"col{index}" for index in range(width)]
    alias = exp.TableAlias(
        this=exp.to_identifier("v"), columns=[exp.to_identifier(name) for name in names]
    )
    listed = [
        exp.Tuple(expressions=[rebuild(value, lambda part: part.copy()) for value in row])
        for row in rows
    ]
    tree = exp.select(*(exp.column(name, table="v") for name in names)).from_(
        exp.Values(expressions=listed, alias=alias)
    )
    kinds = [
        common_kind([kind_of(row[place], lambda _: None) for row in rows]) for place in range(width)
    ]
    outputs = tuple(
        Output(name=name, margin=None, estimate=None, kind=kind)
        for name, kind in zip(names, kinds, strict=True)
    )
    return OutputTable(tree=tree, outputs=outputs, noisy=False)
