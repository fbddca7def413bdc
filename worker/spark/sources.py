"""A task's Kafka sources, asked before its query is: what is not there is told at once, and by its name.

Spark asks the brokers in the first batch, three times for a minute each, and its errors name neither the
topic nor the offsets. Behind Spark Connect there is no client of Kafka's to ask with: Spark's word is all.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import msgspec

from worker.lag.missing import Read, missing
from worker.lag.offset_log import of_source, offsets_of
from worker.query_engine import QueryError
from worker.spark.backend import Question

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from definition.document import Definition
    from definition.source import Source
    from worker.lag.offset_log import Offsets
    from worker.spark.backend import Brokers, Watching
    from worker.spark.checkpoint import CheckpointFolder


TOPICS_FILE: Final = "sparkherd-topics.json"
"""In a checkpoint: the ids of the topics that it is about. Spark leaves it alone."""
PATIENCE: Final = {"kafka.default.api.timeout.ms": "20000", "kafka.request.timeout.ms": "15000"}
"""How long Spark's source waits for brokers where nobody else can ask them, in ms."""
ATTEMPTS: Final = "fetchOffset.numRetries"
"""How often it asks them before its query fails; despite the name the first time counts."""


def with_patience(definition: Definition) -> Definition:
    """The definition with sources that fail within half a minute if no broker answers, rather than in three.

    What a source says itself about that stays.
    """

    def bounded(source: Source) -> Source:
        given = {name.lower() for name in source.options}
        added = {} if given & {name.lower() for name in PATIENCE} else dict(PATIENCE)
        if ATTEMPTS.lower() not in given:
            added[ATTEMPTS] = "1"
        return msgspec.structs.replace(source, options={**source.options, **added})

    if definition.source is not None:
        source = definition.source
        return msgspec.structs.replace(definition, source=bounded(source) if source.is_kafka else source)
    sources = {view: bounded(each) if each.is_kafka else each for view, each in definition.sources.items()}
    return msgspec.structs.replace(definition, sources=sources)


def kafka_sources(definition: Definition) -> Iterator[tuple[str, Source]]:
    """The sources that stream from Kafka, each with its place in the definition; an entry point has none."""
    for view, source in definition.views.items():
        if source.is_kafka and not source.static:
            yield "source" if definition.source is not None else f"sources.{view}", source


def committed_offsets(folder: CheckpointFolder) -> list[Offsets]:
    """Where the last finished batch ended; nothing before the first."""
    last = folder.last("commits")
    text = None if last is None else folder.read(f"offsets/{last}")
    return [] if text is None else offsets_of(text)


def require_sources(
    brokers: Brokers | None, definition: Definition, checkpoint: CheckpointFolder, at: Callable[[str], None]
) -> None:
    """See that brokers answer and have what a query that goes on from `checkpoint` would read.

    Args:
        brokers: who asks; None if nobody can.
        definition: with its references resolved.
        checkpoint: the task's.
        at: is told which source's brokers it comes to, for they may have to be waited for.

    Raises:
        QueryError: names the source, and what is not there.
    """
    sources = list(kafka_sources(definition))
    if brokers is None or not sources:
        return
    committed, planned = committed_offsets(checkpoint), _planned_offsets(checkpoint)
    noted = _noted(checkpoint)
    found: dict[str, str] = {}
    for path, source in sources:
        at(f"the brokers of {path}")
        own = Read(of_source(committed, source.options), of_source(planned, source.options), noted)
        found |= require_topics(brokers, path, source, own if committed else None)
    if found != noted:
        checkpoint.create(TOPICS_FILE, json.dumps(found))


def _planned_offsets(folder: CheckpointFolder) -> list[Offsets]:
    """Where the last batch that was begun is to end, finished or not."""
    last = folder.last("offsets")
    text = None if last is None else folder.read(f"offsets/{last}")
    return [] if text is None else offsets_of(text)


def _noted(checkpoint: CheckpointFolder) -> dict[str, str]:
    """The ids of topics when the task was started last."""
    try:
        return msgspec.json.decode(checkpoint.read(TOPICS_FILE) or "{}", type=dict[str, str])
    except msgspec.DecodeError:  # whoever wrote it was killed over it
        return {}


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


def require_topics(brokers: Brokers, path: str, source: Source, read: Read | None = None) -> dict[str, str]:
    """The ids of a source's topics, when all is there.

    Args:
        brokers: who asks.
        path: the source's place in the definition.
        source: with its references resolved.
        read: what its checkpoint says; None if it begins where the source says.

    Raises:
        QueryError: names what is not there.
    """
    try:
        topics = brokers.states(source.options, {}, Question.START)
    except QueryError as error:
        raise QueryError.at(path, error.cause, permanent=error.permanent, outage=error.outage) from None
    found = missing(source.options, read, topics)
    if found is not None:
        place = path if found.option is None else f"{path}.options.{found.option}"
        raise QueryError.at(place, found.found, permanent=found.permanent)
    ids = {topic: next((each.topic_id for each in states.values()), None) for topic, states in topics.items()}
    return {topic: topic_id for topic, topic_id in ids.items() if topic_id is not None}
