"""The tasks of one group: what they are, who owns them, who is meant to (protocol §5)."""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from manager.core.aside import AsideWatch
from manager.core.heap.suspects import HeapSuspects
from manager.core.history import TaskHistory
from manager.core.stored_rows import OwnershipRow, TaskRow
from manager.core.task_metrics import TaskMetrics
from manager.core.task_tally import Standing, TaskTally
from protocol.errands import NOTHING, Told
from protocol.etags import ListTag
from protocol.states import Target, TaskState
from protocol.task_metrics import figure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from manager.core.commands import Errand
    from manager.core.member import Parked
    from protocol.messages.lag import TaskLag
    from protocol.messages.ownership import ClaimRequest
    from protocol.messages.tasks import Reached

Asked = TypeVar("Asked", bound="Errand")

LIVE_STATES = frozenset({TaskState.STARTING, TaskState.RUNNING, TaskState.RESTARTING})
"""States that say a query is somewhere; without an owner they make no sense."""


@dataclass(slots=True)
class TaskProgress:
    """The last batch heard of, and the last hour's; kept in memory only.

    `load` is the last one told, whoever owned the task then: a new owner measures for a while before it tells
    any. `aside` knows what is to be told of the rows that the task puts aside. `exceeded` is how often it was
    told that the task went beyond each limit under its token, None if that is not known; the last time at
    `exceeded_told_at`, in milliseconds of the monotonic clock. `lag_heard_at` is when `lag` was
    told, by the manager's clock, in milliseconds since 1970; `lag_asked_at` is when a leader was asked for it
    last, in milliseconds of the monotonic clock, -1 if none was.
    """

    batch_id: int | None = None
    reached: Reached | None = None
    metrics: dict[str, Any] | None = None
    load: float | None = None
    figures: TaskMetrics = field(default_factory=TaskMetrics)
    aside: AsideWatch = field(default_factory=AsideWatch)
    exceeded: dict[str, int] | None = None
    exceeded_told_at: int | None = None
    lag: TaskLag | None = None
    lag_heard_at: int = 0
    lag_asked_at: int = -1


@dataclass(slots=True)
class WaitingClaim:
    """A claim of which nothing could be granted yet; a member may have several."""

    member_id: str
    parked: Parked
    request: ClaimRequest


class Holding(NamedTuple):
    """A task as it is owned: another token is another ownership, be it the same member's."""

    task: str
    token: int


@dataclass(slots=True)
class WaitingErrand(Generic[Asked]):
    """What a member has to do, or is at; whoever asked for it waits as `parked`.

    `ends_at` is when the member's time is over, in milliseconds of the monotonic clock. `holding` is what it
    has to own for it; None if anybody could do it.
    """

    member_id: str
    parked: Parked
    request: Asked
    ends_at: int
    holding: Holding | None = None


class LostOnProbation(NamedTuple):
    """A member lost a task on probation: since when it had had it, and when that member was last heard."""

    began: int
    heard_at: int


@dataclass(slots=True)
class TaskRegistry:
    """Tasks by name, which `names` has in order; `tag` is the entity tag of their list, `tally` counts them.

    `to_stop` are those whose target is STOPPED.

    `ownership` outlives `definitions`, so that no token is ever issued twice. `owned` has each owner's tasks
    with their tokens. `kept` are the tasks of lost workers, for their return.

    `assigned` is the present assignment, task to member, of which `shares` has the members' parts as far as
    all of what they were given is still there. `taken_since` says when an assignment first took a
    task from an owner that still holds it. `offered` is what the leader was told last, `left_out` why it
    gave which tasks to nobody, as far as it has said so, `is_short_of_room` whether there are any such tasks,
    None before anybody has asked.
    `to_come` is how many more are to move to which members. `probation` are the tasks that have yet to show
    that they do their worker no harm, and when they were granted. `in_doubt` are those taken from members
    before they had, and from whom. `heap` knows with which of them heaps grow; it is kept in memory only.
    """

    definitions: dict[str, TaskRow] = field(default_factory=dict)
    to_stop: set[str] = field(default_factory=set)
    names: list[str] = field(default_factory=list)
    tag: ListTag = field(default_factory=ListTag)
    tally: TaskTally = field(default_factory=TaskTally)
    ownership: dict[str, OwnershipRow] = field(default_factory=dict)
    kept: dict[str, None] = field(default_factory=dict)
    owned: dict[str, dict[str, int]] = field(default_factory=dict)
    assigned: dict[str, str] = field(default_factory=dict)
    shares: dict[str, tuple[str, ...]] = field(default_factory=dict)
    taken_since: dict[str, int] = field(default_factory=dict)
    offered: set[str] = field(default_factory=set)
    left_out: dict[str, str] = field(default_factory=dict)
    is_short_of_room: bool | None = None
    to_come: dict[str, int] = field(default_factory=dict)
    probation: dict[str, int] = field(default_factory=dict)
    in_doubt: dict[str, dict[str, LostOnProbation]] = field(default_factory=dict)
    progress: dict[str, TaskProgress] = field(default_factory=dict)
    history: TaskHistory = field(default_factory=TaskHistory)
    heap: HeapSuspects = field(default_factory=HeapSuspects)
    waiting: dict[str, WaitingClaim] = field(default_factory=dict)
    claims_parked: int = 0
    errands: dict[str, WaitingErrand[Any]] = field(default_factory=dict)
    gathering_since: int = 0

    def ownership_of(self, group: str, task: str) -> OwnershipRow:
        """The ownership of `task`, a fresh one if it never had any."""
        return self.ownership.get(task) or OwnershipRow(group=group, task=task)

    def reached_by(self, task: str) -> Reached | None:
        """How far `task` has come, in which checkpoint; None if nobody has told yet."""
        progress, row = self.progress.get(task), self.ownership.get(task)
        stored = row.reached if row is not None else None
        return stored if progress is None else progress.reached or stored

    def owner_of(self, task: str) -> str | None:
        """The member that holds the present token of `task`."""
        row = self.ownership.get(task)
        return row.owner if row else None

    def owned_by(self, member_id: str) -> tuple[str, ...]:
        """The tasks a member owns, in the order it came to them."""
        return tuple(self.owned.get(member_id, ()))

    def is_runnable(self, task: str) -> bool:
        """Whether the assignor is to place `task`: not completed, not in quarantine, not stopped and settled.

        A stopped task that is unsettled is given to a worker once more, which does nothing but settle it.
        """
        row = self.definitions.get(task)
        if row is None:
            return False
        ownership = self.ownership_of(row.group, task)
        if row.target is Target.STOPPED:
            return ownership.unsettled
        return ownership.state is not TaskState.COMPLETED and not ownership.is_quarantined

    def is_to_stop(self, task: str) -> bool:
        """Whether the target of `task` is STOPPED."""
        return task in self.to_stop

    def state_at_rest(self, task: str) -> TaskState:
        """The state of `task` while nobody runs it, unless a query has come to its end."""
        return TaskState.STOPPED if self.is_to_stop(task) else TaskState.UNASSIGNED

    def has_waiting(self) -> bool:
        """Whether the present assignment has left out any task that could run; found out once for each."""
        if self.is_short_of_room is None:
            self.is_short_of_room = any(row.task not in self.assigned for row in self.runnable())
        return self.is_short_of_room

    def runnable(self) -> Iterable[TaskRow]:
        """The tasks to be placed, in the order of their names."""
        return (self.definitions[name] for name in self.names if self.is_runnable(name))

    def park_claim(self, claim: WaitingClaim) -> str:
        """Let `claim` wait; returns what it is known under."""
        self.claims_parked += 1
        number = str(self.claims_parked)
        self.waiting[number] = claim
        return number

    def told(self, member_id: str) -> Told:
        """The errands that the member has to do, one of each kind at most. Asked for every heartbeat."""
        if not self.errands:
            return NOTHING
        own = {
            errand.request.kind.value: name
            for name, errand in self.errands.items()
            if errand.member_id == member_id
        }
        return Told(**own)

    def holds(self, member_id: str, holding: Holding) -> bool:
        """Whether the member owns a task, and under that token."""
        row = self.ownership.get(holding.task)
        return row is not None and (row.owner, row.token) == (member_id, holding.token)

    def note_history(self, at_ms: int, row: OwnershipRow) -> None:
        """`row` is about to be taken in, at `at_ms` (since 1970); tokens outlive tasks, histories do not."""
        self.history.note(at_ms, self.ownership.get(row.task), row, is_told=row.task in self.definitions)

    def keep_definition(self, row: TaskRow) -> None:
        """Take `row` in, be it a new task or another definition or target of one."""
        before = self.definitions.get(row.task)
        self.definitions[row.task] = row
        if before is None:
            insort(self.names, row.task)
            self._count(row.task)
        else:
            self.tag.remove(before.task, before.definition, before.target.value)
        self.tag.add(row.task, row.definition, row.target.value)
        (self.to_stop.add if row.target is Target.STOPPED else self.to_stop.discard)(row.task)

    def keep_ownership(self, row: OwnershipRow) -> None:
        """Take `row` in, and keep the index by owner and the tally true."""
        self._uncount(row.task)
        before = self.ownership.get(row.task)
        if before is not None and before.owner is not None and before.owner != row.owner:
            held = self.owned[before.owner]
            held.pop(row.task, None)
            if not held:
                del self.owned[before.owner]
        if row.owner is not None:
            self.owned.setdefault(row.owner, {})[row.task] = row.token
        if row.lost_by is not None:
            self.kept[row.task] = None
        else:
            self.kept.pop(row.task, None)
        self.ownership[row.task] = row
        self._count(row.task)

    def keep_metrics(self, task: str, metrics: dict[str, Any]) -> None:
        """Take in what the owner of `task`, of which there has been a report, tells of its batches."""
        self._uncount(task)
        progress = self.progress[task]
        progress.metrics = metrics
        if (load := figure(metrics, "load")) is not None:
            progress.load = load
        self._count(task)

    def forget_progress(self, task: str) -> None:
        """What was heard of `task` is true no more."""
        self._uncount(task)
        self.progress.pop(task, None)
        self._count(task)

    def _count(self, task: str) -> None:
        """What is left of a deleted task does not count."""
        if task in self.definitions:
            self.tally.add(task, self._standing(task))

    def _uncount(self, task: str) -> None:
        if task in self.definitions:
            self.tally.remove(task, self._standing(task))

    def _standing(self, task: str) -> Standing:
        row, progress = self.ownership.get(task), self.progress.get(task)
        load = figure(progress.metrics, "load") if progress is not None else None
        if row is None:
            return Standing(None, TaskState.UNASSIGNED.value, load)
        return Standing(row.owner, row.state.value, load)

    def forget_member(self, member_id: str) -> None:
        """The member is gone: whatever was to be said of its death has been said."""
        self.heap.gone(member_id)
        for task, losers in tuple(self.in_doubt.items()):
            if losers.pop(member_id, None) is not None and not losers:
                del self.in_doubt[task]

    def unassign(self, task: str) -> None:
        """It is nobody's to run; whoever had it in a share has none, as less is there than it was given."""
        self.shares.pop(self.assigned.pop(task, ""), None)

    def forget_task(self, task: str) -> None:
        """Drop everything about `task` but its token."""
        self._uncount(task)
        if (row := self.definitions.pop(task, None)) is not None:
            del self.names[bisect_left(self.names, task)]
            self.tag.remove(task, row.definition, row.target.value)
        self.to_stop.discard(task)
        self.unassign(task)
        self.taken_since.pop(task, None)
        self.probation.pop(task, None)
        self.in_doubt.pop(task, None)
        self.progress.pop(task, None)
        self.history.forget(task)
        self.heap.forget(task)
