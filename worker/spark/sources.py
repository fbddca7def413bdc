"""A task's Kafka sources, asked before its query is: what is not there is told at once, and by its name.

Spark asks the brokers in the first batch, three times for a minute each, and its errors name neither the
topic nor the offsets. Behind Spark Connect there is no client of Kafka's to ask with: Spark's word is all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.lag.missing import missing
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
    committed = committed_offsets(checkpoint)
    for path, source in sources:
        at(f"the brokers of {path}")
        _require(brokers, path, source, of_source(committed, source.options) if committed else None)


def watch_sources(brokers: Brokers | None, definition: Definition) -> Sequence[Watching]:
    """Look after the clusters that a running query reads from.

    Args:
        brokers: who asks; None if nobody can.
        definition: with its references resolved.
    """
    if brokers is None:
        return ()
    return [brokers.watch(source.options) for _, source in kafka_sources(definition)]


def _require(brokers: Brokers, path: str, source: Source, committed: Offsets | None) -> None:
    try:
        topics = brokers.states(source.options, {}, Question.START)
    except QueryError as error:
        cause = f"{path}: {error.cause}"
        raise QueryError(cause, permanent=error.permanent, outage=error.outage) from None
    found = missing(source.options, committed, topics)
    if found is not None:
        place = path if found.option is None else f"{path}.options.{found.option}"
        raise QueryError(f"{place}: {found.found}", permanent=found.permanent)
