"""The design of a release: its strategy and its noise. It is public, and stored as the first step
of the release's stream.

Floats may differ on another machine; stored integers do not. So the strategy is computed once, and
every later run reads it.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

import numpy as np

from discreet.accounting import Accountant
from discreet.budget import Neighbors, round_down
from discreet.continual.margins import half_widths
from discreet.continual.question import PeriodQuestion, StatisticColumn
from discreet.continual.strategies.buffered import Buffered
from discreet.continual.strategies.choose import choose
from discreet.continual.strategies.dense import Dense
from discreet.continual.strategies.doubling import Doubling
from discreet.continual.strategies.independent import Independent
from discreet.continual.strategies.strategy import Gaussian, Pure, Strategy
from discreet.continual.strategies.tree import BinaryTree, SubtractionTree
from discreet.mechanisms import from_row, to_row
from discreet.mechanisms.currency import currency
from discreet.mechanisms.shapes import Additive, Movement, Norm
from discreet.policy.schedule import Publish, Schedule

STRATEGIES: tuple[type[Any], ...] = (
    Independent,
    Dense,
    Buffered,
    BinaryTree,
    SubtractionTree,
    Doubling,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Design:
    """The strategy, and the mechanism of each measurement."""

    strategy: Strategy
    mechanisms: tuple[Additive, ...]

    def to_bytes(self) -> bytes:
        told = {
            "strategy": _told(self.strategy),
            "mechanisms": [to_row(each) for each in self.mechanisms],
        }
        return json.dumps(told, sort_keys=True).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Design:
        told = json.loads(content)
        found: Any = tuple(from_row(row) for row in told["mechanisms"])
        return cls(strategy=_strategy(told["strategy"]), mechanisms=found)

    def covering(self, periods: int) -> Design:
        """Return the design for so many periods, if its strategy has no end; other designs stay
        unchanged.
        """
        strategy = self.strategy
        if isinstance(strategy, Doubling):
            return replace(self, strategy=Doubling.covering(periods))
        if isinstance(strategy, Independent | SubtractionTree):
            return replace(self, strategy=replace(strategy, periods=periods))
        return self

    def moved(
        self, schedule: Schedule, asked: PeriodQuestion, neighbors: Neighbors
    ) -> list[Movement]:
        """Return how far one person moves each measurement, to compare it with the stored
        mechanisms.

        It is rounded down to nine digits, because floats of a strategy may be a little larger now
        than when the release was started.
        """
        found = []
        for index, mechanism in enumerate(self.mechanisms):
            exact = _move(
                self.strategy, schedule, asked, index, neighbors=neighbors, norm=mechanism.norm
            )
            found.append(Movement(l1=_nearly(exact.l1), l2_squared=_nearly(exact.l2_squared)))
        return found

    def margins(self, statistic: StatisticColumn, publish: Publish, *, first: int) -> list[float]:
        """Return the half-width of each period's estimate, from a first period on."""
        noise = self.mechanisms[statistic.measurement]
        factors = [each * statistic.step for each in statistic.factors]
        return half_widths(self.strategy, noise, factors, publish, first=first)


def design_release(
    schedule: Schedule,
    asked: PeriodQuestion,
    accountant: Accountant,
    *,
    neighbors: Neighbors,
    amount: Fraction,
) -> Design:
    """Choose the strategy for a schedule, and noise for each measurement within an even share of
    the amount.
    """
    paid = currency(accountant.name)
    person = schedule.per_person
    strategy = choose(
        schedule.periods, schedule.publish, person, paid.norm, signed=any(asked.signed)
    )
    share = amount / len(asked.own)
    moved = [
        _move(strategy, schedule, asked, index, neighbors=neighbors, norm=paid.norm)
        for index in range(len(asked.own))
    ]
    return Design(
        strategy=strategy, mechanisms=tuple(paid.noise(amount=share, moved=each) for each in moved)
    )


def _move(
    strategy: Strategy,
    schedule: Schedule,
    asked: PeriodQuestion,
    index: int,
    *,
    neighbors: Neighbors,
    norm: Norm,
) -> Movement:
    """Return how far one person moves a measurement over all periods, by the norm that its noise
    needs.
    """
    person = schedule.per_person
    own = asked.own[index]
    signed = asked.signed[index]
    times = person.periods if schedule.periods is None else person.most(schedule.periods)
    assert times is not None  # a policy with neither is refused
    if norm == "l1":
        l1 = cast(Pure, strategy).l1(times=times) * own.l1 * (1 if neighbors == "add_remove" else 2)
        return Movement(l1=l1, l2_squared=None)
    reach = cast(Gaussian, strategy).l2_squared(
        times=times, apart=person.apart, cells=own.l0, signed=signed
    )
    return Movement(
        l1=None, l2_squared=reach * own.l2_squared * histories(strategy, neighbors, signed=signed)
    )


def _nearly(norm: Fraction | int | None) -> Fraction | None:
    return None if norm is None else round_down(Fraction(norm), digits=9)


def histories(strategy: Strategy, neighbors: Neighbors, *, signed: bool) -> int:
    """Return by which factor the difference of neighbors is larger than |C u|².

    Removing a person takes one history u away. Replacing one leaves |C (u - v)|² <= |Cu|² + |Cv|² -
    2 <Cu, Cv>: that is twice the largest where C' C, u and v are not negative, because then the
    last product is not; else four times.
    """
    if neighbors == "add_remove":
        return 1
    return 2 if getattr(strategy, "never_negative", True) and not signed else 4


def _told(strategy: Any) -> dict[str, Any]:
    if isinstance(strategy, Dense):
        content = zlib.compress(strategy.factor.astype("<i4").tobytes(), 9)
        fields = {
            "name": strategy.name,
            "factor": base64.b64encode(content).decode(),
            "periods": strategy.periods,
        }
    else:
        fields = {name: getattr(strategy, name) for name in strategy.__dataclass_fields__}
    return {"kind": type(strategy).__name__, **fields}


def _strategy(told: dict[str, Any]) -> Strategy:
    kind = next(each for each in STRATEGIES if each.__name__ == told["kind"])
    fields = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in told.items()
        if name != "kind"
    }
    if kind is Dense:
        size = int(told["periods"])
        del fields["periods"]
        content = zlib.decompress(base64.b64decode(told["factor"]))
        fields["factor"] = np.frombuffer(content, dtype="<i4").astype(np.int64).reshape(size, size)
    strategy: Strategy = kind(**fields)
    return strategy
