"""Batches that no query has made, for sinks that take batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from worker.spark.batches.rows import SparkBatch, attempt, counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from worker.sinks.base import Field
    from worker.sinks.fence import Mark
    from worker.sinks.parts import Part, Rows, Take


class LocalBatch(SparkBatch):
    """As few rows as a driver bears; instants are in microseconds since 1970."""

    def __init__(self, session: SparkSession, rows: Rows, fields: Sequence[Field], mark: Mark) -> None:
        """The rows have the types of `fields`, none of which is nested."""
        super().__init__(_frame(session, rows, fields), mark, lambda: None)
        self._rows = rows

    @property
    def partitions(self) -> int:
        """All rows are in one."""
        return 1

    def collect(self, limit: int) -> Rows | None:
        """They are here."""
        return self._rows if len(self._rows) <= limit else None

    def scatter(self, take: Take) -> list[Part]:
        """Here, and on no executor."""
        return [attempt(take, 0, iter(self._rows))]


class FrameBatch(SparkBatch):
    """A frame of as few rows as a driver bears."""

    def __init__(self, frame: DataFrame, mark: Mark) -> None:
        """It is computed when the sink wants that."""
        super().__init__(frame, mark, lambda: None)

    @property
    def partitions(self) -> int:
        """They come to the driver in one."""
        return 1

    def collect(self, limit: int) -> Rows | None:
        """All of them, if they are that few."""
        rows: list[Any] = counted(self._frame).limit(limit + 1).collect()
        return [tuple(row) for row in rows] if len(rows) <= limit else None

    def scatter(self, take: Take) -> list[Part]:
        """Here, and on no executor."""
        return [attempt(take, 0, map(tuple, counted(self._frame).toLocalIterator()))]


def _frame(session: SparkSession, rows: Rows, fields: Sequence[Field]) -> DataFrame:
    """Instants pass as numbers: Python's own know fewer years, and have zones of their own.

    Of one partition: a few rows of each batch are one file then, and not as many as there are cores.
    """
    ddl = ", ".join(f"`{each.name}` {_RAW.get(str(each.type), each.type)}" for each in fields)
    frame = session.createDataFrame(rows, ddl).coalesce(1)
    instants = {each.name: f.timestamp_micros(each.name) for each in fields if each.type == "timestamp"}
    return frame.withColumns(instants) if instants else frame


_RAW = {"timestamp": "long"}
