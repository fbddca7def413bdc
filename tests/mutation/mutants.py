"""The lists of mutants, and a copy of the tree to break them in."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
COPIED = ("protocol", "assignors", "manager", "worker", "tests", "pyproject.toml")
TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class Mutant:
    """One rule, where it stands, and what stands there when it is broken."""

    rule: str
    file: str
    code: str
    broken: str

    def applied_to(self, text: str) -> str:
        """`text` with the rule broken.

        Raises:
            ValueError: the code is not there exactly once; the list has to follow the code.
        """
        if text.count(self.code) != 1:
            raise ValueError(f"{self.file} does not have this exactly once: {self.code!r}")
        return text.replace(self.code, self.broken)


LISTS = ("rules", "fine_print")


def read_mutants(name: str) -> tuple[Mutant, ...]:
    """A list beside this file."""
    listed = tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text())
    return tuple(Mutant(**entry) for entry in listed["mutant"])


class Sandbox:
    """A copy of the tree that may be broken; the tests in it import the copy."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)
        for name in COPIED:
            source = root / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, folder / name)

    @contextmanager
    def broken(self, mutant: Mutant) -> Iterator[None]:
        """For a while, the copy has this rule broken."""
        path = self._folder / mutant.file
        whole = path.read_text()
        path.write_text(mutant.applied_to(whole))
        try:
            yield
        finally:
            path.write_text(whole)

    def passes(self, suite: tuple[str, ...]) -> bool:
        """Whether these tests pass in the copy; one that hangs does not."""
        command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *suite]
        try:
            done = subprocess.run(
                command, cwd=self._folder, capture_output=True, timeout=TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0
