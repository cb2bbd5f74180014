"""The HTTP door: an analyst's and a curator's session over JSON, and what each role may do."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.server.http import shapes
from server.http_client import Browser
from server.running_server import Running, open_town, running

COUNT = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
SAVING = "SELECT MEDIAN(age) AS a, MEDIAN(income) AS i FROM people"


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(open_town(tmp_path_factory.mktemp("town"))) as found:
        yield found


def browser(town: Running, user: str = "alice") -> Browser:
    found = Browser(town.http)
    assert found.log_in(user).status == 200
    return found


def by_token(town: Running, user: str = "alice") -> Browser:
    return Browser(town.http, token=town.users.add_token(user))


def test_health_is_for_everybody_and_says_nothing_else(town: Running) -> None:
    reply = Browser(town.http).get("/health")
    assert (reply.status, reply.json) == (200, {"status": "ok"})


def test_a_session_of_an_analyst(town: Running) -> None:
    alice = browser(town)
    assert alice.get("/session").json["role"] == "analyst"
    tables = {table["name"]: table for table in alice.get("/tables").json["tables"]}
    assert set(tables) == {"people", "visits", "places"}
    columns = {column["name"]: column for column in tables["people"]["columns"]}
    assert columns["age"]["range"] == ["0", "120"]
    assert columns["sex"]["values"] == ["F", "M"]
    assert (columns["zip"]["groups"], columns["person_id"]["key"]) == ("unknown", "owner")
    assert [*tables.values()] == [table.as_json() for table in town.server.curator.tables()]
    assert [column["name"] for column in tables["places"]["columns"]] == ["name", "beds"]
    quote = alice.post("/quote", {"sql": COUNT, "epsilon": 0.5})
    assert quote.json["cost"]["epsilon"] == 0.5
    assert quote.json["margins"]["n"] > 0
    assert (
        alice.post("/explain", {"sql": COUNT, "epsilon": 0.5})
        .json["explanation"][0]
        .startswith("1")
    )
    before = alice.get("/budget").json
    answer = alice.post("/ask", {"sql": COUNT, "epsilon": "1/2"}).json
    assert answer["columns"] == ["sex", "n"]
    assert answer["types"] == ["string", "int64"]
    assert [row[0] for row in answer["rows"]] == ["F", "M"]
    assert answer["margins"][0][0] is None
    assert answer["margins"][0][1] == quote.json["margins"]["n"]
    assert answer["cost"]["exact"]["epsilon"] == "1/2"
    assert answer["certificate"]["question"] == COUNT
    after = alice.get("/budget").json
    assert before["left"]["epsilon"] - after["left"]["epsilon"] == pytest.approx(0.5)
    history = alice.get("/history").json
    assert history["answers"][0]["link"] == answer["link"]
    assert history["charges"][0]["question"] == COUNT
    again = alice.get(f"/answers/{answer['link']}")
    assert again.json == answer
    free = alice.post("/ask", {"sql": COUNT, "epsilon": 0.5}).json
    assert free["cost"]["epsilon"] == 0
    assert free["rows"] == answer["rows"]


def test_a_shared_answer_tells_nobody_elses_budget(town: Running) -> None:
    alice, bob, dave = (browser(town, name) for name in ("alice", "bob", "dave"))
    answer = alice.post(
        "/ask", {"sql": "SELECT COUNT(*) AS shared FROM visits", "epsilon": "1/8"}
    ).json
    told = str(answer["left"]["epsilon"])
    for reader, left in ((bob, bob.get("/budget").json["left"]["epsilon"]), (dave, 0)):
        seen = reader.get(f"/answers/{answer['link']}").json
        assert seen["left"]["epsilon"] == left
        assert {**seen, "left": None, "notes": None} == {**answer, "left": None, "notes": None}
        assert told not in "".join(seen["notes"])
        for format in ("arrow", "parquet", "csv"):
            assert (
                told.encode() not in reader.get(f"/answers/{answer['link']}?format={format}").body
            )
    assert alice.get(f"/answers/{answer['link']}").json == answer


def test_every_format_holds_the_same_numbers(town: Running) -> None:
    alice = by_token(town)
    body = {"sql": COUNT, "epsilon": 0.25}
    told = alice.post("/ask", body).json
    values = [row[1] for row in told["rows"]]
    by_accept = alice.post("/ask", body, Accept="application/vnd.apache.arrow.stream")
    table = pa.ipc.open_stream(by_accept.body).read_all()
    assert table.column_names == ["sex", "n", "n ±"]
    assert table["n"].to_pylist() == values
    parquet = alice.post("/ask?format=parquet", body)
    assert pq.read_table(io.BytesIO(parquet.body))["n"].to_pylist() == values
    csv = alice.get(f"/answers/{told['link']}?format=csv")
    assert csv.headers["content-type"].startswith("text/csv")
    assert csv.headers["content-disposition"].startswith("attachment")
    lines = csv.body.decode().split("\r\n")
    assert lines[0] == "sex,n,n ±"
    assert lines[1].startswith(f"F,{values[0]},")
    assert alice.post("/ask", body, Accept="image/png").status == 406
    assert (
        alice.post("/ask", body, Accept="text/html, */*;q=0.1").headers["content-type"]
        == "application/json"
    )


def test_errors_have_one_shape(town: Running) -> None:
    alice = by_token(town)
    fields = {"kind", "sentence", "hint", "line", "column", "code"}
    refused = alice.post("/ask", {"sql": "SELECT\n  age FROM people", "epsilon": 1})
    assert (refused.status, refused.error["kind"], refused.error["code"]) == (
        422,
        "rejected",
        "42X01",
    )
    assert refused.error["line"] == 2
    assert refused.error["hint"]
    cases = {
        "budget": (402, by_token(town, "bob").post("/ask", {"sql": COUNT, "epsilon": 2})),
        "usage": (400, alice.post("/ask", {"sql": COUNT, "epsilon": -1})),
        "unpriced": (400, alice.post("/ask", {"sql": COUNT})),
        "denied": (401, Browser(town.http).get("/tables")),
        "missing": (404, alice.get("/nowhere")),
    }
    for kind, (status, reply) in cases.items():
        assert (reply.status, reply.error["kind"]) == (status, kind)
        assert set(reply.error) == fields
    for reply in (
        alice.post("/ask", {"sql": COUNT, "epsilon": 1, "seed": 1}),
        alice.post("/ask", b"{"),
        alice.post("/ask", {"sql": 5}),
        alice.send("DELETE", "/api/v1/ask"),
        alice.get("/ledger"),
    ):
        assert set(reply.error) == fields
        assert reply.status in (403, 405, 422)


def test_the_policy_gives_a_default_price(town: Running) -> None:
    answer = by_token(town, "bob").post("/ask", {"sql": "SELECT COUNT(*) AS n FROM visits"}).json
    assert answer["cost"]["exact"]["epsilon"] == "1/4"
    public = (
        by_token(town).post("/ask", {"sql": "SELECT name, beds FROM places ORDER BY name"}).json
    )
    assert public["rows"] == [["Harbor", 20], ["Hill", 10]]
    assert public["cost"]["epsilon"] == 0


def test_several_questions_at_once(town: Running) -> None:
    alice = by_token(town)
    asked = [{"sql": COUNT, "epsilon": 0.125}, {"sql": "SELECT age FROM people", "epsilon": 1}]
    found = alice.post("/ask_all", {"questions": asked}).json["answers"]
    assert found[0]["columns"] == ["sex", "n"]
    assert found[1]["error"]["kind"] == "rejected"


def test_the_description_names_all_that_replies_have(town: Running) -> None:
    """Also what only some have: the ranks of quantiles, and what could be written instead."""
    alice = by_token(town)
    body = {
        "sql": "SELECT sex, COUNT(*) AS n, MEDIAN(age) AS m FROM people GROUP BY sex",
        "epsilon": 0.5,
    }
    answer = shapes.AnswerReply.model_validate(alice.post("/ask", body).json, strict=True)
    assert answer.ranks["m"].counted == "n"
    assert len(answer.ranks["m"].told) == len(answer.rows)
    assert (answer.model_extra, answer.ranks["m"].model_extra) == ({}, {})

    told = alice.post("/quote", {"sql": SAVING, "epsilon": 0.5}).json
    quote = shapes.QuoteReply.model_validate(told)
    assert quote.savings == told["savings"] != []
    assert quote.model_extra == {}
    named = Browser(town.http).get("/openapi.json").json["components"]["schemas"]
    assert {"ranks"} <= set(named["AnswerReply"]["properties"])
    assert {"savings", "unlisted", "shared_by", "instead"} <= set(named["QuoteReply"]["properties"])
