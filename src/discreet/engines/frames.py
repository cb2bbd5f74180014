"""Convert tables from Python to Arrow tables whose types do not depend on any single value (S23).

Arrow tables, record batches and Polars frames declare a type for each column. A column of Python
objects has none. If it were taken from the values, one of them would decide how all others are read
(2138 would become 2138.0 for everybody). So each object is converted to text by itself, and the
policy's domain reads that text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from discreet.errors import UsageError

# formats of files that declare their types
_TYPED = ("ParquetFileFormat", "IpcFileFormat", "OrcFileFormat", "FeatherFileFormat")


def arrow(table: str, content: Any) -> Any:
    """Return what was passed for a table as an Arrow table or dataset; raise UsageError if it is
    none.
    """
    import pyarrow as pa

    found = content
    try:
        if not isinstance(content, pa.Table) and not hasattr(content, "scanner"):
            found = _convert(content)
    except (TypeError, ValueError, OverflowError, pa.ArrowException):
        why = "pass an Arrow table, or a data frame whose columns have one type each"
        raise UsageError(f"The table {table} from Python cannot be read: {why}.") from None
    twice = first_twice(found.schema.names)
    if twice is not None:
        raise UsageError(f"The table {table} from Python has two columns {twice}. Rename one.")
    return found


def first_twice(names: Iterable[str]) -> str | None:
    """Return the first name that repeats an earlier one, in upper or lower case. Of two such
    columns the engine would read only one.
    """
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            return name
        seen.add(name.lower())
    return None


def _convert(content: Any) -> Any:
    import pyarrow as pa

    if isinstance(content, Mapping):
        return pa.table({str(label): _column(values) for label, values in content.items()})
    if type(content).__module__.split(".")[0] != "pandas":
        return pa.table(content)
    if any(label is not None for label in content.index.names):
        content = content.reset_index()
    found = {str(label): _column(values) for label, values in content.items()}
    if len(found) < len(content.columns):
        raise ValueError("two columns of one name")
    return pa.table(found)


def _column(values: Any) -> Any:
    import pyarrow as pa

    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    kind = getattr(values, "dtype", None)
    # a categorical column of pandas has a list of values, with a type of its own
    kind_of_list = getattr(getattr(kind, "categories", None), "dtype", None)
    if kind is None or "object" in (str(kind), str(kind_of_list)):
        return pa.array([text_of(value) for value in values], pa.string())
    return pa.array(values)


def text_of(value: object) -> str | None:
    """Return one object as text, or None if it has no text. The result depends on that object
    alone, and no object makes it fail.
    """
    match value:
        case str():
            return value if _encodes(value) else None
        case bool():
            return "true" if value else "false"
        case int() | UUID():
            return str(value)
        case float():
            return _of_float(value)
        case Decimal():
            return _of_decimal(value)
        case datetime() | date():
            # NaT is a datetime that does not equal itself
            return value.isoformat() if value == value else None
        case _ if (
            hasattr(value, "item")
            and type(value).__module__ == "numpy"
            and getattr(value, "shape", ()) == ()
        ):
            plain = value.item()
            return None if type(plain) is type(value) else text_of(plain)
    return None


def _encodes(text: str) -> bool:
    """Return True if a text can be written in UTF-8; half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _of_float(value: float) -> str | None:
    """Write a float: as a whole number without a point, up to 2^53, where floats are exact."""
    if math.isnan(value):
        return None
    whole = math.isfinite(value) and value == math.trunc(value) and abs(value) <= 2**53
    return str(int(value)) if whole else repr(value)


def _of_decimal(value: Decimal) -> str | None:
    if not value.is_finite() or abs(value.adjusted()) >= 400:
        return None
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


# --- datasets -------------------------------------------------------------------------------------


def check_dataset(table: str, content: Any, columns: Iterable[str]) -> None:
    """Refuse a dataset unless each file itself declares the types with which its columns are read.

    Privacy: a dataset has the schema of its first file, and guesses types from the names of all
    folders together. So one person's file could decide how others are read.
    """
    wanted = {column.lower() for column in columns}
    fields = [field for field in content.schema if field.name.lower() in wanted]
    remedy = "Write all files alike, or name the folder as the policy's source, where each file is read by itself."
    for fragment in _fragments(content):
        kind = type(getattr(fragment, "format", None)).__name__
        file = getattr(fragment, "path", "")
        if file and kind not in _TYPED:
            raise UsageError(
                f"The dataset {table} guesses its types from the rows of its files. {remedy}"
            )
        own = {field.name: field.type for field in fragment.physical_schema}
        for field in fields:
            if own.get(field.name) != field.type:
                there = own.get(field.name, "no such column")
                raise UsageError(
                    f"The dataset {table} reads {field.name} as {field.type}, and its file {file.split('/')[-1]} has "
                    f"{there}: one file would decide how others are read. {remedy}"
                )


def _fragments(content: Any) -> Iterator[Any]:
    for child in getattr(content, "children", ()):
        yield from _fragments(child)
    if not getattr(content, "children", ()):
        yield from content.get_fragments()
