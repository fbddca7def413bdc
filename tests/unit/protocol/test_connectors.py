"""Which formats a Spark may lack, and where to get them."""

from __future__ import annotations

import pytest

from protocol.connectors import BUILT_IN, Formats, Needs, needed, package_of


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


@pytest.mark.parametrize("name", ["${env:FORMAT}", "{", "kafka}", "{0}"])
def test_whatever_a_format_is_called_a_package_is_named(name: str) -> None:
    """Definitions of before could have any name there, and the leader of a group must live with it."""
    assert package_of(name, "4.1.1") == f"GROUP:ARTIFACT:VERSION of {name}"
