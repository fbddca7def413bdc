"""From a definition to the writer of its query: what Spark is told of source, SQL, sink and trigger."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from definition.resets import begin_with, offsets_of
from protocol.messages.tasks import EARLIEST
from worker.query_engine import QueryError
from worker.spark import entrypoint
from worker.spark.batches.batch_steps import BatchSteps, Reading
from worker.spark.columns import fields
from worker.spark.conditions import usable
from worker.spark.context import TaskContext
from worker.spark.expectations import dropped_by_spark, expected, sifting, with_conditions
from worker.spark.kafka.sources import with_patience
from worker.spark.query_output import apply_trigger
from worker.spark.reading.reader import read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from definition.document import Definition
    from definition.source import Source
    from protocol.messages.tasks import Offsets, TaskReset
    from worker.sinks.base import Condition, Field
    from worker.sinks.quarantine.plan import PuttingAside
    from worker.spark.backend import QuerySession, SparkBackend
    from worker.spark.query_output import ClaimedSink
    from worker.spark.reading.reader import Read
    from worker.spark.settings import SparkSettings
    from worker.spark.starts import StartSteps


def as_run(backend: SparkBackend, definition: Definition, reset: TaskReset | None) -> Definition:
    """A resolved definition as its query is planned by it.

    Args:
        backend: the Spark that is to run it; brokers that it cannot ask are waited for by the query itself.
        definition: with its references resolved.
        reset: the last one of the task.
    """
    begun = begun_anew(definition, reset)
    return with_patience(begun) if backend.brokers is None else begun


def begun_anew(definition: Definition, reset: TaskReset | None) -> Definition:
    """The definition with what a reset says about where its source, or its entry point, is to begin."""
    if reset is None:
        return definition
    if definition.entrypoint is None:
        return _sources_begun_anew(definition, reset.offsets)
    given = {} if reset.offsets == EARLIEST else reset.offsets
    return msgspec.structs.replace(definition, options={**definition.options, **given})


def _sources_begun_anew(definition: Definition, offsets: Offsets) -> Definition:
    """Each source with what the reset says of it; a static one has nowhere to begin."""

    def begun(view: str, source: Source) -> Source:
        own = offsets if definition.source is not None else offsets_of(view, offsets)
        options = source.options if source.static else begin_with(source.format or "", source.options, own)
        return msgspec.structs.replace(source, options=options)

    return definition.with_sources(begun)


def writer_of(
    session: QuerySession,
    definition: Definition,
    settings: SparkSettings,
    steps: StartSteps,
    aside: PuttingAside | None,
    *,
    found: Read | None = None,
) -> DataStreamWriter:
    """What is left is to start it; the fence of a fenced sink is raised.

    Args:
        session: the query's.
        definition: with its references resolved.
        settings: of this worker's Spark.
        steps: is told what may have to be waited for.
        aside: where rows go that are put aside; None if none are.
        found: what its sources and its SQL come to, if that session knows already.

    Raises:
        QueryError, SinkError: and whatever Spark or an entry point raises.
    """
    if definition.entrypoint is None:
        return apply_trigger(_declared(session, definition, steps, aside, found), definition.trigger)
    steps.at(f"the entry point {definition.entrypoint}")
    context = TaskContext(session.spark, definition, session.checkpoint.place, session.output)
    made = entrypoint.call(definition.entrypoint, settings.allow_entrypoint, context, session)
    return apply_trigger(made, definition.trigger)


def _declared(
    session: QuerySession,
    definition: Definition,
    steps: StartSteps,
    aside: PuttingAside | None,
    planned: Read | None,
) -> DataStreamWriter:
    """`planned` is what is known of its sources and its SQL already."""
    if definition.sink is None:
        raise QueryError("sink: is required with source")
    claim = session.output.claim(definition.sink, session.spark, aside)
    found = planned or read(session, definition, steps.at)
    frame = expected(session, found.result, definition.expect)
    steps.at(f"the sink {definition.sink.shown}")
    if claim is None:
        dropping = sifting(definition.expect, fields(frame))
        into = frame if dropping is None else dropped_by_spark(frame, dropping)
        writer = session.output.spark_sink(into, definition.sink)
    else:
        writer = _fenced(session, definition, found._replace(result=frame), claim, aside)
    return writer.outputMode(definition.output_mode)


def _fenced(
    session: QuerySession, definition: Definition, found: Read, claim: ClaimedSink, aside: PuttingAside | None
) -> DataStreamWriter:
    """A writer into a claimed sink; what that asks of rows is looked at with the expectations."""
    sifts = sum(each.sifts for each in definition.expect)
    columns = fields(found.result)
    asked = session.output.prepare(claim, columns)
    is_asked = aside is not None and aside.takes_refused
    conditions = usable(found.result, asked, sifts) if is_asked else ()
    doing = _steps(definition, found, columns, aside, conditions)
    into = with_conditions(found.result, conditions, sifts) if found.source is None else found.source
    return session.output.write(into, claim, columns, doing)


def _steps(
    definition: Definition,
    found: Read,
    columns: Sequence[Field],
    aside: PuttingAside | None,
    conditions: tuple[Condition, ...],
) -> BatchSteps:
    """What is to be done with each batch."""
    most = 0 if aside is None else aside.limits.rows
    reading = Reading(found.view, definition.sql, definition.expect, conditions)
    return BatchSteps(
        sifting=sifting(definition.expect, columns, most, conditions),
        reading=None if found.source is None else reading,
        most=most,
        is_elsewhere=aside is not None and aside.elsewhere is not None,
        conditions=conditions,
    )
