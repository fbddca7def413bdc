"""The Spark that a worker's settings ask for, brought up or reached."""

from __future__ import annotations

import logging
import warnings
from typing import TYPE_CHECKING

from pyspark.logger import PySparkLogger

from worker.query_engine import QueryError

if TYPE_CHECKING:
    from worker.spark.backend import SparkBackend
    from worker.spark.settings import SparkSettings


def open_backend(settings: SparkSettings) -> SparkBackend:
    """The backend that the settings ask for; takes seconds.

    Raises:
        QueryError: it cannot be had; says what to change.
    """
    _quieten_pyspark()
    if settings.remote is None:
        from worker.spark.classic.backend import ClassicBackend  # noqa: PLC0415 - only the one that is used

        return ClassicBackend.open(settings)
    try:
        from worker.spark.connect.backend import ConnectBackend  # noqa: PLC0415 - likewise; it needs more packages
    except ImportError as error:
        raise QueryError(
            f"--spark-remote needs Spark Connect's client: pip install 'sparkherd[connect]' ({error})"
        ) from None
    return ConnectBackend.open(settings, settings.remote)


def _quieten_pyspark() -> None:
    """What it says of pandas, and of failures that become tasks' causes, is not for the worker's log."""
    warnings.filterwarnings(
        "ignore", message="PySpark does not yet fully support pandas", category=FutureWarning
    )
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
