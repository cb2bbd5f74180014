"""Files as SAS writes them, for tests: by ReadStat, which pyreadstat holds and reads with, but of
which it does not offer this part.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyreadstat import _readstat_writer

_STRING, _DOUBLE = 0, 5
_TAKES = ctypes.CFUNCTYPE(
    ctypes.c_ssize_t, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t, ctypes.c_void_p
)
_LETTERS = 40


def _library() -> Any:
    library = ctypes.CDLL(_readstat_writer.__file__)
    for maker in ("writer_init", "add_variable", "add_label_set", "get_variable"):
        getattr(library, f"readstat_{maker}").restype = ctypes.c_void_p
    return library


@contextmanager
def _writer(file: Path) -> Iterator[tuple[Any, Any]]:
    """ReadStat, and a writer whose bytes go to a file."""
    library = _library()
    writer = ctypes.c_void_p(library.readstat_writer_init())
    with file.open("wb") as out:

        @_TAKES
        def take(data: Any, size: int, _: Any) -> int:
            return out.write(ctypes.string_at(data, size))

        _done(library.readstat_set_data_writer(writer, take))
        try:
            yield library, writer
            _done(library.readstat_end_writing(writer))
        finally:
            library.readstat_writer_free(writer)


def _done(code: int) -> None:
    if code:
        raise OSError(f"ReadStat failed with {code}.")


def write_sas(
    file: Path, columns: Mapping[str, Sequence[Any]], formats: Mapping[str, str] | None = None
) -> None:
    """Write a .sas7bdat of numbers and texts; None is a missing number."""
    with _writer(file) as (library, writer):
        variables = {}
        for name, values in columns.items():
            is_text = isinstance(values[0], str)
            kind, width = (_STRING, _LETTERS) if is_text else (_DOUBLE, 8)
            made = library.readstat_add_variable(
                writer, name.encode(), ctypes.c_int(kind), ctypes.c_size_t(width)
            )
            variables[name] = ctypes.c_void_p(made)
            if formats and name in formats:
                library.readstat_variable_set_format(variables[name], formats[name].encode())
        rows = [*zip(*columns.values(), strict=True)]
        _done(library.readstat_begin_writing_sas7bdat(writer, None, ctypes.c_long(len(rows))))
        for row in rows:
            _done(library.readstat_begin_row(writer))
            for variable, value in zip(variables.values(), row, strict=True):
                _insert(library, writer, variable, value)
            _done(library.readstat_end_row(writer))


def _insert(library: Any, writer: Any, variable: Any, value: Any) -> None:
    if value is None:
        _done(library.readstat_insert_missing_value(writer, variable))
    elif isinstance(value, str):
        _done(library.readstat_insert_string_value(writer, variable, value.encode()))
    else:
        number = ctypes.c_double(value)
        _done(library.readstat_insert_double_value(writer, variable, number))


def write_catalog(file: Path, formats: Mapping[str, Mapping[float, str]]) -> None:
    """Write a .sas7bcat: what the codes of each format mean."""
    with _writer(file) as (library, writer):
        for name, labels in formats.items():
            made = ctypes.c_void_p(
                library.readstat_add_label_set(writer, ctypes.c_int(_DOUBLE), name.encode())
            )
            for code, label in labels.items():
                library.readstat_label_double_value(made, ctypes.c_double(code), label.encode())
        _done(library.readstat_begin_writing_sas7bcat(writer, None))
