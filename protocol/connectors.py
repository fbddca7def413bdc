"""Connectors that Spark does not bring by itself: the formats that tasks need, and where to get them."""

from __future__ import annotations

from typing import Final

import msgspec

KAFKA: Final = "kafka"
AVRO: Final = "avro"

PACKAGES: Final = {
    KAFKA: "org.apache.spark:spark-sql-kafka-0-10_2.13:{spark}",
    AVRO: "org.apache.spark:spark-avro_2.13:{spark}",
    "delta": "io.delta:delta-spark_4.1_2.13:4.4.0",
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
}
"""The Maven coordinates of the connectors in docs/connectors.md, by the format that a definition names."""

_MADE_FOR: Final = {"delta": "4.1", "iceberg": "4.1"}
"""The line of Spark that a package is for, of those that are not Spark's own."""

FILES: Final = frozenset({"binaryfile", "csv", "json", "orc", "parquet", "text", "xml"})
"""Formats of files that every Spark has."""
BUILT_IN: Final = FILES | {
    *("console", "jdbc", "memory", "noop", "rate", "rate-micro-batch", "socket"),
}
"""Formats that every Spark has."""


class Needs(msgspec.Struct, frozen=True):
    """What a task's Spark has to have: formats in lower case, those left out that every Spark has."""

    sources: tuple[str, ...] = ()
    sink: str | None = None

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self.sources) or self.sink is not None


NOTHING: Final = Needs()


class Formats(msgspec.Struct, frozen=True):
    """The formats that a worker's Spark has, in lower case.

    `looked_for` are those that were asked for by name, where Spark cannot be asked for all; None if `names`
    are all there are.
    """

    names: tuple[str, ...] = ()
    looked_for: tuple[str, ...] | None = None

    def lack(self, name: str) -> bool:
        """Whether it is known that Spark has no such format."""
        return name not in self.names and (self.looked_for is None or name in self.looked_for)


def needed(name: str | None) -> str | None:
    """A format as something that a Spark may lack; None if every one has it, or none can tell.

    A class stands in for a short name in some definitions; whether it can be loaded only its Spark knows.
    """
    lowered = (name or "").lower()
    return None if not lowered or "." in lowered or lowered in BUILT_IN else lowered


def package_of(name: str, spark: str | None) -> str:
    """What to give to `--packages` for a format, with the version of the Spark that it is for.

    That is a coordinate, if one is known for that Spark; else what it has to be of, and which one is known.
    """
    known, line = PACKAGES.get(name.lower()), _MADE_FOR.get(name.lower())
    if known is None:
        return f"GROUP:ARTIFACT:VERSION of {name}"
    if line is None:
        return known.format(spark=spark or "VERSION")
    if spark is not None and spark.split(".")[:2] == line.split("."):
        return known
    theirs = "its Spark" if spark is None else f"Spark {spark}"
    return f"GROUP:ARTIFACT:VERSION of {name} for {theirs} (known is {known} for Spark {line})"
