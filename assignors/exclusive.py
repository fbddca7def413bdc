"""A worker of its own for each `exclusive` task, as far as workers can be spared, whatever the assignor.

A worker can be spared if all the other tasks that could be placed with it can be placed without it: pins,
labels and `max_tasks` hold. So nobody else is left without a worker for the sake of an exclusive task; where
there are too few, that one waits. Those that run come first, then they go by name. One makes way for another
only if it can go on elsewhere, by itself as well.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from assignors.eligibility import Eligibility
from assignors.isolation import Isolation
from assignors.room import placeable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assignors.base import Member
    from assignors.eligibility import Members


def give_own(isolation: Isolation) -> Isolation:
    """Reserve a member for each exclusive task, of those members and tasks that are not set apart yet."""
    members, tasks = isolation.members, isolation.tasks
    alone = [task for task in tasks if task.exclusive]
    if not alone:
        return isolation
    eligible = Eligibility(members)
    able = {task.name: eligible.of(task) for task in tasks}
    own = _Own(members, able, Counter(able[task.name] for task in tasks if not task.exclusive))
    for task in sorted(alone, key=lambda task: (not own.has_home(task.name), task.name)):
        own.place(task.name)
    rest = [at for at in range(len(members)) if at not in own.taken]
    return Isolation(
        [members[at] for at in rest],
        [task for task in tasks if not task.exclusive and not own.taken.keys() >= set(able[task.name])],
        {**isolation.reserved, **{members[at].member_id: [name] for at, name in own.taken.items()}},
    )


class _Own:
    """Which member each exclusive task has to itself; `taken` has the tasks by the index of the member."""

    def __init__(
        self, members: Sequence[Member], able: Mapping[str, Members], others: Mapping[Members, int]
    ) -> None:
        self.taken: dict[int, str] = {}
        self._members = members
        self._able = able
        self._others = others
        self._placeable = placeable(others, self._limits())
        self._needed: set[int] = set()
        self._home = {name: at for at, member in enumerate(members) for name in member.owned}

    def has_home(self, name: str) -> bool:
        """Whether it runs where it may run."""
        return self._home.get(name) in self._able[name]

    def place(self, name: str) -> None:
        """Give a task a member, if there is one, though another task has to change its own for it."""
        self._place(name, set())

    def _place(self, name: str, tried: set[int]) -> bool:
        for at in sorted(self._able[name], key=lambda at: self._order(name, at)):
            if at in tried:
                continue
            tried.add(at)
            if self._is_spare(at) if at not in self.taken else self._place(self.taken[at], tried):
                self.taken[at] = name
                return True
        return False

    def _order(self, name: str, at: int) -> tuple[object, ...]:
        """Where it runs, then where nothing is in the way, then where the least has to move away."""
        member = self._members[at]
        return at in self.taken, self._home.get(name) != at, len(member.owned), member.member_id

    def _is_spare(self, at: int) -> bool:
        """Whether the others do without a member. Once they do not, they never will: ever less is left."""
        if at not in self._needed and placeable(self._others, self._limits(at)) < self._placeable:
            self._needed.add(at)
        return at not in self._needed

    def _limits(self, without: int | None = None) -> dict[int, int | None]:
        left = (at for at in range(len(self._members)) if at not in self.taken and at != without)
        return {at: self._members[at].max_tasks for at in left}
