"""From a definition to a running query; called in threads, several at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import structlog

from protocol.messages.tasks import EARLIEST
from protocol.resets import begin_with
from worker.executor import StartError
from worker.sinks.base import Owner
from worker.spark import entrypoint
from worker.spark.batch import Gate
from worker.spark.checkpoint import CheckpointFolder
from worker.spark.context import TaskContext
from worker.spark.reader import read
from worker.spark.writer import Outlet, apply_trigger, spark_sink

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from protocol.definition import Definition
    from protocol.messages.tasks import TaskReset
    from worker.executor import QuerySpec
    from worker.spark.settings import SparkSettings

log = structlog.get_logger(__name__)

_POOL = "spark.scheduler.pool"


@dataclass(frozen=True, slots=True)
class Launched:
    """A query that was started, and what leads to its sink."""

    handle: StreamingQuery
    gate: Gate
    outlet: Outlet


def launch(
    spark: SparkSession, spec: QuerySpec, settings: SparkSettings, may_write: Callable[[], bool]
) -> Launched:
    """Start the task's query in a session of its own, its fence raised before it reads anything.

    Raises:
        StartError, SinkError: and whatever Spark raises; nothing is left running then.
    """
    resets = 0 if spec.reset is None else spec.reset.number
    owner = Owner(spec.group, spec.task, spec.token, resets)
    gate = Gate(may_write, partial(_tell_of_refusal, owner))
    checkpoint = CheckpointFolder(spark, settings.checkpoint(spec.group, spec.task, resets))
    outlet = Outlet(owner, gate, checkpoint.mark)
    try:
        session = _session(spark, spec.definition)
        definition = _begun_anew(spec.definition, spec.reset)
        context = TaskContext(session, definition, checkpoint.place, outlet)
        writer = _writer(context, outlet, settings).queryName(spec.task)
        checkpoint.verify(owner, outlet.claimed)
        return Launched(_start(session, writer, spec.task, checkpoint.place), gate, outlet)
    except BaseException:
        outlet.close()
        raise


def _tell_of_refusal(owner: Owner, by: str, why: str) -> None:
    """A write of a zombie that came to nothing: what an operator wants to count."""
    log.warning("write refused", group=owner.group, task=owner.task, token=owner.token, by=by, why=why)


def _begun_anew(definition: Definition, reset: TaskReset | None) -> Definition:
    """The definition with what a reset says about where its source, or its entry point, is to begin."""
    if reset is None:
        return definition
    if definition.source is not None:
        options = begin_with(definition.source.format, definition.source.options, reset.offsets)
        source = msgspec.structs.replace(definition.source, options=options)
        return msgspec.structs.replace(definition, source=source)
    given = {} if reset.offsets == EARLIEST else reset.offsets
    return msgspec.structs.replace(definition, options={**definition.options, **given})


def _session(spark: SparkSession, definition: Definition) -> SparkSession:
    session = spark.newSession()
    for key, value in definition.spark_conf.items():
        session.conf.set(key, value)
    return session


def _writer(context: TaskContext, outlet: Outlet, settings: SparkSettings) -> DataStreamWriter:
    definition = context.definition
    if definition.entrypoint is not None:
        writer = entrypoint.call(definition.entrypoint, settings.allow_entrypoint, context)
    else:
        writer = _declared(context, outlet)
    return apply_trigger(writer, definition.trigger)


def _declared(context: TaskContext, outlet: Outlet) -> DataStreamWriter:
    definition = context.definition
    if definition.sink is None:
        raise StartError("sink: is required with source")
    sink = outlet.claim(definition.sink)
    frame = read(context.spark, definition)
    writer = spark_sink(frame, definition.sink) if sink is None else outlet.write(frame, sink)
    return writer.outputMode(definition.output_mode)


def _start(session: SparkSession, writer: DataStreamWriter, task: str, checkpoint: str) -> StreamingQuery:
    """The query's own thread inherits the pool from the thread that starts it."""
    spark_context = session.sparkContext
    spark_context.setLocalProperty(_POOL, task)
    try:
        return writer.option("checkpointLocation", checkpoint).start()
    finally:
        spark_context._jsc.setLocalProperty(_POOL, None)  # noqa: SLF001 - the only way to unset one
