"""What a JVM is given of Maven packages and jars, looked at before it is started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from worker.query_engine import QueryError
from worker.sinks.lake_jars import JARS, PACKAGES, listed
from worker.spark.packages import NO_JAR, PackageFault, jar_fault, jars_at, package_fault, platform_here
from worker.spark.reading.json_objects import JAR

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

REPOSITORIES: Final = "spark.jars.repositories"


def with_jars(
    conf: Mapping[str, str], *, packages: Sequence[str], jars: Sequence[str], repositories: Sequence[str]
) -> dict[str, str]:
    """Spark's settings with packages and jars added to those that `conf` names itself.

    Args:
        conf: Spark's settings; what they name is Spark's business.
        packages: Maven coordinates.
        jars: paths of jars, or of folders that have some, at any depth.
        repositories: URLs of Maven repositories besides Maven Central.

    Raises:
        QueryError: one cannot be of use here; names the setting and what to do.
    """
    platform = platform_here()
    files = [file for path in jars for file in _files(path)]
    if platform is not None:
        for coordinate in packages:
            _require_none(f"--packages {coordinate}", package_fault(coordinate, platform))
        for file in files:
            _require_none(f"--jars {file}", jar_fault(file, platform))
    added = {PACKAGES: packages, JARS: [str(file) for file in files], REPOSITORIES: repositories}
    return {**conf, **{key: _joined(conf.get(key, ""), more) for key, more in added.items() if more}}


def with_readers(conf: Mapping[str, str]) -> dict[str, str]:
    """Spark's settings with our jar that reads JSON, if it is there and none of its name is among theirs."""
    named = listed(conf, JARS)
    if not JAR.is_file() or any(each.rpartition("/")[2] == JAR.name for each in named):
        return dict(conf)
    return {**conf, JARS: ",".join([*named, str(JAR)])}


def _require_none(what: str, fault: PackageFault | None) -> None:
    if fault is not None:
        raise QueryError(f"{what}: {fault.found}: {fault.to_do}")


def _joined(given: str, more: Iterable[str]) -> str:
    return ",".join([*filter(None, given.split(",")), *more])


def _files(path: str) -> list[Path]:
    files = jars_at(path)
    _require_none(f"--jars {path}", None if files else NO_JAR)
    return files
