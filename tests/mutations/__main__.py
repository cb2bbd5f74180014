"""cd tests && python -m mutations [NAME]: plant each bug in a copy of the source; the tests named
with it must fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .bugs import BUGS, Bug, spot

ROOT = Path(__file__).parents[2]


def planted(bug: Bug, folder: Path) -> Path:
    """A copy of the source with the bug in it."""
    source = folder / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    for file, old, new in bug.edits:
        path = source / "discreet" / file
        text = path.read_text(encoding="utf-8")
        changed = spot(old).sub(lambda _, new=new: new, text)
        if changed == text:
            raise SystemExit(
                f"{bug.name}: {file} no longer has {old!r}. Plant it anew in tests/mutations/bugs.py."
            )
        path.write_text(changed, encoding="utf-8")
    return source


def caught(bug: Bug) -> tuple[bool, str]:
    """Whether a test fails under the bug, and which."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(planted(bug, Path(folder)))}
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "-m",
            "not slow",
            *bug.tests,
        ]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
    failed = [line.split(" ")[1] for line in done.stdout.splitlines() if line.startswith("FAILED")]
    # 1 is failing tests; anything else (nothing collected, an import that broke) catches nothing.
    return done.returncode == 1 and bool(failed), failed[0] if failed else done.stdout[-300:]


def main(names: list[str]) -> int:
    missed = []
    chosen = [bug for bug in BUGS if not names or bug.name in names]
    for bug in chosen:
        began = time.monotonic()
        found, by = caught(bug)
        print(
            f"{'caught' if found else 'MISSED':7} {bug.name} ({time.monotonic() - began:.0f} s): {by}",
            flush=True,
        )
        missed += [] if found else [bug.name]
    print(f"{len(chosen) - len(missed)} of {len(chosen)} planted bugs caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
