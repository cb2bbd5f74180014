"""Answers as bytes: CSV, an Arrow stream, Parquet. An Arrow stream holds all of an answer, and is
read back from it.
"""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from discreet.budget import Budget
from discreet.display.show import readable
from discreet.vault.answer import plain, ranks_tell

if TYPE_CHECKING:
    from discreet.vault.answer import Answer

ABOUT = b"discreet"  # the key of a schema's metadata under which stands what an answer has beside its rows


def with_margins(answer: Answer) -> pa.Table:
    """Return the values, and behind each column that has margins a column of them, named `name
    ±`.

    Behind a quantile stands `name ± ranks`, with NULL in groups that may be too small for them.
    """
    ranks = answer.certificate.get("ranks", {})
    beside = list[int]()
    columns = list[tuple[str, Any]]()
    places = list[int | None]()
    pairs = zip(
        answer.table.column_names, answer.table.columns, answer.margins.columns, strict=True
    )
    for name, values, margins in pairs:
        columns.append((name, values))
        if margins.null_count < len(margins):
            places.append(len(columns))
            columns.append((f"{name} ±", margins))
        else:
            places.append(None)
        if name in ranks:
            within = [None if told is False else ranks[name] for told in ranks_tell(answer, name)]
            beside.append(len(columns))
            columns.append((f"{name} ± ranks", pa.array(within, pa.int64())))
    about = {
        "margins": places,
        "beside": beside,
        "selected": list(answer.selected),
        "cost": answer.cost.as_json(),
        "left": answer.left.as_json(),
        "certificate": answer.certificate,
        "answer_id": answer.id,
    }
    table = pa.table([values for _, values in columns], names=[name for name, _ in columns])
    return table.replace_schema_metadata({ABOUT: json.dumps(about, ensure_ascii=False).encode()})


def read_arrow(content: bytes) -> pa.Table:
    """Read the table of an Arrow IPC stream."""
    return pa.ipc.open_stream(content).read_all()


def from_arrow(content: bytes) -> Answer:
    """Read an answer from the Arrow stream of `with_margins`."""
    from discreet.vault.answer import Answer

    table = read_arrow(content)
    about = json.loads((table.schema.metadata or {})[ABOUT])
    behind = {*about["margins"], *about.get("beside", ())}
    own = [place for place in range(table.num_columns) if place not in behind]
    names = [table.column_names[place] for place in own]
    nothing = pa.nulls(table.num_rows, pa.float64())
    margins = [nothing if place is None else table.column(place) for place in about["margins"]]
    return Answer(
        table=pa.table([table.column(place) for place in own], names=names),
        margins=pa.table(margins, names=names),
        selected=tuple(about["selected"]),
        cost=Budget.from_json(about["cost"]),
        left=Budget.from_json(about["left"]),
        certificate=about["certificate"],
        id=about["answer_id"],
    )


def with_left(content: bytes, left: Budget) -> bytes:
    """Return the Arrow stream of an answer for another reader: `left` is what that one has left."""
    table = read_arrow(content)
    about = json.loads((table.schema.metadata or {})[ABOUT]) | {"left": left.as_json()}
    return as_arrow(
        table.replace_schema_metadata({ABOUT: json.dumps(about, ensure_ascii=False).encode()})
    )


def rows_as(table: pa.Table, format: str) -> bytes:
    """Return a table in a format: csv, arrow, parquet, or json as columns and rows."""
    match format:
        case "csv":
            return as_csv(table).encode()
        case "arrow":
            return as_arrow(table)
        case "parquet":
            return as_parquet(table)
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    told = {
        "columns": table.column_names,
        "rows": [[plain(value) for value in row] for row in rows],
    }
    return json.dumps(told, ensure_ascii=False).encode()


def plain_value(value: Any) -> Any:
    """Return a value as JSON holds it."""
    return plain(value)


def as_csv(table: pa.Table) -> str:
    """Return a table as CSV with a line of names; a list or a struct is its text."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(table.column_names)
    writer.writerows(
        zip(
            *([_flat(value) for value in column.to_pylist()] for column in table.columns),
            strict=True,
        )
    )
    return text.getvalue()


def as_arrow(table: pa.Table) -> bytes:
    """Return a table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def as_parquet(table: pa.Table) -> bytes:
    """Return a table as a Parquet file."""
    import pyarrow.parquet

    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(_without_intervals(table), sink)
    return bytes(sink.getvalue())


def _without_intervals(table: pa.Table) -> pa.Table:
    """Return the table with intervals as text, because Parquet has no type for them."""
    for place, field in enumerate(table.schema):
        if pa.types.is_interval(field.type):
            texts = [_flat(value) for value in table.column(place).to_pylist()]
            table = table.set_column(place, field.name, pa.array(texts, pa.string()))
    return table


def _flat(value: Any) -> Any:
    """Return a value as CSV holds it: a list or a struct is its text."""
    simple = plain(value)
    return readable(simple) if isinstance(simple, list | dict) else simple
