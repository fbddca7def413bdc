"""A table through Spark, in this JVM or behind Spark Connect: does what `publishing` asks for."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from definition.sinks.iceberg import ICEBERG_SINK
from worker.sinks.asking import Question
from worker.sinks.column_types import quoted
from worker.sinks.iceberg.history import Marked, Seen
from worker.sinks.iceberg.publishing import Look, TableError, Write
from worker.sinks.spark_errors import said

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from worker.sinks.iceberg.naming import TableName
    from worker.sinks.iceberg.publishing import Ask, Result

FENCED: Final = "sparkherd_fenced"
"""The catalog, made in the session of each batch, whose tables take one commit at a given head only."""
PROPERTY: Final = "snapshot-property."
"""An option of a write; what follows is a property of the snapshot's summary."""
_CATALOG: Final = "sparkherd.iceberg.FencedCatalog"
_NONE: Final = "none"


class SparkTable:
    """One branch of a table, in one session of Spark's."""

    def __init__(self, spark: SparkSession, name: TableName, branch: str, key: str, tag: str) -> None:
        """`key` is the property that the task's marks are in, and `tag` what its last snapshot has."""
        self.spark = spark
        self.name = name
        self._branch = branch
        self._key = key
        self._tag = tag

    def run(
        self, steps: Generator[Ask, Any, Result], put: Callable[[str, str], object] | None = None
    ) -> Result:
        """Do all that a generator of `publishing` asks for; returns what it returns.

        Args:
            steps: the generator.
            put: writes the batch's rows into a table, with a mark; None if there is no batch.
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
            case Look():
                return self._seen(self._ask())
            case Write(head, mark, True) if put is not None:
                return put(self._after(head), mark)
            case Write(head, mark, _):
                return self._ask(head=_text(head), mark=mark)

    def _after(self, head: int | None) -> str:
        """The table, to which Spark can commit one snapshot there; whatever commits it."""
        self.spark.conf.set(f"spark.sql.catalog.{FENCED}", _CATALOG)
        place = f"{_text(head)}:{self._branch}:{self._tag}"
        return f"{FENCED}.{self.name.sql}.{quoted(place)}"

    def _ask(self, **more: str) -> dict[str, Any]:
        about = {"table": self.name.sql, "branch": self._branch, "key": self._key, "tag": self._tag}
        with self._as_table_errors():
            return Question(ICEBERG_SINK).ask(self.spark, {**about, **more})

    def _seen(self, answer: dict[str, Any]) -> Seen:
        head, found, tagged = answer["head"], answer["found"], answer["tagged"]
        return Seen(
            None if head == _NONE else int(head),
            answer["has_branch"],
            found and Marked(**found),
            answer["is_whole"],
            tagged and Marked(**tagged),
        )

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

    @contextmanager
    def _as_table_errors(self) -> Iterator[None]:
        try:
            yield
        except TableError:
            raise
        except Exception as error:
            raise TableError(f"the table {self.name.sql}: {said(error)}") from error


def _text(head: int | None) -> str:
    return _NONE if head is None else str(head)
