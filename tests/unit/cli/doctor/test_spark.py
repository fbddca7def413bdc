"""PySpark and its packages, told by versions and names."""

from __future__ import annotations

import socket
import zipfile
from typing import TYPE_CHECKING

import pytest

from cli.doctor import spark
from cli.doctor.finding import Settings, Status
from worker.sinks import lake_jars
from worker.sinks.lake_jars import JARS, PACKAGES
from worker.spark.packages import Platform

if TYPE_CHECKING:
    from pathlib import Path

    from cli.doctor.finding import Finding


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark 4.1.4 with the Hadoop it has."""
    monkeypatch.setattr(spark, "_installed", lambda: "4.1.4")
    monkeypatch.setattr(spark, "platform_here", lambda: Platform("4.1.4", "2.13", "3.4.2"))
    monkeypatch.delenv("SPARK_HOME", raising=False)


@pytest.mark.parametrize(
    ("version", "status"),
    [
        ("4.1.4", Status.OK),
        ("4.3.0", Status.OK),
        ("4.4.0.dev1", Status.PROBLEM),
        ("3.5.1", Status.PROBLEM),
        (None, Status.PROBLEM),
    ],
)
def test_which_pyspark_will_do(monkeypatch: pytest.MonkeyPatch, version: str | None, status: Status) -> None:
    """The versions that pyproject.toml allows."""
    monkeypatch.setattr(spark, "_installed", lambda: version)
    finding = spark.spark(Settings())
    assert finding.status is status
    assert ("pip install 'sparkherd[spark]'" in finding.to_do) is (status is Status.PROBLEM)


def test_the_spark_of_spark_home_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark starts that one's jars, whatever their version is."""
    monkeypatch.setenv("SPARK_HOME", "/opt/spark-3")
    finding = spark.spark(Settings())
    assert (finding.status, finding.to_do) == (Status.WARNING, "unset SPARK_HOME")


@pytest.mark.parametrize("setting", ["spark_remote", "spark_master"])
def test_a_server_has_to_accept_connections(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    """Its token is not shown."""
    monkeypatch.setattr(spark, "OF_CONNECT", ())
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{server.getsockname()[1]}"
        settings = (
            Settings(spark_remote=f"sc://{place}/;token=geheim")
            if setting == "spark_remote"
            else Settings(spark_master=f"spark://{place},other:7077")
        )
        finding = spark.spark(settings)
        assert finding.status is Status.PROBLEM
        assert "connection refused" in finding.found
        assert "geheim" not in finding.found
        server.listen()
        assert spark.spark(settings).status is Status.OK


def test_a_server_s_port_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else nobody could be asked."""
    monkeypatch.setattr(spark, "OF_CONNECT", ())
    finding = spark.spark(Settings(spark_remote="sc://there:x/;token=geheim"))
    assert (finding.status, finding.found) == (
        Status.PROBLEM,
        "PySpark 4.1.4; sc://there: its port is no number",
    )


def test_what_spark_connect_needs_besides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules that are not installed are named, with the extra that brings them."""
    monkeypatch.setattr(spark, "OF_CONNECT", ("json", "no_such_module"))
    finding = spark.spark(Settings(spark_remote="sc://there"))
    assert (finding.found, finding.to_do) == (
        "PySpark 4.1.4 without no_such_module",
        "pip install 'sparkherd[connect]'",
    )


@pytest.mark.parametrize("place", ["packages", "spark_conf"])
def test_packages_are_for_this_spark(place: str) -> None:
    """Those of the worker's own setting, and those in Spark's."""

    def told(package: str) -> Finding:
        if place == "packages":
            return spark.connectors(Settings(packages=(package,)))
        return spark.connectors(Settings(spark_conf={PACKAGES: f"a:b:1, {package}"}))

    assert told("org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.4").status is Status.OK
    finding = told("org.apache.spark:spark-avro_2.12:4.1.4")
    assert finding.status is Status.PROBLEM
    assert finding.found.startswith("org.apache.spark:spark-avro_2.12:4.1.4 is for Scala 2.12")
    assert "_2.13" in finding.to_do


def test_jars_have_to_be_there(tmp_path: Path) -> None:
    """Files, and what is in folders; what is at a URL or behind a pattern only Spark can tell."""
    jar = tmp_path / "kafka" / "a.jar"
    jar.parent.mkdir()
    conf = {JARS: f"{jar},https://there/b.jar,{tmp_path}/*"}
    assert (
        spark.connectors(Settings(jars=(str(tmp_path),))).found == f"{tmp_path} is a folder without any jar"
    )
    assert spark.connectors(Settings(spark_conf=conf)).found == f"{jar} is not there"
    with zipfile.ZipFile(jar, "w"):
        pass
    assert spark.connectors(Settings(spark_conf=conf, jars=(str(tmp_path), str(jar)))).status is Status.OK
    old = jar.rename(jar.with_name("spark-avro_2.12-3.5.1.jar"))
    assert spark.connectors(Settings(jars=(str(tmp_path),))).found.startswith(f"{old} is for Scala 2.12")


def test_delta_without_our_jar(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As in a checkout where nobody has called `make jars`."""
    monkeypatch.setattr(lake_jars, "__file__", str(tmp_path / "lake_jars.py"))
    settings = Settings(packages=("io.delta:delta-spark_4.1_2.13:4.4.0",))
    finding = spark.connectors(settings)
    assert finding.status is Status.WARNING
    assert "without sparkherd-delta.jar" in finding.found
    assert "make jars" in finding.to_do
    (tmp_path / "delta").mkdir()
    (tmp_path / "delta" / "sparkherd-delta.jar").touch()
    assert spark.connectors(settings).status is Status.OK


def test_where_there_is_nothing_to_look_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """No packages, a server's own ones, no PySpark."""
    assert "spark-sql-kafka-0-10_2.13:4.1.4" in spark.connectors(Settings()).found
    assert spark.connectors(Settings(spark_remote="sc://there")).status is Status.SKIPPED
    monkeypatch.setattr(spark, "platform_here", lambda: None)
    assert spark.connectors(Settings()).status is Status.SKIPPED
