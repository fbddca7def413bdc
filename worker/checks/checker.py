"""Does the check that the manager has for this worker, one at a time, and says what came of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
import structlog

from definition.document import DefinitionError, parse_definition
from protocol.errors import Failure
from protocol.messages.checks import (
    MAX_SAID_LENGTH,
    MOST_SAID,
    CheckResult,
    CheckTrouble,
    FetchCheckRequest,
    FetchCheckResponse,
    ReportCheckRequest,
)
from telemetry.secrets import scrub
from worker.query_engine import CheckSpec, QueryError
from worker.waiting import MANAGER, first

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from protocol.messages.base import Response
    from worker.clock import Clock
    from worker.membership.events import Identity
    from worker.query_engine import QueryEngine

log = structlog.get_logger(__name__)

Answer = TypeVar("Answer", bound=msgspec.Struct)


class CheckClient(Protocol):
    """Whoever has checks for us; `worker.client.group_client.GroupClient` does."""

    async def fetch_check(self, request: FetchCheckRequest) -> FetchCheckResponse | Failure:
        """What is to be done."""
        ...

    async def report_check(self, request: ReportCheckRequest) -> Response | Failure:
        """What has come of it."""
        ...


class Checker:
    """Does checks.

    Args:
        manager: has the checks.
        engine: does them.
        group: the worker's.
        instance_id: the worker's, if it is static.
        clock: for the time that a check has, and the pauses between tries.
        chance: random numbers in [0, 1), for jitter.
        spawn: runs a coroutine in the background; what it raises ends the worker.
    """

    def __init__(
        self,
        manager: CheckClient,
        engine: QueryEngine,
        *,
        group: str,
        instance_id: str | None,
        clock: Clock,
        chance: Callable[[], float],
        spawn: Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]],
    ) -> None:
        self._manager = manager
        self._engine = engine
        self._group = group
        self._instance_id = instance_id
        self._clock = clock
        self._chance = chance
        self._spawn = spawn
        self._under_way: asyncio.Task[None] | None = None

    def take(self, identity: Identity, check: str | None) -> None:
        """Do this check and no other, or none: whoever waited for the one before does so no more."""
        if self._under_way is not None:
            self._under_way.cancel()
            self._under_way = None
        if check is not None:
            self._under_way = self._spawn(self._do(identity.member_id, check))

    async def _do(self, member_id: str, check: str) -> None:
        wanted = FetchCheckRequest(member_id=member_id, instance_id=self._instance_id, check=check)
        fetched = await self._ask(lambda: self._manager.fetch_check(wanted))
        if isinstance(fetched, Failure):
            return
        outcome = await self._within(fetched)
        told = ReportCheckRequest(
            member_id=member_id,
            instance_id=self._instance_id,
            check=check,
            result=outcome if isinstance(outcome, CheckResult) else None,
            trouble=outcome if isinstance(outcome, CheckTrouble) else None,
        )
        await self._ask(lambda: self._manager.report_check(told))

    async def _ask(self, ask: Callable[[], Awaitable[Answer | Failure]]) -> Answer | Failure:
        """Until it is answered; whoever has no use for the answer any more has this cancelled."""
        tries = 0
        while isinstance(answer := await ask(), Failure) and answer.code.retriable:
            await self._clock.sleep(MANAGER.delay_s(tries, self._chance()))
            tries += 1
        if isinstance(answer, Failure):
            log.debug("check refused", code=answer.code.name, why=answer.message)
        return answer

    async def _within(self, fetched: FetchCheckResponse) -> CheckResult | CheckTrouble:
        """What comes of it in the time there is."""
        steps = ["a thread"]
        checking = asyncio.ensure_future(self._check(fetched, steps.append))
        seconds = fetched.timeout_ms / 1000
        if await first(checking, self._clock.sleep(seconds)):
            return checking.result()
        waited = f"it was given up after {seconds:.1f} s, and was waiting for {steps[-1]}"
        return CheckTrouble(code="CHECK_TIMED_OUT", message=_told(waited))

    async def _check(
        self, fetched: FetchCheckResponse, at: Callable[[str], object]
    ) -> CheckResult | CheckTrouble:
        try:
            definition = parse_definition(fetched.definition)
        except DefinitionError as error:  # of a later version
            return CheckResult(problems=error.problems[:MOST_SAID])
        try:
            return await self._engine.check(
                CheckSpec(self._group, definition, fetched.rows, fetched.begin), at
            )
        except QueryError as error:
            return CheckTrouble(code="CHECK_INTERRUPTED", message=_told(error.cause.partition("\n")[0]))


def _told(text: str) -> str:
    return scrub(text, MAX_SAID_LENGTH)
