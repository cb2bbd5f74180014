"""A disk of a few megabytes, to be filled."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """Mount one there, as root may; whoever may not skips the test."""
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True
    )
    if made.returncode:
        pytest.skip(
            "a full disk needs a small one, which only root may mount; test_files_that_cannot_grow is like it"
        )
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)  # a database may still be open
