"""Line editing in the shell: history, completion and Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self, TypeVar

MOST_HISTORY = 2_000  # lines that are remembered

Result = TypeVar("Result")


class CtrlC:
    """A signal handler by which Ctrl-C stops a running statement and never the shell.

    It works also if the parent process had told this one to ignore Ctrl-C.
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

    def may_stop(self, act: Callable[[], Result]) -> Result | None:
        """Call a function and return its result, or None if Ctrl-C stopped it."""
        try:
            try:
                self._may_stop = True
                return act()
            finally:
                self._may_stop = False
        except KeyboardInterrupt:  # it may come even after `act` has ended, before `finally`
            return None

    def _press(self, number: int, frame: FrameType | None) -> None:
        if self._may_stop:
            self._may_stop = False  # a second Ctrl-C does nothing
            raise KeyboardInterrupt


@contextlib.contextmanager
def line_editing(words: Iterable[str]) -> Iterator[None]:
    """Turn on line editing with history and completion, if this Python has readline."""
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
    """Return a function for readline. It takes a text and a number n, and returns the n-th word
    that begins with the text, in upper or lower case.
    """

    def complete(text: str, number: int) -> str | None:
        matches = [word for word in words if word.lower().startswith(text.lower())]
        return matches[number] if number < len(matches) else None

    return complete


def _history_file() -> Path:
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "discreet" / "history"
