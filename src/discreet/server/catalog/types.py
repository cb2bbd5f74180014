"""Postgres types: how the catalog's own database stores them, their Arrow types, and how SQL writes
them.
"""

from __future__ import annotations

import pyarrow as pa

from discreet.policy.dictionary import type_of_arrow
from discreet.server.catalog.tables.builtin import type_names, type_oids

_TEXTS = """
name text varchar bpchar char cstring unknown json jsonb uuid xml bytea pg_node_tree tid inet cidr interval pg_lsn
pg_ndistinct pg_dependencies pg_mcv_list aclitem void timetz time money bit varbit record refcursor anyarray
"""
TEXTS = frozenset(_TEXTS.split())
_REFERENCES = """
regclass regtype regproc regprocedure regnamespace regrole regoper regoperator regcollation regconfig regdictionary
"""
REFERENCES = frozenset(_REFERENCES.split())
NUMBERS = {
    "oid": "BIGINT",
    "xid": "BIGINT",
    "cid": "BIGINT",
    "xid8": "BIGINT",
    "int2": "SMALLINT",
    "int4": "INTEGER",
}
NUMBERS |= {
    "int8": "BIGINT",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "numeric": "DECIMAL(38,10)",
    "bool": "BOOLEAN",
}
NUMBERS |= {"date": "DATE", "timestamp": "TIMESTAMP", "timestamptz": "TIMESTAMP"}
VECTORS = {"int2vector": "SMALLINT[]", "oidvector": "BIGINT[]"}

_ARROW = {
    "BIGINT": pa.int64(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "VARCHAR": pa.string(),
    "DECIMAL(38,10)": pa.decimal128(38, 10),
}

# The names that SQL has for types, as format_type writes them.
WRITTEN = {
    "bool": "boolean",
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "float4": "real",
    "float8": "double precision",
    "varchar": "character varying",
    "bpchar": "character",
    "char": '"char"',
    "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
    "time": "time without time zone",
    "timetz": "time with time zone",
    "bit": "bit",
    "varbit": "bit varying",
}
# What people and sqlglot write for the same types.
SYNONYMS = {words: name for name, words in WRITTEN.items()} | {
    "int": "int4",
    "bigint": "int8",
    "smallint": "int2",
    "float": "float8",
    "double": "float8",
    "real": "float4",
    "boolean": "bool",
    "decimal": "numeric",
    "string": "text",
    "character": "bpchar",
    "nchar": "bpchar",
    "varchar": "varchar",
    "timestamptz": "timestamptz",
    "timestampntz": "timestamp",
    "unknown": "text",
}


def storage_type(kind: str) -> str:
    """Return the type in which the catalog's own database stores a Postgres type. It stores arrays
    as lists.
    """
    if kind in VECTORS:
        return VECTORS[kind]
    if kind.startswith("_"):
        return f"{storage_type(kind[1:])}[]"
    if kind in REFERENCES:
        return "BIGINT"
    return NUMBERS.get(kind, "VARCHAR")


def arrow(kind: str) -> pa.DataType:
    """Return the Arrow type of an answer's column of this Postgres type. A reference becomes the
    name of its object.
    """
    if kind in REFERENCES:
        return pa.string()
    if kind in VECTORS:
        return pa.list_(arrow("int2" if kind == "int2vector" else "oid"))
    if kind.startswith("_"):
        return pa.list_(arrow(kind[1:]))
    if kind == "timestamptz":
        return pa.timestamp("us", tz="UTC")
    return _ARROW[NUMBERS.get(kind, "VARCHAR")]


def element(kind: str) -> str | None:
    """Return the type of an array's elements; None if it is no array."""
    if kind in VECTORS:
        return "int2" if kind == "int2vector" else "oid"
    return kind[1:] if kind.startswith("_") else None


def name_of(kind: pa.DataType) -> str:
    """Return the Postgres type for a column of a public table or of a result of unknown type."""
    return from_sql(type_of_arrow(kind)) or "text"


def oid(kind: str) -> int:
    """Return the number of a type."""
    return type_oids().get(kind, 25)


def name(number: int) -> str | None:
    """Return the name of the type with this number."""
    return type_names().get(number)


def from_sql(words: str) -> str | None:
    """Return the type that some words name, such as `bigint`, `pg_catalog.text` or `_text`; None if
    there is no such type.
    """
    bare = words.strip().lower().removeprefix("pg_catalog.").strip('"')
    array = bare.endswith("[]")
    bare = bare.removesuffix("[]").split("(")[0].strip()
    kind = SYNONYMS.get(bare, bare)
    if words.strip().strip("[]") in ('"char"', 'pg_catalog."char"'):
        kind = "char"
    if array:
        kind = f"_{kind}"
    return kind if kind in type_oids() or kind in REFERENCES else None
