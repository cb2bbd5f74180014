"""A hook of mkdocs: puts pages that mkdocs.yml does not place under `More`, so that none is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    """Append the pages that nobody placed."""
    docs, placed = Path(config["docs_dir"]), set(_named(config["nav"]))
    pages = sorted(str(path.relative_to(docs)) for path in docs.rglob("*.md"))
    rest = [page for page in pages if page not in placed]
    if rest:
        config["nav"].append({"More": rest})
    return config


def _named(nav: Any) -> list[str]:
    """Every page that a navigation names."""
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [page for part in parts for page in _named(part)]
