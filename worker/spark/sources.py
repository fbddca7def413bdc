"""A task's Kafka sources, asked before its query is: what is not there is told at once, and by its name.

Spark asks the brokers in the first batch, three times for a minute each, and its errors name neither the
topic nor the offsets. Behind Spark Connect there is no client of Kafka's to ask with: Spark's word is all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from worker.lag.missing import missing
from worker.query_engine import QueryError
from worker.spark.backend import Question
from worker.spark.source_offsets import SOURCES_FILE, Noted, SourceOffsets, kafka_sources, noted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from definition.document import Definition
    from definition.source import Source
    from worker.lag.measure import PartitionState
    from worker.lag.missing import Read, Topics
    from worker.lag.offset_log import Order
    from worker.spark.backend import Brokers, Watching
    from worker.spark.checkpoint import CheckpointFolder


PATIENCE: Final = {"kafka.default.api.timeout.ms": "20000", "kafka.request.timeout.ms": "15000"}
"""How long Spark's source waits for brokers where nobody else can ask them, in ms."""
ATTEMPTS: Final = "fetchOffset.numRetries"
"""How often it asks them before its query fails; despite the name the first time counts."""


def with_patience(definition: Definition) -> Definition:
    """The definition with sources that fail within half a minute if no broker answers, rather than in three.

    What a source says itself about that stays.
    """

    def bounded(_: str, source: Source) -> Source:
        if not source.is_kafka:
            return source
        given = {name.lower() for name in source.options}
        added = {} if given & {name.lower() for name in PATIENCE} else dict(PATIENCE)
        if ATTEMPTS.lower() not in given:
            added[ATTEMPTS] = "1"
        return msgspec.structs.replace(source, options={**source.options, **added})

    return definition.with_sources(bounded)


def require_sources(
    brokers: Brokers | None,
    definition: Definition,
    checkpoint: CheckpointFolder,
    order: Order,
    at: Callable[[str], None],
) -> None:
    """See that brokers answer and have what a query that goes on from `checkpoint` would read.

    Args:
        brokers: who asks; None if nobody can.
        definition: with its references resolved.
        checkpoint: the task's.
        order: the places of the sources in the order of the plan; empty if that is unknown.
        at: is told which source's brokers it comes to, for they may have to be waited for.

    Raises:
        QueryError: names the source, and what is not there.
    """
    sources = list(kafka_sources(definition))
    if brokers is None or not sources:
        return
    before = noted(checkpoint)
    offsets = SourceOffsets.of(checkpoint, before.topics)
    topics: dict[str, dict[str, str]] = {}
    for path, source in sources:
        at(f"the brokers of {path}")
        topics[path] = require_topics(brokers, path, source, offsets.reads(path, definition, order))
    now = Noted(list(order), topics)
    if now != before:
        checkpoint.create(SOURCES_FILE, msgspec.json.encode(now).decode())


def watch_sources(brokers: Brokers | None, definition: Definition) -> Sequence[Watching]:
    """Look after the clusters that a running query reads from.

    Args:
        brokers: who asks; None if nobody can.
        definition: with its references resolved.
    """
    if brokers is None:
        return ()
    watched: list[Watching] = []
    try:
        watched.extend(brokers.watch(source.options) for _, source in kafka_sources(definition))
    except BaseException:
        for each in watched:
            each.close()
        raise
    return watched


def require_topics(brokers: Brokers, path: str, source: Source, reads: Sequence[Read] = ()) -> dict[str, str]:
    """The ids of a source's topics, when all is there.

    Args:
        brokers: who asks.
        path: the source's place in the definition.
        source: with its references resolved.
        reads: what its checkpoint says, of each time that it is read; nothing if it has not begun.

    Raises:
        QueryError: names what is not there.
    """
    try:
        topics = answered(brokers.states(source.options, {}, Question.START))
    except QueryError as error:
        raise QueryError.at(path, error.cause, permanent=error.permanent, outage=error.outage) from None
    found = missing(source.options, reads, topics)
    if found is not None:
        place = path if found.option is None else f"{path}.options.{found.option}"
        raise QueryError.at(place, found.found, permanent=found.permanent)
    ids = {topic: next((each.topic_id for each in states.values()), None) for topic, states in topics.items()}
    return {topic: topic_id for topic, topic_id in ids.items() if topic_id is not None}


def answered(topics: Mapping[str, Mapping[int, PartitionState | None]]) -> Topics:
    """What brokers say of topics, if they answer for all partitions of them.

    Raises:
        QueryError: there is one that none of them answers for. Spark would wait for it, and say less.
    """
    found: dict[str, dict[int, PartitionState]] = {topic: {} for topic in topics}
    for topic, partitions in topics.items():
        for number, state in partitions.items():
            if state is None:
                cause = f"topic {topic}, partition {number} has no leader, so no broker answers for it"
                raise QueryError(f"{cause}; the task goes on by itself when there is one", outage=True)
            found[topic][number] = state
    return found
