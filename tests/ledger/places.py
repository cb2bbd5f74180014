"""Where ledgers are kept: every test of a ledger runs in each of these places. A new kind is one
line of KINDS.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import psycopg

from discreet.ledger.place import Place
from discreet.ledger.stores.rights import setup
from real_postgres import Server

ROLE = "spender"
_numbers = itertools.count(1)


def in_file(path: Path, server: Callable[[], Server]) -> Place:
    return Place(path=path)


def in_postgres(path: Path, server: Callable[[], Server]) -> Place:
    """Fresh tables in a schema of their own, and the role that may spend there."""
    schema = f"ledger_{next(_numbers)}"
    with psycopg.connect(server().address, autocommit=True) as administrator:
        administrator.execute(
            f"DO $$ BEGIN CREATE ROLE {ROLE} LOGIN; EXCEPTION WHEN duplicate_object THEN END $$"
        )
        administrator.execute(setup(schema, ROLE).encode())
    return Place(path=path, address=address(server(), schema))


def address(server: Server, schema: str, role: str = ROLE) -> str:
    host = quote(str(server.folder), safe="")
    return f"postgresql://{role}@/postgres?host={host}&options=-csearch_path%3D{schema}"


KINDS = {"file": in_file, "postgres": in_postgres}
