"""Tables and columns as JSON, from the policy alone."""

from __future__ import annotations

from typing import Any

from discreet.curator import Curator
from discreet.policy.domain import (
    Booleans,
    Categories,
    Column,
    Dates,
    Decimals,
    Identifier,
    Integers,
    Texts,
    Timestamps,
    written,
)


def tables_of(curator: Curator) -> dict[str, Any]:
    """Return what an analyst may know of the data."""
    policy, public = curator.policy, curator.public_columns()
    tables = []
    for table in policy.tables.values():
        if table.public:
            columns = [_public(field.name, str(field.type)) for field in public.get(table.name, ())]
            limits: dict[str, Any] = {"owner": None, "max_rows": None, "max_groups": None}
        else:
            columns = [_private(column) for column in table.columns.values()]
            limits = {"owner": table.visible_owner, "max_rows": table.max_rows, "max_groups": table.max_groups}
        tables.append({"name": table.name, "public": table.public, **limits, "columns": columns})
    return {"database": policy.path.stem, "unit": policy.unit, "tables": tables}


def _public(name: str, kind: str) -> dict[str, Any]:
    told = {"kind": kind, "says": f"{kind}, public", "nullable": True}
    return {"name": name, **told, "values": None, "range": None, "step": None, "key": "public"}


def _private(column: Column) -> dict[str, Any]:
    values, ends, step = _domain(column)
    domain = column.domain
    key = "never" if isinstance(domain, Identifier) else "unknown" if isinstance(domain, Texts) else "public"
    return {
        "name": column.name,
        "kind": domain.yaml,
        "says": _says(domain.yaml, values, ends, step) + (", or missing" if column.nullable else ""),
        "nullable": column.nullable,
        "values": values,
        "range": ends,
        "step": step,
        "key": key,
    }


def _domain(column: Column) -> tuple[list[Any] | None, list[Any] | None, str | None]:
    """Return a column's values, or its ends and its step."""
    match column.domain:
        case Integers(lo=low, hi=high):
            return None, [str(low), str(high)], "1"
        case Decimals(lo=lowest, hi=highest, step=step):
            return None, [written(lowest), written(highest)], written(step)
        case Dates(lo=first, hi=last):
            return None, [first.isoformat(), last.isoformat()], "1 day"
        case Timestamps(lo=begin, hi=end, step=every):
            return None, [begin.isoformat(), end.isoformat()], f"{written(every)} s"
        case Categories(values=values):
            return list(values), None, None
        case Booleans():
            return [True, False], None, None
    return None, None, None


def _says(kind: str, values: list[Any] | None, ends: list[Any] | None, step: str | None) -> str:
    if ends is not None:
        return f"{kind} from {ends[0]} to {ends[1]}" + (f", in steps of {step}" if step not in ("1", "1 day") else "")
    if kind == "values" and values is not None:
        shown = ", ".join(map(str, values[:8]))
        return f"one of {shown}" + (f" and {len(values) - 8} more" if len(values) > 8 else "")
    return {"identifier": "an identifier: to join on, never shown", "text": "a text that is not public"}.get(kind, kind)
