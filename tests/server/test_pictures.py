"""Pictures of every page, light, dark and narrow, to be looked at: they are in `pictures/`, which
git ignores.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import discreet
from discreet.binding import create_ledger
from discreet.examples import town
from discreet.policy.policy import Policy
from discreet.server.users import UserFile
from server.running_server import PASSWORD, Running, running
from server.test_pages import LESSONS, PARTS, ROOT, ask, opened, write

FOLDER = ROOT / "pictures"
STYLES: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1200, "height": 800}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1200, "height": 800}, "color_scheme": "dark"},
    "narrow": {"viewport": {"width": 390, "height": 800}, "color_scheme": "light"},
}
BY_PLACE = """
hierarchies:
  geography: [state]
publications:
  people_by_state: {table: people, hierarchy: geography, tables: [[], [sex]], epsilon: 1}
"""
QUESTIONS = {
    "bars": "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex",
    "many bars": "SELECT state, COUNT(*) AS n, AVG(income) AS mean_income FROM people GROUP BY state ORDER BY state",
    "line": "SELECT DATE_TRUNC('month', day) AS month, clinic, COUNT(*) AS n FROM visits GROUP BY ALL ORDER BY ALL",
    "one number": "SELECT COUNT(*) AS n FROM people WHERE diagnosis IS NULL",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = town.build(tmp_path_factory.mktemp("town"), people=3000)
    path.write_text(
        path.read_text()
        .replace("epsilon: 4, delta", "epsilon: 40, delta")
        .replace("{epsilon: 2}", "{epsilon: 20}")
        + BY_PLACE
    )
    policy = Policy.read(path)
    create_ledger(policy)
    users = UserFile(policy)
    users.add("alice", password=PASSWORD)
    users.add("bob", password=PASSWORD)
    users.add("carol", role="curator", password=PASSWORD)
    users.add_token("alice", days=30)
    with running(discreet.open(path)) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize("style", STYLES)
def test_every_page_is_pictured(
    browser: Any, served: Running, style: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = FOLDER / style
    folder.mkdir(parents=True, exist_ok=True)
    options = STYLES[style]

    def take(page: Any, name: str) -> None:
        wide = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert wide <= 0, name
        page.screenshot(path=folder / f"{name}.png", full_page=True)

    with opened(browser, served, None, "/login", **options) as page:
        take(page, "login")
        for lesson in LESSONS:
            page.goto(f"/learn#{lesson}")
            page.wait_for_selector(f"[data-part={lesson}] h2")
            take(page, f"learn {lesson}")
    with opened(browser, served, **options) as page:
        page.wait_for_selector(".curve svg")
        page.click("text=Add a condition")
        take(page, "ask")
        for name, sql in QUESTIONS.items():
            write(page, sql)
            ask(page)
            page.wait_for_selector("text=Show: free")
            take(page, f"answer {name}")
        page.get_by_role("tab", name="Certificate").click()
        page.click("#history-box summary")
        page.click("#tables-box .table >> nth=0")
        take(page, "answer certificate")
        write(page, "SELECT agee FROM people")
        page.wait_for_selector(".remedy")
        take(page, "refusal")
        page.fill("#editor textarea", "")
        page.locator("#editor textarea").press_sequentially("SELECT AVG(in")
        page.wait_for_selector("#offers li")
        take(page, "completion")
    with opened(browser, served, "carol", "/curate", **options) as page:
        for part in PARTS:
            page.goto(f"/curate#{part}")
            page.wait_for_selector(f"[data-part={part}]:not([aria-busy])")
            take(page, f"curate {part}")
    with capsys.disabled():
        print(f"\npictures: {folder}")
