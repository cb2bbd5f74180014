"""A curator's whole session in Chromium: every button of the page, and what it did to files, ledger
and users.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq
import pytest

from discreet.policy.policy import Policy
from server.http_client import Browser
from server.running_server import POLICY, Running, open_town, running, tables
from server.test_pages import charges, opened

PUBLISHED = """
releases:
  visits_by_month:
    question: SELECT COUNT(*) AS visits FROM visits
    time: day
    period: month
    from: 2024-01-01
    periods: 12
    publish: [daily, cumulative]
    per_person: {periods: 2}
    epsilon: 1
hierarchies:
  kinds: [sex]
publications:
  people_by_sex: {table: people, hierarchy: kinds, tables: [[], [smoker]], epsilon: 1}
"""
TEXT = f"source: data\n{POLICY}{PUBLISHED}"


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("town")
    (folder / "data").mkdir()
    for name, table in tables().items():
        pq.write_table(table, folder / "data" / f"{name}.parquet")
    with running(open_town(folder, TEXT)) as found:
        yield found


def show(page: Any, part: str) -> None:
    page.goto(f"/curate#{part}")
    page.wait_for_selector(f"[data-part={part}]:not([aria-busy])")


def press(page: Any, label: str) -> None:
    page.get_by_role("button", name=label, exact=True).click()


def test_check_and_snapshot(browser: Any, town: Running) -> None:
    with opened(browser, town, "carol", "/curate") as page:
        show(page, "upkeep")
        press(page, "Check")
        page.wait_for_selector("text=The policy fits its source.")
        page.wait_for_selector("text=What can be asked")
        press(page, "Take a snapshot")
        page.wait_for_selector("text=Snapshot 2 is taken.")
        assert "people: 60 of 60 rows kept" in page.inner_text(
            "[data-part=upkeep] .task:last-child pre"
        )
        page.wait_for_selector("progress", state="hidden")


def test_releases_and_publications(browser: Any, town: Running) -> None:
    before = charges(town, "curator")
    with opened(browser, town, "carol", "/curate") as page:
        show(page, "publishing")
        page.wait_for_selector("text=Not started yet.")
        press(page, "Price of visits_by_month")
        page.wait_for_selector("text=/Costs ε = 1, once/")
        page.wait_for_selector("td >> text=cumulative")
        assert charges(town, "curator") == before  # prices are free
        press(page, "Run visits_by_month")
        page.wait_for_selector(".task .bad")  # not before it is started
        press(page, "Start visits_by_month")
        page.wait_for_selector("text=Published 0 of 12 periods")
        press(page, "Run visits_by_month")
        page.wait_for_selector("text=Published 12 of 12 periods")
        with page.context.expect_page() as other:
            page.click("text=Page of visits_by_month")
        other.value.wait_for_selector("text=visits_by_month >> nth=0")
        press(page, "Price of people_by_sex")
        page.wait_for_selector("text=An error is one standard deviation.")
        press(page, "Run people_by_sex")
        page.wait_for_selector("text=Page of people_by_sex")
        with page.context.expect_page() as other:
            page.click("text=Page of people_by_sex")
        other.value.wait_for_selector("text=people_by_sex >> nth=0")
        show(page, "ledger")
        page.click("text=Certificate >> nth=0")
        page.wait_for_selector("dialog[open]")
        page.go_back()
        page.wait_for_selector("[data-part=publishing]")
        page.wait_for_selector("dialog", state="detached")
    assert charges(town, "curator") == before + 2
    with opened(
        browser, town, "carol", "/curate#publishing"
    ) as page:  # and it is known the next time
        page.wait_for_selector("text=Published 12 of 12 periods")


def test_the_policy_is_edited_previewed_and_written(browser: Any, town: Running) -> None:
    path = town.server.curator.policy.path
    with opened(browser, town, "carol", "/curate") as page:
        show(page, "policy")
        page.wait_for_selector("text=the server answers by this text.")
        area = page.locator("[data-part=policy] textarea")
        area.fill(
            TEXT.replace("integer: [0, 120]", "intger: [0, 120]").replace(
                "max_rows: 3", "max_rows: many"
            )
        )
        page.wait_for_selector(".problem >> nth=1")  # all mistakes at once, each at its place
        assert page.locator(".underline").count() >= 2
        assert page.is_disabled("text=Write the file")
        page.click(".problem >> nth=0")
        chosen = "(area) => area.value.slice(area.selectionStart, area.selectionEnd)"
        assert area.evaluate(chosen).startswith("intger")
        area.fill(TEXT.replace("source: data", "source: elsewhere"))
        page.wait_for_selector("text=Write the file >> visible=true")
        page.click("button:has-text('Write the file'):not([disabled])")
        page.wait_for_selector("text=source says where something is on the server.")
        assert path.read_text(encoding="utf-8") == TEXT
        new = TEXT.replace("max_rows: 3", "max_rows: 5")
        area.fill(new)
        page.wait_for_selector("text=visits.max_rows: 3 before, 5 now")
        page.click("button:has-text('Write the file'):not([disabled])")
        page.wait_for_selector("text=Written.")
        assert path.read_text(encoding="utf-8") == new
        page.reload()
        page.wait_for_selector("text=the server still answers by an older text.")
        area.fill(TEXT)
        page.click("button:has-text('Write the file'):not([disabled])")
        page.wait_for_selector("text=Written.")
    assert Policy.read(path) == town.server.curator.policy


def test_a_range_is_a_paid_question(browser: Any, town: Running) -> None:
    before = charges(town, "curator")
    with opened(browser, town, "carol", "/curate") as page:
        show(page, "policy")
        page.get_by_label("Column").select_option(label="people.age")
        page.get_by_label("ε", exact=True).fill("nothing")
        press(page, "Ask for a range")
        page.wait_for_selector(".card .bad")
        page.get_by_label("ε", exact=True).fill("2")
        press(page, "Ask for a range")
        page.wait_for_selector("text=Paid ε = 2.")
        assert charges(town, "curator") == before + 1
        show(page, "ledger")
        page.wait_for_selector("td >> text=QUANTILE_CONT")
        page.get_by_label("Who").select_option("bob")
        page.wait_for_selector("text=0 charges")


def test_users_and_tokens(browser: Any, town: Running) -> None:
    with opened(browser, town, "carol", "/curate") as page:
        show(page, "users")
        page.get_by_label("Name").fill("erin/x")
        page.get_by_label("Role").select_option("auditor")
        press(page, "Let in")
        secret = page.inner_text(".once")
        erin = Browser(town.http)
        assert erin.log_in("erin/x", secret).status == 200
        press(page, "Let in")  # there is one already
        page.wait_for_selector("[data-part=users] .bad")
        press(page, "Lock erin/x")
        page.wait_for_selector("[aria-label='Unlock erin/x']")
        assert erin.get("/session").status == 401
        press(page, "Unlock erin/x")
        page.wait_for_selector("[aria-label='Lock erin/x']")
        press(page, "New token for erin/x, for 30 days")
        token = Browser(town.http, token=page.inner_text(".once"))
        assert token.get("/session").status == 200
        page.click("[aria-label^='Revoke token']")
        page.wait_for_selector("[aria-label^='Revoke token']", state="detached")
        assert token.get("/session").status == 401
        press(page, "Remove erin/x")
        press(page, "Remove erin/x")  # it asks whether one is sure
        page.wait_for_selector("[aria-label='Remove erin/x']", state="detached")
        press(page, "Lock carol")
        page.wait_for_selector("text=You would lock yourself out.")
    assert "erin/x" not in town.users.read().users


def test_a_session_that_ended_leads_back_to_the_same_part(browser: Any, town: Running) -> None:
    with opened(browser, town, "carol", "/curate") as page:
        show(page, "users")
        page.context.clear_cookies()
        press(page, "Lock bob")
        page.wait_for_selector("text=Your session has ended")
        page.fill("#user", "carol")
        page.fill("#password", "correct horse battery")
        page.click("#login button")
        page.wait_for_selector("[data-part=users]:not([aria-busy])")
    assert not town.users.read().users["bob"].locked
