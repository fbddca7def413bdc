"""From a definition to a running query; called in threads, several at a time."""

from __future__ import annotations

import threading
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from worker.lag.offset_log import offsets_in
from worker.query_engine import QueryError
from worker.secrets import Secrets
from worker.sinks.closing import letting_go
from worker.sinks.errors import SinkError
from worker.sinks.factory import open_sink
from worker.sinks.quarantine.elsewhere import quarantine_owner
from worker.sinks.quarantine.plan import putting_aside
from worker.spark.adoption import Wanted, adopted, made_of
from worker.spark.identity import owner_of
from worker.spark.kafka.source_offsets import by_source, committed_offsets, is_order_needed, kafka_sources
from worker.spark.kafka.sources import require_sources, watch_sources
from worker.spark.quarantine.moved import leave_former
from worker.spark.query_writer import as_run, writer_of
from worker.spark.reading.jdbc import require_harmless

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from definition.document import Definition
    from definition.quarantine import Quarantine
    from definition.sink import Sink
    from worker.lag.offset_log import Offsets as KafkaOffsets
    from worker.lag.offset_log import Order
    from worker.query_engine import QuerySpec
    from worker.sinks.fence import FenceRow, Owner
    from worker.sinks.quarantine.plan import PuttingAside
    from worker.spark.backend import Handle, QuerySession, SparkBackend
    from worker.spark.checkpoint import CheckpointFolder
    from worker.spark.kafka.brokers import Watching
    from worker.spark.kafka.group_progress import Following
    from worker.spark.prepared import Plan
    from worker.spark.settings import SparkSettings
    from worker.spark.starts import StartSteps


HALT_AGAIN_S: Final = 0.2
"""Spark cancels the jobs it knows of: one that is just being submitted takes a second call."""


@dataclass(frozen=True, slots=True)
class Launched:
    """A query that was started; `checkpoint` and `committed` are as in `worker.query_engine.Query`.

    `finished` is to be called with Spark's record of each finished batch; from any thread, and never waits.
    `watched` are the clusters that it reads from, to be closed when it is over.
    """

    handle: Handle
    session: QuerySession
    checkpoint: str | None
    committed: int | None
    finished: Callable[[Mapping[str, Any]], None] = lambda _: None
    watched: Sequence[Watching] = ()


def launch(
    backend: SparkBackend,
    spec: QuerySpec,
    settings: SparkSettings,
    may_write: Callable[[], bool],
    steps: StartSteps,
    *,
    plan: Plan | None = None,
) -> Launched:
    """Start the task's query in a session of its own, its fence raised before it reads anything.

    Each thing that it may have to wait for is told to `steps`, which ends it there if nobody wants it now.
    What a `plan` has ready is used, if the task is as it was when that was made.

    Raises:
        QueryError, SinkError: and whatever Spark raises; nothing is left running then.
    """
    owner = owner_of(spec)
    checkpoint = settings.checkpoint_of(spec)
    secrets = Secrets(settings.allow_secret_env, settings.secrets_dir)
    resolved = secrets.resolve(spec.definition)
    require_harmless(resolved.definition, spec.definition, settings.allow_jdbc)
    _require_memory(spec.definition, settings)
    aside = putting_aside(spec.definition, resolved.definition)
    made = made_of(spec, resolved.definition, settings)
    wanted = Wanted(spec, owner, resolved, aside, checkpoint, made)
    if (running := adopted(backend, wanted, may_write, steps)) is not None:
        return Launched(running.handle, running.session, checkpoint, running.committed)
    steps.at("Spark, for a session")
    definition = as_run(backend, resolved.definition, spec.reset)
    planned = None if plan is None else plan.take(definition)
    if planned is None:
        session = backend.query_session(owner, definition.spark_conf, checkpoint, may_write)
    else:
        session = planned.query_session(owner, may_write)
    try:
        session.output.hidden, session.output.at = resolved.values, steps.at
        session.schedule(resolved.definition.scheduling)
        if spec.reached is not None:
            steps.at(f"the checkpoint {checkpoint}")
            session.checkpoint.require(spec.reached)
        found = None if planned is None else planned.found
        writer = writer_of(session, definition, settings, steps, aside, found=found).queryName(owner.task)
        steps.at(f"the checkpoint {checkpoint}")
        session.inherit(made)
        at = session.checkpoint.verify(owner, session.output.claimed)
        former = partial(_claim_former, session, spec.definition, secrets, owner)
        present = None if aside is None else spec.definition.quarantine
        leave_former(session.checkpoint, present, former, at, session.output.claimed)
        order = session.sources_of(writer) if is_order_needed(definition) else ()
        require_sources(backend.brokers, definition, session.checkpoint, order, steps.at)
        follow = _follower(backend, spec, definition, session.checkpoint, order)
        steps.at("Spark, to start the query")
        handle = session.start(writer, partial(_begin, may_write, steps))
        watched: list[Watching] = []
        try:
            watched += watch_sources(backend.brokers, definition, order)
            following = follow()
        except BaseException:
            _put_down(backend, session, handle, watched)
            raise
        told = None if handle.commits_late else checkpoint
        launched = Launched(handle, session, told, at.committed, watched=watched)
        return launched if following is None else _followed(launched, following)
    except BaseException:
        session.close()
        raise


def _require_memory(definition: Definition, settings: SparkSettings) -> None:
    """A JVM that several tasks have cannot bound one of them."""
    if definition.memory is not None and not settings.is_of_one_task:
        raise QueryError.at(
            "memory",
            "is to be had on workers with --isolate only, where each task has a JVM of its own: keep the task"
            " to those by labels, or take memory out of its definition",
            permanent=True,
        )


def _claim_former(
    session: QuerySession, definition: Definition, secrets: Secrets, owner: Owner, former: Quarantine
) -> FenceRow:
    """Raise the fence of a quarantine that the task has no more; returns what is there."""
    before = secrets.resolve(msgspec.structs.replace(definition, quarantine=former)).definition.quarantine
    place = None if before is None else before.sink
    sink = None if place is None else open_sink(place, quarantine_owner(owner), lambda: session.spark)
    if sink is None:
        raise SinkError(f"{former.format}: has no fence")
    with letting_go(sink):
        return sink.claim()


def _followed(launched: Launched, following: Following) -> Launched:
    """Consumer groups are told of each finished batch, unless it ends before the checkpoint knows of it.

    Then they know of what the checkpoint had when the query began: they are never ahead of it.
    """
    watched = [*launched.watched, following]
    if launched.handle.commits_late:
        return replace(launched, watched=watched)
    return replace(launched, finished=following.finished, watched=watched)


def _put_down(
    backend: SparkBackend, session: QuerySession, handle: Handle, watched: Sequence[Watching]
) -> None:
    """End a query that runs and that nobody will look after: nothing of it is left when this returns."""
    for each in watched:
        each.close()
    session.gate.close()
    session.gate.cut()
    pause = threading.Event()
    while not _is_over(backend, handle):
        pause.wait(HALT_AGAIN_S)
    is_left = threading.Event()
    session.gate.shut(is_left.set)
    is_left.wait()


def _is_over(backend: SparkBackend, handle: Handle) -> bool:
    """Whether a query that is told to end, once more, has ended."""
    try:
        handle.halt()
        return handle.has_terminated()
    except Exception as error:  # noqa: BLE001 - Spark raises what it likes
        return backend.is_loss(error)


def _follower(
    backend: SparkBackend,
    spec: QuerySpec,
    definition: Definition,
    checkpoint: CheckpointFolder,
    order: Order,
) -> Callable[[], Following | None]:
    """What is to be called when the query has started, to tell the consumer groups that its sources name.

    The checkpoint is read before: a query that runs is not to fail for that.
    """
    sources = [(path, each) for path, each in kafka_sources(definition) if each.commit_group is not None]
    if not sources or backend.groups is None:
        return lambda: None
    committed = by_source(committed_offsets(checkpoint), definition, order)

    def ended(record: Mapping[str, Any]) -> Mapping[str, KafkaOffsets]:
        return by_source(offsets_in(record), definition, order)

    return partial(backend.groups.follow, spec, sources, committed, ended)


def _begin(may_write: Callable[[], bool], steps: StartSteps) -> None:
    """Nothing stands between this and the query's first batch, if its sink has no fence."""
    _require_lease(may_write)
    steps.begin()


def settle(
    backend: SparkBackend,
    spec: QuerySpec,
    settings: SparkSettings,
    may_write: Callable[[], bool],
    steps: StartSteps,
) -> None:
    """Raise the fence in the sink that the definition names, and end what a former owner has left running.

    Each of the two is told to `steps`, which ends it there if nobody wants it any more.

    Raises:
        QueryError, SinkError: and whatever Spark raises.
    """
    owner = owner_of(spec)
    definition = Secrets(settings.allow_secret_env, settings.secrets_dir).resolve(spec.definition).definition
    aside = putting_aside(spec.definition, definition)
    _require_lease(may_write)
    if definition.entrypoint is None and definition.sink is not None:
        steps.at(f"the sink {definition.sink.shown}")
        _claim(backend, definition.sink, definition.spark_conf, owner, aside)
    steps.at("Spark, to end what a former owner has left running")
    _require_lease(may_write)
    backend.end_former(owner, settings.checkpoint_of(spec))


def _claim(
    backend: SparkBackend,
    definition: Sink,
    conf: Mapping[str, str],
    owner: Owner,
    aside: PuttingAside | None,
) -> None:
    """Raise the fence of a sink, if it has one."""
    with ExitStack() as opened:

        def session() -> SparkSession:
            return opened.enter_context(closing(backend.check_session(conf))).spark

        if (sink := open_sink(definition, owner, session, aside)) is not None:
            opened.enter_context(letting_go(sink))
            sink.claim()


def _require_lease(may_write: Callable[[], bool]) -> None:
    if not may_write():
        raise QueryError("the worker has lost its lease, so it may not start a query")
