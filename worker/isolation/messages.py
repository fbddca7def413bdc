"""What a worker and the process of one of its tasks say to each other: arrays, the name first.

The definition travels as the document that it is made of; secrets in it are found by the process itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from definition.document import parse_definition
from protocol.messages.resources import WorkerResources
from protocol.messages.tasks import Reached, TaskHome, TaskReset
from telemetry.secrets import beginning, scrub
from worker.query_engine import Progress, QueryError, QuerySpec, Stall
from worker.spark.settings import SparkSettings

if TYPE_CHECKING:
    from collections.abc import Mapping


# What the worker says.


class Open(msgspec.Struct, frozen=True, array_like=True, tag="open"):
    """The first word: bring Spark up as `settings` say, for a query of this task."""

    settings: SparkSettings
    group: str
    task: str


class Run(msgspec.Struct, frozen=True, array_like=True, tag="run"):
    """Run this query, when Spark is up; said once."""

    group: str
    task: str
    token: int
    definition: bytes
    reset: TaskReset | None
    reached: Reached | None
    home: TaskHome | None

    @classmethod
    def of(cls, spec: QuerySpec) -> Run:
        """The query of `spec`."""
        document = msgspec.json.encode(spec.definition)
        return cls(spec.group, spec.task, spec.token, document, spec.reset, spec.reached, spec.home)

    @property
    def spec(self) -> QuerySpec:
        """The query again."""
        definition = parse_definition(self.definition)
        return QuerySpec(self.group, self.task, self.token, definition, self.reset, self.reached, self.home)


class Stop(msgspec.Struct, frozen=True, array_like=True, tag="stop"):
    """End the query; the batch in flight may go on for `timeout_s` seconds."""

    timeout_s: float


class Answer(msgspec.Struct, frozen=True, array_like=True, tag="answer"):
    """Whether the worker may write, asked by the `MayWrite` of that number."""

    number: int
    may_write: bool


# What the process of the task says.


class At(msgspec.Struct, frozen=True, array_like=True, tag="at"):
    """The start comes to `step`, which it may have to wait for."""

    step: str


class Up(msgspec.Struct, frozen=True, array_like=True, tag="up"):
    """Spark has come up."""


class Started(msgspec.Struct, frozen=True, array_like=True, tag="started"):
    """The query runs; both are as in `worker.query_engine.Query`."""

    checkpoint: str | None
    committed: int | None


class Fault(msgspec.Struct, frozen=True, array_like=True):
    """A `QueryError`, without what looks like a secret: those of the task are known where it runs only."""

    cause: str
    fenced: bool
    permanent: bool
    outage: bool
    path: str | None

    @classmethod
    def of(cls, error: QueryError) -> Fault:
        """What is told of it."""
        return cls(scrub(beginning(error.cause)), error.fenced, error.permanent, error.outage, error.path)

    @property
    def error(self) -> QueryError:
        """The error again."""
        return QueryError(self.cause, self.fenced, self.permanent, self.outage, self.path)


class Refused(msgspec.Struct, frozen=True, array_like=True, tag="refused"):
    """The query could not be started; nothing of it runs."""

    fault: Fault


class MayWrite(msgspec.Struct, frozen=True, array_like=True, tag="may_write"):
    """A batch begins, or comes to its next step: may the worker still write?"""

    number: int


class KafkaRequests(msgspec.Struct, frozen=True, array_like=True):
    """How often brokers were asked, by what for and whether they answered."""

    purpose: str
    answered: bool
    count: int


class News(msgspec.Struct, frozen=True, array_like=True, tag="news"):
    """How the query is doing; said when that has changed, and every second as a sign of life."""

    progress: Progress | None = None
    has_work: bool = False
    is_at_work: bool = False
    trouble: str | None = None
    kafka_requests: tuple[KafkaRequests, ...] = ()
    stall: Stall | None = None

    @classmethod
    def of(
        cls,
        progress: Progress | None,
        trouble: str | None,
        requests: Mapping[tuple[str, bool], int],
        *,
        has_work: bool,
        is_at_work: bool,
        stall: Stall | None = None,
    ) -> News:
        """What is told of it."""
        told = None if trouble is None else scrub(trouble)
        counts = tuple(KafkaRequests(*key, count) for key, count in sorted(requests.items()))
        if stall is not None and stall.where is not None:
            stall = replace(stall, where=scrub(stall.where))
        return cls(progress, has_work, is_at_work, told, counts, stall)


class Takes(msgspec.Struct, frozen=True, array_like=True, tag="takes"):
    """What its Spark takes of the machine, without the disk of the checkpoints."""

    resources: WorkerResources


class Ended(msgspec.Struct, frozen=True, array_like=True, tag="ended"):
    """Nothing of the query runs any more; `fault` is why it failed, None for an orderly end."""

    fault: Fault | None


class Lost(msgspec.Struct, frozen=True, array_like=True, tag="lost"):
    """The JVM is gone, and with it the query: the process ends itself now. `how` is a line for people."""

    how: str


OfWorker = Open | Run | Stop | Answer
OfTask = At | Up | Started | Refused | MayWrite | News | Takes | Ended | Lost
