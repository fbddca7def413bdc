"""Groups to assign in, drawn at random, and what an assignment is worth, found the slow and plain way."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from assignors.base import Assignment, Member, Task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

UUIDS = tuple(f"{digit * 8}-1111-4111-8111-111111111111" for digit in "123456789abcdef0")
LABELS = ("a", "b", "c")


@dataclass(frozen=True)
class Group:
    """One input of an assignor."""

    members: Sequence[Member]
    tasks: Sequence[Task]
    current: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def may_run(self, task: Task) -> frozenset[str]:
        """The members that may run a task, straight from the rules of `assignors.eligibility`."""
        pin = task.worker or "nobody"
        pinned = [each for each in self.members if pin in (each.instance_id, each.member_id[:-37])]
        return frozenset(
            each.member_id
            for each in pinned or self.members
            if all(each.labels.get(key) == value for key, value in task.labels.items())
        )

    def homes(self) -> dict[str, str]:
        """Where each task is, if it may stay there."""
        was = {name: member for member, names in self.current.items() for name in names}
        return {task.name: was[task.name] for task in self.tasks if was.get(task.name) in self.may_run(task)}

    def cost(self, assignment: Mapping[str, Sequence[str]]) -> tuple[int, int]:
        """How uneven an assignment is (sum of the squared loads), then how many tasks it moves."""
        homes = self.homes()
        moves = sum(
            homes.get(name, member) != member for member, names in assignment.items() for name in names
        )
        return sum(len(names) ** 2 for names in assignment.values()), moves

    def least_cost(self) -> tuple[int, int]:
        """The least cost of all assignments there are."""
        return min(self._costs())

    def fewest_moves(self, evenness: int) -> int:
        """The fewest moves of all assignments that are at least as even."""
        return min(moves for squares, moves in self._costs() if squares <= evenness)

    def running(self, assignment: Assignment) -> Group:
        """The group, once `assignment` has been carried out."""
        owned = {member_id: frozenset(names) for member_id, names in assignment.items()}
        members = [replace(member, owned=owned[member.member_id]) for member in self.members]
        return Group(members, self.tasks, assignment)

    def _costs(self) -> Iterator[tuple[int, int]]:
        """The costs of all assignments there are."""
        runnable = [task for task in self.tasks if self.may_run(task)]
        choices = product(*(sorted(self.may_run(task)) for task in runnable))
        return (self.cost(_by_member(runnable, choice)) for choice in choices)


def _by_member(tasks: Sequence[Task], choice: Sequence[str]) -> Assignment:
    assignment: Assignment = {}
    for task, member in zip(tasks, choice, strict=True):
        assignment.setdefault(member, []).append(task.name)
    return assignment


@st.composite
def groups(
    draw: st.DrawFn, *, max_members: int, max_tasks: int, choosy: bool, unequal: bool = False
) -> Group:
    """Groups in any order, some members gone and some tasks new.

    `choosy` adds pins and labels, `unequal` weights, loads and capacities, and that members own some tasks.
    """
    labels = st.dictionaries(st.sampled_from(LABELS), st.just("yes")) if choosy else st.just({})
    pins = st.sampled_from([None, None, None, "w0", "w1", "other"]) if choosy else st.none()
    instances = st.sampled_from([None, None, "w1"])
    names = [f"t{at}" for at in range(draw(st.integers(0, max_tasks)))]
    ids = [f"w{at % 3}-{UUIDS[at]}" for at in range(draw(st.integers(1, max_members)))]
    homes = draw(st.lists(st.sampled_from([*ids, "gone", None]), min_size=len(names), max_size=len(names)))
    current = {
        each: [name for name, home in zip(names, homes, strict=True) if home == each]
        for each in [*ids, "gone"]
    }
    capacities = st.sampled_from([0.5, 1.0, 1.0, 2.0, 3.7]) if unequal else st.just(1.0)
    weights = st.sampled_from([0.5, 1.0, 1.0, 2.0, 7.3]) if unequal else st.just(1.0)
    loads = st.sampled_from([None, None, 0.0, 0.01, 0.3, 0.31, 1.5]) if unequal else st.none()
    owned = {each: frozenset(some[::2] if unequal else ()) for each, some in current.items()}
    members = [Member(each, draw(instances), draw(capacities), draw(labels), owned[each]) for each in ids]
    tasks = [Task(name, draw(weights), draw(pins), draw(labels), draw(loads)) for name in names]
    return Group(draw(st.permutations(members)), draw(st.permutations(tasks)), current)
