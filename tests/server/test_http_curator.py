"""A curator's session over HTTP: ledger, users, policy, long work with its events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from server.http_client import Browser, Reply
from server.running_server import POLICY, open_town, running, tables


def events(reply: Reply) -> list[tuple[str, Any]]:
    """The names and contents of a stream's events."""
    found = []
    for block in reply.body.decode().split("\n\n"):
        lines = dict(
            line.split(": ", 1)
            for line in block.split("\n")
            if ": " in line and not line.startswith(":")
        )
        if lines:
            found.append((lines["event"], json.loads(lines["data"])))
    return found


def test_a_session_of_a_curator(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for name, table in tables().items():
        pq.write_table(table, data / f"{name}.parquet")
    curator = open_town(tmp_path, f"source: data\n{POLICY}")
    with running(curator) as town:
        carol, alice = Browser(town.http), Browser(town.http, token=town.users.add_token("alice"))
        carol.log_in("carol")
        asked = alice.post("/ask", {"sql": "SELECT COUNT(*) AS n FROM people", "epsilon": 0.5}).json
        ledger = carol.get("/ledger?search=count&analyst=alice").json
        assert ledger["total"] == 1
        assert ledger["entries"][0]["analyst"] == "alice"
        assert ledger["analysts"]["alice"]["spent"]["epsilon"] == 0.5
        assert ledger["everybody"]["spent"]["epsilon"] == 0.5
        assert carol.get("/ledger?search=nowhere").json["total"] == 0
        certificate = carol.get(f"/ledger/{asked['answer_id']}").json
        assert certificate["analyst"] == "alice"
        assert "discreet_statements_total" in carol.get("/metrics").body.decode()

        made = carol.post("/users", {"name": "erin", "role": "auditor"}).json
        erin = Browser(town.http)
        assert erin.log_in("erin", made["password"]).status == 200
        assert carol.post("/users/erin/lock").json["locked"]
        assert erin.get("/tables").status == 401
        assert carol.post("/users/carol/lock").status == 400
        token = carol.post("/users/alice/tokens", {"days": 1}).json["token"]
        assert Browser(town.http, token=token).get("/tables").status == 200
        identity = token.split("_")[1]
        assert carol.send("DELETE", f"/api/v1/users/alice/tokens/{identity}").status == 204
        assert Browser(town.http, token=token).get("/tables").status == 401
        assert carol.send("DELETE", "/api/v1/users/erin").status == 204
        assert "erin" not in {user["name"] for user in carol.get("/users").json["users"]}

        for kind in ("check", "snapshot"):
            job = carol.post(f"/{kind}").json
            told = events(carol.send("GET", job["events"]))
            assert told[-1][0] == "done", told
            later = events(carol.send("GET", job["events"], Last_Event_ID=str(len(told) - 1)))
            assert later == told[-1:]
            assert carol.get(f"/jobs/{job['id']}").json["result"] == told[-1][1]
            assert alice.get(f"/jobs/{job['id']}").status == 404
        assert told[-1][1]["number"] == 2
        failed = carol.post("/publications/nothing/run").json
        assert events(carol.send("GET", failed["events"]))[-1][1]["error"]["kind"] == "usage"

        found = carol.post("/bounds", {"table": "people", "column": "age", "epsilon": 1}).json
        assert float(found["low"]) < float(found["high"])
        job = carol.post(
            "/describe", {"table": "people", "epsilon": 5, "columns": ["sex", "smoker"]}
        ).json
        made = events(carol.send("GET", job["events"]))[-1][1]
        rows = alice.get(f"/descriptions/{made['link']}/rows?rows=20&format=json").json
        assert len(rows["rows"]) == 20
        assert carol.get("/descriptions").json["descriptions"][0]["link"] == made["link"]


def test_a_policy_is_edited_with_its_mistakes_in_place(tmp_path: Path) -> None:
    with running(open_town(tmp_path)) as town:
        carol = Browser(town.http)
        carol.log_in("carol")
        held = carol.get("/policy").json
        assert held["served"]
        text = held["text"]
        wrong = carol.post("/policy/preview", {"text": text.replace("[0, 120]", "[120, 0]")}).json
        assert wrong["problems"][0]["line"] == 7
        refused = carol.send("PUT", "/api/v1/policy", {"text": "unit: person"})
        assert (refused.status, refused.error["kind"]) == (422, "policy")
        assert refused.error["problems"]
        moved = carol.send("PUT", "/api/v1/policy", {"text": f"source: /etc\n{text}"})
        assert moved.status == 403
        elsewhere = "engine: {name: postgres, at: 'postgresql://eve@203.0.113.7/all'}"
        copied = carol.send("PUT", "/api/v1/policy", {"text": f"{elsewhere}\n{text}"})
        assert (copied.status, copied.error["sentence"].split()[0]) == (403, "engine")
        assert carol.get("/policy").json["text"] == text
        new = (
            text.replace("max_rows: 3", "max_rows: 5")
            .replace("[0, 120]", "[0, 99]")
            .replace("alice: {epsilon: 1000}", "alice: {epsilon: 9}")
        )
        said = " ".join(carol.post("/policy/preview", {"text": new}).json["changes"])
        for word in (
            "visits.max_rows: 3 before, 5 now",
            "people.age",
            "new snapshot",
            "alice: ε = 1000",
            "--amend",
        ):
            assert word in said
        assert carol.send("PUT", "/api/v1/policy", {"text": new}).status == 200
        after = carol.get("/policy").json
        assert after["text"] == new
        assert not after["served"]
