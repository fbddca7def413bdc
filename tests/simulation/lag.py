"""What a worker of a history says of tasks that nobody runs: that it has measured how far they are behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.messages.lag import TaskLag
from protocol.messages.ownership import LagRequest

if TYPE_CHECKING:
    from protocol.messages.ownership import LagResponse
    from worker.membership.events import Identity


class Lags:
    """Those that it was asked for with the last answer; whoever does not lead the group is asked for none."""

    def __init__(self) -> None:
        self._measured: dict[str, TaskLag] = {}

    def told(self, identity: Identity, instance_id: str | None) -> LagRequest:
        """Each of them is told once."""
        told, self._measured = self._measured, {}
        return LagRequest(member_id=identity.member_id, instance_id=instance_id, tasks=told)

    def measure(self, answer: LagResponse, now: int) -> None:
        """Of the tasks that are asked for, as of `now`."""
        revision = answer.tasks_revision
        self._measured = {task.task: TaskLag(at_ms=now, tasks_revision=revision) for task in answer.tasks}
