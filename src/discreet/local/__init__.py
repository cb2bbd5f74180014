"""Local privacy: respondents who trust nobody randomize before they answer.

    from discreet import local
    protocol = local.best(1000, epsilon=1).protocol
    reports = protocol.encode(answers)            # on the respondents' devices
    estimate = protocol.estimate(reports)         # .values, .estimates, .margins

Names are loaded when first used, so that an encoder needs the standard library only.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.local.choice import best as best
    from discreet.local.estimate import Estimate as Estimate
    from discreet.local.few_changes import FewChanges as FewChanges
    from discreet.local.hadamard import HadamardResponse as HadamardResponse
    from discreet.local.hashing import LocalHashing as LocalHashing
    from discreet.local.heavy_hitters import HeavyHitters as HeavyHitters
    from discreet.local.memoize import MemoizedResponse as MemoizedResponse
    from discreet.local.memoize import MemoizedUnary as MemoizedUnary
    from discreet.local.numeric import Duchi as Duchi
    from discreet.local.numeric import Hybrid as Hybrid
    from discreet.local.numeric import Piecewise as Piecewise
    from discreet.local.protocol import PROTOCOLS as PROTOCOLS
    from discreet.local.response import KaryResponse as KaryResponse
    from discreet.local.response import Truthful as Truthful
    from discreet.local.response import TwoCoins as TwoCoins
    from discreet.local.response import Warner as Warner
    from discreet.local.square_wave import SquareWave as SquareWave
    from discreet.local.subset import SubsetSelection as SubsetSelection
    from discreet.local.unary import OptimizedUnary as OptimizedUnary
    from discreet.local.unary import SymmetricUnary as SymmetricUnary

_HOME = {
    "best": "choice",
    "Estimate": "estimate",
    "FewChanges": "few_changes",
    "HadamardResponse": "hadamard",
    "LocalHashing": "hashing",
    "HeavyHitters": "heavy_hitters",
    "MemoizedResponse": "memoize",
    "MemoizedUnary": "memoize",
    "Duchi": "numeric",
    "Hybrid": "numeric",
    "Piecewise": "numeric",
    "PROTOCOLS": "protocol",
    "KaryResponse": "response",
    "Truthful": "response",
    "TwoCoins": "response",
    "Warner": "response",
    "SquareWave": "square_wave",
    "SubsetSelection": "subset",
    "OptimizedUnary": "unary",
    "SymmetricUnary": "unary",
    "amplified": "shuffle",
    "amplified_tightly": "shuffle",
    "local_epsilon": "shuffle",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'discreet.local' has no attribute {name!r}")
    return getattr(import_module(f"discreet.local.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOME)
