"""Options of tables that pass are those that the shipped lakes and Spark's own formats have."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.spark.conftest import CONNECTORS
from worker.spark.reading.table_options import OF_DELTA, OF_FILES, OF_ICEBERG, is_of_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.integration.spark.conftest import Flights

ONCE = {"available_now": True}
NO_OPTIONS = {
    "delta": {
        *("__v1_save_as_table_overwrite", "__replace_using_table_alias__"),  # Delta's own, between its parts
        *("dynamic", "static", "1000"),  # values
    },
    "iceberg": {"snapshot-property"},  # a prefix
}
FORMATS = {
    *("catalyst.csv.CSVOptions", "catalyst.json.JSONOptions", "catalyst.xml.XmlOptions", "avro.AvroOptions"),
    *(
        f"execution.datasources.{each}Options"
        for each in ("FileIndex", "text.Text", "parquet.Parquet", "orc.Orc")
    ),
}


@pytest.fixture(scope="module")
def jars(spark: SparkSession) -> Any:
    """A loader of the classes of all connectors."""
    jvm: Any = spark._jvm
    files = sorted(CONNECTORS.rglob("*.jar"))
    urls = spark.sparkContext._gateway.new_array(jvm.java.net.URL, len(files))  # type: ignore[union-attr]
    for index, file in enumerate(files):
        urls[index] = jvm.java.net.URL(file.as_uri())
    return jvm.java.net.URLClassLoader(urls)


@pytest.fixture(scope="module")
def of_object(spark: SparkSession, jars: Any) -> Any:
    """What the methods of a Scala object give that take nothing, for names such as the test asks for."""
    nothing = spark.sparkContext._gateway.new_array(spark._jvm.java.lang.Object, 0)  # type: ignore[union-attr]

    def values(name: str, wanted: Any) -> dict[str, Any]:
        found = jars.loadClass(f"org.apache.spark.sql.{name}$")
        it = found.getField("MODULE$").get(None)
        methods = {each.getName(): each for each in found.getMethods() if each.getParameterCount() == 0}
        return {each: method.invoke(it, nothing) for each, method in methods.items() if wanted(each)}

    return values


def lower(names: Any) -> set[str]:
    return {str(name).lower() for name in names}


def test_options_of_lakes_are_those_of_the_jars(jars: Any, of_object: Any) -> None:
    """A new version may bring options: each is either no harm, or has to be allowed."""
    of_delta = of_object("delta.DeltaOptions", lambda name: name.isupper() or name == "validOptionKeys")
    of_delta.pop("PARTITION_OVERWRITE_MODE_VALUES")
    valid = str(of_delta.pop("validOptionKeys").mkString(" ")).split()
    assert lower(valid) | lower(of_delta.values()) == OF_DELTA | NO_OPTIONS["delta"]
    classes = [jars.loadClass(f"org.apache.iceberg.spark.Spark{each}Options") for each in ("Read", "Write")]
    fields = [field for each in classes for field in each.getFields()]
    texts = [field.get(None) for field in fields if field.getType().getSimpleName() == "String"]
    assert lower(texts) == OF_ICEBERG | NO_OPTIONS["iceberg"]


def test_options_of_files_are_spark_s(of_object: Any) -> None:
    """Likewise."""
    found = lower(of_object("catalyst.FileSourceOptions", str.isupper).values())
    for name in FORMATS:
        found |= lower(str(of_object(name, "getAllOptions".__eq__)["getAllOptions"].mkString(" ")).split())
    assert found == OF_FILES


@pytest.mark.parametrize("lake", ["parquet", "delta", "iceberg"])
async def test_tables_get_their_options(lake: str, start: Any, flights: Flights, spark: SparkSession) -> None:
    """As their documentation has them; a codec shows in the name of a file, a property in a snapshot."""
    flights.add()
    table = f"t{uuid.uuid4().hex}"
    options = {"compression": "gzip"}
    if lake == "iceberg":
        table, options = f"lake.shop.{table}", {"compression-codec": "gzip", "snapshot-property.team": "red"}
    name = lake if lake == "parquet" else f"{lake}_unfenced"
    sink = {"format": name, "table": table, "options": options}
    query = await start(source=flights.source, sink=sink, trigger=ONCE)
    assert await query.ended() is None
    assert all(is_of_tables(name) for name in options)
    if lake == "iceberg":
        [told] = spark.sql(f"SELECT summary['team'] FROM {table}.snapshots").collect()
        assert told[0] == "red"
    else:
        files = spark.table(table).inputFiles()
        assert files
        assert all(file.endswith(".gz.parquet") for file in files)
