"""Rows of the catalog that are the same for every policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Row = dict[str, Any]
CURATOR_OID = 10  # the number of the role that owns everything


def access_methods() -> Iterator[Row]:
    for oid, name, kind in (
        (2, "heap", "t"),
        (403, "btree", "i"),
        (405, "hash", "i"),
        (783, "gist", "i"),
    ):
        yield {"oid": oid, "amname": name, "amtype": kind}
    for oid, name in ((2742, "gin"), (4000, "spgist"), (3580, "brin")):
        yield {"oid": oid, "amname": name, "amtype": "i"}


def languages() -> Iterator[Row]:
    for oid, name, trusted in ((12, "internal", False), (13, "c", False), (14, "sql", True)):
        yield {"oid": oid, "lanname": name, "lanowner": CURATOR_OID, "lanpltrusted": trusted}


def collations() -> Iterator[Row]:
    for oid, name, provider in ((100, "default", "d"), (950, "C", "c"), (951, "POSIX", "c")):
        where = None if provider == "d" else name
        yield {
            "oid": oid,
            "collname": name,
            "collnamespace": 11,
            "collowner": CURATOR_OID,
            "collprovider": provider,
            "collisdeterministic": True,
            "collencoding": -1,
            "collcollate": where,
            "collctype": where,
        }


def tablespaces() -> Iterator[Row]:
    for oid, name in ((1663, "pg_default"), (1664, "pg_global")):
        yield {"oid": oid, "spcname": name, "spcowner": CURATOR_OID}
