"""The contract of fenced sinks, over the one that has Spark write files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from definition.sinks.files import FilesOptions
from worker.sink_contract.contract import SinkContract
from worker.sinks.files import FilesSink

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from worker.sinks.base import Sink
    from worker.sinks.fence import Owner


class TestFiles(SinkContract):
    """Places are folders, each of one task."""

    is_shared = False
    steps = 8

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path, spark: SparkSession) -> None:
        self.folder = tmp_path
        self.session = spark

    def open(self, owner: Owner, place: str) -> Sink:
        return FilesSink(FilesOptions(path=f"{self.folder}/{place}"), owner)

    def rows(self, place: str) -> list[tuple[Any, ...]]:
        assert self.session is not None
        if not any((self.folder / place).glob("*/*.parquet")):
            return []
        return [
            tuple(row)
            for row in self.session.read.parquet(f"{self.folder}/{place}").select("name", "number").collect()
        ]
