"""What can be done about rows that are put aside, by where they are and where they would go; rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from definition.sinks.files import FILES_SINK
from definition.sinks.sql import SQL_SINK
from worker.sinks.base import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from definition.sink import Sink

_NO_REPLAY: Final = (
    "takes the batches of its task's query and no other rows: rows that are put aside can be looked at and"
    " discarded, and not be played again"
)
_LOOK_ONLY: Final = (
    "has rows in files, out of which none can be taken: they can be looked at, and neither be played again"
    " nor discarded; sql, delta and iceberg can do both"
)
_NOTHING: Final = (
    "is none of the formats (sql, delta, iceberg, fenced_files) whose rows can be looked at by their task:"
    " they can neither be listed nor played again nor discarded"
)


def reach(sink: Sink | None, place: Sink) -> Iterator[Finding]:
    """What somebody should know who puts rows aside there, and may want them back.

    Args:
        sink: of the task's rows.
        place: the quarantine elsewhere.
    """
    if not is_readable(place):
        yield Finding("quarantine.format", _NOTHING, is_fine=True)
    elif place.format == FILES_SINK:
        yield Finding("quarantine.format", _LOOK_ONLY, is_fine=True)
    elif sink is not None and sink.format == FILES_SINK:
        yield Finding("sink.format", _NO_REPLAY, is_fine=True)


def is_readable(place: Sink) -> bool:
    """Whether its rows can be looked at: by a database, by Spark as files, or as a table that it has."""
    return place.format in {SQL_SINK, FILES_SINK, "delta"} or place.table is not None
