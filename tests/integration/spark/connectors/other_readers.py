"""Tables that the fenced sinks have written, as engines without Spark read them."""

from __future__ import annotations

import json
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.catalog.sql import SqlCatalog

from definition.document import parse_definition
from worker.sinks.base import Field
from worker.sinks.factory import open_sink
from worker.sinks.fence import Mark, Owner
from worker.spark.classic.rows import RddBatch

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.spark.connectors.lake_cases import Batch, Case


class Lake(ABC):
    """A table that is not there yet, what writes it, and who reads it."""

    narrowest: str | None = None
    """The smallest whole number that the format has, if Spark has smaller ones."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark.newSession()
        self.folder = folder
        self.written = 0

    @abstractmethod
    def sink(self, case: Case) -> dict[str, Any]:
        """The definition's."""

    @abstractmethod
    def read(self) -> pa.Table:
        """All of it, by an engine that is no Spark."""

    def fill(self, case: Case) -> None:
        """Each batch by the next owner."""
        for key, value in case.conf.items():
            self.spark.conf.set(key, value)
        for batch in case.batches:
            self.write(self.sink(case), batch)

    def write(self, sink: dict[str, Any], batch: Batch) -> None:
        """Claimed, made ready, written, and let go of."""
        frame = self.spark.createDataFrame(list(batch.rows), batch.columns).coalesce(2)
        whole = sink["options"].get("mode") == "overwrite"
        modes = {"output_mode": "complete", "sql": "SELECT count(*) FROM source"} if whole else {}
        document = {"source": {"format": "rate"}, "sink": sink, **modes}
        definition = parse_definition(json.dumps(document).encode()).sink
        assert definition is not None
        owner = Owner("g", "t", self.written + 1)
        writer = open_sink(definition, owner, lambda: self.spark)
        assert writer is not None
        writer.claim()
        writer.prepare([Field(each["name"], each["type"]) for each in frame.schema.jsonValue()["fields"]])
        writer.write(RddBatch(frame, Mark("c", self.written, f"p{self.written}"), lambda: None))
        writer.close()
        self.written += 1


class Delta(Lake):
    """At a path; `deltalake` is written in Rust, and shares no code with Spark's Delta."""

    @property
    def path(self) -> str:
        return str(self.folder / "table")

    def sink(self, case: Case) -> dict[str, Any]:
        options = {"path": self.path, **case.options}
        return {"format": "delta", "options": options, "partition_by": list(case.partition_by)}

    def read(self) -> pa.Table:
        query = QueryBuilder().register("written", DeltaTable(self.path))
        return pa.table(query.execute("SELECT * FROM written").read_all())


class Iceberg(Lake):
    """In a catalog in SQLite, which `pyiceberg` asks by itself."""

    narrowest = "int32"

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        super().__init__(spark, folder)
        self.name = f"shop.t{uuid.uuid4().hex}"

    def sink(self, case: Case) -> dict[str, Any]:
        options = dict(case.options)
        layout = list(case.transforms or case.partition_by)
        return {"format": "iceberg", "table": f"lake.{self.name}", "options": options, "partition_by": layout}

    def read(self) -> pa.Table:
        uri = self.spark.conf.get("spark.sql.catalog.lake.uri")
        catalog = SqlCatalog("lake", uri=str(uri).removeprefix("jdbc:").replace("sqlite:", "sqlite:///"))
        try:
            return catalog.load_table(self.name).scan().to_arrow()
        finally:
            catalog.close()


def multiset(rows: Iterable[Iterable[Any]]) -> Counter[Hashable]:
    """Each row as often as it is there."""
    return Counter(tuple(plain(value) for value in row) for row in rows)


def rows_of(table: pa.Table) -> list[list[Any]]:
    """In the order of the table's columns."""
    return [list(row.values()) for row in table.to_pylist(maps_as_pydicts="strict")]


def shapes(schema: pa.Schema, narrowest: str | None = None) -> dict[str, Any]:
    """The types of columns without what says how Arrow holds them; whole numbers not below the narrowest."""
    return {field.name: _shape(field.type, narrowest) for field in schema}


def _shape(of: pa.DataType, narrowest: str | None) -> Any:
    if pa.types.is_struct(of):
        return [(field.name, _shape(field.type, narrowest)) for field in of]
    if pa.types.is_map(of):
        return {_shape(of.key_type, narrowest): _shape(of.item_type, narrowest)}
    if pa.types.is_list(of) or pa.types.is_large_list(of):
        return [_shape(of.value_type, narrowest)]
    if pa.types.is_timestamp(of):
        return f"timestamp[{of.unit}]{' of a zone' if of.tz else ''}"
    name = str(of).removeprefix("large_").removesuffix("_view")
    return narrowest if narrowest and name in {"int8", "int16"} else name


def plain(value: Any) -> Hashable:
    """What is equal only to its like: 1 is not 1.0, nor -0.0 0.0, and NaN is NaN."""
    match value:
        case dict():
            return frozenset((plain(key), plain(each)) for key, each in value.items())
        case list():
            return tuple(plain(each) for each in value)
        case datetime(tzinfo=zone) if zone is not None:
            return ("instant", value.astimezone(UTC).isoformat())
        case bytearray() | bytes():
            return ("bytes", bytes(value))
        case Decimal():
            return ("decimal", value.normalize())
        case _:
            return (type(value).__name__, repr(value))
