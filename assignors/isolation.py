"""A worker of their own for tasks that may have killed their last ones, whatever the assignor.

The assignor deals the other tasks to the other members. A task that may run nowhere is kept from it: without
the reserved member it might take the task's pin for void. Suspects are put on the reserved one all together;
the manager starts them one by one. Pins and labels hold: who may run nowhere else stays where it may run.
So does the member's limit: what is more than that is nobody's. An exclusive task is no suspect here: it is
alone in any case (`assignors.exclusive`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assignors.eligibility import Eligibility
from assignors.limits import first_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from assignors.base import Assignment, Member, Task
    from assignors.eligibility import Members


@dataclass(frozen=True, slots=True)
class Isolation:
    """What the assignor is to deal to whom, and what the reserved member is given beside that."""

    members: Sequence[Member]
    tasks: Sequence[Task]
    reserved: Mapping[str, Sequence[str]]

    def complete(self, dealt: Assignment) -> Assignment:
        """What the assignor has dealt, and what it was not asked about."""
        return {**dealt, **{member: list(names) for member, names in self.reserved.items()}}


def isolate(members: Sequence[Member], tasks: Sequence[Task], suspects: Collection[str]) -> Isolation:
    """Reserve a member for the suspects; none if there is no other, or none of them may run anywhere."""
    eligible = Eligibility(members)
    able = {task.name: eligible.of(task) for task in tasks} if suspects and len(members) > 1 else {}
    suspects = frozenset(suspects) - {task.name for task in tasks if task.exclusive}
    suspected = [task for task in tasks if task.name in suspects and able.get(task.name)]
    if not suspected:
        return Isolation(members, tasks, {})
    chosen = _choose(members, tasks, able, frozenset(task.name for task in suspected))
    there = frozenset(task.name for task in tasks if _belongs(task, able[task.name], chosen, suspects))
    return Isolation(
        [member for member in members if member is not members[chosen]],
        [task for task in tasks if able[task.name] not in ((), (chosen,)) and task.name not in there],
        {members[chosen].member_id: sorted(first_of(members[chosen], there))},
    )


def _belongs(task: Task, able: Members, chosen: int, suspects: Collection[str]) -> bool:
    """Whether a task is to be on the reserved member: a suspect that may, or one that may nowhere else."""
    if task.exclusive:
        return False
    return able == (chosen,) or (task.name in suspects and chosen in able)


def _choose(
    members: Sequence[Member], tasks: Sequence[Task], able: Mapping[str, Members], suspects: frozenset[str]
) -> int:
    """The member that the suspects are on already, else the one that has the least to move away."""
    held, suited, bound = Counter[int](), Counter[int](), Counter[int]()
    for task in tasks:
        name, where = task.name, able[task.name]
        if name in suspects:
            suited.update(where)
            held.update(index for index in where if name in members[index].owned)
        elif len(where) == 1:
            bound.update(where)

    def order(index: int) -> tuple[int, int, int, int, str]:
        member = members[index]
        return -held[index], -suited[index], bound[index], len(member.owned), member.member_id

    return min(suited, key=order)
