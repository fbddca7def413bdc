"""All groups of one manager: which rule a request or a deadline goes to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manager.core import (
    commands,
    connections,
    loading,
    member_ids,
    purgatory,
    scheduling,
    sessions,
    transfer_commands,
)
from manager.core.alarms.book import UNREAD
from manager.core.group import Group
from manager.core.history import HistoryMemory
from manager.core.membership import (
    admin,
    disconnects,
    expiry,
    heartbeat,
    join,
    leave,
    offer,
    offsets,
    rebalance,
    sync,
)
from manager.core.new_group_ids import NewGroupIds
from manager.core.tasks import (
    alarm_acks,
    alarm_watch,
    aside,
    checks,
    claims,
    definitions,
    errands,
    former_owners,
    lag,
    lost_workers,
    ownership,
    probation,
    quarantined_rows,
    reports,
    resets,
    task_lists,
    transfers,
)
from manager.core.timers import Timers
from manager.core.turn import ClockReading, Turn
from manager.core.views import alarms, groups, task_alarms, task_sums, tasks
from protocol.errors import RefusedError
from protocol.messages import checks as check_messages
from protocol.messages import membership
from protocol.messages import offsets as offset_messages
from protocol.messages import ownership as ownership_messages
from protocol.messages import quarantine as quarantine_messages
from protocol.states import GroupState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from manager.core.alarms.book import AlarmBook
    from manager.core.group import TimerKey
    from manager.core.member import Connection, Parked
    from manager.core.stored_rows import Row
    from manager.settings import GroupSettings
    from protocol.messages.base import Request

RULES: dict[type[Request], Callable[[Turn, Any, Parked], None]] = {
    membership.HeartbeatRequest: heartbeat.heartbeat,
    membership.JoinRequest: join.join,
    membership.OfferRequest: offer.offer,
    membership.SyncRequest: sync.sync,
    membership.LeaveRequest: leave.leave,
    offset_messages.CommitOffsetsRequest: offsets.commit,
    offset_messages.FetchOffsetsRequest: offsets.fetch,
    offset_messages.DeleteOffsetsRequest: offsets.delete,
    ownership_messages.ClaimRequest: claims.claim,
    ownership_messages.ReleaseRequest: reports.release,
    ownership_messages.ReportRequest: reports.report,
    ownership_messages.LagRequest: lag.tell,
    check_messages.FetchCheckRequest: checks.fetch,
    check_messages.ReportCheckRequest: checks.report,
    commands.CheckDefinition: checks.begin,
    quarantine_messages.FetchQuarantineRequest: quarantined_rows.fetch,
    quarantine_messages.ReportQuarantineRequest: quarantined_rows.report,
    commands.AskQuarantine: quarantined_rows.begin,
    commands.DescribeGroup: groups.describe,
    commands.DeleteGroup: admin.delete_group,
    commands.StartRebalance: admin.start_rebalance,
    commands.ListRebalances: groups.list_rebalances,
    commands.RemoveMember: admin.remove_member,
    commands.DrainMember: admin.drain_member,
    commands.ListTasks: tasks.list_tasks,
    commands.CountTasks: task_sums.count,
    commands.RankTasks: task_sums.rank,
    commands.ListCosts: task_sums.list_costs,
    commands.GetTask: tasks.get,
    commands.GetTaskHistory: tasks.get_history,
    commands.GetTaskAlarms: task_alarms.get,
    commands.ListMoves: tasks.list_moves,
    commands.GetTaskStatus: tasks.get_status,
    commands.CreateTask: definitions.create,
    commands.PutTask: definitions.put,
    commands.PutTasks: task_lists.put_all,
    commands.DeleteTask: definitions.delete,
    commands.SetTarget: definitions.set_target,
    commands.RestartTask: definitions.restart,
    commands.ResetTask: resets.reset,
    transfer_commands.StartTransfer: transfers.start,
    transfer_commands.CancelTransfer: transfers.cancel,
    transfer_commands.AdvanceTransfer: transfers.advance,
    commands.ListAlarms: alarms.list_alarms,
    commands.AcknowledgeAlarms: alarm_acks.acknowledge,
}

DEADLINES: dict[str, Callable[[Turn, str], None]] = {
    sessions.SESSION: expiry.session_over,
    member_ids.OUTSTANDING: expiry.id_over,
    rebalance.INITIAL_DELAY[0]: expiry.initial_delay_over,
    rebalance.JOIN_PHASE[0]: expiry.join_phase_over,
    rebalance.SYNC_PHASE[0]: expiry.sync_phase_over,
    scheduling.RETENTION[0]: expiry.retention_over,
    purgatory.HELD: heartbeat.wait_over,
    purgatory.CLAIM: claims.wait_over,
    purgatory.ERRAND: errands.time_over,
    ownership.FENCE: claims.owner_too_slow,
    former_owners.LEASE: claims.former_owner_stopped,
    probation.PROBATION: reports.probation_over,
    aside.ASIDE: aside.time_over,
    scheduling.GATHERING[0]: rebalance.tasks_changed,
    lost_workers.KEPT: expiry.worker_did_not_return,
    alarm_watch.ALARMS[0]: alarm_watch.time_over,
}


class DeadlineError(Exception):
    """The rule of a deadline raised: a bug; `group` is not to be trusted any more."""

    def __init__(self, group: str) -> None:
        super().__init__(f"a deadline of group {group}")
        self.group = group


class GroupCoordinator:
    """Groups by name, and the deadlines of all of them. `new_id` makes the unique half of a member id."""

    def __init__(self, settings: GroupSettings, new_id: Callable[[], str]) -> None:
        self._settings = settings
        self._new_id = new_id
        self._groups: dict[str, Group] = {}
        self._timers: Timers[str] = Timers()
        self._new_group_ids = NewGroupIds()
        self._memory = HistoryMemory()
        self._alarm_book = UNREAD

    def handle(self, name: str, request: Request, parked: Parked, instant: ClockReading) -> Turn:
        """Carry one request out.

        Args:
            name: the group id, known to be legal.
            request: one of the types of `RULES`.
            parked: where its one answer goes, now or later.
            instant: the present moment.

        Returns:
            The effects on this group; `parked` is among the answered ones unless it has to wait.
        """
        turn = self._turn(self._groups.get(name) or self._new(name), instant)
        try:
            RULES[type(request)](turn, request, parked)
        except RefusedError as refusal:
            turn.answer(parked, refusal.failure)
        self._end(turn)
        return turn

    def closed(self, connection: Connection, instant: ClockReading, *, by_peer: bool) -> Turn | None:
        """A connection closed; nothing comes of it unless a present member's request was the last on it."""
        was_open, connection.is_open = connection.is_open, False
        group = self._groups.get(connection.group)
        if not was_open or group is None or not connections.matters_to(group, connection):
            return None
        turn = self._turn(group, instant)
        disconnects.connection_closed(turn, connection, by_peer=by_peer)
        self._end(turn)
        return turn

    def advance(self, instant: ClockReading) -> Iterator[Turn]:
        """Carry out what is due by now, one turn a deadline, the earliest first.

        Raises:
            DeadlineError: a rule raised; what else is due is left for the next call.
        """
        while (name := self._timers.pop_due(instant.mono)) is not None:
            group = self._groups.get(name)
            if group is None:
                continue
            key = group.timers.pop_due(instant.mono)
            turn = self._turn(group, instant)
            if key is not None:
                _carry_out(turn, key)
            self._end(turn)
            yield turn

    def next_deadline(self) -> int | None:
        """When `advance` has something to do, in milliseconds of the monotonic clock; never too late."""
        return self._timers.next_deadline()

    def load(self, name: str, rows: Iterable[Row], instant: ClockReading) -> Turn:
        """Take a group up from its rows, in place of whatever is in memory."""
        turn = self._turn(self._new(name), instant)
        loading.load(turn, rows)
        self._let_go(name)
        self._keep(turn.group, turn.now)
        return turn

    def evict(self, name: str) -> tuple[Parked, ...]:
        """Let a group go from memory; its waiting requests are the caller's to answer."""
        group = self._let_go(name)
        return () if group is None else purgatory.take_all(group)

    def _let_go(self, name: str) -> Group | None:
        """Nothing of the group is kept; what is left of it, if it was there, is the caller's."""
        group = self._groups.pop(name, None)
        self._timers.cancel(name)
        if group is not None:
            self._new_group_ids.forget(group)
            group.forget_history()
        return group

    def bury(self, name: str) -> None:
        """The deletion of a Dead group is durable: it is gone, and its name is free again."""
        dead = self._groups.get(name)
        if dead is not None and dead.state is GroupState.DEAD:
            fresh = self._new(name)
            former_owners.inherit(fresh, dead)
            dead.forget_history()
            self._groups[name] = fresh
            self._keep(fresh, 0)

    def use_alarms(self, book: AlarmBook, instant: ClockReading) -> None:
        """Have all groups looked at by these rules and silences from now on."""
        self._alarm_book = book
        for group in self._groups.values():
            group.alarms.book = book
            if not group.is_unknown:
                self._set_deadline(group, instant.mono)

    def group(self, name: str) -> Group | None:
        """The group of that name as it lives, for tests and checks."""
        return self._groups.get(name)

    def names(self) -> tuple[str, ...]:
        """All groups in memory, by name."""
        return tuple(sorted(self._groups))

    def living(self) -> Iterator[Group]:
        """The groups that exist; what is left of deleted ones is only their tokens."""
        return (group for group in self._groups.values() if not group.is_unknown)

    def _new(self, name: str) -> Group:
        group = Group(name, self._settings, self._memory)
        group.alarms.book = self._alarm_book
        return group

    def _turn(self, group: Group, instant: ClockReading) -> Turn:
        return Turn(group, instant, self._new_id, self._new_group_ids)

    def _end(self, turn: Turn) -> None:
        """What is to be done at the end of every step."""
        errands.end_stale(turn)
        alarm_watch.end_with_group(turn)
        self._keep(turn.group, turn.now)

    def _keep(self, group: Group, now: int) -> None:
        """Keep `group`, and make room where too many ids were handed out."""
        self._new_group_ids.look_at(group)
        for crowded in member_ids.make_room(self._new_group_ids):
            self._keep_one(crowded, now)
        self._keep_one(group, now)

    def _keep_one(self, group: Group, now: int) -> None:
        """Keep `group`, unless nothing would be lost with it, and take its next deadline over."""
        if group.is_unknown:
            group.forget_history()
            if not group.tasks.ownership:
                self._let_go(group.name)
                return
        self._groups[group.name] = group
        self._set_deadline(group, now)

    def _set_deadline(self, group: Group, now: int) -> None:
        """Take the group's next deadline over."""
        if not group.is_new:
            alarm_watch.arm(group, now)
        deadline = group.timers.next_deadline()
        if deadline is not None:
            self._timers.set(group.name, deadline)


def _carry_out(turn: Turn, key: TimerKey) -> None:
    kind, what = key
    try:
        DEADLINES[kind](turn, what)
    except Exception as error:
        raise DeadlineError(turn.group.name) from error
