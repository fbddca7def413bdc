"""Requests about quarantined rows as errands: only while the task is owned under the token that they name."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from protocol.messages.errands import MAX_SAID_LENGTH
from protocol.messages.quarantine import (
    FetchQuarantineRequest,
    FetchQuarantineResponse,
    QuarantineTrouble,
    ReportQuarantineRequest,
)
from telemetry.secrets import scrub
from worker.errands.runner import Messages
from worker.quarantined_rows.shown import shown
from worker.query_engine import NoQuarantineError, QueryError
from worker.waiting import first

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.messages.quarantine import QuarantineAnswer
    from worker.query_engine import QueryEngine, QuerySpec


class Owner(Protocol):
    """Whoever knows what the worker owns; `worker.tasks.holdings.Holdings` does."""

    def spec_of(self, task: str, token: int) -> QuerySpec | None:
        """What is run of the task, or would be; None if it is not owned under that token, or soon is not.

        Raises:
            QueryError: its definition cannot be read.
        """
        ...

    async def until_lost(self, task: str, token: int) -> None:
        """Wait until `spec_of` is None."""
        ...


class QuarantineJob:
    """Has `engine` see to the rows of the tasks that `owner` has."""

    messages = Messages(
        FetchQuarantineRequest, FetchQuarantineResponse, ReportQuarantineRequest, QuarantineTrouble
    )

    def __init__(self, engine: QueryEngine, owner: Owner) -> None:
        self._engine = engine
        self._owner = owner

    async def do(
        self, fetched: FetchQuarantineResponse, at: Callable[[str], object]
    ) -> QuarantineAnswer | QuarantineTrouble:
        """Ask the engine, as long as the task is this worker's; raises QueryError if it may do it later."""
        try:
            return await self._ask(fetched, at)
        except NoQuarantineError as error:
            return QuarantineTrouble(code="NO_QUARANTINE", message=scrub(str(error), MAX_SAID_LENGTH))
        except QueryError as error:
            if error.fenced or error.outage:
                raise
            return _failed(error, fetched)

    async def _ask(
        self, fetched: FetchQuarantineResponse, at: Callable[[str], object]
    ) -> QuarantineAnswer | QuarantineTrouble:
        task, token = fetched.task, fetched.token
        spec = self._owner.spec_of(task, token)
        if spec is None:
            return _not_owned(fetched)
        asking = asyncio.ensure_future(self._engine.quarantine(spec, fetched.request, at))
        if not await first(asking, self._owner.until_lost(task, token)):
            return _lost(fetched)
        return await asyncio.to_thread(shown, asking.result(), fetched.request)

    def unheard(self, fetched: FetchQuarantineResponse) -> str:
        """What it changes may be changed."""
        return fetched.request.unheard


def _not_owned(fetched: FetchQuarantineResponse) -> QuarantineTrouble:
    message = (
        f"the worker does not own task {fetched.task} under token {fetched.token}: it changes hands;"
        " ask again in a moment"
    )
    return QuarantineTrouble(code="TASK_NOT_OWNED", message=message)


def _failed(error: QueryError, fetched: FetchQuarantineResponse) -> QuarantineTrouble:
    why = error.cause.partition("\n")[0] + fetched.request.unheard
    return QuarantineTrouble(code="QUARANTINE_FAILED", message=scrub(why, MAX_SAID_LENGTH))


def _lost(fetched: FetchQuarantineResponse) -> QuarantineTrouble:
    message = f"the worker has lost task {fetched.task} meanwhile{fetched.request.unheard}"
    return QuarantineTrouble(code="QUARANTINE_INTERRUPTED", message=message)
