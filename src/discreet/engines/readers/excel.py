"""Read workbooks (.xlsx) with openpyxl."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.engines.frames import first_twice
from discreet.engines.readers.reader import Declarations, Wanted, texts
from discreet.errors import UsageError
from discreet.extras import missing

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class Excel:
    """One workbook: each sheet is a table, and its first row has the names of the columns."""

    file: Path

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        try:
            from openpyxl import load_workbook  # type: ignore[import-untyped]
        except ImportError:
            raise missing("openpyxl", what="An Excel file") from None
        try:
            book = load_workbook(self.file, read_only=True, data_only=True)
        except Exception:  # a broken file can raise any error
            raise UsageError(
                f"The source {self.file} cannot be read as a workbook (.xlsx)."
            ) from None
        try:
            yield book
        finally:
            book.close()

    def tables(self) -> tuple[str, ...]:
        with self._opened() as book:
            return _sheets_with_content(book)

    def declared(self, table: str) -> Declarations:
        with self._opened() as book:
            return Declarations(types=dict.fromkeys(self._header(book, table), ""))

    def unheld(self, table: str) -> dict[str, str]:
        """Return nothing: a sheet declares no types."""
        return {}

    @contextmanager
    def read(self, rows: Wanted) -> Iterator[dict[str, pa.Table]]:
        tables = {}
        with self._opened() as book:
            for table in _sheets_with_content(book):
                asked = table.lower() in rows
                try:
                    names = self._header(book, table)
                except UsageError:
                    if asked:
                        raise
                    continue  # a sheet of notes beside the tables
                found = []
                if asked:
                    cells = book[table].iter_rows(min_row=2, max_col=len(names), values_only=True)
                    found = [row for row in cells if not _is_empty(row)]
                padded = [row + (None,) * (len(names) - len(row)) for row in found]
                tables[table] = texts(names, padded)
        yield tables

    def _header(self, book: Any, table: str) -> list[str]:
        first = next(book[table].iter_rows(max_row=1, values_only=True), ())
        names = [str(cell).strip() if cell is not None else "" for cell in first]
        while names and not names[-1]:
            names.pop()
        if not names or not all(names):
            raise UsageError(
                f"The sheet {table} of {self.file.name} has no header: name its columns in the first row."
            )
        twice = first_twice(names)
        if twice is not None:
            raise UsageError(
                f"The sheet {table} of {self.file.name} has two columns {twice}. Rename one."
            )
        return names


def _sheets_with_content(book: Any) -> tuple[str, ...]:
    """Return the names of the sheets that have any content: a new workbook often has empty ones."""
    names = []
    for sheet in book.worksheets:
        if not all(map(_is_empty, sheet.iter_rows(values_only=True))):
            names.append(sheet.title)
    return tuple(sorted(names))


def _is_empty(row: tuple[Any, ...]) -> bool:
    return all(cell is None for cell in row)
