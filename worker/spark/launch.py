"""From a definition to a running query; called in threads, several at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from protocol.messages.tasks import EARLIEST
from protocol.resets import begin_with
from worker.executor import StartError
from worker.secrets import Secrets
from worker.sinks.marks import Owner
from worker.spark import entrypoint
from worker.spark.context import TaskContext
from worker.spark.reader import read
from worker.spark.writer import apply_trigger, spark_sink

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from protocol.definition import Definition
    from protocol.messages.tasks import TaskReset
    from worker.executor import QuerySpec
    from worker.spark.engine import Engine, Handle, Site
    from worker.spark.settings import SparkSettings


@dataclass(frozen=True, slots=True)
class Launched:
    """A query that was started, and where."""

    handle: Handle
    site: Site


def launch(
    engine: Engine, spec: QuerySpec, settings: SparkSettings, may_write: Callable[[], bool]
) -> Launched:
    """Start the task's query in a session of its own, its fence raised before it reads anything.

    Raises:
        StartError, SinkError: and whatever Spark raises; nothing is left running then.
    """
    resets = 0 if spec.reset is None else spec.reset.number
    owner = Owner(spec.group, spec.task, spec.token, resets)
    checkpoint = settings.checkpoint(spec.group, spec.task, resets)
    resolved = Secrets(settings.allow_secret_env, settings.secrets_dir).resolve(spec.definition)
    site = engine.site(owner, resolved.definition.spark_conf, checkpoint, may_write)
    try:
        site.outlet.hidden = resolved.values
        definition = _begun_anew(resolved.definition, spec.reset)
        writer = _writer(site, definition, settings).queryName(spec.task)
        site.inherit()
        site.checkpoint.verify(owner, site.outlet.claimed)
        return Launched(site.start(writer), site)
    except BaseException:
        site.close()
        raise


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


def _writer(site: Site, definition: Definition, settings: SparkSettings) -> DataStreamWriter:
    if definition.entrypoint is None:
        return apply_trigger(_declared(site, definition), definition.trigger)
    context = TaskContext(site.spark, definition, site.checkpoint.place, site.outlet)
    made = entrypoint.call(definition.entrypoint, settings.allow_entrypoint, context, site)
    return apply_trigger(made, definition.trigger)


def _declared(site: Site, definition: Definition) -> DataStreamWriter:
    if definition.sink is None:
        raise StartError("sink: is required with source")
    claim = site.outlet.claim(definition.sink)
    frame = read(site, definition)
    writer = spark_sink(frame, definition.sink) if claim is None else site.outlet.write(frame, claim)
    return writer.outputMode(definition.output_mode)
