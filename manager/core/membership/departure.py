"""Members that go: answers, tasks, blame, rows and what is told of it, in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core import purgatory, sessions
from manager.core.membership import rebalance
from manager.core.tasks import lost_workers, ownership, probation
from protocol.errors import ErrorCode
from protocol.messages.events import EventType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from manager.core.member import Member
    from manager.core.turn import Turn
    from protocol.messages.membership import EngineEnd


def depart(
    turn: Turn,
    members: Iterable[Member],
    why: str,
    *,
    reason: str | None = None,
    is_lost: bool = False,
    engine: EngineEnd | None = None,
    stopped: bool = False,
) -> None:
    """Take `members` out of the group, and bring the others together without them.

    Args:
        turn: the step this is part of.
        members: who goes.
        why: for people, of each of them.
        reason: of the rebalance that follows; without one it is up to the caller.
        is_lost: whether they fell silent: their tasks may be to blame, and wait for their return.
        engine: how Spark's JVM ended, by the member's own word: its tasks may be to blame as well.
        stopped: whether nothing that they owned runs any more, by their own word.
    """
    for member in members:
        owned = turn.group.tasks.owned_by(member.id)
        has_died = is_lost or engine is not None
        if has_died:
            probation.worker_died(turn, member, why, engine)
        _remove(turn, member, why, stopped=stopped)
        if has_died:
            _tell_lost(turn, member, why, len(owned))
        if is_lost:
            lost_workers.keep(turn, owned, member)
    if reason is not None:
        rebalance.start(turn, reason)


def _remove(turn: Turn, member: Member, why: str, *, stopped: bool) -> None:
    group = turn.group
    turn.note(f"{member.id} removed: {why}")
    purgatory.refuse_all(turn, member, ErrorCode.UNKNOWN_MEMBER_ID)
    group.timers.cancel(sessions.key(member))
    if stopped:
        ownership.free_all(turn, member)
    else:
        ownership.take_all(turn, member)
    group.dismiss(member)
    if member.stored is not None:
        turn.drop(member.stored)


def _tell_lost(turn: Turn, member: Member, cause: str, tasks: int) -> None:
    generation = turn.group.generation
    turn.tell(EventType.WORKER_LOST, member=member.id, generation_id=generation, cause=cause, tasks=tasks)
