"""Subset selection: send a set of w values that holds the true one rather often. The least variance
of all.

If the number of values d is a prime, the sets are the arithmetic progressions {b, b + a, .., b + (w
- 1) a} modulo d. Any two values lie together in the same number of them (a 2-design), which is all
  that the estimate and its variance
use; so they serve as well as all sets of w values, and take 2 log d bits instead of w log d. For
another d there is no such short list in general: up to MOST_BITS values the sets are all sets of w
values, sent as d bits, and beyond that the progressions modulo the next prime, which cost up to 4 %
of variance. Importing this module needs the standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import comb
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
    from discreet.local.collector.many import Draws

MOST_VALUES = 20_000
"""The server sums over every progression, about d^2 of them."""

MOST_BITS = 128
"""Values up to which a set is sent as one bit a value, if their number is not a prime."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetSelection:
    """Send a set of w values: one that holds the truth with probability p, else one that does not.

    It is drawn uniformly among such. The sets are progressions modulo the prime `modulus`, or all
    sets of w values if that is 0.

    Privacy
        Of N sets each value lies in r = N w / m of them, m being the modulus or d. A set that holds
        the truth has mass p / r, another (1 - p) / (N - r); the ratio p (m - w) / ((1 - p) w) is at
        most e^ε by the choice of `keep` [Ye, Barg 2018; Park, Nam, Lee 2023 for sets from a block
        design].
    Error
        With w near d / (e^ε + 1), n Var at frequency 0 is slightly under 4 e^ε / (e^ε - 1)^2.
    """

    name: ClassVar[str] = "subset_selection"
    domain: answers.Choices
    epsilon: Fraction
    modulus: int = field(init=False)
    w: int = field(init=False)
    keep: int = field(init=False)

    def __post_init__(self) -> None:
        domain = answers.choices(self.domain)
        epsilon = amount(self.epsilon, name="epsilon")
        if len(domain) > MOST_VALUES:
            raise UsageError(
                f"Subset selection is for up to {MOST_VALUES} values; use LocalHashing or best()."
            )
        prime = _prime(len(domain))
        modulus = 0 if len(domain) < prime and len(domain) <= MOST_BITS else prime
        w = _best_w(modulus or len(domain), epsilon)
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "modulus", modulus)
        object.__setattr__(self, "w", w)
        object.__setattr__(self, "keep", _keep(modulus or len(domain), w, epsilon))

    @property
    def draws(self) -> tuple[str, ...]:
        by_step = ("step of the set", "keep", "place in the set", "place outside")
        return by_step if self.modulus else ("keep", "another value of the set")

    @property
    def size(self) -> int:
        return self.modulus * (self.modulus - 1) or 1 << len(self.domain)

    @property
    def support(self) -> Support:
        return _support(self.modulus or len(self.domain), self.w, self.keep)

    def sends(self, report: int) -> bool:
        """Return True if this number is a set of w values; every number of a progression is."""
        return bool(self.modulus) or report.bit_count() == self.w

    def respond(self, answer: Any, source: bits.RandomBits = bits.SYSTEM) -> int:
        place = answers.place(self.domain, answer)
        if not self.modulus:
            return self._any_set(place, source)
        a = 1 + bits.below(source, self.modulus - 1)
        held = bits.coin(source, self.keep)
        within = bits.below(source, self.w)
        beyond = self.w + bits.below(source, self.modulus - self.w)
        b = (place - a * (within if held else beyond)) % self.modulus
        return (a - 1) * self.modulus + b

    def _any_set(self, place: int, source: bits.RandomBits) -> int:
        """Return the truth and w - 1 of the other values in a random order, or w of the others."""
        held = bits.coin(source, self.keep)
        others = [value for value in range(len(self.domain)) if value != place]
        for first in range(self.w):
            drawn = first + bits.below(source, len(others) - first)
            others[first], others[drawn] = others[drawn], others[first]
        chosen = [place, *others[: self.w - 1]] if held else others[: self.w]
        return sum(1 << value for value in chosen)

    def encode(self, values: Any) -> NDArray[Any]:
        """Draw numbers of progressions, or rows of words with a bit for each value."""
        import numpy as np

        from discreet.local.collector.many import Draws

        place = answers.places(self.domain, values)
        draws = Draws(len(place))
        if not self.modulus:
            return self._any_sets(place, draws)
        a = 1 + draws.below(self.modulus - 1)
        held = draws.coin(self.keep)
        within = draws.below(self.w)
        beyond = self.w + draws.below(self.modulus - self.w)
        return (a - 1) * self.modulus + (place - a * np.where(held, within, beyond)) % self.modulus

    def _any_sets(self, place: NDArray[np.int64], draws: Draws) -> NDArray[np.uint64]:
        import numpy as np

        d = len(self.domain)
        row = np.arange(len(place))
        held = draws.coin(self.keep)
        others = np.arange(d - 1) + (np.arange(d - 1) >= place[:, None])
        for first in range(self.w):
            drawn = first + draws.below(d - 1 - first)
            there = others[row, drawn]
            others[row, drawn] = others[:, first]
            others[:, first] = there
        others[:, self.w - 1] = np.where(held, place, others[:, self.w - 1])
        chosen = np.zeros((len(place), -(-d // 64) * 64), dtype=np.uint8)
        np.put_along_axis(chosen, others[:, : self.w], 1, axis=1)
        return np.packbits(chosen, axis=1, bitorder="little").view(np.uint64)

    def mass(self, report: int, answer: Any) -> Fraction:
        place = answers.place(self.domain, answer)
        p = odds.chance(self.keep)
        if not self.modulus:
            if not self.sends(report):
                return Fraction(0)
            d = len(self.domain)
            if report >> place & 1:
                return p / comb(d - 1, self.w - 1)
            return (1 - p) / comb(d - 1, self.w)
        a = report // self.modulus + 1
        b = report % self.modulus
        held = (place - b) * pow(a, -1, self.modulus) % self.modulus < self.w
        return (p / self.w if held else (1 - p) / (self.modulus - self.w)) / (self.modulus - 1)

    def tally(self, reports: Any) -> Tally:
        """Count support; reports with the same a are one cyclic sliding sum over b, in steps of
        a.
        """
        import numpy as np

        from discreet.local.collector.estimate import Tally, column_sums

        if not self.modulus:
            return column_sums(reports, len(self.domain))
        sent = np.asarray(reports, dtype=np.int64)
        if len(sent) and not 0 <= sent.min() <= sent.max() < self.size:
            raise UsageError(f"Reports to this question are numbers from 0 to {self.size - 1}.")
        m, w = self.modulus, self.w
        sent = np.sort(sent)
        starts = np.searchsorted(sent, np.arange(m) * m)
        counts = np.zeros(m, dtype=np.int64)
        ruler = np.arange(m)
        for a in np.flatnonzero(np.diff(starts)) + 1:
            b = sent[starts[a - 1] : starts[a]] % m
            order = ruler * a % m
            along = np.bincount(b, minlength=m)[order]
            total = np.concatenate([[0], np.cumsum(np.concatenate([along[m - w + 1 :], along]))])
            counts[order] += total[w:] - total[:-w]
        return Tally(counts=counts[: len(self.domain)], n=len(sent))

    def parameters(self) -> dict[str, int | str]:
        return {
            "values": len(self.domain),
            "modulus": self.modulus,
            "w": self.w,
            "keep": hex(self.keep),
        }

    read = read_frequencies
    estimate = estimate
    variance = frequency_variance


def _prime(least: int) -> int:
    candidate = least
    while any(candidate % k == 0 for k in range(2, int(candidate**0.5) + 1)):
        candidate += 1
    return candidate


def _keep(m: int, w: int, epsilon: Fraction) -> int:
    return odds.threshold(epsilon, odds=Fraction(w, m - w))


def _support(m: int, w: int, keep: int) -> Support:
    """Return the chances of support; any other of the m - 1 values is equally likely at each other
    place.
    """
    p = odds.chance(keep)
    return Support(p=p, q=(p * (w - 1) + (1 - p) * w) / (m - 1))


@lru_cache(maxsize=256)
def _best_w(m: int, epsilon: Fraction) -> int:
    ideal = int(m * odds.e_to_minus(epsilon) / (1 + odds.e_to_minus(epsilon)))
    near = range(max(1, ideal - 1), min(m - 1, ideal + 2) + 1)
    return min(
        near,
        key=lambda w: _support(m, w, _keep(m, w, epsilon)).variance(n=1, frequency=Fraction(0)),
    )
