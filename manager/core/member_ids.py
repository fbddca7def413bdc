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
    from manager.core.turn import Turn

OUTSTANDING: Final = "outstanding id"
MOST_IN_A_GROUP: Final = 10_000
"""Each takes 400 bytes until it is used or its time is over."""
MOST_IN_NEW_GROUPS: Final = 10_000
"""In all of them together; a group takes 5 kB."""


class NewGroupIds:
    """The ids of groups that do not exist yet, in the order they were handed out.

    Those of a group that became such a one are the oldest. Were they the newest, whoever makes and unmakes a
    group would have all other ids forgotten, with as few requests.
    """

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], Group] = {}

    def add(self, group: Group, member_id: str) -> None:
        """An id of `group` was handed out."""
        if group.is_new:
            self._ids[group.name, member_id] = group

    def discard(self, group: Group, member_id: str) -> None:
        """It was used, given back or forgotten."""
        self._ids.pop((group.name, member_id), None)

    def forget(self, group: Group) -> None:
        """`group` is not in memory any more, or more than its ids."""
        for member_id in group.outstanding:
            self.discard(group, member_id)

    def look_at(self, group: Group) -> None:
        """`group` may have become more than its ids, or be no more than they by now."""
        first = next(iter(group.outstanding), None)
        if first is None or group.is_new == ((group.name, first) in self._ids):
            return
        if group.is_new:
            theirs = dict.fromkeys(((group.name, member_id) for member_id in group.outstanding), group)
            self._ids = theirs | self._ids
        else:
            self.forget(group)

    def surplus(self) -> tuple[Group, str] | None:
        """The oldest of too many, and its group; None if there is room for all."""
        if len(self._ids) <= MOST_IN_NEW_GROUPS:
            return None
        (_, member_id), group = next(iter(self._ids.items()))
        return group, member_id


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
