"""Every planted bug is still plantable; `make slow` also plants each, and the tests named with it
must fail.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .__main__ import caught
from .bugs import BUGS, Bug, spot

SOURCE = Path(__file__).parents[2] / "src" / "discreet"


@pytest.mark.parametrize("bug", BUGS, ids=lambda each: each.name)
def test_is_plantable(bug: Bug) -> None:
    for file, old, new in bug.edits:
        assert spot(old).search((SOURCE / file).read_text(encoding="utf-8")), file
        assert old != new


def test_a_text_is_found_however_its_lines_are_broken() -> None:
    broken = "if a:\n    x = f(\n        [1, *b],\n        c if d else e,\n    )\n"
    assert (
        spot("    x = f([1, *b], c if d else e)\n").sub("    pass\n", broken) == "if a:\n    pass\n"
    )
    assert not spot("x = f([1, *b], celse)").search(broken)
    assert not spot("x = f([1, *b])").search(broken)


def test_there_are_enough() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS) >= 20
    assert all(bug.tests for bug in BUGS)


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda each: each.name)
def test_is_caught(bug: Bug) -> None:
    found, by = caught(bug)
    assert found, by
