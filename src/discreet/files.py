"""Write files for people, whole or not at all; check their paths before work that costs budget."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.errors import UsageError


def require_writable(*paths: Path | None) -> None:
    """Refuse a path at which no file can be written. None means that no file is wanted."""
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
    """Write a file, whole or not at all; if it is secret, only its owner may read it.

    Write nothing if the path is None.
    """
    if path is None:
        return
    with replacing(path, secret=secret) as new:
        new.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing(path: Path, *, secret: bool = False) -> Iterator[Path]:
    """Yield a file to write to; when the block ends without error, it replaces `path`."""
    if path.exists() and not path.is_file():  # /dev/stdout, or a pipe
        yield path
        return
    path = path.resolve()  # a symbolic link stays a link
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        mode = 0o600 if secret else 0o666
        os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode))
        yield new
        os.replace(new, path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UsageError(f"{path} could not be written: {reason}.") from None
    finally:
        new.unlink(missing_ok=True)
