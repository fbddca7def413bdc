"""PySpark and its packages, told by versions and names."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from cli.doctor import spark
from cli.doctor.finding import Settings, Status

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark 4.1.4 with the Hadoop it has."""
    monkeypatch.setattr(spark, "_installed", lambda: "4.1.4")
    monkeypatch.setattr(spark, "_hadoop", lambda: "3.4.2")
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


@pytest.mark.parametrize(
    ("package", "to_do"),
    [
        ("org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.4", None),
        ("io.delta:delta-spark_4.1_2.13:4.4.1", None),
        ("org.apache.hadoop:hadoop-aws:3.4.2", None),
        ("org.postgresql:postgresql:42.7.4", None),
        (
            "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0",
            "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.4",
        ),
        ("org.apache.spark:spark-avro_2.12:4.1.4", "_2.13"),
        ("org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0", None),
        ("io.delta:delta-spark_4.0_2.13:4.4.1", "of this Spark"),
        ("org.apache.hadoop:hadoop-aws:3.3.4", "org.apache.hadoop:hadoop-aws:3.4.2"),
        ("org.apache.spark:spark-avro_2.13", "correct spark.jars.packages"),
    ],
)
def test_packages_are_for_this_spark(package: str, to_do: str | None) -> None:
    """Of this version, this Scala and this Hadoop, as far as their names say."""
    finding = spark.connectors(Settings(spark_conf={spark.PACKAGES: f"a:b:1, {package}"}))
    assert finding.status is (Status.OK if to_do is None else Status.PROBLEM)
    assert (to_do or "") in finding.to_do


def test_jars_have_to_be_there(tmp_path: Path) -> None:
    """Those in folders; what is at a URL only Spark can tell."""
    jar = tmp_path / "a.jar"
    conf = {"spark.jars": f"{jar},https://there/b.jar,{tmp_path}/*"}
    assert spark.connectors(Settings(spark_conf=conf)).found == f"spark.jars: there is no file {jar}"
    jar.touch()
    assert spark.connectors(Settings(spark_conf=conf)).status is Status.OK


def test_where_there_is_nothing_to_look_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """No packages, a server's own ones, no PySpark."""
    assert "spark-sql-kafka-0-10_2.13:4.1.4" in spark.connectors(Settings()).found
    assert spark.connectors(Settings(spark_remote="sc://there")).status is Status.SKIPPED
    monkeypatch.setattr(spark, "_installed", lambda: None)
    assert spark.connectors(Settings()).status is Status.SKIPPED
