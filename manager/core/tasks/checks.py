"""Checks: a worker looks at a definition that need not be a task's, and somebody waits for what it finds.

The check is known to the manager and to one worker, and to no database (protocol §5, Checks). The worker
hears of it, and of its end, by its heartbeats: what is told there is what holds at the moment, so that
nothing is lost with an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from assignors.base import Member as Candidate
from assignors.base import Task as Wanted
from assignors.eligibility import Eligibility
from manager.core import checks as rules
from manager.core import purgatory, sessions
from manager.core.task_registry import WaitingCheck
from protocol.errors import ErrorCode, Failure, RefusedError
from protocol.messages.base import Response
from protocol.messages.checks import CheckResponse, FetchCheckResponse
from protocol.worker_metadata import PROTOCOL_TYPE, WorkerMetadata

if TYPE_CHECKING:
    from manager.core.commands import CheckDefinition, NewDefinition
    from manager.core.group import Group
    from manager.core.member import Connection, Member, Parked
    from manager.core.turn import Turn
    from protocol.messages.checks import FetchCheckRequest, ReportCheckRequest

MOST_AT_ONCE: Final = 16
"""Of one group; each worker does one at a time."""
WAY_MS: Final = 2000
"""For the worker to hear of the check, and for its word to come back, beyond the time that it has."""


def begin(turn: Turn, request: CheckDefinition, parked: Parked) -> None:
    """Give the check to a worker that may run such a task; whoever asked waits for what it finds."""
    group = turn.group
    rules.known(group)
    if group.protocol_type not in {PROTOCOL_TYPE, None}:
        message = f"group {group.name} has no workers: its type is not sparkherd"
        raise RefusedError(ErrorCode.NO_ELIGIBLE_WORKER, message)
    rules.stable(group)
    member = _least_busy(group, _eligible(group, request.definition))
    ends_at = turn.now + request.timeout_ms
    name = turn.new_id()
    member.unfinished_checks += 1
    group.tasks.checks[name] = WaitingCheck(member.id, parked, request, ends_at)
    group.timers.set(purgatory.check_key(name), ends_at + WAY_MS)
    parked.wait()
    parked.connection.group = group.name
    purgatory.answer_heartbeat(turn, member)


def _eligible(group: Group, definition: NewDefinition) -> list[Member]:
    """The members that could run such a task, by the rules that assignors have, and that know checks."""
    present = [
        (member, member.worker_metadata() or WorkerMetadata())
        for member in group.members.values()
        if not member.row.draining
    ]
    eligibility = Eligibility([_candidate(member, metadata) for member, metadata in present])
    wanted = Wanted("", worker=definition.worker, labels=definition.labels, needs=definition.needs)
    able = [present[index] for index in eligibility.of(wanted)]
    found = [member for member, metadata in able if metadata.checks]
    if not found:
        why = _why_nobody(group, eligibility.why_nobody(wanted), are_drained=not present)
        raise RefusedError(ErrorCode.NO_ELIGIBLE_WORKER, why)
    return found


def _candidate(member: Member, metadata: WorkerMetadata) -> Candidate:
    return Candidate(
        member.id,
        instance_id=member.row.instance_id,
        labels=metadata.labels,
        spark=metadata.spark,
        formats=metadata.formats,
    )


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
    free = [member for member in eligible if registry.check_of(member.id) is None]
    if not free or len(registry.checks) >= MOST_AT_ONCE:
        message = "every worker that could do the check is at another one; try again in a moment"
        raise RefusedError(ErrorCode.TOO_MANY_CHECKS, message)
    return min(free, key=lambda member: (member.unfinished_checks, len(registry.owned_by(member.id))))


def fetch(turn: Turn, request: FetchCheckRequest, parked: Parked) -> None:
    """Tell the worker what it is to look at, and how long it may."""
    check = _of_caller(turn, request, parked)
    wanted = check.request
    answer = FetchCheckResponse(
        definition=wanted.definition.document,
        rows=wanted.rows,
        begin=wanted.begin,
        timeout_ms=max(check.ends_at - turn.now, 1),
    )
    turn.answer(parked, answer)


def report(turn: Turn, request: ReportCheckRequest, parked: Parked) -> None:
    """Pass the worker's word on."""
    check = _of_caller(turn, request, parked)
    purgatory.unpark_check(turn.group, request.check)
    if request.result is not None:
        turn.group.members[check.member_id].unfinished_checks = 0
    turn.answer(check.parked, _outcome(request))
    turn.answer(parked, Response())


def _outcome(request: ReportCheckRequest) -> CheckResponse | Failure:
    result, trouble = request.result, request.trouble
    if trouble is not None:
        return Failure(ErrorCode.of(trouble.code), trouble.message)
    if result is None:
        raise AssertionError("a report without a result, and without trouble")
    return CheckResponse(worker=request.member_id, **msgspec.structs.asdict(result))


def _of_caller(turn: Turn, request: FetchCheckRequest | ReportCheckRequest, parked: Parked) -> WaitingCheck:
    """The check that the caller is to do.

    Raises:
        RefusedError: it is over, or was given to another member.
    """
    group = turn.group
    member = rules.member(group, request.member_id, request.instance_id)
    sessions.request_accepted(turn, member, parked)
    check = group.tasks.checks.get(request.check)
    if check is None or check.member_id != member.id:
        raise RefusedError(ErrorCode.UNKNOWN_CHECK, f"the check {request.check} is over")
    return check


def time_over(turn: Turn, name: str) -> None:
    """The worker had its time, and has not said so itself: it is to let the check be."""
    check = purgatory.unpark_check(turn.group, name)
    seconds = f"{check.request.timeout_ms / 1000:g}"
    message = f"the worker {check.member_id} has said nothing within {seconds} s"
    turn.answer(check.parked, Failure(ErrorCode.CHECK_TIMED_OUT, message))
    purgatory.answer_heartbeat(turn, turn.group.members[check.member_id])


def asker_gone(turn: Turn, connection: Connection) -> None:
    """Whoever waits over `connection` is gone: the worker need not go on."""
    group = turn.group
    for name, check in tuple(group.tasks.checks.items()):
        if check.parked.connection is connection:
            purgatory.unpark_check(group, name).parked.settle()
            purgatory.answer_heartbeat(turn, group.members[check.member_id])
