"""Member ids that were handed out and have not been joined with yet (KIP-394; protocol §4, Member ids).

They are bounded here, whether a first contact or a join that was withdrawn brought them. Where there is no
room the oldest is forgotten, and nobody is refused for what others have asked for: an id is used within
moments, and whoever asks and never joins only has ids of its own kind forgotten, of that group or of groups
that do not exist yet (`newcomers`). Members are not concerned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from manager.core.membership import rebalance

if TYPE_CHECKING:
    from collections.abc import Iterator

    from manager.core.group import Group, TimerKey
    from manager.core.handed_out import Newcomers
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
    turn.newcomers.add(group, member_id)
    group.timers.set(key(member_id), turn.now + session_timeout_ms)


def forget(turn: Turn, member_id: str) -> None:
    """A handed-out id was used, given back, or never came."""
    _drop(turn.group, turn.newcomers, member_id)


def _drop(group: Group, newcomers: Newcomers, member_id: str) -> None:
    group.outstanding.pop(member_id, None)
    newcomers.discard(group, member_id)
    group.timers.cancel(key(member_id))


def make_room(newcomers: Newcomers) -> Iterator[Group]:
    """Forget the oldest ids of groups that do not exist yet while there are too many; yields their groups.

    Nothing waits for an id there, so nothing else comes of it.
    """
    while (oldest := newcomers.surplus()) is not None:
        group, member_id = oldest
        _drop(group, newcomers, member_id)
        yield group


def never_came(turn: Turn, member_id: str) -> None:
    """The time of a handed-out id ran out."""
    forget(turn, member_id)
    rebalance.maybe_complete(turn)
