"""Owners of every type of Postgres's: a live table becomes the snapshot that the same rows in a
DuckDB file become, row for row, also where somebody has too many.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from conformance import all_rows, store_on
from small_sources import policy_of
from test_postgres_source import made

from discreet.engines.quoting import literal
from discreet.policy.engine import EngineChoice
from real_postgres import Server

MOST, EACH = 2, 5  # rows that somebody may have, and has
DECLARED = f"""\
  t:
    owner: p
    max_rows: {MOST}
    columns:
      n: {{integer: [0, 100]}}
      x: {{text: true}}
      day: {{date: [2024-01-01, 2024-12-31]}}
      seen: {{timestamp: [2024-01-01, 2024-12-31], step: 1s}}
      cost: {{decimal: [-10, 10], step: 0.01}}
"""
TEXTS = (
    "a",
    "A",
    "ä",
    "a\u0308",
    "ß",
    "SS",
    "ﬃ",
    "I",
    "ı",
    "İ",
    " a",
    "\u00a0",
    "\t",
    "0",
    "-",
    "\U0001f600",
)
MOODS = "CREATE TYPE mood AS ENUM ('sad', 'ok', 'Ok')"
BLIND = "CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level1', deterministic = false)"
# a type of Postgres's, what is made before it; the type of DuckDB's; values as both read them
OWNERS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "text": ("", "VARCHAR", (*TEXTS, "")),
    "text COLLATE blind": (BLIND, "VARCHAR", TEXTS),
    "varchar(9)": ("", "VARCHAR", TEXTS),
    "name": ("", "VARCHAR", TEXTS),
    "mood": (MOODS, "VARCHAR", ("sad", "ok", "Ok")),
    "code": ("CREATE DOMAIN word AS text; CREATE DOMAIN code AS word", "VARCHAR", TEXTS),
    "json": ("", "VARCHAR", ('{"a": 1}', '{"a":1}', "1", "1.0", '"1"')),
    "xml": ("", "VARCHAR", ("<a/>", "<a></a>")),
    "bytea": ("", "VARCHAR", ("\\x00", "\\x0001", "\\xff")),
    "int[]": ("", "VARCHAR", ("{1,2}", "{12}", "{}")),
    "inet": ("", "VARCHAR", ("10.0.0.1", "10.0.0.0/8", "::1")),
    "interval": ("", "VARCHAR", ("1 day", "24:00:00", "1 year 2 mons")),
    "int2": ("", "SMALLINT", ("-32768", "0", "7")),
    "int4": ("", "INTEGER", ("-7", "0", "2147483647")),
    "int8": ("", "BIGINT", ("-9223372036854775808", "0", "9223372036854775807")),
    "oid": ("", "BIGINT", ("0", "4294967295")),
    "numeric(20)": ("", "DECIMAL(20,0)", ("-99999999999999999999", "0", "12345678901234567890")),
    "numeric(38)": ("", "DECIMAL(38,0)", ("9" * 38, "-" + "9" * 38)),
    "numeric(8, 2)": ("", "DECIMAL(8,2)", ("1", "1.5", "-0.05", "100")),
    "numeric": ("", "VARCHAR", ("1", "1.5", "1e3", "NaN", "Infinity", "9" * 60)),
    "float8": ("", "DOUBLE", ("1", "-7", "1.5", "NaN", "Infinity", "9007199254740993")),
    "float4": ("", "FLOAT", ("1", "16777217", "0.1")),
    "bool": ("", "BOOLEAN", ("true", "false")),
    "uuid": (
        "",
        "UUID",
        ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A12"),
    ),
    "date": ("", "DATE", ("2024-02-29", "0001-01-01", "9999-12-31")),
    "timestamp": ("", "TIMESTAMP", ("2024-02-29 23:59:59.999999", "1969-12-31 00:00:00")),
    "timestamptz": ("", "TIMESTAMP", ("2024-02-29 12:00:00+00", "2024-10-27 00:30:00+00")),
    "char(3)": ("", "VARCHAR", ("a", "ab", "abc")),
}  # fmt: skip
# how Postgres writes what it reads, where that is another text
WRITTEN = {"1e3": "1000", "10.0.0.1": "10.0.0.1/32", "::1": "::1/128"}
LONG = ("x" * 1_000, "é" * 1_000, "\U0001f600" * 1_001, '"', "\\N", "\n", "", "Infinity")


def _rows(values: tuple[str, ...]) -> list[tuple[str | None, int]]:
    owners: list[str | None] = [*values, None]
    return [(owner, place * EACH + n) for place, owner in enumerate(owners) for n in range(EACH)]


def _insert(owners: str, values: tuple[str, ...], *, live: bool) -> str:
    rows = []
    for owner, n in _rows(values):
        told = owner if live or owner is None else WRITTEN.get(owner, owner)
        written = "NULL" if told is None else literal(told)
        zone = ("+05:30", "-11", "+00")[n % 3] if live else ""
        seen = f"2024-03-31 {n % 24:02}:59:59.999999{zone}"
        if not live:  # by the clock of UTC
            shift = ("- INTERVAL '5 hours 30 minutes'", "+ INTERVAL 11 HOURS", "")[n % 3]
            moment = f"TIMESTAMP '{seen}' {shift}"
        else:
            moment = literal(seen)
        day = literal(f"2024-{n % 12 + 1:02}-28")
        text = literal(LONG[n % len(LONG)])
        rows.append(f"({written}, {n}, {text}, {day}, {moment}, {n / 7:.3f})")
    return f"INSERT INTO t VALUES {', '.join(rows)}"


@pytest.mark.parametrize("kind", OWNERS)
def test_a_live_table_becomes_what_a_file_of_its_rows_becomes(
    kind: str, postgres_server: Server, tmp_path: Path
) -> None:
    before, other, values = OWNERS[kind]
    live = "n int, x text, day date, seen timestamptz, cost numeric(6, 3)"
    address = made(
        postgres_server,
        f"{before}; CREATE TABLE t (p {kind}, {live}); {_insert(kind, values, live=True)}",
    )
    file = tmp_path / "same.duckdb"
    with duckdb.connect(str(file)) as written:
        columns = "n INTEGER, x VARCHAR, day DATE, seen TIMESTAMP, cost DECIMAL(6,3)"
        written.execute(f"CREATE TABLE t (p {other}, {columns})")
        written.execute(_insert(other, values, live=False))
    policy = policy_of(DECLARED, tmp_path)
    reader = address.replace("curator@", "discreet_reader@")
    choices = {
        address: EngineChoice(name="postgres", at=address, reader=reader),
        str(file): EngineChoice(),
    }
    found, reports = [], []
    for source, choice in choices.items():
        store = store_on(policy, choice, tmp_path / choice.name)
        reports.append(store.build(1, source).tables)
        engine = store.open(1)
        found.append(
            {tuple(map(str, row)): many for row, many in all_rows(engine, policy, "t").items()}
        )
        engine.close()
    assert found[0] == found[1]
    assert reports[0] == reports[1]
    assert reports[0][0].kept >= MOST


def test_rows_of_tables_that_inherit(postgres_server: Server, tmp_path: Path) -> None:
    """A table is what SELECT finds in it: its children's rows, too."""
    address = made(
        postgres_server,
        "CREATE TABLE t (p int, n int); CREATE TABLE child (more text) INHERITS (t);"
        " INSERT INTO t VALUES (1, 2); INSERT INTO child VALUES (3, 4, 'SECRET')",
    )
    reader = address.replace("curator@", "discreet_reader@")
    policy = policy_of("  t: {owner: p, columns: {n: {integer: [0, 10]}}}\n", tmp_path)
    store = store_on(
        policy, EngineChoice(name="postgres", at=address, reader=reader), tmp_path / "s"
    )
    store.build(1, address)
    engine = store.open(1)
    assert sorted(all_rows(engine, policy, "t")) == [(1, 2, 1), (3, 4, 1)]
    engine.close()
