"""Live tables in Postgres with whatever a database can hold: types, values and rights that decide
nothing but what they should, and no message with a value.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from small_sources import kept

from discreet.binding import create_ledger
from discreet.curator import Curator
from discreet.engines.advice import check
from discreet.engines.drafts.draft import draft
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.duckdb.preparing.prepare import prepare
from discreet.errors import PolicyError, UsageError
from discreet.policy.policy import Policy
from real_postgres import Server

NUMBER, MONEY = "{integer: [0, 10]}", "{decimal: [0, 10], step: 0.01}"
DAY, MOMENT = (
    "{date: [2024-01-01, 2024-12-31]}",
    "{timestamp: [2024-01-01, 2024-12-31], step: 1s}",
)
# what is made as table t(p, x); how x is declared; what is kept of x, by p
SOURCES: dict[str, tuple[str, str, dict[Any, Any]]] = {
    "numeric": (
        "CREATE TABLE t (p int, x numeric); INSERT INTO t VALUES (1, 'NaN'), (2, 'Infinity'), (3, '-Infinity'),"
        " (4, 1e1000::numeric), (5, 5.00)",
        NUMBER,
        {1: None, 2: 10, 3: 0, 4: 10, 5: 5},
    ),
    "numeric of so many digits": (
        "CREATE TABLE t (p int, x numeric(8, 3)); INSERT INTO t VALUES (1, 'NaN'), (2, 99999.999), (3, -1), (4, 0.125),"
        " (5, NULL)",
        MONEY,
        {1: None, 2: 1000, 3: 0, 4: 13, 5: None},
    ),
    "numeric of more digits than Arrow has": (
        "CREATE TABLE t (p int, x numeric(60, 2)); INSERT INTO t VALUES (1, 1e50), (2, 0.25)",
        MONEY,
        {1: 1000, 2: 25},
    ),
    "float": (
        "CREATE TABLE t (p int, x float8); INSERT INTO t VALUES (1, 'NaN'), (2, 'Infinity'), (3, '-Infinity'),"
        " (4, 5e-324), (5, 0.29)",
        MONEY,
        {1: None, 2: 1000, 3: 0, 4: 0, 5: 29},
    ),
    "money": ("CREATE TABLE t (p int, x money); INSERT INTO t VALUES (1, 5.25), (2, 2000)", MONEY, {1: 525, 2: 1000}),
    "date": (
        "CREATE TABLE t (p int, x date); INSERT INTO t VALUES (1, 'infinity'), (2, '-infinity'), (3, '4713-01-01 BC'),"
        " (4, '5874897-01-01'), (5, '2024-02-29'), (6, NULL)",
        DAY,
        {1: "2024-12-31", 2: "2024-01-01", 3: "2024-01-01", 4: "2024-12-31", 5: "2024-02-29", 6: None},
    ),
    "timestamp": (
        "CREATE TABLE t (p int, x timestamp); INSERT INTO t VALUES (1, 'infinity'), (2, '-infinity'),"
        " (3, '4713-01-01 BC'), (4, '294276-01-01'), (5, '2024-02-29 23:59:59.999999'), (6, NULL)",
        MOMENT,
        {
            1: "2024-12-31 00:00:00",
            2: "2024-01-01 00:00:00",
            3: "2024-01-01 00:00:00",
            4: "2024-12-31 00:00:00",
            5: "2024-02-29 23:59:59",
            6: None,
        },
    ),
    "timestamp with a zone": (
        "CREATE TABLE t (p int, x timestamptz); INSERT INTO t VALUES (1, 'infinity'), (2, '4713-01-01 BC'),"
        " (3, '2024-02-29 23:00:00+05:30'), (4, NULL)",
        MOMENT,
        {1: "2024-12-31 00:00:00", 2: "2024-01-01 00:00:00", 3: "2024-02-29 17:30:00", 4: None},
    ),
    "char": (
        "CREATE TABLE t (p int, x char(5)); INSERT INTO t VALUES (1, 'a'), (2, 'ab')",
        "{values: [a, ab]}",
        {1: 0, 2: 1},
    ),
    "enum": (
        "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TABLE t (p int, x mood); INSERT INTO t VALUES (1, 'ok')",
        "{values: [sad, ok]}",
        {1: 1},
    ),
    "domain": (
        "CREATE DOMAIN cents AS numeric(4, 2); CREATE DOMAIN price AS cents; CREATE TABLE t (p int, x price);"
        " INSERT INTO t VALUES (1, 5.25), (2, 'NaN')",
        MONEY,
        {1: 525, 2: None},
    ),
    "a type with the name of another": (
        "CREATE DOMAIN int8 AS text; CREATE TABLE t (p int, x public.int8);"
        " INSERT INTO t VALUES (1, 'SECRET'), (2, '7')",
        NUMBER,
        {1: None, 2: 7},
    ),
    "generated": (
        "CREATE TABLE t (p int, a int, x int GENERATED ALWAYS AS (a * 2) STORED); INSERT INTO t (p, a) VALUES (1, 2)",
        NUMBER,
        {1: 4},
    ),
    "view": (
        "CREATE TABLE base (p int, x int); INSERT INTO base VALUES (1, 2);"
        " CREATE VIEW t AS TABLE base",
        NUMBER,
        {1: 2},
    ),
    "materialized view": ("CREATE MATERIALIZED VIEW t AS SELECT 1 AS p, 2 AS x", NUMBER, {1: 2}),
    "partitions": (
        "CREATE TABLE t (p int, x int) PARTITION BY RANGE (p);"
        " CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (9);"
        " CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (9) TO (99); INSERT INTO t VALUES (1, 2), (12, 3)",
        NUMBER,
        {1: 2, 12: 3},
    ),
    "a name in upper case, beside a table without columns": (
        'CREATE TABLE "T" ("P" int, x int); INSERT INTO "T" VALUES (1, 2); CREATE TABLE nothing ()',
        NUMBER,
        {1: 2},
    ),
    "a table with the name of one of the catalog's, and a path that begins there": (
        "CREATE TABLE t (p int, x int); INSERT INTO t VALUES (1, 2); CREATE TABLE pg_user (t int);"
        " DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = pg_catalog, public', current_database());"
        " END $$",
        NUMBER,
        {1: 2},
    ),
    "long texts": (
        "CREATE TABLE t (p int, x text); INSERT INTO t VALUES (1, repeat('x', 3000000)), (2, 'a'),"
        " (3, repeat('é', 2000000))",
        "{text: true}",
        {1: None, 2: "a", 3: None},
    ),
}  # fmt: skip


def policy_for(address: str, folder: Path, declared: str, *, rows: int = 1) -> Policy:
    text = f"source: '{address}'\nunit: p\nbudget: {{epsilon: 1}}\ntables:\n"
    text += f"  t: {{owner: p, max_rows: {rows}, columns: {{"
    return Policy.parse(
        f"{text}p: {{identifier: true}}, x: {declared}}}}}\n", path=folder / "p.yaml"
    )


def made(server: Server, sql: str) -> str:
    address = server.database().at
    assert address is not None
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(sql.encode())
    return address


def prepared(address: str, folder: Path, declared: str, *, rows: int = 1) -> list[tuple[Any, ...]]:
    policy = policy_for(address, folder, declared, rows=rows)
    prepare(policy, policy.source, policy.store, 1)
    engine = DuckDB.open(policy, 1)
    try:
        return list(kept(engine, "t"))
    finally:
        engine.close()


@pytest.mark.parametrize("what", SOURCES)
def test_what_a_column_can_hold(what: str, postgres_server: Server, tmp_path: Path) -> None:
    sql, declared, expected = SOURCES[what]
    rows = prepared(made(postgres_server, sql), tmp_path, declared)
    found = {row[-2]: row[-1] for row in rows}
    assert {
        p: x if x is None or isinstance(x, int) else str(x) for p, x in found.items()
    } == expected


def test_a_number_is_one_owner_however_it_is_written(
    postgres_server: Server, tmp_path: Path
) -> None:
    """Or one person would have as many rows as there are ways to write a number."""
    sql = "CREATE TABLE t (p numeric, x int); INSERT INTO t VALUES (1, 1), (1.0, 2), (1.00, 3), (10, 4), (10.0, 5)"
    assert len(prepared(made(postgres_server, sql), tmp_path, NUMBER)) == 2


@pytest.mark.parametrize(
    ("sql", "says"),
    {
        'CREATE TABLE t (p int, x int); CREATE TABLE "T" (p int, x int)': "has the tables T and t",
        'CREATE TABLE t ("P" int, p int, x int)': "The table t has two columns p, in upper and",
        'CREATE TABLE t (p int, x int, "X" int)': "The table t has two columns X, in upper and",
    }.items(),
)
def test_names_that_differ_by_case_alone_are_refused(
    sql: str, says: str, postgres_server: Server, tmp_path: Path
) -> None:
    """The engine would read one of the two, and nobody would know which."""
    address = made(postgres_server, sql)
    with pytest.raises(PolicyError, match=says):
        prepared(address, tmp_path, NUMBER)
    (problem,) = check(policy_for(address, tmp_path, NUMBER)).problems
    assert says in problem.message


def test_settings_of_the_database_change_no_value(postgres_server: Server, tmp_path: Path) -> None:
    sql = """CREATE TABLE t (p int, x float8); INSERT INTO t VALUES (1, 0.29), (2, 2.675);
        DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET extra_float_digits = -15', current_database());
        EXECUTE format('ALTER DATABASE %I SET client_encoding = LATIN1', current_database());
        EXECUTE format('ALTER DATABASE %I SET DateStyle = ''SQL, DMY''', current_database()); END $$"""
    address = made(postgres_server, sql)
    assert [
        row[-1] for row in sorted(prepared(address, tmp_path, "{decimal: [0, 10], step: 0.001}"))
    ] == [290, 2675]


REFUSED = {
    "rows that are hidden": (
        "CREATE TABLE t (p int, x int); INSERT INTO t VALUES (1, 2), (2, 3); ALTER TABLE t ENABLE ROW LEVEL SECURITY;"
        " ALTER TABLE t FORCE ROW LEVEL SECURITY; CREATE POLICY one ON t USING (p = 1)",
        "row-level security hides rows",
    ),
    "a view that fails on a row": (
        "CREATE TABLE base (p int, x text); INSERT INTO base VALUES (1, 'SECRET');"
        " CREATE VIEW t AS SELECT p, x::int FROM base",
        "a view fails on one of its rows",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_read_is_told_without_a_value(
    what: str, postgres_server: Server, tmp_path: Path
) -> None:
    sql, says = REFUSED[what]
    with pytest.raises(UsageError, match=says) as caught:
        prepared(made(postgres_server, sql), tmp_path, NUMBER)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None


# types of which no domain holds a value, what is made before them, and a value
UNHELD = {
    "point": ("", "(1,2)"),
    "integer[]": ("", "{1,2}"),
    "json": ("", "7"),
    "jsonb": ("", "7"),
    "xml": ("", "<a/>"),
    "bytea": ("", "7"),
    "interval": ("", "1 day"),
    "time without time zone": ("", "12:00"),
    "int4range": ("", "[1,7)"),
    "inet": ("", "10.0.0.1"),
    "bit(3)": ("", "101"),
    "tsvector": ("", "7"),
    "pair": ("CREATE TYPE pair AS (a int, b int);", "(1,2)"),
    "spot": ("CREATE DOMAIN place AS point; CREATE DOMAIN spot AS place;", "(1,2)"),
}
SHOWN = {"spot": "point"}  # a domain is told as what is under it
DOMAINS = (NUMBER, MONEY, DAY, MOMENT, "{values: [7, 8]}", "boolean", "text", "{identifier: true}")


@pytest.mark.parametrize("kind", UNHELD)
def test_a_type_that_no_domain_can_hold_is_refused(
    kind: str, postgres_server: Server, tmp_path: Path
) -> None:
    """However the policy declares it, by `check` and before a snapshot; and the view that the
    message speaks of is read.
    """
    before, value = UNHELD[kind]
    sql = f"{before} CREATE TABLE t (p int, x {kind}); INSERT INTO t VALUES (1, '{value}')"
    address = made(postgres_server, sql)
    for declared in DOMAINS if kind == "point" else (NUMBER, "text"):
        with pytest.raises(PolicyError) as caught:
            prepared(address, tmp_path, declared)
        (problem,) = caught.value.problems
        assert problem.line == 5
        assert problem.message.startswith("t.x is declared ")
        there = f"and the source has {SHOWN.get(kind, kind)} there, which no domain can hold"
        assert there in problem.message
    assert check(policy_for(address, tmp_path, declared)).problems == (problem,)
    assert not list(tmp_path.glob("**/*.duckdb"))
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("ALTER TABLE t RENAME TO base")
        connection.execute("CREATE VIEW t AS SELECT p, x::text AS x FROM base")
    assert len(prepared(address, tmp_path, "text")) == 1


def test_nothing_is_charged_where_a_type_is_refused(
    postgres_server: Server, tmp_path: Path
) -> None:
    """Not even where there is an earlier snapshot: it is asked, and the next one is refused."""
    address = made(postgres_server, "CREATE TABLE t (p int, x int); INSERT INTO t VALUES (1, 2)")
    policy = policy_for(address, tmp_path, NUMBER)
    create_ledger(policy)
    curator = Curator(policy)
    curator.snapshot()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("ALTER TABLE t ALTER x TYPE point USING point(x, x)")
    with pytest.raises(PolicyError, match="no domain can hold"):
        curator.snapshot()
    assert not curator.ledger()
    assert curator.ask("SELECT COUNT(*) FROM t", analyst="curator", epsilon="0.5")


def test_columns_that_are_not_declared_are_not_read(
    postgres_server: Server, tmp_path: Path
) -> None:
    """The curator's role needs no right to them; and what a view fails on there fails nothing."""
    choice = postgres_server.database()
    assert choice.at is not None
    with psycopg.connect(choice.at, autocommit=True) as connection:
        connection.execute(
            """CREATE TABLE t ("P" int, secret text, "X" int); INSERT INTO t VALUES (1, 'SECRET', 2);
            REVOKE ALL ON t FROM curator; GRANT SELECT ("P", "X") ON t TO curator"""
        )
    policy = policy_for(choice.at, tmp_path, NUMBER)
    prepare(policy, policy.source, policy.store, 1)
    declared = policy_for(choice.at, tmp_path, f"{NUMBER}, secret: text")
    with pytest.raises(UsageError, match="its role lacks SELECT"):
        prepare(declared, declared.source, declared.store, 2)
    with psycopg.connect(choice.at, autocommit=True) as connection:
        connection.execute(
            """ALTER TABLE t RENAME TO base; GRANT ALL ON base TO curator;
            CREATE VIEW t AS SELECT "P", "X", secret::int FROM base"""
        )
    prepare(policy, policy.source, policy.store, 2)
    with pytest.raises(UsageError, match="a view fails on one of its rows"):
        prepare(declared, declared.source, declared.store, 3)


def test_rows_are_counted_where_no_column_is_declared(
    postgres_server: Server, tmp_path: Path
) -> None:
    address = made(postgres_server, "CREATE TABLE t (a int, b int); INSERT INTO t VALUES (1, 2)")
    text = f"source: '{address}'\nunit: p\nbudget: {{epsilon: 1}}\ntables: {{t: {{owner: row}}}}\n"
    policy = Policy.parse(text, path=tmp_path / "p.yaml")
    assert prepare(policy, policy.source, policy.store, 1).tables[0].kept == 1


def test_texts_that_are_not_utf_8(postgres_server: Server, tmp_path: Path) -> None:
    """A database of the encoding SQL_ASCII sends whatever bytes it has."""
    with psycopg.connect(postgres_server.address, autocommit=True) as connection:
        connection.execute(
            "CREATE DATABASE bytes ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0"
        )
    address = f"postgresql://postgres@/bytes?host={postgres_server.folder}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            r"CREATE TABLE t (p int, x text); INSERT INTO t VALUES (1, E'SECRET\xff')"
        )
    with pytest.raises(UsageError, match="a text is not UTF-8") as caught:
        prepared(address, tmp_path, "{text: true}")
    assert "SECRET" not in str(caught.value)


def test_a_draft_of_types_of_all_kinds(postgres_server: Server) -> None:
    sql = """CREATE DOMAIN price AS numeric(6, 2); CREATE TYPE mood AS ENUM ('sad', 'ok');
        CREATE TABLE people (person_id bigint PRIMARY KEY, fee price, waited interval, spot point, ids int[],
          span int4range, away daterange, mood mood, notes jsonb, born date);
        CREATE VIEW adults AS SELECT * FROM people;
        CREATE TABLE visits (person_id bigint, seen timestamptz) PARTITION BY RANGE (seen);
        CREATE TABLE visits_2024 PARTITION OF visits FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')"""
    text = draft(made(postgres_server, sql)).text()
    for line in (
        "  adults:",
        "  visits:",
        "fee: {decimal: [0, 1000], step: 0.01}  # from the name: check",
        "# waited: interval cannot be asked about",
        "# spot: point cannot be asked about",
        "# ids: integer[] cannot be asked about",
        "# span: int4range cannot be asked about",
        "# away: daterange cannot be asked about",
        "mood: {values: [sad, ok]}  # from ENUM",
        "# notes: jsonb cannot be asked about",
    ):
        assert line in text
    assert "visits_2024" not in text
