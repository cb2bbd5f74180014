"""Randomized response: say the truth with some probability, else another answer. The one for few
possible answers.

    Warner         yes or no, the truth with probability e^ε / (1 + e^ε)
    Truthful       yes or no, the truth with a given probability, Warner's original
    TwoCoins       yes or no, heads: the truth; tails: what a second coin says. ε = ln 3
    KaryResponse   any number of values

All four are one channel: the true value with probability p (`truth`), each other with q = (1 - p) /
(d - 1). Importing this module needs the standard library only; numpy is loaded by `encode`, `tally`
and `estimate`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.budget import amount
from discreet.errors import UsageError
from discreet.local import answers
from discreet.local.protocols import odds
from discreet.local.protocols.odds import Support
from discreet.local.protocols.support import estimate, frequency_variance, read_frequencies
from discreet.noise import bits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from discreet.local.collector.estimate import Tally

HALF = bits.WORD // 2


def _support(protocol: Any) -> Support:
    p: Fraction = protocol.truth
    return Support(p=p, q=(1 - p) / (len(protocol.domain) - 1))


def _mass(protocol: Any, report: int, answer: Any) -> Fraction:
    """Return the probability of a report, given the truth."""
    true = report == answers.place(protocol.domain, answer)
    return _support(protocol).p if true else _support(protocol).q


def _tally(protocol: Any, reports: Any) -> Tally:
    from discreet.local.collector.estimate import histogram

    return histogram(reports, len(protocol.domain))


def _two(domain: Any) -> answers.Choices:
    values = answers.choices(domain)
    if len(values) != 2:
        raise UsageError(
            f"This protocol is for two values, not {len(values)}. Use KaryResponse, or best()."
        )
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class KaryResponse:
    """Report the true one of d values with probability p = e^ε / (e^ε + d - 1), else another,
    uniformly.

    Privacy
        A report has mass p where it is true and q = (1 - p) / (d - 1) elsewhere, so the largest
        ratio is p / q; and p = `keep` / 2^64 has p / (1 - p) <= e^ε / (d - 1) [Kairouz, Oh,
        Viswanath 2014].
    Error
        n Var = (d - 2 + e^ε) / (e^ε - 1)^2 at frequency 0: the least of all for d < 3 e^ε + 2.
    """

    name: ClassVar[str] = "kary"
    draws: ClassVar[tuple[str, ...]] = ("keep", "another value")
    domain: answers.Choices
    epsilon: Fraction
    keep: int = field(init=False)

    def __post_init__(self) -> None:
        domain = answers.choices(self.domain)
        epsilon = amount(self.epsilon, name="epsilon")
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "keep", odds.threshold(epsilon, odds=Fraction(1, len(domain) - 1)))

    @property
    def size(self) -> int:
        return len(self.domain)

    @property
    def truth(self) -> Fraction:
        return odds.chance(self.keep)

    def respond(self, answer: Any, source: bits.RandomBits = bits.SYSTEM) -> int:
        place = answers.place(self.domain, answer)
        # Both draws are always made, so that the time taken does not tell whether the truth was
        # told.
        kept = bits.coin(source, self.keep)
        other = bits.below(source, self.size - 1)
        return place if kept else other + (other >= place)

    def encode(self, values: Any) -> NDArray[np.int64]:
        import numpy as np

        from discreet.local.collector.many import Draws

        place = answers.places(self.domain, values)
        draws = Draws(len(place))
        kept = draws.coin(self.keep)
        other = draws.below(self.size - 1)
        return np.where(kept, place, other + (other >= place))

    def parameters(self) -> dict[str, int | str]:
        return {"values": self.size, "keep": hex(self.keep)}

    support = property(_support)
    mass = _mass
    tally = _tally
    read = read_frequencies
    estimate = estimate
    variance = frequency_variance


@dataclass(frozen=True, slots=True, kw_only=True)
class Warner:
    """Answer yes or no with the truth with probability p = e^ε / (1 + e^ε), else with the opposite.

    Privacy
        The ratio is p / (1 - p), at most e^ε by the choice of `keep` [Warner 1965].
    Error
        n Var = e^ε / (e^ε - 1)^2, whatever the truth.
    """

    name: ClassVar[str] = "warner"
    draws: ClassVar[tuple[str, ...]] = ("keep",)
    domain: answers.Choices
    epsilon: Fraction
    keep: int = field(init=False)

    def __post_init__(self) -> None:
        epsilon = amount(self.epsilon, name="epsilon")
        object.__setattr__(self, "domain", _two(self.domain))
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "keep", odds.threshold(epsilon))

    @property
    def size(self) -> int:
        return 2

    @property
    def truth(self) -> Fraction:
        return odds.chance(self.keep)

    def respond(self, answer: Any, source: bits.RandomBits = bits.SYSTEM) -> int:
        return answers.place(self.domain, answer) ^ (not bits.coin(source, self.keep))

    def encode(self, values: Any) -> NDArray[np.int64]:
        from discreet.local.collector.many import Draws

        place = answers.places(self.domain, values)
        return place ^ ~Draws(len(place)).coin(self.keep)

    def parameters(self) -> dict[str, int | str]:
        return {"keep": hex(self.keep)}

    support = property(_support)
    mass = _mass
    tally = _tally
    read = read_frequencies
    estimate = estimate
    variance = frequency_variance


@dataclass(frozen=True, slots=True, kw_only=True)
class Truthful:
    """Answer yes or no with the truth with a given probability in (1/2, 1), else with the opposite.

    "Honest with probability h, else a fair coin" is truth = (1 + h) / 2, so ε = ln((1 + h) / (1 -
    h)).

    Privacy
        ε = ln(p / (1 - p)), rounded up; p is the rational that was written, and drawn exactly
        [Warner 1965].
    """

    name: ClassVar[str] = "truthful"
    draws: ClassVar[tuple[str, ...]] = ("truth",)
    domain: answers.Choices
    truth: Fraction

    def __post_init__(self) -> None:
        truth = amount(self.truth, name="truth")
        if not Fraction(1, 2) < truth < 1 or truth.denominator > HALF:
            raise UsageError(
                f"The truth is told with a probability between 1/2 and 1, not {self.truth}."
            )
        object.__setattr__(self, "domain", _two(self.domain))
        object.__setattr__(self, "truth", truth)

    @property
    def epsilon(self) -> Fraction:
        return odds.epsilon_of(self.truth / (1 - self.truth))

    @property
    def size(self) -> int:
        return 2

    def respond(self, answer: Any, source: bits.RandomBits = bits.SYSTEM) -> int:
        return answers.place(self.domain, answer) ^ (not bits.bernoulli(source, self.truth))

    def encode(self, values: Any) -> NDArray[np.int64]:
        from discreet.local.collector.many import Draws

        place = answers.places(self.domain, values)
        return place ^ (Draws(len(place)).below(self.truth.denominator) >= self.truth.numerator)

    def parameters(self) -> dict[str, int | str]:
        return {"of": hex(self.truth.denominator), "true": hex(self.truth.numerator)}

    support = property(_support)
    mass = _mass
    tally = _tally
    read = read_frequencies
    estimate = estimate
    variance = frequency_variance


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoCoins:
    """Toss a coin. Heads: say the truth. Tails: toss again, and say the second value on heads, the
    first on tails.

    Privacy
        The truth comes out with probability 1/2 + 1/4, so the ratio is (3/4) / (1/4) = 3: ε = ln 3,
        rounded up.
    """

    name: ClassVar[str] = "two_coins"
    draws: ClassVar[tuple[str, ...]] = ("first coin", "second coin")
    domain: answers.Choices

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", _two(self.domain))

    @property
    def epsilon(self) -> Fraction:
        return odds.epsilon_of(Fraction(3))

    @property
    def size(self) -> int:
        return 2

    @property
    def truth(self) -> Fraction:
        return Fraction(3, 4)

    def respond(self, answer: Any, source: bits.RandomBits = bits.SYSTEM) -> int:
        place = answers.place(self.domain, answer)
        first = bits.coin(source, HALF)
        second = bits.coin(source, HALF)
        return place if first else int(second)

    def encode(self, values: Any) -> NDArray[np.int64]:
        import numpy as np

        from discreet.local.collector.many import Draws

        place = answers.places(self.domain, values)
        draws = Draws(len(place))
        first = draws.coin(HALF)
        second = draws.coin(HALF)
        return np.where(first, place, second.astype(np.int64))

    def parameters(self) -> dict[str, int | str]:
        return {}

    support = property(_support)
    mass = _mass
    tally = _tally
    read = read_frequencies
    estimate = estimate
    variance = frequency_variance
