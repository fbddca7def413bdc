"""In which order a plan reads its streaming sources: that of the lines in the offset log of its query.

Spark makes a source of each streaming relation of the analysed plan, from the root down and from left to
right, and numbers them in that order (MicroBatchExecution). Relations that are the same become one source,
with as many lines as there are relations.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError

from worker.spark.reading.reader import PLACE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from worker.lag.offset_log import Order

_OF_TABLES: Final = "StreamingRelationV2"
"""The relations of sources that are told their options themselves, as Kafka's is."""
_RELATIONS: Final = frozenset({"StreamingRelation", _OF_TABLES})


def sources_of(frame: DataFrame) -> Order:
    """The places of the sources that a query reads; none if two of them are the same.

    Nor of a Spark whose plans are made of something else: without the order less is known, and no more.
    """
    try:
        streams = _streams(frame)
        if any(first.equals(second) for first, second in combinations(streams, 2)):
            return ()
        return [_place(each) for each in streams]
    except Py4JError:
        return ()


def _streams(frame: DataFrame) -> list[Any]:
    java: Any = frame._jdf  # noqa: SLF001 - where PySpark keeps it
    leaves = java.queryExecution().analyzed().collectLeaves()
    relations = [leaves.apply(number) for number in range(leaves.length())]
    return [each for each in relations if _kind(each) in _RELATIONS]


def _kind(relation: Any) -> str:
    return str(relation.getClass().getSimpleName())


def _place(relation: Any) -> str | None:
    place = relation.extraOptions().get(PLACE) if _kind(relation) == _OF_TABLES else None
    return None if place is None else str(place)
