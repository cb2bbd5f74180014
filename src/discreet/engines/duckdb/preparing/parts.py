"""The parts of a table: rows that share one schema, each read by itself (S23).

A folder of files has as many parts as it has schemas. Types are not unified across files. Otherwise
one file with a fraction would turn everybody's whole numbers into floats, and the key '2138' into
'2138.0'.

A text that is no UTF-8 becomes NULL by itself. In Parquet and CSV files DuckDB does not say which
texts these are, but fails. Then everything is read again, `carefully`. Both ways read valid texts
alike.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet.engines.files import PARQUET, csv_header, list_of, open_file, parquet, texts
from discreet.engines.frames import check_dataset, first_twice
from discreet.engines.quoting import literal, name
from discreet.engines.source import (
    Folder,
    Foreign,
    PythonTables,
    Source,
    columns_of,
    files_of,
    is_csv,
    scan,
)
from discreet.errors import UsageError
from discreet.noise.bits import SYSTEM

_UNREAD = "#unread "  # before a text's column: the same text read in another way
_CHUNK = 1 << 20
_UNREADABLE = re.compile("\udcff+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePart:
    """Rows of one schema: what to write after FROM, names and DuckDB types, and how to write a text
    that is UTF-8.
    """

    where: str  # for messages: "the source", "the file people/b.parquet"
    relation: str
    columns: Mapping[str, str]
    text: str = "{text}"
    # columns that are read as texts because no domain can hold their types: a database's own names
    # of those
    unheld: Mapping[str, str] = field(default_factory=dict)

    def readable(self, column: str) -> str:
        """Return the SQL of a text column, NULL where its bytes are no UTF-8."""
        return self.text.format(text=name(column), other=name(f"{_UNREAD}{column}"))


def parts_of(
    connection: Any,
    source: Source,
    table: str,
    *,
    used: set[str],
    scratch: Path | None,
    encoding: str | None = None,
) -> tuple[SourcePart, ...]:
    """Return the parts of a table of which the columns `used` are read; carefully where `scratch`
    is a folder for copies.

    Without such a folder, CSV files of another encoding than UTF-8 have their columns and cannot be
    read.
    """
    if not isinstance(source, Folder):
        if isinstance(source, PythonTables) and hasattr(source.tables[table], "scanner"):
            check_dataset(table, source.tables[table], used)
        relation = scan(source, table, as_text=True)
        columns = _declaration(connection, table, relation)
        # Arrow's texts are not checked by anybody, and a database's may come from Arrow. What is
        # decoded has no collation either: texts are equal when their bytes are, whatever a database
        # says of 'a' and 'A'.
        valid = "TRY(decode(encode(CAST({text} AS VARCHAR))))"
        unheld = source.reader.unheld(table) if isinstance(source, Foreign) else {}
        return (
            SourcePart(
                where="the source", relation=relation, columns=columns, text=valid, unheld=unheld
            ),
        )
    if is_csv(source, table):
        return tuple(_csv(source, file, scratch, encoding) for file in files_of(source, table))
    return tuple(
        _parquet(connection, source, files, scratch) for files in _alike(connection, source, table)
    )


def part_of(
    connection: Any, source: Folder, file: Path, scratch: Path | None, encoding: str | None
) -> SourcePart:
    """Return one file of a folder as a part. Read it carefully if `scratch` is given, a folder for
    copies.
    """
    if file.name.endswith(PARQUET):
        return _parquet(connection, source, [file], scratch)
    return _csv(source, file, scratch, encoding)


def _declaration(connection: Any, table: str, relation: str) -> dict[str, str]:
    import duckdb

    try:
        return columns_of(connection, relation)
    except duckdb.PermissionException:
        why = "its types would be what the rows of those files decide together"
        remedy = "Make it a table, or name the files' folder as the policy's source."
        raise UsageError(f"The view {table} reads files: {why}. {remedy}") from None


def _label(source: Folder, file: Path) -> str:
    return f"the file {file.relative_to(source.path).as_posix()}"


def _first_upper(where: str) -> str:
    """Return a label as the beginning of a sentence, with the file's name as it is."""
    return where[0].upper() + where[1:]


# --- Parquet --------------------------------------------------------------------------------------


def _alike(connection: Any, source: Folder, table: str) -> list[list[Path]]:
    """Return the files of a table in groups of one schema, in a fixed order."""
    import duckdb

    groups: dict[object, list[Path]] = {}
    for file in files_of(source, table):
        sql = f"SELECT * EXCLUDE (file_name, field_id) FROM parquet_schema({list_of([file])}) ORDER BY column_id"
        try:
            schema = connection.execute(sql).fetchall()
        except duckdb.Error:
            raise _no_parquet(_label(source, file)) from None
        groups.setdefault(tuple(schema), []).append(file)
    return list(groups.values())


def _no_parquet(where: str) -> UsageError:
    return UsageError(
        f"{_first_upper(where)} cannot be read as Parquet. Is it whole, and may you read it? "
        "Copy it again, or take it out of the source."
    )


def _parquet(
    connection: Any, source: Folder, files: list[Path], scratch: Path | None
) -> SourcePart:
    from pyarrow import ArrowException
    from pyarrow.parquet import read_schema

    where = _label(source, files[0])
    try:
        twice = first_twice(read_schema(files[0]).names)
    except (ArrowException, OSError):
        raise _no_parquet(where) from None
    if twice is not None:
        raise UsageError(f"{_first_upper(where)} has two columns {twice}. Rename one.")
    relation = parquet(files)
    columns = columns_of(connection, relation)
    of_text = [column for column, kind in columns.items() if kind == "VARCHAR"]
    if scratch is None or not of_text:
        return SourcePart(where=where, relation=relation, columns=columns)
    # What is no UTF-8 is replaced by a question mark in one reading and left out in the other:
    # where both agree, it is.
    replaced, left_out = (
        parquet(
            files,
            options=f", utf8_validation = '{way}', file_row_number = true, filename = {literal(_UNREAD)}",
        )
        for way in ("replace", "ignore")
    )
    others = ", ".join(f"b.{name(column)} AS {name(_UNREAD + column)}" for column in of_text)
    relation = (
        f"(SELECT a.*, {others} FROM {replaced} AS a JOIN {left_out} AS b ON "
        f"a.{name(_UNREAD)} = b.{name(_UNREAD)} AND a.file_row_number = b.file_row_number)"
    )
    return SourcePart(
        where=where,
        relation=relation,
        columns=columns,
        text="CASE WHEN {text} = {other} THEN {text} END",
    )


# --- CSV ------------------------------------------------------------------------------------------


def _csv(source: Folder, file: Path, scratch: Path | None, encoding: str | None) -> SourcePart:
    where = _label(source, file)
    columns = dict.fromkeys(csv_header(file, encoding), "VARCHAR")
    if scratch is None or (encoding is None and _is_utf8(file)):
        return SourcePart(where=where, relation=texts(file, encoding=encoding), columns=columns)
    mark = f"{SYSTEM.bits(128):032x}"  # no text has it by chance
    copy = scratch / f"{mark}{'.tsv' if '.tsv' in file.name else '.csv'}"
    _mark(file, copy, mark, encoding or "utf-8")
    relation = texts(file, copy=copy, encoding=encoding)
    valid = f"CASE WHEN NOT contains({{text}}, '{mark}') THEN {{text}} END"
    return SourcePart(where=where, relation=relation, columns=columns, text=valid)


def _is_utf8(file: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with open_file(file) as content:
            while chunk := content.read(_CHUNK):
                decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    except (OSError, EOFError, zlib.error):
        pass  # the engine will say so
    return True


def _mark(file: Path, copy: Path, mark: str, encoding: str) -> None:
    """Copy a file as UTF-8, with the mark instead of bytes that cannot be read. The header's names
    are known already.
    """
    codecs.register_error("discreet.unreadable", lambda error: ("\udcff", error.end))  # type: ignore[attr-defined]
    decoder = codecs.getincrementaldecoder(encoding)("discreet.unreadable")
    with open_file(file) as content, copy.open("wb") as written:
        while True:
            chunk = content.read(_CHUNK)
            written.write(_UNREADABLE.sub(mark, decoder.decode(chunk, final=not chunk)).encode())
            if not chunk:
                return
