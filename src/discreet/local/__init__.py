"""Local privacy: respondents who trust nobody randomize before they answer.

    from discreet import local
    protocol = local.best(1000, epsilon=1).protocol
    reports = protocol.encode(answers)            # on the respondents' devices
    estimate = protocol.estimate(reports)         # .values, .estimates, .margins

Each name is imported when it is first used, so that an encoder needs the standard library only.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.local.choice import best as best
    from discreet.local.collector.estimate import Estimate as Estimate
    from discreet.local.protocols.hadamard import HadamardResponse as HadamardResponse
    from discreet.local.protocols.hashing import LocalHashing as LocalHashing
    from discreet.local.protocols.heavy_hitters import HeavyHitters as HeavyHitters
    from discreet.local.protocols.numeric import Duchi as Duchi
    from discreet.local.protocols.numeric import Hybrid as Hybrid
    from discreet.local.protocols.numeric import Piecewise as Piecewise
    from discreet.local.protocols.protocol import PROTOCOLS as PROTOCOLS
    from discreet.local.protocols.repeated.few_changes import FewChanges as FewChanges
    from discreet.local.protocols.repeated.memoize import MemoizedResponse as MemoizedResponse
    from discreet.local.protocols.repeated.memoize import MemoizedUnary as MemoizedUnary
    from discreet.local.protocols.response import KaryResponse as KaryResponse
    from discreet.local.protocols.response import Truthful as Truthful
    from discreet.local.protocols.response import TwoCoins as TwoCoins
    from discreet.local.protocols.response import Warner as Warner
    from discreet.local.protocols.square_wave import SquareWave as SquareWave
    from discreet.local.protocols.subset import SubsetSelection as SubsetSelection
    from discreet.local.protocols.unary import OptimizedUnary as OptimizedUnary
    from discreet.local.protocols.unary import SymmetricUnary as SymmetricUnary

_HOME = {
    "best": "choice",
    "Estimate": "collector.estimate",
    "FewChanges": "protocols.repeated.few_changes",
    "HadamardResponse": "protocols.hadamard",
    "LocalHashing": "protocols.hashing",
    "HeavyHitters": "protocols.heavy_hitters",
    "MemoizedResponse": "protocols.repeated.memoize",
    "MemoizedUnary": "protocols.repeated.memoize",
    "Duchi": "protocols.numeric",
    "Hybrid": "protocols.numeric",
    "Piecewise": "protocols.numeric",
    "PROTOCOLS": "protocols.protocol",
    "KaryResponse": "protocols.response",
    "Truthful": "protocols.response",
    "TwoCoins": "protocols.response",
    "Warner": "protocols.response",
    "SquareWave": "protocols.square_wave",
    "SubsetSelection": "protocols.subset",
    "OptimizedUnary": "protocols.unary",
    "SymmetricUnary": "protocols.unary",
    "amplified": "collector.shuffle",
    "amplified_tightly": "collector.shuffle",
    "local_epsilon": "collector.shuffle",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'discreet.local' has no attribute {name!r}")
    return getattr(import_module(f"discreet.local.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOME)
