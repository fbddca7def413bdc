"""A checkpoint folder, reached through DataFrames: a client of the server's has no other way to its files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pyspark.errors import AnalysisException, PySparkException

from worker.query_engine import QueryError
from worker.spark.causes import describe
from worker.spark.checkpoint import CheckpointFolder
from worker.spark.checkpoint_rules import damaged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TRIES: Final = 10
_GONE: Final = "FAILED_READ_FILE.FILE_NOT_EXIST"
_PATTERN = re.compile(r"([\\\[\]{}*?])")
"""What Spark would take for a pattern in a path that it reads."""


class DataFrameCheckpoint(CheckpointFolder):
    """As Spark's own sources see it; a text is put there as a folder, since Spark writes no single files."""

    def __init__(self, spark: SparkSession, place: str) -> None:
        super().__init__(place)
        self._spark = spark

    def read(self, name: str) -> str | None:
        """By the bytes of the file, or of the files in the folder."""
        try:
            rows = self._load(name).select("content").collect()
        except PySparkException as error:
            self._require_missing(error, name)
            return None
        return b"".join(bytes(row.content) for row in rows).decode(errors="replace")

    def read_all(self, ending: str) -> dict[str, str]:
        """The texts of all that `create` has put there under a name that ends so, by what is before that.

        Raises:
            QueryError: they cannot be read, if only because one is being replaced at the moment.
        """
        try:
            rows = self._load_all(f"*{_literally(ending)}").select("path", "content").collect()
        except PySparkException as error:
            self._require_missing(error, f"*{ending}")
            return {}
        texts: dict[str, str] = {}
        for row in rows:
            name = str(row.path).split("/")[-2].removesuffix(ending)
            texts[name] = texts.get(name, "") + bytes(row.content).decode(errors="replace")
        return texts

    def last(self, log: str) -> int | None:
        """By the names of the files; none of them is read.

        A query that runs removes old entries meanwhile, and Spark asks for the size of each that it listed.
        """
        for tries_left in reversed(range(_TRIES)):
            try:
                rows = self._load(log).select("path").collect()
                break
            except PySparkException as error:
                if tries_left and _GONE in str(error):
                    continue
                self._require_missing(error, log)
                return None
        names = (str(row.path).rpartition("/")[2] for row in rows)
        return max((int(name) for name in names if name.isdecimal()), default=None)

    def create(self, name: str, text: str) -> None:
        """As a folder with one file. No SQL is part of it: Delta's parser knows no parameters."""
        try:
            row = self._spark.createDataFrame([(text,)], "value string")
            row.write.mode("overwrite").text(f"{self.place}/{name}")
        except PySparkException as error:
            raise QueryError(f"the checkpoint {self.place} cannot be written to: {_line(error)}") from error

    def _load(self, name: str) -> DataFrame:
        return self._load_all(_literally(name))

    def _load_all(self, pattern: str) -> DataFrame:
        return self._spark.read.format("binaryFile").load(f"{_literally(self.place)}/{pattern}")

    def _require_missing(self, error: PySparkException, name: str) -> None:
        """What is not there is none; anything else is an error."""
        if not (isinstance(error, AnalysisException) and error.getCondition() == "PATH_NOT_FOUND"):
            raise damaged(self.place, f"{name} cannot be read: {_line(error)}") from error


def _literally(path: str) -> str:
    return _PATTERN.sub(r"\\\1", path)


def _line(error: PySparkException) -> str:
    return describe(error).partition("\n")[0]
