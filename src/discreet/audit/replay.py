"""Record and replay (S14): the same draws on neighbors; as long as what left agrees, the next draw is the same one.

Not "the same number of draws": unknown keys, later passes of a quantile and adaptive synthesizers may go another way
once they have released something different, and rightly so. What must not differ before that is the place in the code
that draws, the scale of the noise and the items that get it: a difference there is data that steers the noise unpaid.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from discreet.noise import recording
from discreet.noise.bits import SYSTEM
from discreet.noise.tape import Draw, Recording
from discreet.release import Allowance

STEPS = ("measure", "threshold", "choose", "marginal", "distances", "farthest")  # of an allowance: what can leave
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One release: which, its draws, and a digest of what left."""

    name: str
    draws: tuple[Draw, ...]
    released: str


class Witness:
    """An allowance with what leaves it written down, one step after another."""

    def __init__(self, allowance: Allowance, tape: Recording, steps: list[Step]) -> None:
        self._allowance, self._tape, self._steps = allowance, tape, steps

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._allowance, name)
        return self._written_down(name, found) if name in STEPS else found

    def _written_down(self, name: str, release: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **named: Any) -> Any:
            before = len(self._tape.draws)
            left = release(*arguments, **named)
            draws = tuple(self._tape.draws[before:])
            self._steps.append(Step(name=name, draws=draws, released=digest(left)))
            return left

        return step


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """What was drawn and what left, in order; `tape` replays it elsewhere."""

    tape: Recording
    steps: tuple[Step, ...]

    @property
    def draws(self) -> int:
        return sum(len(step.draws) for step in self.steps)


def recorded(
    work: Callable[[Callable[[Allowance], Any]], Result], *, replay: Transcript | None = None
) -> tuple[Transcript, Result]:
    """Do some work that releases through allowances; it is handed what makes a witness of each of them."""
    steps: list[Step] = []
    with recording(replay=None if replay is None else replay.tape) as tape:
        result = work(lambda allowance: Witness(allowance, tape, steps))
    return Transcript(tape=tape, steps=tuple(steps)), result


def differences(first: Transcript, second: Transcript) -> tuple[str, ...]:
    """Where the second, on a neighbor, drew otherwise than the first although all that had left was the same."""
    for index, (a, b) in enumerate(zip(first.steps, second.steps, strict=False)):
        found = _apart(a, b)
        if found is not None:
            return (f"release {index + 1} ({a.name}): {found}",)
        if a.released != b.released:
            return ()
    if len(first.steps) != len(second.steps):
        return (f"{len(first.steps)} releases on the one and {len(second.steps)} on the other, all of them alike",)
    return ()


def shared(transcript: Transcript) -> tuple[str, ...]:
    """Draws that share their noise: the same words used twice (S8)."""
    seen: set[tuple[Any, ...]] = set()
    found = []
    for step in transcript.steps:
        for draw in step.draws:
            name = (draw.root, draw.path, draw.ids, draw.sampler)
            if name in seen:
                found.append(f"{step.name}: {draw.sampler} at {draw.path} is drawn twice")
            seen.add(name)
    return tuple(found)


def _apart(a: Step, b: Step) -> str | None:
    """How two releases differ before anything has left them. A threshold draws for the keys that exist, no others.

    Of several quantiles all but the first are chosen among the places that the choices before them left, groups with
    the same places together: so only the first draw of a choice is compared, the others follow from what was chosen.
    """
    drawn = [step.draws[:1] if step.name == "choose" else step.draws for step in (a, b)]
    if (a.name, len(drawn[0])) != (b.name, len(drawn[1])):
        return f"{len(a.draws)} draws of a {a.name} against {len(b.draws)} of a {b.name}"
    for one, other in zip(*drawn, strict=True):
        for what in ("path", "sampler", "scale"):
            if getattr(one, what) != getattr(other, what):
                return f"the {what} of a draw is {getattr(one, what)} against {getattr(other, what)}"
        if a.name != "threshold" and (one.count, one.ids) != (other.count, other.ids):
            return f"noise for {one.count} items against {other.count}, or for others"
    return None


def digest(left: Any) -> str:
    """The same for the same released values, whatever holds them."""
    state = hashlib.blake2b(digest_size=16)

    def add(part: Any) -> None:
        if isinstance(part, pa.Table):
            add(part.to_pylist())
        elif isinstance(part, np.ndarray):
            state.update(f"{part.shape}{part.tolist()}".encode())
        elif isinstance(part, tuple | list):
            for each in part:
                add(each)
        else:
            state.update(repr(part).encode())

    add(left)
    return state.hexdigest()


class Bits:
    """A source of bits for a respondent's encoder that notes how many were asked for, and gives given ones again."""

    def __init__(self, given: Sequence[int] = ()) -> None:
        self.asked: list[int] = []
        self.drawn: list[int] = []
        self._given = list(given)

    def bits(self, k: int) -> int:
        place = len(self.asked)
        self.asked.append(k)
        self.drawn.append(self._given[place] & ((1 << k) - 1) if place < len(self._given) else SYSTEM.bits(k))
        return self.drawn[-1]
