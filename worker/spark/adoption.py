"""A start that takes over the query which a former owner has left running, as it runs.

Where a query outlives its worker, its next owner need not end it and start another one: of the same
definition both would do the same. The task stands still for no moment then. What makes that safe is the
fence, as ever: the former owner's token is refused from the next batch on (docs/spark-clusters.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import structlog

from worker.query_engine import QueryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from definition.document import Definition
    from protocol.messages.tasks import Reached
    from worker.query_engine import QuerySpec
    from worker.secrets import Resolved
    from worker.sinks.fence import Owner
    from worker.sinks.quarantine.plan import PuttingAside
    from worker.spark.backend import Handle, LeftRunning, QuerySession, SparkBackend
    from worker.spark.settings import SparkSettings
    from worker.spark.starts import StartSteps

log = structlog.get_logger(__name__)


class Adopted(NamedTuple):
    """A query that has a new owner, and the last batch that it had finished before, if any."""

    handle: Handle
    session: QuerySession
    committed: int | None


def made_of(spec: QuerySpec, resolved: Definition, settings: SparkSettings) -> str:
    """A digest of all that a query is made of: two that differ are not the same query.

    Another version of sparkherd is another query: whoever brings it into a herd wants it to run.

    Args:
        spec: what is to run.
        resolved: its definition, secrets filled in: with another password it is another query.
        settings: of this worker's Spark.
    """
    resets = 0 if spec.reset is None else spec.reset.number
    parts = (_version(), spec.group, spec.task, resets, resolved, settings.conf)
    return sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()


def _version() -> str:
    try:
        return version("sparkherd")
    except PackageNotFoundError:
        return "not installed"


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
    if definition.sink is None or not _knows_of(session, wanted.spec.reached):
        return None
    taken = left.take_over(definition.trigger, steps.at)
    if taken is None:
        return None
    session.output.claim(definition.sink, session.spark, wanted.aside)
    steps.begin()
    left.go_on()
    return Adopted(taken.handle, session, taken.committed)


def _knows_of(session: QuerySession, reached: Reached | None) -> bool:
    """Whether its checkpoint does; what is wrong if not, an ordinary start says."""
    try:
        if reached is not None:
            session.checkpoint.require(reached)
    except QueryError:
        return False
    return True
