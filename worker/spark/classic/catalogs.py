"""The catalogs of a session that is over: Iceberg's have connections of their own in each session."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaClass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def close_catalogs(session: SparkSession, query: Any = None) -> None:
    """Have them closed, where there is Java of ours that can: each start of a query would leave some open.

    What cannot be closed, such as in a JVM that is gone, is left.

    Args:
        session: whose catalogs.
        query: Java's own one that has run there, in a clone of the session with catalogs of its own.
    """
    jvm: Any = session._jvm  # noqa: SLF001 - where PySpark keeps it
    with contextlib.suppress(Exception):
        found = jvm.sparkherd.iceberg.Catalogs
        if isinstance(found, JavaClass):
            found.close(session._jsparkSession)  # noqa: SLF001 - likewise
            if query is not None:
                found.close(query.streamingQuery().sparkSessionForStream())
