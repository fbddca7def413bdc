"""A table through Spark's SQL, in this JVM or behind Spark Connect: does what `publishing` asks for."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from worker.sinks.iceberg.history import Ref, Snapshot
from worker.sinks.iceberg.naming import literal, quoted
from worker.sinks.iceberg.publishing import (
    Drop,
    FastForward,
    Found,
    GetRefs,
    GetSnapshots,
    MakeBranch,
    PutTag,
    TableError,
    Write,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from worker.sinks.iceberg.naming import TableName
    from worker.sinks.iceberg.publishing import Ask, Result

FOR_EVER: Final = "RETAIN 36500 DAYS"
"""Of our own refs, whatever the table's history.expire.max-ref-age-ms says: a fence must not expire."""
PROPERTY: Final = "snapshot-property."
"""An option of a write; what follows is a property of the snapshot's summary."""


class SparkTable:
    """One table, in one session of Spark's."""

    def __init__(self, spark: SparkSession, name: TableName, key: str) -> None:
        """`key` is the property that the task's marks are in."""
        self.spark = spark
        self.name = name
        self._key = key

    def run(
        self, steps: Generator[Ask, Any, Result], put: Callable[[str, str], object] | None = None
    ) -> Result:
        """Do all that a generator of `publishing` asks for; returns what it returns.

        Args:
            steps: the generator.
            put: writes the batch's rows into a branch, with a mark; None if there is no batch.
        """
        try:
            ask = next(steps)
            while True:
                try:
                    answer = self._answer(ask, put)
                except Exception as error:  # noqa: BLE001 - what it comes to is for the steps to say
                    ask = steps.throw(error)
                else:
                    ask = steps.send(answer)
        except StopIteration as end:
            result: Result = end.value
            return result

    def _answer(self, ask: Ask, put: Callable[[str, str], object] | None) -> Any:
        match ask:
            case GetRefs():
                return self._refs()
            case GetSnapshots(only):
                return self._snapshots(only)
            case Found():
                return self._append_nothing(self.name.sql)
            case Write(branch, mark, is_batch):
                return self._write(branch, mark, put if is_batch else None)
            case _:
                return self._sql(self._statement(ask))

    def _statement(self, ask: MakeBranch | FastForward | PutTag | Drop) -> str:
        table = f"ALTER TABLE {self.name.sql}"
        match ask:
            case MakeBranch(name, at):
                return f"{table} CREATE BRANCH IF NOT EXISTS {quoted(name)} AS OF VERSION {at} {FOR_EVER}"
            case PutTag(name, at):
                return f"{table} CREATE OR REPLACE TAG {quoted(name)} AS OF VERSION {at} {FOR_EVER}"
            case Drop(name, is_tag):
                return f"{table} DROP {'TAG' if is_tag else 'BRANCH'} IF EXISTS {quoted(name)}"
            case FastForward(target, branch):
                given = ", ".join(map(literal, (self.name.in_catalog, target, branch)))
                return f"CALL {quoted(self.name.catalog)}.system.fast_forward({given})"

    def _refs(self) -> dict[str, Ref]:
        """A catalog may keep what it knows of a table for a while (`cache-enabled`), so that is dropped."""
        self._sql(f"REFRESH TABLE {self.name.sql}")
        statement = f"SELECT name, type, snapshot_id FROM {self.name.of('refs')}"  # noqa: S608 - quoted
        rows = self._sql(statement)
        return {row[0]: Ref(row[2], row[1] == "TAG") for row in rows}

    def _snapshots(self, only: int | None) -> dict[int, Snapshot]:
        where = "" if only is None else f" WHERE snapshot_id = {only}"
        columns = f"snapshot_id, parent_id, summary[{literal(self._key)}], summary['added-records']"
        rows = self._sql(f"SELECT {columns} FROM {self.name.of('snapshots')}{where}")  # noqa: S608 - quoted
        return {row[0]: Snapshot(row[1], row[2], int(row[3] or 0)) for row in rows}

    def _write(self, branch: str, mark: str, put: Callable[[str, str], object] | None) -> None:
        if put is None:
            self._append_nothing(self.at(branch), mark)
        else:
            put(self.at(branch), mark)

    def at(self, branch: str) -> str:
        """The table at a branch."""
        return self.name.of(f"branch_{branch}")

    def _append_nothing(self, table: str, mark: str | None = None) -> None:
        with self._as_table_errors():
            writer = self.spark.table(self.name.sql).limit(0).writeTo(table)
            (writer if mark is None else writer.option(PROPERTY + self._key, mark)).append()

    def append(self, frame: DataFrame, table: str, mark: str) -> None:
        """Add the rows."""
        frame.writeTo(table).option(PROPERTY + self._key, mark).append()

    def overwrite(self, frame: DataFrame, table: str, mark: str) -> None:
        """Put the rows in the place of all there are."""
        from pyspark.sql import functions as sql  # noqa: PLC0415 - no manager pays for it

        frame.writeTo(table).option(PROPERTY + self._key, mark).overwrite(sql.lit(True))  # noqa: FBT003 - a filter

    def merge(self, frame: DataFrame, table: str, mark: str, key: tuple[str, ...]) -> None:
        """Put each row in the place of the one with the same key.

        MERGE takes no options: its snapshot's properties come from settings of the session.
        """
        view, setting = f"sparkherd_batch_{self._key[-12:]}", f"spark.sql.iceberg.{PROPERTY}{self._key}"
        spark = frame.sparkSession
        same = " AND ".join(f"old.{quoted(column)} <=> new.{quoted(column)}" for column in key)
        frame.createOrReplaceTempView(view)
        spark.conf.set(setting, mark)
        try:
            spark.sql(
                f"MERGE INTO {table} AS old USING {quoted(view)} AS new ON {same}"
                " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            ).collect()
        finally:
            spark.conf.unset(setting)
            spark.catalog.dropTempView(view)

    def _sql(self, statement: str) -> list[Any]:
        with self._as_table_errors():
            return list(self.spark.sql(statement).collect())

    @contextmanager
    def _as_table_errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise TableError(f"the table {self.name.sql}: {said(error)}") from error


def said(error: BaseException) -> str:
    """What an exception of Spark's says, in one line."""
    java: Any = getattr(error, "java_exception", None)
    return (str(error) if java is None else str(java.toString())).strip().partition("\n")[0]
