"""What ends by itself: sessions, phases, waiting for somebody, and groups (protocol §4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core import member_ids, scheduling
from manager.core.membership import rebalance
from manager.core.membership.departure import depart
from manager.core.tasks import alarm_watch, definitions, lost_workers
from protocol.messages.events import EventType
from protocol.states import GroupState

if TYPE_CHECKING:
    from manager.core.turn import Turn


def session_over(turn: Turn, member_id: str) -> None:
    """Nothing was heard of a member for its session timeout."""
    lost = [turn.group.members[member_id]]
    depart(turn, lost, "its session ended", is_lost=True, reason=f"the session of {member_id} ended")


def id_over(turn: Turn, member_id: str) -> None:
    """Nobody joined with a handed-out id in time."""
    member_ids.forget(turn, member_id)
    rebalance.maybe_complete(turn)


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
        group.timers.set(rebalance.INITIAL_DELAY, turn.now + window)
    else:
        _complete_with_those_who_came(turn)


def join_phase_over(turn: Turn, _: str = "") -> None:
    """The join phase reached its deadline."""
    if turn.group.state is GroupState.PREPARING_REBALANCE:
        _complete_with_those_who_came(turn)


def _complete_with_those_who_came(turn: Turn) -> None:
    """Absent static members stay (KIP-345), all others are lost."""
    group = turn.group
    late = [m for m in group.members.values() if m.id not in group.joining and not m.is_static]
    depart(turn, late, "it did not rejoin in time", is_lost=True)
    rebalance.complete(turn)


def sync_phase_over(turn: Turn, _: str = "") -> None:
    """Those who took part in the join and never synced are removed, and the group rebalances."""
    group = turn.group
    missing = [member for member in group.members.values() if member.id in group.unsynced]
    if missing:
        names = ", ".join(member.id for member in missing)
        depart(turn, missing, "it did not sync in time", is_lost=True, reason=f"{names} did not sync")


def worker_did_not_return(turn: Turn, worker: str) -> None:
    """The tasks of a lost worker have waited for it long enough."""
    if lost_workers.release(turn, worker):
        turn.note(f"{worker} did not return, its tasks are anybody's")
        scheduling.rebalance_soon(turn)


def retention_over(turn: Turn, _: str = "") -> None:
    """An Empty group that keeps nothing is forgotten."""
    group = turn.group
    if group.state is GroupState.EMPTY and not group.offsets and not group.tasks.definitions:
        forget_group(turn, "it was empty and kept nothing for group_retention_ms")


def forget_group(turn: Turn, cause: str) -> None:
    """Drop an Empty group with all it keeps; only its tokens go on counting."""
    group = turn.group
    for row in tuple(group.offsets.values()):
        turn.drop(row)
    for task in tuple(group.tasks.definitions.values()):
        definitions.forget(turn, task)
    for transfer in tuple(group.transfers.rows()):
        turn.drop(transfer)
    for line in tuple(group.rebalances):
        turn.drop(line)
    alarm_watch.forget(turn)
    turn.drop(group.header)
    turn.tell(EventType.GROUP_DELETED, cause=cause)
