"""Which Spark a worker gets: one of its own, or a session at a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.executor import QueryError
from worker.spark.logs import quieten_pyspark

if TYPE_CHECKING:
    from worker.spark.engine import Engine
    from worker.spark.settings import SparkSettings


def open_engine(settings: SparkSettings) -> Engine:
    """The engine that the settings ask for; takes seconds.

    Raises:
        QueryError: it cannot be had; says what to change.
    """
    if settings.remote is None:
        from worker.spark.classic.engine import ClassicEngine  # noqa: PLC0415 - only the one that is used

        return ClassicEngine.open(settings)
    quieten_pyspark()
    try:
        from worker.spark.connect.engine import ConnectEngine  # noqa: PLC0415 - likewise; it needs more packages
    except ImportError as error:
        raise QueryError(
            f"--spark-remote needs Spark Connect's client: pip install 'sparkherd[connect]' ({error})"
        ) from None
    return ConnectEngine.open(settings, settings.remote)
