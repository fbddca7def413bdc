"""Why a query ended, on its way from the server: the one thing that gets here is the text of an exception."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from worker.executor import Ended
from worker.spark.causes import describe, failure

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

_SENT = re.compile(r"sparkherd:(\{.*\})")


def failure_text(ended: Ended) -> str:
    """What the process that does the batches raises: one line, which Spark puts into words of its own."""
    return f"sparkherd:{msgspec.json.encode(ended).decode()}"


def failure_of(exception: PySparkException) -> Ended:
    """What such a process has sent; else what Spark says itself."""
    for text in _SENT.findall(str(exception)):
        try:
            return msgspec.json.decode(text, type=Ended)
        except msgspec.DecodeError:
            continue
    return failure(describe(exception))
