"""Gives a table as many commits as a task makes in days: its last one again and again, as the format's files.

To make 10,000 commits by the sinks would take an hour. What a batch or a claim has to read of them is the
same: commit files and snapshots with their marks, a checkpoint of Delta's, all snapshots in Iceberg's
metadata. The data files of the made-up commits are not there; nobody who appends reads them.
"""

from __future__ import annotations

import json
import sqlite3
import uuid
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from benchmarks.tools.lake_sides import Side


def grow(side: Side, task: str, commits: int, spark: SparkSession) -> None:
    """Have the table of a task at least so many commits."""
    if side.lake == "delta":
        _grow_delta(Path(side.table(task)), commits, spark)
    else:
        _grow_iceberg(side.folder / "lake.db", side.table(task), commits)


def _grow_delta(table: Path, commits: int, spark: SparkSession) -> None:
    log = table / "_delta_log"
    last = max(int(each.stem) for each in log.glob("*.json") if each.stem.isdecimal())
    lines = [json.loads(line) for line in (log / f"{last:020}.json").read_text().splitlines()]
    for version in range(last + 1, commits):
        for line in lines:
            if "add" in line:
                line["add"]["path"] = f"part-{uuid.uuid4()}.snappy.parquet"
        (log / f"{version:020}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    jvm: Any = spark._jvm  # noqa: SLF001 - Delta has no Python for it
    none, logs = jvm.scala.Option.empty(), jvm.org.apache.spark.sql.delta.DeltaLog
    logs.clearCache()
    found = logs.forTable(spark._jsparkSession, str(table))  # noqa: SLF001 - as above
    found.checkpoint(found.update(False, none, none), none)  # noqa: FBT003 - Java's


def _grow_iceberg(catalog: Path, name: str, commits: int) -> None:
    _, namespace, table = name.split(".")
    where = "WHERE table_namespace = ? AND table_name = ?"
    with closing(sqlite3.connect(catalog, timeout=60)) as base:
        query = f"SELECT metadata_location FROM iceberg_tables {where}"
        old = Path(base.execute(query, (namespace, table)).fetchone()[0].removeprefix("file:"))
        new = old.with_name(f"{int(old.name[:5]) + 1:05}-{uuid.uuid4()}.metadata.json")
        new.write_text(json.dumps(_with_snapshots(json.loads(old.read_text()), commits)))
        moved = f"UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ? {where}"
        base.execute(moved, (str(new), str(old), namespace, table))
        base.commit()


def _with_snapshots(metadata: dict[str, Any], commits: int) -> dict[str, Any]:
    """The last one again and again, each the parent of the next."""
    snapshots, head = metadata["snapshots"], metadata["current-snapshot-id"]
    [last] = [each for each in snapshots if each["snapshot-id"] == head]
    while len(snapshots) < commits:
        sequence, at = metadata["last-sequence-number"] + 1, last["timestamp-ms"] + 1
        fresh = {"snapshot-id": uuid.uuid4().int >> 66, "parent-snapshot-id": last["snapshot-id"]}
        last = {**last, **fresh, "sequence-number": sequence, "timestamp-ms": at}
        snapshots.append(last)
        metadata["snapshot-log"].append({"timestamp-ms": at, "snapshot-id": last["snapshot-id"]})
        metadata |= {"last-sequence-number": sequence, "last-updated-ms": at}
    metadata["current-snapshot-id"] = last["snapshot-id"]
    for ref in metadata["refs"].values():
        ref["snapshot-id"] = last["snapshot-id"]
    return metadata
