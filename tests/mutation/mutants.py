"""The lists of mutants, and a copy of the tree to break them in."""

from __future__ import annotations

import compileall
import os
import py_compile
import re
import resource
import shutil
import subprocess
import sys
import tomllib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.mutation.reach import OPTIONS, Reach

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ROOT = Path(__file__).parents[2]
COPIED = (
    "protocol",
    "definition",
    "configuration",
    "assignors",
    "manager",
    "worker",
    "tests",
    "pyproject.toml",
)
SPINS = 4
"""Tests that use so many times what they use of a processor while nothing is broken spin, and have failed."""
LEAST_S = 60
TIMEOUT_S = 3600
_PLUGINS = ("pytest_asyncio.plugin", "pytest_timeout", "pytest_cov.plugin", "_hypothesis_pytestplugin")
"""Those that the suites need; others are imported for seconds, such as that of schemathesis."""
_OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", *(word for name in _PLUGINS for word in ("-p", name)))
_NO_VERDICT = {pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED}
"""Nothing has failed then, and nothing has passed."""
_TOLD = 2000
"""Characters of what the tests have printed."""
_FAILED = re.compile(r"^(?:FAILED|ERROR) ([^\s:]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One rule, where it stands, and what stands there when it is broken."""

    rule: str
    file: str
    code: str
    broken: str

    @property
    def whole(self) -> str:
        """The file with nothing broken."""
        return (ROOT / self.file).read_text()

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


def _compile_all(folder: Path) -> None:
    """Once and not in every run; by their hash, so that a broken module is never taken for the whole one."""
    mode = py_compile.PycInvalidationMode.CHECKED_HASH
    compileall.compile_dir(str(folder), quiet=2, invalidation_mode=mode)


class Sandbox:
    """A copy of the tree that may be broken; the tests in it import the copy."""

    def __init__(self, folder: Path, processor_s: int | None = None) -> None:
        """`folder` holds the copy; tests there may use so many seconds of a processor, None: any."""
        self._folder = folder
        self._processor_s = processor_s

    @classmethod
    def of(cls, root: Path, folder: Path) -> Sandbox:
        """A new copy of the tree at `root`."""
        folder.mkdir()
        for name in COPIED:
            source = root / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, folder / name)
        _compile_all(folder)
        return cls(folder)

    def twin(self, folder: Path) -> Sandbox:
        """Another one like it, with what is compiled."""
        shutil.copytree(self._folder, folder)
        return Sandbox(folder, self._processor_s)

    def run_whole(self, files: Sequence[str]) -> Verdict:
        """Run these tests while nothing is broken; later runs may use a few times as much of a processor."""
        before = _used_s()
        verdict = self.run([*OPTIONS, *files], writing=True)
        self._processor_s = max(self._processor_s or LEAST_S, SPINS * round(_used_s() - before))
        return verdict

    def reach(self) -> Reach:
        """Which tests came to which lines when they were run whole last."""
        return Reach.read(self._folder / ".coverage", self._folder.resolve())

    def files(self, places: Iterable[str]) -> list[str]:
        """The test files in the copy that are at or below these places."""
        found = [self._folder / place for place in places]
        tests = [path for place in found for path in (sorted(place.rglob("test_*.py")) or [place])]
        return [str(path.relative_to(self._folder)) for path in tests]

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

    def run(self, tests: Sequence[str], *, writing: bool = False) -> Verdict:
        """Run these tests in the copy, files or single ones, up to the first that fails; what hangs failed.

        With `writing`, compiled tests are kept for the runs that follow; only while nothing is broken.
        """
        command = [sys.executable, *([] if writing else ["-B"]), "-m", "pytest", *_OPTIONS, *tests]
        try:
            done = subprocess.run(
                command,
                cwd=self._folder,
                env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
                preexec_fn=self._limit,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Verdict(passed=False, told=f"nothing for {TIMEOUT_S} s")
        if done.returncode in _NO_VERDICT:
            raise RuntimeError(f"pytest ran no tests: {done.stdout[-500:]}{done.stderr[-500:]}")
        told = _FAILED.search(done.stdout)
        said = done.stdout[-_TOLD:] or f"exit code {done.returncode}"
        return Verdict(passed=done.returncode == 0, failed=told[1] if told else None, told=said)

    def _limit(self) -> None:
        """In the process of the tests."""
        if self._processor_s is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (self._processor_s, self._processor_s))


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether all tests passed, the file of the first that failed, and the end of what was printed."""

    passed: bool
    failed: str | None = None
    told: str = ""


def _used_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
