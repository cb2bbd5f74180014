"""A part of a page that a notebook can show."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.pages.blocks import fragment


@dataclass(frozen=True, slots=True)
class Piece:
    """HTML that stands alone in a notebook; it loads nothing and runs no scripts."""

    html: str

    def _repr_html_(self) -> str:
        return fragment([self.html])
