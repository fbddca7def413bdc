"""A checkpoint folder, reached through the Hadoop file systems of the worker's own JVM."""

from __future__ import annotations

import contextlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from py4j.protocol import Py4JJavaError

from worker.query_engine import QueryError
from worker.sinks.errors import SinkError
from worker.sinks.fence import Mark
from worker.spark.causes import describe
from worker.spark.checkpoint import CheckpointFolder
from worker.spark.checkpoint_rules import damaged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BETWEEN: Final = "\0"
"""No name has one."""
_QUERY_ID = "sql.streaming.queryId"
"""Spark's name for the id of the query a thread runs; kept in the checkpoint, the same after restarts."""


class _Java(NamedTuple):
    """Java's classes that are asked; each is looked for by several calls to the JVM."""

    path: Any
    files: Any
    texts: Any
    arrays: Any
    system: Any
    object: Any
    managers: Any


@lru_cache(maxsize=1)
def _java_of(jvm: Any) -> _Java:
    hadoop = jvm.org.apache.hadoop
    return _Java(
        path=hadoop.fs.Path,
        files=hadoop.fs.FileUtil,
        texts=hadoop.util.StringUtils,
        arrays=jvm.java.util.Arrays,
        system=jvm.java.lang.System,
        object=jvm.java.lang.Object,
        managers=jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager,
    )


class HadoopCheckpoint(CheckpointFolder):
    """As Spark itself reads it, by what the session says of file systems and of checkpoints.

    What was seen in a log when its last entry was looked for is swept without another look: a store takes as
    long for that as for all else that a start asks of it.
    """

    def __init__(self, spark: SparkSession, place: str) -> None:
        super().__init__(place)
        self._seen: dict[str, list[str]] = {}
        jvm: Any = spark._jvm  # noqa: SLF001 - where PySpark keeps it
        self._java = _java_of(jvm)
        self._path: Any = self._java.path
        gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - likewise
        self._new_array = gateway.new_array
        session: Any = spark._jsparkSession  # noqa: SLF001 - likewise
        self._conf: Any = session.sessionState().newHadoopConf()
        self._files: Any = self._path(place).getFileSystem(self._conf)

    def mark(self, frame: DataFrame, batch_id: int) -> Mark:
        """Which batch it is that the calling thread of Spark's is at.

        Raises:
            SinkError: it is none of a streaming query, or its plan cannot be read.
        """
        query_id = frame.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
        if query_id is None:
            raise SinkError("this batch does not belong to a streaming query")
        try:
            return Mark(str(query_id), batch_id, self.digest(batch_id))
        except QueryError as error:
            raise SinkError(str(error)) from None

    def last(self, log: str) -> int | None:
        """The number of a log's last entry."""
        try:
            names = self._seen[f"{self.place}/{log}"] = self._names(f"{self.place}/{log}")
        except Py4JJavaError as error:
            raise damaged(self.place, f"{log} cannot be listed: {_line(error)}") from error
        return max((int(name) for name in names if name.isdecimal()), default=None)

    def read(self, name: str) -> str | None:
        """By the bytes; of a folder that Spark Connect's `create` has made, what is in it."""
        path = self._path(f"{self.place}/{name}")
        try:
            if not self._files.exists(path):
                return None
            if self._files.isDirectory(path):
                return "".join(
                    self._text(part.getPath()) for part in self._files.globStatus(path.suffix("/part-*"))
                )
            return self._text(path)
        except Py4JJavaError as error:
            raise damaged(self.place, f"{name} cannot be read: {_line(error)}") from error

    def sweep(self) -> None:
        """By the names that Spark gives to files until they are whole, in the logs that batches write into.

        What cannot be taken away does no harm: nobody looks at it.
        """
        with contextlib.suppress(Py4JJavaError):
            logs = [f"{self.place}/{name}" for name in ("offsets", "commits")]
            logs += [f"{self.place}/sources/{name}" for name in self._names(f"{self.place}/sources")]
            for log in logs:
                names = self._seen.pop(log, None) or self._names(log)
                for name in names:
                    if name.startswith(".") and name.endswith(".tmp"):
                        self._files.delete(self._path(f"{log}/{name}"), False)  # noqa: FBT003 - Java's

    def _names(self, folder: str) -> list[str]:
        """All that are in a folder, as one text: each by itself would take two calls to Java."""
        path = self._path(folder)
        if not self._files.exists(path):
            return []
        paths = self._java.files.stat2Paths(self._files.listStatus(path))
        if not (number := len(paths)):
            return []
        objects = self._new_array(self._java.object, number)  # Py4J gives a `Path[]` to no `Object...`
        self._java.system.arraycopy(paths, 0, objects, 0, number)
        text = self._java.texts.join(_BETWEEN, self._java.arrays.asList(objects))
        return [each.rpartition("/")[2] for each in str(text).split(_BETWEEN)]

    def _text(self, path: Any) -> str:
        stream = self._files.open(path)
        try:
            return bytes(stream.readAllBytes()).decode(errors="replace")
        finally:
            stream.close()

    def create(self, name: str, text: str) -> None:
        """As a file, like Spark's own: whoever is killed over it leaves what was there before."""
        folder = self._path(self.place)
        try:
            self._files.mkdirs(folder)
            manager = self._java.managers.create(folder, self._conf)
            path = self._path(f"{self.place}/{name}")
            if self._files.isDirectory(path):  # which Spark Connect has made, and no file takes the place of
                self._files.delete(path, True)  # noqa: FBT003 - Java's
            stream = manager.createAtomic(path, True)  # noqa: FBT003 - Java's
            try:
                stream.write(bytearray(text.encode()))
            except BaseException:
                stream.cancel()
                raise
            stream.close()
        except Py4JJavaError as error:
            raise QueryError(f"the checkpoint {self.place} cannot be written to: {_line(error)}") from error


def _line(error: Py4JJavaError) -> str:
    return describe(error).partition("\n")[0]
