"""What Spark has counted in passing, if it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Observation


def observed(observation: Observation) -> Mapping[str, Any] | None:
    """The figures of an observation whose frame was computed; None if Spark has none.

    It leaves them out together with what it finds need not be computed, as below `WHERE false`. They count
    too much where a part was computed twice.
    """
    try:
        return observation.get or None
    except (Py4JJavaError, PySparkException):  # of a row without columns
        return None
