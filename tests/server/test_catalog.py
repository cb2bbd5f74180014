"""What Postgres clients look up: all that real ones sent is answered, as a real Postgres with the
same tables would.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from recorded import about, others, parameters, queries

import discreet
from discreet.binding import create_ledger
from discreet.curator import Curator
from discreet.examples import town
from discreet.policy.policy import Policy
from discreet.server.catalog import Catalog, CatalogError, CatalogSession, catalog
from discreet.server.catalog.tables import contents
from discreet.server.settings import Settings
from real_postgres import postgres

PEOPLE = contents.FIRST_OID
ASKING = CatalogSession(user="alice", database="town", pid=77)
# Answers that differ from a real Postgres, and why; names and types of columns are the same in all
# of them.
DIFFERENT = {
    "version": "SELECT version|select version|select pg_catalog.version|pg_backend_pid\\(\\)$",
    "we have no functions, languages, domains or composite types of the system": (
        "pg_proc|pg_language|typtype = 'd'|typinput|typsend|t.typrelid = 0 .*typname,t.oid|typcategory = 'A'|"
        "typname,t.oid|FROM pg_catalog.pg_attribute ORDER BY attrelid|cl WHERE att.attrelid|pg_am a|pg_opclass"
    ),
    "one database, and roles that say nothing of other analysts": "pg_database|pg_roles|shobj_description",
    "numbers of indexes and other tables are not those of a real server": "relname IN \\('states'|cls.oid|parent_table",
    "privileges are read from functions, not from lists": "relacl|attacl",
    "sizes and counts are not told": "pg_table_size|seq_scan",
    "comments on schemas": "nspowner|has_schema_privilege\\(nsp",
    "nothing can be written": "select \\* from information_schema.tables",
    "keys are shown to everybody": "TABLE_CONSTRAINTS",
    "any row will do": "DISTINCT ON \\(pg_namespace",
    "digits behind the point": "setting::numeric|pg_cast",
}
UNLIKE = re.compile("|".join(DIFFERENT.values()), re.IGNORECASE)


def opened(folder: Path, people: int) -> Curator:
    policy = town.build(folder, people=people)
    create_ledger(Policy.read(policy))
    return discreet.open(policy)


@pytest.fixture(scope="module")
def looked_up(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return Catalog(opened(tmp_path_factory.mktemp("town"), people=50))


def asked(looked_up: Catalog, sql: str, *given: Any) -> list[dict[str, Any]]:
    table = looked_up.answer(sql, ASKING, given)
    assert table is not None, sql
    return table.to_pylist()


def oids(schema: pa.Schema) -> list[int]:
    return [int(field.metadata[b"oid"]) for field in schema]


# --- against a real one ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(looked_up: Catalog) -> Iterator[psycopg.Connection[Any]]:
    """A real Postgres with the tables that the catalog describes."""
    curator = looked_up._curator
    with postgres() as server:
        with psycopg.connect(server, autocommit=True) as own:
            own.execute("CREATE DATABASE town")
        with psycopg.connect(f"{server} dbname=town", autocommit=True) as own:
            for statement in definitions(curator):
                own.execute(statement.encode())
        with psycopg.connect(
            f"{server} dbname=town".replace("postgres", "alice"), autocommit=True
        ) as connection:
            yield connection


def definitions(curator: Curator) -> Iterator[str]:
    for table in contents.describe(curator.policy, curator.public_columns()):
        columns = [f'"{name}" {kind}' for name, kind in table.columns.items()]
        columns += [f'PRIMARY KEY ("{table.key}")'] if table.key else []
        yield f'CREATE TABLE "{table.name}" ({", ".join(columns)})'
        yield f"COMMENT ON TABLE \"{table.name}\" IS '{table.comment}'"
        for name, comment in table.comments.items():
            yield f'COMMENT ON COLUMN "{table.name}"."{name}" IS \'{comment}\''
    yield "CREATE ROLE alice LOGIN"
    yield "GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC"


def test_all_that_clients_sent_is_answered_as_by_postgres(
    looked_up: Catalog, real: psycopg.Connection[Any]
) -> None:
    """Every statement is answered, with the names and types that Postgres gives; most with the very
    same rows.
    """
    [[number]] = real.execute("SELECT 'people'::regclass::oid").fetchall()
    same, problems = 0, []
    for client, sql in queries():
        theirs = real.pgconn.exec_params(
            about(sql, number).encode(), texts(parameters(sql, number))
        )
        if theirs.status != psycopg.pq.ExecStatus.TUPLES_OK:
            problems.append((client, sql, theirs.error_message))
            continue
        ours = about(sql, PEOPLE)
        described = looked_up.describe(ours, ASKING)
        table = looked_up.answer(ours, ASKING, parameters(ours, PEOPLE))
        assert described is not None, sql
        assert table is not None, sql
        columns = [theirs.fname(place) or b"" for place in range(theirs.nfields)]
        told = [(field.name, field.metadata) for field in described.schema]
        given = [(field.name, field.metadata) for field in table.schema]
        if told != given or table.schema.names != [name.decode() for name in columns]:
            problems.append((client, sql, str(table.schema.names)))
        wanted = [theirs.ftype(place) for place in range(theirs.nfields)]
        if oids(table.schema) != wanted and "ELSE typ.typname" not in sql:
            problems.append((client, sql, f"{oids(table.schema)}, not {wanted}"))
        if rows_of(table) == real_rows(theirs, number):
            same += 1
        elif not UNLIKE.search(sql):
            problems.append(
                (client, sql, f"{rows_of(table)[:3]}, not {real_rows(theirs, number)[:3]}")
            )
    assert problems == []
    assert same >= 190  # of 237


# Types that differ: counts, times and what is put together from them.
OTHER_TYPES = re.compile("startup_time|array_agg\\(ordering")


def test_other_clients_get_the_columns_that_postgres_gives(
    looked_up: Catalog, real: psycopg.Connection[Any]
) -> None:
    [[number]] = real.execute("SELECT 'people'::regclass::oid").fetchall()
    for sql in others():
        theirs = real.pgconn.exec_params(about(sql, number).encode(), None)
        assert theirs.status == psycopg.pq.ExecStatus.TUPLES_OK, (sql, theirs.error_message)
        table = looked_up.answer(about(sql, PEOPLE), ASKING)
        assert table is not None, sql
        wanted = [
            ((theirs.fname(place) or b"").decode(), theirs.ftype(place))
            for place in range(theirs.nfields)
        ]
        found = list(zip(table.schema.names, oids(table.schema), strict=True))
        assert found == wanted or OTHER_TYPES.search(sql), sql


def texts(given: list[Any]) -> list[bytes | None]:
    return [
        f"{{{','.join(each)}}}".encode() if isinstance(each, list) else str(each).encode()
        for each in given
    ]


def rows_of(table: pa.Table) -> list[list[str]]:
    columns = [
        [shown(value, oid) for value in column.to_pylist()]
        for column, oid in zip(table.columns, oids(table.schema), strict=True)
    ]
    return sorted([neutral(cell, PEOPLE) for cell in row] for row in zip(*columns, strict=True))


def shown(value: Any, oid: int) -> str:
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, list):
        vector = oid in (22, 30)
        inside = (" " if vector else ",").join(shown(each, 0) for each in value)
        return inside if vector else "{" + inside + "}"
    return "NULL" if value is None else str(value)


def real_rows(result: Any, number: int) -> list[list[str]]:
    return sorted(
        [
            neutral(
                "NULL" if (cell := result.get_value(row, place)) is None else cell.decode(), number
            )
            for place in range(result.nfields)
        ]
        for row in range(result.ntuples)
    )


def neutral(cell: str, number: int) -> str:
    return cell.replace(str(number), "PEOPLE").replace("postgres", "curator")


# --- what the policy says -------------------------------------------------------------------------


def test_columns_are_told_as_the_policy_declares_them(looked_up: Catalog) -> None:
    found = asked(
        looked_up,
        "SELECT column_name, data_type, is_nullable FROM information_schema.columns "
        "WHERE table_schema = 'public' AND table_name = $1 ORDER BY ordinal_position",
        "people",
    )
    assert [row["column_name"] for row in found][:3] == ["person_id", "name", "zip"]
    kinds = {row["column_name"]: row["data_type"] for row in found}
    assert kinds["income"] == "numeric"
    assert kinds["born"] == "date"
    assert kinds["smoker"] == "boolean"
    assert kinds["age"] == "bigint"
    assert [row["column_name"] for row in found if row["is_nullable"] == "NO"] == ["person_id"]


def test_public_tables_have_the_columns_of_the_snapshot(looked_up: Catalog) -> None:
    found = asked(
        looked_up,
        "SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS kind FROM pg_attribute a "
        "WHERE a.attrelid = 'states'::regclass AND a.attnum > 0 ORDER BY a.attnum",
    )
    assert [(row["attname"], row["kind"]) for row in found] == [
        ("state", "text"),
        ("region", "text"),
        ("population", "bigint"),
    ]


def test_comments_say_what_a_column_may_hold(looked_up: Catalog) -> None:
    [row] = asked(
        looked_up,
        "SELECT col_description('people'::regclass, 5), obj_description('people'::regclass)",
    )
    assert row["col_description"] == "whole numbers from 0 to 120"
    assert row["obj_description"] == "private: one row of each person, answered with noise"


def test_nothing_depends_on_data(tmp_path: Path, looked_up: Catalog) -> None:
    """The same policy on other people: every relation of the catalog is the same."""
    other = Catalog(opened(tmp_path, people=90))
    for name in (
        "pg_class",
        "pg_attribute",
        "pg_stat_all_tables",
        "pg_statistic",
        "pg_stats",
        "pg_settings",
    ):
        sql = f"SELECT * FROM pg_catalog.{name}"
        assert asked(other, sql) == asked(looked_up, sql), name
    sizes = asked(
        looked_up,
        "SELECT reltuples, relpages, pg_table_size(oid) AS size FROM pg_class WHERE oid >= 16400",
    )
    assert {tuple(row.values()) for row in sizes if row["reltuples"] < 0} == {(-1.0, 0, None)}


def test_an_analyst_sees_no_other(looked_up: Catalog) -> None:
    assert asked(looked_up, "SELECT rolname FROM pg_roles ORDER BY 1") == [
        {"rolname": "alice"},
        {"rolname": "curator"},
    ]


# --- whose statement it is ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM people",
        "SELECT COUNT(*) FROM public.people",
        "SELECT COUNT(*) FROM nowhere",
        "SELECT COUNT(*) FROM (SELECT age FROM people) AS t",
        "BEGIN",
        "EXPLAIN SELECT 1",
        "",
    ],
)
def test_questions_are_not_the_catalogs(looked_up: Catalog, sql: str) -> None:
    assert looked_up.answer(sql, ASKING) is None


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT 1", {"?column?": 1}),
        ("SELECT 'a' || 'b' AS c, 7 / 2 AS d", {"c": "ab", "d": 3}),
        ("SELECT current_user, current_schema(), current_database()", None),
        ("SELECT E'a\\nb' AS two", {"two": "a\nb"}),
        (
            "SELECT 'people'::regclass, 'people'::regclass::oid AS n",
            {"regclass": "people", "n": PEOPLE},
        ),
        (
            "SELECT 25::regtype AS kind, 'int4'::regtype::text AS other",
            {"kind": "text", "other": "integer"},
        ),
        ("SELECT to_regclass('nowhere') AS none", {"none": None}),
        (
            "SELECT ARRAY[1, 2] AS both, '{3,NULL}'::int4[] AS other",
            {"both": [1, 2], "other": [3, None]},
        ),
        ("SELECT current_setting('server_encoding') AS said", {"said": "UTF8"}),
        ("VALUES (1, 'a')", {"column1": 1, "column2": "a"}),
        ("SELECT * FROM generate_series(2, 2) AS s(n)", {"n": 2}),
        ("SELECT x, n FROM unnest(ARRAY['a']) WITH ORDINALITY AS t(x, n)", {"x": "a", "n": 1}),
    ],
)
def test_values_without_a_table(
    looked_up: Catalog, sql: str, expected: dict[str, Any] | None
) -> None:
    [row] = asked(looked_up, sql)
    assert expected is None or row == expected
    assert row


def test_parameters_have_the_types_of_what_they_are_compared_with(looked_up: Catalog) -> None:
    sql = "SELECT 1 FROM pg_class WHERE relname = $1 AND oid = $2 AND relkind = ANY($3) AND relnatts > $4 LIMIT $5"
    described = looked_up.describe(sql, ASKING)
    assert described is not None
    assert described.parameters == (19, 26, 1002, 21, 20)
    declared = looked_up.describe("SELECT $1, $2::int4", ASKING, [25, 0])
    assert declared is not None
    assert declared.parameters == (25, 23)
    assert oids(declared.schema) == [25, 23]


# --- what is refused ------------------------------------------------------------------------------

REFUSED = [
    ("SELECT * FROM pg_catalog.pg_nothing", "42P01"),
    ("SELECT nothing FROM pg_class", "42703"),
    ("SELECT pg_nothing()", "42883"),
    ("SELECT pg_class.relname FROM pg_class, people", "0A000"),
    ("SELECT 'nowhere'::regclass", "42P01"),
    ("SELECT 1::nothing", "42704"),
    ("SELECT pg_class FROM", "42601"),
    ("SELECT relname FROM pg_class WHERE oid = '{1'", "42000"),
    ("SELECT '{1'::int4[]", "22P02"),
    # files, settings and the machine
    ("SELECT pg_read_file('/etc/passwd')", "42883"),
    ("SELECT * FROM read_text('/etc/passwd')", "42883"),
    ("SELECT * FROM read_csv('/etc/passwd')", "42883"),
    ("SELECT * FROM pg_ls_dir('/')", "42883"),
    ("SELECT getenv('HOME')", "42883"),
    ("SELECT * FROM duckdb_settings()", "42883"),
    ("SELECT * FROM duckdb_tables()", "42883"),
    ("SELECT relname FROM pg_class WHERE getvariable('x') IS NULL", "42883"),
    ("SELECT query('SELECT 1')", "42883"),
    ("SELECT * FROM query_table('pg_class')", "42883"),
    ("SELECT d_visible(1)", "42883"),
    ("SELECT f__version()", "42883"),
    ("SELECT set_config('discreet.epsilon', '9', false)", "0A000"),
]


@pytest.mark.parametrize(("sql", "sqlstate"), REFUSED)
def test_what_is_not_known_is_refused(looked_up: Catalog, sql: str, sqlstate: str) -> None:
    with pytest.raises(CatalogError) as refused:
        looked_up.answer(sql, ASKING)
    assert refused.value.sqlstate == sqlstate
    assert "/" not in refused.value.message


def test_files_are_no_tables(looked_up: Catalog) -> None:
    """A name in quotes is a relation's: none of the system, so not the catalog's to answer."""
    assert looked_up.answer("SELECT * FROM '/etc/passwd'", ASKING) is None
    assert looked_up.answer('SELECT * FROM "/etc/passwd"', ASKING) is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + "(" * 5_000 + "1" + ")" * 5_000,
        "SELECT " + "NOT " * 5_000 + "true",
        "SELECT " + "- " * 5_000 + "1",
        "SELECT " + "CASE WHEN true THEN " * 3_000 + "1" + " END" * 3_000,
        "SELECT " + " + ".join(["1"] * 5_000),
        "SELECT " + ", ".join(["relname"] * 200_000) + " FROM pg_class",
        "SELECT 1 FROM pg_class WHERE "
        + "oid IN (SELECT oid FROM pg_class WHERE " * 400
        + "true"
        + ")" * 400,
    ],
)
def test_hostile_sizes_are_refused(looked_up: Catalog, sql: str) -> None:
    with pytest.raises(CatalogError) as refused:
        looked_up.answer(sql, ASKING)
    assert refused.value.sqlstate.startswith("54")


def test_what_takes_too_long_is_stopped(
    looked_up: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "SECONDS", 0.2)
    with pytest.raises(CatalogError) as refused:
        looked_up.answer(
            "SELECT count(*) FROM pg_attribute a, pg_attribute b, pg_attribute c, pg_attribute d",
            ASKING,
        )
    assert refused.value.sqlstate == "57014"
    assert asked(looked_up, "SELECT 1 AS one") == [{"one": 1}]


TWICE = "SELECT x || x || x || x || x || x || x AS x FROM ("
HUGE = [
    TWICE * 8 + "SELECT relname::text AS x FROM pg_class" + ") AS t" * 8,
    "WITH RECURSIVE t(x) AS (SELECT 'abcdefgh' UNION ALL SELECT x || x FROM t) SELECT length(x) FROM t",
    "WITH RECURSIVE t(x) AS (SELECT ARRAY[1, 2] UNION ALL SELECT x || x FROM t) SELECT cardinality(x) FROM t",
    "SELECT a.attname || b.attname AS x FROM pg_attribute a, pg_attribute b, pg_class c",
    "SELECT array_agg(a.attname || b.attname) FROM pg_attribute a, pg_attribute b",
    "SELECT " + "quote_literal(" * 50 + "relname || $$'$$" + ")" * 50 + " FROM pg_class",
    "SELECT replace(replace(string_agg(relname, 'a'), 'a', repeat), 'a', repeat) FROM pg_class, "
    f"(SELECT '{'a' * 5000}' AS repeat) AS r GROUP BY repeat",
]


@pytest.mark.parametrize("sql", HUGE, ids=range(len(HUGE)))
def test_what_is_too_large_is_not_made(looked_up: Catalog, sql: str) -> None:
    with pytest.raises(CatalogError) as refused:
        looked_up.answer(sql, ASKING)
    assert refused.value.sqlstate in ("53200", "54000", "54001", "57014")


def test_nobody_sees_what_another_session_is(looked_up: Catalog) -> None:
    settings = Settings({"application_name": "secret"})
    other = CatalogSession(user="bob", database="town", settings=settings, pid=78)
    [row] = looked_up.answer(
        "SELECT current_user, application_name FROM pg_stat_activity", other
    ).to_pylist()
    assert row == {"current_user": "bob", "application_name": "secret"}
    [row] = asked(looked_up, "SELECT current_user, application_name FROM pg_stat_activity")
    assert row == {"current_user": "alice", "application_name": ""}


def test_a_session_is_cancelled_by_its_number(looked_up: Catalog) -> None:
    """By whom it is asked to: the server says which sessions are the same user's. To describe it
    cancels nothing.
    """
    cancelled: list[int] = []

    def cancel(number: int) -> bool:
        cancelled.append(number)
        return number == 7

    asking = CatalogSession(user="alice", database="town", cancel=cancel)
    looked_up.describe("SELECT pg_cancel_backend(7)", asking)
    assert cancelled == []
    for sql, given, expected in (
        ("SELECT pg_cancel_backend(7)", (), True),
        ("SELECT pg_catalog.pg_cancel_backend($1)", (8,), False),
    ):
        table = looked_up.answer(sql, asking, given)
        assert table is not None
        assert table.to_pylist() == [{"pg_cancel_backend": expected}]
    assert cancelled == [7, 8]
