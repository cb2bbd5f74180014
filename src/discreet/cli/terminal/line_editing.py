"""Editing a line of the shell: history, completion and Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

if TYPE_CHECKING:
    pass


MOST_HISTORY = 2_000


Made = TypeVar("Made")


class CtrlC:
    """Ctrl-C stops what runs and never the shell, also where whoever started the shell has it
    ignored.
    """

    def __init__(self) -> None:
        self._may_stop = False

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._press)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        signal.signal(signal.SIGINT, self._before)

    def may_stop(self, act: Callable[[], Made]) -> Made | None:
        """Return what an act returns, or None where Ctrl-C stopped it."""
        try:
            try:
                self._may_stop = True
                return act()
            finally:
                self._may_stop = False
        except KeyboardInterrupt:  # also one between the end of the act and the line above
            return None

    def _press(self, number: int, frame: FrameType | None) -> None:
        if self._may_stop:
            self._may_stop = False  # a second one meets nothing to stop
            raise KeyboardInterrupt


@contextlib.contextmanager
def line_editing(words: Iterable[str]) -> Iterator[None]:
    """Edit lines, remember and complete them by readline, where Python has it."""
    try:
        import readline
    except ImportError:
        yield
        return
    readline.set_completer(completer(sorted(words)))
    readline.set_completer_delims(" \t\n,;()=<>+-*/\"'")
    readline.parse_and_bind("tab: complete")
    path = _history_file()
    with contextlib.suppress(OSError):
        readline.read_history_file(path)
    try:
        yield
    finally:
        readline.set_history_length(MOST_HISTORY)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
            readline.write_history_file(path)


def completer(words: list[str]) -> Callable[[str, int], str | None]:
    """Return a function for readline: the word of this number that begins with a text, whatever its
    case.
    """

    def complete(text: str, number: int) -> str | None:
        found = [word for word in words if word.lower().startswith(text.lower())]
        return found[number] if number < len(found) else None

    return complete


def _history_file() -> Path:
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "discreet" / "history"
