"""The contract of fenced sinks, over tables of Iceberg's."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from definition.sink import Sink as SinkDefinition
from worker.sink_contract.contract import SinkContract
from worker.sinks.factory import open_sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from worker.sinks.base import Sink
    from worker.sinks.fence import Owner


class TestIceberg(SinkContract):
    """Places are tables of one namespace."""

    catalog = "lake"
    steps = 5

    @pytest.fixture(autouse=True)
    def _namespace(self, spark: SparkSession) -> None:
        self.begin(spark)

    def begin(self, session: SparkSession) -> None:
        """Take this session, and a namespace of its own."""
        self.session = session
        self.space = f"{self.catalog}.n{uuid.uuid4().hex}"
        session.sql(f"CREATE NAMESPACE {self.space}")

    def open(self, owner: Owner, place: str) -> Sink:
        definition = SinkDefinition(format="iceberg", table=f"{self.space}.{place}")
        sink = open_sink(definition, owner, lambda: self._spark)
        assert sink is not None
        return sink

    def rows(self, place: str) -> list[tuple[Any, ...]]:
        there = {row[1] for row in self._spark.sql(f"SHOW TABLES IN {self.space}").collect()}
        if place not in there:
            return []
        self._spark.sql(f"REFRESH TABLE {self.space}.{place}")
        table = self._spark.table(f"{self.space}.{place}")
        return [tuple(row) for row in table.collect()] if table.columns else []

    @property
    def _spark(self) -> SparkSession:
        assert self.session is not None
        return self.session
