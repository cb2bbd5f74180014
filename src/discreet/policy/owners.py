"""Read `owner:` of a table in the policy: which person a row belongs to.

The owner is named by one column, by several columns together, or by a row of another table; or
every row is a person of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from discreet.policy.document import List, Map, Node, Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Through:
    """The owner of a row is the owner of the row of `table` with the same value of `on`."""

    table: str
    on: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """The owner is named by several columns together, such as a hospital and a number that the
    hospital gave.
    """

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EachRow:
    """Every row counts as another person. A person with several rows is only protected as well as a
    group of so many people.
    """


Owner = str | Through | Together | EachRow
OWNER_NAME = "owner"  # the name of the owner in questions, if no single column names it


def owner_of(reader: Reader, name: str, node: Node | None) -> Owner | None:
    """Read `owner:` of a table."""
    if isinstance(node, List):
        return _together(reader, name, node)
    if not isinstance(node, Map):
        column = reader.string(
            node, f"{name}.owner", "a column, row, [a, b] or {through: table, on: column}"
        )
        return EachRow() if column == "row" else column
    fields = reader.fields(node, f"{name}.owner", ("tables", name, "owner"), ("through", "on"))
    missing = [key for key in ("through", "on") if key not in fields]
    if missing:
        reader.problem(
            node,
            f"{name}.owner needs {' and '.join(missing)}: write {{through: table, on: column}}.",
        )
    table = reader.string(fields.get("through"), f"{name}.owner.through", "the name of a table")
    on = reader.string(fields.get("on"), f"{name}.owner.on", "the column that both tables have")
    return Through(table=table, on=on) if table and on else None


def _together(reader: Reader, name: str, node: List) -> Together | None:
    """Read columns that name one person together; None if they are wrong."""
    listed = [
        reader.string(item, f"{name}.owner", "columns, [hospital, patient]") for item in node.items
    ]
    columns = tuple(column for column in listed if column is not None)
    if len(columns) < len(listed):
        return None
    different = {column.lower() for column in columns}
    if len(columns) < 2 or len(different) < len(columns):
        reader.problem(
            node,
            f"{name}.owner lists columns that name one person *together*, such as [hospital, patient_number]: write at "
            "least two different ones. A row about two people cannot be protected for both.",
        )
        return None
    return Together(columns=columns)


def meaning_of(owner: Owner | None) -> object:
    """Return an owner as it goes into the policy's digest."""
    match owner:
        case Through(table=table, on=on):
            return [table, on]
        case Together(columns=columns):
            return {"together": list(columns)}
        case EachRow():
            return {"each": "row"}
        case _:
            return owner
