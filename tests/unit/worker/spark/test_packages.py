"""Packages and jars are judged by their names, and by what a JVM said that could not have them."""

from __future__ import annotations

import pytest

from worker.spark.packages import Platform, package_fault, unresolved

HERE = Platform("4.1.4", "2.13", "3.4.2")
KAFKA = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.4"


@pytest.mark.parametrize(
    "coordinate",
    [
        KAFKA,
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.2",
        "io.delta:delta-spark_4.1_2.13:4.4.1",
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0",
        "org.apache.hadoop:hadoop-aws:3.4.2",
        "org.postgresql:postgresql:42.7.7",
        "com.example:thing_2.13:1.0",
    ],
)
def test_packages_that_may_work_here(coordinate: str) -> None:
    """Of this Scala and this line of Spark, or of neither."""
    assert package_fault(coordinate, HERE) is None


@pytest.mark.parametrize(
    ("coordinate", "found", "to_do"),
    [
        (
            "org.apache.spark:spark-avro_2.12:3.5.1",
            "is for Scala 2.12, and Spark 4.1.4 here runs on",
            "_2.13",
        ),
        ("com.example:thing_3:1.0", "is for Scala 3, and", "_2.13"),
        ("org.apache.spark:spark-avro_2.13:3.5.1", "is for Spark 3.5.1, and here is Spark 4.1.4", "4.1.4"),
        ("org.apache.spark:spark-avro_2.13:4.3.0", "is for Spark 4.3.0, and here is Spark 4.1.4", "4.1.4"),
        ("org.apache.iceberg:iceberg-spark-runtime-3.5_2.13:1.9.0", "is for Spark 3.5, and", "of this Spark"),
        ("io.delta:delta-spark_4.0_2.13:4.4.1", "is for Spark 4.0, and here is", "of this Spark"),
        (
            "org.apache.hadoop:hadoop-aws:3.3.4",
            "is not for Hadoop 3.4.2",
            "org.apache.hadoop:hadoop-aws:3.4.2",
        ),
        ("org.apache.spark:spark-avro_2.13", "is not GROUP:ARTIFACT:VERSION", "correct it"),
        ("a:b:c:d", "is not GROUP:ARTIFACT:VERSION", "correct it"),
    ],
)
def test_packages_that_cannot(coordinate: str, found: str, to_do: str) -> None:
    """Else a task would find that out, as a method that is missing."""
    fault = package_fault(coordinate, HERE)
    assert fault is not None
    assert fault.found.startswith(found)
    assert to_do in fault.to_do


IVY = """\
:: problems summary ::
:::: WARNINGS
\t\tmodule not found: org.example#nope;1.0
\t==== central: tried
\t  https://maven.example/all/org/example/nope/1.0/nope-1.0.pom
\t\t::::::::::::::::::::::::::::::::::::::::::::::
\t\t::          UNRESOLVED DEPENDENCIES         ::
\t\t::::::::::::::::::::::::::::::::::::::::::::::
\t\t:: org.example#nope;1.0: not found
\t\t::::::::::::::::::::::::::::::::::::::::::::::
Exception in "main" java.lang.RuntimeException: [unresolved dependency: org.example#nope;1.0: not found]
""".splitlines()


def test_a_package_that_is_nowhere_is_one_line() -> None:
    """Out of the hundred that Ivy has for it."""
    assert unresolved(IVY) == (
        "--packages org.example:nope:1.0: is in no repository; correct it, or name one that has it with"
        " --repositories"
    )
    away = [*IVY, "Server access error at url https://maven.example/all (java.net.UnknownHostException)"]
    assert unresolved(away) == (
        "--packages org.example:nope:1.0: is nowhere to be had, and a repository could not be reached;"
        " see --repositories and --jars"
    )


def test_other_ends_of_a_jvm_are_none_of_a_package() -> None:
    """They are told as they are."""
    assert unresolved(["Error: Could not create the Java Virtual Machine."]) is None


def test_a_package_that_is_described_and_not_there() -> None:
    """Maven leaves such folders, and Ivy asks nobody else; each is told once."""
    line = "RuntimeException: [download failed: org.a#b_2.13;1.2.0!b_2.13.jar, download failed: c#d;2!d.jar]"
    told = unresolved([line, line])
    assert told is not None
    assert told.startswith(
        "--packages need org.a:b_2.13:1.2.0, c:d:2: the repository that describes it has no"
    )
    assert "~/.m2/repository" in told
