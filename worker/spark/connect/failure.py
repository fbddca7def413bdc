"""Why a query ended, on its way from the server: the one thing that gets here is the text of an exception."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING

import msgspec

from worker.query_engine import QueryError
from worker.spark.causes import describe, failure

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

_SENT = re.compile(r"sparkherd:(\{.*\})")


def failure_text(ended: QueryError) -> str:
    """What the process that does the batches raises: one line, which Spark puts into words of its own."""
    return f"sparkherd:{msgspec.json.encode(asdict(ended)).decode()}"


def failure_of(exception: PySparkException) -> QueryError:
    """What such a process has sent; else what Spark says itself."""
    for text in _SENT.findall(str(exception)):
        try:
            return QueryError(**msgspec.json.decode(text))
        except (msgspec.DecodeError, TypeError):
            continue
    return failure(describe(exception))
