"""Which formats of a definition's sink are sparkherd's own, fenced ones; all others are Spark's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from definition.sink import FILES_SINK, SQL_SINK
from worker.sinks.database import shown
from worker.sinks.files import FilesSink
from worker.sinks.sql import SqlSink

if TYPE_CHECKING:
    from definition.sink import Sink as SinkDefinition
    from worker.sinks.base import Sink
    from worker.sinks.fence import FenceRow, Owner


def open_sink(definition: SinkDefinition, owner: Owner) -> Sink | None:
    """The fenced sink of the definition, None if its format is one of Spark's.

    Raises:
        SinkError: its options are of no use on this worker.
    """
    if definition.format == SQL_SINK:
        return SqlSink(definition.sql_options(), owner)
    if definition.format == FILES_SINK:
        return FilesSink(definition.files_options(), owner)
    return None


def place_of(definition: SinkDefinition) -> str:
    """Where the sink is, as a person may see it; its format if it is one of Spark's."""
    if definition.format == SQL_SINK:
        return shown(definition.sql_options().url)
    if definition.format == FILES_SINK:
        return definition.files_options().path
    return f"the sink {definition.shown}"


def newest_fence(definition: SinkDefinition, owner: Owner) -> FenceRow | None:
    """What the fenced sink of the definition knows of the owner's task; None without one, or of a new task.

    Raises:
        SinkError: the sink cannot be asked.
    """
    if (sink := open_sink(definition, owner)) is None:
        return None
    try:
        return sink.newest()
    finally:
        sink.close()
