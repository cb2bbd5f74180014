"""Shared by all tests. That it stands here puts this folder on the path, for modules such as
`by_definition`.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import chance


def pytest_addoption(parser: Any) -> None:
    parser.addoption(
        "--real-chance", action="store_true", help="draw other random numbers in every run"
    )


def pytest_configure(config: Any) -> None:
    # How long an example takes, or to draw it, says nothing about the code on a busy machine.
    settings.register_profile(
        "ours",
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=not config.getoption("real_chance"),
    )
    settings.load_profile("ours")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: Any) -> Iterator[Any]:
    """Takes a test's random bits from its name."""
    if item.config.getoption("real_chance"):
        return (yield)
    with chance.of(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Iterator[Any]:
    """Takes the random bits of what several tests share from its own name, not from the first of
    them.
    """
    if request.config.getoption("real_chance") or fixturedef.scope == "function":
        return (yield)
    with chance.of(f"{fixturedef.baseid}::{fixturedef.argname} {getattr(request, 'param', '')}"):
        return (yield)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, for pages. It is no Python package: where it is missing a developer is told, and CI
    fails.
    """
    from playwright.sync_api import sync_playwright

    path = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if path is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(
            "Chromium is missing, so NO BROWSER TEST RAN. Install it: apt-get install chromium."
        )
    with sync_playwright() as playwright:
        # Without its own sandbox, because root in a container has none to give; the page is ours.
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The fuzzer's counts, of all tests and workers together."""
    from fuzz.run import FUZZED, summary

    counts: Counter[str] = Counter()
    for report in itertools.chain.from_iterable(terminalreporter.stats.values()):
        if getattr(report, "when", "") == "call":
            for name, value in report.user_properties:
                counts.update(value if name == FUZZED else {})
    if counts:
        terminalreporter.section(FUZZED)
        terminalreporter.write_line(summary(counts))
