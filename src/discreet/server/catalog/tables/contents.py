"""The rows of pg_catalog and information_schema, from the policy alone and never from data.

A table's owner is the role `curator`. Sizes, counts and statistics are NULL, or the -1 or 0 that
Postgres has for a table that was never analyzed. If a table has at most one row of each person, its
owner is its primary key. Every other column may have NULLs (S1), so none is NOT NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any

import pyarrow as pa

from discreet.arrow import array
from discreet.policy.dictionary import dictionary
from discreet.policy.policy import Policy
from discreet.server.catalog import types
from discreet.server.catalog.tables.builtin import (
    INFORMATION_SCHEMA,
    PG_CATALOG,
    Relation,
    relations,
    rows,
)
from discreet.server.catalog.tables.fixed import (
    CURATOR_OID,
    Row,
    access_methods,
    collations,
    languages,
    tablespaces,
)

DATABASE_OID = 16384
USER_OID = 16385  # the number of the user who asks
NAMESPACES = {PG_CATALOG: 11, "pg_toast": 99, "public": 2200, INFORMATION_SCHEMA: 13207}
FIRST_OID = 16400
_STEP = 8  # numbers for each table: itself, its row type, its array type, its key's index, its constraint
_SYSTEM_COLUMNS = (
    ("tableoid", "oid", -6, 4),
    ("cmax", "cid", -5, 4),
    ("xmax", "xid", -4, 4),
    ("cmin", "cid", -3, 4),
    ("xmin", "xid", -2, 4),
    ("ctid", "tid", -1, 6),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEntry:
    """A table of the policy in the catalog: its number, columns with Postgres types, key and
    comments.
    """

    oid: int
    name: str
    columns: Mapping[str, str]
    key: str | None
    comment: str
    comments: Mapping[str, str]

    @property
    def index(self) -> str:
        return f"{self.name}_pkey"


def describe(policy: Policy, public: Mapping[str, pa.Schema]) -> tuple[TableEntry, ...]:
    """Return the entries of the policy's tables, in its order. `public` has the columns of public
    tables, from the snapshot.
    """
    entries = []
    for place, table in enumerate(dictionary(policy, public)):
        kinds = {column.name: types.from_sql(column.type) or "text" for column in table.columns}
        comments = {column.name: column.contains for column in table.columns}
        entry = TableEntry(
            oid=FIRST_OID + _STEP * place,
            name=table.name,
            columns=kinds,
            key=table.primary_key,
            comment=table.comment,
            comments={} if table.public else comments,
        )
        entries.append(entry)
    return tuple(entries)


def fill(tables: tuple[TableEntry, ...], *, database: str) -> dict[str, pa.Table]:
    """Return the relations that are the same for all users, as Arrow tables by their stored
    names.
    """
    made: dict[str, Iterable[Row]] = {
        "pg_namespace": _namespaces(),
        "pg_class": _classes(tables),
        "pg_attribute": _attributes(tables),
        "pg_type": _types(tables),
        "pg_proc": _procedures(),
        "pg_cast": ({**row, "oid": 10_000 + n} for n, row in enumerate(rows("pg_cast"))),
        "pg_opclass": ({**row, "opcnamespace": 11, "opcowner": 10} for row in rows("pg_opclass")),
        "pg_index": _indexes(tables),
        "pg_constraint": _constraints(tables),
        "pg_depend": _dependencies(tables),
        "pg_description": _descriptions(tables),
        "pg_am": access_methods(),
        "pg_language": languages(),
        "pg_collation": collations(),
        "pg_tablespace": tablespaces(),
        "pg_database": [_database(database)],
    }
    return {
        relation.stored: to_arrow(
            relation, made.get(relation.name, ()) if relation.schema == PG_CATALOG else ()
        )
        for relation in relations().values()
    }


def to_arrow(relation: Relation, found: Iterable[Row]) -> pa.Table:
    """Return rows as a table with all columns of the relation. A column that a row lacks has the
    default of Postgres.
    """
    given = list(found)
    arrays = {}
    for name, kind in relation.columns.items():
        usual = _usual(kind) if relation.kind == "r" else None
        target = _storage(kind)
        arrays[name] = column_of([_cell(row.get(name, usual), target) for row in given], target)
    return pa.table(arrays)


def column_of(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return a column of values, which may be lists; None becomes NULL."""
    if not pa.types.is_list(kind):
        return array(values, kind)
    inner = array([item for value in values for item in value or ()], kind.value_type)
    ends = list(accumulate((len(value or ()) for value in values), initial=0))
    mask = array([value is None for value in values], pa.bool_())
    return pa.ListArray.from_arrays(array(ends, pa.int32()), inner, mask=mask)


def _storage(kind: str) -> pa.DataType:
    return pa.int64() if kind in types.REFERENCES else types.arrow(kind)


def _cell(value: Any, target: pa.DataType) -> Any:
    """Convert a value to a column's type: builtin.tsv has texts for numbers and booleans too."""
    if not isinstance(value, str) or pa.types.is_string(target):
        return value
    if pa.types.is_boolean(target):
        return value == "t"
    if pa.types.is_list(target):
        return [int(part) for part in value.split()]
    return int(value)


def _usual(kind: str) -> Any:
    if kind == "bool":
        return False
    if kind in ("char", "name"):
        return ""
    return 0 if kind in types.NUMBERS or kind in types.REFERENCES else None


# --- namespaces, relations and their columns ------------------------------------------------------


def _namespaces() -> Iterator[Row]:
    for name, oid in NAMESPACES.items():
        yield {"oid": oid, "nspname": name, "nspowner": CURATOR_OID}


def _classes(tables: tuple[TableEntry, ...]) -> Iterator[Row]:
    common = {
        "relowner": CURATOR_OID,
        "relpersistence": "p",
        "relreplident": "d",
        "relispopulated": True,
    }
    for relation in relations().values():
        yield {
            **common,
            "oid": relation.oid,
            "relname": relation.name,
            "relnamespace": NAMESPACES[relation.schema],
            "relkind": relation.kind,
            "relnatts": len(relation.columns),
            "relam": 2 if relation.kind == "r" else 0,
            "relhasindex": relation.kind == "r",
            "relhasrules": relation.kind == "v",
            "relreplident": "n",
            "reltuples": -1.0,
        }
    for table in tables:
        yield {
            **common,
            "oid": table.oid,
            "relname": table.name,
            "relnamespace": NAMESPACES["public"],
            "reltype": table.oid + 1,
            "relam": 2,
            "reltuples": -1.0,
            "relkind": "r",
            "relnatts": len(table.columns),
            "relhasindex": table.key is not None,
        }
        if table.key is not None:
            yield {
                **common,
                "oid": table.oid + 3,
                "relname": table.index,
                "relnamespace": NAMESPACES["public"],
                "relam": 403,
                "relkind": "i",
                "relnatts": 1,
                "relreplident": "n",
            }


def _attributes(tables: tuple[TableEntry, ...]) -> Iterator[Row]:
    for relation in relations().values():
        yield from _columns(relation.oid, relation.columns, stored=relation.kind == "r")
    for table in tables:
        yield from _columns(table.oid, table.columns, stored=True, key=table.key)
        if table.key is not None:
            yield _attribute(table.oid + 3, table.key, table.columns[table.key], 1)


def _columns(
    oid: int, columns: Mapping[str, str], *, stored: bool, key: str | None = None
) -> Iterator[Row]:
    for place, (name, kind) in enumerate(columns.items(), start=1):
        yield _attribute(oid, name, kind, place) | {"attnotnull": name == key}
    for name, kind, place, _ in _SYSTEM_COLUMNS if stored else ():
        yield _attribute(oid, name, kind, place) | {"attnotnull": True}


def _attribute(oid: int, name: str, kind: str, place: int) -> Row:
    known = _type_rows().get(kind) or _type_rows()["anyarray"]
    return {
        "attrelid": oid,
        "attname": name,
        "atttypid": int(known["oid"]),
        "attstattarget": -1 if place > 0 else 0,
        "attlen": int(known["typlen"]),
        "attnum": place,
        "attndims": 1 if kind.startswith("_") else 0,
        "attcacheoff": -1,
        "atttypmod": -1,
        "attbyval": known["typbyval"] == "t",
        "attalign": known["typalign"],
        "attstorage": known["typstorage"],
        "attislocal": True,
        "attcollation": int(known["typcollation"]),
    }


@cache
def _type_rows() -> dict[str, dict[str, str]]:
    return {row["typname"]: row for row in rows("pg_type")}


# --- types and functions --------------------------------------------------------------------------


def _types(tables: tuple[TableEntry, ...]) -> Iterator[Row]:
    for row in rows("pg_type"):
        yield {
            **row,
            "typnamespace": 11,
            "typowner": CURATOR_OID,
            "typisdefined": True,
            "typndims": 0,
        }
    record = {
        "typowner": CURATOR_OID,
        "typisdefined": True,
        "typnamespace": NAMESPACES["public"],
        "typdelim": ",",
    }
    composite = {
        "typlen": -1,
        "typtype": "c",
        "typcategory": "C",
        "typalign": "d",
        "typstorage": "x",
        "typtypmod": -1,
    }
    functions = {"typinput": 2290, "typoutput": 2291, "typreceive": 2402, "typsend": 2403}
    arrays = {
        "typinput": 750,
        "typoutput": 751,
        "typreceive": 2400,
        "typsend": 2401,
        "typanalyze": 3816,
    }
    for table in tables:
        own = {
            "oid": table.oid + 1,
            "typname": table.name,
            "typrelid": table.oid,
            "typarray": table.oid + 2,
        }
        yield {**record, **composite, **functions, **own}
        many = {
            "oid": table.oid + 2,
            "typname": f"_{table.name}",
            "typelem": table.oid + 1,
            "typsubscript": 6179,
        }
        yield {**record, **composite, **arrays, **many, "typtype": "b", "typcategory": "A"}


def _procedures() -> Iterator[Row]:
    for row in rows("pg_proc"):
        yield {
            **row,
            "pronamespace": 11,
            "proowner": CURATOR_OID,
            "prolang": 12,
            "prokind": "f",
            "procost": 1.0,
        } | {
            "prosrc": row["proname"],
            "proparallel": "s",
            "proisstrict": True,
        }


# --- keys and comments ----------------------------------------------------------------------------


def _tables_with_keys(tables: tuple[TableEntry, ...]) -> Iterator[tuple[TableEntry, int]]:
    for table in tables:
        if table.key is not None:
            yield table, list(table.columns).index(table.key) + 1


def _indexes(tables: tuple[TableEntry, ...]) -> Iterator[Row]:
    for table, place in _tables_with_keys(tables):
        yield {
            "indexrelid": table.oid + 3,
            "indrelid": table.oid,
            "indnatts": 1,
            "indnkeyatts": 1,
            "indisunique": True,
            "indisprimary": True,
            "indimmediate": True,
            "indisvalid": True,
            "indisready": True,
            "indislive": True,
            "indkey": [place],
            "indcollation": [int(_type_rows()[table.columns[table.key or ""]]["typcollation"])],
            "indclass": [_operators(table.columns[table.key or ""])],
            "indoption": [0],
        }


def _operators(kind: str) -> int:
    """Return the number of the operator class by which a B-tree orders a type."""
    wanted = str(types.oid(kind))
    matching = (
        row
        for row in rows("pg_opclass")
        if row["opcmethod"] == "403" and row["opcintype"] == wanted
    )
    return next((int(row["oid"]) for row in matching if row["opcdefault"] == "t"), 0)


def _constraints(tables: tuple[TableEntry, ...]) -> Iterator[Row]:
    for table, place in _tables_with_keys(tables):
        yield {
            "oid": table.oid + 4,
            "conname": table.index,
            "connamespace": NAMESPACES["public"],
            "contype": "p",
            "convalidated": True,
            "conrelid": table.oid,
            "conindid": table.oid + 3,
            "confupdtype": " ",
            "confdeltype": " ",
            "confmatchtype": " ",
            "conislocal": True,
            "connoinherit": True,
            "conkey": [place],
        }


def _dependencies(tables: tuple[TableEntry, ...]) -> Iterator[Row]:
    """Yield that a key's index belongs to its constraint, and the constraint to its column."""
    classes, constraints = (
        relations()[PG_CATALOG, name].oid for name in ("pg_class", "pg_constraint")
    )
    for table, place in _tables_with_keys(tables):
        index = {"classid": classes, "objid": table.oid + 3}
        yield {**index, "refclassid": constraints, "refobjid": table.oid + 4, "deptype": "i"}
        key = {"classid": constraints, "objid": table.oid + 4}
        yield {
            **key,
            "refclassid": classes,
            "refobjid": table.oid,
            "refobjsubid": place,
            "deptype": "a",
        }


def _descriptions(tables: tuple[TableEntry, ...]) -> Iterator[Row]:
    said_of = {"classoid": relations()[PG_CATALOG, "pg_class"].oid}
    for table in tables:
        yield {**said_of, "objoid": table.oid, "objsubid": 0, "description": table.comment}
        for place, name in enumerate(table.columns, start=1):
            if name in table.comments:
                yield {
                    **said_of,
                    "objoid": table.oid,
                    "objsubid": place,
                    "description": table.comments[name],
                }


def texts_of_keys(tables: tuple[TableEntry, ...]) -> pa.Table:
    """Return each key as Postgres writes it: as a constraint, as an index, and the index's
    column.
    """
    found: list[tuple[int, int, str]] = []
    for table, _ in _tables_with_keys(tables):
        column = quote_name(table.key or "")
        found.append((table.oid + 4, 0, f"PRIMARY KEY ({column})"))
        index = (
            f"CREATE UNIQUE INDEX {quote_name(table.index)} "
            f"ON public.{quote_name(table.name)} USING btree ({column})"
        )
        found += [(table.oid + 3, 0, index), (table.oid + 3, 1, column)]
    kinds = (pa.int64(), pa.int64(), pa.string())
    columns = list(zip(*found, strict=True)) or [(), (), ()]
    named = zip(("oid", "place", "said"), columns, kinds, strict=True)
    return pa.table({name: array(values, kind) for name, values, kind in named})


def quote_name(name: str) -> str:
    """Write a name as quote_ident does."""
    reserved = {row["word"] for row in rows("keyword") if row["catcode"] != "U"}
    plain = (
        name.isascii()
        and name.replace("_", "a").isalnum()
        and name == name.lower()
        and not name[:1].isdigit()
    )
    return name if plain and name not in reserved else '"' + name.replace('"', '""') + '"'


# --- the rest of a database -----------------------------------------------------------------------


def _database(name: str) -> Row:
    return {
        "oid": DATABASE_OID,
        "datname": name,
        "datdba": CURATOR_OID,
        "encoding": 6,
        "datlocprovider": "c",
        "datallowconn": True,
        "datconnlimit": -1,
        "dattablespace": 1663,
        "datcollate": "C.UTF-8",
        "datctype": "C.UTF-8",
    }
