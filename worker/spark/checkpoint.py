"""A task's checkpoint folder, read through Hadoop's file systems as Spark does; so it may be anywhere."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

from worker.executor import StartError
from worker.sinks.base import Mark
from worker.sinks.errors import SinkError
from worker.spark.causes import describe
from worker.spark.checkpoint_rules import REMEDY, Checkpoint, check_entry, damaged, fits, read_query_id, whole

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

    from worker.sinks.base import Owner
    from worker.sinks.fence import FenceRow

OWNER_FILE = "sparkherd.json"
"""Says whose checkpoint it is; Spark leaves it alone."""
_QUERY_ID = "sql.streaming.queryId"
"""Spark's name for the id of the query a thread runs; kept in the checkpoint, the same after restarts."""


class CheckpointFolder:
    """One task's checkpoint."""

    def __init__(self, spark: SparkSession, place: str) -> None:
        self.place = place
        jvm: Any = spark._jvm  # noqa: SLF001 - where PySpark keeps it
        self._path: Any = jvm.org.apache.hadoop.fs.Path
        context: Any = spark.sparkContext
        self._files: Any = self._path(place).getFileSystem(context._jsc.hadoopConfiguration())  # noqa: SLF001

    def verify(self, owner: Owner, rows: Iterable[FenceRow]) -> None:
        """See that the query of `owner` may go on from here, and that it is where its sinks' fences say.

        Raises:
            StartError: the checkpoint is damaged or another task's.
            OutOfOrderError: it is not the one that the rows in the sink are from, or an older copy of it.
        """
        self._adopt(owner)
        checkpoint = self.inspect()
        whole(checkpoint)
        for row in rows:
            fits(checkpoint, owner, row)

    def inspect(self) -> Checkpoint:
        """How far the query has come; raises `StartError` if that cannot be read."""
        metadata = self._read("metadata")
        planned, committed = self._last("offsets"), self._last("commits")
        plan = None
        if planned is not None:
            plan = self._entry(f"offsets/{planned}", 2)
        if committed is not None:
            self._entry(f"commits/{committed}", 1)
        query_id = None if metadata is None else read_query_id(self.place, metadata)
        return Checkpoint(self.place, query_id, planned, plan, committed)

    def mark(self, frame: DataFrame, batch_id: int) -> Mark:
        """Which batch it is that the calling thread of Spark's is at.

        Raises:
            SinkError: it is none of a streaming query, or its plan cannot be read.
        """
        query_id = frame.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
        if query_id is None:
            raise SinkError("this batch does not belong to a streaming query")
        try:
            return Mark(str(query_id), batch_id, self._entry(f"offsets/{batch_id}", 2))
        except StartError as error:
            raise SinkError(str(error)) from None

    def _adopt(self, owner: Owner) -> None:
        """Make the folder the owner's, unless it is another's."""
        mine = {"group": owner.group, "task": owner.task, "resets": owner.resets}
        text = self._read(OWNER_FILE)
        if text is None:
            self._create(OWNER_FILE, json.dumps(mine))
            return
        try:
            theirs = json.loads(text)
        except ValueError:
            raise damaged(self.place, f"its file {OWNER_FILE} cannot be read") from None
        if theirs != mine:
            raise StartError(f"the checkpoint {self.place} is of another task, {text}; {REMEDY}")

    def _entry(self, name: str, lines: int) -> str:
        """A digest of a log's entry, which must be whole."""
        text = self._read(name)
        if text is None:
            raise damaged(self.place, f"its entry {name} is missing")
        check_entry(self.place, name, text, lines)
        return sha256(text.encode()).hexdigest()[:32]

    def _last(self, log: str) -> int | None:
        """The number of a log's last entry."""
        path = self._path(f"{self.place}/{log}")
        try:
            found = self._files.listStatus(path) if self._files.exists(path) else []
            names = [str(each.getPath().getName()) for each in found]
        except Py4JJavaError as error:
            raise damaged(self.place, f"{log} cannot be listed: {_line(error)}") from error
        return max((int(name) for name in names if name.isdecimal()), default=None)

    def _read(self, name: str) -> str | None:
        path = self._path(f"{self.place}/{name}")
        try:
            if not self._files.exists(path):
                return None
            stream = self._files.open(path)
            try:
                return bytes(stream.readAllBytes()).decode(errors="replace")
            finally:
                stream.close()
        except Py4JJavaError as error:
            raise damaged(self.place, f"{name} cannot be read: {_line(error)}") from error

    def _create(self, name: str, text: str) -> None:
        try:
            stream = self._files.create(self._path(f"{self.place}/{name}"), True)  # noqa: FBT003 - Java's
            try:
                stream.write(bytearray(text.encode()))
            finally:
                stream.close()
        except Py4JJavaError as error:
            raise StartError(f"the checkpoint {self.place} cannot be written to: {_line(error)}") from error


def _line(error: Py4JJavaError) -> str:
    return describe(error).partition("\n")[0]
