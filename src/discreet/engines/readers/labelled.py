"""Files of SPSS, Stata and SAS, by pyreadstat: one table a file, whose metadata says what codes
mean.

Value labels are metadata: somebody wrote them down when the file was made, and reading them reads
no row. Values come as numbers and texts whose type the file decides; each becomes text by itself
(S23), as in a CSV file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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

LABELLED = {  # a suffix, and what reads it
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
_MOMENTS = ("DATETIME", "YMDHMS", "%TC", "E8601DT")
_DAYS = (
    "DATE",
    "ADATE",
    "EDATE",
    "JDATE",
    "SDATE",
    "DDMMYY",
    "MMDDYY",
    "YYMMDD",
    "E8601DA",
    "%TD",
    "%D",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """One file, whose table has its name."""

    file: Path

    def tables(self) -> tuple[str, ...]:
        return (self.file.stem,)

    def declared(self, table: str) -> Declarations:
        _, meta = self._read(metadataonly=True)
        labels = {**meta.variable_value_labels, **self._catalog_of(meta)}
        return Declarations(
            types={name: _type(meta, name) for name in meta.column_names},
            labels=_labels(labels, meta),
        )

    def _catalog_of(self, meta: Any) -> dict[str, dict[Any, str]]:
        """Read the labels that SAS keeps in a second file: by column, through the name of its
        format.

        Read by itself: pyreadstat, given both files, puts labels in the place of values.
        """
        file = self.file.with_suffix(".sas7bcat")
        if self.file.suffix.lower() != ".sas7bdat" or not file.is_file():
            return {}
        import pyreadstat

        try:
            _, catalog = pyreadstat.read_sas7bcat(str(file), output_format="dict")
        except Exception:
            raise UsageError(f"The catalog {file.name} cannot be read as .sas7bcat.") from None
        formats = meta.variable_to_label.items()
        known = catalog.value_labels
        return {column: known[format] for column, format in formats if format in known}

    def unheld(self, table: str) -> dict[str, str]:
        """Return nothing: these files hold numbers and texts alone."""
        return {}

    @contextmanager
    def read(self, rows: Wanted) -> Iterator[dict[str, pa.Table]]:
        if self.file.stem.lower() not in rows:
            _, meta = self._read(metadataonly=True)
            yield {self.file.stem: texts(meta.column_names, [])}
            return
        columns, meta = self._read()
        listed = [_plain(columns[name]) for name in meta.column_names]
        yield {self.file.stem: texts(meta.column_names, list(zip(*listed, strict=True)))}

    def _read(self, **options: Any) -> tuple[Any, Any]:
        try:
            import pyreadstat
        except ImportError:
            raise missing("pyreadstat", what=f"A {self.file.suffix} file") from None
        suffix = self.file.suffix.lower()
        if suffix in (".sav", ".zsav", ".dta") and options:
            options["user_missing"] = True  # then the metadata says which codes stand for no answer
        try:
            found, meta = getattr(pyreadstat, LABELLED[suffix])(
                str(self.file), output_format="dict", **options
            )
        except Exception:  # its messages can print values
            raise UsageError(
                f"The source {self.file} cannot be read as {self.file.suffix}."
            ) from None
        twice = first_twice(meta.column_names)
        if twice is not None:
            raise UsageError(f"The file {self.file.name} has two columns {twice}. Rename one.")
        return found, meta


def _plain(values: Any) -> list[Any]:
    """Return a column's values as objects of Python."""
    return list(values.tolist() if hasattr(values, "tolist") else values)


def _type(meta: Any, name: str) -> str:
    """Return the type of a column as a database would call it; '' for numbers that may be whole or
    not.
    """
    kind = meta.readstat_variable_types[name]
    shown = (meta.original_variable_types[name] or "").upper()
    if kind == "string":
        return "VARCHAR"
    if shown.startswith(_MOMENTS):
        return "TIMESTAMP"
    if shown.startswith(_DAYS):
        return "DATE"
    if kind.startswith("int") or (shown.startswith("F") and shown.endswith(".0")):
        return "INTEGER"
    return ""


def _labels(known: dict[str, dict[Any, str]], meta: Any) -> dict[str, dict[str, str]]:
    """Return the labels of columns whose values are codes: not of numbers on a scale, nor of codes
    for no answer.
    """
    found = {}
    for name, labels in known.items():
        codes = {
            code: _code(code)
            for code in labels
            if not _is_missing(code, meta.missing_ranges.get(name, ()))
        }
        if codes and None not in codes.values() and meta.variable_measure.get(name) != "scale":
            found[name] = {str(text): str(labels[code]) for code, text in codes.items()}
    return found


def _code(code: object) -> str | None:
    """Return a code as a policy lists it; None for a number that is not whole."""
    if isinstance(code, str):
        return code.strip()
    return str(int(code)) if isinstance(code, int | float) and code == int(code) else None


def _is_missing(code: object, ranges: Iterable[Any]) -> bool:
    if isinstance(code, str) or not isinstance(code, int | float):
        return any(code == each["lo"] for each in ranges) or code in ("", None)
    return any(
        not isinstance(each["lo"], str) and each["lo"] <= code <= each["hi"] for each in ranges
    )
