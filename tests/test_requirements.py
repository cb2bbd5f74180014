"""What is installed: every dependency is used, and the product's pins are those that the tests ran
with.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
IMPORTS = {"PyYAML": "yaml"}


def pins(name: str) -> dict[str, str]:
    return dict(
        re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements" / name).read_text(), re.MULTILINE)
    )


def test_every_dependency_is_imported_somewhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(each for extra in extras for each in extra)]
    text = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    for requirement in wanted:
        name = re.split(r"[^\w-]", requirement)[0]
        module = IMPORTS.get(name, name.replace("-", "_"))
        assert re.search(rf"^\s*(import|from) {module}\b", text, re.MULTILINE), (
            f"nothing imports {name}"
        )


def test_the_product_is_pinned_as_it_is_tested() -> None:
    product, tested = pins("run.txt"), pins("dev.txt")
    assert len(product) > 10
    assert product.items() <= tested.items()
    assert "pytest" not in product


def test_no_requirement_names_where_it_came_from() -> None:
    for path in (ROOT / "requirements").glob("*.txt"):
        assert "://" not in path.read_text()
