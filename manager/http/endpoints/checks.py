"""Checks of definitions by a worker: for admins, and for the workers that do them (protocol §5, Checks)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core.commands import CheckDefinition
from manager.http.definition_bodies import read_definition
from manager.http.endpoint import Endpoint
from manager.http.endpoints.members import GROUP, NOT_A_MEMBER
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.checks import (
    LONGEST_MS,
    CheckRequest,
    CheckResponse,
    FetchCheckRequest,
    FetchCheckResponse,
    ReportCheckRequest,
)
from protocol.roles import Role

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from manager.core.commands import NewDefinition
    from manager.core.turn import Outcome
    from manager.http.endpoint import Call
    from manager.runtime.coordinator_runtime import CoordinatorRuntime

CHECKS = f"{GROUP}/checks"


class CheckHandlers:
    """The endpoints of checks."""

    def __init__(self, runtime: CoordinatorRuntime) -> None:
        self._runtime = runtime

    def endpoints(self) -> list[Endpoint]:
        """POST /v1/groups/{group}/checks and below."""
        return [
            Endpoint(
                "POST",
                CHECKS,
                "checkDefinition",
                "Have a worker look at a definition with its Spark, and show some rows; stores nothing",
                self.check,
                role=Role.ADMIN,
                body=CheckRequest,
                response=CheckResponse,
                held_s=LONGEST_MS / 1000,
                errors=(
                    ErrorCode.GROUP_ID_NOT_FOUND,
                    ErrorCode.REBALANCE_IN_PROGRESS,
                    ErrorCode.NOT_CHECKABLE,
                    ErrorCode.NO_ELIGIBLE_WORKER,
                    ErrorCode.TOO_MANY_CHECKS,
                    ErrorCode.CHECK_INTERRUPTED,
                    ErrorCode.CHECK_TIMED_OUT,
                ),
            ),
            Endpoint(
                "POST",
                f"{CHECKS}/fetch",
                "fetchCheck",
                "What is to be checked, by the worker that was told of it",
                self.ask,
                role=Role.WORKER,
                body=FetchCheckRequest,
                response=FetchCheckResponse,
                errors=(*NOT_A_MEMBER, ErrorCode.UNKNOWN_CHECK),
            ),
            Endpoint(
                "POST",
                f"{CHECKS}/report",
                "reportCheck",
                "What has come of a check",
                self.ask,
                role=Role.WORKER,
                body=ReportCheckRequest,
                errors=(*NOT_A_MEMBER, ErrorCode.UNKNOWN_CHECK),
            ),
        ]

    async def check(self, call: Call[CheckRequest, None]) -> Outcome:
        """Answered when a worker is done, or its time is over."""
        body = call.body
        definition = await read_definition(body.definition)
        _require_checkable(definition)
        command = CheckDefinition(
            definition=definition, rows=body.rows, begin=body.begin, timeout_ms=body.timeout_ms
        )
        return await self._runtime.ask(call.group, command)

    def ask(self, call: Call[FetchCheckRequest | ReportCheckRequest, None]) -> Awaitable[Outcome]:
        """Put the body to the group."""
        return self._runtime.ask(call.group, call.body, call.connection)


def _require_checkable(definition: NewDefinition) -> None:
    if definition.entrypoint is not None:
        raise RefusedError(
            ErrorCode.NOT_CHECKABLE,
            f"what the entry point {definition.entrypoint} reads and writes can only be found out by running"
            " it; the rest of the definition is in order",
        )
