"""What a Spark is told besides when it loads Delta or Iceberg."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from worker.sinks import lake_jars
from worker.sinks.lake_jars import EXTENSIONS, JARS, LAKES, PACKAGES, with_lakes, without_jar

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DELTA = "io.delta:delta-spark_4.1_2.13:4.4.0"
ICEBERG = "/jars/iceberg-spark-runtime-4.1_2.13-1.12.0.jar"
STORE = "spark.delta.logStore.file.impl"
CATALOG = "spark.sql.catalog.spark_catalog"
EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A package with both jars."""
    monkeypatch.setattr(lake_jars, "__file__", str(tmp_path / "lake_jars.py"))
    for lake in LAKES:
        lake.jar.parent.mkdir()
        lake.jar.touch()
    return tmp_path


@pytest.mark.parametrize("conf", [{}, {JARS: "/delta-spark_x/kafka.jar"}, {PACKAGES: "a:delta-storage:1"}])
def test_nothing_is_said_to_a_spark_without_them(conf: Mapping[str, str]) -> None:
    """A folder's name is no jar's."""
    assert with_lakes(conf) == conf


def test_delta_alone_is_all_that_somebody_has_to_name(package: Path) -> None:
    """By its coordinate: jar, log store, extension and catalog come with it."""
    assert with_lakes({PACKAGES: DELTA}) == {
        PACKAGES: DELTA,
        JARS: f"{package}/delta/sparkherd-delta.jar",
        EXTENSIONS: EXTENSION,
        CATALOG: "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        STORE: "sparkherd.delta.LinkLogStore",
    }


def test_jars_of_both(package: Path) -> None:
    """Extensions are added to those that are there."""
    told = with_lakes({JARS: f"file:/x/delta-spark_4.1_2.13-4.4.0.jar, {ICEBERG}", EXTENSIONS: "a.B"})
    assert told[JARS].split(",")[2:] == [
        f"{package}/{name}/sparkherd-{name}.jar" for name in ("delta", "iceberg")
    ]
    assert told[EXTENSIONS] == f"{EXTENSION},a.B"


def test_what_the_user_says_stays() -> None:
    """Another log store, another catalog, a jar of their own; nothing is there twice."""
    conf = {
        PACKAGES: DELTA,
        JARS: "/mine/sparkherd-delta.jar",
        EXTENSIONS: EXTENSION,
        CATALOG: "c",
        STORE: "s",
    }
    assert with_lakes(conf) == conf


def test_a_checkout_without_jars() -> None:
    """Whose class Delta would look for in vain is not its log store."""
    assert [lake.name for lake in without_jar({PACKAGES: DELTA, JARS: ICEBERG})] == []
    for lake in LAKES:
        lake.jar.unlink()
    assert [lake.name for lake in without_jar({PACKAGES: DELTA, JARS: ICEBERG})] == ["delta", "iceberg"]
    told = with_lakes({PACKAGES: DELTA})
    assert JARS not in told
    assert STORE not in told
