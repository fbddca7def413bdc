"""What a checkpoint says of a task's Kafka sources, one by one.

The order of the sources is that of the plan, which only Spark knows, and only when the query is about to be
started. So each start notes it, for those who look at the task while it does not run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from worker.lag.missing import Read
from worker.lag.offset_log import furthest_behind, initial_of, of_place, offsets_of
from worker.query_engine import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from definition.document import Definition
    from definition.source import Source
    from worker.lag.missing import Ids
    from worker.lag.offset_log import Lines, Offsets, Order
    from worker.spark.checkpoint import CheckpointFolder

SOURCES_FILE: Final = "sparkherd-sources.json"
"""In a checkpoint: whose the lines of its offset log are, and what topics they are about."""


class Noted(msgspec.Struct, frozen=True, omit_defaults=True):
    """What starts have noted: the order of the plan, and the ids of topics by their cluster's and their name.

    The places of sources are not in it: a task whose sources are called otherwise goes on with its offsets.
    """

    order: list[str | None] = []
    ids: dict[str, dict[str, list[str]]] = {}


def kafka_sources(definition: Definition) -> Iterator[tuple[str, Source]]:
    """The sources that stream from Kafka, each with its place in the definition; an entry point has none."""
    for view, source in definition.views.items():
        if source.is_kafka and not source.static:
            yield definition.path_of(view), source


def read_sources(definition: Definition, planned: Order) -> Iterator[tuple[str, Source]]:
    """Of `kafka_sources` those that the query reads; all if the order of its plan is unknown."""
    return (found for found in kafka_sources(definition) if not planned or found[0] in planned)


def sources_read(definition: Definition, folder: CheckpointFolder) -> Iterator[tuple[str, Source]]:
    """Of `kafka_sources` those that the task read when it was started last.

    All, if it was not, or if its definition has other sources since.
    """
    order = noted(folder).order
    places = {definition.path_of(view) for view in definition.views}
    return read_sources(definition, order if places.issuperset(filter(None, order)) else ())


def noted(folder: CheckpointFolder) -> Noted:
    """What was noted; nothing if that cannot be read."""
    return read_note(folder) or Noted()


def read_note(folder: CheckpointFolder) -> Noted | None:
    """What was noted, None if it cannot be read; who goes on without it knows less, and nothing wrong.

    On local disks, whoever is killed over writing it may leave it with the checksum of the one before.
    """
    try:
        text = folder.read(SOURCES_FILE)
        return Noted() if text is None else msgspec.json.decode(text, type=Noted)
    except (QueryError, msgspec.DecodeError):
        return None


def is_order_needed(definition: Definition) -> bool:
    """Whether a line of the offset log can be another source's than the one that is looked for."""
    streams = [source for source in definition.views.values() if not source.static]
    return len(streams) > 1 and any(source.is_kafka for source in streams)


def order_of(definition: Definition, planned: Order, count: int) -> Order:
    """Whose each of `count` lines is.

    Args:
        definition: the task's.
        planned: the order of the plan, empty if it is unknown; with a single source it is not needed.
        count: of lines.
    """
    streams = [view for view, source in definition.views.items() if not source.static]
    return [definition.path_of(streams[0])] * count if len(streams) == 1 else planned


def committed_offsets(folder: CheckpointFolder) -> Lines:
    """Where the last finished batch ended; nothing before the first."""
    return _entry(folder, folder.last("commits"))


def committed_by_source(folder: CheckpointFolder, definition: Definition) -> dict[str, Offsets]:
    """Where the last finished batch ended, by the place of the source, as far as that is known."""
    return by_source(committed_offsets(folder), definition, noted(folder).order)


def by_source(lines: Lines, definition: Definition, planned: Order) -> dict[str, Offsets]:
    """What the lines say, by the place of the source; `planned` is the order of the plan, as far as known."""
    order = order_of(definition, planned, len(lines))
    found = {path: of_place(lines, order, path) for path, _ in kafka_sources(definition)}
    return {path: furthest_behind(own) for path, own in found.items() if own}


@dataclass(frozen=True)
class SourceOffsets:
    """The lines of a checkpoint's logs: where the last finished batch ended, and the last one that was begun.

    `initial` is where each source has begun, which it keeps by itself, and which counts until a first batch
    is finished: Spark goes by its options only before it has begun. `ids` are those that topics had.
    """

    committed: Lines
    planned: Lines
    initial: Lines
    ids: Ids

    @classmethod
    def of(cls, folder: CheckpointFolder, ids: Ids) -> SourceOffsets:
        """As they are now."""
        committed = committed_offsets(folder)
        initial = [] if committed else _initial(folder)
        return cls(committed, _entry(folder, folder.last("offsets")), initial, ids)

    @property
    def topics(self) -> set[str]:
        """All that the lines are about."""
        lines = (*self.committed, *self.planned, *self.initial)
        return {topic for line in lines for topic in line or ()}

    def reads(self, place: str, definition: Definition, planned: Order) -> Sequence[Read]:
        """What is known of a source, of each time that the query reads it; nothing if it has not begun.

        Args:
            place: the source's.
            definition: the task's.
            planned: the order of the plan; empty if it is unknown, and then not much is known here.
        """
        logs = self.committed, self.planned, self.initial
        order = order_of(definition, planned, max(map(len, logs)))
        if any(len(log) not in {0, len(order)} for log in logs[:2]) or len(self.initial) > len(order):
            return [Read()]
        own = (of_place([*log, *[None] * (len(order) - len(log))], order, place) for log in logs)
        return [
            Read(done or initial or {}, begun or {}, self.ids)
            for done, begun, initial in zip(*own, strict=True)
            if self.planned or initial is not None
        ]


def _entry(folder: CheckpointFolder, number: int | None) -> Lines:
    text = None if number is None else folder.read(f"offsets/{number}")
    return [] if text is None else offsets_of(text)


def _initial(folder: CheckpointFolder) -> Lines:
    last = folder.last("sources")
    texts = [folder.read(f"sources/{number}/0") for number in range(0 if last is None else last + 1)]
    return [None if text is None else initial_of(text) for text in texts]
