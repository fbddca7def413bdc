"""Which sources and sinks the Spark behind a server has, as far as it can be asked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from definition.sinks.registry import plugged_in
from protocol.connectors import PACKAGES, Formats
from worker.spark.connect.sessions import asking

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

_MISSING = re.compile(
    r"\[DATA_SOURCE_NOT_FOUND\]|_DATA_SOURCE_NOT_ENABLED\]|Failed to find (?:the )?data source"
)


def formats_of(session: SparkSession) -> Formats:
    """The connectors that we know of and that are there: a server does not tell them all.

    Raises:
        ConnectionLostError, SessionClosedError: it does not answer.
    """
    found = (name for name in PACKAGES if _has(session, name))
    own = plugged_in()
    return Formats((*found, *own), (*PACKAGES, *own))


def _has(session: SparkSession, name: str) -> bool:
    """Without options none can be read; what is missing says so in other words."""
    try:
        with asking():
            session.read.format(name).load().schema  # noqa: B018 - the question is what it raises
    except PySparkException as error:
        return _MISSING.search(str(error)) is None
    return True
