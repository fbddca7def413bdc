"""Which sources and sinks the Spark in the worker's own JVM has."""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING, Any

import structlog
from py4j.protocol import Py4JJavaError

from definition.sinks.registry import plugged_in
from protocol.connectors import PACKAGES, Formats

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = structlog.get_logger(__name__)

_REGISTER = "org.apache.spark.sql.sources.DataSourceRegister"
_IN_PYTHON = "pyspark_"
"""What the name of a module begins with that Spark looks for data sources in by itself."""


def formats_of(spark: SparkSession) -> Formats:
    """What Spark finds itself when a definition names a format, and what is plugged into the worker.

    Names that modules of Python bring are known to nobody before Spark has run them; where there is such a
    module, only what was looked for by name is known to be missing.
    """
    names = tuple(sorted({*_registered(spark), *plugged_in()}))
    in_python = any(each.name.startswith(_IN_PYTHON) for each in pkgutil.iter_modules())
    return Formats(names, tuple(PACKAGES) if in_python else None)


def _registered(spark: SparkSession) -> list[str]:
    jvm: Any = spark._jvm  # noqa: SLF001 - where PySpark keeps it
    loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    register = jvm.java.lang.Class.forName(_REGISTER, True, loader)  # noqa: FBT003 - Java's
    found = jvm.java.util.ServiceLoader.load(register, loader).iterator()
    names: list[str] = []
    while True:
        try:
            if not found.hasNext():
                return names
            names.append(str(found.next().shortName()).lower())
        except Py4JJavaError as error:  # of a jar that does not go with this Spark; the next one may
            log.warning("a connector cannot be loaded", why=str(error.java_exception))
