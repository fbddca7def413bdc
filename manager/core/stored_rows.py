"""What is stored of a group, one frozen Struct a table; everything else of a group may be lost.

A row's key is its first `key_length` fields. Opaque values are `msgspec.Raw`: kept and returned as they came.
"""

from __future__ import annotations

from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from protocol.connectors import Needs
from protocol.messages.base import NULL
from protocol.messages.events import Event
from protocol.messages.history import TaskHistoryLine
from protocol.messages.membership import EngineEnd, Protocol
from protocol.messages.tasks import Reached, TaskHome, TaskReset
from protocol.states import GroupState, Target, TaskState, TransferStep

if TYPE_CHECKING:
    from collections.abc import Callable


class Row(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A stored row of a group. None refers to itself, so the collector of cycles need not look at it."""

    key_length: ClassVar[int] = 2
    group: str

    @property
    def key(self) -> tuple[Any, ...]:
        """The values that tell this row from the others of its table."""
        return _key_reader(type(self))(self)


@cache
def _key_reader(kind: type[Row]) -> Callable[[Row], tuple[Any, ...]]:
    """Reads the key of rows of one kind; a single field is a tuple, too."""
    first, *others = kind.__struct_fields__[: kind.key_length]
    read = attrgetter(first, *others)
    return read if others else lambda row: (read(row),)


class GroupRow(Row, frozen=True, kw_only=True):
    """The group itself; `generation` is the highest ever told (protocol §4, Generation).

    `rebalance_on_load` says that whoever takes the group up has to bring its members together anew (after a
    crash between the join phase and the leader's assignment, for one); `manager.core.scheduling` decides it.
    `idle_since_ms` is when it became Empty, or lost something that an Empty group is kept for, by the wall
    clock; 0 if that is not known.
    """

    key_length: ClassVar[int] = 1
    generation: int = 0
    rebalance_on_load: bool = False
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str | None = None
    tasks_revision: int = 0
    idle_since_ms: int = 0

    @property
    def state(self) -> GroupState:
        """The state in which the group is taken up; a generation has a leader."""
        if self.rebalance_on_load:
            return GroupState.PREPARING_REBALANCE
        return GroupState.EMPTY if self.leader_id is None else GroupState.STABLE


class MemberRow(Row, frozen=True, kw_only=True):
    """A member as of the last completed join phase; `position` keeps the order of arrival."""

    member_id: str
    position: int
    instance_id: str | None
    client_id: str
    host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[Protocol, ...]
    assignment: msgspec.Raw = NULL
    draining: bool = False


class OffsetRow(Row, frozen=True, kw_only=True):
    """One committed offset."""

    offset_key: str
    offset: msgspec.Raw
    metadata: str


class TaskRow(Row, frozen=True, kw_only=True):
    """What a task is and what is wanted of it; `revision` is the group's counter at its last change.

    `needs` and `exclusive` are None of a task that was stored before there were any.
    """

    task: str
    definition: msgspec.Raw
    definition_version: int
    target: Target
    restart_count: int
    revision: int
    weight: float
    worker: str | None
    labels: dict[str, str]
    needs: Needs | None = None
    exclusive: bool | None = None


class OwnerLease(msgspec.Struct, frozen=True):
    """The lease, `timeout_ms` long, that the member `member_id` has or had on itself as an owner."""

    member_id: str
    timeout_ms: int


class WorkerDeath(msgspec.Struct, frozen=True, kw_only=True):
    """The death of a worker that a task may have caused.

    `lived_ms` is how long the task had been granted to it, `how` a line for people, `engine` the worker's own
    word if it had the time for one. `alone` says that no other task can have caused it.
    """

    at_ms: int
    member_id: str
    lived_ms: int
    how: str
    engine: EngineEnd | None = None
    alone: bool = False


class Blame(msgspec.Struct, frozen=True):
    """The deaths in a row that a task may have caused, oldest first; `quarantined` when it is run no more.

    One that is quarantined without any takes more than a limit of its definition allows.
    """

    deaths: tuple[WorkerDeath, ...]
    quarantined: bool = False


class OwnershipRow(Row, frozen=True, kw_only=True):
    """Who runs a task and how it stands; outlives the task, so that its token goes on counting.

    `lost_by` names the lost worker that the task is kept for. `reset` is the last one: its number is known to
    the fences in sinks. `lease` without an owner is that of the one before, who may still run the task and is
    waited for; with an owner it says that this one may run it without a fence, whatever the present
    definition says. `blame` is there while workers' deaths are held against the task. `reached` is as of
    the first batch in a checkpoint, and of when the row was stored last: the task may be further. `unsettled`
    says that somebody before may still write for it: no owner since has raised the fence in its sink. `home`
    are the names that sinks and checkpoints know it by, if these are not the group's and its own. `restarts`
    are those after failures, as `manager.core.restart_counts` keeps them; None of a row that is from before
    there were any.
    """

    task: str
    token: int = 0
    owner: str | None = None
    state: TaskState = TaskState.UNASSIGNED
    generation_id: int = 0
    batch_id: int | None = None
    cause: str | None = None
    since_ms: int = 0
    lost_by: str | None = None
    reset: TaskReset | None = None
    lease: OwnerLease | None = None
    blame: Blame | None = None
    reached: Reached | None = None
    unsettled: bool = False
    home: TaskHome | None = None
    restarts: bytes | None = None

    @property
    def is_quarantined(self) -> bool:
        """Whether the task is not to be started any more."""
        return self.blame is not None and self.blame.quarantined


class Parcel(msgspec.Struct, frozen=True):
    """All that a task is, as it leaves its group: the rows of it there.

    `former` is what the other group knew of a deleted task of the name when it came, for it may not stay.
    `history` is what became of the task before, oldest first (`manager.core.tasks.carried_history`).
    """

    task: TaskRow
    ownership: OwnershipRow
    former: OwnershipRow | None = None
    history: tuple[TaskHistoryLine, ...] = ()


class TransferRow(Row, frozen=True, kw_only=True):
    """A task on its way between two groups, as one of them has it (protocol §5, Transfers).

    The group that it leaves decides, and keeps a row of what came of it; the other one's is gone at the end.

    Args:
        transfer: which transfer it is part of; both groups have the same.
        task: its name here.
        leaves: whether this is the group that it leaves.
        peer_group: the other group.
        peer_task: its name there.
        step: how far it has come here.
        target: what was wanted of it before.
        started_at_ms: when it was asked for, in milliseconds since 1970.
        changed_at_ms: when it came to `step`, likewise.
        by: who asked for it.
        cause: why it was cancelled or refused.
        parcel: what goes over; from the stop of the task until the transfer is over.
    """

    key_length: ClassVar[int] = 3
    transfer: str
    task: str
    leaves: bool
    peer_group: str
    peer_task: str
    step: TransferStep
    target: Target
    started_at_ms: int
    changed_at_ms: int
    by: str | None = None
    cause: str | None = None
    parcel: Parcel | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing will become of it any more."""
        return self.step in {TransferStep.DONE, TransferStep.CANCELLED}


class CarriedHistoryRow(Row, frozen=True, kw_only=True):
    """What became of a task in the groups that it was in before, oldest first; there while it is here."""

    task: str
    lines: tuple[TaskHistoryLine, ...]


class RebalanceRow(Row, frozen=True, kw_only=True):
    """One line of the group's history."""

    generation_id: int
    reason: str
    started_at_ms: int
    duration_ms: int
    members: int
    moved: int


class AlarmRow(Row, frozen=True, kw_only=True):
    """An alarm that fires, or one that did; `subject` is `task:NAME` or `member:ID`.

    Those of `manager:ID` and of the `database` are of no group, `group` is empty then; they are stored
    elsewhere (`manager.storage.herd_table`).

    All times are since 1970. `since_ms` is when the condition began to hold. `told_at_ms` is when its
    receivers were told last, 0 if they never were, and `resolved_at_ms` is 0 while it fires. `kind`,
    `severity`, `threshold` and `receivers` are those of the rule when it fired: whoever was told hears of the
    end, whatever became of the rule.
    """

    key_length: ClassVar[int] = 4
    rule: str
    subject: str
    fired_at_ms: int
    kind: str
    severity: str
    since_ms: int
    told_at_ms: int = 0
    resolved_at_ms: int = 0
    acknowledged_by: str | None = None
    acknowledged_at_ms: int = 0
    value: float | None = None
    threshold: float | None = None
    worker: str | None = None
    receivers: tuple[str, ...] = ()


class Unreadable(Row, frozen=True, kw_only=True):
    """A stored row that makes no sense: `place` is its table and key, `why` what is wrong with it.

    Nobody knows what it said, so the group is not taken up with it, nor without it. It was to be a `kind`;
    `stored_key` has its key as it stands, which may make no sense either.
    """

    place: str
    why: str
    kind: type[Row]
    stored_key: tuple[Any, ...]


class UnreadableError(Exception):
    """A group has a row that makes no sense; the text names it."""

    def __init__(self, row: Unreadable) -> None:
        super().__init__(f"{row.place}: {row.why}")
        self.row = row


class Dropped(msgspec.Struct, frozen=True):
    """The row with this key is no longer stored."""

    kind: type[Row]
    key: tuple[Any, ...]


Change = Row | Dropped
Record = Change | Event
"""What a transaction writes: changes of groups, and what the outside is told of them."""
