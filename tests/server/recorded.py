"""What real clients sent to a real Postgres, each with values for its parameters."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

_ALL = json.loads((Path(__file__).parent / "catalog.json").read_text())
# SET, SHOW, RELEASE and several statements at once are the wire's.
_NOT_QUERIES = re.compile(
    r"\s*(set|show|release|reset|discard)\b|.*;\s*\S", re.IGNORECASE | re.DOTALL
)
_GIVEN = {
    "relkind": "r",
    "relname": "people",
    "contype": "p",
    "relpersistence": "t",
    "attidentity": "",
    "attcollation": 0,
    "attnum": 0,
    "objsubid": 0,
    "amname": "btree",
    "table_name": "people",
    "table_schema": "public",
}
_COMPARED = re.compile(
    r"(\w+)\s*(?:=|!=|<>|IN|LIKE|>|NOT LIKE|OPERATOR\(pg_catalog\.~\))\s*(?:ANY\s*)?\(?"
)
_BESIDE: tuple[tuple[str, Any], ...] = (  # what stands before the parameter, and what to give
    (r"to_regtype\($", "text"),
    (r"current_setting\($", "default_table_access_method"),
    (r"ord \+ $|generate_subscripts\([^()]*$", 1),
    (r"(pg_get_indexdef|pg_get_constraintdef)\([^()]*$", True),
    (r"attnum = $", 0),
    (r"OPERATOR\(pg_catalog\.~\) $", "^(people)$"),
)


def queries() -> list[tuple[str, str]]:
    """Statements that ask for rows, each with the client that sent it."""
    return [(each["client"], each["sql"]) for each in _ALL if not _NOT_QUERIES.match(each["sql"])]


def others() -> list[str]:
    """Statements of clients that were not recorded: Npgsql, Rails, Django, DBeaver, DataGrip,
    Metabase, Prisma, ...
    """
    found: list[str] = json.loads((Path(__file__).parent / "catalog_others.json").read_text())
    return found


def about(sql: str, oid: int) -> str:
    """The statement with the number of the table `people`, where N stands for it."""
    return re.sub(r"\bN\b", str(oid), sql)


def parameters(sql: str, oid: int) -> list[Any]:
    """A sensible value for each of $1, $2, ..."""
    most = max((int(place) for place in re.findall(r"\$(\d+)", sql)), default=0)
    return [_parameter(sql, place, oid) for place in range(1, most + 1)]


def _parameter(sql: str, place: int, oid: int) -> Any:
    found = re.search(rf"\${place}(?!\d)", sql)
    assert found is not None
    before, after = sql[: found.start()], sql[found.end() :]
    if before.rfind("json_build_object(") > before.rfind(") AS"):
        return "a" if before.rstrip().endswith("=") else f"key {place}"
    if after.startswith(" AS REGCLASS"):
        return "pg_catalog.pg_constraint"
    columns = _COMPARED.findall(before)
    column = columns[-1] if columns else ""
    if re.search(r"ANY\s*\($", before):
        return ["r"] if column == "relkind" else ["public"]
    if column in ("conrelid", "indrelid"):
        return oid
    if column == "nspname":
        return (
            "pg_catalog"
            if "!=" in before[-6:]
            else "pg/_"
            if "NOT LIKE" in before[-12:]
            else "public"
        )
    for pattern, value in _BESIDE:
        if re.search(pattern, before):
            return value
    return _GIVEN.get(column, "people")
