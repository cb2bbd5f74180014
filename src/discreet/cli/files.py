"""Write the files of commands, in one place; check their paths before work that costs budget."""

from __future__ import annotations

import os
from pathlib import Path

from discreet.errors import UsageError


def require_writable(*paths: Path | None) -> None:
    """Refuse a file that cannot be written where it is named; those that were not asked for are
    None.
    """
    for path in paths:
        if path is None:
            continue
        folder = path.absolute().parent
        if not folder.is_dir():
            raise UsageError(f"{path.parent} is not a folder. Name a file in one that is there.")
        if path.is_dir():
            raise UsageError(f"{path} is a folder. Name a file.")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise UsageError(f"{path} cannot be written. Name a file that you may write.")


def write_file(path: Path | None, content: str | bytes, *, secret: bool = False) -> None:
    """Write a file, whole or not at all; a secret one for this account alone. None writes
    nothing.
    """
    if path is None:
        return
    data = content.encode() if isinstance(content, str) else content
    if path.exists() and not path.is_file():  # /dev/stdout, or a pipe
        path.write_bytes(data)
        return
    path = path.resolve()  # a link stays a link
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with open(
            os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600 if secret else 0o666), "wb"
        ) as file:
            file.write(data)
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise UsageError(f"{path} could not be written: {error.strerror}.") from None
