"""`make jars`: whoever finds the folder finds all of it, whatever Maven came to."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
JAVA = """echo 'openjdk version "17.0.1"' >&2"""
MAVEN = """
for given in "$@"; do case $given in -Dfolder=*|-DoutputDirectory=*) folder=${given#*=};; esac; done
mkdir -p "$folder/of"
echo "$VERSION" > "$folder/of/a.jar"
[ ! -e "fails-on-$(basename "$folder")" ]
"""
"""Copies a jar to where it is told, and then fails if it is to."""

COMPILE = """echo "$VERSION" > "$2"; [ ! -e fails-on-compile ]"""
"""Makes a jar of our own."""
OWN = (
    "worker/sinks/delta/sparkherd-delta.jar",
    "worker/sinks/iceberg/sparkherd-iceberg.jar",
    "worker/spark/reading/sparkherd-json.jar",
)
ALL = (
    "iceberg-rest/of/a.jar",
    "kafka/of/a.jar",
    "spark/of/a.jar",
    "spark/s3/of/a.jar",
    "sparkherd-delta.jar",
    "sparkherd-iceberg.jar",
    "sparkherd-json.jar",
    *OWN,
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a Maven and a Java of the test's."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for folder in (
        "connectors",
        "connectors/s3",
        "tests/kafka",
        "tests/iceberg_rest",
        *(str(Path(own).parent) for own in OWN),
    ):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "pom.xml").touch()
    (tmp_path / "bin").mkdir()
    for place, script in (("bin/java", JAVA), ("bin/mvn", MAVEN), ("connectors/compile", COMPILE)):
        program = tmp_path / place
        program.write_text(f"#!/bin/bash\n{script}")
        program.chmod(0o755)
    return tmp_path


def make_jars(checkout: Path, version: str) -> int:
    """What `make jars` ends with."""
    environ = {name: value for name, value in os.environ.items() if name not in {"JAVA_HOME", "MAKEFLAGS"}}
    path = f"{checkout / 'bin'}:{environ['PATH']}"
    command = ["make", "--no-print-directory", "jars"]
    environ |= {"PATH": path, "VERSION": version}
    return subprocess.run(command, cwd=checkout, env=environ, check=False).returncode


def found(checkout: Path) -> dict[str, str]:
    """The jars that are there, and which version of them; our own are in the package, too."""
    return {
        str(jar.relative_to(folder)): jar.read_text().strip()
        for folder in (checkout / "jars", checkout)
        for jar in sorted(folder.rglob("*.jar"))
        if folder.name == "jars" or "jars" not in jar.relative_to(folder).parts[0]
    }


@pytest.mark.parametrize("failing", ["spark", "s3", "compile", "kafka", "iceberg-rest"])
def test_a_copy_that_fails_half_way_leaves_nothing_and_is_made_again(checkout: Path, failing: str) -> None:
    """Not the half of it, which a worker would take for all there is."""
    (checkout / f"fails-on-{failing}").touch()
    assert make_jars(checkout, "1") != 0
    assert not (checkout / "jars").exists()
    (checkout / f"fails-on-{failing}").unlink()
    assert make_jars(checkout, "1") == 0
    assert found(checkout) == dict.fromkeys(ALL, "1")


@pytest.mark.parametrize("failing", ["spark", "s3", "compile", "kafka", "iceberg-rest"])
def test_what_is_there_stays_until_the_next_is_whole(checkout: Path, failing: str) -> None:
    """Then nothing of before is left; and what is up to date is not copied again."""
    assert make_jars(checkout, "1") == 0
    os.utime(checkout / "jars" / ".copied", (0, 0))
    (checkout / f"fails-on-{failing}").touch()
    assert make_jars(checkout, "2") != 0
    assert found(checkout) == dict.fromkeys(ALL, "1")
    (checkout / f"fails-on-{failing}").unlink()
    for version in ("3", "4"):
        assert make_jars(checkout, version) == 0
    assert found(checkout) == dict.fromkeys(ALL, "3")
    assert not (checkout / "jars.new").exists()
