"""Read a codebook: a file in which the makers of the data say what each column may contain.

It is CSV, JSON or DDI (XML), or the value labels of a file of SPSS, Stata or SAS. It has one line
or entry for each column, with `column`, and any of `table`, `type` (integer, decimal, values,
boolean, date, timestamp, text, identifier), `min` and `max` or `range` (0..120), `step`, `values`
(a|b|c, or a list in JSON).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from discreet.engines.drafts.suggest import Suggestion, of_values, range_of
from discreet.engines.duckdb.preparing import encode
from discreet.engines.readers.labelled import LABELLED, Labelled
from discreet.errors import UsageError

_WHY = "from the codebook"
_MOST = 10_000_000  # bytes; a larger file is data and no codebook
_BARE = ("boolean", "text", "identifier")
_DATES = {"date": "", "timestamp": ", step: 1s"}


class Codebook:
    """A codebook's suggestions, by column of one table or of any."""

    def __init__(self, entries: Iterable[Mapping[str, Any]], *, file: Path) -> None:
        self._known: dict[tuple[str, str], Suggestion] = {}
        for entry in entries:
            plain = {
                str(key).strip().lower(): value for key, value in entry.items() if key is not None
            }
            column = str(plain.get("column") or plain.get("name") or "").strip()
            if not column:
                raise UsageError(
                    f"The codebook {file} has an entry without `column`: name the column of each."
                )
            found = _suggestion(plain, f"{file}: {column}")
            if found is not None:
                self._known[str(plain.get("table") or "").strip().lower(), column.lower()] = found

    def get(self, table: str, column: str) -> Suggestion | None:
        """Return what the codebook says about a column of a table."""
        return self._known.get((table.lower(), column.lower())) or self._known.get(
            ("", column.lower())
        )

    @classmethod
    def read(cls, file: Path) -> Codebook:
        """Read the codebook in a file; raise UsageError if it is none."""
        if file.suffix.lower() in LABELLED and file.is_file():
            # this reads the labels and no rows
            labels = Labelled(file=file).declared(file.stem).labels
            entries = [{"column": column, "values": [*codes]} for column, codes in labels.items()]
            return cls(entries, file=file)
        try:
            if file.stat().st_size > _MOST:
                raise UsageError(
                    f"The codebook {file} is larger than 10 MB: it describes data, and holds none."
                )
            text = file.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise UsageError(f"The codebook {file} cannot be read: {error.strerror}.") from None
        except UnicodeDecodeError:
            raise UsageError(f"The codebook {file} is not UTF-8 text.") from None
        try:
            return cls(_entries(text, file.suffix.lower()), file=file)
        except (ValueError, ElementTree.ParseError, AttributeError, RecursionError):
            raise UsageError(
                f"The codebook {file} cannot be read as {file.suffix or 'CSV'}."
            ) from None


def _entries(text: str, suffix: str) -> list[Mapping[str, Any]]:
    if suffix == ".json":
        found = json.loads(text)
        if isinstance(found, Mapping):  # by column
            return [{"column": column, **entry} for column, entry in found.items()]
        return list(found)
    if suffix == ".xml":
        # a document type may define entities that grow without limit
        if "<!" in text.replace("<!--", ""):
            raise ValueError("a document type")
        elements = ElementTree.fromstring(text).iter()
        return [_variable(element) for element in elements if _tag(element) == "var"]
    header = text.split("\n", 1)[0]
    delimiter = ";" if header.count(";") > header.count(",") else ","
    return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))


def _tag(element: ElementTree.Element) -> str:
    """Return the name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def _variable(element: ElementTree.Element) -> dict[str, Any]:
    """Read a variable of DDI Codebook: its range, or its categories."""
    entry: dict[str, Any] = {"column": element.get("name")}
    values = [each.text for each in element.iter() if _tag(each) == "catValu" and each.text]
    if values:
        entry["values"] = [value.strip() for value in values]
    for each in element.iter():
        if _tag(each) == "range" and each.get("min") and each.get("max"):
            entry |= {"min": each.get("min"), "max": each.get("max")}
    return entry


def _suggestion(entry: Mapping[str, Any], where: str) -> Suggestion | None:
    kind = str(entry.get("type") or "").strip().lower()
    values = entry.get("values")
    if isinstance(values, str):
        values = [value.strip() for value in values.split("|")] if values.strip() else None
    if values:
        return of_values([str(value) for value in values], _WHY)
    if kind in _BARE:
        declaration = "{identifier: true}" if kind == "identifier" else kind
        return Suggestion(declaration=declaration, why=_WHY)
    ends = _ends(entry)
    if ends is None:
        return None
    if kind in _DATES:
        return Suggestion(declaration=f"{{{kind}: [{ends[0]}, {ends[1]}]{_DATES[kind]}}}", why=_WHY)
    step = str(entry.get("step") or "").strip()
    if step:
        return Suggestion(
            declaration=f"{{decimal: [{ends[0]}, {ends[1]}], step: {step}}}", why=_WHY
        )
    has_fractions = kind in ("decimal", "float", "double", "number", "numeric")
    family = encode.DECIMAL if has_fractions else encode.WHOLE
    return Suggestion(declaration=range_of(*ends, family), why=_WHY)


def _ends(entry: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the ends of an entry's range, from `min` and `max` or from `range`."""
    low = _text(entry.get("min"))
    high = _text(entry.get("max"))
    if not low or not high:
        given = entry.get("range")
        parts = given if isinstance(given, list) else str(given or "").replace("..", "|").split("|")
        if len(parts) != 2:
            return None
        low, high = (str(part).strip() for part in parts)
    return (low, high) if low and high else None


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()
