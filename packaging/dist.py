"""Beside a wheel: a bill of materials (CycloneDX), and checksums of both, signed if a key is named.

python packaging/dist.py DIST [SSH_KEY]
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def components(requirements: str) -> list[dict[str, object]]:
    """What is installed with the product: every pinned package, with the hashes of the files that
    may be taken.
    """
    found: list[dict[str, object]] = []
    for entry in re.split(r"\n(?=[a-zA-Z])", requirements):
        match = re.match(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", entry)
        if match is None:
            continue
        name, version = match[1].lower(), match[2]
        hashes = re.findall(r"sha256:([0-9a-f]{64})", entry)
        found.append(
            {
                "type": "library",
                "name": name,
                "version": version,
                "purl": f"pkg:pypi/{name}@{version}",
                "bom-ref": f"pkg:pypi/{name}@{version}",
                "properties": [{"name": "discreet:sha256", "value": each} for each in hashes],
            }
        )
    return found


def bill(wheel: Path) -> dict[str, object]:
    """The bill of materials of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        text = archive.read(metadata).decode()
    version = re.search(r"^Version: (.+)$", text, re.MULTILINE)
    assert version is not None
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    product = {
        "type": "application",
        "name": "discreet",
        "version": version[1],
        "purl": f"pkg:pypi/discreet@{version[1]}",
        "hashes": [{"alg": "SHA-256", "content": digest}],
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }
    requirements = (ROOT / "requirements" / "run.txt").read_text(encoding="utf-8")
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": product},
        "components": components(requirements),
    }


def main(folder: Path, key: str | None) -> None:
    (wheel,) = folder.glob("*.whl")
    sbom = folder / f"{wheel.name.split('-py3')[0]}.cdx.json"
    sbom.write_text(json.dumps(bill(wheel), indent=1) + "\n", encoding="utf-8")
    files = sorted(file for file in folder.iterdir() if file.suffix in (".whl", ".json", ".gz"))
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in files]
    sums = folder / "SHA256SUMS"
    sums.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(sums.read_text(), end="")
    if key:
        subprocess.run(
            ["ssh-keygen", "-q", "-Y", "sign", "-n", "discreet", "-f", key, str(sums)], check=True
        )
        print(f"Signed: {sums}.sig")
    else:
        print("Not signed: name a key, as in `make dist KEY=~/.ssh/id_ed25519`.")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
