"""The Postgres door, message by message: results, refusals, settings, prepared statements, portals,
transactions.
"""

from __future__ import annotations

import datetime
import socket
import struct
import threading
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.server.pgwire import types
from server.running_server import PASSWORD, Running, open_town, running
from server.wire_client import (
    FLUSH,
    SYNC,
    Client,
    bind,
    close,
    describe,
    execute,
    pack,
    parse,
    text,
)

COUNT = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(open_town(tmp_path_factory.mktemp("town"))) as server:
        yield server


@pytest.fixture
def client(town: Running) -> Iterator[Client]:
    with Client(town.port, options="-c discreet.epsilon=0.5") as connected:
        yield connected


def spent(town: Running, analyst: str) -> Fraction:
    return sum(
        (entry.cost.amount for entry in town.server.curator.ledger(analyst=analyst)), Fraction(0)
    )


# --- asking ---------------------------------------------------------------------------------------


def test_a_question_is_answered_with_its_cost_and_margin(town: Running, client: Client) -> None:
    # of this test alone: the others share the town, in any order
    asked = "SELECT sex, COUNT(*) AS n FROM people WHERE age <> 66 GROUP BY sex"
    before = spent(town, "alice")
    reply = client.query(asked)
    assert reply.kinds == "NTDDCZ"
    assert reply.columns == [("sex", types.TEXT, 0), ("n", types.INT8, 0)]
    assert [row[0] for row in reply.rows] == [b"F", b"M"]
    assert reply.tags == ["SELECT 2"]
    assert reply.notices[0]["M"].startswith("cost ε = 0.5")
    assert "n ± 6" in reply.notices[0]["D"]
    assert spent(town, "alice") - before == Fraction(1, 2)
    again = client.query(asked)
    assert (again.rows, spent(town, "alice") - before) == (reply.rows, Fraction(1, 2))
    answer = town.server.curator.ask(asked, analyst="alice", epsilon=0.5)
    assert [row[1] for row in reply.rows] == [
        str(each).encode() for each in answer.table.column("n").to_pylist()
    ]


def test_without_a_price_nothing_is_asked(town: Running) -> None:
    before = spent(town, "alice")
    with Client(town.port) as client:
        refused = client.query(COUNT)
        assert (refused.code, refused.status) == ("55X01", "I")
        assert "SET discreet.epsilon" in refused.errors[0]["H"]
        assert client.query("SELECT name, beds FROM places ORDER BY name").rows[0] == (
            b"Harbor",
            b"20",
        )
        assert client.query("SET discreet.epsilon = 0.25").tags == ["SET"]
        assert client.query("SELECT COUNT(*) AS n FROM people WHERE age <> 1").tags == ["SELECT 1"]
    assert spent(town, "alice") - before == Fraction(1, 4)


def test_the_policys_price_is_taken_where_none_is_set(town: Running) -> None:
    with Client(town.port, "bob") as client:
        assert client.query("SHOW discreet.epsilon").rows == [(b"1/4",)]
        assert client.query("SELECT COUNT(*) AS n FROM people WHERE age <> 2").tags == ["SELECT 1"]
        assert spent(town, "bob") == Fraction(1, 4)
        assert client.query("SHOW discreet.budget").rows == [("ε = 0.75, δ = 1e-6".encode(),)]
        assert client.query("SET discreet.epsilon = 0.9").code == ""
        over = client.query("SELECT COUNT(*) AS n FROM people WHERE age <> 3")
        assert (over.code, over.status) == ("53X01", "I")
        assert "0.75" in over.errors[0]["M"]
        assert client.query("RESET discreet.epsilon; SHOW discreet.epsilon").rows == [(b"1/4",)]
    assert spent(town, "bob") == Fraction(1, 4)


def test_a_margin_instead_of_a_price(client: Client) -> None:
    assert client.query("SET discreet.margin = 3; SHOW discreet.epsilon").rows == [(b"",)]
    assert "n ± 3" in client.query("SELECT COUNT(*) AS n FROM visits").notices[0]["D"]
    assert client.query("SET discreet.epsilon = 0.5; SHOW discreet.margin").rows == [(b"",)]


def test_margins_as_columns(client: Client) -> None:
    client.query("SET discreet.margins = columns")
    reply = client.query(COUNT)
    assert [name for name, _, _ in reply.columns] == ["sex", "n", "n_margin"]
    assert reply.rows[0][2] == b"6"
    described = client.extended(parse(COUNT), describe("S"))
    assert described.columns == reply.columns
    client.query("SET discreet.margins = none")
    assert "±" not in client.query(COUNT).notices[0].get("D", "").replace("± covers", "")


def test_a_refusal_has_a_place_and_a_hint_and_the_connection_lives_on(client: Client) -> None:
    refused = client.query("  SELECT COUNT(*) AS n FROM people; SELECT\nzip FROM people")
    assert refused.tags == ["SELECT 1"]
    assert (refused.code, refused.status) == ("42X01", "I")
    assert refused.errors[0]["S"] == "ERROR"
    assert refused.errors[0]["P"] == str(len("  SELECT COUNT(*) AS n FROM people; SELECT\n") + 1)
    assert refused.errors[0]["H"]
    assert client.query(COUNT).tags == ["SELECT 2"]


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("INSERT INTO people VALUES (1)", "25006"),
        ("DROP TABLE people", "25006"),
        ("COPY people TO STDOUT", "0A000"),
        ("COPY (SELECT 1) TO '/etc/passwd'", "42501"),
        ("COPY people FROM STDIN", "0A000"),
        ("EXPLAIN ANALYZE SELECT COUNT(*) FROM people", "0A000"),
        ("SELECT 'never closed", "42601"),
        ("SELECT /* never closed", "42601"),
        ("SELECT $tag$ never closed", "42601"),
        ("SET nonsense = 1", "42704"),
        ("SET server_version = 16", "55P02"),
        ("SET discreet.epsilon = -1", "22023"),
        ("SET discreet.epsilon = nan", "22023"),
        ("SET client_encoding = LATIN1", "22023"),
        ("SET TimeZone = 'Europe/Vienna'", "22023"),
        ("SHOW nonsense", "42704"),
        ("FETCH 1 FROM nothing", "34000"),
        ("EXECUTE nothing", "26000"),
        ("SAVEPOINT a", "25P01"),
        ("DECLARE c CURSOR FOR SELECT COUNT(*) FROM people", "25P01"),
    ],
)
def test_what_is_refused_has_its_code(client: Client, sql: str, code: str) -> None:
    reply = client.query(sql)
    assert (reply.code, reply.status, reply.rows) == (code, "I", [])


def test_a_view_of_a_session_is_refused_with_what_to_write(client: Client) -> None:
    """Ibis makes one where it is asked for a temporary view."""
    reply = client.query(
        "CREATE OR REPLACE TEMPORARY VIEW adults AS SELECT * FROM people WHERE age > 17"
    )
    assert (reply.code, reply.status) == ("25006", "I")
    assert "WITH name AS" in reply.errors[0]["H"]
    asked = "WITH adults AS (SELECT * FROM people WHERE age > 17) SELECT COUNT(*) AS n FROM adults"
    assert client.query(asked).tags == ["SELECT 1"]


def test_an_auditor_reads_and_never_asks(town: Running) -> None:
    with Client(town.port, "dave", options="-c discreet.epsilon=0.5") as client:
        assert client.query(COUNT).code == "42501"
        assert client.query("SHOW server_version").rows == [(b"15.0",)]
        assert b"discreet_statements_total" in client.query("SHOW discreet.metrics").rows[0][0]
    with Client(town.port) as client:
        assert client.query("SHOW discreet.metrics").code == "42501"


def test_a_curators_questions_are_the_curators(town: Running) -> None:
    before = spent(town, "curator")
    with Client(town.port, "carol", options="-c discreet.epsilon=0.5") as client:
        assert client.query("SELECT COUNT(*) AS n FROM people WHERE age <> 4").tags == ["SELECT 1"]
    assert spent(town, "curator") - before == Fraction(1, 2)


# --- the extended protocol ------------------------------------------------------------------------


def test_describing_asks_nothing_and_one_execute_is_one_spend(
    town: Running, client: Client
) -> None:
    before = spent(town, "alice")
    sql = "SELECT smoker, COUNT(*) AS n, AVG(income) AS mean FROM people GROUP BY smoker"
    described = client.extended(
        parse(sql, name="s"), describe("S", "s"), bind(statement="s"), describe("P")
    )
    assert described.kinds == "1tT2TZ"
    assert spent(town, "alice") == before
    expected = [("smoker", types.BOOL, 0), ("n", types.INT8, 0), ("mean", types.FLOAT8, 0)]
    assert described.columns == expected
    first = client.extended(bind(statement="s"), execute())
    assert first.kinds == "2NDDCZ"
    assert client.extended(bind(statement="s"), execute()).rows == first.rows
    assert client.extended(bind(statement="s", results=[1]), execute()).rows[0][0] == b"\0"
    assert spent(town, "alice") - before == Fraction(1, 2)


def test_parameters_of_inferred_types(client: Client) -> None:
    sql = (
        "SELECT COUNT(*) AS n FROM visits WHERE cost > $1 AND day >= $2 AND seen < $3 AND day BETWEEN $4 AND $5 "
        "LIMIT $6"
    )
    reply = client.extended(parse(sql), describe("S"))
    assert reply.errors == []
    assert reply.parameters == [
        types.NUMERIC,
        types.DATE,
        types.TIMESTAMP,
        types.DATE,
        types.DATE,
        types.INT8,
    ]
    people = "SELECT COUNT(*) AS n FROM people WHERE age > $1 AND sex IN ($2, $3) AND smoker = $4 AND zip = ANY($5)"
    reply = client.extended(parse(people), describe("S"))
    assert reply.parameters == [
        types.INT8,
        types.TEXT,
        types.TEXT,
        types.BOOL,
        types.ARRAYS[types.TEXT],
    ]
    cast = client.extended(parse("SELECT COUNT(*) AS n FROM people WHERE age > $1::int4 AND age < CAST($2 AS int2)"),
                           describe("S"))  # fmt: skip
    assert cast.parameters == [types.INT4, types.INT2]


def test_values_are_part_of_the_question(town: Running, client: Client) -> None:
    sql = "SELECT COUNT(*) AS n FROM people WHERE age > $1 AND sex = $2"
    client.query("SET discreet.epsilon = 100")
    as_text = client.extended(parse(sql, name="v"), bind([b"40", b"F"], statement="v"), execute())
    binary = client.extended(
        bind([struct.pack("!q", 40), b"F"], statement="v", formats=[1, 1], results=[1]), execute()
    )
    written = client.query("SELECT COUNT(*) AS n FROM people WHERE age > 40 AND sex = 'F'")
    assert as_text.rows == written.rows
    assert struct.unpack("!q", binary.rows[0][0])[0] == int(written.rows[0][0])
    assert (
        len({entry.text for entry in town.server.curator.ledger() if "40 AND sex" in entry.text})
        == 1
    )
    other = client.extended(bind([b"79", b"F"], statement="v"), execute())
    assert other.rows != as_text.rows
    quoted = client.extended(bind([b"40", b"F'; DROP TABLE people; --"], statement="v"), execute())
    assert quoted.errors == [] or quoted.code == "42X01"


@pytest.mark.parametrize(
    ("value", "format", "code"),
    [
        (b"forty", 0, "22P02"),
        (b"\0\0", 1, "22P03"),
        (b"1e400000", 0, "22P02"),
        (b"\xff", 0, "22P02"),
    ],
)
def test_a_value_that_is_none_of_its_type(
    client: Client, value: bytes, format: int, code: str
) -> None:
    sql = "SELECT COUNT(*) AS n FROM people WHERE age > $1"
    assert client.extended(parse(sql), bind([value], formats=[format]), execute()).code == code


def test_a_portal_is_asked_once_and_read_in_pages(town: Running, client: Client) -> None:
    before = spent(town, "alice")
    sql = "SELECT age, COUNT(*) AS n FROM people GROUP BY age ORDER BY age"
    client.query("BEGIN")
    first = client.extended(parse(sql), bind(portal="p"), execute("p", 50))
    assert (first.kinds[-2:], len(first.rows)) == ("sZ", 50)
    second = client.extended(execute("p", 50))
    rest = client.extended(execute("p", 50))
    assert (len(second.rows), len(rest.rows), rest.tags) == (50, 21, ["SELECT 21"])
    assert [int(row[0]) for reply in (first, second, rest) for row in reply.rows] == list(
        range(121)
    )
    assert client.extended(execute("p", 50)).rows == []
    client.query("COMMIT")
    assert client.extended(execute("p")).code == "34000"
    assert spent(town, "alice") - before == Fraction(1, 2)


def test_pipeline_after_an_error_is_skipped_to_the_next_sync(client: Client) -> None:
    client.send(
        parse("SELECT zip FROM people"), bind(), execute(), parse(COUNT), bind(), execute(), SYNC,
        parse(COUNT), bind(), execute(), SYNC,
    )  # fmt: skip
    first, second = client.read(), client.read()
    assert (first.code, first.rows) == ("42X01", [])
    assert second.tags == ["SELECT 2"]


def test_flush_sends_what_is_there(client: Client) -> None:
    client.send(parse(COUNT), FLUSH)
    assert client.message() == (b"1", b"")
    assert client.extended(bind(), execute()).tags == ["SELECT 2"]


def test_names_of_statements_and_portals(client: Client) -> None:
    assert client.extended(parse(COUNT, name="x"), parse(COUNT, name="x")).code == "42P05"
    assert (
        client.extended(
            close("S", "x"), parse(COUNT, name="x"), close("S", "x"), close("P", "y")
        ).kinds
        == "313" + "3Z"
    )
    assert client.extended(bind(statement="x")).code == "26000"
    assert client.extended(describe("S", "x")).code == "26000"
    assert client.extended(execute("x")).code == "34000"
    assert client.extended(parse(""), bind(), execute()).kinds == "12IZ"
    assert client.query("").kinds == "IZ"
    assert client.query(" -- nothing\n;;").kinds == "IZ"
    assert client.extended(parse("SELECT 1; SELECT 2")).code == "42601"
    assert client.extended(parse(COUNT), bind([b"1"])).code == "08P01"
    assert client.extended(parse(COUNT), bind(results=[0, 1, 0]), execute()).code == "08P01"


def test_prepare_and_execute_by_name(client: Client) -> None:
    client.query("SET discreet.epsilon = 100")
    assert client.query(
        "PREPARE q(int) AS SELECT COUNT(*) AS n FROM people WHERE age > $1"
    ).tags == ["PREPARE"]
    direct = client.query("SELECT COUNT(*) AS n FROM people WHERE age > 33")
    assert client.query("EXECUTE q(33)").rows == direct.rows
    assert client.query("EXECUTE q(1, 2)").code == "42601"
    assert client.query("DEALLOCATE q").tags == ["DEALLOCATE"]
    assert client.query("EXECUTE q(33)").code == "26000"


# --- types ----------------------------------------------------------------------------------------


def test_binary_results_hold_the_same_values(client: Client) -> None:
    sql = (
        "SELECT COUNT(*) AS n, SUM(income) AS total, AVG(income) AS mean, MAX(day) AS last, MAX(seen) AS moment, "
        "COUNT(*) > 5 AS many FROM people JOIN visits USING (person_id)"
    )
    client.query("SET discreet.epsilon = 50")
    shown = client.extended(parse(sql), bind(), describe("P"), execute())
    assert shown.errors == []
    binary = client.extended(parse(sql), bind(results=[1]), describe("P"), execute())
    for (_, oid, _), as_text, as_binary in zip(
        shown.columns, shown.rows[0], binary.rows[0], strict=True
    ):
        assert _same(oid, as_text, as_binary), oid


def _same(oid: int, shown: bytes, binary: bytes) -> bool:
    match oid:
        case types.INT8:
            return struct.unpack("!q", binary)[0] == int(shown)
        case types.FLOAT8:
            return struct.unpack("!d", binary)[0] == float(shown)
        case types.BOOL:
            return (binary == b"\1") == (shown == b"t")
        case types.DATE:
            days = struct.unpack("!i", binary)[0]
            return str(types.EPOCH + datetime.timedelta(days=days)) == shown.decode()
        case types.TIMESTAMP:
            moment = types.EPOCH_TIME + datetime.timedelta(
                microseconds=struct.unpack("!q", binary)[0]
            )
            return moment == datetime.datetime.fromisoformat(shown.decode())
        case types.NUMERIC:
            from discreet.server.pgwire.parameters import decode

            return decode(binary, oid, binary=True) == Decimal(shown.decode())
    raise AssertionError(oid)


# --- settings, transactions, cursors --------------------------------------------------------------


def test_settings_of_the_startup_message_are_what_reset_returns_to(town: Running) -> None:
    with Client(
        town.port, options="-c discreet.epsilon=0.5 --discreet.margins=none", application_name="a b"
    ) as client:
        assert client.settings["application_name"] == "a b"
        assert client.settings["server_version"] == "15.0"
        assert client.settings["session_authorization"] == "alice"
        client.query("SET discreet.epsilon = 0.7; SET application_name = 'other'")
        assert client.settings["application_name"] == "other"
        assert client.query("SHOW discreet.epsilon").rows == [(b"0.7",)]
        assert client.query("RESET ALL; SHOW discreet.epsilon").rows == [(b"0.5",)]
        assert client.settings["application_name"] == "a b"
        shown = {row[0]: row[1] for row in client.query("SHOW ALL").rows}
        assert shown[b"discreet.margins"] == b"none"
    for wrong in ("-c discreet.epsilon=-1", "-c nonsense=1", "nonsense"):
        with Client(town.port, options=wrong) as client:
            assert client.reply.errors[0]["S"] == "FATAL"


@pytest.mark.parametrize(
    "sql",
    [
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
        "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET TIME ZONE 'UTC'",
        "SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE",
        "SET NAMES 'utf8'",
        'SET search_path = "public", pg_catalog',
        "SET DateStyle TO 'ISO'",
        "SET extra_float_digits = 3",
        "SET SESSION statement_timeout TO '30s'",
        "SET ROLE none",
        "SET LOCAL discreet.epsilon = 0.1",
        "RESET ALL",
        "DISCARD ALL",
        "DISCARD PLANS",
        "CLOSE ALL",
        "DEALLOCATE ALL",
        "UNLISTEN *",
        "SHOW TRANSACTION ISOLATION LEVEL",
        "SHOW TIME ZONE",
        "BEGIN READ ONLY; COMMIT",
        "START TRANSACTION ISOLATION LEVEL SERIALIZABLE; END",
        "ABORT",
    ],
)
def test_what_clients_send_to_set_themselves_up(client: Client, sql: str) -> None:
    assert client.query(sql).errors == []


def test_a_charge_does_not_roll_back_and_a_notice_says_so(town: Running, client: Client) -> None:
    before = spent(town, "alice")
    sql = "SELECT COUNT(*) AS n FROM people WHERE age <> 5"
    assert client.query("BEGIN; SET discreet.epsilon = 0.3").status == "T"
    answered = client.query(sql)
    rolled = client.query("ROLLBACK")
    assert "stays charged" in rolled.notices[0]["M"]
    assert rolled.status == "I"
    assert client.query("SHOW discreet.epsilon").rows == [(b"0.5",)]
    assert spent(town, "alice") - before == Fraction(3, 10)
    assert client.query(f"SET discreet.epsilon = 0.3; {sql}").rows == answered.rows
    assert spent(town, "alice") - before == Fraction(3, 10)
    assert client.query("BEGIN").notices == []
    assert client.query("ROLLBACK").notices == []


def test_a_failed_transaction_waits_for_its_end(client: Client) -> None:
    client.query("BEGIN; SAVEPOINT a")
    assert client.query("SELECT zip FROM people").status == "E"
    assert client.query(COUNT).code == "25P02"
    assert client.query("ROLLBACK TO a").status == "T"
    assert client.query(COUNT).tags == ["SELECT 2"]
    assert client.query("RELEASE a; SAVEPOINT b; RELEASE SAVEPOINT b").status == "T"
    assert client.query("ROLLBACK TO SAVEPOINT a").code == "3B001"
    assert client.query("COMMIT").tags == ["ROLLBACK"]
    assert (
        client.query("BEGIN; SET LOCAL discreet.epsilon = 0.2; SET discreet.rows = none").status
        == "T"
    )
    assert client.query("COMMIT; SHOW discreet.epsilon").rows == [(b"0.5",)]


def test_a_cursor_with_all_its_fetches_is_one_spend(town: Running, client: Client) -> None:
    before = spent(town, "alice")
    sql = "SELECT age, COUNT(*) AS c FROM people WHERE smoker GROUP BY age ORDER BY age"
    reply = client.query(
        f'BEGIN;declare "SQL_CUR1" cursor with hold for {sql};fetch 100 in "SQL_CUR1"'
    )
    assert reply.tags == ["BEGIN", "DECLARE CURSOR", "FETCH 100"]
    assert client.query("COMMIT").tags == ["COMMIT"]
    assert len(client.query('FETCH FORWARD 100 FROM "SQL_CUR1"').rows) == 21
    assert [row[0] for row in client.query('FETCH PRIOR "SQL_CUR1"').rows] == [b"120"]
    assert [row[0] for row in client.query('FETCH BACKWARD 2 FROM "SQL_CUR1"').rows] == [
        b"119",
        b"118",
    ]
    assert [row[0] for row in client.query('FETCH ABSOLUTE 5 FROM "SQL_CUR1"').rows] == [b"4"]
    assert client.query('MOVE FORWARD ALL IN "SQL_CUR1"').tags == ["MOVE 116"]
    assert [row[0] for row in client.query('FETCH FIRST FROM "SQL_CUR1"').rows] == [b"0"]
    assert len(client.query('FETCH ALL FROM "SQL_CUR1"').rows) == 120
    assert client.query('CLOSE "SQL_CUR1"').tags == ["CLOSE CURSOR"]
    assert client.query('FETCH 1 FROM "SQL_CUR1"').code == "34000"
    assert spent(town, "alice") - before == Fraction(1, 2)
    client.query(
        "BEGIN; DECLARE never CURSOR FOR SELECT COUNT(*) AS n FROM people WHERE age <> 6; COMMIT"
    )
    assert client.query("FETCH 1 FROM never").code == "34000"
    assert spent(town, "alice") - before == Fraction(1, 2)


def test_explain_says_the_cost_first_and_asks_nothing(town: Running, client: Client) -> None:
    before = spent(town, "alice")
    reply = client.query("EXPLAIN SELECT COUNT(*) AS n FROM people WHERE age <> 7")
    assert reply.columns[0][0] == "QUERY PLAN"
    assert reply.rows[0][0].startswith(b"cost=0.00..0.50")
    assert len(reply.rows) > 3
    as_json = client.query(
        "EXPLAIN (FORMAT JSON, VERBOSE) SELECT COUNT(*) AS n FROM people WHERE age <> 7"
    )
    assert b'"Total Cost": 0.5' in as_json.rows[0][0]
    assert spent(town, "alice") == before


@pytest.mark.parametrize(
    ("options", "copied"),
    [
        ("", b"F\t%b\nM\t%b\n"),
        ("WITH (FORMAT text, DELIMITER '|')", b"F|%b\nM|%b\n"),
        ("(FORMAT CSV, HEADER)", b"sex,n\nF,%b\nM,%b\n"),
        ("WITH CSV HEADER DELIMITER AS ';'", b"sex;n\nF;%b\nM;%b\n"),
        ("WITH (FORMAT csv, HEADER false, NULL 'none')", b"F,%b\nM,%b\n"),
    ],
)
def test_copy_as_text(client: Client, options: str, copied: bytes) -> None:
    numbers = tuple(row[1] for row in client.query(COUNT).rows)
    reply = client.query(f"COPY ({COUNT}) TO STDOUT {options}")
    assert reply.kinds.replace("d", "") == "NHcCZ"
    assert b"".join(reply.copied) == copied % numbers
    assert reply.tags == ["COPY 2"]


@pytest.mark.parametrize("options", ["(FORMAT BINARY)", "WITH BINARY", "WITH (FORMAT 'binary')"])
def test_copy_as_binary(client: Client, options: str) -> None:
    numbers = [int(row[1]) for row in client.query(COUNT).rows]
    data = b"".join(client.query(f"COPY ({COUNT}) TO STDOUT {options}").copied)
    assert data[:11] == b"PGCOPY\n\xff\r\n\0"
    row = struct.Struct("!hi1siq")
    assert [row.unpack_from(data, 19 + index * row.size)[4] for index in range(2)] == numbers
    assert data[-2:] == b"\xff\xff"


# --- logging in, cancelling, leaving --------------------------------------------------------------


def test_logins_that_fail_are_one_answer(town: Running) -> None:
    replies = []
    for user, password in (("alice", "wrong"), ("mallory", "wrong"), ("mallory", PASSWORD)):
        with Client(town.port, user, password=password) as client:
            replies.append((client.reply.kinds, client.reply.errors))
    assert replies[0] == replies[1] == replies[2]
    assert replies[0][1][0]["C"] == "28P01"
    with Client(town.port, database="nonsense") as client:
        assert client.reply.errors[0]["C"] == "3D000"
        assert "town" in client.reply.errors[0]["H"]


def test_who_is_removed_is_refused_at_the_next_statement(tmp_path: Path) -> None:
    with (
        running(open_town(tmp_path)) as town,
        Client(town.port, options="-c discreet.epsilon=0.5") as client,
    ):
        assert client.query(COUNT).tags == ["SELECT 2"]
        town.users.lock("alice")
        refused = client.query(COUNT)
        assert (refused.errors[0]["S"], refused.code, refused.status) == ("FATAL", "28000", "")
        with Client(town.port) as again:
            assert again.reply.errors[0]["C"] == "28P01"


def test_cancel_ends_the_waiting_and_not_the_charge(
    town: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, begun = threading.Event(), threading.Event()
    ask = town.server.curator.ask

    def slow(sql: str, **rest: object) -> object:
        answer = ask(sql, **rest)  # type: ignore[arg-type]
        begun.set()
        held.wait(60)
        return answer

    before = spent(town, "alice")
    sql = "SELECT COUNT(*) AS n FROM people WHERE age <> 8"
    with Client(town.port, options="-c discreet.epsilon=0.5") as client:
        monkeypatch.setattr(town.server.curator, "ask", slow)
        client.send(pack(b"Q", text(sql)))
        assert begun.wait(60)
        for number, secret in (
            (client.key[0], client.key[1] ^ 1),
            (client.key[0] + 999, client.key[1]),
            client.key,
        ):
            with socket.create_connection(("127.0.0.1", town.port), timeout=60) as canceller:
                canceller.sendall(struct.pack("!IIII", 16, 80877102, number, secret))
                assert canceller.recv(1) == b""
        cancelled = client.read()
        assert (cancelled.code, cancelled.status) == ("57014", "I")
        held.set()
        monkeypatch.undo()
        assert client.query(sql).tags == ["SELECT 1"]
    assert spent(town, "alice") - before == Fraction(1, 2)


def test_a_statement_that_takes_too_long_is_left(
    town: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = threading.Event()
    monkeypatch.setattr(town.server.curator, "ask", lambda *_, **__: held.wait(60))
    with Client(town.port, options="-c discreet.epsilon=0.5 -c statement_timeout=50ms") as client:
        assert client.query("SELECT COUNT(*) AS n FROM people WHERE age <> 9").code == "57014"
        held.set()


def test_our_own_mistake_is_one_sentence(town: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> object:
        raise ZeroDivisionError("income of Karrie: 56274")

    monkeypatch.setattr(town.server.curator, "ask", broken)
    with Client(town.port, options="-c discreet.epsilon=0.5") as client:
        reply = client.query("SELECT COUNT(*) AS n FROM people WHERE age <> 10")
        assert reply.code == "XX000"
        assert "56274" not in str(reply)
        monkeypatch.undo()
        assert client.query(COUNT).tags == ["SELECT 2"]
