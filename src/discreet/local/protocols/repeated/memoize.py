"""Answering the same question again and again: a permanent randomized answer, randomized once more
at every report.

The permanent answer is drawn once for each value that the respondent ever has, and kept on their
device; reports are drawn from it. So a thousand reports tell no more about one value than its
permanent answer, which costs ε_permanent. *When* a value changed is not protected so: whoever sees
many reports learns it, and the ε of whole histories grows with every round (`lifetime`). For
answers that change, `FewChanges` is the protocol.

    MemoizedResponse   k-ary response twice
    MemoizedUnary      unary bits twice, as in RAPPOR

Importing this module needs the standard library only.
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
from discreet.local.protocols.response import KaryResponse
from discreet.local.protocols.support import estimate, frequency_variance, read_frequencies
from discreet.local.protocols.unary import SymmetricUnary
from discreet.noise import bits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from discreet.local.collector.estimate import Tally


def _epsilon(protocol: Any) -> Fraction:
    """Return the ε of a lifetime (S17): over histories of at most `changes` values in `rounds`
    rounds.
    """
    return lifetime(protocol, protocol.rounds)


def lifetime(protocol: Any, rounds: int | None) -> Fraction:
    """Return the ε of all reports together, between histories of at most c = `changes` different
    values.

    With c = 1 the device reports its first value for ever: ε_permanent. Else, for k-ary response
    twice, with q1 the chance of one wrong permanent answer, r = e^ε_instant, d values and m =
    min(c, d), over T rounds:

        min(T ε_instant, T ε_instant (1 - 1/m) + c ln(1 / (m q1))).

    Proof. Take reports y and k_b, how often each value b stands in them; S are the m commonest, M
    how often they do. Up to a factor q2^T, both histories' chances are products over their values v
    of sum_b P(b | v) r^(n_vb), n_vb being how often y is b while the history is v. That is at most
    r^M, since c permanent answers meet at most M reports. And it is at least q1^c times the product
    of the c sums over b in S of r^(n_vb), by Hölder's inequality at least q1^c (sum over S of
    r^(k_b / c))^c, and because the mean is at least the geometric mean, (q1 m)^c r^(M / m). M is at
    most T. The other bound is r a report. Unary bits are d such responses of two values each, at
    half of either ε.
    """
    c, (responses, instant, values) = protocol.changes, protocol.channel
    if rounds is None or c == 1:
        most = Fraction(protocol.permanent)
        return most if rounds is None else min(most, responses * instant * rounds)
    met = min(c, values)
    change = instant * rounds * (1 - Fraction(1, met)) + c * odds.epsilon_of(
        1 / (met * protocol.first.support.q)
    )
    return Fraction(responses * min(instant * rounds, change))


def _one_report(protocol: Any) -> Fraction:
    """Return the ε of a single report, taken alone, about one value."""
    s: Support = protocol.support
    ratio = (
        s.p / s.q if isinstance(protocol, MemoizedResponse) else s.p * (1 - s.q) / (s.q * (1 - s.p))
    )
    return odds.epsilon_of(ratio)


def _respond(protocol: Any, answer: Any, source: bits.RandomBits = bits.SYSTEM) -> int:
    """Return a first report, and forget its permanent answer; a device keeps it and calls
    `report`.
    """
    kept: int = protocol.report(protocol.remember(answer, source), source)
    return kept


def _check(protocol: Any) -> None:
    object.__setattr__(protocol, "permanent", amount(protocol.permanent, name="permanent"))
    object.__setattr__(protocol, "instant", amount(protocol.instant, name="instant"))
    for name, value in (
        ("changes", protocol.changes),
        ("rounds", 1 if protocol.rounds is None else protocol.rounds),
    ):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise UsageError(f"{name} must be a whole number, 1 or more, not {value!r}.")
    if protocol.changes > 1 and protocol.rounds is None:
        raise UsageError(
            "Answers that change tell more in every round, so with changes over 1 the number of rounds must be said: "
            "write rounds: 12. Leave out instant, and the same ε holds over all rounds together."
        )


def _rounds(protocol: Any) -> dict[str, int | str]:
    return {} if protocol.rounds is None else {"rounds": protocol.rounds}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoizedResponse:
    """k-ary response with ε_permanent, kept; at every report k-ary response of that with ε_instant.

    Privacy
        All reports about one value are drawn from its permanent answer, which has ratio at most
        e^ε_permanent: that is the ε between answers that never change. Between histories that
        change, `lifetime` holds. The same value has the same permanent answer whenever it comes
        back; after `changes` different values a device stays with the last.
    Error
        That of two responses in a row: p = p1 p2 + (1 - p1) q2, and q likewise.
    """

    name: ClassVar[str] = "memoized"
    remember_draws: ClassVar[tuple[str, ...]] = ("keep for good", "another value for good")
    report_draws: ClassVar[tuple[str, ...]] = ("repeat it", "another value")
    domain: answers.Choices
    permanent: Fraction
    instant: Fraction
    changes: int
    rounds: int | None = None
    first: KaryResponse = field(init=False)
    then: KaryResponse = field(init=False)

    def __post_init__(self) -> None:
        _check(self)
        first = KaryResponse(domain=self.domain, epsilon=self.permanent)
        object.__setattr__(self, "domain", first.domain)
        object.__setattr__(self, "first", first)
        object.__setattr__(
            self, "then", KaryResponse(domain=range(len(first.domain)), epsilon=self.instant)
        )

    @property
    def channel(self) -> tuple[int, Fraction, int]:
        """The responses in a report, the instant ε of each, and the number of values of each."""
        return 1, self.instant, len(self.domain)

    @property
    def size(self) -> int:
        return len(self.domain)

    @property
    def support(self) -> Support:
        one, two = self.first.support, self.then.support
        others = len(self.domain) - 2
        return Support(
            p=one.p * two.p + (1 - one.p) * two.q,
            q=one.q * two.p + one.p * two.q + others * one.q * two.q,
        )

    def remember(self, answer: Any, source: bits.RandomBits = bits.SYSTEM) -> int:
        return self.first.respond(answer, source)

    def report(self, permanent: int, source: bits.RandomBits = bits.SYSTEM) -> int:
        return self.then.respond(permanent, source)

    def encode(self, values: Any) -> NDArray[np.int64]:
        return self.then.encode(self.first.encode(values))

    def mass(self, report: int, answer: Any) -> Fraction:
        s = self.support
        return s.p if report == answers.place(self.domain, answer) else s.q

    def tally(self, reports: Any) -> Tally:
        return self.then.tally(reports)

    def parameters(self) -> dict[str, int | str]:
        coins = {"keep": hex(self.first.keep), "then": hex(self.then.keep)}
        return {"values": self.size, **coins, "changes": self.changes, **_rounds(self)}

    epsilon = property(_epsilon)
    one_report = property(_one_report)
    respond = _respond
    read = read_frequencies
    estimate = estimate
    variance = frequency_variance


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoizedUnary:
    """Symmetric unary bits with ε_permanent, kept; at every report each bit flipped again with
    ε_instant / 2.

    Privacy
        As for `MemoizedResponse`, with the permanent bits of `SymmetricUnary` [Erlingsson, Pihur,
        Korolova 2014]. Every bit shows changes on its own, so with `changes` over 1 the ε of a
        lifetime is that of as many responses.
    """

    name: ClassVar[str] = "memoized_unary"
    remember_draws: ClassVar[tuple[str, ...]] = ("a coin for each value, for good",)
    report_draws: ClassVar[tuple[str, ...]] = ("keep each of them",)
    domain: answers.Choices
    permanent: Fraction
    instant: Fraction
    changes: int
    rounds: int | None = None
    first: SymmetricUnary = field(init=False)
    keep: int = field(init=False)

    def __post_init__(self) -> None:
        _check(self)
        first = SymmetricUnary(domain=self.domain, epsilon=self.permanent)
        object.__setattr__(self, "domain", first.domain)
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "keep", odds.threshold(self.instant / 2))

    @property
    def channel(self) -> tuple[int, Fraction, int]:
        """The responses in a report, the instant ε of each, and the number of values of each."""
        return len(self.domain), self.instant / 2, 2

    @property
    def size(self) -> int:
        return 1 << len(self.domain)

    @property
    def support(self) -> Support:
        one = self.first.support
        keep = odds.chance(self.keep)
        p, q = (chance * keep + (1 - chance) * (1 - keep) for chance in (one.p, one.q))
        return Support(p=p, q=q)

    def remember(self, answer: Any, source: bits.RandomBits = bits.SYSTEM) -> int:
        return self.first.respond(answer, source)

    def report(self, permanent: int, source: bits.RandomBits = bits.SYSTEM) -> int:
        flips = sum(
            (not bits.coin(source, self.keep)) << value for value in range(len(self.domain))
        )
        return permanent ^ flips

    def encode(self, values: Any) -> NDArray[np.uint64]:
        import numpy as np

        from discreet.local.collector.many import Draws

        permanent = self.first.encode(values)
        flips = Draws(len(permanent)).packed_coins(permanent.shape[1], bits.WORD - self.keep)
        if spare := -len(self.domain) % 64:
            flips[:, -1] &= np.uint64((1 << (64 - spare)) - 1)
        return permanent ^ flips

    def mass(self, report: int, answer: Any) -> Fraction:
        s = self.support
        place = answers.place(self.domain, answer)
        total = Fraction(1)
        for value in range(len(self.domain)):
            one = s.p if value == place else s.q
            total *= one if report >> value & 1 else 1 - one
        return total

    def tally(self, reports: Any) -> Tally:
        return self.first.tally(reports)

    def parameters(self) -> dict[str, int | str]:
        true = hex(self.first.true)
        false = hex(self.first.false)
        words: dict[str, int | str] = {"values": len(self.domain), "true": true, "false": false}
        return {**words, "then": hex(self.keep), "changes": self.changes, **_rounds(self)}

    epsilon = property(_epsilon)
    one_report = property(_one_report)
    respond = _respond
    read = read_frequencies
    estimate = estimate
    variance = frequency_variance
