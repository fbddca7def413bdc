"""What the fenced Delta sink needs of its Spark: without it a clear cause, and nothing is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from tests.integration.spark.connectors.delta_tables import Table, put
from worker.sinks.errors import SinkError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

LOG_STORE = "spark.delta.logStore.file.impl"
DELTAS = "io.delta.storage.HDFSLogStore"


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Table:
    return Table(spark, tmp_path / "table")


@pytest.fixture
def deltas_store(spark: SparkSession) -> Iterator[None]:
    """Delta's own way on local disks: it is read from the settings that Spark was started with."""
    settings: Any = spark._jsparkSession.sparkContext().conf()
    ours = settings.get(LOG_STORE)
    settings.set(LOG_STORE, DELTAS)
    yield
    settings.set(LOG_STORE, ours)


@pytest.mark.usefixtures("deltas_store")
def test_a_local_table_by_a_log_store_of_delta_s_is_refused(table: Table) -> None:
    """The setting that is missing is named, and nothing is made at the table's place."""
    with pytest.raises(SinkError, match=rf"set {LOG_STORE}=sparkherd\.delta\.LinkLogStore by --spark-conf"):
        table.owner(1)
    assert not table.folder.exists()


@pytest.mark.parametrize("setting", ["spark.sql.extensions", "spark.sql.catalog.spark_catalog"])
def test_a_spark_without_delta_is_refused(
    table: Table, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    """By the settings that Delta needs; nothing is made at the table's place."""
    get = type(table.spark.conf).get

    def unset(conf: Any, key: str, *default: Any) -> Any:
        return default[0] if key == setting else get(conf, key, *default)

    monkeypatch.setattr(type(table.spark.conf), "get", unset)
    with pytest.raises(SinkError, match=r"Delta needs its package, and the settings spark\.sql\.extensions="):
        table.owner(1)
    assert not table.folder.exists()


def test_a_spark_without_our_jar_is_refused(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """The jar is named, and where it is to be had; nothing is made at the table's place."""
    monkeypatch.setattr("worker.sinks.delta.spark_table.DELTA_SINK", "no_delta")
    with pytest.raises(SinkError, match=r"needs sparkherd-no_delta\.jar: sparkherd's wheels have it"):
        table.owner(1)
    assert not table.folder.exists()


def test_deltalake_opens_a_table_from_its_first_columns_on(table: Table) -> None:
    """A claim makes it without any, which Delta's own readers take and that one does not."""
    sink = table.sink(1)
    sink.claim()
    assert table.frame().columns == []
    with pytest.raises(DeltaError):
        DeltaTable(str(table.folder)).schema()
    sink.prepare(table.fields)
    put(sink, table, 0, 1)
    assert len(DeltaTable(str(table.folder)).schema().fields) == len(table.fields)
