"""`discreet.connect`: the curator's signatures over HTTP, with the same answers and the same
errors.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import discreet
from discreet.client import Client, Unreachable
from server.running_server import Running, open_town, running

BY_SEX = "SELECT sex, COUNT(*) AS n, AVG(income) AS mean FROM people GROUP BY sex"


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(open_town(tmp_path_factory.mktemp("town"))) as found:
        yield found


@pytest.fixture(scope="module")
def client(town: Running) -> Client:
    return discreet.connect(f"http://127.0.0.1:{town.http}", token=town.users.add_token("alice"))


def test_an_answer_is_the_curators_own(town: Running, client: Client) -> None:
    far = client.ask(BY_SEX, analyst="alice", epsilon=0.5)
    # free now: the same numbers
    near = town.server.curator.ask(BY_SEX, analyst="alice", epsilon=0.5)
    assert isinstance(far, discreet.Answer)
    assert far.table.equals(near.table)
    assert far.margins.equals(near.margins)
    assert far.selected == near.selected
    assert far.cost.epsilon == 0.5
    assert far.left == near.left
    assert far.certificate["mechanisms"] == near.certificate["mechanisms"]
    assert "±" in str(far)
    assert "<table" in far._repr_html_()
    assert list(far.to_pandas().columns)[:2] == ["sex", "n"]
    assert far.to_polars().shape[0] == 2


def test_before_paying(town: Running, client: Client) -> None:
    quote = client.quote(BY_SEX, epsilon=0.25)
    near = town.server.curator.quote(BY_SEX, analyst="alice", epsilon=0.25)
    assert quote.cost == near.cost
    assert quote.margins["n"] == near.margins["n"]
    several = "SELECT COUNT(*) AS n, MEDIAN(age) AS m FROM people"
    [told] = client.quote(several, epsilon=0.25).savings
    assert (told,) == town.server.curator.quote(several, analyst="alice", epsilon=0.25).savings
    mistyped = "SELECT COUNT(*) AS n FROM people WHERE sex = 'f'"
    assert client.quote(mistyped, epsilon=0.25).unlisted == (
        "No listed value of sex is 'f'. Did you mean F?",
    )
    assert client.explain(BY_SEX, epsilon=0.25) == town.server.curator.explain(
        BY_SEX, analyst="alice", epsilon=0.25
    )
    assert client.left() == town.server.curator.left(analyst="alice")
    assert client.tables()["unit"] == "person"


def test_history_and_links(client: Client) -> None:
    answer = client.ask("SELECT COUNT(*) AS n FROM visits", epsilon="1/8")
    listed = client.history()["answers"][0]
    assert client.answer(listed["link"]).table.equals(answer.table)
    found = client.ask_all(
        [{"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "1/8"}, {"sql": "nonsense"}]
    )
    assert found[0]["rows"] == [[answer.table["n"][0].as_py()]]
    assert found[1]["error"]["kind"] == "rejected"


def test_errors_are_those_of_the_curator(town: Running, client: Client) -> None:
    with pytest.raises(discreet.Rejected) as refused:
        client.ask("SELECT\n age FROM people", epsilon=1)
    assert refused.value.line == 2
    assert refused.value.hint
    bob = discreet.connect(f"http://127.0.0.1:{town.http}", token=town.users.add_token("bob"))
    with pytest.raises(discreet.BudgetExceeded):
        bob.ask(BY_SEX, epsilon=5)
    for wrong in (
        {"epsilon": -1},
        {"epsilon": 1, "analyst": "bob"},
        {"epsilon": 1, "dialect": "oracle"},
    ):
        with pytest.raises(discreet.UsageError):
            client.ask(BY_SEX, **wrong)  # type: ignore[arg-type]
    with pytest.raises(discreet.UsageError, match="token lets nobody in"):
        discreet.connect(f"http://127.0.0.1:{town.http}", token="dsc_wrong").left()
    with pytest.raises(discreet.UsageError, match="https"):
        discreet.connect("http://example.org", token="x")
    with pytest.raises(Unreachable):
        discreet.connect("http://127.0.0.1:1", token="x").left()


def test_it_loads_no_engine(town: Running) -> None:
    token = town.users.add_token("alice")
    code = f"""
import sys, discreet
answer = discreet.connect("http://127.0.0.1:{town.http}", token={token!r}).ask({BY_SEX!r}, epsilon=0.5)
assert answer.table.num_rows == 2
print([name for name in ("duckdb", "sqlglot", "fastapi", "scipy") if name in sys.modules])
"""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert found.stdout.strip() == "[]"


def test_over_tls(tmp_path: Path) -> None:
    import ssl

    from discreet.server import tls

    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    tls.make(certificate, key)
    with running(open_town(tmp_path), tls=tls.load(certificate, key)) as town:
        token, url = town.users.add_token("alice"), f"https://127.0.0.1:{town.http}"
        trusting = ssl.create_default_context(cafile=str(certificate))
        assert (
            Client(url, token=token, context=trusting).ask(BY_SEX, epsilon=0.5).table.num_rows == 2
        )
        with pytest.raises(Unreachable):
            discreet.connect(url, token=token).left()  # nobody vouches for it
