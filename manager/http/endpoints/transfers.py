"""Transfers of tasks between groups, for admins (protocol §5, Transfers)."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from manager.core.member import Member
from manager.core.tasks.placing import unplaced
from manager.core.tasks.task_lists import refused_list
from manager.core.transfer_commands import CancelTransfer, StartTransfer, TransferRows
from manager.core.views.transfers import transfer_fields
from manager.http.audit_log import name_group, note
from manager.http.authorization import caller_of
from manager.http.endpoint import ACCEPTED, Endpoint
from protocol.errors import ErrorCode, Failure, RefusedError
from protocol.messages.tasks import Problem
from protocol.messages.transfers import (
    StartTransferRequest,
    Transfer,
    TransferListQuery,
    TransferListResponse,
    TransferredTask,
    TransferResponse,
)
from protocol.roles import Role
from protocol.states import TransferStep

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from aiohttp import web

    from manager.cluster.directory import Directory
    from manager.core.stored_rows import TransferRow
    from manager.core.turn import Outcome
    from manager.http.endpoint import Call, Plain
    from manager.http.forwarding import Forwarding
    from manager.runtime.coordinator_runtime import CoordinatorRuntime
    from manager.storage.transfer_table import Destination

TRANSFERS = "/v1/transfers"
TRANSFER = f"{TRANSFERS}/{{transfer}}"


class TransferHandlers:
    """Any manager answers; the one that has the group which the tasks leave begins and cancels."""

    def __init__(
        self, runtime: CoordinatorRuntime, directory: Directory, forwarding: Forwarding | None = None
    ) -> None:
        self._runtime = runtime
        self._table = directory.transfers
        self._forwarding = forwarding

    def endpoints(self) -> list[Endpoint]:
        """All of /v1/transfers."""
        return [
            Endpoint(
                "POST",
                TRANSFERS,
                "startTransfer",
                "Have tasks of one group go on in another",
                self.start,
                role=Role.ADMIN,
                any_group=True,
                body=StartTransferRequest,
                response=TransferResponse,
                success=(ACCEPTED,),
                errors=(
                    ErrorCode.GROUP_ID_NOT_FOUND,
                    ErrorCode.UNKNOWN_TASK,
                    ErrorCode.TASK_EXISTS,
                    ErrorCode.TASK_UNDER_TRANSFER,
                    ErrorCode.NO_ELIGIBLE_WORKER,
                    ErrorCode.NOT_COORDINATOR,
                    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                ),
            ),
            Endpoint(
                "GET",
                TRANSFERS,
                "listTransfers",
                "The latest transfers, the newest first",
                self.list_all,
                role=Role.VIEWER,
                any_group=True,
                asks=TransferListQuery,
                response=TransferListResponse,
            ),
            Endpoint(
                "GET",
                TRANSFER,
                "getTransfer",
                "How far a transfer has come",
                self.show,
                role=Role.VIEWER,
                any_group=True,
                response=TransferResponse,
                errors=(ErrorCode.UNKNOWN_TRANSFER,),
            ),
            Endpoint(
                "POST",
                f"{TRANSFER}/cancel",
                "cancelTransfer",
                "Have the tasks stay where they are, unless they are given already",
                self.cancel,
                role=Role.ADMIN,
                any_group=True,
                response=TransferResponse,
                errors=(
                    ErrorCode.UNKNOWN_TRANSFER,
                    ErrorCode.TASK_TRANSFERRED,
                    ErrorCode.NOT_COORDINATOR,
                    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                ),
            ),
        ]

    async def start(self, call: Call[StartTransferRequest, None]) -> Outcome | web.StreamResponse:
        """Check everything, then stop the tasks; all else is the driver's."""
        body = call.body
        name_group(call.request, body.source)
        only = ", only checked" if body.validate_only else ""
        note(call.request, f"{len(body.tasks)} tasks to group {body.target}{only}")
        for group in (body.source, body.target):
            _require(call, group)
        names = _names(body)
        passed = await self._passed_on(call, body.source, msgspec.json.encode(body))
        if passed is not None:
            return passed
        known = () if body.id is None else await self._table.of(body.id)
        if any(row.group != body.source for row in known):
            raise _invalid(f"id: {body.id} is that of a transfer of another group")
        command = StartTransfer(
            transfer=body.id or uuid.uuid4().hex,
            to_group=body.target,
            tasks=names,
            by=caller_of(call.request).name,
            validate_only=body.validate_only,
        )
        if known:
            return await self._ask(body.source, command, body)
        return await self._check_and_ask(command, body)

    async def _check_and_ask(self, command: StartTransfer, body: StartTransferRequest) -> Outcome:
        """What is wrong in the group that they leave is told first: all else would be of other tasks."""
        checked = await self._ask(body.source, replace(command, validate_only=True), body)
        if isinstance(checked, Failure):
            return checked
        await self._check(body, command.tasks)
        return checked if body.validate_only else await self._ask(body.source, command, body)

    async def _ask(
        self, group: str, command: StartTransfer | CancelTransfer, body: StartTransferRequest | None = None
    ) -> Outcome:
        outcome = await self._runtime.ask(group, command)
        if not isinstance(outcome, TransferRows):
            return outcome
        self._runtime.transfers_wanted.set()
        if not outcome.rows and body is not None:
            return _checked(body)
        return TransferResponse(**transfer_fields([row for row in outcome.rows if row.leaves]))

    async def _check(self, body: StartTransferRequest, names: Mapping[str, str]) -> None:
        """What can be known before anything stops; the other group looks again when the tasks come.

        Raises:
            RefusedError: with what is wrong with each task.
        """
        there = await self._table.destination(body.target, [*names.values()], body.source, [*names])
        if not there.exists:
            raise RefusedError(ErrorCode.GROUP_ID_NOT_FOUND, f"to: there is no group {body.target}")
        if not there.is_sparkherd:
            message = f"to: group {body.target} runs no tasks: its type is not sparkherd"
            raise RefusedError(ErrorCode.NO_ELIGIBLE_WORKER, message)
        if problems := tuple(_taken(body, names, there)):
            raise refused_list(ErrorCode.TASK_EXISTS, problems)
        if not body.allow_unplaced and (problems := tuple(_unplaced(body, there))):
            raise refused_list(ErrorCode.NO_ELIGIBLE_WORKER, problems)

    async def list_all(self, call: Call[None, TransferListQuery]) -> Outcome:
        """Those that the caller may know of."""
        caller = caller_of(call.request)
        found = await self._table.latest(call.asked.group, call.asked.state, caller.covers)
        return TransferListResponse(transfers=tuple(Transfer(**transfer_fields(rows)) for rows in found))

    async def show(self, call: Plain) -> Outcome:
        """One of them."""
        return _shown(call, await self._table.of(call.request.match_info["transfer"]))

    async def cancel(self, call: Plain) -> Outcome | web.StreamResponse:
        """Asked twice, it is answered twice."""
        transfer = call.request.match_info["transfer"]
        rows = await self._table.of(transfer)
        known = _shown(call, rows)
        if isinstance(known, Failure):
            return known
        name_group(call.request, rows[0].group)
        for group in (rows[0].group, rows[0].peer_group):
            _require(call, group)
        if (passed := await self._passed_on(call, rows[0].group)) is not None:
            return passed
        cause = f"cancelled by {caller_of(call.request).name}"
        return await self._ask(rows[0].group, CancelTransfer(transfer=transfer, cause=cause))

    async def _passed_on(
        self, call: Call[object, None], group: str, body: bytes | None = None
    ) -> web.StreamResponse | None:
        if self._forwarding is None:
            return None
        return await self._forwarding.pass_on(call.request, group, body=body)


def _require(call: Call[object, None], group: str) -> None:
    """The caller's token is for both groups."""
    if not caller_of(call.request).covers(group):
        message = f"the token {caller_of(call.request).name} is not for group {group}"
        raise RefusedError(ErrorCode.GROUP_AUTHORIZATION_FAILED, message)


def _names(body: StartTransferRequest) -> Mapping[str, str]:
    """Each task with its name in the other group.

    Raises:
        RefusedError: INVALID_REQUEST, which names the field.
    """
    if body.source == body.target:
        raise _invalid(f"to: the tasks are in group {body.target} already")
    if len(set(body.tasks)) < len(body.tasks):
        raise _invalid("tasks: one of them is there twice")
    if strangers := sorted(body.rename.keys() - set(body.tasks)):
        raise _invalid(f"rename.{strangers[0]}: is not among the tasks")
    names = {task: body.rename.get(task, task) for task in body.tasks}
    if len(set(names.values())) < len(names):
        raise _invalid("rename: two of the tasks would have one name")
    return names


def _invalid(message: str) -> RefusedError:
    return RefusedError(ErrorCode.INVALID_REQUEST, message)


def _taken(body: StartTransferRequest, names: Mapping[str, str], there: Destination) -> Iterator[Problem]:
    for position, name in enumerate(names.values()):
        if name in there.taken:
            yield Problem(f"tasks[{position}]", f"there is a task {name} in group {body.target}; rename it")


def _unplaced(body: StartTransferRequest, there: Destination) -> Iterator[Problem]:
    places = {task: position for position, task in enumerate(body.tasks)}
    for task, why in unplaced(map(Member, there.members), there.tasks):
        yield Problem(f"tasks[{places[task]}]", f"group {body.target} could not run {task}: {why}")


def _shown(call: Call[object, None], rows: Sequence[TransferRow]) -> TransferResponse | Failure:
    """Of groups that the caller may not know of there is nothing to be seen."""
    caller = caller_of(call.request)
    if not any(caller.covers(row.group) or caller.covers(row.peer_group) for row in rows):
        return Failure(ErrorCode.UNKNOWN_TRANSFER, "there is no such transfer, or it was over long ago")
    return TransferResponse(**transfer_fields(rows))


def _checked(body: StartTransferRequest) -> TransferResponse:
    """What would be begun."""
    return TransferResponse(
        id=None,
        source=body.source,
        target=body.target,
        step=TransferStep.STOPPING,
        started_at_ms=0,
        changed_at_ms=0,
        by=None,
        cause=None,
        tasks=tuple(
            TransferredTask(task=task, to_task=body.rename.get(task, task), step=TransferStep.STOPPING)
            for task in body.tasks
        ),
    )
