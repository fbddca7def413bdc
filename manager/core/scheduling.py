"""What a group is to do by itself later: rebalance when its tasks have changed, be forgotten when it is idle.

Both are noted in the group's row, so that whoever takes the group up goes on with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from protocol.states import GroupState

if TYPE_CHECKING:
    from manager.core.group import Group
    from manager.core.turn import Turn

GATHERING: Final = ("gathering", "")
GATHER_QUIET_MS: Final = 50
"""How long the set of tasks must have been left alone before the group rebalances."""
GATHER_AT_MOST_MS: Final = 1000
"""The longest that a change may wait for others (protocol §5)."""
RETENTION: Final = ("retention", "")


def outlast_a_crash(turn: Turn) -> None:
    """Have a reload rebalance by itself where it would find a Stable group.

    A rebalance that only a parked join needs is not noted down: the join is sent again. A member that was
    removed or a task that was added is not.
    """
    if turn.group.header.state is GroupState.STABLE:
        put_header(turn, rebalance_on_load=True)


def put_header(turn: Turn, *, rebalance_on_load: bool, **changes: Any) -> None:
    """Store `changes` of the group's row; nothing else says whether a reload is to rebalance."""
    turn.update(turn.group.header, rebalance_on_load=rebalance_on_load, **changes)


def rebalance_soon(turn: Turn) -> None:
    """The set of tasks changed: rebalance soon, once for all changes of a short while.

    A join phase under way needs no other: its leader is told the tasks when it completes.
    """
    group = turn.group
    outlast_a_crash(turn)
    if group.state not in {GroupState.STABLE, GroupState.AWAITING_SYNC}:
        return
    registry = group.tasks
    if GATHERING not in group.timers:
        registry.gathering_since = turn.now
    at_most = registry.gathering_since + GATHER_AT_MOST_MS
    group.timers.set(GATHERING, min(turn.now + GATHER_QUIET_MS, at_most))


def is_rebalancing_soon(group: Group) -> bool:
    """Whether the set of tasks has changed since the leader was told of it."""
    return GATHERING in group.timers


def begin_retention(turn: Turn) -> None:
    """An Empty group is remembered for `group_retention_ms` from now; one that never had members is not."""
    if turn.group.generation:
        turn.update(turn.group.header, idle_since_ms=turn.instant.wall)
        resume_retention(turn)


def resume_retention(turn: Turn) -> None:
    """An Empty group is remembered for what is left of its time, whichever manager had it before.

    A wall clock that was set back meanwhile makes that the whole time once more, and never longer.
    """
    group = turn.group
    whole = group.settings.group_retention_ms
    left = group.header.idle_since_ms + whole - turn.instant.wall
    group.timers.set(RETENTION, turn.now + min(max(left, 0), whole))
