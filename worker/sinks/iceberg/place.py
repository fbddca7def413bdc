"""The table that a task's rows go to: looked at, made, and made fit for the query's columns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from worker.sinks.base import Condition
from worker.sinks.column_types import quoted
from worker.sinks.iceberg.columns import Column, fit, require_key
from worker.sinks.iceberg.ddl import alterations, type_sql
from worker.sinks.iceberg.layout import partition_fields, require_same
from worker.sinks.iceberg.naming import require_safe
from worker.sinks.iceberg.publishing import TableError
from worker.sinks.spark_errors import said

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from definition.sinks.iceberg import IcebergOptions
    from worker.sinks.base import Field
    from worker.sinks.iceberg.naming import TableName

_PARTITIONS: Final = ("# Partitioning", "# Partition Information")
_NO_NAMESPACE: Final = re.compile(r"NoSuchNamespace|SCHEMA_NOT_FOUND|[Nn]amespace does not exist")


class TablePlace:
    """A table's name, and what the definition says of it."""

    def __init__(self, name: TableName, options: IcebergOptions, partition_by: Sequence[str]) -> None:
        self.name = name
        self._options = options
        self._partition_by = partition_by

    def require_safe(self, spark: SparkSession) -> None:
        """Refuse catalogs that a fence does not hold in; raises `SinkError`."""
        require_safe(self.name.catalog, spark.conf.getAll)

    def is_there(self, spark: SparkSession) -> bool:
        """Asked for by name: to load a table that is not there, some catalogs answer with other errors."""
        space = ".".join(map(quoted, (self.name.catalog, *self.name.path[:-1])))
        try:
            return any(row[1] == self.name.path[-1] for row in _sql(spark, f"SHOW TABLES IN {space}"))
        except TableError as error:
            if _NO_NAMESPACE.search(str(error)):
                return False
            raise

    def make(self, spark: SparkSession) -> None:
        """Make the table if it is not there, without columns: its fence is raised before any are known."""
        if not self.is_there(spark):
            _sql(spark, f"CREATE TABLE IF NOT EXISTS {self.name.sql} USING iceberg")

    def fit(self, spark: SparkSession, fields: Sequence[Field]) -> Fitted:
        """Make the table fit for rows of these columns.

        Raises:
            SchemaError: it does not, and may not be changed.
        """
        there = self._columns(spark)
        wanted, needed = self.compare(spark, fields, there)
        for statement in alterations(self.name, needed, wanted):
            _sql(spark, statement)
        ours = {field.name.lower() for field in fields}
        required = tuple(each.name for each in there if each.is_required and each.name.lower() in ours)
        return Fitted(tuple((column.name, type_sql(column.type)) for column in needed.empty), required)

    def compare(
        self, spark: SparkSession, fields: Sequence[Field], there: Sequence[Column]
    ) -> tuple[list[str], Any]:
        """The partition fields to add, and the columns' `Fit`; raises `SchemaError`."""
        require_key(self._options.key, fields)
        needed = fit(fields, there, merge_schema=self._options.merge_schema)
        wanted = partition_fields(self._partition_by, fields)
        laid_out = self._partitions(spark) if there else []
        if wanted[: len(laid_out)] == laid_out and not self._has_files(spark):
            return wanted[len(laid_out) :], needed
        require_same(wanted, laid_out)
        return [], needed

    def inspect(self, spark: SparkSession, fields: Sequence[Field]) -> str | None:
        """What is to be said of a query's columns, None if nothing; changes nothing.

        Raises:
            SchemaError: the table cannot take them.
        """
        if not self.is_there(spark):
            require_key(self._options.key, fields)
            fit(fields, (), merge_schema=True)
            partition_fields(self._partition_by, fields)
            return f"the table {self.name.sql} is not there: it would be made"
        self.compare(spark, fields, self._columns(spark))
        return None

    def _columns(self, spark: SparkSession) -> list[Column]:
        _sql(spark, f"REFRESH TABLE {self.name.sql}")
        return [
            Column(each["name"], each["type"], not each["nullable"])
            for each in spark.table(self.name.sql).schema.jsonValue()["fields"]
        ]

    def _partitions(self, spark: SparkSession) -> list[str]:
        """As Spark describes them: in one way if all are plain columns, else in another."""
        found: list[str] = []
        section = ""
        for name, kind, _ in _sql(spark, f"DESCRIBE TABLE {self.name.sql}"):
            if name.startswith("# ") and name != "# col_name":
                section = name
            elif section == _PARTITIONS[0] and name:
                found.append(kind)
            elif section == _PARTITIONS[1] and name and not name.startswith("#"):
                found.append(name)
        return [each if "`" in each else _quoted_column(each) for each in found]

    def _has_files(self, spark: SparkSession) -> bool:
        statement = f"SELECT 1 FROM {self.name.of('files')} LIMIT 1"  # noqa: S608 - quoted
        return bool(_sql(spark, statement))


class Fitted:
    """How a batch's frame gets the table's columns, and what those ask of its rows."""

    def __init__(self, empty: tuple[tuple[str, str], ...], required: tuple[str, ...] = ()) -> None:
        """`empty` are those that the query has not, with their types; `required` those that take no NULL."""
        self._empty = empty
        self.conditions = tuple(
            Condition(f"NOT NULL {name}", f"{quoted(name)} IS NOT NULL") for name in required
        )

    def frame(self, frame: DataFrame) -> DataFrame:
        """The frame, with a NULL for each column that it has not."""
        from pyspark.sql import functions as sql  # noqa: PLC0415 - no manager pays for it

        nulls = {name: sql.lit(None).cast(kind) for name, kind in self._empty}
        return frame.withColumns(nulls) if nulls else frame  # at once: Spark analyses the plan at each call


def _quoted_column(field: str) -> str:
    """`days(ts)` with its column in backticks, as `layout` has it."""
    head, bracket, rest = field.partition("(")
    if not bracket:
        return quoted(field)
    *size, column = rest.removesuffix(")").split(", ")
    return f"{head}({', '.join([*size, quoted(column)])})"


def _sql(spark: SparkSession, statement: str) -> list[Any]:
    try:
        return list(spark.sql(statement).collect())
    except Exception as error:
        raise TableError(f"{said(error)} (in: {statement})") from error
