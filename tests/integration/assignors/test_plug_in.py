from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from assignors.base import Member, Task
from assignors.checked import validate
from assignors.registry import available, load_assignor

PACKAGE = Path(__file__).parents[2] / "plugins" / "herd-rules"
ELSEWHERE = """
import json
from assignors.registry import available, load_assignor
from assignors.base import Member, Task
assignor = load_assignor({spec!r})
members = [Member("a"), Member("b", capacity=2.0), Member("c")]
assignment = assignor.assign(members, [Task(f"t{{at}}") for at in range(8)], {{}})
print(json.dumps([assignor.name, available().get("elders-first"), assignment]))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package of somebody else, built and installed by pip; nothing is fetched for it."""
    folder = tmp_path_factory.mktemp("plug-in")
    source = shutil.copytree(PACKAGE, folder / "source")
    offline = ["--no-deps", "--no-index", "--disable-pip-version-check"]
    target = ["--target", str(folder / "site"), str(source)]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *offline, *target], check=True, capture_output=True
    )
    return folder / "site"


@pytest.mark.parametrize("spec", ["elders-first", "herd_rules:EldersFirst"])
def test_another_process_finds_an_installed_plug_in(site: Path, spec: str) -> None:
    """By the entry point that pip has written, and by where the class is."""
    environment = {"PYTHONPATH": f"{site}:{Path.cwd()}"}
    command = [sys.executable, "-c", ELSEWHERE.format(spec=spec)]
    told = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    filled = {"a": ["t0", "t1", "t2"], "b": ["t3", "t4", "t5", "t6", "t7"], "c": []}
    assert json.loads(told) == ["elders-first", "herd_rules:EldersFirst", filled]


def test_it_keeps_the_rules_of_every_assignor(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins and labels come from `Eligibility`, which is there for plug-ins too."""
    monkeypatch.syspath_prepend(site)
    assert available()["elders-first"] == "herd_rules:EldersFirst"
    members = [Member("a"), Member("b", labels={"gpu": "yes"})]
    tasks = [Task("t0"), Task("t1", labels={"gpu": "yes"}), Task("t2", worker="b")]
    assignment = load_assignor("elders-first").assign(members, tasks, {})
    assert validate(assignment, members, tasks) == ()
    assert assignment == {"a": ["t0"], "b": ["t1", "t2"]}


def test_without_its_package_it_is_unknown() -> None:
    """So what the other tests find is the package, and not this repository."""
    assert "elders-first" not in available()
