"""What the leader makes of an assignment before it sends it: an assignor may be wrong (architecture §4)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from assignors.dealing import deal, top_up

if TYPE_CHECKING:
    from assignors.base import Assignment, Member, Task

FaultCode: TypeAlias = Literal["MALFORMED", "UNKNOWN_MEMBER", "UNKNOWN_TASK", "TASK_TWICE"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One reason why an assignment cannot be used: the code for a program, the message for a person."""

    code: FaultCode
    message: str


def validate(assignment: object, members: Sequence[Member], tasks: Sequence[Task]) -> tuple[Fault, ...]:
    """What is wrong with `assignment`, whatever an assignor has returned; nothing if it can be used."""
    if not isinstance(assignment, Mapping):
        return (Fault("MALFORMED", f"the result is no mapping but of type {type(assignment).__name__}"),)
    present = {member.member_id for member in members}
    runnable = {task.name for task in tasks}
    given: set[str] = set()
    faults: list[Fault] = []
    for member_id, names in assignment.items():
        if member_id not in present:
            faults.append(Fault("UNKNOWN_MEMBER", f"{member_id} is not in the group"))
        faults += _faults_of(member_id, names, runnable, given)
    return tuple(faults)


def _faults_of(member_id: str, names: object, runnable: Collection[str], given: set[str]) -> Iterator[Fault]:
    """What is wrong with what one member is given; notes it in `given`."""
    if isinstance(names, str) or not isinstance(names, Sequence):
        yield Fault("MALFORMED", f"what {member_id} is given is no list but of type {type(names).__name__}")
        return
    for name in names:
        if not isinstance(name, str) or name not in runnable:
            yield Fault("UNKNOWN_TASK", f"{member_id} is given {name}, which is not to be assigned")
        elif name in given:
            yield Fault("TASK_TWICE", f"{member_id} is given {name}, which is given away already")
        else:
            given.add(name)


def make_valid(
    last_good: Mapping[str, Sequence[str]], members: Sequence[Member], tasks: Sequence[Task]
) -> Assignment:
    """`last_good`, made to fit the group as it is now: what a leader falls back to.

    Nothing that may stay is moved. What is new, or was on a member that is gone or not eligible any more,
    goes to the least loaded members that may run it.
    """
    return deal(members, tasks, last_good, top_up)
