"""Passwords in the addresses of a policy are shown at no door: not in an error, a log, an answer,
an explanation, a certificate or a page.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from discreet.cli import run
from discreet.engines.drafts.draft import draft
from discreet.engines.readers import lake_at, reader_at
from discreet.errors import DiscreetError
from discreet.policy.addresses import hide_passwords, restore_passwords, without_password
from discreet.policy.policy import Policy
from server.http_client import Browser
from server.running_server import POLICY, open_town, running

SECRET = "s3cret"
NOWHERE = f"postgresql://owner:{SECRET}@127.0.0.1:1/town"
COUNT = "SELECT COUNT(*) AS n FROM people"
KEEPS = f"""\
# it was {NOWHERE}_before
source: {NOWHERE}
"""
ASKS = f"""\
engine:
  name: postgres
  at: "{NOWHERE}"
  reader: 'postgresql://reader:{SECRET}@127.0.0.1:1/town?sslpassword={SECRET}'
"""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://ann:pw@host:5432/db", "postgresql://ann:***@host:5432/db"),
        ("postgresql://ann@host:5432/db", "postgresql://ann@host:5432/db"),
        ("postgresql://ann:p@w/d'q@host/db", "postgresql://ann:***@host/db"),
        ("'postgresql://ann:my pw@host/db'", "'postgresql://ann:***@host/db'"),
        ("postgresql:/ann:pw@host/db", "postgresql:/ann:***@host/db"),
        ("postgresql://host/db?user=a&password=pw&x=1", "postgresql://host/db?user=a&password=***&x=1"),
        ("host=db password='my pw' user=ann", "host=db password=*** user=ann"),
        ("sc://host:15002/;use_ssl=true;token=pw;x=1", "sc://host:15002/;use_ssl=true;token=***;x=1"),
        ("data/", "data/"),
    ],
)  # fmt: skip
def test_an_address_is_shown_without_its_password(text: str, shown: str) -> None:
    assert hide_passwords(text) == shown


def test_an_edited_text_gets_its_passwords_back() -> None:
    before = "a: postgresql://u:one@h/db\nb: {at: 'postgresql://u:two@h/db2'}  # password=three\n"
    shown = hide_passwords(before)
    assert not {"one", "two", "three"} & set(shown.replace(":", " ").replace("@", " ").split())
    assert restore_passwords(shown, before) == before
    assert restore_passwords(f"{shown}c: 1\n", before) == f"{before}c: 1\n"
    elsewhere = shown.replace("@h/", "@evil/")
    assert "one" not in restore_passwords(elsewhere, before)


def test_a_draft_names_the_user_alone() -> None:
    assert without_password("postgresql://ann:p/w@host/db") == "postgresql://ann@host/db"
    with pytest.raises(DiscreetError) as refusal:
        draft(NOWHERE)
    assert SECRET not in str(refusal.value)


def test_no_value_prints_a_password(tmp_path: Path) -> None:
    policy = Policy.parse(KEEPS + f"ledger: {NOWHERE}\n" + ASKS + POLICY, path=tmp_path / "t.yaml")
    lake = lake_at(
        "catalog:main",
        Policy.parse(
            f"engine: {{name: spark, at: 'sc://host/;token={SECRET}'}}\n{POLICY}", path="t.yaml"
        ),
    )
    for value in (policy, policy.engine, reader_at(NOWHERE), lake):
        assert value is not None
        assert SECRET not in repr(value)


@pytest.mark.parametrize(
    "declared",
    [
        f"source: mysql://owner:{SECRET}@host/town\n",
        f"source: host=db password={SECRET}\n",
        KEEPS,
        f"ledger: {NOWHERE}\n",
        f"ledger: mysql://owner:{SECRET}@host/town\n",
        f"engine: postgresql://owner:{SECRET}@host\n",
        f"engine: {{name: postgres, at: 'mysql://owner:{SECRET}@host'}}\n",
        f"engine: {{name: postgres, at: '{NOWHERE}', reader: 'mysql://r:{SECRET}@host'}}\n",
        f"engine: {{name: postgres, at: 'postgresql://owner:{SECRET}%zz@host/town'}}\n",
        f"engine: {{name: spark, at: 'sc://127.0.0.1:1/;token={SECRET}'}}\n",
        f"unit: {NOWHERE}\nbudget: {NOWHERE}\n{NOWHERE}: 1\n",
        ASKS,
    ],
)
def test_no_command_prints_a_password(
    declared: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = tmp_path / "town.yaml"
    path.write_text(declared + POLICY, encoding="utf-8")
    caplog.set_level(logging.DEBUG)
    question = [str(path), COUNT, "--analyst", "alice", "--epsilon", "0.1"]
    for arguments in (
        ["check", str(path)],
        ["check", str(path), "--format", "json"],
        ["snapshot", str(path)],
        ["ledger", str(path), "--create"],
        ["ledger", str(path)],
        ["tables", str(path)],
        ["ask", *question],
        ["explain", *question],
        ["ask", *question, "--format", "json"],
        ["check", NOWHERE],
        ["init", NOWHERE, "--out", str(tmp_path / "new.yaml")],
    ):
        run(arguments)
        printed = capfd.readouterr()
        assert SECRET not in printed.out + printed.err, arguments
    assert SECRET not in caplog.text


def test_no_page_or_reply_shows_a_password(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with running(open_town(tmp_path, KEEPS + POLICY)) as town:
        carol = Browser(town.http)
        carol.log_in("carol")
        held = carol.get("/policy").json
        assert "owner:***@127.0.0.1:1/town" in held["text"]
        assert held["served"]

        answer = carol.post("/ask", {"sql": COUNT, "epsilon": 1})
        replies = [
            answer,
            carol.post("/explain", {"sql": COUNT, "epsilon": 1}),
            carol.post("/policy/preview", {"text": held["text"].replace("date:", "data:")}),
            carol.send("PUT", "/api/v1/policy", {"text": f"unit: {NOWHERE}\n"}),
        ]
        for kind in ("check", "snapshot"):
            job = carol.post(f"/{kind}").json
            replies.append(carol.send("GET", job["events"]))
            replies.append(carol.get(f"/jobs/{job['id']}"))
        paths = carol.get("/openapi.json").json["paths"]
        known = {"id": answer.json["answer_id"], "link": answer.json["link"]}
        for path, methods in paths.items():
            named = path.replace("/api/v1", "")
            for key, value in known.items():
                named = named.replace(f"{{{key}}}", value)
            if "get" in methods and "{" not in named:
                replies.append(carol.get(named))
        for page in ("/", "/ledger", "/policy", "/users"):
            replies.append(carol.send("GET", page))
        assert len(replies) > 20
        for reply in replies:
            assert SECRET.encode() not in reply.body

        # what is put back keeps its passwords, and what is elsewhere is refused
        new = held["text"].replace("max_rows: 3", "max_rows: 5")
        assert carol.send("PUT", "/api/v1/policy", {"text": new}).status == 200
        written = town.server.curator.policy.path.read_text(encoding="utf-8")
        assert written == (KEEPS + POLICY).replace("max_rows: 3", "max_rows: 5")
        moved = new.replace("127.0.0.1:1", "203.0.113.7")
        assert carol.send("PUT", "/api/v1/policy", {"text": moved}).status == 403
        certificate = town.server.curator.certificate(answer.json["answer_id"])
        assert SECRET not in json.dumps(certificate)
    assert SECRET not in caplog.text
