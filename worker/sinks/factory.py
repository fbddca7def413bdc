"""Opens what a definition's sink is written by; None for the formats of Spark's own, which have no fence."""

from __future__ import annotations

import importlib
from inspect import getattr_static, isabstract, isclass
from typing import TYPE_CHECKING, Final, TypeAlias

from definition.sinks.registry import UnusableFormat
from telemetry.foreign_errors import FAILURES, first_line_of, let_interrupts_through
from worker.sinks.base import Finding, Sink, SinkTask
from worker.sinks.closing import letting_go
from worker.sinks.errors import SchemaError, SinkError
from worker.sinks.fence import Owner
from worker.sinks.quarantine.elsewhere import QuarantinedSink, quarantine_owner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from definition.sink import Sink as SinkDefinition
    from definition.sinks.base import SinkFormat
    from worker.sinks.base import Connected, Field
    from worker.sinks.fence import FenceRow
    from worker.sinks.quarantine.plan import PuttingAside

    Session: TypeAlias = Callable[[], SparkSession]

NOBODY: Final = "(check)"
"""In place of a task's name, which has no brackets: sessions of ours are never taken for a task's."""


def open_sink(
    definition: SinkDefinition,
    owner: Owner,
    session: Session | None = None,
    aside: PuttingAside | None = None,
    connected: Connected | None = None,
) -> Sink | None:
    """The fenced sink of the definition, None if its format is one of Spark's.

    Args:
        definition: its `sink`, secrets filled in.
        owner: who writes.
        session: as in `worker.sinks.base.SinkTask`.
        aside: where rows go that are put aside; None if none are.
        connected: what `connect_sink` has returned for the same definition; the sink closes it.

    Raises:
        SinkError: its options are of no use on this worker, or what writes it is not here.
    """
    if (own := definition.fenced) is None:
        return None
    beside = None if aside is None else aside.beside
    options = definition.read_options()
    sink = _writer(own).open(SinkTask(owner, definition, options, session, beside, connected))
    if aside is None or aside.elsewhere is None:
        return sink
    other = open_sink(aside.elsewhere, quarantine_owner(owner), session)
    if other is None:
        raise SinkError(f"quarantine.format: {aside.elsewhere.shown} has no fence")
    return QuarantinedSink(sink, other, owner, limits=aside.limits, rules=aside.rules)


def connect_sink(definition: SinkDefinition, group: str) -> Connected | None:
    """What its fenced sink can do before it is known who writes; None if that is nothing.

    A method of that name that a sink of an earlier version has for itself is not ours to call.

    Raises:
        SinkError: the place cannot be reached, or as `open_sink`.
    """
    if (own := definition.fenced) is None:
        return None
    writer = _writer(own)
    if not isinstance(getattr_static(writer, "connect"), classmethod):
        return None
    try:
        return writer.connect(SinkTask(Owner(group, NOBODY, 0), definition, definition.read_options()))
    except SinkError:
        raise
    except FAILURES as error:
        raise SinkError(f"sink.format: {own.name}: {first_line_of(error)}") from error


def newest_fence(definition: SinkDefinition, owner: Owner, session: Session | None = None) -> FenceRow | None:
    """What the fenced sink of the definition knows of the owner's task; None without one, or of a new task.

    Raises:
        SinkError: the sink cannot be asked.
    """
    if (sink := open_sink(definition, owner, session)) is None:
        return None
    with letting_go(sink):
        return sink.newest()


def inspect_sink(
    definition: SinkDefinition, fields: Sequence[Field], group: str, session: Session | None = None
) -> Iterator[Finding]:
    """What the sink takes of these columns; of Spark's own sinks nobody knows before they are written to.

    Raises:
        SinkError: the place does not answer.
    """
    own = definition.fenced
    writer = Sink if own is None else _writer(own)
    task = SinkTask(Owner(group, NOBODY, 0), definition, definition.read_options(), session)
    try:
        yield from writer.inspect(task, fields)
    except SchemaError as error:
        yield Finding("sink", str(error))


def _writer(own: SinkFormat) -> type[Sink]:
    """What writes a format.

    Raises:
        SinkError: it cannot be imported, or is no sink.
    """
    if isinstance(own, UnusableFormat):
        raise SinkError(own.why)
    module, _, name = own.writer.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except FAILURES as error:
        let_interrupts_through(error)
        shown = first_line_of(error)
        raise SinkError(f"sink.format: {own.name}, by {own.writer}, cannot be imported: {shown}") from error
    if not (isclass(found) and issubclass(found, Sink)) or isabstract(found):
        raise SinkError(f"sink.format: {own.name}: {own.writer} is no sparkherd.Sink, or lacks methods")
    return found
