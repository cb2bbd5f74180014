"""Hadamard response: one bit of the answer's Hadamard transform, flipped now and then. For very
many values.

The server needs O(n + d log d) and a report log d + 1 bits. At ε over 1 or so local hashing is more
accurate. Importing this module needs the standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.budget import amount
from discreet.local import answers
from discreet.local.protocols import odds
from discreet.local.protocols.odds import Support
from discreet.local.protocols.support import estimate, frequency_variance, read_frequencies
from discreet.noise import bits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from discreet.local.collector.estimate import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class HadamardResponse:
    """Draw a row j of the D x D Hadamard matrix, not the constant one; send j and the sign at the
    truth, flipped with probability 1 / (e^ε + 1).

    Privacy
        j is drawn without regard to the truth, and the sign is Warner's response [Bassily, Smith
        2015; Acharya, Sun, Zhang 2019].
    Error
        n Var is about ((e^ε + 1) / (e^ε - 1))^2 at frequency 0. Any two values agree in D / 2 - 1
        of the D - 1 rows; leaving out the row of ones, which tells nothing, makes the variance
        smaller for few values.
    """

    name: ClassVar[str] = "hadamard"
    draws: ClassVar[tuple[str, ...]] = ("row", "keep")
    domain: answers.Choices
    epsilon: Fraction
    keep: int = field(init=False)

    def __post_init__(self) -> None:
        epsilon = amount(self.epsilon, name="epsilon")
        object.__setattr__(self, "domain", answers.choices(self.domain))
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "keep", odds.threshold(epsilon))

    @property
    def rows(self) -> int:
        """The number of rows but the first: 2^k - 1, with 2^k the first power of two at least d."""
        return int((1 << (len(self.domain) - 1).bit_length()) - 1)

    @property
    def size(self) -> int:
        return 2 * self.rows

    @property
    def support(self) -> Support:
        p = odds.chance(self.keep)
        agree = Fraction(self.rows // 2, self.rows)
        return Support(p=p, q=agree * p + (1 - agree) * (1 - p))

    def respond(self, answer: Any, source: bits.RandomBits = bits.SYSTEM) -> int:
        place = answers.place(self.domain, answer)
        row = bits.below(source, self.rows)
        kept = bits.coin(source, self.keep)
        return 2 * row + ((row + 1 & place).bit_count() + (not kept)) % 2

    def encode(self, values: Any) -> NDArray[np.int64]:
        from discreet.local.collector.many import Draws
        from discreet.local.collector.transform import parities

        place = answers.places(self.domain, values)
        draws = Draws(len(place))
        row = draws.below(self.rows)
        kept = draws.coin(self.keep)
        return 2 * row + (parities(row + 1, place) ^ ~kept)

    def mass(self, report: int, answer: Any) -> Fraction:
        row, sign = divmod(report, 2)
        p = odds.chance(self.keep)
        true = (row + 1 & answers.place(self.domain, answer)).bit_count() % 2 == sign
        return (p if true else 1 - p) / self.rows

    def tally(self, reports: Any) -> Tally:
        import numpy as np

        from discreet.local.collector.estimate import Tally, histogram
        from discreet.local.collector.transform import walsh_hadamard

        table = histogram(reports, self.size)
        signs = np.concatenate([[0], table.counts[0::2] - table.counts[1::2]])
        return Tally(counts=(table.n + walsh_hadamard(signs)[: len(self.domain)]) // 2, n=table.n)

    def parameters(self) -> dict[str, int | str]:
        return {"values": len(self.domain), "rows": self.rows, "keep": hex(self.keep)}

    read = read_frequencies
    estimate = estimate
    variance = frequency_variance
