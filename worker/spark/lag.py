"""How far a task is behind its topics, without its query: by its checkpoint and by what brokers say."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from protocol.messages.lag import MAX_TROUBLE_LENGTH, TaskLag
from telemetry.secrets import scrub
from worker.lag.measure import lags, total
from worker.lag.offset_log import of_source, offsets_of
from worker.query_engine import QueryError
from worker.secrets import Secrets

if TYPE_CHECKING:
    from definition.source import Source
    from protocol.messages.lag import PartitionLag
    from worker.lag.offset_log import Offsets
    from worker.query_engine import QuerySpec
    from worker.spark.backend import SparkBackend
    from worker.spark.checkpoint import CheckpointFolder
    from worker.spark.settings import SparkSettings


def measure(backend: SparkBackend, spec: QuerySpec, settings: SparkSettings) -> TaskLag | None:
    """The lag of a task, or why it cannot be told; None if it reads nothing that can be asked."""
    sources = [each for each in spec.definition.views.values() if each.is_kafka and not each.static]
    if not sources or backend.brokers is None:
        return None
    now_ms = int(time.time() * 1000)
    try:
        return _measure(backend, spec, settings, now_ms)
    except QueryError as error:
        trouble = scrub(error.cause.partition("\n")[0], MAX_TROUBLE_LENGTH)
        return TaskLag(at_ms=now_ms, trouble=trouble)


def _measure(backend: SparkBackend, spec: QuerySpec, settings: SparkSettings, now_ms: int) -> TaskLag:
    resolved = Secrets(settings.allow_secret_env, settings.secrets_dir).resolve(spec.definition).definition
    resets = 0 if spec.reset is None else spec.reset.number
    committed = _committed(backend.checkpoint(settings.checkpoint(spec.group, spec.task, resets)))
    return total(
        [
            each
            for source in resolved.views.values()
            if source.is_kafka and not source.static
            for each in _of(backend, source, of_source(committed, source.options), now_ms)
        ],
        now_ms,
    )


def _of(backend: SparkBackend, source: Source, committed: Offsets, now_ms: int) -> list[PartitionLag]:
    if backend.brokers is None:
        return []
    return lags(committed, backend.brokers.states(source.options, committed), now_ms)


def _committed(folder: CheckpointFolder) -> list[Offsets]:
    """Where the last finished batch ended; nothing before the first."""
    last = folder.last("commits")
    text = None if last is None else folder.read(f"offsets/{last}")
    return [] if text is None else offsets_of(text)
