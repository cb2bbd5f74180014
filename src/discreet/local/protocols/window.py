"""A window that slides over cells with the answer: what the piecewise mechanism and the square wave
have in common.

Answers 0 .. m, cells 0 .. m + width - 1: answer i has the window of cells i .. i + width - 1. With
probability p a report is a cell of the window, uniformly, else one of the m other cells. The two
protocols differ in the width that they take. Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.local import answers
from discreet.local.protocols import odds
from discreet.noise import bits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from discreet.local.collector.many import Draws


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Privacy
    A cell has mass p / width inside the window and (1 - p) / m outside. `inside` / 2^64 = p has
    p / (1 - p) <= e^ε width / m, so that the ratio of the two is at most e^ε.
    """

    steps: int
    width: int
    inside: int

    @classmethod
    def of(cls, *, steps: int, share: Fraction, epsilon: Fraction) -> Window:
        """Return a window of about this share of the range."""
        width = max(1, round(steps * share))
        return cls(
            steps=steps, width=width, inside=odds.threshold(epsilon, odds=Fraction(width, steps))
        )

    @property
    def cells(self) -> int:
        return self.steps + self.width

    def sent(self, step: int, source: bits.RandomBits) -> int:
        near = bits.coin(source, self.inside)
        within = bits.below(source, self.width)
        beyond = bits.below(source, self.steps)
        return step + within if near else beyond + (self.width if beyond >= step else 0)

    def many_sent(self, step: NDArray[np.int64], draws: Draws) -> NDArray[np.int64]:
        import numpy as np

        near = draws.coin(self.inside)
        within = draws.below(self.width)
        beyond = draws.below(self.steps)
        return np.where(near, step + within, beyond + self.width * (beyond >= step))

    def mass(self, cell: int, step: int) -> Fraction:
        p = odds.chance(self.inside)
        return p / self.width if step <= cell < step + self.width else (1 - p) / self.steps

    @property
    def _slope(self) -> Fraction:
        """By how much a step more of the answer moves the expected cell: p - (1 - p) width / m."""
        p = odds.chance(self.inside)
        return p - (1 - p) * self.width / self.steps

    def _moment(self, step: int, power: int) -> Fraction:
        """Return E[cell^power]: the window's cells, and all cells less the window's."""
        p = odds.chance(self.inside)
        window = _powers(step + self.width, power) - _powers(step, power)
        return (
            p * window / self.width + (1 - p) * (_powers(self.cells, power) - window) / self.steps
        )

    def reading(self, cell: int) -> Fraction:
        """Return the answer that a cell speaks for, in steps: the unbiased inverse of E[cell],
        which is linear.
        """
        return (cell - self._moment(0, 1)) / self._slope

    def reading_variance(self, step: int) -> Fraction:
        return (self._moment(step, 2) - self._moment(step, 1) ** 2) / self._slope**2

    def parameters(self) -> dict[str, int | str]:
        return {"steps": self.steps, "width": self.width, "inside": hex(self.inside)}


# Methods of the protocols that send a cell of their window.


def size(protocol: Any) -> int:
    cells: int = protocol.window.cells
    return cells


def respond(protocol: Any, answer: Any, source: bits.RandomBits = bits.SYSTEM) -> int:
    window: Window = protocol.window
    return window.sent(answers.step(protocol.domain, answer), source)


def encode(protocol: Any, values: Any) -> NDArray[np.int64]:
    from discreet.local.collector.many import Draws

    step = answers.steps(protocol.domain, values)
    window = protocol.window
    cells: NDArray[np.int64] = window.many_sent(step, Draws(len(step)))
    return cells


def mass(protocol: Any, report: int, answer: Any) -> Fraction:
    window: Window = protocol.window
    return window.mass(report, answers.step(protocol.domain, answer))


def parameters(protocol: Any) -> dict[str, int | str]:
    window: Window = protocol.window
    return window.parameters()


def _powers(n: int, power: int) -> Fraction:
    """Sum k^power over k < n."""
    return Fraction(n * (n - 1), 2) if power == 1 else Fraction(n * (n - 1) * (2 * n - 1), 6)
