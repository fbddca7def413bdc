"""PySpark, and the packages of its connectors; no Spark is started."""

from __future__ import annotations

import os
import re
import socket
from importlib import metadata
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from cli.doctor.finding import ok, problem, skipped, warning
from worker.sinks.lake_jars import JARS, LAKES, PACKAGES, listed, without_jar
from worker.spark.packages import NO_JAR, SPARK_GROUP, jar_fault, jars_at, package_fault, platform_here

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cli.doctor.finding import Finding, Settings
from worker.spark.packages import PackageFault, Platform

OLDEST: Final = (4, 1)
NEWER: Final = (4, 4)
"""The first version that is too new, as in pyproject.toml."""
CONNECT_S: Final = 5.0
"""How long a Spark server may take to accept a connection, in seconds."""
CONNECT_PORT: Final = 15002
OF_CONNECT: Final = ("grpc", "grpc_status", "pandas", "pyarrow", "zstandard")
"""What PySpark's client of Spark Connect imports besides."""


def spark(settings: Settings) -> Finding:
    """PySpark is there in a version that works, and so is the server, if there is one."""
    extra = "spark" if settings.spark_remote is None else "connect"
    install = f"pip install 'sparkherd[{extra}]'"
    version = _installed()
    if version is None or not OLDEST <= _short(version) < NEWER:
        return problem(f"PySpark {version or 'is not installed'}; 4.1 to 4.3 are known to work", install)
    if settings.spark_remote is not None:
        missing = [name for name in OF_CONNECT if find_spec(name) is None]
        if missing:
            return problem(f"PySpark {version} without {', '.join(missing)}", install)
        return _server(f"PySpark {version}", settings.spark_remote, CONNECT_PORT)
    return _classic(settings, version)


def _classic(settings: Settings, version: str) -> Finding:
    """For a JVM of the worker's own."""
    if home := os.environ.get("SPARK_HOME"):
        return warning(f"PySpark {version}, with the Spark of SPARK_HOME={home}", "unset SPARK_HOME")
    master = settings.spark_master or "local[2]"
    if master.startswith("spark://"):
        return _server(f"PySpark {version}", master.partition(",")[0], 7077)
    return ok(f"PySpark {version}, {master}")


def _server(version: str, url: str, default_port: int) -> Finding:
    """Whether somebody listens at `url`; it may carry a token after its host and port."""
    place = urlsplit(url)
    try:
        host, port = place.hostname or "", place.port or default_port
    except ValueError:
        return problem(f"{version}; {place.scheme}://{place.hostname}: its port is no number", "correct it")
    try:
        socket.create_connection((host, port), CONNECT_S).close()
    except OSError as error:
        why = "no answer in time" if isinstance(error, TimeoutError) else error.strerror or str(error)
        found = f"{version}; {place.scheme}://{host}:{port}: {why.lower()}"
        return problem(found, "start it, or name another")
    return ok(f"{version}, {place.scheme}://{host}:{port} accepts connections")


def connectors(settings: Settings) -> Finding:
    """Whether the packages that Spark is told to load are for this Spark, and its jars are there."""
    if settings.spark_remote is not None:
        ours = ", ".join(str(lake.jar) for lake in LAKES if lake.jar.is_file())
        return skipped(f"the Spark Connect server has its own; for Delta and Iceberg: {ours or 'make jars'}")
    platform = platform_here()
    if platform is None:
        return skipped("PySpark is not installed")
    for what, fault in _faults(settings, platform):
        return problem(f"{what} {fault.found}", fault.to_do)
    given = [*settings.packages, *_listed(settings, PACKAGES), *settings.jars, *_listed(settings, JARS)]
    if lacking := [lake.jar.name for lake in without_jar(_loaded(settings))]:
        found = f"{', '.join(given)}, without {', '.join(lacking)}, which the fenced sink needs"
        return warning(found, "take sparkherd's wheel, or run make jars in the checkout")
    if given:
        return ok(", ".join(given))
    example = f"--packages {SPARK_GROUP}:spark-sql-kafka-0-10_{platform.scala}:{platform.spark}"
    return ok(f"Spark's own only; Kafka, for one, needs {example}")


def _loaded(settings: Settings) -> dict[str, str]:
    """As Spark is told it."""
    jars = [*map(str, chain.from_iterable(map(jars_at, settings.jars))), *_listed(settings, JARS)]
    return {PACKAGES: ",".join((*settings.packages, *_listed(settings, PACKAGES))), JARS: ",".join(jars)}


def _faults(settings: Settings, platform: Platform) -> Iterator[tuple[str, PackageFault]]:
    """What cannot work here, and why."""
    for package in (*settings.packages, *_listed(settings, PACKAGES)):
        if fault := package_fault(package, platform):
            yield package, fault
    for path in settings.jars:
        if not jars_at(path):
            yield path, NO_JAR
    for jar in (*chain.from_iterable(map(jars_at, settings.jars)), *_files(_listed(settings, JARS))):
        if fault := jar_fault(jar, platform):
            yield str(jar), fault


def _files(named: Iterable[str]) -> Iterator[Path]:
    """Of Spark's own setting; what is at a URL, in a folder or behind a pattern only Spark can tell."""
    paths = [Path(path) for each in named if not {":", "*"} & set(path := each.removeprefix("file:"))]
    return (path for path in paths if not path.is_dir())


def _listed(settings: Settings, name: str) -> list[str]:
    return listed(settings.spark_conf, name)


def _installed() -> str | None:
    try:
        return metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return None


def _short(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])
