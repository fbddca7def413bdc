"""How a worker of a history lets go of tasks, and tells its manager so until it is heard."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from protocol.errors import ErrorCode, Failure
from protocol.messages.ownership import ReleaseRequest
from tests.simulation.mishaps import LEFT, LEFT_MS, STUCK
from worker.membership import events
from worker.membership.reactions import RequestKind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from tests.simulation.workers import SimWorker
    from worker.membership.events import Identity

WITHIN_MS = (0, 100)
"""How long it takes to stop a query that stops."""
AGAIN_MS = 100


class Releasing:
    """Of one worker. A query may refuse to stop, which nobody is told, or be left running, which is said."""

    def __init__(self, worker: SimWorker) -> None:
        self._worker = worker

    def let_go(self, tasks: AbstractSet[str]) -> None:
        """Stop what runs of these, and give back all of them that need not be waited for."""
        worker = self._worker
        hanging = {task: worker.hanging.pop(task) for task in sorted(tasks & worker.hanging.keys())}
        released = {task: worker.owned.pop(task) for task in sorted(tasks & worker.owned.keys())}
        over = {task: worker.runs.over.pop(task).token for task in sorted(tasks & worker.runs.over.keys())}
        worker.stops += len(released)
        for task in tuple(released):
            if not worker.runs.has_failed(task) and worker.world.happens(STUCK):
                worker.stuck[task] = released.pop(task)
        running = tuple(filter(self._is_left, released.items()))
        if released := released | hanging | over:
            left = tuple(task for task, _ in running)
            worker.later(
                worker.world.some(*WITHIN_MS), lambda: self._release(worker.identity, released, left)
            )

    def give_back(self, granted: Mapping[str, int]) -> None:
        """What it was granted and is not to run; but for what it is not rid of under this token."""
        worker = self._worker
        free = {task: token for task, token in granted.items() if task not in worker.stuck}
        if returned := {task: token for task, token in free.items() if worker.left.get(task) != token}:
            again = partial(self._release, worker.identity, returned)
            worker.later(worker.world.some(*WITHIN_MS), again)

    def _is_left(self, owned: tuple[str, int]) -> bool:
        """Whether its query runs on, until somebody takes it over or it was waited for long enough."""
        worker, (task, token) = self._worker, owned
        if task in worker.unfenced or worker.runs.has_failed(task) or not worker.world.happens(LEFT):
            return False
        worker.left[task] = token
        worker.later(worker.world.some(*LEFT_MS), partial(worker.drop, task, token))
        return True

    def _release(self, identity: Identity, tasks: dict[str, int], running: tuple[str, ...] = ()) -> None:
        worker = self._worker
        if identity.member_id == worker.identity.member_id:
            request = ReleaseRequest(
                member_id=identity.member_id, instance_id=worker.instance_id, tasks=tasks, running=running
            )
            worker.ask(request, partial(self._released, identity, tasks, running))

    def _released(
        self, identity: Identity, tasks: dict[str, int], running: tuple[str, ...], answer: Any
    ) -> None:
        worker = self._worker
        if not isinstance(answer, Failure):
            return
        if answer.code in {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}:
            worker.later(AGAIN_MS, lambda: self._release(identity, tasks, running))
        else:
            worker.post(events.Refused(RequestKind.RELEASE, identity, answer))
