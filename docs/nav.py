"""A hook of mkdocs: lists the tutorials, and what else mkdocs.yml does not name, so that no page is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    """Fill `Tutorials` from docs/tutorial; put pages that nobody placed under `More`."""
    docs = Path(config["docs_dir"])
    pages = sorted(str(path.relative_to(docs)) for path in docs.rglob("*.md"))
    tutorials = [page for page in pages if page.startswith("tutorial")]
    start = next(part["Start"] for part in config["nav"] if "Start" in part)
    place = next(place for place, part in enumerate(start) if "Tutorials" in part)
    start[place : place + 1] = [{"Tutorials": tutorials}] if tutorials else []
    rest = [page for page in pages if page not in set(_named(config["nav"]))]
    if rest:
        config["nav"].append({"More": rest})
    return config


def _named(nav: Any) -> list[str]:
    """Every page that a navigation names."""
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [page for part in parts for page in _named(part)]
