"""Find the kind that an expression of a tree has in Postgres: whole number, numeric, text, ...

Its SQL depends on it: Postgres divides whole numbers in one way and numerics in another, and has no
minimum of booleans. Its own parser knows the types, but only after the SQL is written. Here they
follow from the tree and from the snapshot's columns. None means that the kind is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime
from typing import Literal

from discreet.algebra import (
    Call,
    Careful,
    Case,
    Cast,
    Column,
    Constant,
    ConstantTable,
    Exists,
    Expression,
    Fold,
    Interval,
    Numbers,
    Over,
    PerPerson,
    PublicScan,
    Query,
    Scan,
    Select,
    Stage,
    UnionAll,
)

Kind = Literal[
    "whole", "numeric", "float", "text", "flag", "date", "timestamp", "interval", "other"
]
# for each table of a snapshot: its columns, with the types in which DuckDB stored them
Tables = Mapping[str, Mapping[str, str]]
STORED: dict[str, Kind] = {
    **dict.fromkeys(
        ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"), "whole"
    ),
    **dict.fromkeys(("HUGEINT", "UBIGINT", "UHUGEINT", "DECIMAL"), "numeric"),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"), "timestamp"),
    "VARCHAR": "text",
    "BOOLEAN": "flag",
    "DATE": "date",
    "DOUBLE": "float",
}
_WHOLE = frozenset(
    ("length", "strpos", "date_diff", "date_part", "epoch_us", "list_position", "hash")
)
_FLOAT = frozenset(("/", "cbrt", "exp", "ln", "round", "sqrt"))
_TEXT = frozenset(
    (
        *(
            "||",
            "concat",
            "concat_ws",
            "left",
            "lower",
            "lpad",
            "ltrim",
            "md5",
            "replace",
            "right",
            "rpad",
            "rtrim",
        ),
        *("split_part", "strftime", "substr", "trim", "upper"),
    )
)
_SAME = frozenset(
    ("+", "-", "*", "//", "%", "negative", "abs", "greatest", "least", "coalesce", "nullif")
)
_FLAG = frozenset(
    (
        *(
            "=",
            "<>",
            "<",
            "<=",
            ">",
            ">=",
            "AND",
            "OR",
            "NOT",
            "is null",
            "is not null",
            "is true",
            "is false",
        ),
        *("in", "like", "ilike", "contains", "starts_with", "ends_with"),
    )
)
_COUNTS = frozenset(("count", "count distinct", "row_number", "rank", "dense_rank", "ntile"))
_CALLS: dict[str, Kind] = {
    **dict.fromkeys(_WHOLE, "whole"),
    **dict.fromkeys(_FLOAT, "float"),
    **dict.fromkeys(_TEXT, "text"),
    **dict.fromkeys(_FLAG, "flag"),
    "make_timestamp": "timestamp",
    "date_trunc": "timestamp",
}


def stored_kind(kind: str) -> Kind:
    """Return the kind of a column from the type that DuckDB stored it in."""
    return STORED.get(kind.split("(", 1)[0], "other")


@dataclass(frozen=True, slots=True)
class Kinds:
    """Finds the kinds of the expressions of one query."""

    sources: Mapping[str, Scan | PublicScan | ConstantTable | Query]  # the query's stages, by name
    tables: Tables
    careful: bool = False  # True if the query computes with whole numbers as numerics

    @classmethod
    def of(cls, query: Numbers | None, tables: Tables, *, careful: bool) -> Kinds:
        return cls(dict(_sources(query)), tables, careful)

    def kind(self, node: Expression) -> Kind | None:
        match node:
            case Constant(value=value):
                return _of_constant(value)
            case Column(stage=stage, name=name):
                return self._of_column(stage, name)
            case Cast(kind=kind):
                return stored_kind(kind)
            case Careful(value=value):
                return self.kind(value)
            case Case(branches=branches, otherwise=otherwise):
                return self._common((*(value for _, value in branches), otherwise))
            case Call(name=name, arguments=arguments):
                return self._of_call(name, arguments)
            case Fold(name=name, arguments=arguments):
                return self._of_fold(name, arguments)
            case Over(function=function):
                return self.kind(function)
            case Exists():
                return "flag"
        return None

    def _of_call(self, name: str, arguments: tuple[Expression, ...]) -> Kind | None:
        if name not in _SAME:
            return _CALLS.get(name)
        kind = self._common(arguments)
        computes = name in ("+", "-", "*", "//", "%", "negative")
        if self.careful and computes and kind == "whole":
            return "numeric"
        return kind

    def _of_fold(self, fold: str, arguments: tuple[Expression, ...]) -> Kind | None:
        if fold in _COUNTS:
            return "whole"
        if fold in ("bool_or", "bool_and"):
            return "flag"
        kind = self.kind(arguments[0]) if arguments else None
        return "numeric" if fold == "sum" and kind == "whole" else kind

    def _of_column(self, stage: str, name: str) -> Kind | None:
        match self.sources.get(stage):
            case Scan(table=table) | PublicScan(table=table):
                kind = self.tables.get(table, {}).get(name)
                return None if kind is None else stored_kind(kind)
            case ConstantTable(columns=columns, kinds=kinds):
                return stored_kind(kinds[columns.index(name)])
            case Select(columns=columns):
                found = dict(columns).get(name)
                return None if found is None else self.kind(found)
            case PerPerson(keys=keys, columns=columns):
                found = dict((*keys, *columns)).get(name)
                return None if found is None else self.kind(found)
            case UnionAll(parts=parts):
                columns_of_parts = [dict(part.columns) for part in parts]
                return self._common(
                    tuple(columns[name] for columns in columns_of_parts if name in columns)
                )
        return None

    def _common(self, nodes: tuple[Expression, ...]) -> Kind | None:
        """Return the kind of a value that may be any of several expressions. Of whole numbers and
        numerics it is numeric; of NULLs alone it is not known.
        """
        kinds = {
            self.kind(node)
            for node in nodes
            if not (isinstance(node, Constant) and node.value is None)
        }
        if len(kinds) == 1:
            return kinds.pop()
        if "float" in kinds and kinds <= {"whole", "numeric", "float"}:
            return "float"
        if kinds == {"whole", "numeric"}:
            return "numeric"
        if kinds == {"date", "interval"} or kinds == {"timestamp", "interval"}:
            return "timestamp"
        return "date" if kinds == {"date", "whole"} else None


def _of_constant(value: object) -> Kind | None:
    match value:
        case bool():
            return "flag"
        case int():
            return "whole" if -(2**63) <= value < 2**63 else "numeric"
        case float():
            return "float"
        case str():
            return "text"
        case datetime():
            return "timestamp"
        case date():
            return "date"
        case Interval():
            return "interval"
    return None


def _sources(node: object) -> Iterable[tuple[str, Scan | PublicScan | ConstantTable | Query]]:
    """Yield every stage of a tree, with its name."""
    match node:
        case Scan(stage=stage) | PublicScan(stage=stage) | ConstantTable(stage=stage):
            yield stage, node
            return
        case Stage(query=query, stage=stage):
            yield stage, query
    if isinstance(node, tuple):
        for each in node:
            yield from _sources(each)
    elif is_dataclass(node) and not isinstance(node, type):
        for part in fields(node):
            yield from _sources(getattr(node, part.name))
