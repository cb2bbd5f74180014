"""Files that a command will write: looked at before its work, which may be paid for."""

from __future__ import annotations

import os
from pathlib import Path

from discreet.errors import UsageError


def require_writable(*paths: Path | None) -> None:
    """Refuse a file that cannot be written where it is named; those that were not asked for are None."""
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
