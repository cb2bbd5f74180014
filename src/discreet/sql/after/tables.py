"""Tables that the SQL after noise reads: public tables, constants, and a noisy table that a
statement only lists.
"""

from __future__ import annotations

from itertools import chain

import pyarrow as pa
from sqlglot import exp

from discreet.sql.after.rebuild import rebuild
from discreet.sql.after.released import Output, OutputTable
from discreet.sql.text.parse import reject, show
from discreet.sql.text.postgres import Kind, common_kind, kind_of


def plain_columns(tree: exp.Query, table: str) -> tuple[str, ...] | None:
    """Return the columns of a statement that only lists columns of a table; None for other
    statements.
    """
    clauses = {name for name, part in tree.args.items() if part}
    if clauses != {"expressions", "from_"}:
        return None
    source = tree.args["from_"].this
    if not isinstance(source, exp.Table) or source.name != table:
        return None
    columns = [item.unalias() for item in tree.expressions]
    if not all(type(column) is exp.Column for column in columns):
        return None
    return tuple(column.name for column in columns)


def public_table(name: str, table: pa.Table) -> OutputTable:
    """Return a public table: it is exact, and reading it costs nothing."""
    items = [exp.column(column, quoted=True) for column in table.column_names]
    outputs = []
    for column, values in zip(table.column_names, table.columns, strict=True):
        kind = public_column_kind(values)
        outputs.append(Output(name=column, margin=None, estimate=None, kind=kind))
    return OutputTable(
        tree=exp.select(*items).from_(exp.to_table(name, dialect="duckdb")),
        outputs=tuple(outputs),
        noisy=False,
        stored=name,
    )


def public_column_kind(column: pa.ChunkedArray) -> Kind:
    """Return the type of a public column in Postgres; integer for whole numbers if they fit, else
    bigint.
    """
    if pa.types.is_integer(column.type):
        import pyarrow.compute as pc

        largest = pc.max(pc.abs_checked(column.cast(pa.decimal128(38, 0)))).as_py()
        return "integer" if largest is None or largest < 2**31 else "bigint"
    if pa.types.is_boolean(column.type):
        return "boolean"
    return "date" if pa.types.is_date(column.type) else "other"


def constants(node: exp.Values) -> OutputTable:
    """Return VALUES (1, 'a'), (2, 'b') as a table. The question writes it out, so it is public."""
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    width = len(rows[0]) if rows else 0
    if not width or any(len(row) != width for row in rows):
        raise reject(
            node, "the rows of VALUES differ in length.", "Write as many values in every row."
        )
    for value in chain.from_iterable(rows):
        inner = value.this if isinstance(value, exp.Neg | exp.Cast) else value
        if not isinstance(inner, exp.Literal | exp.Null | exp.Boolean):
            raise reject(
                value, f"{show(value)} is not a constant.", "Write out every value in VALUES."
            )
    names = [f"col{index}" for index in range(width)]
    alias = exp.TableAlias(
        this=exp.to_identifier("v"), columns=[exp.to_identifier(name) for name in names]
    )
    tuples = []
    for row in rows:
        values = [rebuild(value, lambda part: part.copy()) for value in row]
        tuples.append(exp.Tuple(expressions=values))
    columns = [exp.column(name, table="v") for name in names]
    tree = exp.select(*columns).from_(exp.Values(expressions=tuples, alias=alias))
    outputs = []
    for place, name in enumerate(names):
        kind = common_kind([kind_of(row[place], lambda _: None) for row in rows])
        outputs.append(Output(name=name, margin=None, estimate=None, kind=kind))
    return OutputTable(tree=tree, outputs=tuple(outputs), noisy=False)
