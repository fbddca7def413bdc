"""A worker of its own for each `exclusive` task, as far as workers can be spared, whatever the assignor.

A worker can be spared if all the other tasks that could be placed with it can be placed without it: pins,
labels and `max_tasks` hold. So nobody else is left without a worker for the sake of an exclusive task; where
there are too few, that one waits. Those that run come first, then they go by name. One makes way for another
only if it can go on elsewhere, by itself as well.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from assignors.eligibility import Eligibility
from assignors.isolation import Isolation
from assignors.room import placeable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from assignors.base import Member
    from assignors.eligibility import Members


def give_own(isolation: Isolation) -> Isolation:
    """Reserve a member for each exclusive task, of those members and tasks that are not set apart yet."""
    members, tasks = isolation.members, isolation.tasks
    alone = [task for task in tasks if task.exclusive]
    if not alone:
        return isolation
    eligible = Eligibility(members)
    others = eligible.groups(task for task in tasks if not task.exclusive)
    able = {task.name: eligible.of(task) for task in alone}
    own = _Own(members, able, {where: len(those) for where, those in others})
    for task in sorted(alone, key=lambda task: (not own.has_home(task.name), task.name)):
        own.place(task.name)
    left = {task.name for where, those in others if not own.taken.keys() >= set(where) for task in those}
    return Isolation(
        [member for at, member in enumerate(members) if at not in own.taken],
        [task for task in tasks if task.name in left],
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
        self._hopeless: set[int] = set()
        self._at: dict[str, int] = {}
        self._ordered: dict[Members, list[int]] = {}
        self._home = {name: at for at, member in enumerate(members) for name in member.owned}

    def has_home(self, name: str) -> bool:
        """Whether it runs where it may run."""
        return self._home.get(name) in self._able[name]

    def place(self, name: str) -> None:
        """Give a task a member, if there is one, though other tasks have to change their own for it.

        As few as possible. Where there is no way, there will be none through the same members.
        """
        came: dict[int, str] = {}
        waiting = deque([name])
        while waiting:
            each = waiting.popleft()
            for at in self._in_order(each):
                if at in came or at in self._hopeless:
                    continue
                came[at] = each
                if at in self.taken:
                    waiting.append(self.taken[at])
                elif self._is_spare(at):
                    self._follow(at, came)
                    return
        self._hopeless |= came.keys()

    def _follow(self, at: int, came: Mapping[int, str]) -> None:
        """Give a member to the task that has come to it, and that one's to the one before."""
        end: int | None = at
        while end is not None:
            name = came[end]
            left = self._at.get(name)
            self.taken[end], self._at[name] = name, end
            end = left

    def _in_order(self, name: str) -> Iterator[int]:
        """Where it runs, then where the least has to move away."""
        able = self._able[name]
        if self.has_home(name):
            yield self._home[name]
        if able not in self._ordered:
            self._ordered[able] = sorted(able, key=self._least_first)
        yield from self._ordered[able]

    def _least_first(self, at: int) -> tuple[int, str]:
        member = self._members[at]
        return len(member.owned), member.member_id

    def _is_spare(self, at: int) -> bool:
        """Whether the others do without a member. Once they do not, they never will: ever less is left."""
        if at not in self._needed and placeable(self._others, self._limits(at)) < self._placeable:
            self._needed.add(at)
        return at not in self._needed

    def _limits(self, without: int | None = None) -> dict[int, int | None]:
        left = (at for at in range(len(self._members)) if at not in self.taken and at != without)
        return {at: self._members[at].max_tasks for at in left}
