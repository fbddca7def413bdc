"""A batch that is held where nothing but the fence can keep it out of the sink."""

from __future__ import annotations

import fcntl
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.acceptance.chaos.lake import MADE
from tests.acceptance.chaos.lake import REFUSED as NOT_MADE
from tests.acceptance.chaos.program import HELD, OVER, PUT, hold_of, replay_of
from tests.acceptance.chaos.stage import REFUSED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.acceptance.chaos.flows import Flow
    from tests.acceptance.chaos.stage import Stage

_BATCH = re.compile(r"\bbatch=(\d+)")


class Hold:
    """One task's batch at the worker that owns it now."""

    def __init__(self, stage: Stage, flow: Flow, worker: str) -> None:
        self._stage = stage
        self._flow = flow
        self._worker = stage.herd.workers[worker]
        self._log_from = len(self._worker.log())
        self._batch = -1

    @contextmanager
    def held(self) -> Iterator[None]:
        """The body runs while the batch is held; nothing else is on its way into a sink meanwhile."""
        path = hold_of(self._stage.herd.folder, self._flow.name)
        with path.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._stage.feed.add(self._flow)
            self._stage.wait(lambda: bool(self._told(HELD)), f"a batch of {self._flow.name} is held")
            self._batch = int(_BATCH.findall(self._told(HELD)[0])[0])
            yield
            path.unlink()

    def await_heir(self) -> None:
        """Until another owner has committed the very batch, as the checkpoint shows."""
        self._stage.wait(
            lambda: self._stage.has_committed(self._flow.name, self._batch),
            f"{self._flow.name} has committed batch {self._batch} elsewhere",
        )

    def await_end(self) -> None:
        """Until the batch that was held is in the sink, or was refused."""
        self._stage.wait(
            lambda: bool(self._told(PUT, REFUSED, OVER)), f"the batch of {self._flow.name} is over"
        )

    def _told(self, *what: str) -> list[str]:
        """What the worker has logged of the task since."""
        lines = self._worker.log()[self._log_from :].splitlines()
        of_task = [line for line in lines if f"task={self._flow.name}" in line]
        return [line for line in of_task if any(each in line for each in what)]


class MoveHold:
    """Rows of one task that a worker plays again into a database, from now on; as `lake.CommitHold`."""

    def __init__(self, stage: Stage, flow: Flow, worker: str) -> None:
        self._task = replay_of(flow.name)
        self._worker = stage.herd.workers[worker]
        self._log_from = len(self._worker.log())
        self._path = hold_of(stage.herd.folder, self._task)
        self._file = self._path.open("w")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    @property
    def reached(self) -> bool:
        """The worker has told so; nobody else is held from then on."""
        if is_held := self._told(HELD):
            self._path.unlink(missing_ok=True)
        return is_held

    @property
    def outcome(self) -> str | None:
        """As the worker has it."""
        if self._told(PUT):
            return MADE
        return NOT_MADE if self._told(OVER) else None

    def release(self, *, lost: bool = False) -> None:
        """The dead do not go on anyhow."""
        del lost
        self._path.unlink(missing_ok=True)
        self._file.close()

    def _told(self, what: str) -> bool:
        lines = self._worker.log()[self._log_from :].splitlines()
        return any(what in line and f"task={self._task}" in line for line in lines)
