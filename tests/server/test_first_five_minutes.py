"""The steps of docs/first_five_minutes.md, on the demo town; with PICTURES=FOLDER it takes their
pictures.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.binding import create_ledger
from discreet.examples import town
from discreet.policy.policy import Policy
from discreet.server.users import UserFile
from server.running_server import PASSWORD, running
from server.test_pages import ask, log_in, opened, write

SMALL = {"viewport": {"width": 1000, "height": 760}}


def take(page: Any, name: str) -> None:
    folder = os.environ.get("PICTURES")
    if folder is not None:
        page.screenshot(path=Path(folder) / f"first_{name}.png")


@pytest.mark.slow
def test_from_the_login_to_a_chart_with_margins(browser: Any, tmp_path: Path) -> None:
    path = town.build(tmp_path)
    policy = Policy.read(path)
    create_ledger(policy)
    UserFile(policy).add("bob", password=PASSWORD)
    UserFile(policy).add("carol", role="curator", password=PASSWORD)
    with running(discreet.open(path)) as served:
        with opened(browser, served, "bob", **SMALL) as page:
            page.select_option("[data-part=by]", "sex")
            page.wait_for_selector("text=/n ± 30/")
            page.wait_for_selector(".curve svg")
            take(page, "price")
            ask(page)
            page.wait_for_selector("text=Show: free")
            assert page.locator("#answer .bars .name").all_inner_texts() == ["F", "M", "X"]
            colors = "part => [getComputedStyle(part).color, getComputedStyle(document.body).color]"
            tab, text = page.locator("#answer [role=tab][aria-selected=true]").evaluate(colors)
            assert tab == text  # and not that of the paper
            page.evaluate("document.getElementById('notices').replaceChildren()")
            page.locator(".share").scroll_into_view_if_needed()
            take(page, "answer")
            page.goto("/")
            write(page, "SELECT agee FROM people")
            page.wait_for_selector(".remedy >> text=Write age")
            take(page, "refusal")
        with opened(browser, served, None, "/login", **SMALL) as page:
            log_in(page, "carol", "/login?next=%2Fcurate")
            page.wait_for_selector("[data-part=budgets] .plot")
            take(page, "budgets")
