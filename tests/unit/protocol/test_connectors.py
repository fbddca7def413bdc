"""Which formats a Spark may lack, and where to get them."""

from __future__ import annotations

import pytest

from protocol.connectors import BUILT_IN, PACKAGES, Formats, Needs, needed, package_of
from worker.spark.packages import Platform, package_fault


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("kafka", "kafka"),
        ("Kafka", "kafka"),
        ("JSON", None),
        ("com.example.Source", None),
        ("", None),
        (None, None),
        *((name, None) for name in sorted(BUILT_IN)),
    ],
)
def test_what_a_spark_may_lack(name: str | None, found: str | None) -> None:
    """Not what each one has, nor a class, of which nobody knows before it is looked for."""
    assert needed(name) == found


@pytest.mark.parametrize(
    ("formats", "lacks"),
    [
        (Formats(("kafka",)), False),
        (Formats(("delta",)), True),
        (Formats(), True),
        (Formats((), ("delta",)), False),
        (Formats((), ("delta", "kafka")), True),
        (Formats(("kafka",), ("delta", "kafka")), False),
    ],
)
def test_what_is_known_to_be_missing(formats: Formats, *, lacks: bool) -> None:
    """Where only some were looked for, others may be there."""
    assert formats.lack("kafka") is lacks


def test_a_source_or_a_sink_is_a_need() -> None:
    """Either is enough."""
    assert Needs(("kafka",))
    assert Needs((), "delta")
    assert not Needs()


def test_a_package_is_for_the_spark_that_is_there() -> None:
    """Of a format that nobody knows it says what a coordinate looks like."""
    assert package_of("Kafka", "4.1.1").endswith(":4.1.1")
    assert package_of("kafka", None).endswith(":VERSION")
    assert "cosmos" in package_of("cosmos", "4.1.1")


@pytest.mark.parametrize("name", ["delta", "Iceberg"])
def test_a_package_for_another_spark_is_not_what_to_start_a_worker_with(name: str) -> None:
    """It would be refused there; it is said for which Spark there is one."""
    assert package_of(name, "4.1.4") == PACKAGES[name.lower()]
    for spark, theirs in (("4.3.0", "Spark 4.3.0"), ("4.10.0", "Spark 4.10.0"), (None, "its Spark")):
        told = package_of(name, spark)
        assert told.startswith(f"GROUP:ARTIFACT:VERSION of {name} for {theirs} (known is ")
        assert told.endswith(" for Spark 4.1)")


@pytest.mark.parametrize("spark", ["4.1.1", "4.3.0"])
@pytest.mark.parametrize("name", PACKAGES)
def test_a_coordinate_that_is_told_is_taken(name: str, spark: str) -> None:
    """By the worker with that Spark, which looks at its name."""
    told = package_of(name, spark).partition(" ")[0]
    platform = Platform(spark, "2.13", None)
    assert told == "GROUP:ARTIFACT:VERSION" or package_fault(told, platform) is None


@pytest.mark.parametrize("name", ["${env:FORMAT}", "{", "kafka}", "{0}"])
def test_whatever_a_format_is_called_a_package_is_named(name: str) -> None:
    """Definitions of before could have any name there, and the leader of a group must live with it."""
    assert package_of(name, "4.1.1") == f"GROUP:ARTIFACT:VERSION of {name}"
