"""What may be answered: refused on the client, before anything is drawn; and what an encoder costs
to load.
"""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet import local
from discreet.errors import UsageError
from discreet.local.protocols import odds
from discreet.local.protocols.response import KaryResponse
from discreet.policy.domain import Categories, Decimals, Integers

GRID = Decimals(lo=Fraction(-1), hi=Fraction(2), step=Fraction(1, 10))


class Untouched:
    """A source that must not be asked."""

    def bits(self, k: int) -> int:
        raise AssertionError("a draw was made for an answer that is refused")


@pytest.mark.parametrize("answer", ["d", 0, None, "", "A", ["a"], float("nan")])
def test_a_value_outside_the_domain_is_refused_before_a_draw(answer: Any) -> None:
    protocol = KaryResponse(domain=["a", "b", "c"], epsilon=1)
    with pytest.raises(UsageError, match="answer one of a, b, c"):
        protocol.respond(answer, Untouched())
    with pytest.raises(UsageError, match="answer one of a, b, c"):
        protocol.encode(["a", answer])


@pytest.mark.parametrize(
    "answer", ["0.15", 2.1, -1.1, "x", None, "nan", float("inf"), "1e400", True, "1/0", 10**30]
)
def test_a_number_off_the_grid_is_refused_before_a_draw(answer: Any) -> None:
    for kind in (local.Duchi, local.Piecewise, local.Hybrid, local.SquareWave):
        with pytest.raises(UsageError, match=r"a number from -1 to 2 in steps of 0\.1"):
            kind(domain=GRID, epsilon=1).respond(answer, Untouched())


@pytest.mark.parametrize("wrong", [[0.15], [2.1], [float("nan")], [-5], [float("inf")]])
def test_numbers_off_the_grid_are_refused_in_bulk(wrong: list[float]) -> None:
    with pytest.raises(UsageError, match="a number from -1 to 2"):
        local.Hybrid(domain=GRID, epsilon=1).encode([0.0, *wrong])


def test_numbers_on_the_grid_are_taken_as_they_are_written() -> None:
    from discreet.local import answers

    for text in ("0.3", 0.3, Fraction(3, 10), "3/10", 0.1 + 0.2 - 1e-17):
        assert answers.step(GRID, text) == 13
    assert answers.steps(GRID, np.array([0.1 * 3, -1, 2, 0.30000000000000004])).tolist() == [
        13,
        0,
        30,
        13,
    ]
    assert answers.step(GRID, -0.9) == 1


@pytest.mark.parametrize("domain", [1, 0, -3, "abc", ["a"], ["a", "a"], None, 1 << 30, 2.5, True])
def test_a_domain_that_is_none_is_refused(domain: Any) -> None:
    with pytest.raises(UsageError):
        KaryResponse(domain=domain, epsilon=1)


@pytest.mark.parametrize(
    "epsilon", [0, -1, float("nan"), float("inf"), None, "x", True, 1e-320, 1e-12]
)
def test_an_epsilon_that_is_none_is_refused(epsilon: Any) -> None:
    for kind in (
        local.KaryResponse,
        local.OptimizedUnary,
        local.LocalHashing,
        local.SubsetSelection,
        local.HadamardResponse,
    ):
        with pytest.raises(UsageError):
            kind(domain=10, epsilon=epsilon)


def test_domains_may_be_given_in_several_ways() -> None:
    for domain in (3, range(3), [0, 1, 2], (0, 1, 2), Categories(values=(0, 1, 2)), np.arange(3)):
        protocol = KaryResponse(domain=domain, epsilon=1)
        assert list(protocol.domain) == [0, 1, 2]
        assert protocol.encode([2, 0, 1]).max() <= 2
    assert KaryResponse(domain=["a", "b"], epsilon="0.1").epsilon == Fraction(1, 10)
    with pytest.raises(UsageError, match="a grid"):
        local.Duchi(domain=(0, 1), epsilon=1)
    assert local.Duchi(domain=Integers(lo=0, hi=1), epsilon=1).size == 2


def test_the_smallest_epsilon_still_tells_something() -> None:
    for d in (2, 1000, 1 << 22):
        support = KaryResponse(domain=d, epsilon=odds.LEAST).support
        assert support.p > support.q


@pytest.mark.parametrize("epsilon", [20, 60, 1000])
def test_a_very_large_epsilon_is_never_certain(epsilon: int) -> None:
    """Ratios stay below e^ε, so that no report is impossible for anybody."""
    protocol = KaryResponse(domain=3, epsilon=epsilon)
    assert 0 < protocol.mass(0, 1) < protocol.mass(1, 1) < 1
    assert (protocol.encode([1] * 1000) == 1).all()


LOCAL = Path(local.__file__).parent
ENCODERS = [
    ".".join(path.relative_to(LOCAL).with_suffix("").parts)
    for room in ("protocols", "respondent")
    for path in sorted((LOCAL / room).rglob("*.py"))
    if path.stem != "__init__"
]
LOADED = "import sys; import discreet.local.{module}; print(*sorted(sys.modules))"


@pytest.mark.parametrize("module", ENCODERS)
def test_a_respondent_needs_the_standard_library_only(module: str) -> None:
    """And little of ours: a device loads nothing of curators, engines or the SQL."""
    code = LOADED.format(module=module)
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    foreign = (
        {name.partition(".")[0] for name in shown}
        - set(sys.stdlib_module_names)
        - {"discreet", "__main__"}
    )
    ours_to_install = {name for name in foreign if name.startswith("__editable__")} | {
        "_distutils_hack",
        "_virtualenv",
    }
    assert foreign <= ours_to_install | {"sitecustomize"}
    rooms = {name.split(".")[1] for name in shown if name.startswith("discreet.")}
    assert rooms <= {"budget", "errors", "local", "noise", "pages", "policy"}
