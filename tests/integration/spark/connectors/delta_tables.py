"""Delta tables for tests of the fenced sink: its owners, their batches, and one frozen inside a batch."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sql
from pyspark.sql.types import LongType

from definition.document import parse_definition
from tests.delta_sessions import session_for_few_rows
from worker.sinks.base import Field, Written
from worker.sinks.delta.sink import DeltaSink
from worker.sinks.factory import open_sink
from worker.sinks.fence import Mark, Owner
from worker.spark.classic.rows import RddBatch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

LONG_S = 120


class Table:
    """A Delta table, the sinks that write to it, and batches for them."""

    fields = (Field("id", "long"), Field("v", "string"))

    def __init__(self, spark: SparkSession, folder: Path, place: str | None = None) -> None:
        """`place` is its URL, if that is not of the folder."""
        self.spark = session_for_few_rows(spark)
        self.spark.conf.set("spark.sql.runSQLOnFiles", "true")
        self.folder = folder
        self.place = place or str(folder)

    def definition(self, **options: Any) -> Any:
        sink = {"format": "delta", "options": {"path": self.place, **options}}
        whole = {"output_mode": "complete", "sql": "SELECT count(*) FROM source"}
        modes = whole if options.get("mode") == "overwrite" else {}
        document = {"source": {"format": "rate"}, "sink": sink, **modes}
        definition = parse_definition(json.dumps(document).encode()).sink
        assert definition is not None
        return definition

    def sink(self, token: int, resets: int = 0, *, task: str = "t", **options: Any) -> DeltaSink:
        """An owner's, not claimed yet."""
        owner = Owner("g", task, token, resets)
        sink = open_sink(self.definition(**options), owner, lambda: self.spark)
        assert isinstance(sink, DeltaSink)
        return sink

    def owner(self, token: int, resets: int = 0, **options: Any) -> DeltaSink:
        """One that has claimed."""
        sink = self.sink(token, resets, **options)
        sink.claim()
        sink.prepare(self.fields)
        return sink

    def batch(
        self, batch_id: int, *ids: int, frame: DataFrame | None = None, checkpoint: str = "c"
    ) -> RddBatch:
        rows = [(each, f"b{batch_id}") for each in ids]
        made = self.spark.createDataFrame(rows, "id long, v string").coalesce(1) if frame is None else frame
        return RddBatch(made, Mark(checkpoint, batch_id, f"p{batch_id}"), lambda: None)

    @property
    def rows(self) -> list[tuple[int, str]]:
        return sorted((row.id, row.v) for row in self.frame().collect())

    def frame(self) -> DataFrame:
        return self.spark.read.format("delta").load(self.place)


class Frozen:
    """A batch that is held while it writes its files: it has read the number, and has not committed."""

    def __init__(self, table: Table, sink: DeltaSink, batch_id: int, folder: Path) -> None:
        """It has begun to write when this returns; `folder` is for the files that hold it."""
        self._table, self._sink = table, sink
        self._inside, self._thaw = folder / "inside", folder / "thaw"
        self._ended: list[BaseException | None] = []
        self._thread = threading.Thread(target=self._run, args=(table.batch(batch_id, frame=self._frame()),))
        self._thread.start()
        until(self._inside.exists)

    def end(self) -> BaseException | None:
        """Let it go on; returns what it has failed with."""
        self._thaw.touch()
        self._thread.join(LONG_S)
        return self._ended[0]

    def _frame(self) -> DataFrame:
        """One row, with the id 100, that comes when it may."""
        inside_at, thaw_at = str(self._inside), str(self._thaw)

        def hold(value):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - PySpark judges by hints
            from pathlib import Path as Here  # noqa: PLC0415 - on the executor
            from threading import Event  # noqa: PLC0415 - on the executor

            Here(inside_at).touch()
            while not Here(thaw_at).exists():
                Event().wait(0.05)
            return value

        held = sql.udf(hold, LongType())
        rows = self._table.spark.range(100, 101, 1, 1)
        return rows.select(held("id").alias("id"), sql.lit("zombie").alias("v"))

    def _run(self, batch: RddBatch) -> None:
        try:
            self._sink.write(batch)
            self._ended.append(None)
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self._ended.append(error)


def until(holds: Callable[[], bool]) -> None:
    for _ in range(LONG_S * 20):
        if holds():
            return
        threading.Event().wait(0.05)
    raise AssertionError("it does not come")


def put(sink: DeltaSink, table: Table, batch_id: int, *ids: int) -> Written:
    return sink.write(table.batch(batch_id, *ids))
