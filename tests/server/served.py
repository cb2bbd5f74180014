"""`discreet serve` as a process of its own, to be stopped and killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


class Served:
    """A server process; its port is read from what it prints."""

    def __init__(self, policy: Path, *options: str) -> None:
        command = [
            sys.executable,
            "-m",
            "discreet",
            "serve",
            str(policy),
            "--postgres",
            ":0",
            *options,
        ]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.process.stdout is not None
        found = None
        for line in self.process.stdout:
            found = re.search(r"port=(\d+)", line)
            if found:
                break
        assert found, "the server did not start"
        self.port = int(found[1])

    def processor_seconds(self) -> float:
        """Return the processor time that the server has used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._close()

    def stop(self) -> int:
        """Ask it to stop; its exit code."""
        self.process.terminate()
        code = self.process.wait(60)
        self._close()
        return code

    def _close(self) -> None:
        if self.process.stdout is not None:
            self.process.stdout.close()


def numbers(rows: Sequence[tuple[bytes | None, ...]]) -> list[int]:
    return [int(value or b"0") for row in rows for value in row]
