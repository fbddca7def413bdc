"""Member ids that were handed out and have not been joined with yet (KIP-394; PROTOCOL.md §4, Member ids)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from manager.core import rebalance
from protocol.errors import ErrorCode, RefusedError

if TYPE_CHECKING:
    from manager.core.group import Group, TimerKey
    from manager.core.turn import Turn

OUTSTANDING: Final = "outstanding id"
MOST_IN_A_GROUP: Final = 10_000
"""Each takes 400 bytes until it is used or its time is over."""
MOST_IN_NEW_GROUPS: Final = 10_000
"""In all groups together that are nothing else yet; such a group takes 5 kB."""


def key(member_id: str) -> TimerKey:
    """The timer of an id that was handed out and not used yet."""
    return (OUTSTANDING, member_id)


def check_room(turn: Turn) -> None:
    """Whether one more id may be handed out: who asks and never joins is not to fill the memory.

    Raises:
        RefusedError: THROTTLING_QUOTA_EXCEEDED; ids are used, or forgotten, and then there is room again.
    """
    group = turn.group
    if len(group.outstanding) >= MOST_IN_A_GROUP:
        where = f"in group {group.name}"
    elif group.is_new and turn.newcomers >= MOST_IN_NEW_GROUPS:
        where = "in groups that do not exist yet"
    else:
        return
    raise RefusedError(
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        f"too many member ids {where} are handed out and not joined with; join again in a while",
    )


def expect(turn: Turn, member_id: str, session_timeout_ms: int) -> None:
    """Remember a handed-out id for one session timeout; it blocks early completion."""
    turn.group.outstanding[member_id] = None
    turn.group.timers.set(key(member_id), turn.now + session_timeout_ms)


def forget(turn: Turn, member_id: str) -> None:
    """A handed-out id was used, given back, or never came."""
    turn.group.outstanding.pop(member_id, None)
    turn.group.timers.cancel(key(member_id))


def never_came(turn: Turn, member_id: str) -> None:
    """The time of a handed-out id ran out."""
    forget(turn, member_id)
    rebalance.maybe_complete(turn)


class Newcomers:
    """Counts the ids in groups that are nothing else yet."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self.total = 0

    def look_at(self, group: Group) -> None:
        """Count those of `group` as it is now."""
        if group.outstanding or group.name in self._ids:
            self.forget(group.name)
            if group.is_new:
                self._ids[group.name] = len(group.outstanding)
                self.total += len(group.outstanding)

    def forget(self, name: str) -> None:
        """The group is not in memory any more."""
        self.total -= self._ids.pop(name, 0)
