"""The tables that statements are about: the kinds of their columns are what the grammar knows of
them.
"""

from __future__ import annotations

Columns = dict[str, str]  # a column's SQL, and its kind: one of KINDS, or id or owner

KINDS = ("number", "category", "flag", "date", "moment", "text")
PRIVATE = ("people", "visits", "labs")

_PEOPLE = {
    "person_id": "owner",
    "age": "number",
    "income": "number",
    "sex": "category",
    "smoker": "flag",
    "born": "date",
    "name": "text",
    "zip": "text",
}
_VISITS = {
    "person_id": "owner",
    "visit_id": "id",
    "day": "date",
    "seen": "moment",
    "cost": "number",
    "clinic": "category",
}
_LABS = {"visit_id": "id", "test": "category", "value": "number"}
_STATES = {"state": "category", "region": "category", "population": "number", "level": "number"}

TABLES: dict[str, dict[str, Columns]] = {
    "town": {
        "people": {**_PEOPLE, "diagnosis": "category", "state": "category"},
        "visits": _VISITS,
        "labs": _LABS,
        "states": _STATES,
    },
    "shop": {
        "people": {**_PEOPLE, "level": "category"},
        "visits": {**_VISITS, "big": "number", "note": "text"},
        "labs": _LABS,
        "states": {**_STATES, "share": "number"},
        "days": {"day": "date", "holiday": "flag", "clinic": "category", "cost": "number"},
    },
}
