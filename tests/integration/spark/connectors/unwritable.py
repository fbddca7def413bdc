"""Folders that nobody may write to, not even root, as whom tests may run."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def unwritable(*folders: Path) -> Iterator[None]:
    """Nothing can be made in them, or removed, within the block."""
    if os.geteuid() != 0:
        with _modes(folders):
            yield
        return
    subprocess.run(["chattr", "+i", *folders], check=True)
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", *folders], check=True)


@contextmanager
def _modes(folders: tuple[Path, ...]) -> Iterator[None]:
    before = [folder.stat().st_mode for folder in folders]
    for folder in folders:
        folder.chmod(0o500)
    try:
        yield
    finally:
        for folder, mode in zip(folders, before, strict=True):
            folder.chmod(mode)
