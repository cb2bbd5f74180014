"""Tables from which integers are drawn: Walker's alias method over bins of a log-concave mass, with
exact thresholds.

The mass of z is proportional to exp(-(linear * |z| + quadratic * z^2)). Its magnitudes v = |z| are
cut into COLUMNS - 1 bins of equal width (a power of two) and one tail. A draw is made in trials. A
trial picks
  1. a sign and a bin (or the tail), with probability proportional to the bin's envelope: the mass
     at its low end;
  2. a place in the bin, uniformly: v = low + offset;
  3. and accepts v with probability mass(v) / mass(low) = exp(-x), x a rational; v = 0 with the sign
     minus is refused.
So a trial gives each z with a probability proportional to its mass, and the number of trials is
independent of the accepted z. With width 1 (small scales) every bin is one magnitude, the bin of 0
has half its weight so that both signs of 0 together have the mass of one number, and every trial is
accepted.

The tail (probability under 2^-56) has a geometric envelope: log-concavity puts the mass under it,
and step 3 makes it exact. Nothing is cut off.

The thresholds of the alias method are transcendental. What is stored is the first THRESHOLD_BITS of
each, certain by enclosure; a word that agrees in all of these with its threshold is decided by more
bits of both (`exact.less`). Standard library only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from discreet.noise import exact
from discreet.noise.bits import RandomBits, below, bernoulli_exp
from discreet.noise.exact import Enclosure

COLUMN_BITS = 9
COLUMNS = 1 << COLUMN_BITS
TAIL = COLUMNS - 1
# of a 64-bit word: a sign, a column, and the rest against the threshold
THRESHOLD_BITS = 64 - 1 - COLUMN_BITS
TAIL_EXPONENT = 40  # mass beyond the bins is about exp(-40)
Enclosures = tuple[list[int], list[int]]  # of each column: the low ends, and the high ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Mass:
    """exp(-(linear * |z| + quadratic * z^2)) on the integers, not normalised. One of the two is
    positive.
    """

    linear: Fraction = Fraction(0)
    quadratic: Fraction = Fraction(0)

    def exponent(self, v: int) -> Fraction:
        return self.linear * v + self.quadratic * v * v


def laplace(scale: Fraction) -> Mass:
    return Mass(linear=1 / Fraction(scale))


def gaussian(sigma: Fraction) -> Mass:
    return Mass(quadratic=1 / (2 * Fraction(sigma) ** 2))


@dataclass(frozen=True, kw_only=True)
class AliasTable:
    mass: Mass
    width_bits: int
    alias: tuple[int, ...]
    order: tuple[int, ...]
    """Columns in the order in which they were paired: what `thresholds` must repeat at another
    precision.
    """
    stored: tuple[int, ...]
    """floor(threshold * 2^THRESHOLD_BITS), one a column."""

    @cached_property
    def width(self) -> int:
        return 1 << self.width_bits

    def keeps(self, column: int, fraction: int, more: RandomBits) -> bool:
        """Return True if a column keeps its own bin, given THRESHOLD_BITS of the uniform real that
        decides it.
        """
        if fraction != self.stored[column]:
            return fraction < self.stored[column]
        return exact.less(
            fraction,
            THRESHOLD_BITS,
            lambda: more.bits(64),
            lambda bits: self.threshold(column, bits),
        )

    def threshold(self, column: int, precision: int) -> Enclosure:
        """Return the probability that a column keeps its own bin, to any precision."""
        working = precision + _guard(self.mass, self.width)
        low, high = thresholds(self, working)[column]
        return low >> (working - precision), -(-high >> (working - precision))

    def refusal(self, low: int, offset: int, precision: int) -> Enclosure:
        """Return 1 - exp(-x): the probability that v = low + offset is refused."""
        x = self.mass.exponent(low + offset) - self.mass.exponent(low)
        least, most = exact.exp_minus(x, precision)
        return (1 << precision) - most, (1 << precision) - least

    def tail(self, source: RandomBits) -> int | None:
        """Draw a magnitude beyond the bins, or None if it is refused: geometric, then accepted
        exactly.
        """
        start = TAIL << self.width_bits
        slope = _slope(self.mass, start)
        beyond = geometric(source, slope)
        x = self.mass.exponent(start + beyond) - self.mass.exponent(start) - slope * beyond
        return start + beyond if bernoulli_exp(source, x) else None


@lru_cache(maxsize=256)
def table(mass: Mass) -> AliasTable:
    """Return the table of a mass; about half a millisecond to make, so the last few hundred are
    kept.
    """
    width_bits = _width_bits(mass)
    precision = THRESHOLD_BITS + 64 + _guard(mass, 1 << width_bits)
    while True:
        made = _pair(mass, width_bits, precision)
        if made is not None:
            return made
        precision += 64


def _width_bits(mass: Mass) -> int:
    """Return the least width, as a power of two, at which the bins reach TAIL_EXPONENT."""
    width_bits = 0
    while mass.exponent(TAIL << width_bits) < TAIL_EXPONENT:
        width_bits += 1
    return width_bits


def _slope(mass: Mass, start: int) -> Fraction:
    return mass.exponent(start + 1) - mass.exponent(start)


def _guard(mass: Mass, width: int) -> int:
    """Return how many bits are lost between exp and the thresholds: by COLUMNS products, a sum, and
    a division by 1 - exp(-slope).
    """
    slope = _slope(mass, TAIL * width)
    return 64 + 2 * max(0, slope.denominator.bit_length() - slope.numerator.bit_length())


def _weights(mass: Mass, width: int, precision: int) -> Enclosures:
    """Return the envelope of each bin, and of the tail, in units of the width: exp(-exponent(k *
    width)) and so on.

    The exponent is a polynomial of degree 2 in k, so each weight is the one before it times a
    ratio, and each ratio the one before it times a constant, which is 1 where the exponent is
    linear.
    """
    step = mass.linear * width
    bend = mass.quadratic * width * width
    ratio = exact.exp_minus(step + bend, precision)
    constant = exact.exp_minus(2 * bend, precision)
    one = 1 << precision
    low, high = [one], [one]
    for _ in range(TAIL):
        low.append(low[-1] * ratio[0] >> precision)
        high.append(-(-high[-1] * ratio[1] >> precision))
        if bend:
            ratio = exact.times(ratio, constant, precision)
    least, most = exact.exp_minus(_slope(mass, TAIL * width), precision)
    rest = (width * (one - most), width * (one - least))
    low[TAIL], high[TAIL] = exact.over((low[TAIL], high[TAIL]), rest, precision)
    if width == 1:
        low[0] = high[0] = one >> 1  # 0 has one sign
    return low, high


def _shares(mass: Mass, width: int, precision: int) -> Enclosures:
    """Return COLUMNS times the probability of each bin. The alias method levels these to 1."""
    low, high = _weights(mass, width, precision)
    whole = COLUMNS << precision
    least, most = exact.over((whole, whole), (sum(low), sum(high)), precision)
    return [weight * least >> precision for weight in low], [
        -(-weight * most >> precision) for weight in high
    ]


def _pair(mass: Mass, width_bits: int, precision: int) -> AliasTable | None:
    """Pair columns by Walker's method in Vose's form; None if the precision leaves a threshold
    undecided.
    """
    low, high = _shares(mass, 1 << width_bits, precision)
    one = 1 << precision
    level = list(low)
    small = [k for k in range(COLUMNS) if level[k] < one]
    large = [k for k in range(COLUMNS) if level[k] >= one]
    alias = list(range(COLUMNS))
    order = []
    while small and large:
        lower = small.pop()
        upper = large[-1]
        alias[lower] = upper
        order.append(lower)
        level[upper] -= one - level[lower]
        if level[upper] < one:
            small.append(large.pop())
    # the last column is full by the sum of all shares; two are not
    if len(small) + len(large) != 1:
        return None
    least = _level(low, alias, order, one)
    most = _level(high, alias, order, one)
    if min(least) < 0 or max(most) > one:
        return None
    spare = precision - THRESHOLD_BITS
    stored = tuple([threshold >> spare for threshold in least])
    if stored != tuple([threshold >> spare for threshold in most]):
        return None
    return AliasTable(
        mass=mass, width_bits=width_bits, alias=tuple(alias), order=tuple(order), stored=stored
    )


@lru_cache(maxsize=16)
def thresholds(made: AliasTable, precision: int) -> list[Enclosure]:
    """Return every threshold of a table, enclosed more narrowly: the same pairing at another
    precision.
    """
    bounds = _shares(made.mass, made.width, precision)
    low, high = (_level(shares, made.alias, made.order, 1 << precision) for shares in bounds)
    return list(zip(low, high, strict=True))


def _level(shares: list[int], alias: Sequence[int], order: Sequence[int], one: int) -> list[int]:
    """Return each column's threshold: its share minus what it gave to the columns paired with it; 1
    for the last.
    """
    found = list(shares)
    for lower in order:
        found[alias[lower]] += found[lower] - one
    [last] = set(range(COLUMNS)).difference(order)
    found[last] = one
    return found


def geometric(source: RandomBits, slope: Fraction) -> int:
    """Draw G >= 0 with P(G >= g) = exp(-slope * g), exactly (Canonne, Kamath, Steinke 2020, slope =
    a / b).

    X = U + b * V has P(X >= x) = exp(-x / b) on the integers when V is geometric of slope 1 and U
    on [0, b) has mass proportional to exp(-u / b); and floor(X / a) has slope a / b.
    """
    a, b = slope.numerator, slope.denominator
    while True:
        u = below(source, b)
        if bernoulli_exp(source, Fraction(u, b)):
            break
    v = 0
    while bernoulli_exp(source, Fraction(1)):
        v += 1
    return (u + b * v) // a
