"""How far a task is behind its topics, without its query: by its checkpoint and by what brokers say."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from protocol.messages.lag import MAX_TROUBLE_LENGTH, TaskLag
from telemetry.secrets import scrub
from worker.lag.measure import lags, total
from worker.lag.offset_log import of_source
from worker.query_engine import QueryError
from worker.secrets import Secrets
from worker.spark.causes import refusal
from worker.spark.sources import committed_offsets, kafka_sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from protocol.messages.lag import PartitionLag
    from worker.query_engine import QuerySpec
    from worker.spark.backend import Brokers, SparkBackend
    from worker.spark.settings import SparkSettings


def measure(backend: SparkBackend, spec: QuerySpec, settings: SparkSettings) -> TaskLag | None:
    """The lag of a task, or why it cannot be told; None if it reads nothing that can be asked.

    Raises:
        Exception: Spark is gone, or going.
    """
    brokers = backend.brokers
    if brokers is None or not any(kafka_sources(spec.definition)):
        return None
    now_ms = int(time.time() * 1000)
    try:
        return total(_partitions(backend, brokers, spec, settings, now_ms), now_ms)
    except Exception as error:
        if backend.is_loss(error):
            raise
        cause = (error if isinstance(error, QueryError) else refusal(error)).cause
        return TaskLag(at_ms=now_ms, trouble=scrub(cause.partition("\n")[0], MAX_TROUBLE_LENGTH))


def _partitions(
    backend: SparkBackend, brokers: Brokers, spec: QuerySpec, settings: SparkSettings, now_ms: int
) -> Iterator[PartitionLag]:
    resolved = Secrets(settings.allow_secret_env, settings.secrets_dir).resolve(spec.definition).definition
    resets = 0 if spec.reset is None else spec.reset.number
    every = committed_offsets(backend.checkpoint(settings.checkpoint(spec.group, spec.task, resets)))
    for _, source in kafka_sources(resolved):
        committed = of_source(every, source.options)
        yield from lags(committed, brokers.states(source.options, committed), now_ms)
