"""What a session leaves at Spark's own listener bus, which lives as long as the JVM.

The first query of a session registers a bus for listeners of its queries there. Nothing in Spark takes it
away: a session is not closed, only forgotten. Every start would leave one behind, which hears of every event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRAIN_MS = 1000
"""How long listeners of an entry point's own may take to hear of the query's end."""


def remove_listener_bus(session: SparkSession) -> None:
    """Take the session's bus away; none of its queries may run any more. Blocks for some calls to Spark."""
    java: Any = session._jsparkSession  # noqa: SLF001 - where PySpark keeps it
    context, queries = java.sparkContext(), java.streams()
    bus = queries.getClass().getDeclaredField("listenerBus")
    bus.setAccessible(True)
    if len(queries.listListeners()):
        context.listenerBus().waitUntilEmpty(DRAIN_MS)
    context.removeSparkListener(bus.get(queries))
