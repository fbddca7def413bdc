"""Who grants tasks where there is no manager: to the one worker there is, all of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import structlog

from protocol.errors import ErrorCode
from protocol.messages.ownership import (
    ClaimResponse,
    GrantedTask,
    LagResponse,
    PendingTask,
    RefusedTask,
    TaskErrorsResponse,
    TaskReport,
)
from protocol.messages.tasks import TaskReset
from protocol.states import Target, TaskState
from telemetry.foreign_errors import first_line_of, text_of
from telemetry.secrets import scrub
from worker.query_engine import QueryError
from worker.secrets import Secrets
from worker.sinks.factory import newest_fence
from worker.sinks.fence import FenceRow, Owner
from worker.spark.settings import SparkSettings, local_folder
from worker.threads import in_thread
from worker.waiting import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from definition.document import Definition
    from protocol.messages.ownership import ClaimRequest, LagRequest, ReleaseRequest, ReportRequest
    from worker.clock import Clock
    from worker.settings import WorkerSettings
    from worker.standalone.token_file import TokenFile


log = structlog.get_logger(__name__)

NOBODY: Final = ""
"""Who owns a task that is not granted yet."""
AT_REST: Final = {TaskState.COMPLETED, TaskState.FAILED, TaskState.PAUSED, TaskState.STOPPED}
"""What stays as it is unless somebody wants something else, and here nobody can."""
LOOKS: Final = 5
AGAIN: Final = Backoff(first_s=0.5, limit_s=4.0, jitter=0.0)
"""Between looks at a fence."""
_OF_AN_OWNER: Final = {TaskState.STARTING, TaskState.RUNNING, TaskState.RESTARTING}


@dataclass(frozen=True, slots=True)
class LocalTask:
    """A task of the file."""

    name: str
    definition: Definition
    target: Target = Target.RUNNING

    @property
    def is_bounded(self) -> bool:
        """Whether it comes to an end by itself."""
        trigger = self.definition.trigger
        return trigger is not None and trigger.available_now


class LocalManager:
    """Keeps to `worker.tasks.exchange.manager_link.TaskCoordinator`, for tasks that belong to nobody else.

    A token is higher than all that earlier runs used, and than the one in the task's own sink: whoever still
    runs the task elsewhere, under a manager even, is fenced by this run. Asking a sink may take long; the
    other tasks are granted meanwhile. One that could not run is FAILED without having fenced anybody.

    Args:
        tasks: all there are.
        tokens: of the runs before.
        look: reads the fence row in a task's sink, None without one; called in a thread. Raises `QueryError`
            if the task cannot go on from there.
        changed: is called after every report.
        clock: what the pauses between looks at a sink that does not answer are timed by.
    """

    def __init__(
        self,
        tasks: Iterable[LocalTask],
        *,
        tokens: TokenFile,
        look: Callable[[LocalTask], FenceRow | None],
        changed: Callable[[], None],
        clock: Clock,
    ) -> None:
        self.reports: dict[str, TaskReport] = {}
        self.restarts: dict[str, int] = {}
        self._tasks = {task.name: task for task in tasks}
        self._tokens = tokens
        self._look = look
        self._changed = changed
        self._clock = clock
        self._looks: dict[str, asyncio.Task[FenceRow | QueryError]] = {}
        self._granted: dict[str, GrantedTask] = {}

    @property
    def states(self) -> Mapping[str, TaskState]:
        """What each task was last reported to do."""
        return {name: report.state for name, report in self.reports.items()}

    async def claim(self, request: ClaimRequest) -> ClaimResponse:
        """Grant what is ready, at once if anything is; the rest is to be claimed again."""
        looks = {name: self._looked_at(name) for name in request.tasks if name not in self._granted}
        if looks:
            wait_s = request.wait_ms / 1000
            await asyncio.wait(looks.values(), timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
        seen = {name: look.result() for name, look in looks.items() if look.done()}
        self._grant({name: row for name, row in seen.items() if isinstance(row, FenceRow)})
        failed = {name: error for name, error in seen.items() if isinstance(error, QueryError)}
        self._fail(failed)
        rest = [name for name in request.tasks if name not in self._granted and name not in failed]
        return ClaimResponse(
            granted=tuple(self._granted[name] for name in request.tasks if name in self._granted),
            pending=tuple(PendingTask(name, NOBODY) for name in rest),
            refused=tuple(RefusedTask(name, ErrorCode.NOT_ASSIGNED.value) for name in failed),
        )

    async def release(self, request: ReleaseRequest) -> TaskErrorsResponse:
        """Nobody else waits for them; what ran there is nobody's now (protocol §5)."""
        for name in request.tasks:
            report = self.reports.get(name)
            if report is not None and report.state in _OF_AN_OWNER:
                self.reports[name] = msgspec.structs.replace(report, state=TaskState.UNASSIGNED)
        self._changed()
        return TaskErrorsResponse(tasks=dict.fromkeys(request.tasks, ErrorCode.NONE.value))

    async def report(self, request: ReportRequest) -> TaskErrorsResponse:
        """Remember how the tasks are doing."""
        for report in request.tasks:
            before = self.reports.get(report.task)
            if report.state is TaskState.RESTARTING and (before is None or before.state is not report.state):
                self.restarts[report.task] = self.restarts.get(report.task, 0) + 1
            self.reports[report.task] = report
        self._changed()
        return TaskErrorsResponse(tasks={report.task: ErrorCode.NONE.value for report in request.tasks})

    async def lag(self, request: LagRequest) -> LagResponse:
        """Every task has its owner here."""
        del request
        return LagResponse()

    def close(self) -> None:
        """Look no further."""
        for look in self._looks.values():
            look.cancel()

    def _looked_at(self, name: str) -> asyncio.Task[FenceRow | QueryError]:
        if name not in self._looks:
            self._looks[name] = asyncio.ensure_future(self._fence_of(self._tasks[name]))
        return self._looks[name]

    async def _fence_of(self, task: LocalTask) -> FenceRow | QueryError:
        """The sink's row, none if that cannot be read: what is wrong is told when the query is started.

        What is passing is waited for: without its row a task may begin under a token that is used already.
        """
        for tries in range(LOOKS):
            try:
                looking = in_thread("fence-of-sink", partial(self._look, task))
                return await asyncio.wrap_future(looking) or FenceRow(0)
            except QueryError as error:
                return error
            except Exception as error:  # noqa: BLE001 - SinkError, and what a plugged-in sink raises
                log.warning("the fence in the sink cannot be read", task=task.name, why=first_line_of(error))
            if tries < LOOKS - 1:
                await self._clock.sleep(AGAIN.delay_s(tries, chance=0))
        return FenceRow(0)

    def _fail(self, failed: Mapping[str, QueryError]) -> None:
        for name, error in failed.items():
            cause = scrub(text_of(error))
            log.error("task cannot run", task=name, cause=cause)
            self.reports[name] = TaskReport(task=name, token=0, state=TaskState.FAILED, cause=cause)
        if failed:
            self._changed()

    def _grant(self, seen: Mapping[str, FenceRow]) -> None:
        """One token a task: of two claims that waited for one look, the first has brought it already."""
        rows = {name: row for name, row in seen.items() if name not in self._granted}
        if not rows:
            return
        tokens = self._tokens.take({name: row.token for name, row in rows.items()})
        for name, token in tokens.items():
            task, resets = self._tasks[name], rows[name].resets
            self._granted[name] = GrantedTask(
                task=name,
                token=token,
                target=task.target.value,
                definition=msgspec.Raw(msgspec.json.encode(task.definition)),
                definition_version=1,
                restart_count=0,
                reset=TaskReset(resets) if resets else None,
            )


def is_over(tasks: Iterable[LocalTask], states: Mapping[str, TaskState], *, once: bool) -> bool:
    """Whether nothing is left to wait for: with `once` among the bounded tasks, else among all."""
    return all(states.get(task.name) in AT_REST for task in tasks if task.is_bounded or not once)


def has_failed(states: Mapping[str, TaskState]) -> bool:
    """Whether a task needs somebody to look at it."""
    return TaskState.FAILED in states.values()


def fence_of(settings: WorkerSettings, task: LocalTask) -> FenceRow | None:
    """The fence in the task's sink, None if there is none; may block.

    Raises:
        QueryError: the task cannot go on from there.
        SinkError: the sink cannot be read.
    """
    if task.definition.sink is None:
        return None
    secrets = Secrets(settings.allow_secret_env, settings.secrets_dir)
    row = newest_fence(secrets.resolve_sink(task.definition.sink), Owner(settings.group, task.name, 0))
    if row is not None:
        require_checkpoint(settings.checkpoint_root, settings.group, task.name, row)
    return row


def require_checkpoint(root: str, group: str, task: str, row: FenceRow) -> None:
    """Raise `QueryError` if the sink has rows of the task, but there is no checkpoint to go on from.

    The query would refuse to start all the same, but only after its fence has stopped whoever runs the task
    with the right checkpoint. A root that is no folder of this machine is left to the query to look at.
    """
    folder = local_folder(root)
    if row.last is None or folder is None:
        return
    place = Path(SparkSettings(app_name="", checkpoint_root=str(folder)).checkpoint(group, task, row.resets))
    if not (place / "metadata").exists():
        raise QueryError(
            f"the sink has rows of task {task} up to batch {row.last.batch_id}, but {place} holds nothing:"
            " name the --checkpoint-root that it ran with, or another group and sink to begin anew"
        )
