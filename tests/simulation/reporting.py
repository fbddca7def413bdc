"""What a worker of a history says of its tasks, and what becomes of them by what it is answered."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from protocol.errors import ErrorCode, Failure
from protocol.messages.lag import TaskLag
from protocol.messages.ownership import ReportRequest, TaskReport
from protocol.states import TaskState
from tests.simulation.lag import Lags
from tests.simulation.mishaps import POISON
from worker.membership import events
from worker.membership.reactions import RequestKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.simulation.workers import SimWorker
    from worker.membership.events import Identity


class Reporting:
    """Of one worker: the states of its tasks, and how far those are behind that it is asked about."""

    def __init__(self, worker: SimWorker) -> None:
        self._worker = worker
        self._lags = Lags()

    def report(self, running: Mapping[str, int]) -> None:
        """Tell of what runs, each task under its token, and of all that is over."""
        worker = self._worker
        told = {**running, **worker.resting, **worker.runs.tokens()}
        if told and worker.identity.member_id:
            request = ReportRequest(
                member_id=worker.identity.member_id,
                instance_id=worker.instance_id,
                tasks=tuple(self._of(task, token) for task, token in told.items()),
            )
            worker.ask(request, partial(self._reported, worker.identity, request, worker.world.now))

    def _of(self, task: str, token: int) -> TaskReport:
        worker = self._worker
        return TaskReport(
            task=task,
            token=token,
            state=self._state_of(task),
            cause=self._cause_of(task),
            batch_id=None if task == POISON or self._has_failed(task) else worker.batches,
            lag=TaskLag(at_ms=worker.world.now),
            tasks_revision=worker.runs.revision(task) if self._is_done_with(task) else None,
        )

    def _state_of(self, task: str) -> TaskState:
        if task in self._worker.resting:
            return TaskState.STOPPED
        if task in self._worker.runs.over:
            return TaskState.COMPLETED
        if self._has_failed(task):
            return TaskState.FAILED
        return TaskState.STARTING if task in self._worker.hanging else TaskState.RUNNING

    def _cause_of(self, task: str) -> str | None:
        if task in self._worker.resting:
            return self._worker.faults.get(task)
        return "it broke" if self._has_failed(task) else None

    def _has_failed(self, task: str) -> bool:
        return task in self._worker.owned and self._worker.runs.has_failed(task)

    def _is_done_with(self, task: str) -> bool:
        return task in self._worker.resting or task in self._worker.runs.over

    def _reported(self, identity: Identity, request: ReportRequest, sent: int, answer: Any) -> None:
        worker = self._worker
        if isinstance(answer, Failure):
            worker.post(events.Refused(RequestKind.REPORT, identity, answer))
            return
        worker.accepted(sent)
        for report in request.tasks:
            if answer.tasks[report.task] == ErrorCode.STALE_TOKEN:
                worker.drop(report.task, report.token)
                worker.claiming.claim(
                    frozenset({report.task}) & worker.assigned
                )  # it may still be this worker's by right
            elif answer.tasks[report.task] == ErrorCode.NONE:
                self._taken_in(report, sent)

    def _taken_in(self, report: TaskReport, sent: int) -> None:
        """The manager has taken it in: of what is over nothing more is to be said."""
        worker, task, token = self._worker, report.task, report.token
        if report.state is TaskState.STOPPED and worker.resting.get(task) == token:
            del worker.resting[task]
        elif report.state is TaskState.COMPLETED and worker.runs.tokens().get(task) == token:
            del worker.runs.over[task]
        else:
            worker.confirm(task, sent)

    # How far tasks are behind.

    def measure(self) -> None:
        """Tell what was measured since, and hear what is to be measured next."""
        worker = self._worker
        if worker.identity.member_id:
            request = self._lags.told(worker.identity, worker.instance_id)
            worker.ask(request, partial(self._asked, worker.world.now))

    def _asked(self, sent: int, answer: Any) -> None:
        if not isinstance(answer, Failure):
            self._worker.accepted(sent)
            self._lags.measure(answer, self._worker.world.now)
