"""A task's Kafka sources, asked before its query is: what is not there is told at once, and by its name.

Spark asks the brokers in the first batch, three times for a minute each, and its errors name neither the
topic nor the offsets. Behind Spark Connect there is no client of Kafka's to ask with: Spark's word is all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import structlog

from definition.options import lowered, written
from definition.reading import path_to
from worker.lag.missing import id_of, missing, wanted_besides
from worker.lag.subscription import assigned_to
from worker.query_engine import QueryError
from worker.spark.kafka.brokers import Question
from worker.spark.kafka.source_offsets import SOURCES_FILE, Noted, SourceOffsets, read_note, read_sources

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from definition.document import Definition
    from definition.source import Source
    from worker.lag.measure import PartitionState
    from worker.lag.missing import Ids, Read, Topics
    from worker.lag.offset_log import Order
    from worker.spark.checkpoint import CheckpointFolder
    from worker.spark.kafka.brokers import Brokers, Watching


log = structlog.get_logger(__name__)

PATIENCE: Final = {"kafka.default.api.timeout.ms": "20000", "kafka.request.timeout.ms": "15000"}
"""How long Spark's source waits for brokers where nobody else can ask them, in ms."""
ATTEMPTS: Final = "fetchOffset.numRetries"
"""How often it asks them before its query fails; despite the name the first time counts."""


class TopicId(NamedTuple):
    """What brokers say of a topic: the id of their cluster, its name, and its own id."""

    cluster: str
    topic: str
    topic_id: str


def with_patience(definition: Definition) -> Definition:
    """The definition with sources that fail within half a minute if no broker answers, rather than in three.

    What a source says itself about that stays.
    """

    def bounded(_: str, source: Source) -> Source:
        if not source.is_kafka:
            return source
        given = lowered(source.options).keys()
        added = {} if given & lowered(PATIENCE).keys() else dict(PATIENCE)
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
        at: is told what it comes to, for that may have to be waited for: each source's brokers, and the
            checkpoint. Raises if nobody wants the start any more.

    Raises:
        QueryError: names the source, and what is not there.
    """
    sources = list(read_sources(definition, order))
    if brokers is None or not sources:
        return
    note = read_note(checkpoint)
    if note is None:
        about = {"checkpoint": checkpoint.place, "file": SOURCES_FILE}
        log.warning("a note cannot be read; topics made anew since are not known by their ids", **about)
    before = note or Noted()
    offsets = SourceOffsets.of(checkpoint, before.ids)
    ids: set[TopicId] = set()
    gone: set[str] = set()
    for path, source in sources:
        at(f"the brokers of {path}")
        reads = offsets.reads(path, definition, order)
        topics = _required(brokers, path, source, reads)
        ids |= _ids_of(topics)
        gone |= {topic for read in reads for topic in (*read.begins, *read.planned)} - topics.keys()
    now = Noted(list(order), _merged(before.ids, ids, offsets.topics - gone))
    if now != note:
        at(f"the checkpoint {checkpoint.place}")
        checkpoint.create(SOURCES_FILE, msgspec.json.encode(now).decode())


def _merged(before: Ids, now: set[TopicId], wanted: set[str]) -> dict[str, dict[str, list[str]]]:
    """What brokers say now counts, and what they do not tell stays, of topics that are wanted."""
    told = {(each.cluster, each.topic) for each in now}
    kept = {
        TopicId(cluster, topic, topic_id)
        for cluster, topics in before.items()
        for topic, ids in topics.items()
        for topic_id in ids
        if topic in wanted and (cluster, topic) not in told
    }
    merged: dict[str, dict[str, list[str]]] = {}
    for cluster, topic, topic_id in sorted(now | kept):
        merged.setdefault(cluster, {}).setdefault(topic, []).append(topic_id)
    return merged


def watch_sources(brokers: Brokers | None, definition: Definition, order: Order = ()) -> Sequence[Watching]:
    """Look after the clusters that a running query reads from.

    Args:
        brokers: who asks; None if nobody can.
        definition: with its references resolved.
        order: as for `require_sources`.
    """
    if brokers is None:
        return ()
    watched: list[Watching] = []
    try:
        watched.extend(brokers.watch(source.options) for _, source in read_sources(definition, order))
    except BaseException:
        for each in watched:
            each.close()
        raise
    return watched


def require_topics(brokers: Brokers, path: str, source: Source) -> None:
    """See that brokers answer and have what a source asks for that has not begun.

    Args:
        brokers: who asks.
        path: the source's place in the definition.
        source: with its references resolved.

    Raises:
        QueryError: names what is not there.
    """
    _required(brokers, path, source, ())


def _required(brokers: Brokers, path: str, source: Source, reads: Sequence[Read]) -> Topics:
    """A source's topics, when all is there that it reads, or its loss was accepted."""
    besides = wanted_besides(source.options, reads)
    try:
        topics = answered(brokers.states(source.options, {}, Question.START))
        known = topics
        if besides:
            others = answered(brokers.states(assigned_to(source.options, besides), {}, Question.START))
            known = {name: {**others.get(name, {}), **topics.get(name, {})} for name in {**others, **topics}}
    except QueryError as error:
        raise _placed(error, path, source) from None
    found = missing(source.options, reads, known)
    if found is not None:
        place = path if found.option is None else path_to(f"{path}.options", found.option)
        raise QueryError.at(place, found.found, permanent=found.permanent)
    return topics


def _placed(error: QueryError, path: str, source: Source) -> QueryError:
    """With its place in the definition; one that is about an option of any source has that one's name."""
    if error.path is None:
        return QueryError.at(path, error.cause, permanent=error.permanent, outage=error.outage)
    fault = error.cause.removeprefix(f"{error.path}: ")
    place = path_to(f"{path}.options", written(source.options, error.path))
    return QueryError.at(place, fault, permanent=error.permanent, outage=error.outage)


def _ids_of(topics: Topics) -> set[TopicId]:
    """As far as brokers tell them."""
    ids = ((topic, *id_of(states)) for topic, states in topics.items())
    return {
        TopicId(cluster, topic, topic_id)
        for topic, cluster, topic_id in ids
        if cluster is not None and topic_id is not None
    }


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
