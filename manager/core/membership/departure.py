"""A member goes: its requests are answered, its tasks are free, and that it went is durable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core import sessions, waiting
from manager.core.tasks import ownership
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from manager.core.member import Member
    from manager.core.turn import Turn


def remove(turn: Turn, member: Member, why: str, *, stopped: bool = False) -> None:
    """Take `member` out of the group; what the group does about it is up to the caller.

    Args:
        turn: the step this is part of.
        member: who goes.
        why: for the group's story.
        stopped: whether nothing that it owned runs any more, by its own word.
    """
    group = turn.group
    turn.note(f"{member.id} removed: {why}")
    waiting.refuse_all(turn, member, ErrorCode.UNKNOWN_MEMBER_ID)
    group.timers.cancel(sessions.key(member))
    if stopped:
        ownership.free_all(turn, member)
    else:
        ownership.take_all(turn, member)
    group.dismiss(member)
    if member.stored is not None:
        turn.drop(member.stored)
