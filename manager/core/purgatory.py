"""Requests that wait for their answers, each of which gets exactly one (protocol §4, Parked requests)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manager.core import connections, sessions
from protocol.errors import ErrorCode, Failure
from protocol.messages.membership import HeartbeatResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from manager.core.group import Group, TimerKey
    from manager.core.member import Member, Parked
    from manager.core.task_registry import WaitingErrand
    from manager.core.turn import Turn

HELD = "held heartbeat"
CLAIM = "waiting claim"
ERRAND = "waiting errand"

_WHY = {
    ErrorCode.REBALANCE_IN_PROGRESS: "the group is rebalancing, or a newer request took this one's place",
    ErrorCode.UNKNOWN_MEMBER_ID: "the member was removed from the group",
    ErrorCode.FENCED_INSTANCE_ID: "the instance id belongs to another member by now",
}


def held_key(member: Member) -> TimerKey:
    """The timer that ends a held heartbeat."""
    return (HELD, member.id)


def claim_key(number: str) -> TimerKey:
    """The timer that ends a waiting claim."""
    return (CLAIM, number)


def park_join(turn: Turn, member: Member, parked: Parked) -> None:
    """Let `parked` wait until the join phase completes; a retry takes its place over."""
    refuse_join(turn, member, ErrorCode.REBALANCE_IN_PROGRESS)
    connections.carry(turn.group, member, parked.connection)
    sessions.note_contact(turn, member)
    turn.group.joining[member.id] = parked
    member.worker_metadata()  # read now, or the turn that ends the join phase reads that of a thousand
    parked.wait()
    sessions.suspend(turn, member)


def unpark_claim(group: Group, number: str) -> Parked:
    """Take a waiting claim out; its answer is the caller's to give."""
    group.timers.cancel(claim_key(number))
    return group.tasks.waiting.pop(number).parked


def refuse_join(turn: Turn, member: Member, code: ErrorCode) -> None:
    """Answer the parked join, if there is one."""
    _refuse(turn, turn.group.joining.pop(member.id, None), code)


def refuse_sync(turn: Turn, member: Member, code: ErrorCode) -> None:
    """Answer the parked sync, if there is one."""
    parked, member.parked_sync = member.parked_sync, None
    _refuse(turn, parked, code)


def refuse_heartbeat(turn: Turn, member: Member, code: ErrorCode) -> None:
    """Answer the held heartbeat, if there is one, with bad news."""
    _refuse(turn, _unpark_heartbeat(turn.group, member), code)


def answer_heartbeat(turn: Turn, member: Member) -> None:
    """Answer the held heartbeat, if there is one: all is well, look at the tasks' revision."""
    parked = _unpark_heartbeat(turn.group, member)
    if parked is not None:
        turn.answer(parked, heartbeat_response(turn.group, member))


def heartbeat_response(group: Group, member: Member) -> HeartbeatResponse:
    """All is well; and what there is to look at."""
    return HeartbeatResponse.telling(group.header.tasks_revision, group.tasks.told(member.id))


def _unpark_heartbeat(group: Group, member: Member) -> Parked | None:
    group.timers.cancel(held_key(member))
    parked, member.held_heartbeat = member.held_heartbeat, None
    return parked


def refuse_claims(turn: Turn, numbers: Iterable[str], code: ErrorCode) -> None:
    """Answer these waiting claims."""
    for number in numbers:
        _refuse(turn, unpark_claim(turn.group, number), code)


def _refuse(turn: Turn, parked: Parked | None, code: ErrorCode) -> None:
    if parked is not None:
        turn.answer(parked, Failure(code, _WHY[code]))


def refuse_all(turn: Turn, member: Member, code: ErrorCode) -> None:
    """Answer whatever `member` waits for."""
    refuse_join(turn, member, code)
    refuse_sync(turn, member, code)
    refuse_heartbeat(turn, member, code)
    claims = turn.group.tasks.waiting.items()
    refuse_claims(turn, [number for number, claim in claims if claim.member_id == member.id], code)
    gone = f"the worker {member.id} is no member of the group any more"
    for name in filter(None, turn.group.tasks.told(member.id)):
        interrupt_errand(turn, name, gone)


def errand_key(name: str) -> TimerKey:
    """The timer that ends an errand."""
    return (ERRAND, name)


def unpark_errand(group: Group, name: str) -> WaitingErrand[Any]:
    """Take an errand out; the answer is the caller's to give."""
    group.timers.cancel(errand_key(name))
    return group.tasks.errands.pop(name)


def interrupt_errand(turn: Turn, name: str, why: str) -> WaitingErrand[Any]:
    """Take an errand out and tell whoever waits for it that nothing will be heard of it."""
    errand = unpark_errand(turn.group, name)
    code = errand.request.kind.codes.interrupted
    turn.answer(errand.parked, Failure(code, why + errand.request.unheard))
    return errand


def give_up(group: Group, member: Member, parked: Parked) -> None:
    """The connection of `parked` is gone: nobody is there to hear its answer."""
    parked.settle()
    if group.joining.get(member.id) is parked:
        del group.joining[member.id]
    if member.parked_sync is parked:
        member.parked_sync = None
    if member.held_heartbeat is parked:
        _unpark_heartbeat(group, member)
    for number in [n for n, claim in group.tasks.waiting.items() if claim.parked is parked]:
        unpark_claim(group, number)


def take_all(group: Group) -> tuple[Parked, ...]:
    """Every request that waits in `group`, taken out of it unanswered."""
    parked = [*group.joining.values(), *(claim.parked for claim in group.tasks.waiting.values())]
    parked += [errand.parked for errand in group.tasks.errands.values()]
    for member in group.members.values():
        parked += [p for p in (member.parked_sync, member.held_heartbeat) if p is not None]
        member.parked_sync = member.held_heartbeat = None
    group.joining = {}
    group.tasks.waiting = {}
    group.tasks.errands = {}
    return tuple(parked)
