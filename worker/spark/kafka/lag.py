"""How far a task is behind its topics, without its query: by its checkpoint and by what brokers say."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from protocol.messages.lag import MAX_TROUBLE_LENGTH, TaskLag
from telemetry.secrets import scrub
from worker.lag.measure import lags, total
from worker.query_engine import QueryError, ignore_step
from worker.secrets import Secrets
from worker.spark.causes import refusal
from worker.spark.kafka.source_offsets import committed_by_source, kafka_sources, sources_read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from definition.source import Source
    from protocol.messages.lag import PartitionLag
    from worker.lag.offset_log import Offsets
    from worker.query_engine import QuerySpec
    from worker.spark.backend import SparkBackend
    from worker.spark.kafka.brokers import Brokers
    from worker.spark.settings import SparkSettings


def measure(
    backend: SparkBackend,
    spec: QuerySpec,
    settings: SparkSettings,
    at: Callable[[str], object] = ignore_step,
) -> TaskLag | None:
    """The lag of a task, or why it cannot be told; None if it reads nothing that can be asked.

    Args:
        backend: the worker's Spark.
        spec: the task, be it run or not.
        settings: the worker's.
        at: is told each thing that this may have to wait for.

    Raises:
        Exception: Spark is gone, or going.
    """
    brokers = backend.brokers
    if brokers is None or not any(kafka_sources(spec.definition)):
        return None
    now_ms = int(time.time() * 1000)
    try:
        return total(_partitions(brokers, _read(backend, spec, settings, at), at, now_ms), now_ms)
    except Exception as error:
        if backend.is_loss(error):
            raise
        cause = (error if isinstance(error, QueryError) else refusal(error)).cause
        return TaskLag(at_ms=now_ms, trouble=scrub(cause.partition("\n")[0], MAX_TROUBLE_LENGTH))


def _read(
    backend: SparkBackend, spec: QuerySpec, settings: SparkSettings, at: Callable[[str], object]
) -> list[tuple[str, Source, Offsets]]:
    """The sources of a task, each with its place in the definition and what was read of it."""
    at("the secrets of its definition")
    resolved = Secrets(settings.allow_secret_env, settings.secrets_dir).resolve(spec.definition).definition
    place = settings.checkpoint_of(spec)
    at(f"the checkpoint {place}")
    folder = backend.checkpoint(place)
    by_source = committed_by_source(folder, resolved)
    return [(path, source, by_source.get(path, {})) for path, source in sources_read(resolved, folder)]


def _partitions(
    brokers: Brokers,
    sources: Iterable[tuple[str, Source, Offsets]],
    at: Callable[[str], object],
    now_ms: int,
) -> Iterator[PartitionLag]:
    for path, source, committed in sources:
        at(f"the brokers of {path}")
        yield from lags(committed, brokers.states(source.options, committed), now_ms)
