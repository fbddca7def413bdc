"""One group as it lives in memory. It changes only through a `Turn` and the modules of this package."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING

from manager.core.alarms.alarms import GroupAlarms
from manager.core.history import BoundedHistory, HistoryMemory, TaskHistory
from manager.core.member import Member
from manager.core.stored_rows import (
    AlarmRow,
    CarriedHistoryRow,
    Change,
    Dropped,
    GroupRow,
    MemberRow,
    OffsetRow,
    OwnershipRow,
    RebalanceRow,
    TaskRow,
    TransferRow,
)
from manager.core.task_registry import TaskRegistry
from manager.core.timers import Timers
from manager.core.transfer_registry import TransferRegistry
from protocol.states import GroupState

if TYPE_CHECKING:
    from manager.core.member import Parked
    from manager.settings import GroupSettings
    from protocol.messages.groups import GroupHistoryLine

REBALANCES_KEPT = 100
PACED_KEPT = 10
"""Of those in a row that carry out more of one decision: they are not to take the place of all others."""
LINES_KEPT = 64

TimerKey = tuple[str, str]
"""(kind, what of that kind): ("session", member id), ("join", ""), ..."""


@dataclass(slots=True)
class InitialDelay:
    """The gathering of the first members (KIP-134).

    `joined` says that somebody other than the `opener` came in the present window.
    """

    opener: str
    remaining_ms: int
    joined: bool = False


@dataclass(slots=True)
class Round:
    """The rebalance under way; `before` is who was meant to run what when it began.

    It `goes_on` if it carries out more of what was decided before it.
    """

    reason: str
    started_at: int
    started_at_ms: int
    before: dict[str, str]
    goes_on: bool = False


@dataclass(slots=True, eq=False)
class Group:
    """State of one group: the durable part as rows, the rest as it follows from requests and time.

    `statics` are the static members by instance id, `outstanding` the ids that were handed out, `joining` the
    parked joins by member, `votes` how many members support each protocol, `unsynced` who has yet to sync.
    """

    name: str
    settings: GroupSettings
    memory: InitVar[HistoryMemory | None] = None
    header: GroupRow = field(init=False)
    state: GroupState = GroupState.EMPTY
    protocol_type: str | None = None
    leader_id: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    statics: dict[str, str] = field(default_factory=dict)
    outstanding: dict[str, None] = field(default_factory=dict)
    joining: dict[str, Parked] = field(default_factory=dict)
    votes: Counter[str] = field(default_factory=Counter)
    next_position: int = 0
    delay: InitialDelay | None = None
    round: Round | None = None
    unsynced: set[str] = field(default_factory=set)
    offsets: dict[str, OffsetRow] = field(default_factory=dict)
    tasks: TaskRegistry = field(init=False)
    transfers: TransferRegistry = field(default_factory=TransferRegistry)
    rebalances: deque[RebalanceRow] = field(default_factory=lambda: deque(maxlen=REBALANCES_KEPT))
    history: BoundedHistory[GroupHistoryLine] = field(init=False)
    timers: Timers[TimerKey] = field(default_factory=Timers)
    alarms: GroupAlarms = field(default_factory=GroupAlarms)

    def __post_init__(self, memory: HistoryMemory | None) -> None:
        memory = memory or HistoryMemory()
        self.header = GroupRow(group=self.name)
        self.tasks = TaskRegistry(history=TaskHistory(memory))
        self.history = BoundedHistory(memory, LINES_KEPT)

    @property
    def generation(self) -> int:
        """The highest generation ever told."""
        return self.header.generation

    @property
    def is_unknown(self) -> bool:
        """Whether nothing distinguishes it from a group that never was (tokens aside)."""
        return not self.outstanding and self.is_new

    @property
    def is_new(self) -> bool:
        """Whether it never was a group; somebody may have been told an id to join with."""
        return not (
            self.header.generation
            or self.members
            or self.offsets
            or self.tasks.definitions
            or self.state is not GroupState.EMPTY
        )

    def is_leader(self, member: Member) -> bool:
        """Whether `member` computes the assignment."""
        return self.leader_id == member.id

    def largest_rebalance_timeout(self) -> int:
        """In milliseconds; 0 without members."""
        return max((self.patience_with(member) for member in self.members.values()), default=0)

    def patience_with(self, member: Member) -> int:
        """The rebalance timeout of `member` in milliseconds; it may have been let in with a longer one."""
        return min(member.row.rebalance_timeout_ms, self.settings.max_rebalance_timeout_ms)

    def history_text(self) -> str:
        """What happened lately, oldest first."""
        return "; ".join(f"{line.at_ms} [{line.generation_id}] {line.event}" for line in self.history)

    def forget_history(self) -> None:
        """The group goes from memory, and with it what was remembered of it."""
        self.history.clear()
        self.tasks.history.forget_all()

    def admit(self, member: Member) -> None:
        """Take `member` in at the end of the line; the first one in leads."""
        self.members[member.id] = member
        if member.row.instance_id is not None:
            self.statics[member.row.instance_id] = member.id
        self.next_position = max(self.next_position, member.row.position + 1)
        self.count_votes(member)
        if self.leader_id is None:
            self.leader_id = member.id

    def count_votes(self, member: Member) -> None:
        """Bring the count of supported protocol names up to date with the member's present list."""
        self.votes.subtract(member.names)
        member.names = frozenset(p.name for p in member.row.protocols)
        self.votes.update(member.names)

    def dismiss(self, member: Member) -> None:
        """Take `member` out; if it led, the first remaining one leads."""
        del self.members[member.id]
        if member.row.instance_id is not None and self.statics.get(member.row.instance_id) == member.id:
            del self.statics[member.row.instance_id]
        self.votes.subtract(member.names)
        self.unsynced.discard(member.id)
        self.tasks.forget_member(member.id)
        if self.leader_id == member.id:
            self.leader_id = next(iter(self.members), None)

    def apply(self, change: Change) -> None:
        """Take in one durable change; living and loading both come through here."""
        match change:
            case GroupRow():
                self.header = change
            case MemberRow():
                self._apply_member(change)
            case OffsetRow():
                self.offsets[change.offset_key] = change
            case TaskRow() | OwnershipRow() | CarriedHistoryRow():
                self._apply_to_task(change)
            case TransferRow():
                self.transfers.keep(change)
            case RebalanceRow():
                self.rebalances.append(change)
            case AlarmRow():
                self.alarms.keep(change)
            case Dropped():
                self._drop(change)

    def _apply_member(self, row: MemberRow) -> None:
        member = self.members.get(row.member_id)
        if member is None:
            member = Member(row=row)
            self.admit(member)
        member.row = member.stored = row

    def _apply_to_task(self, row: TaskRow | OwnershipRow | CarriedHistoryRow) -> None:
        match row:
            case TaskRow():
                self.tasks.keep_definition(row)
            case OwnershipRow():
                self.tasks.keep_ownership(row)
            case CarriedHistoryRow():
                self.tasks.history.carry(row.task, row.lines)

    def _drop(self, dropped: Dropped) -> None:
        last = dropped.key[-1]
        if dropped.kind is OffsetRow:
            self.offsets.pop(last, None)
        elif dropped.kind is TaskRow:
            self.tasks.forget_task(last)
            self.alarms.forget_task(last)
        elif dropped.kind is TransferRow:
            self.transfers.drop(*dropped.key[1:])
        elif dropped.kind is CarriedHistoryRow:
            self.tasks.history.forget(last)
        elif dropped.kind is RebalanceRow:
            self.rebalances = deque(
                (row for row in self.rebalances if row.key != dropped.key), REBALANCES_KEPT
            )
        elif dropped.kind is AlarmRow:
            self.alarms.drop(dropped.key)
        elif dropped.kind is GroupRow:
            self.header = GroupRow(group=self.name)
