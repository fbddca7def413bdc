"""Which runs of its tasks a worker of a history was granted, and which of them have come to their end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from definition.document import Trigger
from protocol.states import Target

if TYPE_CHECKING:
    from protocol.messages.ownership import GrantedTask

RUN_MS = (50, 1500)
"""How long a bounded query takes."""


class Run(NamedTuple):
    """What a grant asks for; another one of the same task is begun afresh."""

    token: int
    target: str
    version: int
    restarts: int


class Runs:
    """The latest grants of a worker's tasks; `over` are the runs whose end it has yet to tell the manager.

    `failed` are the runs that have failed: another one of the same task is tried afresh.

    As `worker.tasks.desired_state` and `worker.tasks.life` go by them.
    """

    def __init__(self) -> None:
        self.over: dict[str, Run] = {}
        self.failed: dict[str, Run] = {}
        self._latest: dict[str, tuple[Run, int]] = {}

    def follow(self, grant: GrantedTask, revision: int) -> Run | None:
        """The run to begin or to go on with; None if it is over, or the answer was overtaken by another."""
        run = Run(grant.token, grant.target, grant.definition_version, grant.restart_count)
        known, told = self._latest.get(grant.task, (None, 0))
        if known is not None and known.token == run.token and revision < told:
            return None
        self._latest[grant.task] = run, revision
        if self.over.get(grant.task) == run:
            return None
        self.over.pop(grant.task, None)
        return run

    def end(self, task: str, run: Run) -> bool:
        """Its query has come to its end, if this is what it runs still."""
        if self._latest.get(task, (None, 0))[0] != run or self.failed.get(task) == run:
            return False
        self.over[task] = run
        return True

    def fail(self, task: str) -> None:
        """What it runs of a task has failed."""
        self.failed[task] = self._latest[task][0]

    def has_failed(self, task: str) -> bool:
        """Whether what it is to run of a task has."""
        return task in self.failed and self.failed[task] == self._latest[task][0]

    def tokens(self) -> dict[str, int]:
        """Of those that are over."""
        return {task: run.token for task, run in self.over.items()}

    def revision(self, task: str) -> int | None:
        """As of which its task is known."""
        known = self._latest.get(task)
        return None if known is None else known[1]


def comes_to_an_end(grant: GrantedTask) -> bool:
    """Whether its query ends by itself."""
    return grant.target == Target.RUNNING.value and is_bounded(grant.definition)


class _Triggered(msgspec.Struct):
    trigger: Trigger | None = None


def is_bounded(document: msgspec.Raw) -> bool:
    """Whether a query of this definition ends by itself."""
    trigger = msgspec.json.decode(document, type=_Triggered).trigger
    return trigger is not None and bool(trigger.available_now)
