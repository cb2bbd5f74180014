"""Reads what a policy says that a column may contain, from YAML to a domain.

The one place where the words `integer`, `decimal`, `values`, ... of a policy file become values of
domain.py.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from fractions import Fraction
from functools import partial
from typing import Any, cast

from discreet.policy.cells import cells
from discreet.policy.document import List, Map, Node, Reader, Scalar, rational
from discreet.policy.domain import (
    DOMAINS,
    MOST_LETTERS,
    Booleans,
    Categories,
    Column,
    Dates,
    Decimals,
    Domain,
    Identifier,
    Integers,
    Texts,
    Timestamps,
)
from discreet.policy.reading import Reading, date_format

HIDDEN = "#"  # names that begin with it are ours: "#owner" is whose row it is, and no question can name it

_KINDS = tuple(domain.yaml for domain in DOMAINS)
_COLUMN_KEYS = (*_KINDS, "step", "letters", "nullable", "format", "cuts", "single")
_BARE: dict[str, Domain] = {"text": Texts(), "identifier": Identifier(), "boolean": Booleans()}
_A_DOMAIN = (
    "one of {integer: [lo, hi]}, {decimal: [lo, hi], step: s}, {values: [a, b]}, {boolean: true}, "
    "{date: [first, last]}, {timestamp: [first, last], step: 1s}, text or {identifier: true}"
)
_STEPS = {
    "decimal": "{decimal: [0, 1000], step: 0.01}",
    "timestamp": "{timestamp: [2024-01-01, 2025-01-01], step: 1s}",
}
_ENDS = {
    "integer": ("whole number", "[0, 120]"),
    "decimal": ("number", "[0, 1000]"),
    "date": ("day", "[2024-01-01, 2024-12-31]"),
    "timestamp": ("moment", "[2024-01-01, 2025-01-01 12:00:00]"),
}


def check_names(reader: Reader, node: Node | None, what: str, path: tuple[str, ...]) -> None:
    """Report names that an engine could not tell apart, or that a question could confuse with
    ours.
    """
    seen: dict[str, str] = {}
    for name, (key, _) in (node.entries if isinstance(node, Map) else {}).items():
        label = ".".join((*path, name))
        if not name.strip() or not name.isprintable() or any(mark in name for mark in "\"'`;"):
            reader.problem(
                key, f"{what} '{label}': write the name with letters, digits and underscores."
            )
        elif key.value is None:
            reader.problem(
                key, f"{what} {label}: {key} is nothing in YAML. Quote it if it is a name."
            )
        elif name.startswith(HIDDEN):
            reader.problem(
                key,
                f"{label}: names that begin with {HIDDEN} are kept for discreet. Rename the {what}.",
            )
        elif what == "table" and (name.startswith(".") or any(mark in name for mark in "/\\*?[]")):
            reader.problem(key, f"table {label}: the name must also be that of a file or folder.")
        elif name.lower() in seen:
            reader.problem(
                key, f"{label} and {seen[name.lower()]} differ only by case. Rename one."
            )
        seen.setdefault(name.lower(), name)


def columns(reader: Reader, table: str, node: Node | None, read: Reading) -> dict[str, Column]:
    """Read the columns of a table; `read` says how its source is written."""
    entries = reader.fields(node, f"{table}.columns", ("tables", table, "columns"), None)
    check_names(reader, node, "column", (table,))
    found = (_column(reader, table, name, value) for name, value in entries.items())
    known = {column.name: column for column in found if column is not None}
    for column in known.values() if read.fold else ():
        if isinstance(column.domain, Categories) and _alike(column.domain):
            message = f"{table}.{column.name} lists values that differ only by case, which `fold: case` would confuse."
            reader.problem(entries[column.name], f"{message} Remove either.")
    return known


def _alike(domain: Categories) -> bool:
    return len({str(value).casefold() for value in domain.values}) < domain.size


def _column(reader: Reader, table: str, name: str, node: Node) -> Column | None:
    what = f"{table}.{name}"
    if isinstance(node, Scalar) and node.text in _BARE:
        return Column(name=name, domain=_BARE[node.text])
    if not isinstance(node, Map):
        reader.wrong(node, what, _A_DOMAIN)
        return None
    fields = reader.fields(node, what, ("tables", table, "columns", name), _COLUMN_KEYS)
    kinds = [key for key in fields if key in _KINDS]
    if len(kinds) != 1:
        # otherwise the mistyped kind is a problem already
        if kinds or len(fields) == len(node.entries):
            reader.problem(node, f"{what} must say one thing that it may contain: {_A_DOMAIN}.")
        return None
    kind = kinds[0]
    nullable = reader.flag(fields.get("nullable"), f"{what}.nullable") or False
    if nullable and kind == "identifier":
        reader.problem(
            fields["nullable"],
            f"{what}: an identifier is never a group key, so `nullable` says nothing. Remove it.",
        )
    if "step" in fields and kind not in ("decimal", "timestamp"):
        reader.problem(
            fields["step"], f"{what}: only decimal and timestamp have a step. Remove it."
        )
    domain = _domain(reader, what, kind, fields[kind], fields.get("step"))
    if "letters" in fields:
        domain = _letters(reader, what, kind, fields["letters"])
    written = date_format(reader, what, kind, fields["format"]) if "format" in fields else None
    if domain is None:
        return None
    cut = cells(reader, what, domain, fields, partial(_end, kind))
    return Column(name=name, domain=domain, nullable=nullable, format=written, cells=cut)


def _domain(reader: Reader, what: str, kind: str, node: Node, step: Node | None) -> Domain | None:
    if kind in _BARE:
        if reader.flag(node, f"{what}.{kind}") is False:
            reader.problem(
                node, f"{what}: {kind} can only be true. Say what the column contains instead."
            )
        return _BARE[kind]
    if kind == "values":
        return _categories(reader, what, node)
    ends = _ends(reader, what, kind, node)
    grid = Fraction(1)
    if kind in _STEPS:
        found = _step(reader, what, kind, node, step)
        if found is None:
            return None
        grid = found
    if ends is None:
        return None
    try:
        return _range(kind, *ends, grid)
    except ValueError as error:
        reader.problem(node, f"{what}: {error}.")
        return None


def _letters(reader: Reader, what: str, kind: str, node: Node) -> Domain | None:
    if kind != "text":
        reader.problem(node, f"{what}: only text has a number of letters. Remove it.")
        return None
    letters = reader.whole(node, f"{what}.letters")
    if letters is not None and letters > MOST_LETTERS:
        reader.problem(node, f"{what}.letters must be at most {MOST_LETTERS}, not {letters}.")
        return None
    return None if letters is None else Texts(letters=letters)


def _step(reader: Reader, what: str, kind: str, node: Node, step: Node | None) -> Fraction | None:
    if step is None:
        reader.problem(
            node, f"{what} needs a step, the finest difference that is kept: {_STEPS[kind]}."
        )
        return None
    if kind == "decimal":
        return reader.number(step, f"{what}.step")
    return reader.seconds(step, f"{what}.step")


def _range(kind: str, lo: Any, hi: Any, step: Fraction) -> Domain:
    if kind == "integer":
        return Integers(lo=int(lo), hi=int(hi))
    if kind == "decimal":
        return Decimals(lo=lo, hi=hi, step=step)
    if kind == "date":
        return Dates(lo=lo, hi=hi)
    return Timestamps(lo=lo, hi=hi, step=step)


def _ends(reader: Reader, what: str, kind: str, node: Node) -> tuple[Any, Any] | None:
    an_end, example = _ENDS[kind]
    if not isinstance(node, List) or len(node.items) != 2:
        reader.wrong(node, f"{what}.{kind}", f"a first and a last {an_end}, {example}")
        return None
    ends = [_end(kind, item.text) if isinstance(item, Scalar) else None for item in node.items]
    for end, item in zip(ends, node.items, strict=True):
        if end is None:
            reader.wrong(item, f"{what}.{kind}: an end", f"a {an_end}, as in {example}")
    return None if None in ends else (ends[0], ends[1])


def _end(kind: str, text: str) -> Fraction | date | datetime | None:
    try:
        if kind == "date":
            return date.fromisoformat(text)
        if kind == "timestamp":
            moment = datetime.fromisoformat(text)
            return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    except ValueError:
        return None
    value = rational(text)
    return None if value is None or (kind == "integer" and value.denominator != 1) else value


def _categories(reader: Reader, what: str, node: Node) -> Categories | None:
    if not isinstance(node, List) or not node.items:
        reader.wrong(node, f"{what}.values", "a list of all the values, [F, M, X]")
        return None
    values: dict[str | int, None] = {}
    before = len(reader.problems)
    for item in node.items:
        value = item.value if isinstance(item, Scalar) else ()
        if value is None:
            reader.problem(
                item,
                f"{what}: NULL is not a value. Remove it, and say `nullable: true` if it is meant.",
            )
        elif isinstance(value, bool):
            reader.problem(
                item, f'{what}: quote "{item}" to make it a string, or declare {{boolean: true}}.'
            )
        elif not isinstance(value, (str, int)):
            reader.problem(
                item,
                f'{what}: a value is a string or a whole number. Quote "{item}", or use decimal.',
            )
        elif isinstance(value, int) and abs(value) >= 2**63:
            reader.problem(
                item, f"{what}: {value} does not fit in 64 bits; quote it to make it a string."
            )
        elif value in values:
            reader.problem(item, f"{what}: {value} is listed twice.")
        else:
            values[value] = None
    if len({type(value) for value in values}) > 1:
        reader.problem(
            node,
            f"{what}: the list mixes numbers and strings. Quote the numbers if they are names.",
        )
    if len(reader.problems) == before:
        return Categories(values=cast("tuple[str, ...]", tuple(values)))
    return None
