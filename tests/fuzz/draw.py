"""Chances, and templates: text with places in braces that are filled at random."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_PLACE = re.compile(r"\{([^{}]*)\}")


class Draw:
    """One source of chances for a statement and all its parts."""

    def __init__(self, source: random.Random) -> None:
        self.source, self.aliases = source, 0

    def any(self, *choices: T) -> T:
        return self.source.choice(choices)

    def maybe(self, chance: float) -> bool:
        return self.source.random() < chance

    def alias(self) -> str:
        self.aliases += 1
        return f"r{self.aliases}"

    def fill(self, template: str, place: Callable[[str], str]) -> str:
        """`{a|b}` is a or b; any other `{name}` is what the place of that name draws, each time
        anew.
        """

        def filled(found: re.Match[str]) -> str:
            return self.source.choice(found[1].split("|")) if "|" in found[1] else place(found[1])

        return _PLACE.sub(filled, template)


def lines(text: str) -> tuple[str, ...]:
    """A grammar's templates, one a line."""
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())
