"""What Py4J keeps of a query whose batches the JVM calls, let go of once the query is over."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.sql.utils import ForeachBatchFunction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class CallbackLine:
    """The connection over which a query's thread calls its batches: closes it once the query is over.

    Nobody else does. Py4J opens one for each thread that calls, and keeps it for ever: without this every
    start of a query would leave a thread and a socket behind on either side.
    """

    def __init__(self) -> None:
        self._client: Any = None
        self._line: Any = None

    def note(self, frame: DataFrame) -> None:
        """To be called by the query, with a batch: Java answers in the thread that has called.

        Without pinned threads (`PYSPARK_PIN_THREAD=false`) no thread has one of its own.
        """
        if self._client is not None:
            return
        with contextlib.suppress(Py4JError):
            gateway = frame.sparkSession.sparkContext._gateway  # noqa: SLF001 - where PySpark keeps it
            self._client = gateway.java_gateway_server.getCallbackClient()  # type: ignore[union-attr]
            self._line = self._client.getPerThreadConnection()

    def close(self) -> None:
        """The query's thread calls no more."""
        line, self._line = self._line, None
        if line is not None:
            with contextlib.suppress(Exception):  # a JVM that is gone has none
                line.shutdown()
                self._client.connectionStopped(line)


def forget_functions(session: SparkSession) -> None:
    """Let go of the functions that were given to `foreachBatch` in that session, and of all they hold.

    Py4J keeps them until the JVM has collected its side, which it does when its memory wants it, not when
    that of this process grows. The JVM in turn keeps what they hold of it. Whoever is called all the same is
    not found, and the call fails.
    """
    pool: Any = session.sparkContext._gateway.gateway_property.pool  # type: ignore[union-attr]  # noqa: SLF001
    with pool.lock:
        functions = [(key, kept) for key, kept in pool.dict.items() if isinstance(kept, ForeachBatchFunction)]
        for key, kept in functions:
            if kept.session is session:
                del pool[key]
