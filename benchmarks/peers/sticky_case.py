"""One assignment by one library, in a process of its own: prints seconds, moves and spread.

    python -m benchmarks.peers.sticky_case sparkherd|kafka|aiokafka MEMBERS TASKS full|joins|leaves

All get the same: so many members and tasks, and who had which before. What a library would make of it on its
way from the network (objects of its own types) is made before the clock starts.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

Owned: TypeAlias = dict[str, list[int]]
MEMORY = 8 * 2**30
"""Bytes that one may have; kafka-python's and aiokafka's keep a list of all members for each task."""
TOPIC = "t"


@dataclass(frozen=True, slots=True)
class Case:
    """So many tasks, told by number, and which of them each present member had; a newcomer had none."""

    tasks: int
    had: Owned


def case(members: int, tasks: int, change: str) -> Case:
    """Members that are level, of which one leaves or to which one joins; `full` is from nothing."""
    names = [f"m{number:05}" for number in range(members)]
    had = {name: [] if change == "full" else list(range(at, tasks, members)) for at, name in enumerate(names)}
    if change == "joins":
        had["newcomer"] = []
    if change == "leaves":
        del had[names[-1]]
    return Case(tasks, had)


def sparkherd(given: Case) -> tuple[float, Owned]:
    """`assignors.sticky`, as the leader calls it."""
    from assignors.base import Member, Task  # noqa: PLC0415 - the others' memory is not to hold it
    from assignors.sticky import StickyAssignor  # noqa: PLC0415

    names = [f"{TOPIC}{number:06}" for number in range(given.tasks)]
    current = {member: [names[number] for number in had] for member, had in given.had.items()}
    members = [Member(member, owned=frozenset(owned)) for member, owned in current.items()]
    tasks = [Task(name) for name in names]
    seconds, assigned = _timed(lambda: StickyAssignor().assign(members, tasks, current))
    return seconds, {m: [int(name.removeprefix(TOPIC)) for name in named] for m, named in assigned.items()}


def of_kafka(library: str, given: Case) -> tuple[float, Owned]:
    """That of `kafka` (kafka-python) or `aiokafka`: its own steps, without en- and decoding."""
    sticky = importlib.import_module(f"{library}.coordinator.assignors.sticky.sticky_assignor")
    partitions = [sticky.TopicPartition(TOPIC, number) for number in range(given.tasks)]
    metadata = {
        member: sticky.StickyAssignorMemberMetadataV1([TOPIC], [partitions[number] for number in had], 1)
        for member, had in given.had.items()
    }

    def assign() -> Owned:
        executor = sticky.StickyAssignmentExecutor(_Cluster(given.tasks), metadata)
        executor.perform_initial_assignment()
        executor.balance()
        return {m: [n for _, named in executor.get_final_assignment(m) for n in named] for m in metadata}

    return _timed(assign)


class _Cluster:
    """What their assignors ask of a cluster."""

    def __init__(self, tasks: int) -> None:
        self._partitions = set(range(tasks))

    def topics(self) -> set[str]:
        return {TOPIC}

    def partitions_for_topic(self, _: str) -> set[int]:
        return self._partitions


def _timed(assign: Callable[[], T]) -> tuple[float, T]:
    start = time.perf_counter()
    assigned = assign()
    return time.perf_counter() - start, assigned


def _told(seconds: float, given: Case, assigned: Owned) -> dict[str, float]:
    """A task that no present member had is no move, wherever it goes."""
    owner = {number: member for member, had in given.had.items() for number in had}
    moved = [n for member, named in assigned.items() for n in named if owner.get(n, member) != member]
    shares = [len(named) for named in assigned.values()]
    if sum(shares) != given.tasks:
        raise RuntimeError(f"{sum(shares)} of {given.tasks} tasks were assigned")
    return {"seconds": seconds, "moves": len(moved), "spread": max(shares) - min(shares)}


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    library, count, tasks, change = sys.argv[1:]
    given = case(int(count), int(tasks), change)
    done = sparkherd(given) if library == "sparkherd" else of_kafka(library, given)
    print(json.dumps(_told(done[0], given, done[1])))
