"""Builds the wheel of this package, so that the tests need no build tool and no network for it (PEP 517)."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

WHEEL = "herd_rules-1.0-py3-none-any.whl"
INFO = "herd_rules-1.0.dist-info"
FILES = {
    "herd_rules.py": Path("herd_rules.py").read_text(),
    f"{INFO}/METADATA": "Metadata-Version: 2.1\nName: herd-rules\nVersion: 1.0\nRequires-Dist: sparkherd\n",
    f"{INFO}/WHEEL": "Wheel-Version: 1.0\nGenerator: backend\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    f"{INFO}/entry_points.txt": "[sparkherd.assignors]\nelders-first = herd_rules:EldersFirst\n",
}


def build_wheel(folder: str, _settings: object = None, _metadata: object = None) -> str:
    """Write the wheel into `folder`; returns its name."""
    with ZipFile(Path(folder) / WHEEL, "w") as wheel:
        for name, text in FILES.items():
            wheel.writestr(name, text)
        wheel.writestr(f"{INFO}/RECORD", "".join(f"{name},,\n" for name in [*FILES, f"{INFO}/RECORD"]))
    return WHEEL
