"""Groups with a worker each, on whichever managers have them, for transfers between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from manager.core.commands import CreateTask, GetTask, NewDefinition
from manager.runtime.transfer_driver import TransferDriver
from protocol.messages.base import encode_opaque
from protocol.messages.membership import MemberAssignment, Protocol, SyncRequest
from protocol.messages.ownership import ClaimRequest, ReportRequest, TaskReport
from protocol.states import Target, TaskState
from tests.integration.manager.members import error, join

if TYPE_CHECKING:
    from collections.abc import Sequence

    from manager.runtime.coordinator_runtime import CoordinatorRuntime
    from tests.integration.manager.managers import Manager

DOCUMENT = {
    "source": {"format": "rate"},
    "sink": {"format": "sql", "options": {"url": "sqlite:///out.db", "table": "t"}},
}


def definition(**labels: str) -> NewDefinition:
    """One that a worker with those labels may run."""
    document = DOCUMENT | ({"labels": labels} if labels else {})
    return NewDefinition(msgspec.Raw(msgspec.json.encode(document)), 1.0, None, labels)


class Worker:
    """The only member of a group; it claims what there is, and stops what it is told to."""

    def __init__(self, runtime: CoordinatorRuntime, group: str) -> None:
        self.runtime, self.group = runtime, group
        self.tokens: dict[str, int] = {}

    async def run(self, *tasks: str) -> None:
        """Join anew, be given all of them, and claim them."""
        metadata = encode_opaque({"settles": True, "homes": True, "owned": self.tokens})
        joined: Any = await self.runtime.ask(
            self.group, join(protocol_type="sparkherd", protocols=(Protocol("range", metadata),))
        )
        given = (MemberAssignment(joined.member_id, encode_opaque({"tasks": tasks})),)
        who = {"member_id": joined.member_id, "generation_id": joined.generation_id}
        assert error(await self.runtime.ask(self.group, SyncRequest(**who, assignments=given))) == "NONE"
        answer: Any = await self.runtime.ask(self.group, ClaimRequest(**who, tasks=tasks))
        self.tokens = {granted.task: granted.token for granted in answer.granted}
        self.member_id = joined.member_id
        assert set(self.tokens) == set(tasks)

    async def stop(self, *tasks: str) -> None:
        """Say that their queries have stopped."""
        reports = tuple(
            TaskReport(task=task, token=self.tokens[task], state=TaskState.STOPPED) for task in tasks
        )
        request = ReportRequest(member_id=self.member_id, tasks=reports)
        assert error(await self.runtime.ask(self.group, request)) == "NONE"


async def herd(runtime: CoordinatorRuntime, group: str, *tasks: str) -> Worker:
    """A group with a worker that runs these tasks."""
    for task in tasks:
        command = CreateTask(task=task, definition=definition(), target=Target.RUNNING)
        assert error(await runtime.ask(group, command)) == "NONE"
    worker = Worker(runtime, group)
    await worker.run(*tasks)
    return worker


def driver_of(manager: Manager) -> TransferDriver:
    """What carries word at a manager; it looks when the test says so."""
    return TransferDriver(manager.runtime, manager.node.routing, manager.node.transfers)


async def drive(*managers: Manager, rounds: int = 6) -> None:
    """Have all look, in turn, until nothing is left to be told."""
    drivers = [driver_of(manager) for manager in managers]
    for _ in range(rounds):
        for driver in drivers:
            await driver.look()


async def target_of(runtime: CoordinatorRuntime, group: str, task: str) -> str:
    """What is wanted of a task, or the code of who does not know it."""
    outcome: Any = await runtime.ask(group, GetTask(task=task))
    return error(outcome) if error(outcome) != "NONE" else str(outcome.target)


def steps(shown: dict[str, Any]) -> Sequence[str]:
    """How far the tasks of a transfer have come."""
    return [task["step"] for task in shown["tasks"]]
