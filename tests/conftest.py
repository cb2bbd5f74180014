"""Shared by all tests. That it stands here puts this folder on the path, for modules such as `by_definition`."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

# How long an example takes says nothing about the code on a busy machine.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What tests recorded to be read, such as the fuzzer's counts; also where workers ran them."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if getattr(report, "when", "") == "call":
                    terminalreporter.section(name)
                    terminalreporter.write_line(str(value))
