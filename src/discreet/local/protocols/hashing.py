"""Local hashing: hash the answer to one of g values, send the hash function and the randomized
hash. For many values.

The hash functions are the linear maps over a field of g elements, v -> <a, v>, with a any vector
but 0. Any two values collide under exactly the same share of them, so the estimate is unbiased
without an assumption; there are about d of them, so a report takes log d + log g bits; and the
server counts reports by (a, hash) and turns those counts into support for all d values by a fast
transform, in O(n + d log d), not O(n d).

Does a small family cost accuracy? No: every respondent draws a function of their own, so the
supports of a value by different reports are independent with probabilities p and q, and the
variance is that of an ideal hash (a little less, because a = 0 is left out). Only the covariance of
the estimates of different values knows about the family. Importing this module needs the standard
library only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.budget import amount
from discreet.local import answers
from discreet.local.protocols import field as finite
from discreet.local.protocols import odds
from discreet.local.protocols.odds import Support
from discreet.local.protocols.support import estimate, frequency_variance, read_frequencies
from discreet.noise import bits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from discreet.local.collector.estimate import Tally

MOST_CELLS = 1 << 24
"""Cells of the server's table, one for each (function, hash)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalHashing:
    """Draw a hash function; send it, and its value at the truth with probability e^ε / (e^ε + g -
    1), else another.

    Privacy
        The function is drawn without regard to the truth; given the function, it is k-ary response
        on g values, and `keep` / 2^64 has the odds e^ε / (g - 1) at most [Wang, Blocki, Li, Jha
        2017, with the family of Feldman, Nelson, Nguyen, Talwar 2022].
    Error
        n Var is about 4 e^ε / (e^ε - 1)^2 at frequency 0, whatever d: g is the field near e^ε + 1
        that gives the least.
    """

    name: ClassVar[str] = "local_hashing"
    draws: ClassVar[tuple[str, ...]] = ("hash function", "keep", "another hash")
    domain: answers.Choices
    epsilon: Fraction
    g: int = field(init=False)
    keep: int = field(init=False)

    def __post_init__(self) -> None:
        domain = answers.choices(self.domain)
        epsilon = amount(self.epsilon, name="epsilon")
        g = _best_g(len(domain), epsilon)
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "g", g)
        object.__setattr__(self, "keep", _keep(epsilon, g))

    @property
    def functions(self) -> int:
        return int(self.g ** finite.length(len(self.domain), self.g)) - 1

    @property
    def size(self) -> int:
        return self.functions * self.g

    @property
    def support(self) -> Support:
        return _support(len(self.domain), self.g, self.keep)

    def respond(self, answer: Any, source: bits.RandomBits = bits.SYSTEM) -> int:
        place = answers.place(self.domain, answer)
        function = bits.below(source, self.functions)
        kept = bits.coin(source, self.keep)
        other = bits.below(source, self.g - 1)
        true = finite.dot(function + 1, place, self.g)
        return function * self.g + (true if kept else other + (other >= true))

    def encode(self, values: Any) -> NDArray[np.int64]:
        import numpy as np

        from discreet.local.collector.many import Draws
        from discreet.local.collector.transform import dots

        place = answers.places(self.domain, values)
        draws = Draws(len(place))
        function = draws.below(self.functions)
        kept = draws.coin(self.keep)
        other = draws.below(self.g - 1)
        true = dots(function + 1, place, self.g)
        return function * self.g + np.where(kept, true, other + (other >= true))

    def mass(self, report: int, answer: Any) -> Fraction:
        function, sent = divmod(report, self.g)
        p = odds.chance(self.keep)
        true = finite.dot(function + 1, answers.place(self.domain, answer), self.g) == sent
        return (p if true else (1 - p) / (self.g - 1)) / self.functions

    def tally(self, reports: Any) -> Tally:
        from discreet.local.collector.estimate import Tally, histogram
        from discreet.local.collector.transform import supports

        table = histogram(reports, self.size)
        return Tally(counts=supports(table.counts, self.g)[: len(self.domain)], n=table.n)

    def parameters(self) -> dict[str, int | str]:
        return {
            "values": len(self.domain),
            "g": self.g,
            "functions": self.functions,
            "keep": hex(self.keep),
        }

    read = read_frequencies
    estimate = estimate
    variance = frequency_variance


def _keep(epsilon: Fraction, g: int) -> int:
    return odds.threshold(epsilon, odds=Fraction(1, g - 1))


def _support(d: int, g: int, keep: int) -> Support:
    """Return the chances of support: of the g^k - 1 functions, g^(k-1) - 1 map two values to the
    same hash.
    """
    p = odds.chance(keep)
    k = finite.length(d, g)
    collide = Fraction(g ** (k - 1) - 1, g**k - 1)
    return Support(p=p, q=collide * p + (1 - collide) * (1 - p) / (g - 1))


@lru_cache(maxsize=256)
def _best_g(d: int, epsilon: Fraction) -> int:
    """Return the field with the least variance whose table fits; compare exactly, so that machines
    agree.
    """
    fits = [g for g in finite.sizes() if g ** (finite.length(d, g) + 1) <= MOST_CELLS]
    near = [g for g in fits if odds.e_to_minus(epsilon) * (g - 1) <= 4] or fits
    return min(
        near, key=lambda g: _support(d, g, _keep(epsilon, g)).variance(n=1, frequency=Fraction(0))
    )
