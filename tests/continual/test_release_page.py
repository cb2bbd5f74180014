"""The page of a release in a browser: it loads nothing, says nothing to the console, and fits a
phone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_release import Visit, after, opened, tables

VISITS: list[Visit] = [(person, person % 8, "Hill", 5.0) for person in range(60)]


@pytest.mark.slow
def test_the_page_in_a_browser(tmp_path: Path, browser: Any) -> None:
    release = opened(tmp_path, tables(VISITS), epsilon="1").release("daily_visits")
    release.start()
    release.run(after(8)).save(tmp_path / "page.html")
    said: list[str] = []
    asked: list[str] = []
    for width in (1200, 390):
        tab = browser.new_page(viewport={"width": width, "height": 900})
        tab.on("console", lambda message: said.append(message.text))
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(f"file://{tmp_path}/page.html")
        assert tab.locator("figure").count() == 2 * 3 + 1
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert tab.locator("h1").inner_text() == "daily_visits"
        tab.close()
    assert said == []
    assert {url.rsplit("/", 1)[1] for url in asked} == {"page.html"}
