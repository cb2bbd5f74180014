"""Names in the documentation are names in the code: a renamed function is renamed on every page."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FOLDERS = ("src", "tests", "bench", "docs", "deploy", "packaging")
OF_OTHERS = {  # settings and programs of Postgres and Spark
    "data_checksums",
    "log_min_duration_statement",
    "log_statement",
    "pg_amcheck",
    "spark.io.encryption.enabled",
    "synchronous_standby_names",
    "temp_file_limit",
}


def names(page: Path) -> set[str]:
    """Return what stands between backticks outside of blocks and looks like a name or a path."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return set(re.findall(r"`([A-Za-z_][\w./]*)(?:\(\))?`", text)) - OF_OTHERS


@cache
def files() -> tuple[str, ...]:
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    return tuple(f"/{path.relative_to(ROOT)}" for path in [*found, *ROOT.iterdir()])


@cache
def words() -> frozenset[str]:
    """Return every word of the code and of the names of its files."""
    found = set(re.findall(r"\w+", "\n".join(files())))
    for path in [ROOT / "Makefile", ROOT / "pyproject.toml", *_sources(".py", ".js", ".sql")]:
        found |= set(re.findall(r"\w+", path.read_text()))
    return frozenset(found)


def _sources(*suffixes: str) -> Iterator[Path]:
    for folder in ("src", "tests", "bench", "packaging"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in suffixes and path != Path(__file__):
                yield path


@cache
def definitions() -> frozenset[tuple[str, ...]]:
    """Return packages, module, classes and name of everything that our Python defines."""
    found = set()
    for path in _sources(".py"):
        module = path.relative_to(ROOT).with_suffix("").parts
        found |= {module, module[:-1]}
        found |= set(_defined(ast.parse(path.read_text()), module))
    return frozenset(found)


def _defined(node: ast.AST, within: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            yield (*within, each.id)
        if isinstance(each, ast.ClassDef | ast.FunctionDef):
            yield (*within, each.name)
            yield from _defined(each, (*within, each.name))
        else:
            yield from _defined(each, within)


def is_defined(name: str) -> bool:
    """Say whether something is called so, by its last names or leaving out some in between."""
    *places, last = name.split(".")
    return any(chain[-1] == last and _in_order(places, chain) for chain in definitions() if chain)


def _in_order(places: list[str], chain: tuple[str, ...]) -> bool:
    rest = iter(chain)
    return all(place in rest for place in places)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_name_on_a_page_is_a_word_of_the_code(page: Path) -> None:
    for name in names(page):
        if name.isupper() or not re.search(r"[_.]|^[^/]*[a-z][A-Z][^/]*$", name):
            continue  # SQL, a word of English, or a data set of a package
        assert set(re.findall(r"\w+", name)) <= words(), name


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/walks.md", "docs/reviewers.md"])
def test_every_name_on_a_page_about_the_code_is_defined(page: str) -> None:
    for name in names(ROOT / page):
        if re.search(r"\b(?:NAME|t\d|and|or|json)\b", name):  # a placeholder, SQL, or what is made
            continue
        path = f"/{name.rstrip('/')}"
        assert any(file.endswith(path) for file in files()) or is_defined(name), name


def test_a_name_that_was_renamed_is_found() -> None:
    assert is_defined("Curator.ask")
    assert is_defined("sql.plan.prove.prove")
    assert not is_defined("Curator.enquire")
    assert not is_defined("Ledger.ask")
