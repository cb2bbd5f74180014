"""The wheel, in environments that hold nothing else: it installs, the demo runs, and it is small
and quick to start.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14")


def built(folder: Path) -> Path:
    """A wheel of this tree."""
    words = [
        "build",
        "-q",
        "--wheel",
        "--no-build-isolation",
        "--python",
        sys.executable,
        "--out-dir",
        str(folder),
    ]
    subprocess.run([sys.executable, "-m", "uv", *words, str(ROOT)], check=True, timeout=300)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("dist"))


def test_the_wheel_holds_the_product_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "discreet/py.typed" in names
    assert all(name.startswith(("discreet/", "discreet-")) for name in names)
    ours = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.py")}
    assert ours <= set(names)
    assert wheel.stat().st_size < 5_000_000
    metadata = (
        zipfile.ZipFile(wheel)
        .read(next(name for name in names if name.endswith("METADATA")))
        .decode()
    )
    extras = set(re.findall(r"^Provides-Extra: (.+)$", metadata, re.MULTILINE))
    assert {"attacks", "excel", "postgres"} <= extras


def test_a_bill_of_materials_and_checksums(wheel: Path, tmp_path: Path) -> None:
    shutil.copy(wheel, tmp_path)
    key = tmp_path / "key"
    words = [sys.executable, str(ROOT / "packaging" / "dist.py"), str(tmp_path)]
    if shutil.which("ssh-keygen"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True, timeout=60
        )
        words.append(str(key))
    subprocess.run(words, check=True, capture_output=True, timeout=60)
    listed = dict(
        line.split("  ")[::-1] for line in (tmp_path / "SHA256SUMS").read_text().splitlines()
    )
    assert set(listed) == {wheel.name, "discreet-0.1.0.cdx.json"}
    for name, digest in listed.items():
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == digest
    bill = json.loads((tmp_path / "discreet-0.1.0.cdx.json").read_text())
    assert bill["metadata"]["component"]["hashes"][0]["content"] == listed[wheel.name]
    named = {each["name"]: each for each in bill["components"]}
    assert {"duckdb", "numpy", "pyarrow", "cryptography", "sqlglot", "typer"} <= set(named)
    assert all(each["properties"] for each in named.values())
    if shutil.which("ssh-keygen"):
        allowed = tmp_path / "allowed"
        allowed.write_text(f"us {key.with_suffix('.pub').read_text()}")
        verify = [
            "ssh-keygen",
            "-Y",
            "verify",
            "-f",
            str(allowed),
            "-I",
            "us",
            "-n",
            "discreet",
            "-s",
        ]
        with (tmp_path / "SHA256SUMS").open("rb") as sums:
            subprocess.run(
                [*verify, str(tmp_path / "SHA256SUMS.sig")], stdin=sums, check=True, timeout=60
            )


def _python(version: str) -> str:
    """Return a Python of this version that pyenv keeps off the path, or its name for uv to find."""
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    return str(kept[-1]) if kept else version


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_in_a_clean_environment(wheel: Path, tmp_path: Path, version: str) -> None:
    """Installs, runs the demo, answers a question; as large as docs/install.md says, and no
    larger.
    """
    uv = [sys.executable, "-m", "uv"]
    place = tmp_path / "venv"
    bare = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    words = [*uv, "venv", "-q", "--python", _python(version), str(place)]
    made = subprocess.run(words, env=bare, capture_output=True, timeout=300)
    if made.returncode:
        pytest.skip(f"there is no Python {version} here")
    python = place / "bin" / "python"
    installed = subprocess.run(
        [*uv, "pip", "install", "-q", "--compile-bytecode", "--python", str(python), str(wheel)],
        env=bare,
        capture_output=True,
        text=True,
        timeout=600,
    )
    if installed.returncode and version == VERSIONS[-1]:
        pytest.skip(f"a dependency has no wheel for Python {version}: {installed.stderr[-200:]}")
    assert installed.returncode == 0, installed.stderr
    command = str(place / "bin" / "discreet")
    for words in (
        ["--version"],
        ["demo", "town", "--people", "300"],
        [
            "ask",
            "town/town.yaml",
            "SELECT COUNT(*) FROM visits",
            "--analyst",
            "bob",
            "--epsilon",
            "0.1",
        ],
    ):
        done = subprocess.run(
            [command, *words], cwd=tmp_path, env=bare, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stdout + done.stderr
    size = sum(
        file.stat().st_size for file in place.rglob("*") if file.is_file() and not file.is_symlink()
    )
    assert size < 650e6, f"{size / 1e6:.0f} MB"  # with compiled bytecode
