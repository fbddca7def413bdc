"""The fenced Iceberg sink without a query around it: owners, their batches, and moments in between."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from definition.sink import Sink as SinkDefinition
from worker.sinks.base import Field
from worker.sinks.factory import open_sink
from worker.sinks.fence import Mark, Owner
from worker.sinks.iceberg.table import SparkTable
from worker.spark.classic.rows import RddBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pytest
    from pyspark.sql import DataFrame, SparkSession

    from worker.sinks.base import Sink, Written

FIELDS = (Field("id", "long"), Field("day", "string"))


class Table:
    """A table that is not there yet, and what is in it."""

    def __init__(self, spark: SparkSession, catalog: str = "lake") -> None:
        self.spark = spark
        self.catalog = catalog
        self.path = f"shop.t{uuid.uuid4().hex}"
        self.name = f"{catalog}.{self.path}"

    @property
    def ids(self) -> list[int]:
        """All there are, twice what is there twice."""
        return self.ids_of(self.name)

    def ids_of(self, table: str) -> list[int]:
        """The same of a branch."""
        self.spark.sql(f"REFRESH TABLE {self.name}")
        return sorted(row.id for row in self.spark.table(table).collect())

    def run(self, statement: str) -> list[Any]:
        """A statement with `{table}` and `{path}` in it."""
        return self.spark.sql(
            statement.format(table=self.name, path=self.path, catalog=self.catalog)
        ).collect()

    def refs(self) -> set[str]:
        """The names of its branches and tags."""
        self.run("REFRESH TABLE {table}")
        return {row[0] for row in self.run("SELECT name FROM {table}.refs")}


class Writer:
    """One owner of the task, and its sink."""

    def __init__(
        self,
        table: Table,
        token: int = 1,
        *,
        resets: int = 0,
        partition_by: Sequence[str] = (),
        **options: Any,
    ) -> None:
        definition = SinkDefinition(
            format="iceberg", table=table.name, options=options, partition_by=tuple(partition_by)
        )
        sink = open_sink(definition, Owner("g", "t", token, resets), lambda: table.spark)
        assert sink is not None
        self.table = table
        self.sink: Sink = sink

    def begin(self, fields: Sequence[Field] = FIELDS) -> Any:
        """Claim and prepare; returns the last batch's number."""
        row = self.sink.claim()
        self.sink.prepare(fields)
        return None if row.last is None else row.last.batch_id

    def batch(
        self, number: int, *, plan: str | None = None, checkpoint: str = "c", frame: DataFrame | None = None
    ) -> Written:
        """Write ten rows of their own, or other rows."""
        rows = self.table.spark.range(number * 10, number * 10 + 10)
        frame = rows.selectExpr("id", "concat('d', id % 2) AS day") if frame is None else frame
        mark = Mark(checkpoint, number, plan or f"p{number}")
        return self.sink.write(RddBatch(frame, mark, lambda: None))


@contextmanager
def meanwhile(
    monkeypatch: pytest.MonkeyPatch, moment: type, action: Callable[[], object], *, after: bool = False
) -> Iterator[None]:
    """Has `action` happen once, before or after the first thing of that kind which is asked of a table."""
    answer = SparkTable._answer
    done: list[bool] = []

    def interrupted(self: SparkTable, ask: Any, put: Any) -> Any:
        is_it = isinstance(ask, moment) and not done
        if is_it:
            done.append(True)
        if is_it and not after:
            action()
        result = answer(self, ask, put)
        if is_it and after:
            action()
        return result

    with monkeypatch.context() as patched:
        patched.setattr(SparkTable, "_answer", interrupted)
        yield
    assert done, f"nobody came to {moment.__name__}"
