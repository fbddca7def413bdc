"""PySpark, and the packages of its connectors; no Spark is started."""

from __future__ import annotations

import os
import re
import socket
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from cli.doctor.finding import ok, problem, skipped, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli.doctor.finding import Finding, Settings

OLDEST: Final = (4, 1)
NEWER: Final = (4, 4)
"""The first version that is too new, as in pyproject.toml."""
CONNECT_S: Final = 5.0
"""How long a Spark server may take to accept a connection, in seconds."""
CONNECT_PORT: Final = 15002
OF_CONNECT: Final = ("grpc", "grpc_status", "pandas", "pyarrow", "zstandard")
"""What PySpark's client of Spark Connect imports besides."""
PACKAGES: Final = "spark.jars.packages"
SCALA: Final = "_2.13"

_MADE_FOR = re.compile(r"_(\d+\.\d+)_2\.13\Z")
"""Delta and Iceberg name the Spark they are for: `delta-spark_4.1_2.13`."""


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
        return skipped("the Spark Connect server has its own")
    version = _installed()
    if version is None:
        return skipped("PySpark is not installed")
    packages, jars = (_listed(settings, name) for name in (PACKAGES, "spark.jars"))
    for fault, to_do in [*_faults(packages, version), *_missing(jars)]:
        return problem(fault, to_do)
    if packages or jars:
        return ok(", ".join(packages + jars))
    example = f"--spark-conf {PACKAGES}=org.apache.spark:spark-sql-kafka-0-10{SCALA}:{version}"
    return ok(f"Spark's own only; Kafka, for one, needs {example}")


def _faults(packages: list[str], version: str) -> Iterator[tuple[str, str]]:
    """What is wrong with each of the Maven coordinates, and what to write instead."""
    hadoop = _hadoop()
    for package in packages:
        group, _, rest = package.partition(":")
        artifact, _, its_version = rest.partition(":")
        spark_of = _MADE_FOR.search(artifact)
        if not (group and artifact and its_version):
            yield f"{package} is not GROUP:ARTIFACT:VERSION", f"correct {PACKAGES}"
        elif re.search(r"_2\.1[0-2]\Z", artifact):
            yield f"{package} is for another Scala", f"take the artifact whose name ends in {SCALA}"
        elif group == "org.apache.spark" and its_version != version:
            yield f"{package} is not for Spark {version}", f"write {group}:{artifact}:{version}"
        elif spark_of is not None and tuple(map(int, spark_of[1].split("."))) != _short(version):
            yield f"{package} is for Spark {spark_of[1]}, not {version}", "take the artifact of this Spark"
        elif artifact == "hadoop-aws" and hadoop not in (None, its_version):
            yield f"{package} is not for Hadoop {hadoop}", f"write {group}:{artifact}:{hadoop}"


def _missing(jars: list[str]) -> Iterator[tuple[str, str]]:
    for jar in jars:
        path = jar.removeprefix("file:")
        if ":" not in path and "*" not in path and not Path(path).is_file():
            yield f"spark.jars: there is no file {path}", "correct the path; all workers need the file"


def _listed(settings: Settings, name: str) -> list[str]:
    return [each.strip() for each in settings.spark_conf.get(name, "").split(",") if each.strip()]


def _installed() -> str | None:
    try:
        return metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return None


def _short(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _hadoop() -> str | None:
    """The version of Hadoop in PySpark's jars; other parts of Hadoop have to have the same."""
    spec = find_spec("pyspark")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    jars = [jar.stem for folder in folders for jar in Path(folder, "jars").glob("hadoop-client-api-*.jar")]
    return jars[0].removeprefix("hadoop-client-api-") if jars else None
