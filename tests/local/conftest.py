"""Chromium for the tests of the page. Where it is missing, continuous integration fails; a developer is told."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

MISSING = "{} is missing, so NO BROWSER TEST RAN. Install it: pip install playwright, apt-get install chromium."


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright")
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        missing("chromium")
    with sync_playwright() as playwright:
        # Without its own sandbox, because root in a container has none to give; the page is ours.
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


def missing(what: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(MISSING.format(what))
    pytest.skip(MISSING.format(what))
