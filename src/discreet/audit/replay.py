"""Record and replay (S14): the same draws on neighbors; given that the same has left, the next draw
is the same one.

On the second neighbor every release draws as it would and is then put in the place of what left the
first one, and so is every choice inside a release: all that follows is compared too, under the same
transcript. What must not differ is the place in the code that draws, the scale of the noise and the
items that get it: a difference there is data that steers the noise unpaid.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from discreet.noise import recording
from discreet.noise.bits import SYSTEM
from discreet.noise.tape import Recording, SamplerCall
from discreet.vault.allowance import Allowance

# Of an allowance: what can leave.
STEPS = (
    "measure",
    "threshold",
    "choose",
    "choose_near",
    "marginal",
    "roll_up",
    "distances",
    "sums",
    "farthest",
)
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayStep:
    """One release: which, its draws, and what left."""

    name: str
    draws: tuple[SamplerCall, ...]
    left: Any = field(repr=False, compare=False)


class Witness:
    """An allowance with what leaves it written down, step after step; `given` steps leave again in
    their place.
    """

    def __init__(
        self,
        allowance: Allowance,
        tape: Recording,
        steps: list[ReplayStep],
        given: Sequence[ReplayStep],
    ) -> None:
        self._allowance = allowance
        self._tape = tape
        self._steps = steps
        self._given = given

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._allowance, name)
        return self._write_down(name, found) if name in STEPS else found

    def _write_down(self, name: str, release: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **named: Any) -> Any:
            before = len(self._tape.draws)
            place = len(self._steps)
            left = release(*arguments, **named)
            own = ReplayStep(
                name=name, draws=tuple(self._tape.draws[before:]), left=copy.deepcopy(left)
            )
            self._steps.append(own)
            again = place < len(self._given) and _apart(self._given[place], own) is None
            return copy.deepcopy(self._given[place].left) if again else left

        return step


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """The draws and releases in order; `tape` replays them elsewhere."""

    tape: Recording
    steps: tuple[ReplayStep, ...]

    @property
    def draws(self) -> int:
        return sum(len(step.draws) for step in self.steps)


def record(
    work: Callable[[Callable[[Allowance], Any]], Result], *, replay: Transcript | None = None
) -> tuple[Transcript, Result]:
    """Do some work that releases through allowances; the work gets a function that makes each a
    witness.

    With `replay`, it uses the draws of an earlier transcript, and what left then leaves again.
    """
    steps: list[ReplayStep] = []
    tape_before, given = (None, ()) if replay is None else (replay.tape, replay.steps)
    with recording(replay=tape_before, choices=True) as tape:
        result = work(lambda allowance: Witness(allowance, tape, steps, given))
    return Transcript(tape=tape, steps=tuple(steps)), result


def differences(first: Transcript, second: Transcript) -> tuple[str, ...]:
    """Tell where the second, a replay of the first on a neighbor, drew differently though the same
    had left.
    """
    for index, (a, b) in enumerate(zip(first.steps, second.steps, strict=False)):
        found = _apart(a, b)
        if found is not None:
            return (f"release {index + 1} ({a.name}): {found}",)
    if len(first.steps) != len(second.steps):
        return (
            f"{len(first.steps)} releases on the one and {len(second.steps)} on the other, all of them alike",
        )
    return ()


def find_shared_noise(transcript: Transcript) -> tuple[str, ...]:
    """Return draws that share their noise: the same words used twice (S8)."""
    seen: set[tuple[Any, ...]] = set()
    found = []
    for step in transcript.steps:
        for draw in step.draws:
            name = (draw.root, draw.path, draw.ids, draw.sampler)
            if name in seen:
                found.append(f"{step.name}: {draw.sampler} at {draw.path} is drawn twice")
            seen.add(name)
    return tuple(found)


def _apart(a: ReplayStep, b: ReplayStep) -> str | None:
    """Say how two releases differ before anything left them; a threshold draws only for keys that
    exist.
    """
    if (a.name, len(a.draws)) != (b.name, len(b.draws)):
        return f"{len(a.draws)} draws of a {a.name} against {len(b.draws)} of a {b.name}"
    for one, other in zip(a.draws, b.draws, strict=True):
        for what in ("path", "sampler", "scale"):
            if getattr(one, what) != getattr(other, what):
                return (
                    f"the {what} of a draw is {getattr(one, what)} against {getattr(other, what)}"
                )
        if a.name != "threshold" and (one.count, one.ids) != (other.count, other.ids):
            return f"noise for {one.count} items against {other.count}, or for others"
    return None


class Bits:
    """A source of bits for a respondent's encoder that notes how many were asked for, and gives
    given ones again.
    """

    def __init__(self, given: Sequence[int] = ()) -> None:
        self.asked: list[int] = []
        self.drawn: list[int] = []
        self._given = list(given)

    def bits(self, k: int) -> int:
        place = len(self.asked)
        self.asked.append(k)
        self.drawn.append(
            self._given[place] & ((1 << k) - 1) if place < len(self._given) else SYSTEM.bits(k)
        )
        return self.drawn[-1]
