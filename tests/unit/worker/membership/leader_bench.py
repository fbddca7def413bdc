"""A leader whose assignor does what the test says."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from assignors.base import Assignor
from protocol.messages.base import decode_opaque, encode_opaque
from protocol.messages.membership import JoinedMember, JoinResponse
from protocol.messages.tasks import OfferedTask
from protocol.worker_metadata import WorkerMetadata
from worker.membership.leader import Leader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from assignors.base import Assignment, Member, Task
    from protocol.messages.membership import MemberAssignment

OWNED = {"w1": {"a": 1, "b": 1}, "w2": {"c": 1}}


class Scripted(Assignor):
    """Does what the test says, and remembers what it was asked."""

    name = "scripted"

    def __init__(self, answer: Callable[[], Any]) -> None:
        self.answer = answer
        self.members: Sequence[Member] = ()
        self.tasks: Sequence[Task] = ()
        self.current: Mapping[str, Sequence[str]] = {}

    def assign(
        self, members: Sequence[Member], tasks: Sequence[Task], current: Mapping[str, Sequence[str]]
    ) -> Assignment:
        self.members, self.tasks, self.current = members, tasks, current
        answer: Assignment = self.answer()
        return answer


def joined(
    owned: Mapping[str, dict[str, int]] = OWNED,
    tasks: str = "abcd",
    protocol: str = "scripted",
    limits: Mapping[str, int] = MappingProxyType({}),
) -> JoinResponse:
    """What the leader's join is answered: these members, these tasks."""
    return JoinResponse(
        generation_id=3,
        protocol_type="sparkherd",
        protocol_name=protocol,
        leader_id="w1",
        member_id="w1",
        members=tuple(
            JoinedMember(
                member, None, encode_opaque(WorkerMetadata(owned=tokens, max_tasks=limits.get(member)))
            )
            for member, tokens in owned.items()
        ),
        tasks=tuple(OfferedTask(task, 1.0, None, {}, None) for task in tasks),
    )


def leader(answer: Callable[[], Any], session_timeout_ms: int = 10_000) -> tuple[Leader, Scripted]:
    """A leader whose assignor is scripted."""
    assignor = Scripted(answer)
    return Leader([assignor], session_timeout_ms=session_timeout_ms), assignor


def read(assignments: Sequence[MemberAssignment]) -> dict[str, list[str]]:
    """What is sent to the manager."""
    return {each.member_id: decode_opaque(each.assignment)["tasks"] for each in assignments}


def tasks_of(assignments: Sequence[MemberAssignment]) -> list[str]:
    """Every task that somebody is given."""
    return sorted(task for names in read(assignments).values() for task in names)
