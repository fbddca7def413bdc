"""Delta and Iceberg, each by the fenced sink and by Spark's own, in one JVM: the same log store and catalog.

A query reads CSV files, one a batch, and is timed by its checkpoint. Both sides pay for Spark's own
checkpoint, for reading the rows and for the table's own commit, which `LinkLogStore` syncs for both.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from pyspark.sql import SparkSession

from benchmarks.tools.flight_rows import COLUMNS, SCHEMA
from definition.document import parse_definition
from tests.kafka.broker import JARS
from worker.query_engine import QuerySpec
from worker.spark.classic.active_session import make_active
from worker.spark.engine import SparkEngine
from worker.spark.settings import SparkSettings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from definition.sink import Sink

FORMATS = ("delta", "iceberg")
GROUP = "lakehouse"
_CONNECTORS = JARS.parent / "spark"
_EXTENSIONS = (
    "io.delta.sql.DeltaSparkSessionExtension",
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
)


def connectors() -> tuple[str, ...]:
    """The jars of `make jars` that Delta, Iceberg and its catalog need.

    Raises:
        FileNotFoundError: they are not there.
    """
    found = [str(jar) for name in (*FORMATS, "jdbc") for jar in sorted((_CONNECTORS / name).glob("*.jar"))]
    if not any("delta-spark_" in jar for jar in found):
        raise FileNotFoundError(f"{_CONNECTORS}: run `make jars`")
    return tuple(found)


def conf(folder: Path) -> dict[str, str]:
    """Spark's settings, as docs/connectors.md has them; the catalog is a file of SQLite's in `folder`."""
    return {
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.memory": "2g",
        "spark.sql.extensions": ",".join(_EXTENSIONS),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.delta.logStore.file.impl": "sparkherd.delta.LinkLogStore",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "jdbc",
        "spark.sql.catalog.lake.uri": f"jdbc:sqlite:{folder}/lake.db",
        "spark.sql.catalog.lake.warehouse": f"{folder}/lake",
    }


def engine(folder: Path) -> SparkEngine:
    """A worker's, with both formats."""
    settings = SparkSettings(
        app_name="lakehouse",
        checkpoint_root=str(folder / "checkpoints"),
        conf=conf(folder),
        jars=connectors(),
    )
    return SparkEngine(settings, lambda: True)


def session() -> SparkSession:
    """One of the engine's own Spark."""
    return SparkSession.builder.getOrCreate().newSession()


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two ways into a format, with tables of its own."""

    engine: SparkEngine
    folder: Path
    lake: str
    is_fenced: bool

    @property
    def kind(self) -> str:
        """What its tables and checkpoints are called by."""
        return "fenced" if self.is_fenced else "plain"

    def table(self, task: str) -> str:
        """A path, or a name in the catalog."""
        if self.lake == "delta":
            return str(self.folder / "delta" / self.kind / task)
        return f"lake.{self.kind}.{task}"

    def checkpoint(self, task: str) -> Path:
        """The folder of a task's checkpoint."""
        group = GROUP if self.is_fenced else "plain"
        return self.folder / "checkpoints" / group / f"{self.lake}_{task}"

    def sink(self, task: str) -> dict[str, Any]:
        """As a definition has it."""
        place = self.table(task)
        return (
            {"format": self.lake, "table": place}
            if self.lake == "iceberg"
            else {"format": self.lake, "options": {"path": place}}
        )

    def definition(self, task: str, source: Mapping[str, Any]) -> Any:
        """The task's, parsed."""
        document = {
            "source": source,
            "sql": f"SELECT {', '.join(COLUMNS)} FROM source",
            "sink": self.sink(task),
            "trigger": {"available_now": True},
        }
        return parse_definition(msgspec.json.encode(document))

    def sink_definition(self, task: str) -> Sink:
        """Its sink alone."""
        sink: Sink = self.definition(task, {"format": "rate"}).sink
        return sink

    async def run(self, task: str, source: Mapping[str, Any], token: int = 1) -> None:
        """Until the query has done all there is."""
        if not self.is_fenced:
            await asyncio.to_thread(self._plain, task, source)
            return
        spec = QuerySpec(GROUP, f"{self.lake}_{task}", token, self.definition(task, source))
        query = await self.engine.start(spec)
        if error := await query.ended():
            raise error

    def batch_ends(self, task: str) -> list[float]:
        """When each batch was committed, in seconds."""
        commits = self.checkpoint(task) / "commits"
        numbers = sorted(int(each.name) for each in commits.iterdir() if each.name.isdecimal())
        return [(commits / str(number)).stat().st_mtime for number in numbers]

    def _plain(self, task: str, source: Mapping[str, Any]) -> None:
        """The query as anybody would write it, with Spark's own sink of the format."""
        spark = session()
        make_active(spark)
        frame = spark.readStream.format("csv").schema(SCHEMA).options(**source["options"]).load()
        writer = frame.select(*COLUMNS).writeStream.format(self.lake).trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(self.checkpoint(task)))
        place = self.table(task)
        if self.lake == "delta":
            query = writer.start(place)
        else:
            columns = SCHEMA.replace(" FLOAT", " DOUBLE")
            spark.sql(f"CREATE TABLE IF NOT EXISTS {place} ({columns}) USING iceberg")
            query = writer.toTable(place)
        query.awaitTermination()
