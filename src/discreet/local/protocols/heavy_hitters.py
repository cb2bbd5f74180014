"""Frequent strings, or items of sets, that nobody listed beforehand: a prefix tree walked by the
server.

A string is a number of `length` symbols of a few bits each, the first symbol lowest; a prefix is
its low bits. Every respondent draws a level and speaks, by local hashing over a field of 2, 4 or 16
elements, about the prefix of level * 16 bits. The server extends the prefixes that it found
frequent at one level by all possible 16 bits at the next. It meets every string there is, so none
needs to be known, and no hash table collides. Importing this module needs the standard library
only.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from fractions import Fraction
from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.budget import amount
from discreet.errors import UsageError
from discreet.local.protocols import field as finite
from discreet.local.protocols import odds
from discreet.local.protocols.odds import Support
from discreet.local.protocols.support import estimate
from discreet.noise import bits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from discreet.local.collector.estimate import Estimate, ReportRows

STRIDE = 16
"""Bits by which a level extends the prefixes of the one before."""

BREADTH = 64
"""Prefixes kept at a level, and so the most strings that can be found."""

FALSELY = 0.01
"""The probability that any prefix at all stands out at a level though nobody has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeavyHitters:
    """Send a level, a linear hash function, and the randomized hash of the string's prefix at that
    level.

    `alphabet` is the public set of symbols (None: any UTF-8 text, whose symbols are its bytes),
    `length` the most symbols a string has. With `items` over 1 an answer is a set of up to so many
    strings; one of them, or none if the drawn place is empty, is spoken about.

    Privacy
        Level and function are drawn without regard to the truth (and so is which item, for any set
        of answers); the hash is k-ary response on g values with ratio at most e^ε, for strings and
        for whole sets alike [prefix extension: Wang, Li, Jha 2021; padding and sampling: Wang, Li,
        Jha 2018].
    Error
        At each level n / levels reports speak, with local hashing's variance; see `finds` for what
        is found.
    """

    name: ClassVar[str] = "heavy_hitters"
    draws: ClassVar[tuple[str, ...]] = ("level", "item", "hash function", "keep", "another hash")
    length: int
    epsilon: Fraction
    alphabet: str | None = None
    items: int = 1
    g: int = field(init=False)
    keep: int = field(init=False)

    def __post_init__(self) -> None:
        epsilon = amount(self.epsilon, name="epsilon")
        if not 1 <= self.length <= 64 or not 1 <= self.items <= 1000:
            raise UsageError("Heavy hitters have 1 to 64 symbols, and sets 1 to 1000 items.")
        if (
            self.alphabet is not None
            and not 2 <= len(set(self.alphabet)) == len(self.alphabet) <= 255
        ):
            raise UsageError("An alphabet is a string of 2 to 255 different symbols.")
        object.__setattr__(self, "epsilon", epsilon)
        g = _best_g(epsilon)
        object.__setattr__(self, "g", g)
        object.__setattr__(self, "keep", _keep(g, epsilon))

    @property
    def symbol_bits(self) -> int:
        return 8 if self.alphabet is None else len(self.alphabet).bit_length()

    @property
    def code_bits(self) -> int:
        """The bits of a string's code: a whole number of elements of any of the fields."""
        return -(-self.length * self.symbol_bits // 4) * 4

    @property
    def levels(self) -> int:
        return -(-self.code_bits // STRIDE)

    @property
    def size(self) -> int:
        """The number of reports; a report is ((function * g + hash) * levels + level)."""
        return int((1 << self.code_bits) * self.g * self.levels)

    @property
    def support(self) -> Support:
        return _support(self.g, self.epsilon)

    def code(self, string: str) -> int:
        """Encode a string as a number: the place of each symbol in the alphabet, from 1; 0 after
        its end.
        """
        symbols = (
            string.encode()
            if self.alphabet is None
            else [self.alphabet.find(symbol) + 1 for symbol in string]
        )
        if len(symbols) > self.length or 0 in symbols:
            allowed = "" if self.alphabet is None else f" of {self.alphabet}"
            raise UsageError(
                f"{string!r} is not an answer to this question: write up to {self.length} symbols{allowed}."
            )
        return sum(symbol << (self.symbol_bits * i) for i, symbol in enumerate(symbols))

    def codes(self, answer: str | Collection[str]) -> list[int]:
        strings = [answer] if isinstance(answer, str) else sorted(set(answer))
        if len(strings) > self.items:
            raise UsageError(
                f"An answer to this question has at most {self.items} items, not {len(strings)}."
            )
        return [self.code(string) for string in strings]

    def text(self, code: int, code_bits: int) -> str | None:
        """Return the string, or beginning of one, that a number of so many bits encodes; None if
        none.
        """
        symbols, ended = [], False
        for i in range(code_bits // self.symbol_bits):
            symbol = code >> (self.symbol_bits * i) & ((1 << self.symbol_bits) - 1)
            if symbol and (ended or (self.alphabet is not None and symbol > len(self.alphabet))):
                return None
            ended = ended or not symbol
            symbols += [symbol] if symbol else []
        if self.alphabet is not None:
            return "".join(self.alphabet[symbol - 1] for symbol in symbols)
        try:  # the last character may go on beyond this prefix
            return bytes(symbols).decode(
                errors="strict" if ended or code_bits >= self.code_bits else "ignore"
            )
        except UnicodeDecodeError:
            return None

    def respond(self, answer: str | Collection[str], source: bits.RandomBits = bits.SYSTEM) -> int:
        codes = self.codes(answer)
        level = bits.below(source, self.levels)
        item = bits.below(source, self.items)
        function = bits.below(source, 1 << self.code_bits)
        kept = bits.coin(source, self.keep)
        other = bits.below(source, self.g - 1)
        code = codes[item] if item < len(codes) else 0
        true = finite.dot(function, self.prefix(code, level), self.g)
        return (
            function * self.g + (true if kept else other + (other >= true))
        ) * self.levels + level

    def prefix(self, code: int, level: int) -> int:
        return code & ((1 << STRIDE * (level + 1)) - 1)

    def encode(self, values: Any) -> NDArray[np.uint64]:
        from discreet.local.collector.prefix_tree import encode

        return encode(self, values)

    def mass(self, report: int, answer: str | Collection[str]) -> Fraction:
        rest, level = divmod(report, self.levels)
        function, sent = divmod(rest, self.g)
        codes = self.codes(answer)
        p = odds.chance(self.keep)
        total = Fraction(0)
        for code in codes + [0] * (self.items - len(codes)):
            true = finite.dot(function, self.prefix(code, level), self.g) == sent
            total += p if true else (1 - p) / (self.g - 1)
        return total / (self.items * self.levels * (1 << self.code_bits))

    def finds(self, *, n: int, recall: float = 0.95) -> float:
        """Return the frequency from which n respondents reveal a string with at least this
        probability.

        It must pass the cut of every level, `cut` standard deviations: by a margin that it misses
        by chance with probability (1 - recall) / levels at most.
        """
        miss = NormalDist().inv_cdf(1 - (1 - recall) / self.levels)
        variance = float(self.support.variance(n=1, frequency=Fraction(0)) * self.levels / n)
        return (self.cut + miss) * self.items * sqrt(variance)

    @property
    def cut(self) -> float:
        """Standard deviations by which a prefix must stand out, at most: among BREADTH * 2^STRIDE
        candidates.
        """
        return NormalDist().inv_cdf(1 - FALSELY / (BREADTH << STRIDE))

    def tally(self, reports: Any) -> ReportRows:
        from discreet.local.collector.prefix_tree import rows

        return rows(self, reports)

    def read(self, tally: ReportRows, *, confidence: float = 0.95) -> Estimate:
        from discreet.local.collector.prefix_tree import walk

        return walk(self, tally, confidence=confidence)

    def parameters(self) -> dict[str, int | str]:
        words: dict[str, int | str] = {
            "length": self.length,
            "items": self.items,
            "bits": self.symbol_bits,
        }
        if self.alphabet is not None:
            words["alphabet"] = self.alphabet
        return {
            **words,
            "g": self.g,
            "levels": self.levels,
            "code_bits": self.code_bits,
            "keep": hex(self.keep),
        }

    estimate = estimate


def _keep(g: int, epsilon: Fraction) -> int:
    return odds.threshold(epsilon, odds=Fraction(1, g - 1))


def _support(g: int, epsilon: Fraction) -> Support:
    """Return the chances of support: two prefixes collide under exactly 1 / g of all functions, 0
    included.
    """
    p = odds.chance(_keep(g, epsilon))
    return Support(p=p, q=Fraction(1, g))


def _best_g(epsilon: Fraction) -> int:
    """Return the smallest (for the server quickest) field whose variance is within a tenth of the
    least.
    """
    variances = {g: _support(g, epsilon).variance(n=1, frequency=Fraction(0)) for g in (2, 4, 16)}
    return next(g for g in variances if variances[g] * 10 <= min(variances.values()) * 11)
