"""The contract of fenced sinks, over real Delta tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from definition.sinks.delta import DeltaOptions
from tests.delta_sessions import session_for_few_rows
from worker.sink_contract.contract import SinkContract
from worker.sinks.delta.marks import app_id
from worker.sinks.delta.sink import DeltaSink
from worker.sinks.delta.spark_table import SparkTable

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from worker.sinks.base import Sink
    from worker.sinks.fence import Owner


class TestDelta(SinkContract):
    """Places are paths."""

    steps = 4
    patience_s = 5

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path, spark: SparkSession) -> None:
        self.folder = tmp_path
        self.session: SparkSession | None = session_for_few_rows(spark)

    def open(self, owner: Owner, place: str) -> Sink:
        session, path = self.session, f"{self.folder}/{place}"
        assert session is not None
        table = SparkTable(lambda: session, app_id(owner), path, None)
        return DeltaSink(table, owner, DeltaOptions(path=path))

    def rows(self, place: str) -> list[tuple[Any, ...]]:
        assert self.session is not None
        path = self.folder / place
        if not any(path.glob("*.parquet")):
            return []
        frame = self.session.read.format("delta").load(str(path))
        return [tuple(row) for row in frame.select("name", "number").collect()]
