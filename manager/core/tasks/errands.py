"""Errands: a member does something for somebody who waits for what comes of it (protocol §5, Errands).

An errand is known to the manager and to one member, and to no database. The member hears of it, and of its
end, by its heartbeats: what is told there is what holds at the moment, so that nothing is lost with an
answer. Who is given one, and what it is told, is its kind's: `manager.core.tasks.checks` and
`manager.core.tasks.quarantined_rows`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from manager.core import checks as rules
from manager.core import purgatory, sessions
from manager.core.task_registry import WaitingErrand
from protocol.errors import ErrorCode, Failure, RefusedError
from protocol.messages.base import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from manager.core.commands import Errand
    from manager.core.group import Group
    from manager.core.member import Connection, Member, Parked
    from manager.core.task_registry import Holding
    from manager.core.turn import Turn
    from protocol.errands import ErrandKind
    from protocol.messages.errands import ErrandReport, ErrandRequest

MOST_AT_ONCE: Final = 16
"""Of one kind in one group; each member does one of a kind at a time, beside one of another."""
WAY_MS: Final = 2000
"""For the member to hear of it, and for its word to come back, beyond the time that it has."""


def is_free(group: Group, member: Member, kind: ErrandKind) -> bool:
    """Whether `member` has none of that kind."""
    return group.tasks.told(member.id).of(kind) is None


def has_room(group: Group, kind: ErrandKind) -> bool:
    """Whether there may be another one of that kind, whoever does it."""
    return sum(each.request.kind is kind for each in group.tasks.errands.values()) < MOST_AT_ONCE


def give(turn: Turn, member: Member, request: Errand, parked: Parked, holding: Holding | None = None) -> None:
    """Have `member`, which is free, do it; whoever asked waits.

    Args:
        turn: the step this is part of.
        member: is told at once, if a heartbeat of it is held.
        request: what is to be done.
        parked: where the answer goes.
        holding: what `member` has to own until it has answered.
    """
    group = turn.group
    ends_at = turn.now + request.timeout_ms
    name = turn.new_id()
    group.tasks.errands[name] = WaitingErrand(member.id, parked, request, ends_at, holding)
    group.timers.set(purgatory.errand_key(name), ends_at + WAY_MS)
    parked.wait()
    parked.connection.group = group.name
    purgatory.answer_heartbeat(turn, member)


def of_caller(turn: Turn, request: ErrandRequest, parked: Parked) -> WaitingErrand[Any]:
    """The errand that the caller is to do.

    Raises:
        RefusedError: it is over, or was given to another member.
    """
    group = turn.group
    member = rules.member(group, request.member_id, request.instance_id)
    sessions.request_accepted(turn, member, parked)
    errand = group.tasks.errands.get(request.errand)
    if errand is None or errand.member_id != member.id or errand.request.kind is not request.kind:
        raise RefusedError(request.kind.codes.over, f"the {request.kind.noun} {request.errand} is over")
    return errand


def left_ms(turn: Turn, errand: WaitingErrand[Any]) -> int:
    """What is left of its time; more than none."""
    return max(errand.ends_at - turn.now, 1)


def report(turn: Turn, request: ErrandReport, parked: Parked, answer: Callable[[str, Any], Response]) -> None:
    """Pass the member's word on; `answer` makes one of its id and a result."""
    errand = of_caller(turn, request, parked)
    purgatory.unpark_errand(turn.group, request.errand)
    trouble = request.trouble
    if trouble is None:
        turn.answer(errand.parked, answer(request.member_id, request.result))
    else:
        turn.answer(errand.parked, Failure(ErrorCode.of(trouble.code), trouble.message))
    turn.answer(parked, Response())


def time_over(turn: Turn, name: str) -> None:
    """The member had its time, and has not said so itself: it is to let it be."""
    errand = purgatory.unpark_errand(turn.group, name)
    request = errand.request
    message = f"the worker {errand.member_id} has said nothing within {request.timeout_ms / 1000:g} s"
    turn.answer(errand.parked, Failure(request.kind.codes.timed_out, message + request.unheard))
    purgatory.answer_heartbeat(turn, turn.group.members[errand.member_id])


def asker_gone(turn: Turn, connection: Connection) -> None:
    """Whoever waits over `connection` is gone: the member need not go on."""
    group = turn.group
    for name, errand in tuple(group.tasks.errands.items()):
        if errand.parked.connection is connection:
            purgatory.unpark_errand(group, name).parked.settle()
            purgatory.answer_heartbeat(turn, group.members[errand.member_id])


def end_stale(turn: Turn) -> None:
    """End those for which a member would have to own what it does not any more; after every step."""
    group = turn.group
    for name, errand in tuple(group.tasks.errands.items()):
        held = errand.holding
        if held is not None and not group.tasks.holds(errand.member_id, held):
            lost = f"the worker {errand.member_id} has task {held.task} no more under token {held.token}"
            purgatory.interrupt_errand(turn, name, lost)
            purgatory.answer_heartbeat(turn, group.members[errand.member_id])
