"""The server's pages in Chromium: sessions of an analyst, a curator and a learner, and what must
never happen.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from discreet.server.http.pages import SCRIPTS, static_files
from server.http_client import Browser
from server.running_server import PASSWORD, Running, open_town, running

ROOT = Path(__file__).parent.parent.parent
AXE = ROOT / ".venvs" / "node" / "node_modules" / "axe-core" / "axe.min.js"
WAIT = 60_000
PARTS = ("budgets", "ledger", "exposure", "upkeep", "users", "publishing", "policy")
LESSONS = ("noise", "coins", "composition", "differencing")


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(open_town(tmp_path_factory.mktemp("town"))) as found:
        yield found


@contextmanager
def opened(
    browser: Any, town: Running, user: str | None = "alice", path: str = "/", **options: Any
) -> Iterator[Any]:
    """A page of a user. It asks no other host for anything, and its security policy stops
    nothing.
    """
    context = browser.new_context(base_url=f"http://127.0.0.1:{town.http}", **options)
    context.set_default_timeout(WAIT)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "console", lambda told: wrong.append(told.text) if "Content Security" in told.text else None
    )
    page.on("request", lambda sent: wrong.append(sent.url) if not _is_own(sent.url, town) else None)
    if user is not None:
        log_in(page, user, path)
    else:
        page.goto(path)
    yield page
    context.close()
    assert wrong == []


def _is_own(url: str, town: Running) -> bool:
    return url.startswith((f"http://127.0.0.1:{town.http}/", "data:", "blob:"))


def log_in(page: Any, user: str, path: str = "/") -> None:
    page.goto(path)
    page.fill("#user", user)
    page.fill("#password", PASSWORD)
    page.click("#login button")
    page.wait_for_url(lambda url: "/login" not in url)


def write(page: Any, sql: str) -> None:
    page.click("#way-sql")
    page.fill("#editor textarea", sql)


def ask(page: Any) -> None:
    page.wait_for_selector("#price .primary:not([disabled])")
    page.click("#price .primary")
    page.wait_for_selector("#answer .tabs")


def charges(town: Running, analyst: str) -> int:
    return len(town.server.curator.ledger(analyst=analyst))


# --- an analyst -----------------------------------------------------------------------------------


def test_an_analyst_chooses_sees_the_price_asks_and_finds_it_again(
    browser: Any, town: Running
) -> None:
    before = charges(town, "alice")
    with opened(browser, town) as page:
        page.select_option("[data-part=by]", "sex")
        assert "GROUP BY sex" in page.input_value("#editor textarea")
        page.fill("#price input[type=text]", "0.5")
        page.wait_for_selector("text=/n ± \\d/")
        page.wait_for_selector("text=/such questions fit/")
        page.wait_for_selector(".curve svg")
        ask(page)
        assert page.locator("#answer .bars .name").all_inner_texts() == ["F", "M"]
        page.get_by_role("tab", name="Table").click()
        assert "±" in page.inner_text("#answer table")
        page.wait_for_selector("text=Show: free")
        link = page.url
        with page.expect_download() as download:
            page.click("#answer >> text=csv")
        assert Path(download.value.path()).read_text().startswith("sex,n")
        page.click("#history-box summary")
        page.wait_for_selector("#history .past a")
    assert charges(town, "alice") == before + 1
    with opened(
        browser, town, "bob", link.partition(str(town.http))[2]
    ) as page:  # shared by its link
        page.wait_for_selector("#answer .tabs")
        assert "GROUP BY sex" in page.input_value("#editor textarea")
    assert charges(town, "alice") == before + 1


def test_completion_and_refusals_with_a_remedy(browser: Any, town: Running) -> None:
    with opened(browser, town) as page:
        write(page, "")
        page.locator("#editor textarea").press_sequentially("SELECT COUNT(*) FROM peo")
        page.wait_for_selector("#offers li >> text=people")
        page.keyboard.press("Enter")
        assert page.input_value("#editor textarea").endswith("FROM people")
        page.locator("#editor textarea").press_sequentially(" WHERE agee > 30")
        page.wait_for_selector(".colors .underline >> text=agee")
        page.click(".remedy >> text=Write age")
        page.wait_for_selector("#price .primary:not([disabled])")
        assert page.input_value("#editor textarea") == "SELECT COUNT(*) FROM people WHERE age > 30"
        assert page.locator(".underline").count() == 0
        page.fill("#editor textarea", "SELECT sex, COUNT(*) FROM people")
        page.click(".remedy >> text=Add GROUP BY sex")
        page.wait_for_selector("#price .primary:not([disabled])")


def test_the_price_says_what_would_save(browser: Any, town: Running) -> None:
    with opened(browser, town) as page:
        write(page, "SELECT COUNT(*) AS n, MEDIAN(age) AS m FROM people")
        page.wait_for_selector("#price .told >> text=/Without MEDIAN\\(age\\), n would be ± \\d/")


def test_a_line_with_a_band_over_time_and_several_questions(browser: Any, town: Running) -> None:
    with opened(browser, town) as page:
        write(
            page,
            "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM visits GROUP BY month",
        )
        ask(page)
        assert page.locator("#answer .band").count() == 1
        page.click("[aria-label='New question']")
        assert page.input_value("#editor textarea") == ""
        page.click("text=Question 1")
        page.wait_for_selector("#answer .tabs")
        assert "DATE_TRUNC" in page.input_value("#editor textarea")


def test_back_and_forward_go_through_answers(browser: Any, town: Running) -> None:
    with opened(browser, town) as page:
        for sql in ("SELECT COUNT(*) AS one FROM people", "SELECT COUNT(*) AS two FROM people"):
            write(page, sql)
            ask(page)
            page.wait_for_selector(f"#answer th >> text={sql[19:22]}", state="attached")
        page.go_back()
        page.wait_for_selector("#answer th >> text=one", state="attached")
        page.go_forward()
        page.wait_for_selector("#answer th >> text=two", state="attached")


def test_a_reload_during_a_question_pays_once(browser: Any, town: Running) -> None:
    before = charges(town, "alice")
    with opened(browser, town) as page:
        write(page, "SELECT SUM(age) AS reloaded FROM people")
        page.wait_for_selector("#price .primary:not([disabled])")
        replies = []
        page.route(
            "**/api/v1/ask", lambda route: replies.append(route.fetch().status) or route.abort()
        )
        page.click("#price .primary")  # it is answered, and the reply is lost
        page.wait_for_selector("text=Ask again")
        page.unroute("**/api/v1/ask")
        page.reload()
        page.wait_for_selector("#answer .tabs")
        assert replies == [200]
    assert charges(town, "alice") == before + 1


def test_a_lost_network_is_told_and_asking_again_pays_once(browser: Any, town: Running) -> None:
    before = charges(town, "alice")
    with opened(browser, town) as page:
        write(page, "SELECT SUM(age) + 1 AS lost, COUNT(DISTINCT sex) FROM people")
        page.wait_for_selector("#price .primary:not([disabled])")
        page.context.set_offline(True)
        page.click("#price .primary")
        page.wait_for_selector("text=The server cannot be reached")
        page.context.set_offline(False)
        page.click(".remedy")
        page.wait_for_selector("#answer .tabs")
    assert charges(town, "alice") == before + 1


@pytest.mark.slow
def test_two_tabs_have_questions_of_their_own(browser: Any, town: Running) -> None:
    with opened(browser, town) as page:
        write(page, "SELECT COUNT(*) FROM visits")
        other = page.context.new_page()
        other.goto("/")
        write(other, "SELECT AVG(age) FROM people")
        ask(page)
        ask(other)
        page.reload()
        other.reload()
        page.wait_for_selector("#answer .tabs")
        assert page.input_value("#editor textarea") == "SELECT COUNT(*) FROM visits"
        assert other.input_value("#editor textarea") == "SELECT AVG(age) FROM people"


def test_a_session_that_ended_leads_to_the_login_and_back(browser: Any, town: Running) -> None:
    with opened(browser, town) as page:
        write(page, "SELECT COUNT(*) AS kept FROM people")
        page.wait_for_selector("#price .primary:not([disabled])")
        page.context.clear_cookies()
        page.click("#price .primary")
        page.wait_for_selector("text=Your session has ended")
        page.fill("#user", "alice")
        page.fill("#password", PASSWORD)
        page.click("#login button")
        page.wait_for_selector("#answer .tabs")  # the question under way is asked again
        assert page.input_value("#editor textarea") == "SELECT COUNT(*) AS kept FROM people"
        page.click("#logout")
        page.wait_for_url("**/login")
        assert page.evaluate("sessionStorage.length") == 0


def test_an_auditor_opens_links_and_asks_nothing(browser: Any, town: Running) -> None:
    with opened(browser, town, "dave") as page:
        page.wait_for_selector("text=Auditors open answers")
        assert not page.is_visible("#price")


@pytest.mark.parametrize("next", ["//evil.example/", "javascript:hit()"])
def test_the_login_leads_nowhere_else(browser: Any, town: Running, next: str) -> None:
    with opened(browser, town, None, f"/login?next={next}") as page:
        page.fill("#user", "alice")
        page.fill("#password", PASSWORD)
        page.click("#login button")
        page.wait_for_selector("#price .told")
        assert page.url == f"http://127.0.0.1:{town.http}/"


# --- a curator ------------------------------------------------------------------------------------


def test_a_curator_sees_budgets_and_searches_the_ledger(browser: Any, town: Running) -> None:
    client = Browser(town.http)
    client.log_in("alice")
    assert (
        client.post("/ask", {"sql": "SELECT COUNT(*) AS needle FROM people", "epsilon": 2}).status
        == 200
    )
    with opened(browser, town, "carol", "/curate") as page:
        page.wait_for_selector("[data-part=budgets] .bars")
        page.wait_for_selector("text=Spent over time")
        page.click("text=Ledger")
        page.fill("input[type=search]", "needle")
        page.wait_for_selector("text=1 charge")
        page.click("text=Certificate")
        page.wait_for_selector("dialog pre >> text=mechanism")
        page.click("dialog >> text=Close")
        page.click("text=Exposed")
        page.wait_for_selector("text=never shown, to join on")
        page.go_back()
        page.wait_for_selector("[data-part=ledger]")


def test_pages_are_for_those_who_may_see_them(browser: Any, town: Running) -> None:
    with opened(browser, town, "alice", "/curate") as page:
        page.wait_for_selector("text=This is not for the role analyst.")
        assert page.locator("nav >> text=Curate").count() == 0


# --- a learner ------------------------------------------------------------------------------------


def test_lessons_run_without_a_server_or_a_login(browser: Any, town: Running) -> None:
    with opened(browser, town, None, "/learn") as page:
        page.wait_for_selector("[data-part=noise] .plot")
        page.context.set_offline(True)
        page.click("text=Draw an answer")
        page.wait_for_selector("text=/times as likely with Karrie as without\\.$/")
        page.click("text=Draw 400 of each")
        page.click("text=Coins")
        page.click("text=Ask all again")
        assert page.locator(".person").count() == 300
        page.click("nav >> text=Budget")
        page.click("text=Ask 200 times")
        page.wait_for_selector("text=The budget is spent")
        page.click("text=Differencing")
        page.wait_for_selector("text=Their difference is about one")
        page.click("text=Ask with noise")
        page.wait_for_selector("text=says nothing")


# --- all pages ------------------------------------------------------------------------------------


def test_the_first_page_is_small(town: Running) -> None:
    loaded = static_files()
    for scripts in SCRIPTS.values():
        size = sum(len(loaded[name].packed) for name in (*scripts, "kit.css", "pages.css"))
        assert size < 40_000
    client = Browser(town.http)
    reply = client.send("GET", "/static/ask.js", Accept_Encoding="gzip")
    assert gzip.decompress(reply.body) == loaded["ask.js"].content
    again = client.send("GET", "/static/ask.js", If_None_Match=reply.headers["etag"])
    assert (again.status, again.body) == (304, b"")


def test_scripts_are_told_of_before_they_are_needed() -> None:
    """Each page's list holds exactly what its first script imports, and what those import."""
    loaded = static_files()
    for first, *others in SCRIPTS.values():
        needed, found = [first], set[str]()
        while needed:
            name = needed.pop()
            found.add(name)
            text = loaded[name].content.decode()
            needed += set(re.findall(r'^import .*?from "\./(\w+\.js)"', text, re.MULTILINE)) - found
        assert found == {first, *others}


@pytest.mark.parametrize(
    "path", ["/static/../__init__.py", "/static/%2e%2e%2f__init__.py", "/static/x.js", "/static/"]
)
def test_only_known_files_are_sent(town: Running, path: str) -> None:
    assert Browser(town.http).send("GET", path).status == 404


def test_no_page_has_a_script_or_a_style_of_its_own(town: Running) -> None:
    client = Browser(town.http)
    client.log_in("carol")
    for path in ("/", "/curate", "/learn", "/login"):
        reply = client.send("GET", path)
        assert reply.status == 200
        assert "script-src 'self'; style-src 'self'" in reply.headers["content-security-policy"]
        text = reply.body.decode()
        assert not re.search(
            r"<style|\sstyle=|\son\w+=|<script(?! type=\"module\" src=\"/static/)|https?:", text
        )
    for name, file in static_files().items():
        assert not re.search(
            rb"https?://(?!www\.w3\.org/2000/svg)|\beval\(|innerHTML|outerHTML", file.content
        ), name


# --- what everybody can use -----------------------------------------------------------------------


def violations(page: Any) -> list[str]:
    if not AXE.exists():
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(
            "axe-core is missing: make clients"
        )
    # by the debugger, which the page's security policy does not bind
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("async () => (await axe.run(document)).violations")
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found]


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_everybody_can_use_the_pages(browser: Any, town: Running, scheme: str) -> None:
    with opened(browser, town, None, "/login", color_scheme=scheme) as page:
        assert violations(page) == []
        for lesson in LESSONS:
            page.goto(f"/learn#{lesson}")
            page.wait_for_selector(f"[data-part={lesson}] h2")
            assert violations(page) == [], lesson
    with opened(browser, town, color_scheme=scheme) as page:
        page.select_option("[data-part=by]", "sex")
        ask(page)
        page.wait_for_selector(".curve svg")
        page.click("text=Add a condition")
        assert violations(page) == []
        write(page, "SELECT agee FROM people")
        page.wait_for_selector(".remedy")
        assert violations(page) == []
    with opened(browser, town, "carol", "/curate", color_scheme=scheme) as page:
        for part in PARTS:
            page.goto(f"/curate#{part}")
            page.wait_for_selector(f"[data-part={part}]:not([aria-busy])")
            assert violations(page) == [], part


def test_decimals_have_commas_and_the_digits_that_their_margin_leaves(
    browser: Any, town: Running
) -> None:
    with opened(browser, town) as page:
        told = page.evaluate(
            """async () => {
              const { decimalText } = await import("/static/numbers.js");
              return [decimalText("123800.32", null), decimalText("-1234567.5", null),
                decimalText("12345678.91", 4321), decimalText("99.5", null)];
            }"""
        )
    assert told == ["123,800.32", "−1,234,567.5", "12,345,679", "99.5"]


def test_paper_has_the_answer_and_nothing_to_click(browser: Any, town: Running) -> None:
    with opened(browser, town) as page:
        write(page, "SELECT sex, COUNT(*) AS printed FROM people GROUP BY sex")
        ask(page)
        page.emulate_media(media="print")
        page.wait_for_selector("#answer .bars")
        page.wait_for_selector("#editor textarea")
        for gone in ("header.top", "aside", "#notices", "#price .primary", ".share"):
            page.locator(gone).first.wait_for(state="hidden")


@pytest.mark.slow
def test_a_phone_shows_all_of_it(browser: Any, town: Running) -> None:
    """Nothing is wider than the screen but what scrolls by itself."""
    wide = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
    phone = {"viewport": {"width": 390, "height": 800}}
    with opened(browser, town, **phone) as page:
        page.select_option("[data-part=by]", "sex")
        ask(page)
        assert not page.evaluate(wide)
    with opened(browser, town, "carol", "/curate", **phone) as page:
        for part in PARTS:
            page.goto(f"/curate#{part}")
            page.wait_for_selector(f"[data-part={part}]:not([aria-busy])")
            assert not page.evaluate(wide), part
    with opened(browser, town, None, "/learn", **phone) as page:
        for lesson in LESSONS:
            page.goto(f"/learn#{lesson}")
            page.wait_for_selector(f"[data-part={lesson}] h2")
            assert not page.evaluate(wide), lesson


def test_the_keyboard_alone(browser: Any, town: Running) -> None:
    with opened(browser, town) as page:
        write(page, "SELECT COUNT(*) AS keys FROM people")
        page.wait_for_selector("#price .primary:not([disabled])")
        page.focus("#editor textarea")
        page.keyboard.press("Control+Enter")
        page.wait_for_selector("#answer .tabs")
        page.focus("#answer [role=tab][aria-selected=true]")
        page.keyboard.press("ArrowRight")
        assert page.locator("#answer [role=tab][aria-selected=true]").inner_text() == "Certificate"
