"""Choose the protocol for a list of values: with the least variance, or with little more in fewer
bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.budget import number
from discreet.errors import UsageError
from discreet.local.protocols.hadamard import HadamardResponse
from discreet.local.protocols.hashing import LocalHashing
from discreet.local.protocols.repeated.memoize import MemoizedResponse, MemoizedUnary
from discreet.local.protocols.response import KaryResponse
from discreet.local.protocols.subset import SubsetSelection
from discreet.local.protocols.unary import OptimizedUnary

CANDIDATES = (KaryResponse, LocalHashing, HadamardResponse, SubsetSelection, OptimizedUnary)
SLACK = Fraction(105, 100)
"""How much more variance a shorter report may have: 5 % of variance is 2.5 % of every margin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The chosen protocol, and why it was chosen."""

    protocol: Any
    variance: float
    """n times the variance of the estimated frequency of a rare value."""
    bits: int
    """The length of a report."""
    why: str


def best(domain_size: int, epsilon: object) -> Choice:
    """Return the protocol with the shortest report among those within 5 % of the least variance.

    The variance is that of a rare value's frequency. Of two with equally long reports, take the
    simpler.
    """
    found = []
    for candidate in CANDIDATES:
        try:
            protocol = candidate(domain=domain_size, epsilon=epsilon)  # type: ignore[arg-type]
        except UsageError:
            if candidate is KaryResponse:  # it takes every domain and ε that any of them takes
                raise
            continue
        variance = protocol.variance(n=1, frequency=Fraction(1, domain_size))
        found.append((protocol, variance, (protocol.size - 1).bit_length()))
    least = min(variance for _, variance, _ in found)
    near = [each for each in found if each[1] <= SLACK * least]
    protocol, variance, size = min(near, key=lambda each: each[2])
    return Choice(
        protocol=protocol,
        variance=float(variance),
        bits=size,
        why=_why(protocol, found, domain_size),
    )


def best_memoized(
    domain_size: int,
    *,
    permanent: object,
    instant: object,
    changes: int,
    rounds: int | None,
    most: Fraction,
) -> str:
    """Return the name of the memoized protocol with the least variance of a rare value.

    Choose among those whose lifetime ε is at most `most`; if there is none, take memoized response:
    the ε of unary bits grows faster, because every change shows in every bit.
    """
    declared = {"permanent": permanent, "instant": instant, "changes": changes, "rounds": rounds}
    kinds = (MemoizedResponse, MemoizedUnary)
    protocols = [kind(domain=domain_size, **declared) for kind in kinds]  # type: ignore[arg-type]
    fitting = [protocol for protocol in protocols if protocol.epsilon <= most] or protocols[:1]
    rare = Fraction(1, domain_size)
    return min(fitting, key=lambda protocol: protocol.variance(n=1, frequency=rare)).name


def _why(chosen: Any, found: list[tuple[Any, Fraction, int]], domain_size: int) -> str:
    ranked = sorted(found, key=lambda each: each[1])
    shown = {}
    for protocol, variance, size in ranked:
        shown[protocol.name] = f"{number(variance)} in {_bits(size)}"
    own = shown.pop(chosen.name)
    reason = "has the least variance"
    if ranked[0][0] is not chosen:
        reason = (
            f"is within 5 % of the least variance ({number(ranked[0][1])}) in the shortest report"
        )
    others = ", ".join(f"{name} {figures}" for name, figures in shown.items())
    return (
        f"{domain_size} values at ε = {number(chosen.epsilon)}: {chosen.name} {reason}. "
        f"n times the variance of a frequency is {own} a report; the others: {others}."
    )


def _bits(size: int) -> str:
    return f"{size} bit" if size == 1 else f"{size} bits"
