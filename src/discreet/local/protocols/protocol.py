"""What every protocol must do, the list of all protocols, and how a report is sent. Standard
library only.

A report is an integer in [0, size). It is sent as a JSON number. If there are more than 2^53
different reports, it is sent as lowercase hexadecimal digits of a fixed width, because larger
numbers are not exact in JavaScript.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar
from typing import Protocol as Seam

from discreet.errors import UsageError
from discreet.local.protocols.hadamard import HadamardResponse
from discreet.local.protocols.hashing import LocalHashing
from discreet.local.protocols.heavy_hitters import HeavyHitters
from discreet.local.protocols.numeric import Duchi, Hybrid, Piecewise
from discreet.local.protocols.repeated.few_changes import FewChanges
from discreet.local.protocols.repeated.memoize import MemoizedResponse, MemoizedUnary
from discreet.local.protocols.response import KaryResponse, Truthful, TwoCoins, Warner
from discreet.local.protocols.square_wave import SquareWave
from discreet.local.protocols.subset import SubsetSelection
from discreet.local.protocols.unary import OptimizedUnary, SymmetricUnary
from discreet.noise import bits

if TYPE_CHECKING:
    from discreet.local.collector.estimate import Estimate


class Protocol(Seam):
    """A way to answer privately. It is a frozen value, which both sides build from the same
    survey.
    """

    name: ClassVar[str]

    @property
    def epsilon(self) -> Fraction: ...  # what answering costs a respondent, in a lifetime
    @property
    def size(self) -> int: ...  # how many different reports there are

    def respond(
        self, answer: Any, source: bits.RandomBits = ...
    ) -> int: ...  # one respondent; standard library only
    def encode(self, values: Any) -> Any: ...  # many at once, as an array
    def mass(
        self, report: int, answer: Any
    ) -> Fraction: ...  # the probability of a report, exactly
    def tally(self, reports: Any) -> Any: ...  # what a collector adds up
    def read(self, tally: Any, *, confidence: float = ...) -> Estimate: ...
    def estimate(self, reports: Any) -> Estimate: ...
    def parameters(self) -> dict[str, int | str]: ...  # what an encoder in another language needs


PROTOCOLS: tuple[type[Protocol], ...] = (
    Warner,
    Truthful,
    TwoCoins,
    KaryResponse,
    SymmetricUnary,
    OptimizedUnary,
    LocalHashing,
    SubsetSelection,
    HadamardResponse,
    Duchi,
    Piecewise,
    Hybrid,
    SquareWave,
    HeavyHitters,
    MemoizedResponse,
    MemoizedUnary,
    FewChanges,
)

_NUMBERS = 1 << 53  # up to here JavaScript's whole numbers are exact
_HEX = frozenset("0123456789abcdef")


def hex_digits(size: int) -> int:
    """Return with how many hexadecimal digits a report is sent; 0 if it is sent as a number."""
    return 0 if size <= _NUMBERS else -(-(size - 1).bit_length() // 4)


def to_wire(report: int, size: int) -> int | str:
    """Return a report as it is sent."""
    digits = hex_digits(size)
    return f"{report:0{digits}x}" if digits else report


def from_wire(sent: object, size: int) -> int:
    """Return the report that was sent; refuse anything that cannot be one."""
    digits = hex_digits(size)
    if not digits and type(sent) is int and 0 <= sent < size:
        return sent
    if digits and isinstance(sent, str) and len(sent) == digits and _HEX.issuperset(sent):
        report = int(sent, 16)
        if report < size:
            return report
    raise UsageError("This is not a report to this question.")
