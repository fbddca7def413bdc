"""The join phase: how it begins, gathers, and completes into a generation (protocol §4, Join phase)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from manager.core import group_states, sessions, waiting
from manager.core.group import InitialDelay
from manager.core.membership import rebalance_history, voting
from manager.core.membership.responses import join_response
from manager.core.tasks import lost_workers, ownership
from protocol.errors import ErrorCode
from protocol.states import GroupState

if TYPE_CHECKING:
    from manager.core.turn import Turn

JOIN_PHASE = ("join phase", "")
INITIAL_DELAY = ("initial delay", "")
SYNC_PHASE = ("sync phase", "")
RETENTION = ("retention", "")


def start(turn: Turn, reason: str) -> None:
    """Bring everybody together anew, unless that is under way; a crash meanwhile loses nothing of it.

    Args:
        turn: the step this is part of.
        reason: why, for people; kept in the history.
    """
    if turn.group.state is not GroupState.PREPARING_REBALANCE:
        prepare(turn, reason)
    outlast_a_crash(turn)
    maybe_complete(turn)


def outlast_a_crash(turn: Turn) -> None:
    """Have a reload rebalance by itself where it would find a Stable group.

    A rebalance that only a parked join needs is not noted down: the join is sent again. A member that was
    removed or a task that was added is not.
    """
    header = turn.group.header
    if header.state is GroupState.STABLE:
        turn.put(msgspec.structs.replace(header, state=GroupState.PREPARING_REBALANCE))


def prepare(turn: Turn, reason: str) -> None:
    """Enter PreparingRebalance. Whoever has a join to park parks it and then calls `maybe_complete`."""
    group = turn.group
    rebalance_history.close_round(turn)
    opening = group.state is GroupState.EMPTY
    group_states.move(turn, group_states.PREPARE)
    rebalance_history.open_round(turn, reason)
    group.timers.cancel(SYNC_PHASE)
    group.unsynced.clear()
    _wake_everybody(turn)
    if opening:
        _open_initial_delay(turn)
    else:
        group.timers.set(JOIN_PHASE, turn.now + group.largest_rebalance_timeout())


def _wake_everybody(turn: Turn) -> None:
    """Whatever waits for something of the old assignment is told to rejoin."""
    for member in turn.group.members.values():
        if member.parked_sync is not None:
            waiting.refuse_sync(turn, member, ErrorCode.REBALANCE_IN_PROGRESS)
            sessions.renew(turn, member)
        waiting.refuse_heartbeat(turn, member, ErrorCode.REBALANCE_IN_PROGRESS)
    waiting.refuse_claims(turn, tuple(turn.group.herd.waiting), ErrorCode.REBALANCE_IN_PROGRESS)


def _open_initial_delay(turn: Turn) -> None:
    """An Empty group gathers for a while, so that its first members start in one generation (KIP-134)."""
    group = turn.group
    delay = group.settings.initial_rebalance_delay_ms
    group.delay = InitialDelay(
        next(iter(group.members), ""), max(group.largest_rebalance_timeout() - delay, 0)
    )
    group.timers.set(INITIAL_DELAY, turn.now + delay)


def initial_delay_over(turn: Turn, _: str = "") -> None:
    """A window of the initial delay ended: open another if somebody came in it and time remains."""
    group = turn.group
    delay = group.delay
    if delay is None:
        return
    window = min(group.settings.initial_rebalance_delay_ms, delay.remaining_ms)
    if delay.joined and window:
        delay.remaining_ms -= window
        delay.joined = False
        group.timers.set(INITIAL_DELAY, turn.now + window)
    else:
        complete(turn)


def join_phase_over(turn: Turn, _: str = "") -> None:
    """The join phase reached its deadline."""
    if turn.group.state is GroupState.PREPARING_REBALANCE:
        complete(turn)


def maybe_complete(turn: Turn) -> None:
    """Complete the join phase early: everybody is parked and nobody is expected any more."""
    group = turn.group
    if (
        group.state is GroupState.PREPARING_REBALANCE
        and group.delay is None
        and not group.outstanding
        and len(group.joining) == len(group.members)
    ):
        complete(turn)


def complete(turn: Turn) -> None:
    """End the join phase with those who came; absent static members stay (KIP-345)."""
    group = turn.group
    group.delay = None
    for member in tuple(group.members.values()):
        if member.id not in group.joining and not member.is_static:
            lost_workers.remove(turn, member, "it did not rejoin in time")
    if group.members and not group.joining:
        group.timers.set(JOIN_PHASE, turn.now + group.largest_rebalance_timeout())
        return
    group.timers.cancel(JOIN_PHASE)
    if group.members:
        _begin_generation(turn)
    else:
        _become_empty(turn)


def _become_empty(turn: Turn) -> None:
    group = turn.group
    group_states.move(turn, group_states.EMPTY_OUT)
    turn.put(
        msgspec.structs.replace(
            group.header,
            generation=group.generation + 1,
            state=GroupState.EMPTY,
            protocol_type=group.protocol_type,
            protocol_name=None,
            leader_id=None,
        )
    )
    group.herd.assigned = {}
    rebalance_history.complete_round(turn)
    begin_retention(turn)


def begin_retention(turn: Turn) -> None:
    """An Empty group is remembered for `group_retention_ms` from now; one that never had members is not."""
    if turn.group.generation:
        turn.put(msgspec.structs.replace(turn.group.header, idle_since_ms=turn.instant.wall))
        retain(turn)


def retain(turn: Turn) -> None:
    """An Empty group is remembered for what is left of its time, whichever manager had it before.

    A wall clock that was set back meanwhile makes that the whole time once more, and never longer.
    """
    group = turn.group
    whole = group.settings.group_retention_ms
    left = group.header.idle_since_ms + whole - turn.instant.wall
    group.timers.set(RETENTION, turn.now + min(max(left, 0), whole))


def _begin_generation(turn: Turn) -> None:
    """Count one up, store that, and let the parked joins know (they hear of it once it is durable)."""
    group = turn.group
    if group.leader_id not in group.joining:
        group.leader_id = next(member_id for member_id in group.members if member_id in group.joining)
    group_states.move(turn, group_states.COMPLETE)
    turn.put(
        msgspec.structs.replace(
            group.header,
            generation=group.generation + 1,
            state=GroupState.PREPARING_REBALANCE,
            protocol_type=group.protocol_type,
            protocol_name=voting.choose_protocol(group),
            leader_id=group.leader_id,
        )
    )
    _store_members(turn)
    joining, group.joining = group.joining, {}
    group.unsynced = set(joining)
    group.timers.set(SYNC_PHASE, turn.now + group.largest_rebalance_timeout())
    for member_id in joining:
        ownership.disown_unclaimed(turn, group.members[member_id])
    group.herd.offered = frozenset(row.task for row, _ in lost_workers.offers(group))
    for member_id, parked in joining.items():
        member = group.members[member_id]
        member.confirmed = True
        turn.answer(parked, join_response(group, member))
    for member in group.members.values():
        sessions.renew(turn, member)


def _store_members(turn: Turn) -> None:
    for member in turn.group.members.values():
        if member.stored is not member.row:
            turn.put(member.row)
