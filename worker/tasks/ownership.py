"""Who owns which task, and who lets go of it (protocol §5). Rules without I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from worker.tasks.desired_state import Outcome
from worker.tasks.grants import read_grant
from worker.waiting import ChangeSignal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from protocol.messages.ownership import GrantedTask
    from worker.tasks.grants import Grant
    from worker.tasks.life import TaskLife


class AssignmentDelta(NamedTuple):
    """What to do about a new assignment; a task in neither set is not touched."""

    leave: frozenset[str]
    claim: frozenset[str]


def assignment_delta(
    assigned: AbstractSet[str], held: AbstractSet[str], leaving: AbstractSet[str]
) -> AssignmentDelta:
    """Compare what is assigned with what is held; `leaving` is the part of `held` on its way out already.

    Everything assigned is claimed, what is held included: the same token comes back, with the present target
    and definition. Only what is leaving waits until it is released: its claim would be granted under the
    token that the release is about to give back.
    """
    return AssignmentDelta(leave=frozenset(held - assigned - leaving), claim=frozenset(assigned - leaving))


class Ownership:
    """What is assigned, and the one life of each task that is owned; `changed` is notified of each change."""

    def __init__(self) -> None:
        self.assigned: frozenset[str] = frozenset()
        self.changed = ChangeSignal()
        self._lives: dict[str, TaskLife] = {}
        self._given_back: dict[str, int] = {}

    def __iter__(self) -> Iterator[TaskLife]:
        """Every life whose task is owned; what is being stopped is owned until it is released."""
        return iter(tuple(self._lives.values()))

    def get(self, task: str) -> TaskLife | None:
        """The life of `task`, if it is owned."""
        return self._lives.get(task)

    @property
    def held(self) -> frozenset[str]:
        """The tasks that are owned."""
        return frozenset(self._lives)

    def to_claim(self) -> frozenset[str]:
        """What is to be claimed of all that is assigned."""
        return self._delta().claim

    def assign(self, tasks: frozenset[str]) -> None:
        """A new assignment: let go of what moved away."""
        self.assigned = tasks
        for task in self._delta().leave:
            self._lives[task].desired.leave()

    def let_go(self) -> None:
        """Of everything, by this worker's own will: nobody is given it before that is done."""
        self.assigned = frozenset()
        for life in self:
            if not life.is_left:
                life.desired.leave(for_next_owner=False)

    def lose(self) -> None:
        """Nothing is assigned, and every token is lost; the next manager may count its tokens anew."""
        self.assigned = frozenset()
        self._given_back.clear()
        for life in self:
            self.cut(life)

    def granted(self, granted: GrantedTask, sent_at: float, revision: int | None) -> Grant | None:
        """The grant that a new life is to begin under, if the answer to the claim of `sent_at` has one.

        A token that was given back is no longer ours, however late the answer is that grants it. A higher
        token than the one a life has been given is another life: the task has been taken away and given again
        since, and may be another one of the same name. What is said of an older token is of no matter.
        """
        if granted.token <= self._given_back.get(granted.task, -1):
            return None
        life = self._lives.get(granted.task)
        if life is None or granted.token > life.token:
            if life is not None:
                self.overtaken(life)
            return read_grant(granted, revision=revision)
        if granted.token == life.token:
            life.confirm(sent_at)
            life.desired.follow(read_grant(granted, life.desired.grant, revision))
        return None

    def begun(self, life: TaskLife) -> None:
        """Its task is owned from now on."""
        self._lives[life.task] = life
        self.changed.notify()

    def pending(self, task: str) -> None:
        """Somebody else owns it; if it runs here, it does so under a stale token."""
        if (life := self._lives.get(task)) is not None and not life.desired.is_leaving:
            self.cut(life)

    def not_ours(self, task: str, *, is_gone: bool = False) -> None:
        """The task is gone, or given to somebody else."""
        self.assigned -= {task}
        if (life := self._lives.get(task)) is not None:
            life.desired.leave(for_next_owner=not is_gone)

    def ended(self, life: TaskLife, outcome: Outcome) -> bool:
        """Its life is over; whether its token is to be given back. A COMPLETED task has none any more."""
        if outcome is not Outcome.LEFT:
            self.assigned -= {life.task}
        if outcome is Outcome.COMPLETED:
            self.forget(life)
        return outcome is not Outcome.COMPLETED

    def released(self, task: str, token: int) -> None:
        """The token was given back."""
        self._given_back[task] = token
        if (life := self._lives.get(task)) is not None and life.token == token:
            self.forget(life)

    def overtaken(self, life: TaskLife) -> None:
        """Its token is stale: end it at once, unless it was this worker that has given the token back."""
        if life.is_left:
            self.released(life.task, life.token)
        else:
            self.cut(life)

    def cut(self, life: TaskLife) -> None:
        """Its task is owned no longer: end it at once, and have nothing more to do with it."""
        life.desired.cut()
        self.forget(life)

    def forget(self, life: TaskLife) -> None:
        """Its task is owned no longer, and its query is gone."""
        if self._lives.get(life.task) is life:
            del self._lives[life.task]
            self.changed.notify()

    def _delta(self) -> AssignmentDelta:
        leaving = frozenset(life.task for life in self if life.desired.is_leaving)
        return assignment_delta(self.assigned, self.held, leaving)
