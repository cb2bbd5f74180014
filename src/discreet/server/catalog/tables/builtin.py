"""The contents of every new Postgres 15: relations, types, casts, words, as in builtin.tsv."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

PG_CATALOG = "pg_catalog"
INFORMATION_SCHEMA = "information_schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A table or view of the system: its columns and their Postgres types, in order."""

    schema: str
    name: str
    oid: int
    kind: str
    columns: Mapping[str, str]

    @property
    def stored(self) -> str:
        """The name of the table that stands for it in the catalog's own database."""
        return self.name if self.schema == PG_CATALOG else f"{self.schema}.{self.name}"


@cache
def _sections() -> dict[str, list[dict[str, str]]]:
    text = resources.files(__package__).joinpath("builtin.tsv").read_text(encoding="utf-8")
    found: dict[str, list[dict[str, str]]] = {}
    columns: list[str] = []
    rows: list[dict[str, str]] = []
    for line in text.splitlines():
        cells = line.split("\t")
        if line.startswith("= "):
            columns = cells[1:]
            rows = []
            found[cells[0][2:]] = rows
        elif not line.startswith("# "):
            rows.append(dict(zip(columns, cells, strict=True)))
    return found


@cache
def relations() -> dict[tuple[str, str], Relation]:
    """Return every relation of the two system schemas, by schema and name."""
    return {
        (row["schema"], row["name"]): Relation(
            schema=row["schema"],
            name=row["name"],
            oid=int(row["oid"]),
            kind=row["kind"],
            columns=dict(each.split(":") for each in row["columns"].split(" ")),
        )
        for row in _sections()["relation"]
    }


def rows(section: str) -> list[dict[str, str]]:
    """Return the rows of pg_type, pg_proc, pg_cast, pg_opclass or keyword, as texts."""
    return _sections()[section]


@cache
def type_oids() -> dict[str, int]:
    """Return the number of each type, by its name: int4, text, _text."""
    return {row["typname"]: int(row["oid"]) for row in rows("pg_type")}


@cache
def type_names() -> dict[int, str]:
    """Return the name of each type, by its number."""
    return {number: name for name, number in type_oids().items()}
