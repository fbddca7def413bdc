"""What the jars have that gives options to tables by other ways than those that are looked at."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyspark
import pytest

from tests.integration.spark.conftest import CONNECTORS

if TYPE_CHECKING:
    from collections.abc import Iterator

CATALOG: Final = "org/apache/spark/sql/connector/catalog/"
ICEBERG: Final = "org/apache/iceberg/spark/source/IcebergSource"
WIDTHS: Final = {
    **dict.fromkeys((7, 8, 16, 19, 20), 2),
    **dict.fromkeys((3, 4, 9, 10, 11, 12, 17, 18), 4),
    **dict.fromkeys((5, 6), 8),
    15: 3,
}
"""Bytes of each kind of constant in a class file (JVM specification, 4.4); text, 1, says its own."""


def interfaces(code: bytes) -> set[str]:
    """The names of the interfaces that a class file names as its own."""
    (count,) = struct.unpack_from(">H", code, 8)
    texts: dict[int, str] = {}
    classes: dict[int, int] = {}
    number, at = 1, 10
    while number < count:
        kind, at = code[at], at + 1
        (first,) = struct.unpack_from(">H", code, at)
        if kind == 1:
            texts[number] = code[at + 2 : at + 2 + first].decode(errors="replace")
        if kind == 7:
            classes[number] = first
        at += 2 + first if kind == 1 else WIDTHS[kind]
        number += 2 if kind in {5, 6} else 1
    _, _, _, named = struct.unpack_from(">4H", code, at)
    return {texts[classes[each]] for each in struct.unpack_from(f">{named}H", code, at + 8)}


def implementing(interface: str) -> Iterator[str]:
    """Classes of Spark's own jars and of those of `make jars` that name it."""
    for jar in (*Path(pyspark.__path__[0], "jars").glob("spark-*.jar"), *CONNECTORS.rglob("*.jar")):
        with zipfile.ZipFile(jar) as classes:
            for name in classes.namelist():
                if name.endswith(".class"):
                    code = classes.read(name)
                    if interface.encode() in code and interface in interfaces(code):
                        yield name.removesuffix(".class")


@pytest.mark.parametrize("interface", ["SessionConfigSupport", "SupportsCatalogOptions"])
def test_sources_that_find_options_or_tables_elsewhere_are_known(interface: str) -> None:
    """In settings, which no definition may have for them; in any catalog, whose connections have to be kept.

    Another one has to be looked at: in what form its settings come, and how its `path` names tables.
    """
    assert list(implementing(f"{CATALOG}{interface}")) == [ICEBERG]
