"""The public surface is one list, and importing it is cheap."""

from __future__ import annotations

import subprocess
import sys

import discreet

SURFACE = {
    "Answer",
    "Budget",
    "BudgetExceeded",
    "Curator",
    "DiscreetError",
    "EngineFailure",
    "LedgerUnavailable",
    "Policy",
    "PolicyError",
    "Quote",
    "Rejected",
    "UsageError",
    "connect",
    "open",
}


def test_the_list_is_the_surface() -> None:
    assert set(discreet.__all__) == SURFACE
    assert set(dir(discreet)) == SURFACE
    for name in discreet.__all__:
        assert getattr(discreet, name) is not None


def test_curator_has_the_fixed_verbs() -> None:
    for verb in ("ask", "quote", "explain", "ledger", "snapshot"):
        assert callable(getattr(discreet.Curator, verb))


def test_importing_loads_nothing_heavy() -> None:
    code = (
        "import sys, discreet; "
        "print([name for name in ('numpy', 'pyarrow', 'duckdb', 'sqlglot', 'scipy') if name in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert found == "[]"
