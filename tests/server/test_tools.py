"""What BI tools send, through the wire: answered or refused as by the language, each charged once,
refreshes free.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import discreet
from discreet.binding import create_ledger
from discreet.errors import Rejected
from discreet.examples import town
from discreet.policy.policy import Policy
from discreet.server.users import UserFile
from server.running_server import PASSWORD, Running, running
from server.wire_client import Client, describe, parse

BI = Path(__file__).parent.parent / "sql" / "bi.tsv"
STATEMENTS = [line.split("\t")[1] for line in BI.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def tools_town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = town.build(tmp_path_factory.mktemp("tools"), people=50)
    create_ledger(Policy.read(path))
    UserFile(Policy.read(path)).add("alice", password=PASSWORD)
    with running(discreet.open(path)) as server:
        yield server


def spent(server: Running) -> Fraction:
    return sum(
        (entry.cost.amount for entry in server.server.curator.ledger(analyst="alice")), Fraction(0)
    )


def refused(server: Running, sql: str) -> bool:
    try:
        server.server.curator.quote(sql, analyst="alice", epsilon="0.0001", dialect="postgres")
    except Rejected:
        return True
    return False


def test_what_tools_send_is_answered_as_by_the_language(tools_town: Running) -> None:
    """Described as it comes, answered where the language answers; a refresh is free and gives the
    same.
    """
    with Client(tools_town.port, options="-c discreet.epsilon=0.0001") as client:
        answers = {}
        for sql in STATEMENTS:
            described = client.extended(parse(sql), describe("S"))
            answers[sql] = client.query(sql)
            assert answers[sql].code == ("42X01" if refused(tools_town, sql) else ""), sql
            assert described.columns == answers[sql].columns, sql
        assert sum(reply.code == "" for reply in answers.values()) > 0.9 * len(answers)
        before = spent(tools_town)
        for sql, reply in answers.items():
            again = client.query(sql)
            assert (again.code, again.columns, again.rows) == (
                reply.code,
                reply.columns,
                reply.rows,
            ), sql
        assert spent(tools_town) == before


@pytest.mark.parametrize(
    "probe",
    [
        "SELECT * FROM people WHERE 0 = 1",
        "SELECT * FROM people LIMIT 0",
        "SELECT age, income, smoker FROM people WHERE FALSE",
        "SELECT * FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS q WHERE 1 = 0",
    ],
)
def test_probes_are_free_and_need_no_price(tools_town: Running, probe: str) -> None:
    before = spent(tools_town)
    with Client(tools_town.port) as client:
        reply = client.query(probe)
        assert (reply.code, reply.rows, reply.tags) == ("", [], ["SELECT 0"])
        assert reply.columns
    assert spent(tools_town) == before


def test_tools_that_select_rows_to_learn_types_may_have_none(tools_town: Running) -> None:
    before = spent(tools_town)
    with Client(
        tools_town.port, options="-c discreet.epsilon=0.0001 -c discreet.rows=none"
    ) as client:
        reply = client.query("SELECT * FROM people LIMIT 1")
        assert (reply.code, reply.rows, reply.tags) == ("", [], ["SELECT 0"])
        assert reply.notices[0]["M"].startswith("No rows")
        described = client.extended(parse("SELECT * FROM people LIMIT 1"), describe("S"))
        assert described.columns == reply.columns
        assert "age" in {name for name, _, _ in reply.columns}
        assert client.query("SELECT nonsense FROM people").code == "42X01"
    assert spent(tools_town) == before
