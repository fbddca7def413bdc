"""Maven packages and jars for Spark: whether they can work with the one that is here; needs no PySpark.

Spark itself finds out late: of what is missing in a hundred lines and as a JVM that is gone, of classes for
another Scala or another Spark when a task first uses them.
"""

from __future__ import annotations

import re
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

SPARK_GROUP: Final = "org.apache.spark"
_ARTIFACT: Final = re.compile(
    r"(?P<base>.+?)(?:[-_](?P<spark>[34]\.\d+))?_(?P<scala>2\.1\d|3)(?:-(?P<version>\d[\w.-]*))?\Z"
)
"""What is made for Scala has the Scala in its name, and often the Spark: `delta-spark_4.1_2.13`."""
_UNRESOLVED: Final = re.compile(
    r"::\s+(?P<group>[^#\s]+)#(?P<artifact>[^;\s]+);(?P<version>[^:\s]+): not found"
)
_WITHOUT_JAR: Final = re.compile(
    r"download failed: (?P<group>[^#\s]+)#(?P<artifact>[^;\s]+);(?P<version>[^!\s]+)!"
)
_UNREACHABLE: Final = "Server access error at url"
_NO_DOWNLOAD: Final = (
    "the repository that describes it has no jar of it; if that is Maven's own on this machine"
    " (~/.m2/repository), remove its folder there"
)


class Platform(NamedTuple):
    """What a jar has to be made for; Hadoop's version is None if PySpark came without it."""

    spark: str
    scala: str
    hadoop: str | None


class PackageFault(NamedTuple):
    """Why a package cannot work here, and what to do about it."""

    found: str
    to_do: str


NO_JAR: Final = PackageFault("is a folder without any jar", "correct the path")


def platform_here() -> Platform | None:
    """That of the jars that PySpark brought; None without PySpark."""
    spec = find_spec("pyspark")
    names = [
        jar.stem
        for folder in (spec.submodule_search_locations or () if spec else ())
        for jar in Path(folder, "jars").glob("*.jar")
    ]
    core = next((match for name in names if (match := re.match(r"spark-core_([\d.]+)-(.+)", name))), None)
    hadoop = next((match[1] for name in names if (match := re.match(r"hadoop-client-api-(.+)", name))), None)
    return None if core is None else Platform(spark=core[2], scala=core[1], hadoop=hadoop)


def package_fault(coordinate: str, platform: Platform) -> PackageFault | None:
    """What is wrong with the Maven coordinate GROUP:ARTIFACT:VERSION, as far as it says."""
    group, _, rest = coordinate.partition(":")
    artifact, _, version = rest.partition(":")
    if not (group and artifact and version) or ":" in version:
        return PackageFault("is not GROUP:ARTIFACT:VERSION", "correct it")
    if artifact == "hadoop-aws" and platform.hadoop not in (None, version):
        return PackageFault(
            f"is not for Hadoop {platform.hadoop}", f"take {group}:{artifact}:{platform.hadoop}"
        )
    return _artifact_fault(artifact, version if group == SPARK_GROUP else None, platform)


def jars_at(path: str) -> list[Path]:
    """The jar at `path`, whether it is there or not; of a folder all that are in it, at any depth."""
    place = Path(path).absolute()
    return sorted(place.rglob("*.jar")) if place.is_dir() else [place]


def jar_fault(jar: Path, platform: Platform) -> PackageFault | None:
    """What is wrong with a jar, which has to be there."""
    if not jar.is_file():
        return PackageFault("is not there", "correct the path; all workers need the file")
    if not zipfile.is_zipfile(jar):
        return PackageFault("is no jar", "correct the path")
    named = _ARTIFACT.match(jar.stem)
    is_sparks = named is not None and named["base"].startswith("spark-")
    return _artifact_fault(jar.stem, named["version"] if named and is_sparks else None, platform)


def _artifact_fault(artifact: str, spark: str | None, platform: Platform) -> PackageFault | None:
    """By the name of an artifact; `spark` is the version that it is of, if it is of Spark's own."""
    named = _ARTIFACT.match(artifact)
    if named is None:
        return None
    if named["scala"] != platform.scala:
        found = (
            f"is for Scala {named['scala']}, and Spark {platform.spark} here runs on Scala {platform.scala}"
        )
        return PackageFault(found, f"take the one whose name ends in _{platform.scala}")
    made_for = spark or named["spark"]
    if made_for is not None and _line(made_for) != _line(platform.spark):
        to_do = f"take its version {platform.spark}" if spark else "take the artifact of this Spark"
        return PackageFault(f"is for Spark {made_for}, and here is Spark {platform.spark}", to_do)
    return None


def _line(version: str) -> list[str]:
    """4.1 of 4.1.4: patches of one line work with each other."""
    return version.split(".")[:2]


def unresolved(lines: Iterable[str]) -> str | None:
    """Which packages could not be had, from what a JVM said before it ended; None if that was not why."""
    said = list(lines)
    if missing := _coordinates(_UNRESOLVED, said):
        if any(_UNREACHABLE in line for line in said):
            why = "is nowhere to be had, and a repository could not be reached; see --repositories and --jars"
        else:
            why = "is in no repository; correct it, or name one that has it with --repositories"
        return f"--packages {missing}: {why}"
    if described := _coordinates(_WITHOUT_JAR, said):
        return f"--packages need {described}: {_NO_DOWNLOAD}"
    return None


def _coordinates(pattern: re.Pattern[str], lines: Iterable[str]) -> str:
    found = (match for line in lines for match in pattern.finditer(line))
    return ", ".join(dict.fromkeys(f"{each['group']}:{each['artifact']}:{each['version']}" for each in found))
