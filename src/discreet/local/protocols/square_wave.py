"""The whole distribution of numbers on a declared grid: a square wave around the answer, undone by
the server.

The one to use when the shape matters and not only the mean. Importing this module needs the
standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.budget import amount, number
from discreet.errors import UsageError
from discreet.local import answers
from discreet.local.protocols import odds
from discreet.local.protocols import window as sliding
from discreet.local.protocols.support import estimate
from discreet.local.protocols.window import Window

if TYPE_CHECKING:
    from discreet.local.collector.estimate import Estimate, Floats, Tally

MOST_VALUES = 1024
LEAST = Fraction(1, 1000)
MOST = Fraction(100)
"""Of ε: the channel is inverted in floating point, which loses all digits where a report tells next
to nothing.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SquareWave:
    """Send a cell of the answer's window with high probability, else one elsewhere.

    Privacy
        See `Window`, whose two masses have ratio at most e^ε [Li et al. 2020, on a grid].
    Error
        The window's width 2 b, b = (ε e^ε - e^ε + 1) / (2 e^ε (e^ε - 1 - ε)), is theirs: it
        maximizes the information between answer and report. `estimates` inverts the channel by
        least squares, which is unbiased and whose variance is exact; `consistent` is the likeliest
        distribution (EM), far less noisy. With `smooth` neighbors are averaged at each step (EMS):
        better for a smooth density on a fine grid, useless for one with peaks.
    """

    name: ClassVar[str] = "square_wave"
    draws: ClassVar[tuple[str, ...]] = ("inside", "cell of the window", "cell outside")
    domain: answers.Grid
    epsilon: Fraction
    window: Window = field(init=False)

    def __post_init__(self) -> None:
        domain = self.domain
        epsilon = amount(self.epsilon, name="epsilon")
        if not hasattr(domain, "step") or not 2 <= domain.size <= MOST_VALUES:
            raise UsageError(
                f"The square wave is for grids of 2 to {MOST_VALUES} points; declare a larger step."
            )
        if not LEAST <= epsilon <= MOST:
            told = f"The square wave is for epsilon {number(LEAST)} to {number(MOST)}, not {number(epsilon)}."
            raise UsageError(f"{told} Use Hybrid for the mean.")
        object.__setattr__(self, "epsilon", epsilon)
        window = Window.of(steps=domain.size - 1, share=_share(epsilon), epsilon=epsilon)
        object.__setattr__(self, "window", window)

    def tally(self, reports: Any) -> Tally:
        from discreet.local.collector.estimate import histogram

        return histogram(reports, self.size)

    def read(self, tally: Tally, *, smooth: bool = False, confidence: float = 0.95) -> Estimate:
        from discreet.local.collector.distribution import distribution

        return distribution(self, tally, smooth=smooth, confidence=confidence)

    def variance(self, *, n: int, answer: Any) -> Floats:
        """Return the variance of every estimated frequency, when all n respondents have this
        answer.
        """
        from discreet.local.collector.distribution import channel, inverse

        read = inverse(self.window)
        mass = channel(self.window)[:, answers.step(self.domain, answer)]
        return ((read**2) @ mass - (read @ mass) ** 2) / n

    size = property(sliding.size)
    respond = sliding.respond
    encode = sliding.encode
    mass = sliding.mass
    parameters = sliding.parameters
    estimate = estimate


def _share(epsilon: Fraction) -> Fraction:
    """Return 2 b, the window's share of the range: (ε - 1 + e^-ε) / (e^ε - 1 - ε)."""
    low = odds.e_to_minus(epsilon)
    return (epsilon - 1 + low) / (1 / low - 1 - epsilon)
