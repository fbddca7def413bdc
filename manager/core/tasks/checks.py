"""Checks: a worker looks at a definition that need not be a task's, and somebody waits for what it finds.

Any worker will do that could run such a task (protocol §5, Checks); the way there and back is that of
`manager.core.tasks.errands`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from assignors.base import Task as Wanted
from assignors.eligibility import Eligibility
from manager.core import checks as rules
from manager.core.tasks import errands
from manager.core.tasks.placing import candidate
from protocol.errands import ErrandKind
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.checks import CheckResponse, FetchCheckResponse
from protocol.worker_metadata import PROTOCOL_TYPE, WorkerMetadata

if TYPE_CHECKING:
    from manager.core.commands import CheckDefinition, NewDefinition
    from manager.core.group import Group
    from manager.core.member import Member, Parked
    from manager.core.turn import Turn
    from protocol.messages.checks import CheckResult, FetchCheckRequest, ReportCheckRequest


def begin(turn: Turn, request: CheckDefinition, parked: Parked) -> None:
    """Give the check to a worker that may run such a task; whoever asked waits for what it finds."""
    group = turn.group
    rules.known(group)
    if group.protocol_type not in {PROTOCOL_TYPE, None}:
        message = f"group {group.name} has no workers: its type is not sparkherd"
        raise RefusedError(ErrorCode.NO_ELIGIBLE_WORKER, message)
    rules.stable(group)
    member = _least_busy(group, _eligible(group, request.definition))
    member.unfinished_checks += 1
    errands.give(turn, member, request, parked)


def _eligible(group: Group, definition: NewDefinition) -> list[Member]:
    """The members that could run such a task, by the rules that assignors have, and that know checks."""
    present = [
        (member, member.worker_metadata() or WorkerMetadata())
        for member in group.members.values()
        if not member.row.draining
    ]
    eligibility = Eligibility([candidate(member, metadata) for member, metadata in present])
    wanted = Wanted("", worker=definition.worker, labels=definition.labels, needs=definition.needs)
    able = [present[index] for index in eligibility.of(wanted)]
    found = [member for member, metadata in able if metadata.checks]
    if not found:
        why = _why_nobody(group, eligibility.why_nobody(wanted), are_drained=not present)
        raise RefusedError(ErrorCode.NO_ELIGIBLE_WORKER, why)
    return found


def _why_nobody(group: Group, missing: str | None, *, are_drained: bool) -> str:
    if not group.members:
        return "the group has no workers"
    if are_drained:
        return "every worker of the group is being drained"
    return missing or "the workers that could are of an earlier version, which knows no checks"


def _least_busy(group: Group, eligible: list[Member]) -> Member:
    """Of those without a check the one with the fewest tasks; the first that came, of several.

    One that was given checks and came to no result since may still hang in one, and the next would wait for
    that: others go before it.
    """
    registry = group.tasks
    free = [member for member in eligible if errands.is_free(group, member, ErrandKind.CHECK)]
    if not free or not errands.has_room(group, ErrandKind.CHECK):
        message = "every worker that could do the check is at another one; try again in a moment"
        raise RefusedError(ErrorCode.TOO_MANY_CHECKS, message)
    return min(free, key=lambda member: (member.unfinished_checks, len(registry.owned_by(member.id))))


def fetch(turn: Turn, request: FetchCheckRequest, parked: Parked) -> None:
    """Tell the worker what it is to look at, and how long it may."""
    errand = errands.of_caller(turn, request, parked)
    wanted: CheckDefinition = errand.request
    answer = FetchCheckResponse(
        definition=wanted.definition.document,
        rows=wanted.rows,
        begin=wanted.begin,
        timeout_ms=errands.left_ms(turn, errand),
    )
    turn.answer(parked, answer)


def report(turn: Turn, request: ReportCheckRequest, parked: Parked) -> None:
    """Pass the worker's word on."""
    errands.report(turn, request, parked, _response)
    if request.result is not None:
        turn.group.members[request.member_id].unfinished_checks = 0


def _response(worker: str, result: CheckResult) -> CheckResponse:
    return CheckResponse(worker=worker, **msgspec.structs.asdict(result))
