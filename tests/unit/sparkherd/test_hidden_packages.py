"""A package of the user's that hides one of ours is told of in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from sparkherd.__main__ import MISCONFIGURED
from sparkherd.packages import PACKAGES, hidden_package
from tests.unit.docs.pages import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def test_ours_are_found_where_they_belong() -> None:
    """Every package beside `sparkherd` is looked at."""
    assert hidden_package() is None
    assert {path.parent.name for path in ROOT.glob("*/py.typed")} == {*PACKAGES, "sparkherd"}


@pytest.mark.parametrize("name", PACKAGES)
def test_a_folder_or_a_module_that_comes_first_hides_ours(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of ours it is."""
    (tmp_path / f"{name}.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, name, raising=False)
    assert (hidden_package() or "").startswith(f"{tmp_path / name}.py hides the package {name} of sparkherd")


def test_a_package_that_is_nowhere_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation that lost a part of itself says which."""
    monkeypatch.setattr("sparkherd.packages.find_spec", lambda _name: None)
    assert (hidden_package() or "").startswith("its package assignors is missing")


@pytest.mark.parametrize("name", ["cli", "protocol"])
def test_the_command_says_so_in_one_line(name: str, tmp_path: Path) -> None:
    """With exit code 2 and no traceback, even for what it would load first."""
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("raise RuntimeError('not ours')")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    command = [sys.executable, "-m", "sparkherd", "--version"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (MISCONFIGURED, "")
    assert done.stderr.count("\n") == 1
    assert f"{tmp_path / name} hides the package {name} of sparkherd ({ROOT / name})" in done.stderr


def test_an_import_says_so_too(tmp_path: Path) -> None:
    """A program that lies beside a `worker.py` of its own learns why `sparkherd` has no context for it."""
    (tmp_path / "worker.py").touch()
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    command = [sys.executable, "-c", "from sparkherd import TaskContext"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"ImportError: {tmp_path / 'worker.py'} hides the package worker of sparkherd" in done.stderr


def test_otherwise_it_is_the_command() -> None:
    """`python -m sparkherd` is `sparkherd`."""
    command = [sys.executable, "-m", "sparkherd", "--version"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("sparkherd")
