"""The join phase: how it begins, gathers, and completes into a generation (protocol §4, Join phase)."""

from __future__ import annotations

from collections import Counter
from itertools import takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from manager.core import group_states, purgatory, scheduling, sessions
from manager.core.group import PACED_KEPT, REBALANCES_KEPT, InitialDelay, Round
from manager.core.membership.responses import join_response
from manager.core.stored_rows import RebalanceRow
from manager.core.tasks import heap_candidates, ownership
from manager.core.tasks.offers import Offers
from protocol.errors import ErrorCode
from protocol.messages.events import EventType
from protocol.states import GroupState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from manager.core.group import Group
    from manager.core.turn import Turn

JOIN_PHASE = ("join phase", "")
INITIAL_DELAY = ("initial delay", "")
SYNC_PHASE = ("sync phase", "")
MAX_REASON_LENGTH = 255
NOBODY: Final[Mapping[str, Sequence[str]]] = MappingProxyType({})


def start(turn: Turn, reason: str) -> None:
    """Bring everybody together anew, unless that is under way; a crash meanwhile loses nothing of it.

    Args:
        turn: the step this is part of.
        reason: why, for people; kept in the history.
    """
    if turn.group.state is not GroupState.PREPARING_REBALANCE:
        prepare(turn, reason)
    scheduling.outlast_a_crash(turn)
    maybe_complete(turn)


def tasks_changed(turn: Turn, _: str = "") -> None:
    """The tasks have been left alone for a while; an assignment that is being made is awaited first."""
    group = turn.group
    if group.state is GroupState.AWAITING_SYNC:
        group.timers.set(scheduling.GATHERING, turn.now + scheduling.GATHER_QUIET_MS)
    elif group.state is GroupState.STABLE:
        start(turn, "the set of tasks changed")


def prepare(turn: Turn, reason: str, *, goes_on: bool = False) -> None:
    """Enter PreparingRebalance. Whoever has a join to park parks it and then calls `maybe_complete`.

    The rebalance `goes_on` if it carries out more of what was decided before it.
    """
    group = turn.group
    close_round(turn)
    opening = group.state is GroupState.EMPTY
    group_states.move(turn, group_states.PREPARE)
    open_round(turn, reason, goes_on=goes_on)
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
            purgatory.refuse_sync(turn, member, ErrorCode.REBALANCE_IN_PROGRESS)
            sessions.renew(turn, member)
        purgatory.refuse_heartbeat(turn, member, ErrorCode.REBALANCE_IN_PROGRESS)
    purgatory.refuse_claims(turn, tuple(turn.group.tasks.waiting), ErrorCode.REBALANCE_IN_PROGRESS)


def _open_initial_delay(turn: Turn) -> None:
    """An Empty group gathers for a while, so that its first members start in one generation (KIP-134)."""
    group = turn.group
    delay = group.settings.initial_rebalance_delay_ms
    group.delay = InitialDelay(
        next(iter(group.members), ""), max(group.largest_rebalance_timeout() - delay, 0)
    )
    group.timers.set(INITIAL_DELAY, turn.now + delay)


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
    """End the join phase with those who are members still."""
    group = turn.group
    group.delay = None
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
    scheduling.put_header(
        turn,
        rebalance_on_load=False,
        generation=group.generation + 1,
        protocol_type=group.protocol_type,
        protocol_name=None,
        leader_id=None,
    )
    group.tasks.assigned = {}
    group.tasks.shares = {}
    group.tasks.to_come = {}
    complete_round(turn)
    scheduling.begin_retention(turn)


def _begin_generation(turn: Turn) -> None:
    """Count one up, store that, and let the parked joins know (they hear of it once it is durable)."""
    group = turn.group
    if group.leader_id not in group.joining:
        group.leader_id = next(member_id for member_id in group.members if member_id in group.joining)
    group_states.move(turn, group_states.COMPLETE)
    scheduling.put_header(
        turn,
        rebalance_on_load=True,
        generation=group.generation + 1,
        protocol_type=group.protocol_type,
        protocol_name=choose_protocol(group),
        leader_id=group.leader_id,
    )
    _store_members(turn)
    joining, group.joining = group.joining, {}
    group.unsynced = set(joining)
    group.timers.set(SYNC_PHASE, turn.now + group.largest_rebalance_timeout())
    for member_id in joining:
        ownership.disown_unclaimed(turn, group.members[member_id])
    group.tasks.offered = set()
    group.tasks.heap.apart = heap_candidates.to_be_seen_alone(group, Offers(group), turn.now)
    for member_id, parked in joining.items():
        member = group.members[member_id]
        member.confirmed = True
        turn.answer(parked, join_response(group, member))
    for member in group.members.values():
        sessions.renew(turn, member)


def choose_protocol(group: Group) -> str:
    """What a generation runs on, of the protocols that all support (protocol §4, Protocol choice).

    Each member votes for the first candidate of its own list; a tie goes to the leader's preference.
    """
    everybody = len(group.members)
    candidates = {name for name, votes in group.votes.items() if votes == everybody}
    ballot: Counter[str] = Counter()
    for member in group.members.values():
        ballot[next(p.name for p in member.row.protocols if p.name in candidates)] += 1
    most = max(ballot.values())
    leader = group.members[group.leader_id or next(iter(group.members))]
    return next(p.name for p in leader.row.protocols if ballot[p.name] == most)


def _store_members(turn: Turn) -> None:
    for member in turn.group.members.values():
        if member.stored is not member.row:
            turn.put(member.row)


def open_round(turn: Turn, reason: str, *, goes_on: bool = False) -> None:
    """A rebalance begins, for `reason` (cut at 255 characters, KIP-800)."""
    group = turn.group
    reason = reason[:MAX_REASON_LENGTH]
    turn.note(f"rebalance: {reason}")
    group.round = Round(reason, turn.now, turn.instant.wall, dict(group.tasks.assigned), goes_on)


def complete_round(turn: Turn, anew: Mapping[str, Sequence[str]] = NOBODY) -> None:
    """The rebalance under way led to an assignment, or to an empty group; the outside is told.

    Args:
        turn: of the group.
        anew: the tasks of those members that are given anything but what they had.
    """
    line = close_round(turn, anew)
    if line is not None:
        turn.tell(
            EventType.REBALANCE_COMPLETED,
            cause=line.reason,
            generation_id=line.generation_id,
            duration_ms=line.duration_ms,
            members=line.members,
            moved=line.moved,
        )


def close_round(turn: Turn, anew: Mapping[str, Sequence[str]] = NOBODY) -> RebalanceRow | None:
    """The rebalance under way came to its end, if only because the next one begins; returns its line."""
    group = turn.group
    closing, group.round = group.round, None
    if closing is None:
        return None
    if (oldest := _no_longer_kept(group, closing)) is not None:
        turn.drop(oldest)
    line = RebalanceRow(
        group=group.name,
        generation_id=group.generation,
        reason=closing.reason,
        started_at_ms=closing.started_at_ms,
        duration_ms=turn.now - closing.started_at,
        members=len(group.members),
        moved=_count_moved(closing.before, anew),
    )
    turn.put(line)
    return line


def _no_longer_kept(group: Group, closing: Round) -> RebalanceRow | None:
    """The line that makes room for that of this one, if any has to."""
    lines = group.rebalances
    if closing.goes_on:
        alike = list(takewhile(lambda line: line.reason == closing.reason, reversed(lines)))
        if len(alike) >= PACED_KEPT:
            return alike[-1]
    return lines[0] if len(lines) == REBALANCES_KEPT else None


def _count_moved(before: Mapping[str, str], anew: Mapping[str, Sequence[str]]) -> int:
    """A task that nobody had has not moved; nor has any of those who keep what they had."""
    return sum(before.get(task, name) != name for name, tasks in anew.items() for task in tasks)
