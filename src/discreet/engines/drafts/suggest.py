"""Suggest what a column may contain, from its name, its type, or the constraints of its database.
Never from values.

A small table of our own: names that many data sets share, and what such columns usually hold. Every
suggestion says where it comes from, and the curator checks it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from discreet.engines.duckdb.preparing import encode

UNKNOWN = "unknown"  # the family of a column of a CSV file, whose type nobody declares
_NUMBERS = (encode.WHOLE, encode.FLOAT, encode.DECIMAL, UNKNOWN)
_WHOLE = (encode.WHOLE, encode.FLOAT, UNKNOWN)
_TEXTS = (encode.TEXT, UNKNOWN)
_DAYS = (encode.DATE, encode.TIMESTAMP, encode.TEXT, UNKNOWN)
_FLAGS = (encode.BOOLEAN, encode.WHOLE, UNKNOWN)

# names (each of one or more words, all of which are in a column's name); the kinds of columns; the
# declaration, None for what is better left out
_NAMES: tuple[tuple[str, tuple[str, ...], str | None], ...] = (
    (
        "email, e mail, phone, telephone, mobile, telefon, ssn, passport, iban, ip, login",
        _TEXTS,
        None,
    ),
    ("address, street, adresse, strasse, straße", _TEXTS, None),
    ("first name, last name, full name, middle name, given name, family name", _TEXTS, None),
    ("maiden name, surname, lastname, firstname, vorname, nachname, nombre", _TEXTS, None),
    ("lat, lon, lng, long, latitude, longitude", _NUMBERS, None),
    ("birth year, geburtsjahr", _WHOLE, "{integer: [1900, 2030]}"),
    ("birth, born, dob, birthdate, birthday", _DAYS, "{date: [1900-01-01, 2030-12-31]}"),
    ("geburtsdatum, geboren", _DAYS, "{date: [1900-01-01, 2030-12-31]}"),
    ("age, alter, edad, yrs, years", _WHOLE, "{integer: [0, 120]}"),
    ("sex, gender", _TEXTS, "{values: [female, male, other]}"),
    ("geschlecht", _TEXTS, "{values: [m, w, d]}"),
    ("raucher", _TEXTS, "{values: [ja, nein]}"),
    ("male, female, is, has, ind, flag", _FLAGS, "boolean"),
    ("smoker, dead, alive, deceased, died, survived", _FLAGS, "boolean"),
    ("married, pregnant, insured, employed, retired", _FLAGS, "boolean"),
    ("zip, zipcode, postcode, postal, plz", (*_TEXTS, encode.WHOLE), "text"),
    ("income, salary, earnings", _NUMBERS, "{decimal: [0, 200000], step: 1}"),
    ("einkommen, gehalt, revenu, salaire", _NUMBERS, "{decimal: [0, 200000], step: 1}"),
    ("wage, wages", _NUMBERS, "{decimal: [0, 10000], step: 0.01}"),
    ("price, cost, amount, fee, charge", _NUMBERS, "{decimal: [0, 1000], step: 0.01}"),
    ("preis, kosten, betrag, prix", _NUMBERS, "{decimal: [0, 1000], step: 0.01}"),
    ("year, jahr", _WHOLE, "{integer: [1900, 2100]}"),
    ("month, monat, mois", _WHOLE, "{integer: [1, 12]}"),
    ("weekday, dow", _WHOLE, "{integer: [1, 7]}"),
    ("day", (encode.WHOLE,), "{integer: [1, 31]}"),
    ("time hour", _DAYS, "{timestamp: [2000-01-01, 2031-01-01], step: 1h}"),
    ("hours week", _WHOLE, "{integer: [0, 168]}"),
    ("hour", (encode.WHOLE, UNKNOWN), "{integer: [0, 23]}"),
    ("minute", (encode.WHOLE, UNKNOWN), "{integer: [0, 59]}"),
    ("weight, gewicht", _NUMBERS, "{decimal: [0, 300], step: 0.1}"),
    ("height, größe", _NUMBERS, "{decimal: [0, 250], step: 0.1}"),
    ("bmi", _NUMBERS, "{decimal: [10, 80], step: 0.1}"),
    ("percent, pct, percentage", _NUMBERS, "{decimal: [0, 100], step: 0.1}"),
    ("children, kids, siblings, kinder", _NUMBERS, "{integer: [0, 20]}"),
    ("delay", _NUMBERS, "{integer: [-120, 1440]}"),
    ("timestamp, datetime", _DAYS, "{timestamp: [2000-01-01, 2031-01-01], step: 1s}"),
    (
        "date, datum, fecha",
        (encode.DATE, encode.TEXT, UNKNOWN),
        "{date: [2000-01-01, 2030-12-31]}",
    ),
    ("state, country, city, town, region, county, district, location", _TEXTS, "text"),
    ("neighborhood, neighbourhood, land, stadt, ort, pays, ville, ciudad", _TEXTS, "text"),
    (
        "language, nationality, race, ethnicity, marital, familienstand, relationship",
        _TEXTS,
        "text",
    ),
    ("education, occupation, job, workclass, beruf, sector, industry", _TEXTS, "text"),
    ("department, abteilung, unit, clinic, ward", _TEXTS, "text"),
    ("diagnosis, diagnose, result, test, event, outcome, reason", _TEXTS, "text"),
    ("status, type, category, class, group, code, name", _TEXTS, "text"),
    ("carrier, origin, dest, destination, manufacturer, model, brand, product", _TEXTS, "text"),
)
_PEOPLE = {
    "person", "patient", "subject", "user", "customer", "member", "client", "respondent", "participant",
    "employee", "student", "household", "citizen", "resident", "donor", "voter", "individual", "pupil",
    "driver", "patienten", "kunden", "mitglied", "teilnehmer", "personen", "versicherten", "paciente",
}  # fmt: skip
_IDS = ("id", "no", "number", "num", "nr", "nummer", "key", "uid", "uuid", "code")
_OF_ROWS = (["rownames"], ["rowname"], ["rownum"], ["row", "number"], ["index"], ["unnamed", "0"])
FROM_THE_NAME = "from the name: check"
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
    if words in _OF_ROWS:
        return Suggestion(declaration=None, why="numbers the rows: nobody needs to ask about it")
    if is_identifier(words):
        return Suggestion(declaration="{identifier: true}", why=FROM_THE_NAME)
    for names, families, declaration in _NAMES:
        if family in families and any(
            set(each.split()) <= set(words) for each in names.split(", ")
        ):
            why = (
                FROM_THE_NAME if declaration else "identifies people: nobody needs to ask about it"
            )
            return Suggestion(declaration=declaration, why=why)
    return None


def of_type(family: str) -> Suggestion | None:
    """Suggest what a type alone allows to say."""
    declaration = _BY_TYPE.get(family)
    if declaration is None:
        return None
    return Suggestion(declaration=declaration, why="from the type: check")


def owner_among(columns: Iterable[str]) -> str | None:
    """Return the column whose name says that it tells people apart: person_id before id."""
    ids = [column for column in columns if is_identifier(words_of(column))]
    people = [column for column in ids if _PEOPLE.intersection(words_of(column))]
    plain = [column for column in ids if words_of(column) == ["id"]]
    return next(iter([*people, *plain]), None)


def words_of(name: str) -> list[str]:
    """Return the words of a name: birthDate, birth_date and BIRTH-DATE are birth, date."""
    split = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    return [word.lower() for word in re.split(r"[\W_]+", split) if word]


def is_identifier(words: list[str]) -> bool:
    """Return True for a name that ends as names of identifiers do: id, person_id, patientNumber; a
    code or a number alone is none.
    """
    if not words or words[-1] not in _IDS:
        return words in (["subject"], ["pid"], ["userid"], ["uid"], ["patientid"], ["personid"])
    whose = set(words[:-1])
    return words[-1] in ("id", "uid", "uuid") or "id" in whose or bool(whose & _PEOPLE)


# --- constraints that a database declares ---------------------------------------------------------

_NAME = r'\(*"?(\w+)"?\)*'
_NUMBER = r"\(*'?(-?\d+(?:\.\d+)?)'?\)*"


def of_checks(checks: Iterable[str], families: Mapping[str, str]) -> dict[str, Suggestion]:
    """Return ranges and lists of CHECK constraints: x >= 0 AND x <= 120, x BETWEEN 0 AND 120, x IN
    ('a', 'b').
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
                declaration=range_of(low[column], high[column], family), why="from CHECK"
            )
    return found


def of_values(values: Iterable[str], why: str) -> Suggestion:
    """Return a list of values, quoted where YAML needs it."""
    return Suggestion(declaration=f"{{values: [{', '.join(map(_scalar, values))}]}}", why=why)


def of_labels(labels: Mapping[str, str]) -> Suggestion:
    """Return the codes that a file labels, with what they mean."""
    meant = ", ".join(f"{code} {' '.join(label.split())}" for code, label in labels.items())
    shown = meant if len(meant) <= _SHOWN else f"{meant[:_SHOWN]}..."
    return of_values(labels, f"from the labels ({shown}): check that every value has one")


def range_of(low: str, high: str, family: str) -> str:
    """Return a range as a declaration: of whole numbers, unless the column or an end has
    decimals.
    """
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
    if re.fullmatch(r"-?(0|[1-9][0-9]*)", value):
        return value
    return "'" + value.replace("'", "''") + "'"
