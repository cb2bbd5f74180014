"""Unary encoding: one bit for each possible value, each randomized on its own. For a few hundred
values.

    OptimizedUnary   the true bit is kept with probability 1/2, any other is set with 1 / (e^ε + 1)
    SymmetricUnary   every bit is kept with probability e^(ε/2) / (e^(ε/2) + 1): the basic form, as
                     in RAPPOR

A report is an integer of d bits, bit v for the v-th value. Many reports are rows of 64-bit words,
lowest bits first. Importing this module needs the standard library only.
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
MOST_VALUES = 1 << 16


def _size(protocol: Any) -> int:
    return 1 << len(protocol.domain)


def _support(protocol: Any) -> Support:
    return Support(p=odds.chance(protocol.true), q=odds.chance(protocol.false))


def _respond(protocol: Any, answer: Any, source: bits.RandomBits = bits.SYSTEM) -> int:
    return randomize(answers.place(protocol.domain, answer), protocol, source)


def randomize(place: int, protocol: Any, source: bits.RandomBits) -> int:
    """Draw each bit by one coin: with threshold `true` at the true place, `false` at every
    other.
    """
    report = 0
    for value in range(len(protocol.domain)):
        report |= bits.coin(source, protocol.true if value == place else protocol.false) << value
    return report


def _encode(protocol: Any, values: Any) -> NDArray[np.uint64]:
    import numpy as np

    from discreet.local.collector.many import Draws

    place = answers.places(protocol.domain, values)
    draws = Draws(len(place))
    reports = draws.packed_coins(-(-len(protocol.domain) // 64), protocol.false)
    row = np.arange(len(place))
    word = place >> 6
    bit = np.uint64(1) << (place & 63).astype(np.uint64)
    reports[row, word] &= ~bit
    reports[row, word] |= np.where(draws.coin(protocol.true), bit, np.uint64(0))
    if spare := -len(protocol.domain) % 64:
        reports[:, -1] &= np.uint64((1 << (64 - spare)) - 1)
    return reports


def _mass(protocol: Any, report: int, answer: Any) -> Fraction:
    place = answers.place(protocol.domain, answer)
    total = Fraction(1)
    for value in range(len(protocol.domain)):
        one = odds.chance(protocol.true if value == place else protocol.false)
        total *= one if report >> value & 1 else 1 - one
    return total


def _tally(protocol: Any, reports: Any) -> Tally:
    from discreet.local.collector.estimate import column_sums

    return column_sums(reports, len(protocol.domain))


def _domain(domain: Any) -> answers.Choices:
    values = answers.choices(domain)
    if len(values) > MOST_VALUES:
        raise UsageError(
            f"Unary reports have a bit for each of {len(values)} values; use LocalHashing or best()."
        )
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizedUnary:
    """The true value's bit is set with probability p = 1/2, each other with q = 1 / (e^ε + 1).

    Privacy
        Two truths differ in two bits of the encoding, so the largest ratio is p (1 - q) / ((1 - p)
        q) = (1 - q) / q, at most e^ε by the choice of `false` [Wang, Blocki, Li, Jha 2017].
    Error
        n Var = 4 e^ε / (e^ε - 1)^2 at frequency 0, whatever the number of values.
    """

    name: ClassVar[str] = "optimized_unary"
    draws: ClassVar[tuple[str, ...]] = ("a coin for each value",)
    domain: answers.Choices
    epsilon: Fraction
    true: int = field(init=False)
    false: int = field(init=False)

    def __post_init__(self) -> None:
        epsilon = amount(self.epsilon, name="epsilon")
        object.__setattr__(self, "domain", _domain(self.domain))
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "true", HALF)
        object.__setattr__(self, "false", bits.WORD - odds.threshold(epsilon))

    def parameters(self) -> dict[str, int | str]:
        return {"values": len(self.domain), "true": hex(self.true), "false": hex(self.false)}

    size = property(_size)
    support = property(_support)
    respond = _respond
    encode = _encode
    mass = _mass
    tally = _tally
    read = read_frequencies
    estimate = estimate
    variance = frequency_variance


@dataclass(frozen=True, slots=True, kw_only=True)
class SymmetricUnary:
    """Every bit is sent as it is with probability p = e^(ε/2) / (e^(ε/2) + 1), else flipped.

    Privacy
        Two truths differ in two bits, each with ratio p / (1 - p) <= e^(ε/2) [Erlingsson, Pihur,
        Korolova 2014].
    Error
        n Var = e^(ε/2) / (e^(ε/2) - 1)^2, more than the optimized form at every ε.
    """

    name: ClassVar[str] = "symmetric_unary"
    draws: ClassVar[tuple[str, ...]] = ("a coin for each value",)
    domain: answers.Choices
    epsilon: Fraction
    true: int = field(init=False)
    false: int = field(init=False)

    def __post_init__(self) -> None:
        epsilon = amount(self.epsilon, name="epsilon")
        kept = odds.threshold(epsilon / 2)
        object.__setattr__(self, "domain", _domain(self.domain))
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "true", kept)
        object.__setattr__(self, "false", bits.WORD - kept)

    def parameters(self) -> dict[str, int | str]:
        return {"values": len(self.domain), "true": hex(self.true), "false": hex(self.false)}

    size = property(_size)
    support = property(_support)
    respond = _respond
    encode = _encode
    mass = _mass
    tally = _tally
    read = read_frequencies
    estimate = estimate
    variance = frequency_variance
