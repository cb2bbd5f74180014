"""A drawing as a notebook shows it."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.pages.blocks import fragment


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a page that stands alone in a notebook; it loads nothing and runs nothing."""

    html: str

    def _repr_html_(self) -> str:
        return fragment([self.html])
