"""What a column may contain, suggested from its name, its type, or the constraints of its database.
Never from values.

A small table of our own: names that many data sets share, and what such columns usually hold. Every
suggestion says where it comes from, and the curator checks it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from discreet.engines.duckdb import encode

UNKNOWN = "unknown"  # the family of a column of a CSV file, whose type nobody declares
_NUMBERS = (encode.WHOLE, encode.FLOAT, encode.DECIMAL, UNKNOWN)
_WHOLE = (encode.WHOLE, encode.FLOAT, UNKNOWN)
_TEXTS = (encode.TEXT, UNKNOWN)
_DAYS = (encode.DATE, encode.TIMESTAMP, encode.TEXT, UNKNOWN)
_FLAGS = (encode.BOOLEAN, encode.WHOLE, UNKNOWN)

# words that a name has all of; the kinds of columns; the declaration, None for what is better left
# out
_NAMES: tuple[tuple[str, tuple[str, ...], str | None], ...] = (
    *(
        (name, _TEXTS, None)
        for name in ("email", "e mail", "phone", "telephone", "mobile", "address", "street", "ssn")
    ),
    *(
        (f"{word} name", _TEXTS, None)
        for word in ("first", "last", "full", "middle", "given", "family", "maiden")
    ),
    *(
        (name, _TEXTS, None)
        for name in ("surname", "lastname", "firstname", "passport", "iban", "ip", "login")
    ),
    *((name, _NUMBERS, None) for name in ("lat", "lon", "lng", "latitude", "longitude")),
    ("birth year", _WHOLE, "{integer: [1900, 2030]}"),
    *(
        (name, _DAYS, "{date: [1900-01-01, 2030-12-31]}")
        for name in ("birth", "born", "dob", "birthdate", "birthday")
    ),
    ("age", _WHOLE, "{integer: [0, 120]}"),
    *((name, _TEXTS, "{values: [female, male, other]}") for name in ("sex", "gender")),
    *(
        (name, _FLAGS, "boolean")
        for name in ("male", "female", "smoker", "is", "has", "ind", "flag", "dead", "alive")
    ),
    *(
        (name, (*_TEXTS, encode.WHOLE), "text")
        for name in ("zip", "zipcode", "postcode", "postal", "plz")
    ),
    *(
        (name, _NUMBERS, "{decimal: [0, 200000], step: 1}")
        for name in ("income", "salary", "wage", "wages", "earnings")
    ),
    *(
        (name, _NUMBERS, "{decimal: [0, 1000], step: 0.01}")
        for name in ("price", "cost", "amount", "fee", "charge")
    ),
    ("year", _WHOLE, "{integer: [1900, 2100]}"),
    ("month", _WHOLE, "{integer: [1, 12]}"),
    *((name, _WHOLE, "{integer: [1, 7]}") for name in ("weekday", "dow")),
    *((name, (encode.WHOLE,), "{integer: [1, 31]}") for name in ("day",)),
    ("time hour", _DAYS, "{timestamp: [2000-01-01, 2031-01-01], step: 1h}"),
    ("hours week", _WHOLE, "{integer: [0, 168]}"),
    ("hour", (encode.WHOLE, UNKNOWN), "{integer: [0, 23]}"),
    ("minute", (encode.WHOLE, UNKNOWN), "{integer: [0, 59]}"),
    ("weight", _NUMBERS, "{decimal: [0, 300], step: 0.1}"),
    ("height", _NUMBERS, "{decimal: [0, 250], step: 0.1}"),
    ("bmi", _NUMBERS, "{decimal: [10, 80], step: 0.1}"),
    *(
        (name, _NUMBERS, "{decimal: [0, 100], step: 0.1}")
        for name in ("percent", "pct", "percentage")
    ),
    *((name, _NUMBERS, "{integer: [0, 20]}") for name in ("children", "kids", "siblings")),
    *((name, _NUMBERS, "{integer: [-120, 1440]}") for name in ("delay",)),
    *(
        (name, (*_DAYS,), "{timestamp: [2000-01-01, 2031-01-01], step: 1s}")
        for name in ("timestamp", "datetime")
    ),
    *(
        (name, (encode.DATE, encode.TEXT, UNKNOWN), "{date: [2000-01-01, 2030-12-31]}")
        for name in ("date",)
    ),
    *(
        (name, _TEXTS, "text")
        for name in (
            *(
                "state",
                "country",
                "city",
                "town",
                "region",
                "county",
                "language",
                "nationality",
                "race",
                "ethnicity",
            ),
            *(
                "education",
                "occupation",
                "job",
                "status",
                "type",
                "category",
                "class",
                "group",
                "code",
                "carrier",
            ),
            *(
                "diagnosis",
                "result",
                "name",
                "origin",
                "dest",
                "destination",
                "manufacturer",
                "model",
                "brand",
            ),
            *(
                "relationship",
                "workclass",
                "marital",
                "department",
                "unit",
                "test",
                "event",
                "clinic",
            ),
        )
    ),
)
_PEOPLE = (
    *(
        "person",
        "patient",
        "subject",
        "user",
        "customer",
        "member",
        "client",
        "respondent",
        "participant",
        "employee",
    ),
    *(
        "student",
        "household",
        "citizen",
        "resident",
        "donor",
        "voter",
        "individual",
        "pupil",
        "driver",
    ),
)
_IDS = ("id", "no", "number", "nr", "key", "uid", "uuid", "code")
_SHOWN = 80  # letters of labels in a comment
_BY_TYPE = {
    encode.BOOLEAN: "boolean",
    encode.TEXT: "text",
    encode.DATE: "{date: [1900-01-01, 2100-12-31]}",
    encode.TIMESTAMP: "{timestamp: [2000-01-01, 2031-01-01], step: 1s}",
    encode.UUID: "{identifier: true}",
}
HINTS = {
    encode.WHOLE: "{integer: [lo, hi]}, {values: [1, 2, 3]} or {identifier: true}",
    encode.FLOAT: "{decimal: [lo, hi], step: 0.01}",
    encode.DECIMAL: "{decimal: [lo, hi], step: 0.01}",
    encode.TEXT: "{values: [a, b, c]} or text",
    encode.DATE: "{date: [first, last]}",
    encode.TIMESTAMP: "{timestamp: [first, last], step: 1s}",
    UNKNOWN: "{integer: [lo, hi]}, {values: [a, b]}, text, ...",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A declaration (YAML), None for a column that is better left out; and where it comes from."""

    declaration: str | None
    why: str


def of_name(name: str, family: str) -> Suggestion | None:
    """Suggest what columns of such a name and kind usually hold."""
    words = words_of(name)
    if is_identifier(words):
        return Suggestion(declaration="{identifier: true}", why="from the name: check")
    for pattern, families, declaration in _NAMES:
        if family in families and set(pattern.split()) <= set(words):
            why = (
                "from the name: check"
                if declaration
                else "identifies people: nobody needs to ask about it"
            )
            return Suggestion(declaration=declaration, why=why)
    return None


def of_type(family: str) -> Suggestion | None:
    """Suggest what a type alone allows to say."""
    declaration = _BY_TYPE.get(family)
    return (
        None
        if declaration is None
        else Suggestion(declaration=declaration, why="from the type: check")
    )


def owner_among(columns: Iterable[str]) -> str | None:
    """The column whose name says that it tells people apart: person_id before id."""
    ids = [column for column in columns if is_identifier(words_of(column))]
    people = [column for column in ids if set(words_of(column)) & set(_PEOPLE)]
    plain = [column for column in ids if words_of(column) == ["id"]]
    return next(iter([*people, *plain]), None)


def words_of(name: str) -> list[str]:
    """birthDate, birth_date and BIRTH-DATE are birth, date."""
    split = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    return [word.lower() for word in re.split(r"[^A-Za-z0-9]+", split) if word]


def is_identifier(words: list[str]) -> bool:
    """id, person_id, patientNumber: what ends as names of identifiers do; a code or a number alone
    is none.
    """
    if not words or words[-1] not in _IDS:
        return words in (["subject"], ["pid"], ["userid"], ["uid"], ["patientid"], ["personid"])
    return words[-1] in ("id", "uid", "uuid") or bool(set(words[:-1]) & set(_PEOPLE))


# --- constraints that a database declares ---------------------------------------------------------

_NAME = r'\(*"?(\w+)"?\)*'
_NUMBER = r"\(*'?(-?\d+(?:\.\d+)?)'?\)*"


def of_checks(checks: Iterable[str], families: Mapping[str, str]) -> dict[str, Suggestion]:
    """Ranges and lists of CHECK constraints: x >= 0 AND x <= 120, x BETWEEN 0 AND 120, x IN ('a',
    'b').
    """
    low: dict[str, str] = {}
    high: dict[str, str] = {}
    listed: dict[str, list[str]] = {}
    for check in checks:
        text = re.sub(r"::[a-z ]+(\[\])?", "", check)
        for column, first, last in re.findall(
            rf"{_NAME}\s+BETWEEN\s+{_NUMBER}\s+AND\s+{_NUMBER}", text, re.IGNORECASE
        ):
            low[column], high[column] = first, last
        low.update(re.findall(rf"{_NAME}\s*>=\s*{_NUMBER}", text))
        high.update(re.findall(rf"{_NAME}\s*<=\s*{_NUMBER}", text))
        inside = rf"{_NAME}\s+(?:IN\s*\(|=\s*ANY\s*\(+ARRAY\[)([^\])]*)"
        for column, values in re.findall(inside, text, re.IGNORECASE):
            listed[column] = re.findall(r"'((?:[^']|'')*)'", values) or re.findall(r"-?\d+", values)
    found = {}
    for column, family in families.items():
        if listed.get(column):
            found[column] = of_values(
                [value.replace("''", "'") for value in listed[column]], "from CHECK"
            )
        elif column in low and column in high:
            found[column] = Suggestion(
                declaration=ranged(low[column], high[column], family), why="from CHECK"
            )
    return found


def of_values(values: Iterable[str], why: str) -> Suggestion:
    """A list of values, quoted where YAML needs it."""
    return Suggestion(declaration=f"{{values: [{', '.join(map(_scalar, values))}]}}", why=why)


def of_labels(labels: Mapping[str, str]) -> Suggestion:
    """The codes that a file labels, with what they mean."""
    meant = ", ".join(f"{code} {' '.join(label.split())}" for code, label in labels.items())
    shown = meant if len(meant) <= _SHOWN else f"{meant[:_SHOWN]}..."
    return of_values(labels, f"from the labels ({shown}): check that every value has one")


def ranged(low: str, high: str, family: str) -> str:
    """A range as a declaration: of whole numbers, unless the column or an end has decimals."""
    if family in (encode.FLOAT, encode.DECIMAL) or "." in low + high:
        places = max((len(end.partition(".")[2]) for end in (low, high)), default=0)
        return f"{{decimal: [{low}, {high}], step: {'0.01' if places <= 2 else f'1e-{places}'}}}"
    return f"{{integer: [{low}, {high}]}}"


def _scalar(value: str) -> str:
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_ .-]*", value) and value.lower() not in (
        "true",
        "false",
        "null",
    ):
        return value.strip()
    return (
        value if re.fullmatch(r"-?(0|[1-9][0-9]*)", value) else "'" + value.replace("'", "''") + "'"
    )
