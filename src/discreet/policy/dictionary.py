"""List what everybody may know of the tables: columns, types, ranges, values and keys. From the
policy, never from data.

`discreet tables`, `information_schema`, `SHOW` and `DESCRIBE` and the catalog of the Postgres door
all tell this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

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
    write_number,
)
from discreet.policy.owners import EachRow, Through, Together
from discreet.policy.policy import Policy, Table

if TYPE_CHECKING:
    import pyarrow as pa

Groups = Literal["public", "unknown", "never"]
_SHOWN = 8  # values of a list that a sentence names


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """A column. `groups` says how it groups: all values public, those that enough people share, or
    not at all.
    """

    name: str
    type: str  # in the words of SQL
    contains: str  # in a sentence
    nullable: bool
    groups: Groups
    owner: bool = False
    values: tuple[Any, ...] | None = None
    range: tuple[str, str] | None = None
    step: str | None = None

    @property
    def key(self) -> str:
        """The column's role in its table: owner, identifier, or none."""
        if self.owner:
            return "owner"
        if self.groups == "never":
            return "identifier"
        return ""

    def as_json(self) -> dict[str, Any]:
        """Return the column for programs."""
        return {
            "name": self.name,
            "type": self.type,
            "contains": self.contains,
            "nullable": self.nullable,
            "groups": self.groups,
            "key": self.key or None,
            "values": None if self.values is None else list(self.values),
            "range": None if self.range is None else list(self.range),
            "step": self.step,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A table, with its columns in their order."""

    name: str
    public: bool
    comment: str
    columns: tuple[Attribute, ...]
    max_rows: int | None
    max_groups: int | None

    @property
    def primary_key(self) -> str | None:
        """The owner's column, where nobody has more than one row."""
        owners = [column.name for column in self.columns if column.owner]
        return owners[0] if owners and self.max_rows == 1 else None

    def as_json(self) -> dict[str, Any]:
        """Return the table for programs."""
        return {
            "name": self.name,
            "public": self.public,
            "comment": self.comment,
            "max_rows": self.max_rows,
            "max_groups": self.max_groups,
            "columns": [column.as_json() for column in self.columns],
        }


def dictionary(policy: Policy, public: Mapping[str, pa.Schema]) -> tuple[Listing, ...]:
    """List the policy's tables in their order; `public` has the columns of public ones."""
    return tuple(
        _public(name, public[name]) if table.public else _private(table, policy)
        for name, table in policy.tables.items()
    )


def _public(name: str, schema: pa.Schema) -> Listing:
    columns = (
        Attribute(
            name=field.name,
            type=type_of_arrow(field.type),
            contains="public",
            nullable=True,
            groups="public",
        )
        for field in schema
    )
    said = "public: asked about for free, and exactly"
    return Listing(
        name=name, public=True, comment=said, columns=tuple(columns), max_rows=None, max_groups=None
    )


def _private(table: Table, policy: Policy) -> Listing:
    owner = table.visible_owner
    columns = tuple(
        _attribute(column, owner=column.name == owner) for column in table.columns.values()
    )
    if owner is not None and owner not in table.columns:
        said = _owner_words(table, policy)
        own = Attribute(
            name=owner, type="text", contains=said, nullable=False, groups="never", owner=True
        )
        columns = (own, *columns)
    at_most = "one row" if table.max_rows == 1 else f"at most {table.max_rows} rows"
    through = (
        f", through {table.owner.on} of {table.owner.table}"
        if isinstance(table.owner, Through)
        else ""
    )
    return Listing(
        name=table.name,
        public=False,
        comment=f"private: {at_most} of each {policy.unit}{through}, answered with noise",
        columns=columns,
        max_rows=table.max_rows,
        max_groups=table.max_groups,
    )


def _owner_words(table: Table, policy: Policy) -> str:
    match table.owner:
        case Together(columns=columns):
            return f"the {policy.unit}, whom {' and '.join(columns)} name together: for joins, never shown"
        case EachRow():
            return f"the {policy.unit}: every row is another's"
    return f"the {policy.unit}: for joins, never shown"


def _attribute(column: Column, *, owner: bool) -> Attribute:
    domain = column.domain
    values, ends, step = _limits(column)
    groups: Groups = "never" if owner or isinstance(domain, Identifier) else "public"
    return Attribute(
        name=column.name,
        type=type_of(column),
        contains=_sentence(column, values, ends, step),
        nullable=column.nullable,
        groups="unknown" if isinstance(domain, Texts) and not owner else groups,
        owner=owner,
        values=values,
        range=ends,
        step=step,
    )


def _limits(column: Column) -> tuple[tuple[Any, ...] | None, tuple[str, str] | None, str | None]:
    """Return the values of a column, or its ends and its step."""
    match column.domain:
        case Integers(lo=low, hi=high):
            return None, (str(low), str(high)), "1"
        case Decimals(lo=lowest, hi=highest, step=step):
            return None, (write_number(lowest), write_number(highest)), write_number(step)
        case Dates(lo=first, hi=last):
            return None, (first.isoformat(), last.isoformat()), "1 day"
        case Timestamps(lo=begin, hi=end, step=every):
            return (
                None,
                (begin.isoformat(sep=" "), end.isoformat(sep=" ")),
                f"{write_number(every)} s",
            )
        case Categories(values=values):
            return values, None, None
        case Booleans():
            return (False, True), None, None
    return None, None, None


def _sentence(
    column: Column, values: tuple[Any, ...] | None, ends: tuple[str, str] | None, step: str | None
) -> str:
    domain = column.domain
    if isinstance(domain, Integers) and ends is not None:
        said = f"whole numbers from {ends[0]} to {ends[1]}"
    elif isinstance(domain, Decimals) and ends is not None:
        said = f"numbers from {ends[0]} to {ends[1]} in steps of {step}"
    elif isinstance(domain, Categories) and values is not None:
        shown = ", ".join(str(value) for value in values[:_SHOWN])
        more = f" and {len(values) - _SHOWN} more" if len(values) > _SHOWN else ""
        said = f"one of {shown}{more}"
    elif ends is not None:
        said = f"from {ends[0]} to {ends[1]}"
    elif isinstance(domain, Booleans):
        said = "true or false"
    elif isinstance(domain, Texts):
        said = "text; as a group it is shown only where enough people share it"
    else:
        said = "an identifier: for joins, never shown"
    return f"{said}, or NULL" if column.nullable else said


def type_of(column: Column) -> str:
    """Return the type that answers about a private column have, in the words of SQL."""
    domain = column.domain
    if isinstance(domain, Categories) and isinstance(domain.values[0], int):
        return "bigint"
    if isinstance(domain, Decimals):
        return "double precision" if "/" in write_number(domain.step) else "numeric"
    named = {
        Integers: "bigint",
        Booleans: "boolean",
        Dates: "date",
        Timestamps: "timestamp without time zone",
    }
    return named.get(type(domain), "text")


def type_of_arrow(kind: pa.DataType) -> str:
    """Return the type of a public column, in the words of SQL."""
    import pyarrow as pa

    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"{type_of_arrow(kind.value_type)}[]"
    tests = (
        (pa.types.is_boolean, "boolean"),
        (lambda kind: kind in (pa.int8(), pa.int16(), pa.uint8()), "smallint"),
        (lambda kind: kind in (pa.int32(), pa.uint16()), "integer"),
        (lambda kind: kind in (pa.int64(), pa.uint32()), "bigint"),
        (pa.types.is_integer, "numeric"),
        (pa.types.is_float32, "real"),
        (pa.types.is_floating, "double precision"),
        (pa.types.is_decimal, "numeric"),
        (pa.types.is_date, "date"),
        (pa.types.is_timestamp, "timestamp without time zone"),
    )
    return next((words for test, words in tests if test(kind)), "text")
