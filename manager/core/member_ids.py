"""Member ids that were handed out and have not been joined with yet (KIP-394; protocol §4, Member ids).

They are bounded, whether a first contact or a join that was withdrawn brought them: so many of a group, and
so many of all groups that do not exist yet, which are in memory only for their ids and may have any name.
Where there is no room the oldest is forgotten, and nobody is refused: who may ask for some groups would keep
new members out of all others by asking. Whoever comes back with a forgotten id is told UNKNOWN_MEMBER_ID and
asks for another one. Members are not concerned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from manager.core.group import Group, TimerKey
    from manager.core.new_group_ids import NewGroupIds
    from manager.core.turn import Turn

OUTSTANDING: Final = "outstanding id"
MOST_IN_A_GROUP: Final = 10_000
"""Each takes 400 bytes until it is used or its time is over."""


def key(member_id: str) -> TimerKey:
    """The timer of an id that was handed out and not used yet."""
    return (OUTSTANDING, member_id)


def expect(turn: Turn, member_id: str, session_timeout_ms: int) -> None:
    """Remember a handed-out id for one session timeout, or until so many came after it.

    It blocks early completion.
    """
    group = turn.group
    if len(group.outstanding) >= MOST_IN_A_GROUP:
        forget(turn, next(iter(group.outstanding)))
    group.outstanding[member_id] = None
    turn.new_group_ids.add(group, member_id)
    group.timers.set(key(member_id), turn.now + session_timeout_ms)


def forget(turn: Turn, member_id: str) -> None:
    """A handed-out id was used, given back, or never came."""
    _drop(turn.group, turn.new_group_ids, member_id)


def _drop(group: Group, ids: NewGroupIds, member_id: str) -> None:
    group.outstanding.pop(member_id, None)
    ids.discard(group, member_id)
    group.timers.cancel(key(member_id))


def make_room(ids: NewGroupIds) -> Iterator[Group]:
    """Forget the oldest ids of groups that do not exist yet while there are too many; yields their groups.

    Nothing waits for an id there, so nothing else comes of it.
    """
    while (oldest := ids.surplus()) is not None:
        group, member_id = oldest
        _drop(group, ids, member_id)
        yield group
