"""A real Postgres for a test: started on a socket in a folder of its own, as somebody who is not
root.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from discreet.policy.engine import EngineChoice

_NOBODY = "nobody"
# A database in a language: it orders texts where nothing says otherwise, 'a' before 'B'.
_IN_ENGLISH = "TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"
_SINCE = 150000  # a database may be in a language of ICU's


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: its connection string for the superuser, and how to stop and start it."""

    address: str
    folder: Path
    control: Callable[..., None]

    def crash(self) -> None:
        """Stop as if the power went."""
        self.control("-m", "immediate", "stop")

    def start(self) -> None:
        self.control(
            "-o",
            f"-c listen_addresses='' -k {self.folder}",
            "-l",
            str(self.folder / "log"),
            "-w",
            "start",
        )

    def database(self, *, reader: str = "discreet_reader", kind: str = _IN_ENGLISH) -> EngineChoice:
        """A new database of one curator, with the rights that docs/deploy.md grants."""
        import psycopg

        name = f"town_{next(_NUMBERS)}"
        with psycopg.connect(self.address, autocommit=True) as connection:
            roles = {
                row[0] for row in connection.execute("SELECT rolname FROM pg_roles").fetchall()
            }
            for role in {"curator", reader} - roles:
                connection.execute(f"CREATE ROLE {role} LOGIN")
            if connection.info.server_version < _SINCE:
                kind = ""
            connection.execute(f"CREATE DATABASE {name} OWNER curator {kind}")
            connection.execute(f"REVOKE TEMPORARY ON DATABASE {name} FROM PUBLIC")
        place = f"@/{name}?host={self.folder}"
        return EngineChoice(
            name="postgres",
            at=f"postgresql://curator{place}",
            reader=f"postgresql://{reader}{place}",
        )


_NUMBERS = itertools.count(1)


def programs() -> Path | None:
    """The folder of initdb and pg_ctl: Debian keeps them off the path."""
    found = [*sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)]
    on_path = shutil.which("initdb")
    return found[0].parent if found else Path(on_path).parent if on_path else None


@contextmanager
def server(options: str = "-c fsync=off") -> Iterator[Server]:
    """A running server; without fsync unless a test is about what is on the disk."""
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
            command,
            check=True,
            cwd=folder,
            user=user,
            timeout=120,
            stdout=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )

    data = str(folder / "data")
    run(
        str(where / "initdb"),
        "-D",
        data,
        "-U",
        "postgres",
        "-A",
        "trust",
        "--locale=C.UTF-8",
        "-E",
        "UTF8",
        "-N",
    )

    def control(*arguments: str) -> None:
        run(str(where / "pg_ctl"), "-D", data, "-t", "100", *arguments)

    socket = f"-c listen_addresses='' -k {folder} {options}"
    try:
        control("-o", socket, "-l", str(folder / "log"), "-w", "start")
        yield Server(f"host={folder} user=postgres", folder, control)
    finally:
        subprocess.run(
            [str(where / "pg_ctl"), "-D", data, "-m", "immediate", "stop"],
            user=user,
            cwd=folder,
            timeout=60,
            stdout=subprocess.DEVNULL,
        )
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgres() -> Iterator[str]:
    """A running server's connection string, for the superuser `postgres`."""
    with server() as running:
        yield running.address
