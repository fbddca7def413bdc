"""How high members stand under an assignment, straight from what `assignors.weighted` means by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assignors.sizes import sizes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from assignors.base import Assignment, Member, Task
    from tests.unit.assignors.groups import Group


class Heights:
    """An assignment of a group, looked at."""

    def __init__(self, group: Group, assignment: Assignment) -> None:
        self.assignment = assignment
        self.size = sizes(group.tasks)
        self._group = group
        self._capacities = {member.member_id: member.capacity for member in group.members}

    @property
    def capacity(self) -> float:
        """Of all members together."""
        return sum(self._capacities.values())

    def of(self, member: str, more: int = 0) -> float:
        """How high a member stands, or would with `more` work."""
        return (sum(self.size[name] for name in self.assignment[member]) + more) / self._capacities[member]

    def possible_moves(self) -> Iterator[tuple[str, str, str]]:
        """Every task with the member that has it and another one that may run it."""
        where = {name: member for member, names in self.assignment.items() for name in names}
        for task in self._group.tasks:
            if task.name in where:
                giver = where[task.name]
                yield from ((task.name, giver, taker) for taker in self._group.may_run(task) - {giver})

    @staticmethod
    def highest_of(members: Sequence[Member], tasks: Sequence[Task], assignment: Assignment) -> float:
        """How high the highest member stands, by the declared weights."""
        weights = {task.name: task.weight for task in tasks}
        return max(
            sum(weights[name] for name in assignment[member.member_id]) / member.capacity
            for member in members
        )
