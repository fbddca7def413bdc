"""Quarantined rows: for people, and for the workers that reach them (protocol §5, Quarantined rows)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from manager.core.commands import AskQuarantine
from manager.http.audit_log import note
from manager.http.authorization import caller_of
from manager.http.endpoint import Endpoint
from manager.http.endpoints.members import GROUP, NOT_A_MEMBER
from manager.http.endpoints.tasks import NO_TASK, TASK
from protocol.errors import ErrorCode, Failure, RefusedError
from protocol.messages.quarantine import (
    LONGEST_MS,
    FetchQuarantineRequest,
    FetchQuarantineResponse,
    QuarantineChangeRequest,
    QuarantinedRowQuery,
    QuarantineQuery,
    QuarantineRequest,
    QuarantineResponse,
    ReportQuarantineRequest,
    RowId,
)
from protocol.roles import Role

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from manager.core.turn import Outcome
    from manager.http.endpoint import Call, CallHandler
    from manager.runtime.coordinator_runtime import CoordinatorRuntime
    from protocol.messages.quarantine import Action

ROWS = f"{TASK}/quarantine"
ERRANDS = f"{GROUP}/quarantine"
SEES_VALUES = frozenset({Role.OPERATOR})
"""Who may see what is in rows; whoever only looks sees their shape."""
NOT_DONE = (
    *NO_TASK,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.NO_ELIGIBLE_WORKER,
    ErrorCode.NO_QUARANTINE,
    ErrorCode.TASK_NOT_OWNED,
    ErrorCode.QUARANTINE_BUSY,
    ErrorCode.QUARANTINE_FAILED,
    ErrorCode.QUARANTINE_INTERRUPTED,
    ErrorCode.QUARANTINE_TIMED_OUT,
)


class QuarantineHandlers:
    """The endpoints of quarantined rows."""

    def __init__(self, runtime: CoordinatorRuntime) -> None:
        self._runtime = runtime

    def endpoints(self) -> list[Endpoint]:
        """/v1/groups/{group}/tasks/{task}/quarantine and below, and what workers send about it."""
        return [*self._reading(), *self._changing(), *self._of_workers()]

    def _reading(self) -> list[Endpoint]:
        return [
            Endpoint(
                "GET",
                ROWS,
                "listQuarantinedRows",
                "Rows that a task has put aside; a viewer sees their shape, not their values",
                self.rows,
                role=Role.VIEWER,
                asks=QuarantineQuery,
                response=QuarantineResponse,
                held_s=LONGEST_MS / 1000,
                errors=NOT_DONE,
            ),
            Endpoint(
                "GET",
                f"{ROWS}/rows/{{row}}",
                "getQuarantinedRow",
                "One row that a task has put aside",
                self.row,
                role=Role.VIEWER,
                asks=QuarantinedRowQuery,
                response=QuarantineResponse,
                held_s=LONGEST_MS / 1000,
                errors=(*NOT_DONE, ErrorCode.UNKNOWN_ROW),
            ),
        ]

    def _changing(self) -> list[Endpoint]:
        return [
            self._change(
                "replay",
                "replayQuarantinedRows",
                "Play rows again that a task has put aside, by the query that it has now",
                Role.OPERATOR,
            ),
            self._change(
                "discard", "discardQuarantinedRows", "Forget rows that a task has put aside", Role.ADMIN
            ),
        ]

    def _change(self, action: Action, operation: str, summary: str, role: Role) -> Endpoint:
        return Endpoint(
            "POST",
            f"{ROWS}/{action}",
            operation,
            summary,
            self._changer(action),
            role=role,
            body=QuarantineChangeRequest,
            response=QuarantineResponse,
            held_s=LONGEST_MS / 1000,
            errors=NOT_DONE,
        )

    def _of_workers(self) -> list[Endpoint]:
        errors = (*NOT_A_MEMBER, ErrorCode.UNKNOWN_QUARANTINE_REQUEST)
        return [
            Endpoint(
                "POST",
                f"{ERRANDS}/fetch",
                "fetchQuarantineRequest",
                "What is to be done with quarantined rows, by the worker that was told of it",
                self.ask,
                role=Role.WORKER,
                body=FetchQuarantineRequest,
                response=FetchQuarantineResponse,
                errors=errors,
            ),
            Endpoint(
                "POST",
                f"{ERRANDS}/report",
                "reportQuarantineRequest",
                "What has come of a request about quarantined rows",
                self.ask,
                role=Role.WORKER,
                body=ReportQuarantineRequest,
                errors=errors,
            ),
        ]

    async def rows(self, call: Call[None, QuarantineQuery]) -> Outcome:
        """Answered when the task's worker has looked."""
        asked = call.asked
        return await self._put(
            call, "list", asked.timeout_ms, limit=asked.limit, reason=asked.reason, name=asked.name
        )

    async def row(self, call: Call[None, QuarantinedRowQuery]) -> Outcome:
        """One row, or UNKNOWN_ROW."""
        row = _legal(call.request.match_info["row"])
        outcome = await self._put(call, "show", call.asked.timeout_ms, ids=(row,), limit=1)
        if isinstance(outcome, QuarantineResponse) and not outcome.rows:
            return Failure(ErrorCode.UNKNOWN_ROW, f"task {call.task} has put no row {row} aside, or no more")
        return outcome

    def _changer(self, action: Action) -> CallHandler:
        async def change(call: Call[QuarantineChangeRequest, None]) -> Outcome:
            body = call.body
            meant = f"{len(body.ids)} rows by their ids" if body.ids else "all rows"
            note(call.request, meant)
            outcome = await self._put(
                call, action, body.timeout_ms, ids=body.ids, reason=body.reason, name=body.name
            )
            if isinstance(outcome, QuarantineResponse):
                note(call.request, f"{meant}: {_what_became(outcome)}")
            return outcome

        return change

    async def _put(self, call: Call[Any, Any], action: Action, timeout_ms: int, **wanted: Any) -> Outcome:
        """Put it to the group; the worker hides values from whoever may not see them."""
        masked = not caller_of(call.request).may(SEES_VALUES)
        request = QuarantineRequest(action=action, masked=masked, **wanted)
        command = AskQuarantine(task=call.task, wanted=request, timeout_ms=timeout_ms)
        return await self._runtime.ask(call.group, command)

    def ask(self, call: Call[FetchQuarantineRequest | ReportQuarantineRequest, None]) -> Awaitable[Outcome]:
        """Put the body to the group."""
        return self._runtime.ask(call.group, call.body, call.connection)


def _legal(row: str) -> str:
    try:
        return msgspec.convert(row, RowId)
    except msgspec.ValidationError:
        message = "row: expected an id as lists show it, RESETS-BATCH-N"
        raise RefusedError(ErrorCode.INVALID_REQUEST, message) from None


def _what_became(answer: QuarantineResponse) -> str:
    return f"{answer.replayed} replayed, {answer.discarded} discarded, {answer.stayed} stayed"
