"""Small finite fields and vectors over them, for hash functions that collide exactly as often as
they say.

A field of g elements exists for every prime power; here g is a prime or a power of two, at most
256. Its elements are 0 .. g - 1: added and multiplied modulo a prime, or as polynomials over {0, 1}
     in the bits. Standard library only.
"""

from __future__ import annotations

from functools import lru_cache

MOST = 256

# Irreducible polynomials x^s + ... + 1, the smallest of each degree. That each makes a field is
# tested.
_MODULUS = {
    1: 0b11,
    2: 0b111,
    3: 0b1011,
    4: 0b10011,
    5: 0b100101,
    6: 0b1000011,
    7: 0b10000011,
    8: 0b100011011,
}


@lru_cache(maxsize=1)
def sizes() -> tuple[int, ...]:
    """Return the sizes of all fields here, rising."""
    primes = [g for g in range(2, MOST) if all(g % k for k in range(2, int(g**0.5) + 1))]
    return tuple(sorted({*primes, *(1 << s for s in _MODULUS)}))


def binary(g: int) -> bool:
    return g & (g - 1) == 0


def add(a: int, b: int, g: int) -> int:
    return a ^ b if binary(g) else (a + b) % g


def times(a: int, b: int, g: int) -> int:
    if not binary(g):
        return a * b % g
    degree = g.bit_length() - 1
    product = 0
    for bit in range(degree):
        product ^= (a << bit) * (b >> bit & 1)
    for bit in reversed(range(degree, 2 * degree)):
        product ^= (_MODULUS[degree] << (bit - degree)) * (product >> bit & 1)
    return product


def dot(a: int, b: int, g: int) -> int:
    """Return the inner product of two vectors, each a number whose digits in base g are its
    elements.
    """
    total = 0
    while a and b:
        total = add(total, times(a % g, b % g, g), g)
        a = a // g
        b = b // g
    return total


def length(values: int, g: int) -> int:
    """Return the elements that a vector needs so that there are at least so many vectors."""
    k = 1
    while g**k < values:
        k += 1
    return k


def trace(a: int, g: int) -> int:
    """Return a + a^2 + a^4 + ..., which is 0 or 1, in a field of a power of two."""
    total, power = 0, a
    for _ in range(g.bit_length() - 1):
        total ^= power
        power = times(power, power, g)
    return total


def mask(a: int, g: int) -> int:
    """Return the bits whose parity with those of v is the trace of a v, in a field of a power of
    two.
    """
    return sum(trace(times(a, 1 << bit, g), g) << bit for bit in range(g.bit_length() - 1))
