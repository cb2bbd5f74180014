"""A real Postgres for a test: started on a socket in a folder of its own, as somebody who is not root."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_NOBODY = "nobody"


def programs() -> Path | None:
    """The folder of initdb and pg_ctl: Debian keeps them off the path."""
    found = [*sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)]
    on_path = shutil.which("initdb")
    return found[0].parent if found else Path(on_path).parent if on_path else None


@contextmanager
def postgres() -> Iterator[str]:
    """A running server's connection string, for the superuser `postgres`."""
    where = programs()
    if where is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(
            "Postgres is missing, so NOTHING WAS COMPARED WITH IT. Install it: apt-get install postgresql."
        )
    user = _NOBODY if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    if user is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)

    def run(*command: str) -> None:
        subprocess.run(
            command, check=True, cwd=folder, user=user, timeout=120, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )

    data = str(folder / "data")
    run(str(where / "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "--locale=C.UTF-8", "-E", "UTF8", "-N")
    options = f"-c listen_addresses='' -k {folder} -c fsync=off"
    try:
        run(str(where / "pg_ctl"), "-D", data, "-o", options, "-l", str(folder / "log"), "-w", "-t", "100", "start")
        yield f"host={folder} user=postgres"
    finally:
        subprocess.run(
            [str(where / "pg_ctl"), "-D", data, "-m", "immediate", "stop"], user=user, cwd=folder, timeout=60
        )
        shutil.rmtree(folder, ignore_errors=True)
