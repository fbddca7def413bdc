"""What keeps a query of Spark's from its end while brokers are away.

When a query ends, its thread closes the client by which the source asks for offsets, and Spark 4.1 lets that
wait for answers that are still due: as long as `default.api.timeout.ms`, a minute, in which no interrupt is
heard. A client that is closed at once waits for none, and whoever is closing it goes on.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from py4j.protocol import Py4JError

_SOURCE: Final = "org.apache.spark.sql.kafka010.KafkaMicroBatchStream"


def let_go_of_brokers(jvm: Any, stream: Any) -> None:
    """Close the clients of a query's Kafka sources at once.

    To be called of a query that was told to end and has not: it fails of it.

    Args:
        jvm: Py4J's view of the query's JVM.
        stream: Spark's execution of the query.
    """
    with suppress(Py4JError):  # of another Spark, which may keep them elsewhere
        sources = stream.sources()
        for number in range(sources.length()):
            source = sources.apply(number)
            if source.getClass().getName() == _SOURCE:
                _close(jvm, source)


def _close(jvm: Any, source: Any) -> None:
    admin = source.kafkaOffsetReader()._admin()  # noqa: SLF001 - Scala's name of a field that Java may see
    if admin is not None:
        admin.close(jvm.java.time.Duration.ofMillis(0))
