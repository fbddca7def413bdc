"""A start that takes over the query which a former owner has left running, as it runs.

Where a query outlives its worker, its next owner need not end it and start another one: of the same
definition both would do the same. The task stands still for no moment then. What makes that safe is the
fence, as ever: the former owner's token is refused from the next batch on (docs/spark-clusters.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker.query_engine import QuerySpec
    from worker.secrets import Resolved
    from worker.sinks.fence import Owner
    from worker.sinks.quarantine.plan import PuttingAside
    from worker.spark.backend import Handle, LeftRunning, QuerySession, SparkBackend
    from worker.spark.settings import SparkSettings
    from worker.spark.starts import StartSteps

log = structlog.get_logger(__name__)


class Adopted(NamedTuple):
    """A query that has a new owner, and the last batch that it has finished, if any."""

    handle: Handle
    session: QuerySession
    committed: int | None


def made_of(spec: QuerySpec, settings: SparkSettings) -> str:
    """A digest of all that a query is made of, but for secrets: two that differ are not the same query.

    Another version of sparkherd is another query: whoever brings it into a herd wants it to run.
    """
    resets = 0 if spec.reset is None else spec.reset.number
    parts = (version("sparkherd"), spec.group, spec.task, resets, spec.definition, settings.conf)
    return sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()


@dataclass(frozen=True, slots=True)
class Wanted:
    """A query that is to run: of which definition, for whom, and where it keeps its progress.

    `resolved` has secrets filled in, `aside` is where rows go that are put aside, `made_of` is the digest.
    """

    spec: QuerySpec
    owner: Owner
    resolved: Resolved
    aside: PuttingAside | None
    checkpoint: str
    made_of: str


def adopted(
    backend: SparkBackend, wanted: Wanted, may_write: Callable[[], bool], steps: StartSteps
) -> Adopted | None:
    """The query that a former owner has left running, under the new owner's token; None if there is none.

    Entry points are started anew: what they have done beside their query is not known.

    Raises:
        QueryError, SinkError: and whatever Spark raises. A query that was taken over is ended then.
    """
    definition = wanted.spec.definition
    if definition.entrypoint is not None or not definition.is_fenced:
        return None
    steps.at("Spark, for a query that a former owner has left running")
    left = backend.left_running(wanted.owner, wanted.checkpoint, wanted.made_of, may_write)
    return None if left is None else _kept(left, wanted, steps)


def _kept(left: LeftRunning, wanted: Wanted, steps: StartSteps) -> Adopted | None:
    """Whatever becomes of it, its session is let go of if it was not taken over."""
    query = None
    try:
        query = _taken_over(left, wanted, steps)
    finally:
        if query is None:
            left.session.close()
    if query is not None:
        spec = wanted.spec
        log.info("took over a query as it runs", group=spec.group, task=spec.task, token=spec.token)
    return query


def _taken_over(left: LeftRunning, wanted: Wanted, steps: StartSteps) -> Adopted | None:
    session, definition = left.session, wanted.resolved.definition
    session.output.hidden, session.output.at = wanted.resolved.values, steps.at
    reached = wanted.spec.reached
    if reached is not None:
        session.checkpoint.require(reached)
    handle = left.take_over(definition.trigger, None if reached is None else reached.batch_id, steps.at)
    if handle is None or definition.sink is None:
        return None
    session.output.claim(definition.sink, session.spark, wanted.aside)
    steps.begin()
    return Adopted(handle, session, session.checkpoint.last("commits"))
