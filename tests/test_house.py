"""The house's own figures: nothing is tied in a knot, too winding, too long, or takes too much at
once.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parent.parent / "bench" / "house.py"
MOST_WAYS, MOST_PARAMETERS = 20, 8


@pytest.fixture(scope="module")
def house() -> ModuleType:
    spec = importlib.util.spec_from_file_location("house", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found  # where dataclasses look for their types
    spec.loader.exec_module(found)
    return found


def test_no_modules_import_one_another_in_a_circle(house: ModuleType) -> None:
    """Neither when they are loaded nor for their types; what a function imports when it is called
    is left out.
    """
    assert house.knots() == []


def test_no_function_is_too_winding_or_takes_too_much(house: ModuleType) -> None:
    """A command's parameters are its options, so the commands are left out."""
    winding, wide = [], []
    for module in house.modules_of(house.SOURCE):
        name = str(module.path.relative_to(house.SOURCE))
        winding += [
            f"{name}: {each.name}"
            for each in module.functions
            if house.complexity(each) > MOST_WAYS
        ]
        if not name.startswith("cli/"):
            wide += [
                f"{name}: {each.name}"
                for each in module.functions
                if house.parameters(each) > MOST_PARAMETERS
            ]
    assert winding == []
    assert wide == []


# Words of docs/glossary.md and of the ground floor: a reader who meets one again must meet the same
# thing.
WORDS = (
    *(
        "Allowance",
        "Answer",
        "Curator",
        "Ledger",
        "Mechanism",
        "Policy",
        "Quote",
        "Rejected",
        "Snapshot",
    ),
    *("Domain", "Integers", "Source", "Stream", "Table", "Text"),
)


def test_one_word_is_one_class(house: ModuleType) -> None:
    classes: dict[str, list[str]] = {word: [] for word in WORDS}
    for module in house.modules_of(house.SOURCE):
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and node.name in classes:
                classes[node.name].append(str(module.path.relative_to(house.SOURCE)))
    assert {word: places for word, places in classes.items() if len(places) > 1} == {}


def test_no_name_is_that_of_three_classes(house: ModuleType) -> None:
    places: dict[str, list[str]] = {}
    for module in house.modules_of(house.SOURCE):
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                path = str(module.path.relative_to(house.SOURCE))
                places.setdefault(node.name, []).append(path)
    assert {name: found for name, found in places.items() if len(found) > 2} == {}


@pytest.mark.parametrize(
    ("source", "ways"),
    [
        ("def f(): return 1", 1),
        ("def f(x):\n if x: return 1\n return 2", 2),
        ("def f(x): return 1 if x and not x or x else 2", 4),
        ("def f(x): return [y for y in x if y if not y]", 4),
        ("def f(x):\n try:\n  g(x)\n except ValueError:\n  while x: x -= 1", 3),
        ("def f(x):\n match x:\n  case 1: pass\n  case _: pass", 3),
        ("def f(x):\n def g(): return 1 if x else 2\n return g", 1),
    ],
)
def test_ways_through_a_function(house: ModuleType, source: str, ways: int) -> None:
    [function] = ast.parse(source).body
    assert house.complexity(function) == ways


@pytest.mark.parametrize("name", ["noised", "kept_rows", "_found", "PlannedBlock", "unlisted"])
def test_names_that_are_participles(house: ModuleType, name: str) -> None:
    assert house.is_participle(name)


@pytest.mark.parametrize("name", ["noise", "seed", "need_rows", "rows_kept", "x", "_"])
def test_names_that_are_none(house: ModuleType, name: str) -> None:
    assert not house.is_participle(name)


def test_a_knot_is_found_also_where_only_types_tie_it(house: ModuleType, tmp_path: Path) -> None:
    package = tmp_path / "tied"
    package.mkdir()
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from tied.c import C\n"
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("from tied import b\n")
    (package / "b.py").write_text(typed)
    (package / "c.py").write_text("import tied.a\n")
    (package / "d.py").write_text("from tied.a import b\ndef late():\n    import tied.d\n")
    assert house.knots(package) == [["tied.a", "tied.b", "tied.c"]]


def test_figures_of_a_package(house: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(
        'def made(x, y):\n    """Text."""\n    return x + y  # why\n\n\nclass Kept:\n    z = 1\n'
    )
    (tmp_path / "test_one.py").write_text("a = 1\n")
    found = house.Figures.of(house.modules_of(tmp_path))
    assert (found.modules, found.module_lines, found.parameters) == (1, (7, 7), 2)
    assert found.tokens_a_line == pytest.approx((8 + 4 + 3 + 3) / 4)
    assert found.docstrings == 50
    assert found.participles[0] == 100
