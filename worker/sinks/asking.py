"""Asks Java of ours beside Spark about a table, or has it do what Spark has no words for.

`connectors/` has that Java, and `worker.sinks.lake_jars` gives it to Spark.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from worker.sinks.errors import SinkError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

_NO_SOURCE = "DATA_SOURCE_NOT_FOUND"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, by the name of the package that it is about.

    `lake` is `delta` or `iceberg`, as its folder in `make jars` and its Java package are called.
    """

    lake: str

    @property
    def source(self) -> str:
        """The data source that is read where the JVM is a server's."""
        return f"sparkherd_{self.lake}_fence"

    def ask(self, spark: SparkSession, request: Mapping[str, Any]) -> dict[str, Any]:
        """Its answer; no job of Spark's is run for it.

        In the worker's own JVM it is called, which spares the planning of a query; behind Spark Connect there
        are DataFrames only.

        Args:
            spark: the session whose settings and catalogs count.
            request: in the words of the Java.

        Raises:
            SinkError: the jar is not there.
        """
        text = json.dumps(request)
        called = hasattr(spark, "_jsparkSession")
        answer: dict[str, Any] = json.loads(self._called(spark, text) if called else self._read(spark, text))
        return answer

    def _called(self, spark: SparkSession, text: str) -> str:
        from py4j.java_gateway import JavaClass  # noqa: PLC0415 - not needed where the JVM is a server's

        jvm: Any = spark._jvm  # noqa: SLF001 - where PySpark keeps it
        found = getattr(jvm.sparkherd, self.lake).FenceSource
        if not isinstance(found, JavaClass):
            raise SinkError(self._no_jar)
        return str(found.answer(spark._jsparkSession, text))  # noqa: SLF001 - likewise

    def _read(self, spark: SparkSession, text: str) -> str:
        from pyspark.errors import PySparkException  # noqa: PLC0415 - the sinks' rules are loaded without Spark

        try:
            return str(spark.read.format(self.source).option("request", text).load().collect()[0][0])
        except PySparkException as error:
            if _NO_SOURCE in str(error) and self.source in str(error):
                raise SinkError(self._no_jar) from error
            raise

    @property
    def _no_jar(self) -> str:
        jar = f"sparkherd-{self.lake}.jar"
        return (
            f"the sink {self.lake} needs {jar}: sparkherd's wheels have it, and `make jars` puts it into a"
            f" checkout; workers that are given {self.lake.capitalize()} by --packages or --jars take it from"
            " there, others are given it by --jars, too, and a Spark Connect server is at its start"
            " (`sparkherd doctor connectors` says where it is)"
        )
