"""`init --page`: the same questions in a browser; who else gets at them; what is written, and when."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlencode

import pytest

from discreet.cli.start.interview import Do, Interview, Listener
from discreet.engines.advice import check
from discreet.engines.drafts.draft import draft
from discreet.pages.forms import OTHER
from discreet.policy.policy import Policy

CUT_OFF = """() => [...document.querySelectorAll('h1, p, label, .choice, button, pre')].filter(each => {
  const box = each.getBoundingClientRect();
  return box.width && (box.left < -1 || box.right > innerWidth + 1);
}).map(each => each.textContent)"""


@pytest.fixture
def interview(tmp_path: Path) -> Interview:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "people.csv").write_text("id,age,<b>note</b>\n1,SECRET,SECRET\n")
    (tmp_path / "data" / "states.csv").write_text("code,name\nAL,Alabama\n")
    made = draft(tmp_path / "data", beside=tmp_path)
    return Interview(made, out=tmp_path / "p.yaml")


@pytest.fixture
def listener(interview: Interview) -> Iterator[Listener]:
    with Listener(interview) as found:
        answering = Thread(target=answer, args=(found,))
        answering.start()
        yield found
        found.done.set()
        answering.join()


def answer(listener: Listener) -> None:
    while not listener.done.is_set():
        listener.handle_request()


def take(interview: Interview, choice: str, other: str = "", do: Do = Do.NEXT) -> str:
    title = interview.page().split("<h1>")[1].split("</h1>")[0]
    fields = {"question": title.replace("&lt;", "<").replace("&gt;", ">")}
    return interview.take({**fields, "do": do, "choice": choice, "other": other})


def test_question_after_question(interview: Interview, tmp_path: Path) -> None:
    page = interview.page()
    assert "people: whose is a row?" in page
    assert "EACH ROW is taken to be one person" in page
    assert "There is no column nobody here. There are id, age" in take(interview, OTHER, "nobody")
    assert "Write it into the field" in take(interview, OTHER, " ")
    take(interview, "id")
    assert "A count at ε = 0.1 is right to ± 300." in interview.page()
    take(interview, OTHER, "3")
    take(interview, "{identifier: true}")
    assert "the range ends (0) before it begins (9)" in take(interview, OTHER, "{integer: [9, 0]}")
    assert "Question 3 of" in take(interview, OTHER, "{integer: [0, 99]}", Do.BACK)
    take(interview, "{identifier: true}")
    assert "age: the range ends" in take(interview, OTHER, "{integer: [9, 0]}")
    assert "Question 3" in take(interview, "-", "{integer: [9, 0]}", Do.BACK)
    take(interview, "{identifier: true}")
    assert "people.&lt;b&gt;note&lt;/b&gt;" in take(interview, "-", "{integer: [0, 99]}")
    take(interview, "-")
    assert "states: whose is a row?" in interview.page()
    review = take(interview, "{public: true}")
    assert "Nothing is written yet" in review
    assert not (tmp_path / "p.yaml").exists()
    assert "is written" in interview.take({"do": Do.WRITE})
    text = (tmp_path / "p.yaml").read_text()
    assert "SECRET" not in text + review
    for line in (
        "    owner: id  # you said so\n    max_rows: 3  #",
        "      age: {integer: [0, 99]}  # you said so\n",
        "      # '<b>note</b>': left out: you said so\n",
        "  states: {public: true}  # you said so\n",
    ):
        assert line in text
    assert check(Policy.read(tmp_path / "p.yaml")).problems == ()


def test_an_old_form_answers_nothing(interview: Interview) -> None:
    take(interview, "id")
    before = interview.draft
    interview.take({"do": Do.NEXT, "question": "people: whose is a row?", "choice": "row"})
    assert interview.draft == before
    interview.take({"do": Do.WRITE})
    assert not interview.settled
    interview.take({})
    assert interview.draft == before


def test_a_name_with_a_line_break_stays_in_its_line(interview: Interview) -> None:
    assert "Write it in one line." in take(interview, OTHER, "row\n  evil: {owner: id}")


def test_the_rest_as_suggested(interview: Interview) -> None:
    take(interview, "id")
    assert "Nothing is written yet" in interview.take({"do": Do.REST})
    text = interview.draft.text()
    assert "age: {integer: [0, 120]}  # from the name: check" in text
    assert "# '<b>note</b>': {integer" in text


@pytest.mark.parametrize(
    ("path", "host", "status"),
    [("/", None, 404), ("/x/", None, 404), (None, "evil.example", 404), (None, None, 200)],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_who_gets_at_it(
    listener: Listener, method: str, path: str | None, host: str | None, status: int
) -> None:
    """Nobody without the secret, and no page of another site by a name that leads here."""
    connection = http.client.HTTPConnection("127.0.0.1", listener.server_port, timeout=10)
    headers = {} if host is None else {"Host": host}
    body = urlencode({"do": "rest"}) if method == "POST" else None
    connection.request(method, path or f"/{listener.secret}/", body=body, headers=headers)
    reply = connection.getresponse()
    assert reply.status == status
    content = reply.read().decode()
    assert ("people" in content) == (status == 200)
    if status == 200:
        assert reply.headers["Cache-Control"] == "no-store"
        assert "default-src 'none'" in reply.headers["Content-Security-Policy"]
    connection.close()
    assert (listener.interview.place > 0) == (method == "POST" and status == 200)


def test_a_form_that_is_too_large(listener: Listener) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", listener.server_port, timeout=10)
    connection.putrequest("POST", f"/{listener.secret}/")
    connection.putheader("Content-Length", "1000000000")
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


def test_in_a_browser(listener: Listener, browser: Any, tmp_path: Path) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800})
    tab = context.new_page()
    requests: list[str] = []
    tab.on("request", lambda request: requests.append(request.url))
    tab.goto(listener.address)
    tab.get_by_label("id", exact=False).first.check()
    while tab.get_by_role("button", name="Next").count():
        assert tab.evaluate(CUT_OFF) == []
        if "states: whose" in tab.locator("h1").inner_text():
            tab.get_by_label("{public: true}").check()
        tab.get_by_role("button", name="Next").click()
    assert tab.evaluate(CUT_OFF) == []
    tab.get_by_role("button", name="Write").click()
    assert "is written" in tab.locator("h1").inner_text()
    assert check(Policy.read(tmp_path / "p.yaml")).problems == ()
    assert {url for url in requests if not url.endswith("favicon.ico")} == {listener.address}
    assert listener.done.wait(10)
    context.close()
