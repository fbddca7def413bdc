"""A little of all that the tests do with Spark, for a JVM that archives at its end the classes it has loaded.

Whoever starts a JVM with that archive (`-XX:SharedArchiveFile`) has a Spark session in half the time, and the
tests start about a hundred. The Makefile makes it once; a JVM that the archive does not fit goes without it.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import DataFrame, SparkSession

CONF: dict[str, Any] = {
    "spark.master": "local[1]",
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
}


def main() -> None:
    """Read files as a stream, and write them by a function and by Spark's own sink."""
    spark = SparkSession.builder.config(map=CONF).getOrCreate()
    with TemporaryDirectory() as folder:
        rows, shards = Path(folder, "in"), Path(folder, "out")
        spark.range(10).selectExpr("id", "cast(id as string) as name").write.json(str(rows))
        stream = spark.readStream.schema("id long, name string").json(str(rows))
        ends = [
            stream.writeStream.foreachBatch(_batch),
            stream.writeStream.format("parquet").option("path", str(shards)),
            stream.groupBy("name").count().writeStream.outputMode("complete").foreachBatch(_batch),
        ]
        for number, end in enumerate(ends):
            writer = end.option("checkpointLocation", str(Path(folder, str(number))))
            writer.trigger(availableNow=True).start().awaitTermination()
        spark.stop()


def _batch(frame: DataFrame, _number: int) -> None:
    frame.persist().selectExpr("*", "current_timestamp() as at").collect()
    frame.unpersist()


if __name__ == "__main__":
    main()
