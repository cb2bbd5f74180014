"""A hook into randomness, for tests only: record every draw, replay it on other data, or replace
its words.

Inside `recording()` words do not come from a stream's own key but from the recording's. They depend
on the order in which keys first appeared, the purposes derived from them, the round and the item.
So a replay on a neighboring table, whose charges have other keys, gets the same words for the same
request (S14).
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

Path = tuple[tuple[Any, ...], ...]
Craft = Callable[["WordRequest", Any], Any]
"""Given what was asked and the words (n, 2) that would be used, the words to use instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerCall:
    """One call of a sampler: the purposes of its stream, its kind, its scale and its items."""

    root: int
    path: Path
    sampler: str
    scale: str
    count: int
    ids: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WordRequest:
    """One request for words: the stream's purposes, the round, and the (n, 2) ids of the items."""

    root: int
    path: Path
    round: int
    ids: Any


@dataclass(slots=True)
class Recording:
    draws: list[SamplerCall] = field(default_factory=list)
    asked: list[WordRequest] = field(default_factory=list)
    choices: list[tuple[SamplerCall, Any]] = field(default_factory=list)
    _given: list[tuple[SamplerCall, Any]] = field(default_factory=list)
    _craft: Craft | None = None
    _key: bytes = field(default_factory=lambda: os.urandom(32), repr=False)
    _roots: dict[bytes, int] = field(default_factory=dict, repr=False)
    _lock: Any = field(default_factory=threading.Lock, repr=False)

    def number(self, root: bytes) -> int:
        with self._lock:
            return self._roots.setdefault(root, len(self._roots))

    def key(self, root: bytes, path: bytes) -> bytes:
        number = self.number(root).to_bytes(8, "little")
        return hashlib.blake2b(
            number + path, key=self._key, person=b"discreet.replay", digest_size=32
        ).digest()

    def words(self, root: bytes, path: Path, number: int, ids: Any, words: Any) -> Any:
        asked = WordRequest(root=self.number(root), path=path, round=number, ids=ids.copy())
        self.asked.append(asked)
        return words if self._craft is None else self._craft(asked, words)

    def choice(self, places: Any) -> Any:
        draw = self.draws[-1]
        given = self._given[len(self.choices) : len(self.choices) + 1]
        kept = given[0][1] if given and given[0][0] == draw else places
        self.choices.append((draw, kept))
        return kept


_active: Recording | None = None


def active() -> Recording | None:
    return _active


@contextmanager
def recording(
    *, replay: Recording | None = None, choices: bool = False, craft: Craft | None = None
) -> Iterator[Recording]:
    """Record every draw of this process; with `replay`, from the words of an earlier recording.

    With `choices`, what was chosen then is chosen again, as long as the draws that choose are the
    same.
    """
    global _active
    if _active is not None:
        raise RuntimeError("A recording is already on.")
    if replay is None:
        _active = Recording(_craft=craft)
    else:
        _active = Recording(
            _craft=craft, _key=replay._key, _given=replay.choices if choices else []
        )
    try:
        yield _active
    finally:
        _active = None


def note(stream: Any, sampler: str, scale: object, items: Any) -> None:
    """Record a sampler's call, with what it was asked; each sampler calls this once."""
    tape = _active
    if tape is not None:
        ids = hashlib.blake2b(items.ids.tobytes(), digest_size=16).hexdigest()
        draw = SamplerCall(
            root=tape.number(stream._root),
            path=stream.path,
            sampler=sampler,
            scale=str(scale),
            count=len(items),
            ids=ids,
        )
        tape.draws.append(draw)


def note_choice(places: Any) -> Any:
    """Record or replay a choice; each sampler that chooses calls this last, with what it chose."""
    return places if _active is None else _active.choice(places)
