"""Does the errands that the manager has for this worker, one of each kind at a time, and says how it went."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import msgspec
import structlog

from protocol.errors import Failure
from protocol.messages.errands import MAX_SAID_LENGTH, ErrandTrouble
from telemetry.cause_ids import new_cause_id
from telemetry.secrets import scrub
from worker.query_engine import QueryError
from worker.waiting import MANAGER, first

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from protocol.errands import ErrandCodes, ErrandKind
    from protocol.messages.base import Response
    from protocol.messages.errands import ErrandReport, ErrandRequest
    from worker.clock import Clock
    from worker.membership.events import Identity

log = structlog.get_logger(__name__)

Answer = TypeVar("Answer", bound=msgspec.Struct)


class ErrandClient(Protocol):
    """Whoever has errands for us; `worker.client.group_client.GroupClient` does."""

    async def fetch_errand(self, request: ErrandRequest, into: type[Answer]) -> Answer | Failure:
        """What is to be done."""
        ...

    async def report_errand(self, request: ErrandReport) -> Response | Failure:
        """What has come of it."""
        ...


class Messages(NamedTuple):
    """The types of what is sent and answered about errands of one kind."""

    fetch: type[ErrandRequest]
    fetched: type[msgspec.Struct]
    report: type[ErrandReport]
    trouble: type[ErrandTrouble]

    @property
    def codes(self) -> ErrandCodes:
        """What may become of one."""
        return self.fetch.kind.codes


class Job(Protocol):
    """How the errands of one kind are done, and which messages they have."""

    @property
    def messages(self) -> Messages:
        """Those of the kind."""
        ...

    async def do(self, fetched: Any, at: Callable[[str], object]) -> msgspec.Struct:
        """Do it.

        Args:
            fetched: what is to be done; its `timeout_ms` is kept by the runner.
            at: is called with each thing that this may have to wait for.

        Returns:
            A result, or trouble of the kind.

        Raises:
            QueryError: the engine could not be asked, or was lost.
        """
        ...

    def unheard(self, fetched: Any) -> str:
        """What is to be said besides when it was cut short."""
        ...


class ErrandRunner:
    """Does errands.

    Args:
        manager: has them.
        jobs: what is done of each kind.
        instance_id: the worker's, if it is static.
        clock: for the time that an errand has, and the pauses between tries.
        chance: random numbers in [0, 1), for jitter.
        spawn: runs a coroutine in the background; what it raises ends the worker.
    """

    def __init__(
        self,
        manager: ErrandClient,
        jobs: Mapping[ErrandKind, Job],
        *,
        instance_id: str | None,
        clock: Clock,
        chance: Callable[[], float],
        spawn: Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]],
    ) -> None:
        self._manager = manager
        self._jobs = jobs
        self._instance_id = instance_id
        self._clock = clock
        self._chance = chance
        self._spawn = spawn
        self._under_way: dict[ErrandKind, asyncio.Task[None]] = {}

    def take(self, identity: Identity, kind: ErrandKind, errand: str | None) -> None:
        """Of this kind do this one and no other, or none: nobody waits for the one before any more.

        What is done of another kind goes on.
        """
        if (before := self._under_way.pop(kind, None)) is not None:
            before.cancel()
        if errand is not None:
            self._under_way[kind] = self._spawn(self._do(identity.member_id, kind, errand))

    async def _do(self, member_id: str, kind: ErrandKind, errand: str) -> None:
        job = self._jobs[kind]
        who: dict[str, Any] = {"member_id": member_id, "instance_id": self._instance_id, kind.value: errand}
        asked = job.messages.fetch(**who)
        fetched = await self._ask(lambda: self._manager.fetch_errand(asked, job.messages.fetched))
        if isinstance(fetched, Failure):
            return
        told = _report(job, who, await self._within(job, fetched))
        await self._ask(lambda: self._manager.report_errand(told))

    async def _ask(self, ask: Callable[[], Awaitable[Answer | Failure]]) -> Answer | Failure:
        """Until it is answered; whoever has no use for the answer any more has this cancelled."""
        tries = 0
        while isinstance(answer := await ask(), Failure) and answer.code.retriable:
            await self._clock.sleep(MANAGER.delay_s(tries, self._chance()))
            tries += 1
        if isinstance(answer, Failure):
            log.debug("errand refused", code=answer.code.name, why=answer.message)
        return answer

    async def _within(self, job: Job, fetched: Any) -> msgspec.Struct:
        """What comes of it in the time there is."""
        steps = ["a thread"]
        doing = asyncio.ensure_future(self._tried(job, fetched, steps.append))
        seconds = fetched.timeout_ms / 1000
        if await first(doing, self._clock.sleep(seconds)):
            return doing.result()
        waited = f"it was given up after {seconds:.1f} s, and was waiting for {steps[-1]}"
        return _trouble(job, job.messages.codes.timed_out, waited + job.unheard(fetched))

    async def _tried(self, job: Job, fetched: Any, at: Callable[[str], object]) -> msgspec.Struct:
        try:
            return await job.do(fetched, at)
        except QueryError as error:
            why = error.cause.partition("\n")[0] + job.unheard(fetched)
        except Exception:  # a plug-in's or Spark's surprise: the worker's tasks run on
            cause_id = new_cause_id()
            log.exception("unexpected trouble with an errand", cause_id=cause_id)
            why = f"a bug; the worker's log has more under {cause_id}{job.unheard(fetched)}"
        return _trouble(job, job.messages.codes.interrupted, why)


def _report(job: Job, who: dict[str, Any], outcome: msgspec.Struct) -> ErrandReport:
    """As the manager will read it: whoever waits is to hear of a result that it would refuse."""
    what = "trouble" if isinstance(outcome, ErrandTrouble) else "result"
    try:
        return msgspec.convert(msgspec.to_builtins({**who, what: outcome}), job.messages.report)
    except msgspec.ValidationError as error:
        log.error("the result of an errand cannot be told", why=str(error))  # noqa: TRY400 - no trace of ours
        told = _trouble(job, job.messages.codes.interrupted, f"the worker's result cannot be told: {error}")
        return job.messages.report(**who, trouble=told)


def _trouble(job: Job, code: str, message: str) -> ErrandTrouble:
    return job.messages.trouble(code=code, message=scrub(message, MAX_SAID_LENGTH))
